/* Running schedules side by side, and what binds the winner. */
#include "plan/compare.h"

#include "base/error.h"

void
lh_totals(const LhSimResult *result, LhTotals *totals)
{
    LhTotals t = { .span_ps = (LhWide)result->makespan_ps * result->ranks_count };

    for (uint32_t r = 0; r < result->ranks_count; r++) {
        const LhRankResult *rank = &result->ranks[r];

        t.busy_ps += rank->busy_ps;
        for (int part = 0; part < LH_IDLE_PARTS; part++)
            t.idle_ps[part] += rank->idle_ps[part];
        for (int tier = 0; tier < LH_TIERS; tier++) {
            t.exposed_ps += rank->idle_ps[LH_IDLE_COMM + tier];
            t.tier_bytes[tier] += rank->bytes_by_tier[tier];
        }
        t.sent_bytes += rank->bytes_sent;
        t.sent_bytes_max = MAX(t.sent_bytes_max, rank->bytes_sent);
        t.flops += rank->flops;
        if (rank->peak_bytes > t.peak_bytes) {
            t.peak_bytes = rank->peak_bytes;
            t.peak_rank = r;
        }
    }
    *totals = t;
}

void
lh_compare_row_free(LhCompareRow *row)
{
    if (row == NULL)
        return;
    lh_program_free(row->made);
    lh_sim_result_free(row->result);
    g_free(row->reason);
    g_free(row);
}

static void
give_reason(LhCompareRow *row, LhRowState state, const GError *error)
{
    row->state = state;
    row->reason = g_strdup(error->message);
}

static void
play(LhCompareRow *row, const LhSetup *setup, const LhHooks *hooks)
{
    g_autoptr(GError) error = NULL;
    const uint64_t has = setup->device->memory_capacity;
    const uint64_t weights = lh_setup_weight_bytes_per_rank(setup);
    LhTotals totals;

    row->result = lh_setup_simulate(setup, row->program, NULL, NULL, hooks, &error);
    if (row->result == NULL) {
        give_reason(row,
                    g_error_matches(error, LH_ERROR, LH_ERROR_NO) ? LH_ROW_REFUSED : LH_ROW_FAILED,
                    error);
        return;
    }
    lh_totals(row->result, &totals);
    if (setup->cost == LH_COST_DEVICE && (weights > has || totals.peak_bytes > has - weights))
        row->state = LH_ROW_NO_MEMORY;
}

LhCompareRow *
lh_compare_run(const LhSetup *setup, const LhSchedule *schedule, const LhHooks *hooks)
{
    g_autoptr(GError) error = NULL;
    LhCompareRow *row = g_new0(LhCompareRow, 1);

    row->name = schedule->name;
    row->made = lh_program_new(schedule, &setup->params, &error);
    row->program = row->made;
    if (row->program == NULL) {
        give_reason(row, LH_ROW_REFUSED, error);
        return row;
    }
    play(row, setup, hooks);
    return row;
}

LhCompareRow *
lh_compare_run_program(const LhSetup *setup, const LhHooks *hooks)
{
    LhCompareRow *row = g_new0(LhCompareRow, 1);

    row->name = setup->program->name;
    row->program = setup->program;
    play(row, setup, hooks);
    return row;
}

/* --- the comparison -----------------------------------------------------------------------------
 */

static void
row_free(gpointer data)
{
    lh_compare_row_free(data);
}

/* A stable order, whatever the sort: equal rows keep the order of the table. */
static int
by_time(gconstpointer a, gconstpointer b)
{
    const LhCompareRow *x = *(LhCompareRow *const *)a;
    const LhCompareRow *y = *(LhCompareRow *const *)b;

    if (x->state != y->state)
        return (int)x->state - (int)y->state;
    if (x->result == NULL || x->result->makespan_ps == y->result->makespan_ps)
        return 0;
    return x->result->makespan_ps < y->result->makespan_ps ? -1 : 1;
}

LhComparison *
lh_compare(const LhSetup *setup, const LhHooks *hooks, GError **error)
{
    g_autoptr(LhComparison) c = g_new0(LhComparison, 1);

    c->rows = g_ptr_array_new_with_free_func(row_free);
    if (setup->program != NULL)
        g_ptr_array_add(c->rows, lh_compare_run_program(setup, hooks));
    for (guint i = 0; i < setup->schedules->len; i++)
        g_ptr_array_add(c->rows,
                        lh_compare_run(setup, g_ptr_array_index(setup->schedules, i), hooks));
    if (c->rows->len == 0) {
        g_set_error(error, LH_ERROR, LH_ERROR_USAGE, "there is no schedule to compare");
        return NULL;
    }
    g_ptr_array_sort(c->rows, by_time); /* stable: GLib sorts by merging */
    for (guint i = 0; i < c->rows->len; i++) {
        const LhCompareRow *row = g_ptr_array_index(c->rows, i);

        c->fit_count += row->state == LH_ROW_RAN;
    }
    lh_compare_tell_apart(setup, c);
    if (c->fit_count > 0 && setup->cost == LH_COST_DEVICE)
        c->bound =
            lh_bound_find(setup, ((LhCompareRow *)g_ptr_array_index(c->rows, 0))->program, hooks);
    return g_steal_pointer(&c);
}

void
lh_comparison_free(LhComparison *comparison)
{
    if (comparison == NULL)
        return;
    g_clear_pointer(&comparison->rows, g_ptr_array_unref);
    lh_bound_free(comparison->bound);
    g_free(comparison);
}
