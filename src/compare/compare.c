/* SPDX-License-Identifier: Apache-2.0 */
/* Simulates schedules on the same cluster, and finds the winner's bottleneck. */
#include "compare/compare.h"

#include "base/error.h"
#include "compare/compare_pool.h"
#include "compare/compare_row.h"
#include "compare/totals.h"

/* --- comparison ---------------------------------------------------------------------------------
 */

static void
row_free(gpointer data)
{
    lh_compare_row_free(data);
}

/* Sorts by time. A stable order: equal rows keep the order of the table. */
static int
rows_by_time(gconstpointer a, gconstpointer b)
{
    const LhCompareRow *x = *(LhCompareRow *const *)a;
    const LhCompareRow *y = *(LhCompareRow *const *)b;

    if (x->state != y->state)
        return (int)x->state - (int)y->state;
    if (x->result == NULL || x->result->makespan_ps == y->result->makespan_ps)
        return 0;
    return x->result->makespan_ps < y->result->makespan_ps ? -1 : 1;
}

typedef struct {
    const LhTask *task;
    bool interrupted;
} Watch;

static bool
watch_progress(void *data, const LhProgress *at)
{
    Watch *watch = data;

    watch->interrupted = watch->interrupted || !lh_task_tell(watch->task, at);
    return !watch->interrupted;
}

/* Finds the winner's bottleneck. An incomplete analysis, when interrupted, is dropped. */
static void
bound_winner(LhComparison *c, const LhSetup *setup, const LhTask *task)
{
    const LhCompareRow *winner = g_ptr_array_index(c->rows, 0);
    Watch watch = { .task = task };
    const LhTask watched = { .jobs = lh_compare_threads(task->jobs, UINT_MAX, setup->network.ranks),
                             .progress = watch_progress,
                             .data = &watch };

    if (watch_progress(&watch, &(LhProgress){ .what = winner->name }))
        c->bound = lh_bottleneck_find(setup, winner->program, &watched);
    c->interrupted = watch.interrupted;
    if (c->interrupted)
        g_clear_pointer(&c->bound, lh_bottleneck_free);
}

const LhCompareRow *
lh_compare_least(const LhComparison *c)
{
    const LhCompareRow *least = NULL;
    uint64_t least_bytes = 0;

    for (guint i = 0; i < c->rows->len; i++) {
        const LhCompareRow *row = g_ptr_array_index(c->rows, i);
        LhTotals totals;

        if (row->state != LH_ROW_NO_MEMORY)
            continue;
        lh_totals(row->result, &totals);
        if (least == NULL || totals.peak_bytes < least_bytes) {
            least = row;
            least_bytes = totals.peak_bytes;
        }
    }
    return least;
}

/* Finds changes that make a case fit. Only programs of schedules can be changed. */
static void
relieve(LhComparison *c, const LhSetup *setup, const LhTask *task)
{
    const LhCompareRow *least = lh_compare_least(c);

    for (guint i = 0; least != NULL && least->made != NULL && i < setup->schedules->len; i++) {
        const LhSchedule *schedule = g_ptr_array_index(setup->schedules, i);

        if (schedule->name == least->name)
            c->reliefs = lh_reliefs(setup, schedule, task);
    }
}

void
lh_compare_tell_apart(const LhSetup *setup, const LhComparison *c)
{
    const LhCompareRow *first = c->fit_count > 0 ? g_ptr_array_index(c->rows, 0) : NULL;
    LhErrorParts of_first, of_row;

    if (c->fit_count < 2 || setup->cost != LH_COST_DEVICE)
        return;
    of_first = lh_error_parts(setup, first->result);
    for (guint i = 1; i < c->fit_count; i++) {
        LhCompareRow *row = g_ptr_array_index(c->rows, i);

        of_row = lh_error_parts(setup, row->result);
        row->error = lh_error_between(&of_first, &of_row);
        row->tied = (double)row->result->makespan_ps <=
                    (double)first->result->makespan_ps * (1 + row->error);
    }
}

LhComparison *
lh_compare(const LhSetup *setup, const LhCompareOptions *options, GError **error)
{
    static const LhCompareOptions no_options = { 0 };
    const LhCompareOptions *o = options != NULL ? options : &no_options;
    g_autoptr(LhComparison) c = g_new0(LhComparison, 1);

    c->rows = g_ptr_array_new_with_free_func(row_free);
    if (setup->program != NULL)
        g_ptr_array_add(c->rows, lh_compare_row_of_program(setup->program));
    if (o->also != NULL)
        g_ptr_array_add(c->rows, lh_compare_row_of_program(o->also));
    for (guint i = 0; i < setup->schedules->len; i++)
        g_ptr_array_add(c->rows,
                        lh_compare_row_of_schedule(setup, g_ptr_array_index(setup->schedules, i)));
    if (c->rows->len == 0) {
        g_set_error(error, LH_ERROR, LH_ERROR_USAGE, "no schedule to compare");
        return NULL;
    }
    c->interrupted = !lh_compare_play_all(setup, c->rows, o);
    g_ptr_array_sort(c->rows, rows_by_time); /* stable: GLib uses merge sort */
    for (guint i = 0; i < c->rows->len; i++) {
        const LhCompareRow *row = g_ptr_array_index(c->rows, i);

        c->fit_count += row->state == LH_ROW_RAN;
    }
    lh_compare_tell_apart(setup, c);
    if (c->fit_count > 0 && setup->cost == LH_COST_DEVICE && !c->interrupted && !o->no_bound)
        bound_winner(c, setup, &o->task);
    if (c->fit_count == 0 && !c->interrupted && !o->no_bound)
        relieve(c, setup, &o->task);
    return g_steal_pointer(&c);
}

void
lh_comparison_free(LhComparison *comparison)
{
    if (comparison == NULL)
        return;
    g_clear_pointer(&comparison->rows, g_ptr_array_unref);
    lh_bottleneck_free(comparison->bound);
    lh_reliefs_free(comparison->reliefs);
    g_free(comparison);
}
