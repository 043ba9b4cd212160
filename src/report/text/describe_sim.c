/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Output of one simulated run. Times are means over ranks unless the heading says otherwise;
 * rounded parts add up to the rounded total.
 */
#include "report/text/describe_sim.h"

#include "compare/totals.h"
#include "report/base/text.h"
#include "report/data/time_breakdown.h"
#include "report/text/number_cells.h"

#define FLOP_PER_TFLOP INT64_C(1000000000000)
#define DECIMALS 3

LhTable *
lh_describe_parts(const LhSimResult *r)
{
    LhTable *table = lh_table_new();
    const LhTimeScale scale = lh_text_scale(r->makespan_ps);
    LhTotals totals;
    LhWide parts[LH_TIME_PARTS];
    int64_t quanta[LH_TIME_PARTS];
    int64_t whole;
    char text[LH_TEXT_SIZE];

    lh_totals(r, &totals);
    lh_time_breakdown(&totals, parts);
    lh_text_round_parts(scale, parts, LH_TIME_PARTS, r->ranks_count, quanta, &whole);
    lh_table_column(table, "part", "where the time goes", NULL, false);
    lh_table_column(table, "mean", "mean", scale.unit, true);
    lh_table_column(table, "fraction", "share", "%", true);
    for (int part = 0; part <= LH_TIME_PARTS; part++) {
        const LhWide time_ps = part < LH_TIME_PARTS ? parts[part] : totals.span_ps;

        if (part > 0 && part < LH_TIME_PARTS && time_ps == 0)
            continue;
        lh_table_row(table);
        lh_table_cell_printf(table, "%s%s",
                             part < LH_TIME_PARTS && lh_part_is_exposed(part) ? "exposed " : "",
                             part < LH_TIME_PARTS ? lh_part_name(part) : "makespan");
        lh_table_cell(
            table, lh_text_scaled(scale, part < LH_TIME_PARTS ? quanta[part] : whole, text), NULL);
        lh_cell_percent(table, totals.span_ps == 0 ? 0 : (double)time_ps / (double)totals.span_ps);
    }
    return table;
}

/* A per-rank quantity of the table of extremes. */
typedef struct {
    const char *name;
    const char *unit;
    LhWide per_unit;
    LhWide (*value)(const LhRankResult *rank);
} RankQuantity;

static LhWide
value_busy(const LhRankResult *rank)
{
    return rank->busy_ps;
}

static LhWide
value_comm(const LhRankResult *rank)
{
    return rank->comm_ps;
}

static LhWide
value_exposed(const LhRankResult *rank)
{
    LhTime exposed = 0;

    for (int tier = 0; tier < LH_TIERS; tier++)
        exposed += rank->idle_ps[LH_IDLE_COMM + tier];
    return exposed;
}

static LhWide
value_finish(const LhRankResult *rank)
{
    return rank->finish_ps;
}

static LhWide
value_sent(const LhRankResult *rank)
{
    return rank->bytes_sent;
}

static LhWide
value_peak(const LhRankResult *rank)
{
    return rank->peak_bytes;
}

static LhWide
value_flops(const LhRankResult *rank)
{
    return rank->flops;
}

static const RankQuantity quantities[] = {
    { "compute", "ms", LH_PS_PER_MS, value_busy },
    { "communication", "ms", LH_PS_PER_MS, value_comm },
    { "exposed communication", "ms", LH_PS_PER_MS, value_exposed },
    { "finish time", "ms", LH_PS_PER_MS, value_finish },
    { "attention flops", "TFLOP", FLOP_PER_TFLOP, value_flops },
    { "sent", "MiB", LH_MIB, value_sent },
    { "attention buffers", "MiB", LH_MIB, value_peak },
};

static void
add_quantity_row(LhTable *table, const RankQuantity *q, const LhSimResult *r)
{
    LhWide least = q->value(&r->ranks[0]), most = least, sum = 0;
    uint32_t where = 0;
    char text[LH_WIDE_TEXT_SIZE];

    for (uint32_t rank = 0; rank < r->ranks_count; rank++) {
        const LhWide value = q->value(&r->ranks[rank]);

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
    lh_table_cell(table, lh_wide_quotient(least, q->per_unit, DECIMALS, text), NULL);
    lh_table_cell(table, lh_wide_quotient(sum, q->per_unit * r->ranks_count, DECIMALS, text), NULL);
    lh_table_cell(table, lh_wide_quotient(most, q->per_unit, DECIMALS, text), NULL);
    lh_table_cell_printf(table, "%u", where);
}

/* Whether memory other than attention buffers is accounted for. */
static bool
has_categories(const LhRankResult *rank)
{
    return rank->peak->by_category[LH_CATEGORY_ATTENTION] != rank->peak_bytes;
}

LhTable *
lh_describe_ranks(const LhCompareRow *row)
{
    LhTable *table = lh_table_new();

    lh_table_column(table, "quantity", "over the ranks", NULL, false);
    lh_table_column(table, "unit", "", NULL, false);
    lh_table_column(table, "min", "min", NULL, true);
    lh_table_column(table, "mean", "mean", NULL, true);
    lh_table_column(table, "max", "max", NULL, true);
    lh_table_column(table, "max_rank", "on rank", NULL, true);
    for (guint i = 0; i < G_N_ELEMENTS(quantities); i++) {
        RankQuantity q = quantities[i];

        if (q.value == value_peak && has_categories(&row->result->ranks[0]))
            q.name = "memory";
        add_quantity_row(table, &q, row->result);
    }
    return table;
}

static void
add_count_row(LhTable *table, const char *name, LhWide bytes, uint32_t ranks)
{
    lh_table_row(table);
    lh_table_cell(table, name, NULL);
    lh_cell_count(table, bytes);
    lh_cell_mib(table, bytes, ranks);
}

/* Bytes sent by all ranks according to the program's closed form; false without one. */
static bool
claimed_bytes(const LhProgram *program, LhWide *bytes)
{
    *bytes = 0;
    for (uint32_t rank = 0; rank < lh_program_ranks(program); rank++) {
        uint64_t value;

        if (!lh_program_claim(program, LH_CLAIM_BYTES_SENT, rank, &value))
            return false;
        *bytes += value;
    }
    return true;
}

LhTable *
lh_describe_traffic(const LhCompareRow *row)
{
    const uint32_t ranks = lh_program_ranks(row->program);
    LhTable *table = lh_table_new();
    LhWide claimed;
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
    add_count_row(table, "total", totals.sent_bytes, ranks);
    if (claimed_bytes(row->program, &claimed))
        add_count_row(table, "closed form", claimed, ranks);
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
    title = has_categories(rank)
                ? g_strdup_printf("memory of rank %u at its peak", totals.peak_rank)
                : g_strdup_printf("attention buffers of rank %u at their peak", totals.peak_rank);
    lh_table_column(table, "tensor", title, NULL, false);
    lh_table_column(table, "bytes", "MiB", NULL, true);
    for (int kind = 0; kind < LH_TENSOR_KINDS; kind++) {
        if (rank->peak->by_tensor[kind] == 0)
            continue;
        lh_table_row(table);
        lh_table_cell(table, lh_tensor_names[kind], NULL);
        lh_cell_mib(table, rank->peak->by_tensor[kind], 1);
    }
    lh_table_row(table);
    lh_table_cell(table, "total", NULL);
    lh_cell_mib(table, rank->peak_bytes, 1);
    return table;
}

static void
add_step_row(LhTable *table, const char *what, const char *unit, const char *format, double value)
{
    char text[LH_TEXT_SIZE];

    g_ascii_formatd(text, sizeof(text), format, value);
    lh_table_row(table);
    lh_table_cell(table, what, NULL);
    lh_table_cell(table, unit, NULL);
    lh_table_cell(table, text, NULL);
}

LhTable *
lh_describe_step(const LhStepAnswer *step)
{
    LhTable *table = lh_table_new();

    lh_table_column(table, "quantity", step->forward_only ? "the prefill" : "the training step",
                    NULL, false);
    lh_table_column(table, "unit", "", NULL, false);
    lh_table_column(table, "value", "", NULL, true);
    add_step_row(table, step->forward_only ? "time to first token" : "time per step", "s", "%.4g",
                 step->iteration_s);
    add_step_row(table, "throughput", "tokens/s", "%.0f", step->tokens_per_s);
    add_step_row(table, "per GPU", "tokens/s", "%.1f", step->tokens_per_s_per_gpu);
    if (step->cache_bytes > 0)
        add_step_row(table, "KV cache of a GPU", "MiB", "%.1f", (double)step->cache_bytes / LH_MIB);
    add_step_row(table, "MFU", "%", "%.1f", 100 * step->mfu);
    add_step_row(table, "HFU", "%", "%.1f", 100 * step->hfu);
    add_step_row(table, "exposed: tensor parallel", "ms", "%.1f",
                 1e3 * step->exposed_s[LH_DIMENSION_TENSOR]);
    add_step_row(table, "exposed: context parallel", "ms", "%.1f",
                 1e3 * step->exposed_s[LH_DIMENSION_CONTEXT]);
    add_step_row(table, "exposed: data parallel", "ms", "%.1f",
                 1e3 * step->exposed_s[LH_DIMENSION_DATA]);
    if (step->exposed_s[LH_DIMENSION_PIPELINE] > 0)
        add_step_row(table, "exposed: pipeline parallel", "ms", "%.1f",
                     1e3 * step->exposed_s[LH_DIMENSION_PIPELINE]);
    if (step->host_memory.needed_bytes == 0)
        return table;
    add_step_row(table, "exposed: copies of offload", "ms", "%.1f",
                 1e3 * step->exposed_s[LH_EXPOSED_OFFLOAD]);
    add_step_row(table, "host memory of a rank", "GiB", "%.2f",
                 (double)step->host_peak_bytes / LH_GIB);
    add_step_row(table, "host memory of a node", "GiB", "%.2f",
                 (double)step->host_memory.needed_bytes / LH_GIB);
    if (step->host_memory.limit_bytes > 0)
        add_step_row(table, "... of available", "GiB", "%.2f",
                     (double)step->host_memory.limit_bytes / LH_GIB);
    return table;
}

LhTable *
lh_describe_categories(const LhSimResult *r)
{
    LhTotals totals;
    const LhRankResult *rank;
    LhTable *table;
    g_autofree char *title = NULL;
    int count = 0;

    lh_totals(r, &totals);
    rank = &r->ranks[totals.peak_rank];
    for (int c = 0; c < LH_CATEGORIES; c++)
        count += rank->peak->by_category[c] > 0;
    if (count < 2)
        return NULL;
    table = lh_table_new();
    title = g_strdup_printf("memory of rank %u at its peak", totals.peak_rank);
    lh_table_column(table, "category", title, NULL, false);
    lh_table_column(table, "bytes", "MiB", NULL, true);
    lh_table_column(table, "fraction", "share", "%", true);
    for (int c = 0; c < LH_CATEGORIES; c++) {
        if (rank->peak->by_category[c] == 0)
            continue;
        lh_table_row(table);
        lh_table_cell(table, lh_category_names[c], NULL);
        lh_cell_mib(table, rank->peak->by_category[c], 1);
        lh_cell_percent(table, (double)rank->peak->by_category[c] / (double)rank->peak_bytes);
    }
    lh_table_row(table);
    lh_table_cell(table, "total", NULL);
    lh_cell_mib(table, rank->peak_bytes, 1);
    lh_cell_percent(table, 1);
    return table;
}

/* --- links --------------------------------------------------------------------------------------
 */

LhTable *
lh_describe_link_use(const LhSetup *setup, const LhSimResult *r)
{
    LhTable *table = lh_table_new();

    lh_table_column(table, "kind", "links", NULL, false);
    lh_table_column(table, "links", "number", "both ways", true);
    lh_table_column(table, "mean", "mean use", "%", true);
    lh_table_column(table, "most", "highest use", "%", true);
    lh_table_column(table, "busiest", "busiest", NULL, false);
    for (int tier = 0; tier < LH_TIERS; tier++) {
        const LhTierUse *use = &r->tier_use[tier];
        g_autofree char *name = NULL;

        if (use->links == 0)
            continue;
        if (use->busiest.used > 0)
            name = lh_network_link_name(&setup->network, use->busiest.link);
        lh_table_row(table);
        lh_table_cell(table, lh_topology_link_name(setup->topology, (LhTier)tier), NULL);
        lh_cell_count(table, use->links);
        lh_cell_percent(table, use->used_sum / use->links);
        lh_cell_percent(table, use->busiest.used);
        lh_table_cell(table, name != NULL ? name : "none", NULL);
    }
    return table;
}

LhTable *
lh_describe_busy_links(const LhSetup *setup, const LhSimResult *r)
{
    LhTable *table = lh_table_new();

    lh_table_column(table, "link", "link", NULL, false);
    lh_table_column(table, "used", "used", "%", true);
    for (uint32_t i = 0; i < r->busy_links_count; i++) {
        g_autofree char *name = lh_network_link_name(&setup->network, r->busy_links[i].link);

        lh_table_row(table);
        lh_table_cell(table, name, NULL);
        lh_cell_percent(table, r->busy_links[i].used);
    }
    return table;
}
