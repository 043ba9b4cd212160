/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Comparisons for people. Times are means over ranks; rounded parts add up to the rounded total.
 */
#include "report/text/describe_comparison.h"

#include "compare/error_bar.h"
#include "report/data/constants.h"

#include "compare/totals.h"
#include "report/base/text.h"
#include "report/data/describe_options.h"
#include "report/data/memory_limit.h"
#include "report/data/time_breakdown.h"
#include "report/text/describe.h"
#include "report/text/describe_relief.h"
#include "report/text/number_cells.h"

/* --- table --------------------------------------------------------------------------------------
 */

/* Determines the columns of a comparison. */
typedef struct {
    LhTimeScale scale;
    bool part[LH_TIME_PARTS]; /* occurs in some row; compute always does */
    bool uneven;              /* some rank sends more than another */
    bool step;                /* training steps, not attention modules */
    bool bars;                /* times have error bars */
    double memory_error;      /* 0: peaks have no error bar */
} Columns;

static LhCompareRow *
row_at(const LhComparison *c, guint index)
{
    return g_ptr_array_index(c->rows, index);
}

static Columns
plan_columns(const LhSetup *setup, const LhComparison *c)
{
    Columns columns = { .part[0] = true,
                        .step = setup->step != NULL,
                        .bars = setup->cost == LH_COST_DEVICE,
                        .memory_error = lh_memory_error(setup) };
    LhTime longest = 0;

    columns.part[1 + LH_IDLE_IMBALANCE] = columns.part[1 + LH_IDLE_HOST] = true;
    for (guint i = 0; i < c->rows->len; i++) {
        const LhSimResult *r = row_at(c, i)->result;
        LhWide parts[LH_TIME_PARTS];
        LhTotals totals;

        if (r == NULL)
            continue;
        lh_totals(r, &totals);
        lh_time_breakdown(&totals, parts);
        longest = MAX(longest, r->makespan_ps);
        for (int part = 0; part < LH_TIME_PARTS; part++)
            columns.part[part] = columns.part[part] || parts[part] != 0;
        columns.uneven =
            columns.uneven || totals.sent_bytes != (LhWide)totals.sent_bytes_max * r->ranks_count;
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
    char heading[LH_CELL_HEADING];

    lh_table_column(table, "schedule", "schedule", NULL, false);
    lh_table_column(table, "makespan_s", "time", columns->scale.unit, true);
    if (columns->bars)
        lh_table_column(table, "error_bar", "error bar", NULL, true);
    lh_table_column(table, "vs_best", "vs best", NULL, true);
    if (columns->step) {
        lh_table_column(table, "tokens_per_s", "tokens/s", NULL, true);
        lh_table_column(table, "mfu", "MFU", "%", true);
    }
    for (int part = 0; part < LH_TIME_PARTS; part++) {
        if (columns->part[part])
            add_part_column(table, part, columns->scale.unit);
    }
    lh_table_column(table, "bubble_fraction", "bubble", "%", true);
    lh_table_column(table, "sent_bytes_max", "sent/GPU", columns->uneven ? "max MiB" : "MiB", true);
    if (columns->uneven)
        lh_table_column(table, "sent_bytes_mean", "sent/GPU", "mean MiB", true);
    lh_table_column(table, "peak_bytes_max", columns->step ? "memory" : "attention",
                    columns->step ? lh_cell_peak_heading("MiB", columns->memory_error, heading)
                                  : "buffers MiB",
                    true);
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
add_time_cells(LhTable *table, const Columns *columns, const LhCompareRow *row,
               const LhTotals *totals, double vs_best)
{
    const LhSimResult *r = row->result;
    const double seconds = (double)r->makespan_ps / (double)LH_PS_PER_S;
    LhWide parts[LH_TIME_PARTS];
    int64_t quanta[LH_TIME_PARTS];
    int64_t whole;
    char text[LH_TEXT_SIZE];

    lh_time_breakdown(totals, parts);
    lh_text_round_parts(columns->scale, parts, LH_TIME_PARTS, r->ranks_count, quanta, &whole);
    lh_table_cell(table, lh_text_scaled(columns->scale, whole, text), NULL);
    if (columns->bars)
        lh_cell_error_bar(table, columns->step ? row->step.iteration_s : seconds, row->time_error);
    if (vs_best > 0)
        add_ratio_cell(table, vs_best, 2, "x");
    else
        lh_table_cell(table, "-", "");
    if (columns->step) {
        add_ratio_cell(table, row->step.tokens_per_s, 0, "");
        lh_cell_percent(table, row->step.mfu);
    }
    for (int part = 0; part < LH_TIME_PARTS; part++) {
        if (columns->part[part])
            lh_table_cell(table, lh_text_scaled(columns->scale, quanta[part], text), NULL);
    }
}

/* Adds a note on options chosen by the schedule, and on memory. */
static void
note_row(LhTable *table, const LhSetup *setup, const LhCompareRow *row)
{
    g_autofree char *chosen = lh_describe_options(&row->program->params, &setup->params);
    g_autofree char *note = NULL;

    if (row->state == LH_ROW_NO_MEMORY) {
        g_autofree char *limit = lh_describe_memory_limit(setup, row->result);

        note =
            g_strdup_printf("out of memory: %s%s%s", limit, chosen[0] != '\0' ? "; " : "", chosen);
    }
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
        g_autofree char *note =
            g_strdup_printf("%s: %s", lh_row_state_names[row->state], row->reason);

        lh_table_cell(table, "-", "");
        lh_table_note(table, note);
        return;
    }
    lh_totals(row->result, &totals);
    add_time_cells(
        table, columns, row, &totals,
        row->state == LH_ROW_RAN && best > 0 ? (double)row->result->makespan_ps / (double)best : 0);
    lh_cell_percent(table, lh_sim_bubble_fraction(row->result));
    lh_cell_mib(table, totals.sent_bytes_max, 1);
    if (columns->uneven)
        lh_cell_mib(table, totals.sent_bytes, row->result->ranks_count);
    lh_cell_mib(table, totals.peak_bytes, 1);
    note_row(table, setup, row);
}

LhTable *
lh_describe_comparison(const LhSetup *setup, const LhComparison *c)
{
    const Columns columns = plan_columns(setup, c);
    LhTable *table = new_comparison_table(&columns);

    for (guint i = 0; i < c->rows->len; i++)
        add_comparison_row(table, setup, c, &columns, i);
    return table;
}

/* --- winner -------------------------------------------------------------------------------------
 */

#define NAMED_MAX 4
#define EQUAL_LEAD 0.0005 /* a lead printed as 0.0 % */

/* Relative lead of the winner over the row. */
static double
lead_over(const LhComparison *c, const LhCompareRow *row)
{
    const LhTime best = row_at(c, 0)->result->makespan_ps;

    return best == 0 ? 0 : (double)row->result->makespan_ps / (double)best - 1;
}

/* Appends "usp, te-a2a and 3 more". */
static void
append_names(const GPtrArray *rows, GString *out)
{
    const guint named = rows->len <= NAMED_MAX ? rows->len : NAMED_MAX - 1;

    for (guint i = 0; i < named; i++)
        g_string_append_printf(out, "%s%s",
                               i == 0               ? ""
                               : i + 1 == rows->len ? " and "
                                                    : ", ",
                               ((const LhCompareRow *)g_ptr_array_index(rows, i))->name);
    if (named < rows->len)
        g_string_append_printf(out, " and %u more", rows->len - named);
}

/* Describes how far tied rows are apart and why this is not significant, using the row with the
 * largest error bar of the difference. */
static void
describe_apart(const LhSetup *setup, const LhComparison *c, const GPtrArray *tied, double lead,
               GString *out)
{
    const LhErrorParts of_first = lh_error_parts(setup, row_at(c, 0)->result);
    const LhCompareRow *worst = g_ptr_array_index(tied, 1);
    LhErrorParts of_worst;
    char apart[LH_TEXT_SIZE];

    for (guint i = 2; i < tied->len; i++) {
        const LhCompareRow *row = g_ptr_array_index(tied, i);

        worst = row->error > worst->error ? row : worst;
    }
    of_worst = lh_error_parts(setup, worst->result);
    g_string_append_printf(out, " are tied: %s%s apart, and ", tied->len > 2 ? "up to " : "",
                           lh_text_percent(lead, apart));
    lh_describe_good_to(setup, worst->error, lh_error_between_most(&of_first, &of_worst), out);
    g_string_append_c(out, '.');
}

/* Describes the winner and @tied, the rows within the error bar behind it. */
static void
describe_tie(const LhSetup *setup, const LhComparison *c, GPtrArray *tied, GString *out)
{
    const LhCompareRow *last = g_ptr_array_index(tied, tied->len - 1);
    const double lead = lead_over(c, last);

    g_ptr_array_insert(tied, 0, row_at(c, 0));
    append_names(tied, out);
    if (lead < EQUAL_LEAD)
        g_string_append(out, " are equally fast.");
    else
        describe_apart(setup, c, tied, lead, out);
}

static guint
count_rows(const LhComparison *c, LhRowState state)
{
    guint count = 0;

    for (guint i = 0; i < c->rows->len; i++)
        count += row_at(c, i)->state == state;
    return count;
}

/* For a winner without tied rows and without a runner-up. */
static const char *
alone_words(const LhComparison *c)
{
    if (c->rows->len == 1)
        return "was the only schedule given.";
    if (count_rows(c, LH_ROW_INTERRUPTED) > 0)
        return "is the only one done so far that can run here.";
    if (count_rows(c, LH_ROW_LEFT_OUT) > 0)
        return "wins; the others are left out or cannot run here.";
    return "is the only one that can run here.";
}

static void
describe_interruption(const LhComparison *c, GString *out)
{
    const guint missing = count_rows(c, LH_ROW_INTERRUPTED);
    const guint all = c->rows->len - count_rows(c, LH_ROW_REFUSED);

    if (missing > 0)
        g_string_append_printf(out,
                               "Interrupted: %u of %u schedules are done, and only these are "
                               "compared.\n",
                               all - missing, all);
    else
        g_string_append(
            out,
            "Interrupted: all schedules are done, but the bottleneck of the fastest is unknown.\n");
}

static void
describe_lead(const LhSetup *setup, const LhComparison *c, GString *out)
{
    g_autoptr(GPtrArray) tied = g_ptr_array_new();
    const LhCompareRow *next = NULL;
    char buffer[LH_TEXT_SIZE];

    if (c->fit_count == 1) {
        g_string_append_printf(out, "%s %s", row_at(c, 0)->name, alone_words(c));
        return;
    }
    for (guint i = 1; i < c->fit_count; i++) {
        LhCompareRow *row = g_ptr_array_index(c->rows, i);

        if (row->tied || lead_over(c, row) < EQUAL_LEAD)
            g_ptr_array_add(tied, row);
        else if (next == NULL)
            next = row;
    }
    if (tied->len > 0) {
        describe_tie(setup, c, tied, out);
        if (next != NULL)
            g_string_append_printf(out, " %s is %s behind %s.", next->name,
                                   lh_text_percent(lead_over(c, next), buffer), row_at(c, 0)->name);
    } else if (next != NULL) {
        g_string_append_printf(out, "%s wins, %s ahead of %s.", row_at(c, 0)->name,
                               lh_text_percent(lead_over(c, next), buffer), next->name);
    }
}

/* For the tiers with the same name in every cluster. */
static const char *const tier_words[] = {
    [LH_TIER_PCIE] = "PCIe",
    [LH_TIER_NIC] = "the NICs",
    [LH_TIER_FABRIC] = "the fabric",
};

/* Appends "compute", "PCIe and the NICs together". */
static void
describe_resource(const LhSetup *setup, const LhWhatIf *what_if, GString *out)
{
    const int count = __builtin_popcount(what_if->tiers & ~LH_WITH_LATENCY);
    const bool latency = (what_if->tiers & LH_WITH_LATENCY) != 0;
    int said = 0;

    static const char *const words[] = { [LH_STEP_COMPUTE] = "compute",
                                         [LH_STEP_LATENCY] = "the latency of messages",
                                         [LH_STEP_HOST] = "the hosts" };

    if (what_if->kind != LH_STEP_LINKS) {
        g_string_append(out, words[what_if->kind]);
        return;
    }
    for (unsigned tier = 0; tier < LH_TIERS; tier++) {
        if ((what_if->tiers & 1u << tier) == 0)
            continue;
        g_string_append_printf(out, "%s%s",
                               said == 0                       ? ""
                               : said == count - 1 && !latency ? " and "
                                                               : ", ",
                               tier == LH_TIER_NVLINK
                                   ? lh_topology_link_name(setup->topology, LH_TIER_NVLINK)
                                   : tier_words[tier]);
        said++;
    }
    if (latency)
        g_string_append(out, " and latency");
    if (count + latency > 1)
        g_string_append(out, " together");
}

static void
describe_raise(const LhSetup *setup, const LhWhatIf *what_if, GString *out)
{
    static const char *const words[] = { [LH_STEP_COMPUTE] = "10 % faster kernels",
                                         [LH_STEP_LATENCY] = "latencies 1.1 times shorter",
                                         [LH_STEP_HOST] = "10 % faster launches" };

    if (what_if->kind != LH_STEP_LINKS) {
        g_string_append(out, words[what_if->kind]);
        return;
    }
    g_string_append(out, "10 % more bandwidth");
    if (__builtin_popcount(what_if->tiers & ~LH_WITH_LATENCY) > 1)
        g_string_append(out, " on all of them");
    if ((what_if->tiers & LH_WITH_LATENCY) != 0)
        g_string_append(out, " and latencies 1.1 times shorter");
    if ((what_if->tiers & 1u << LH_TIER_NIC) != 0 &&
        (setup->topology->nic.pair_p2p > 0 || setup->topology->nic.pair_collective > 0))
        g_string_append(out, ", also from GPU to GPU,");
}

/* Appends ", 1.4 % to 3.6 %" if that range is wider than the printed precision. */
static void
describe_interval_of(const LhWhatIf *what_if, GString *out)
{
    char least[LH_TEXT_SIZE], most[LH_TEXT_SIZE];

    lh_text_percent(what_if->least_share, least);
    lh_text_percent(what_if->most_share, most);
    if (strcmp(least, most) != 0)
        g_string_append_printf(out, ", %s to %s", least, most);
}

/* Appends "PCIe and the NICs together (63 % of its critical path): 10 % more bandwidth would save
 * ..." */
static void
describe_what_if(const LhSetup *setup, const LhBottleneck *bound, const LhWhatIf *what_if,
                 GString *out)
{
    const double makespan_ps = (double)MAX(bound->makespan_ps, 1);
    const LhTime saved = lh_what_if_saved(bound, what_if);
    g_autofree char *text = lh_format_time(saved), *edit = NULL;
    char share[LH_TEXT_SIZE];

    describe_resource(setup, what_if, out);
    g_string_append_printf(out, " (%s of its critical path): ",
                           lh_text_percent((double)what_if->path_ps / makespan_ps, share));
    describe_raise(setup, what_if, out);
    edit = lh_what_if_edit(setup->topology, what_if);
    if (edit != NULL)
        g_string_append_printf(out, " (%s)", edit);
    if (saved == 0) {
        g_string_append(out, " would save nothing");
        return;
    }
    g_string_append_printf(out, " would save %s (%s", text,
                           lh_text_percent((double)saved / makespan_ps, share));
    describe_interval_of(what_if, out);
    g_string_append_c(out, ')');
}

void
lh_describe_bound(const LhSetup *setup, const LhBottleneck *bound, const char *name, GString *out)
{
    const LhWhatIf *first, *second;

    if (bound == NULL || bound->what_ifs->len == 0)
        return;
    first = &g_array_index(bound->what_ifs, LhWhatIf, 0);
    second = bound->what_ifs->len > 1 ? first + 1 : NULL;
    g_string_append_printf(out, " %s is bound by ", name);
    describe_what_if(setup, bound, first, out);
    if (second != NULL && lh_what_if_saved(bound, second) > 0) {
        g_string_append(out, lh_what_if_saved(bound, second) > lh_what_if_saved(bound, first)
                                 ? ". Another chain of ops takes about as long, and is bound by "
                                 : ". Then ");
        describe_what_if(setup, bound, second, out);
    }
    g_string_append_c(out, '.');
}

/* Whether the previous sentence is about the winner alone. */
static bool
is_alone(const LhComparison *c)
{
    for (guint i = 1; i < c->fit_count; i++)
        if (row_at(c, i)->tied || lead_over(c, row_at(c, i)) < EQUAL_LEAD)
            return false;
    return true;
}

/* Describes a comparison in which nothing runs: the smallest peak, and changes that would make it
 * fit. */
static void
describe_none(const LhComparison *c, GString *out)
{
    const LhCompareRow *least = lh_compare_least(c);
    g_autofree char *what = NULL;

    g_string_append(out, "None of the schedules can run here.");
    if (c->reliefs == NULL || least == NULL) {
        g_string_append_c(out, '\n');
        return;
    }
    what = g_strdup_printf(" %s has the lowest peak", least->name);
    lh_describe_need(c->reliefs, what, out);
    lh_describe_reliefs(c->reliefs, out);
}

void
lh_describe_winner(const LhSetup *setup, const LhComparison *c, GString *out)
{
    if (c->interrupted)
        describe_interruption(c, out);
    if (c->fit_count == 0 && count_rows(c, LH_ROW_INTERRUPTED) > 0)
        return;
    if (c->fit_count == 0) {
        describe_none(c, out);
        return;
    }
    describe_lead(setup, c, out);
    lh_describe_bound(setup, c->bound, is_alone(c) ? "It" : row_at(c, 0)->name, out);
    g_string_append_c(out, '\n');
}

/* The largest extrapolation of curves in any row. */
static LhExtrapolation
farthest(const LhComparison *c)
{
    LhExtrapolation beyond = { 0 };

    for (guint i = 0; i < c->rows->len; i++) {
        const LhCompareRow *row = g_ptr_array_index(c->rows, i);

        if (row->result != NULL)
            lh_extrapolation_join(&beyond, &row->result->beyond);
    }
    return beyond;
}

void
lh_describe_answer(const LhSetup *setup, const LhComparison *comparison, const char *where,
                   GString *out)
{
    LhExtrapolation beyond;

    lh_describe_winner(setup, comparison, out);
    if (comparison->fit_count == 0)
        return;
    beyond = farthest(comparison);
    lh_describe_interval(setup, g_ptr_array_index(comparison->rows, 0), out);
    lh_describe_trust(setup, g_ptr_array_index(comparison->rows, 0), where, out);
    lh_describe_extrapolation(&beyond, out);
}
