/*
 * Comparisons for people. Every time is a mean over ranks; rounded parts add up to the rounded
 * whole.
 */
#include "report/describe_comparison.h"

#include "report/cells.h"
#include "report/describe_options.h"
#include "report/parts.h"
#include "report/text.h"

/* --- the table ----------------------------------------------------------------------------------
 */

/* What the columns of a comparison depend on. */
typedef struct {
    LhTimeScale scale;
    bool part[LH_PARTS]; /* occurs in some row; busy always */
    bool uneven;         /* some rank sends more than another */
} Columns;

static const LhCompareRow *
row_at(const LhComparison *c, guint index)
{
    return g_ptr_array_index(c->rows, index);
}

static Columns
plan_columns(const LhComparison *c)
{
    Columns columns = { .part[0] = true };
    LhTime longest = 0;

    columns.part[1 + LH_IDLE_IMBALANCE] = columns.part[1 + LH_IDLE_HOST] = true;
    for (guint i = 0; i < c->rows->len; i++) {
        const LhSimResult *r = row_at(c, i)->result;
        LhTime parts[LH_PARTS];
        LhTotals totals;

        if (r == NULL)
            continue;
        lh_totals(r, &totals);
        lh_parts(&totals, parts);
        longest = MAX(longest, r->makespan_ps);
        for (int part = 0; part < LH_PARTS; part++)
            columns.part[part] = columns.part[part] || parts[part] != 0;
        columns.uneven =
            columns.uneven || totals.sent_bytes != totals.sent_bytes_max * r->ranks_count;
    }
    columns.scale = lh_text_scale(longest);
    return columns;
}

static void
add_part_column(LhTable *table, int part, const char *unit)
{
    const bool tier = lh_part_is_exposed(part);
    const char *name = lh_part_name(part);
    g_autofree char *key = g_strdup_printf("%s%s_sum_s", tier ? "exposed_" : "", name);
    g_autofree char *second = g_strdup_printf("%s %s", name, unit);

    lh_table_column(table, key, tier ? "exposed" : name, tier ? second : unit, true);
}

static LhTable *
new_comparison_table(const Columns *columns)
{
    LhTable *table = lh_table_new();

    lh_table_column(table, "schedule", "schedule", NULL, false);
    lh_table_column(table, "makespan_s", "time", columns->scale.unit, true);
    lh_table_column(table, "vs_best", "vs best", NULL, true);
    for (int part = 0; part < LH_PARTS; part++) {
        if (columns->part[part])
            add_part_column(table, part, columns->scale.unit);
    }
    lh_table_column(table, "bubble_fraction", "bubble", "%", true);
    lh_table_column(table, "sent_bytes_max", "sent/GPU", columns->uneven ? "max MiB" : "MiB", true);
    if (columns->uneven)
        lh_table_column(table, "sent_bytes_mean", "sent/GPU", "mean MiB", true);
    lh_table_column(table, "peak_bytes_max", "peak/GPU", "MiB", true);
    return table;
}

static void
add_ratio_cell(LhTable *table, double value, int decimals, const char *suffix)
{
    char exact[G_ASCII_DTOSTR_BUF_SIZE];
    g_autofree char *text = g_strdup_printf("%.*f%s", decimals, value, suffix);

    lh_table_cell(table, text, lh_double_to_text(value, exact));
}

static void
add_time_cells(LhTable *table, const Columns *columns, const LhSimResult *r, const LhTotals *totals,
               double vs_best)
{
    LhTime parts[LH_PARTS];
    int64_t quanta[LH_PARTS];
    int64_t whole;
    char text[LH_TEXT_SIZE];
    char exact[LH_TEXT_SIZE];

    lh_parts(totals, parts);
    lh_text_round_parts(columns->scale, parts, LH_PARTS, r->ranks_count, quanta, &whole);
    lh_table_cell(table, lh_text_scaled(columns->scale, whole, text),
                  lh_text_seconds(r->makespan_ps, exact));
    if (vs_best > 0)
        add_ratio_cell(table, vs_best, 2, "x");
    else
        lh_table_cell(table, "-", "");
    for (int part = 0; part < LH_PARTS; part++) {
        if (columns->part[part])
            lh_table_cell(table, lh_text_scaled(columns->scale, quanta[part], text),
                          lh_text_seconds(parts[part], exact));
    }
}

/* What the schedule chose itself, and whether it fits. */
static void
note_row(LhTable *table, const LhSetup *setup, const LhCompareRow *row, const LhTotals *totals)
{
    g_autofree char *chosen = lh_describe_options(&row->program->params, &setup->params);
    g_autofree char *needs = lh_format_bytes(totals->peak_bytes);
    g_autofree char *has = lh_format_bytes(setup->device->memory_capacity);
    g_autofree char *note = NULL;

    if (row->state == LH_ROW_NO_MEMORY)
        note =
            g_strdup_printf("out of memory: rank %u needs %s, a GPU has %s%s%s", totals->peak_rank,
                            needs, has, chosen[0] != '\0' ? "; " : "", chosen);
    if (note != NULL || chosen[0] != '\0')
        lh_table_note(table, note != NULL ? note : chosen);
}

static void
add_comparison_row(LhTable *table, const LhSetup *setup, const LhComparison *c,
                   const Columns *columns, guint index)
{
    const LhCompareRow *row = row_at(c, index);
    const LhTime best = row_at(c, 0)->result == NULL ? 0 : row_at(c, 0)->result->makespan_ps;
    LhTotals totals;

    lh_table_row(table);
    lh_table_cell(table, row->name, NULL);
    if (row->result == NULL) {
        g_autofree char *note = g_strdup_printf(
            "%s: %s", row->state == LH_ROW_REFUSED ? "refused" : "failed", row->reason);

        lh_table_cell(table, "-", "");
        lh_table_note(table, note);
        return;
    }
    lh_totals(row->result, &totals);
    add_time_cells(
        table, columns, row->result, &totals,
        row->state == LH_ROW_RAN && best > 0 ? (double)row->result->makespan_ps / (double)best : 0);
    lh_cell_percent(table, lh_sim_bubble_fraction(row->result));
    lh_cell_mib(table, (double)totals.sent_bytes_max);
    if (columns->uneven)
        lh_cell_mib(table, (double)totals.sent_bytes / (double)row->result->ranks_count);
    lh_cell_mib(table, (double)totals.peak_bytes);
    note_row(table, setup, row, &totals);
}

LhTable *
lh_describe_comparison(const LhSetup *setup, const LhComparison *c)
{
    const Columns columns = plan_columns(c);
    LhTable *table = new_comparison_table(&columns);

    for (guint i = 0; i < c->rows->len; i++)
        add_comparison_row(table, setup, c, &columns, i);
    return table;
}

/* --- the winner ---------------------------------------------------------------------------------
 */

static void
describe_lead(const LhComparison *c, GString *out)
{
    const LhCompareRow *first = row_at(c, 0);
    const LhCompareRow *second = c->fit_count > 1 ? row_at(c, 1) : NULL;
    double lead;
    char buffer[LH_TEXT_SIZE];

    if (second == NULL) {
        g_string_append_printf(out,
                               c->rows->len > 1 ? "%s is the only one that can run here."
                                                : "%s was the only one asked for.",
                               first->name);
        return;
    }
    lead = first->result->makespan_ps == 0
               ? 0
               : (double)second->result->makespan_ps / (double)first->result->makespan_ps - 1;
    if (lead < 0.0005)
        g_string_append_printf(out, "%s and %s are equally fast.", first->name, second->name);
    else
        g_string_append_printf(out, "%s wins, %s ahead of %s.", first->name,
                               lh_text_percent(lead, buffer), second->name);
}

static const char *const resource_words[] = {
    [LH_TIER_NVLINK] = "NVLink",     [LH_TIER_PCIE] = "PCIe", [LH_TIER_NIC] = "the NICs",
    [LH_TIER_FABRIC] = "the fabric", [LH_TIERS] = "compute",
};

static const char *const more_words[] = {
    [LH_TIER_NVLINK] = "more NVLink bandwidth",
    [LH_TIER_PCIE] = "more PCIe bandwidth",
    [LH_TIER_NIC] = "more NIC bandwidth",
    [LH_TIER_FABRIC] = "more fabric bandwidth",
    [LH_TIERS] = "faster kernels",
};

/* How busy the resource is: the busiest link, where it is one of this class; the GPUs for compute.
 */
static void
describe_use(const LhSetup *setup, const LhSimResult *r, int resource, GString *out)
{
    char buffer[LH_TEXT_SIZE];
    g_autofree char *name = NULL;

    if (resource == LH_TIERS) {
        g_string_append_printf(out, " (the GPUs compute for %s of the time)",
                               lh_text_percent(1 - lh_sim_bubble_fraction(r), buffer));
        return;
    }
    if (r->busiest_link == UINT32_MAX ||
        lh_network_link(&setup->network, r->busiest_link).tier != resource)
        return;
    name = lh_network_link_name(&setup->network, r->busiest_link);
    g_string_append_printf(out, " (%s is busy for %s of the time)", name,
                           lh_text_percent(r->busiest_link_utilisation, buffer));
}

static void
describe_bound(const LhSetup *setup, const LhComparison *c, GString *out)
{
    const LhSimResult *r = row_at(c, 0)->result;
    const LhWhatIf *best;
    LhTime saved;
    char share[LH_TEXT_SIZE];
    g_autofree char *saved_text = NULL;

    if (c->what_ifs->len == 0)
        return;
    best = &g_array_index(c->what_ifs, LhWhatIf, 0);
    saved = r->makespan_ps - best->makespan_ps;
    if (saved <= 0) {
        g_string_append(out, " Neither faster links nor faster kernels would help it: the host "
                             "sets the pace.");
        return;
    }
    saved_text = lh_format_time(saved);
    g_string_append_printf(out, " It is bound by %s", resource_words[best->resource]);
    describe_use(setup, r, best->resource, out);
    g_string_append_printf(out, ": 10 %% %s%s would save %s (%s).", more_words[best->resource],
                           best->resource == LH_TIER_NIC && setup->topology->nic.flow_bandwidth > 0
                               ? ", also from GPU to GPU,"
                               : "",
                           saved_text,
                           lh_text_percent((double)saved / (double)r->makespan_ps, share));
}

void
lh_describe_winner(const LhSetup *setup, const LhComparison *c, GString *out)
{
    if (c->fit_count == 0) {
        g_string_append(out, "None of the schedules can run here.\n");
        return;
    }
    describe_lead(c, out);
    describe_bound(setup, c, out);
    g_string_append_c(out, '\n');
}
