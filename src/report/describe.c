/*
 * Words and tables for people. Every time is a mean over ranks unless its heading says otherwise;
 * rounded parts add up to the rounded whole.
 */
#include "report/describe.h"

#include "plan/probe.h"
#include "plan/setting.h"
#include "report/describe_options.h"
#include "report/text.h"

#include <math.h>
#include <string.h>

#define PARTS (LH_IDLE_PARTS + 1) /* busy, then the idle parts */
#define BYTES_PER_MIB 1048576.0

/* --- what is simulated --------------------------------------------------------------------------
 */

static void
describe_shape(const LhSetup *setup, GString *out)
{
    const LhProgramParams *p = &setup->params;
    const LhAttention *a = &p->attention;
    static const char *const passes[] = { "forward", "backward", "forward + backward" };
    g_autofree char *tokens = lh_format_count(a->seq_length);
    g_autofree char *share = lh_format_count(a->seq_length / p->ranks);
    g_autofree char *mask = lh_describe_mask(&p->mask);

    g_string_append_printf(out, "one%s attention module", a->linear ? " linear" : "");
    if (setup->model != NULL)
        g_string_append_printf(out, " of %s", setup->model->name);
    g_string_append_printf(out, ", %s: %s tokens, %s a rank", passes[p->pass - 1], tokens, share);
    if (a->batch > 1)
        g_string_append_printf(out, ", %u sequences", a->batch);
    g_string_append_printf(out, "; %u heads of %u", a->heads, a->head_dim);
    if (a->groups != a->heads)
        g_string_append_printf(out, " in %u groups", a->groups);
    g_string_append_printf(out, ", %s, %s\n", lh_dtype_names[a->dtype], mask);
}

static void
describe_links(const LhTopology *t, GString *out)
{
    if (t->scale_up != LH_SCALE_UP_NONE) {
        g_autofree char *rate = lh_format_bandwidth(t->nvlink.bandwidth);

        g_string_append_printf(out, "NVLink %s%s", rate,
                               t->scale_up == LH_SCALE_UP_PAIRS ? " in pairs" : "");
    } else if (t->pcie.bandwidth > 0) {
        g_autofree char *rate = lh_format_bandwidth(t->pcie.bandwidth);

        g_string_append_printf(out, "PCIe %s", rate);
    }
    if (t->nics_per_node > 0) {
        g_autofree char *rate = lh_format_bandwidth(t->nic.bandwidth);

        g_string_append_printf(out, "; %" G_GUINT64_FORMAT " x %s to the network", t->nics_per_node,
                               rate);
    }
    if (t->nic.flow_bandwidth > 0) {
        g_autofree char *rate = lh_format_bandwidth(t->nic.flow_bandwidth);

        g_string_append_printf(out, ", %s from GPU to GPU", rate);
    }
}

static void
describe_cluster(const LhSetup *setup, GString *out)
{
    const LhTopology *t = setup->topology;
    g_autofree char *groups = lh_describe_groups(&setup->params);

    g_string_append_printf(out, "%s on %s%s: %u node%s of %" G_GUINT64_FORMAT " x %s (", groups,
                           t->name, setup->cluster_defaulted ? " (the default; see --cluster)" : "",
                           setup->network.nodes, setup->network.nodes == 1 ? "" : "s",
                           t->gpus_per_node, setup->device->name);
    describe_links(t, out);
    g_string_append(out, ")\n");
}

/* What was asked of the program beyond its shape. */
static void
add_options(const LhProgramParams *p, GPtrArray *words)
{
    LhProgramParams plain = { .attention = p->attention };
    char decay[G_ASCII_DTOSTR_BUF_SIZE];
    g_autofree char *options = lh_describe_options(p, &plain);

    if (p->attention.decay != 0)
        g_ptr_array_add(words,
                        g_strdup_printf("decay %s", lh_double_to_text(p->attention.decay, decay)));
    if (!p->overlap)
        g_ptr_array_add(words, g_strdup("no overlap"));
    if (p->published_code)
        g_ptr_array_add(words, g_strdup("as the published code"));
    if (p->gradient_wire != LH_WIRE_DEFAULT)
        g_ptr_array_add(words,
                        g_strdup_printf("gradients travel as %s", lh_wire_names[p->gradient_wire]));
    if (options[0] != '\0')
        g_ptr_array_add(words, g_steal_pointer(&options));
}

static void
describe_conditions(const LhSetup *setup, GString *out)
{
    const LhScenario *s = setup->scenario;
    g_autoptr(GPtrArray) words = g_ptr_array_new_with_free_func(g_free);
    g_autofree char *joined = NULL;
    char buffer[LH_TEXT_SIZE];

    add_options(&setup->params, words);
    if (setup->cost == LH_COST_DEVICE && setup->network_model != LH_NETWORK_FAIR)
        g_ptr_array_add(words, g_strdup_printf("network model %s",
                                               lh_network_model_names[setup->network_model]));
    if (setup->cost == LH_COST_DEVICE && setup->collectives != LH_COLLECTIVES_RING)
        g_ptr_array_add(words, g_strdup_printf("collectives %s",
                                               lh_collective_model_names[setup->collectives]));
    if (s->jitter > 0)
        g_ptr_array_add(words, g_strdup_printf("jitter %s, seed %" G_GUINT64_FORMAT,
                                               lh_text_percent(s->jitter, buffer), s->seed));
    if (s->straggler != NULL)
        g_ptr_array_add(words, g_strdup_printf("%u slow rank%s", s->straggler->len,
                                               s->straggler->len == 1 ? "" : "s"));
    if (s->link_fault != NULL)
        g_ptr_array_add(words, g_strdup_printf("%u fault%s in links", s->link_fault->len,
                                               s->link_fault->len == 1 ? "" : "s"));
    if (s->profile != NULL)
        g_ptr_array_add(words, g_strdup_printf("profile %s", s->profile));
    if (words->len == 0)
        return;
    g_ptr_array_add(words, NULL);
    joined = g_strjoinv("; ", (char **)words->pdata);
    g_string_append_printf(out, "with: %s\n", joined);
}

/* Options that nobody listens to. */
static void
describe_unread(const LhSetup *setup, GString *out)
{
    g_autoptr(GPtrArray) unread = lh_probe_unread(setup);

    for (guint i = 0; i < unread->len; i++) {
        g_autofree char *option = lh_setting_option(g_ptr_array_index(unread, i));

        g_string_append_printf(out, "%s%s", i == 0 ? "without effect here: " : ", ", option);
    }
    if (unread->len > 0)
        g_string_append_c(out, '\n');
}

void
lh_describe_left_out(const LhSetup *setup, GString *out)
{
    if (setup->left_out > 0)
        g_string_append_printf(out, "left out: %u schedule%s for %s attention\n", setup->left_out,
                               setup->left_out == 1 ? "" : "s",
                               setup->params.attention.linear ? "softmax" : "linear");
}

void
lh_describe_case(const LhSetup *setup, GString *out)
{
    g_autofree char *groups = lh_describe_groups(&setup->params);

    describe_shape(setup, out);
    if (setup->cost == LH_COST_DEVICE)
        describe_cluster(setup, out);
    else
        g_string_append_printf(out, "%s; communication is free, %s\n", groups,
                               setup->cost == LH_COST_UNIT
                                   ? "every attention block takes 1 s"
                                   : "attention runs its exact flops at 1 PFLOP/s");
    describe_conditions(setup, out);
    if (setup->program == NULL)
        describe_unread(setup, out);
    lh_describe_left_out(setup, out);
}

/* --- the comparison -----------------------------------------------------------------------------
 */

/* What the columns of a comparison depend on. */
typedef struct {
    LhTimeScale scale;
    bool part[PARTS]; /* occurs in some row; busy always */
    bool uneven;      /* some rank sends more than another */
} Columns;

static const LhCompareRow *
row_at(const LhComparison *c, guint index)
{
    return g_ptr_array_index(c->rows, index);
}

static void
collect_parts(const LhTotals *totals, LhTime *parts)
{
    parts[0] = totals->busy_ps;
    memcpy(parts + 1, totals->idle_ps, sizeof(totals->idle_ps));
}

static Columns
plan_columns(const LhComparison *c)
{
    Columns columns = { .part[0] = true };
    LhTime longest = 0;

    columns.part[1 + LH_IDLE_IMBALANCE] = columns.part[1 + LH_IDLE_HOST] = true;
    for (guint i = 0; i < c->rows->len; i++) {
        const LhSimResult *r = row_at(c, i)->result;
        LhTime parts[PARTS];
        LhTotals totals;

        if (r == NULL)
            continue;
        lh_totals(r, &totals);
        collect_parts(&totals, parts);
        longest = MAX(longest, r->makespan_ps);
        for (int part = 0; part < PARTS; part++)
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
    const int idle = part - 1;
    const bool tier = idle >= LH_IDLE_COMM && idle < LH_IDLE_COMM + LH_TIERS;
    const char *name = part == 0 ? "compute" : lh_idle_names[idle];
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
    for (int part = 0; part < PARTS; part++) {
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
add_fraction_cell(LhTable *table, double value)
{
    char exact[G_ASCII_DTOSTR_BUF_SIZE];
    g_autofree char *text = g_strdup_printf("%.1f", 100 * value);

    lh_table_cell(table, text, lh_double_to_text(value, exact));
}

static void
add_mib_cell(LhTable *table, double bytes)
{
    char exact[G_ASCII_DTOSTR_BUF_SIZE];
    const double mib = bytes / BYTES_PER_MIB;
    g_autofree char *text = g_strdup_printf(mib < 100 ? "%.2f" : "%.1f", mib);

    lh_table_cell(table, text, lh_double_to_text(bytes, exact));
}

static void
add_time_cells(LhTable *table, const Columns *columns, const LhSimResult *r, const LhTotals *totals,
               double vs_best)
{
    LhTime parts[PARTS];
    int64_t quanta[PARTS];
    int64_t whole;
    char text[LH_TEXT_SIZE];
    char exact[LH_TEXT_SIZE];

    collect_parts(totals, parts);
    lh_text_round_parts(columns->scale, parts, PARTS, r->ranks_count, quanta, &whole);
    lh_table_cell(table, lh_text_scaled(columns->scale, whole, text),
                  lh_text_seconds(r->makespan_ps, exact));
    if (vs_best > 0)
        add_ratio_cell(table, vs_best, 2, "x");
    else
        lh_table_cell(table, "-", "");
    for (int part = 0; part < PARTS; part++) {
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
            g_strdup_printf("out of memory: rank %u needs %s, the GPU has %s%s%s",
                            totals->peak_rank, needs, has, chosen[0] != '\0' ? "; " : "", chosen);
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
    add_fraction_cell(table, lh_sim_bubble_fraction(row->result));
    add_mib_cell(table, (double)totals.sent_bytes_max);
    if (columns->uneven)
        add_mib_cell(table, (double)totals.sent_bytes / (double)row->result->ranks_count);
    add_mib_cell(table, (double)totals.peak_bytes);
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
        g_string_append_printf(out, "%s and %s are level.", first->name, second->name);
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

/* --- one run ------------------------------------------------------------------------------------
 */

LhTable *
lh_describe_parts(const LhSimResult *r)
{
    LhTable *table = lh_table_new();
    const LhTimeScale scale = lh_text_scale(r->makespan_ps);
    LhTotals totals;
    LhTime parts[PARTS];
    int64_t quanta[PARTS];
    int64_t whole;
    char text[LH_TEXT_SIZE];
    char exact[LH_TEXT_SIZE];

    lh_totals(r, &totals);
    collect_parts(&totals, parts);
    lh_text_round_parts(scale, parts, PARTS, r->ranks_count, quanta, &whole);
    lh_table_column(table, "part", "where the time goes", NULL, false);
    lh_table_column(table, "sum_s", "mean", scale.unit, true);
    lh_table_column(table, "fraction", "share", "%", true);
    for (int part = 0; part <= PARTS; part++) {
        const int idle = part - 1;
        const bool tier = idle >= LH_IDLE_COMM && idle < LH_IDLE_COMM + LH_TIERS;
        const LhTime time_ps = part < PARTS ? parts[part] : r->makespan_ps * (LhTime)r->ranks_count;

        if (part > 0 && part < PARTS && time_ps == 0)
            continue;
        lh_table_row(table);
        lh_table_cell_printf(table, "%s%s", tier ? "exposed " : "",
                             part == 0       ? "compute"
                             : part == PARTS ? "makespan"
                                             : lh_idle_names[idle]);
        lh_table_cell(table, lh_text_scaled(scale, part < PARTS ? quanta[part] : whole, text),
                      lh_text_seconds(time_ps, exact));
        add_fraction_cell(table, r->makespan_ps == 0 ? 0
                                                     : (double)time_ps / ((double)r->makespan_ps *
                                                                          (double)r->ranks_count));
    }
    return table;
}

/* A quantity of each rank, for the table of extremes. */
typedef struct {
    const char *name;
    const char *unit;
    double per_unit;
    double (*value)(const LhRankResult *rank);
} RankQuantity;

static double
value_busy(const LhRankResult *rank)
{
    return (double)rank->busy_ps;
}

static double
value_comm(const LhRankResult *rank)
{
    return (double)rank->comm_ps;
}

static double
value_exposed(const LhRankResult *rank)
{
    LhTime exposed = 0;

    for (int tier = 0; tier < LH_TIERS; tier++)
        exposed += rank->idle_ps[LH_IDLE_COMM + tier];
    return (double)exposed;
}

static double
value_finish(const LhRankResult *rank)
{
    return (double)rank->finish_ps;
}

static double
value_sent(const LhRankResult *rank)
{
    return (double)rank->bytes_sent;
}

static double
value_peak(const LhRankResult *rank)
{
    return (double)rank->peak_bytes;
}

static double
value_flops(const LhRankResult *rank)
{
    return (double)rank->flops;
}

static const RankQuantity quantities[] = {
    { "compute", "ms", 1e9, value_busy },
    { "communication", "ms", 1e9, value_comm },
    { "of it exposed", "ms", 1e9, value_exposed },
    { "finished at", "ms", 1e9, value_finish },
    { "attention work", "TFLOP", 1e12, value_flops },
    { "sent", "MiB", BYTES_PER_MIB, value_sent },
    { "peak memory", "MiB", BYTES_PER_MIB, value_peak },
};

LhTable *
lh_describe_ranks(const LhCompareRow *row)
{
    const LhSimResult *r = row->result;
    LhTable *table = lh_table_new();

    lh_table_column(table, "quantity", "over the ranks", NULL, false);
    lh_table_column(table, "unit", "", NULL, false);
    lh_table_column(table, "min", "min", NULL, true);
    lh_table_column(table, "mean", "mean", NULL, true);
    lh_table_column(table, "max", "max", NULL, true);
    lh_table_column(table, "max_rank", "on rank", NULL, true);
    for (guint i = 0; i < G_N_ELEMENTS(quantities); i++) {
        const RankQuantity *q = &quantities[i];
        double least = INFINITY;
        double most = -1;
        double sum = 0;
        uint32_t where = 0;

        for (uint32_t rank = 0; rank < r->ranks_count; rank++) {
            const double value = q->value(&r->ranks[rank]);

            least = MIN(least, value);
            sum += value;
            if (value > most) {
                most = value;
                where = rank;
            }
        }
        lh_table_row(table);
        lh_table_cell(table, q->name, NULL);
        lh_table_cell(table, q->unit, NULL);
        lh_table_cell_printf(table, "%.3f", least / q->per_unit);
        lh_table_cell_printf(table, "%.3f", sum / r->ranks_count / q->per_unit);
        lh_table_cell_printf(table, "%.3f", most / q->per_unit);
        lh_table_cell_printf(table, "%u", where);
    }
    return table;
}

static void
add_count_row(LhTable *table, const char *name, uint64_t bytes, uint32_t ranks)
{
    g_autofree char *count = lh_format_count(bytes);
    g_autofree char *exact = g_strdup_printf("%" G_GUINT64_FORMAT, bytes);

    lh_table_row(table);
    lh_table_cell(table, name, NULL);
    lh_table_cell(table, count, exact);
    add_mib_cell(table, (double)bytes / ranks);
}

LhTable *
lh_describe_traffic(const LhCompareRow *row)
{
    const LhProgramParams *p = &row->program->params;
    const LhClosedForms *closed = lh_closed_forms(row->program->schedule, p);
    const uint32_t ranks = lh_program_ranks(row->program);
    LhTable *table = lh_table_new();
    LhTotals totals;

    lh_totals(row->result, &totals);
    lh_table_column(table, "links", "bytes sent", NULL, false);
    lh_table_column(table, "bytes", "all ranks", "bytes", true);
    lh_table_column(table, "bytes_mean", "mean/GPU", "MiB", true);
    for (int tier = 0; tier < LH_TIERS; tier++) {
        g_autofree char *name = g_strdup_printf("over %s", lh_tier_names[tier]);

        if (totals.tier_bytes[tier] > 0)
            add_count_row(table, name, totals.tier_bytes[tier], ranks);
    }
    add_count_row(table, "in all", totals.sent_bytes, ranks);
    if (closed->bytes_sent != NULL) {
        uint64_t bytes = 0;

        for (uint32_t rank = 0; rank < ranks; rank++)
            bytes += closed->bytes_sent(p, lh_program_group_rank(row->program, rank));
        add_count_row(table, "closed form", bytes, ranks);
    }
    return table;
}

LhTable *
lh_describe_memory(const LhSimResult *r)
{
    LhTable *table = lh_table_new();
    LhTotals totals;
    const LhRankResult *rank;
    g_autofree char *title = NULL;

    lh_totals(r, &totals);
    rank = &r->ranks[totals.peak_rank];
    title = g_strdup_printf("memory of rank %u at its peak", totals.peak_rank);
    lh_table_column(table, "tensor", title, NULL, false);
    lh_table_column(table, "bytes", "MiB", NULL, true);
    for (int kind = 0; kind < LH_TENSOR_KINDS; kind++) {
        if (rank->peak_by_tensor[kind] == 0)
            continue;
        lh_table_row(table);
        lh_table_cell(table, lh_tensor_names[kind], NULL);
        add_mib_cell(table, (double)rank->peak_by_tensor[kind]);
    }
    lh_table_row(table);
    lh_table_cell(table, "in all", NULL);
    add_mib_cell(table, (double)rank->peak_bytes);
    return table;
}

/* --- where the constants come from --------------------------------------------------------------
 */

static int
weakest_kernel(const LhDevice *device)
{
    int weakest = LH_PROVENANCE_MEASURED;

    for (guint i = 0; i < device->kernels->len; i++)
        weakest = MAX(weakest, g_array_index(device->kernels, LhKernelRate, i).provenance);
    return weakest;
}

static int
weakest_link(const LhTopology *t)
{
    int weakest = LH_PROVENANCE_MEASURED;

    if (t->nvlink.bandwidth > 0)
        weakest = MAX(weakest, t->nvlink.provenance);
    if (t->pcie.bandwidth > 0)
        weakest = MAX(weakest, t->pcie.provenance);
    if (t->nic.bandwidth > 0)
        weakest = MAX(weakest, t->nic.provenance);
    return weakest;
}

void
lh_describe_trust(const LhSetup *setup, LhProvenance weakest, GString *out)
{
    if (setup->cost != LH_COST_DEVICE) {
        g_string_append(out, "constants: none; the times are of unit costs, not of a machine\n");
        return;
    }
    g_string_append_printf(
        out,
        "constants: %s kernels at worst %s, %s links at worst %s; the weakest used here: %s; "
        "see --provenance\n",
        setup->device->name, lh_provenance_names[weakest_kernel(setup->device)],
        setup->topology->name, lh_provenance_names[weakest_link(setup->topology)],
        lh_provenance_names[weakest]);
}

static void
add_constant(LhTable *table, const char *name, const char *value, int provenance,
             const char *source)
{
    lh_table_row(table);
    lh_table_cell(table, name, NULL);
    lh_table_cell(table, value, NULL);
    lh_table_cell(table, lh_provenance_names[provenance], NULL);
    lh_table_cell(table, source != NULL ? source : "", NULL);
}

static void
add_link_constant(LhTable *table, const char *name, const LhLinkClass *link)
{
    g_autofree char *rate = NULL;
    g_autofree char *limit = NULL;
    g_autofree char *latency = NULL;
    g_autofree char *value = NULL;

    if (link->bandwidth == 0)
        return;
    rate = lh_format_bandwidth(link->bandwidth);
    limit = lh_format_bandwidth(link->flow_bandwidth);
    latency = lh_format_time(link->latency_ps);
    value = g_strdup_printf("%s%s%s%s, %s, %" G_GUINT64_FORMAT " SMs", rate,
                            link->flow_bandwidth > 0 ? " (GPU to GPU " : "",
                            link->flow_bandwidth > 0 ? limit : "",
                            link->flow_bandwidth > 0 ? ")" : "", latency, link->ctas);
    add_constant(table, name, value, link->provenance, link->source);
}

static void
add_kernel_constants(LhTable *table, const LhDevice *d)
{
    for (guint i = 0; i < d->kernels->len; i++) {
        const LhKernelRate *rate = &g_array_index(d->kernels, LhKernelRate, i);
        g_autofree char *flops = lh_format_flops(rate->rate);
        g_autofree char *name =
            g_strdup_printf("%s %s d%" G_GUINT64_FORMAT, rate->kernel,
                            rate->mask != 0 ? "causal" : "full", rate->head_dim);
        g_autofree char *value = g_strdup_printf("%s / (1 + %.0f / s)", flops, rate->half_length);

        add_constant(table, name, value, rate->provenance, rate->source);
    }
}

LhTable *
lh_describe_constants(const LhSetup *setup)
{
    const LhDevice *d = setup->device;
    LhTable *table = lh_table_new();
    g_autofree char *peak = lh_format_bandwidth(d->memory_bandwidth);
    g_autofree char *launch = lh_format_time(d->kernel_launch_ps);
    g_autofree char *sync = lh_format_time(d->stream_sync_ps);
    g_autofree char *memory = g_strdup_printf("%s x %.2f", peak, d->memory_efficiency);
    g_autofree char *host = g_strdup_printf("%s an op, %s a wait", launch, sync);

    lh_table_column(table, "constant", "constant", NULL, false);
    lh_table_column(table, "value", "value", NULL, false);
    lh_table_column(table, "provenance", "provenance", NULL, false);
    lh_table_column(table, "source", "source", NULL, false);
    add_kernel_constants(table, d);
    add_constant(table, "memory", memory, d->memory_provenance, d->source);
    add_constant(table, "host", host, LH_PROVENANCE_ASSUMED, d->source);
    add_link_constant(table, "nvlink", &setup->topology->nvlink);
    add_link_constant(table, "pcie", &setup->topology->pcie);
    add_link_constant(table, "nic", &setup->topology->nic);
    return table;
}
