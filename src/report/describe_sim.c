/*
 * One simulated run for people. Every time is a mean over ranks unless its heading says otherwise;
 * rounded parts add up to the rounded whole.
 */
#include "report/describe_sim.h"

#include "report/cells.h"
#include "report/parts.h"
#include "report/text.h"

#include <math.h>

#define BYTES_PER_MIB 1048576.0

LhTable *
lh_describe_parts(const LhSimResult *r)
{
    LhTable *table = lh_table_new();
    const LhTimeScale scale = lh_text_scale(r->makespan_ps);
    LhTotals totals;
    LhTime parts[LH_PARTS];
    int64_t quanta[LH_PARTS];
    int64_t whole;
    char text[LH_TEXT_SIZE];
    char exact[LH_TEXT_SIZE];

    lh_totals(r, &totals);
    lh_parts(&totals, parts);
    lh_text_round_parts(scale, parts, LH_PARTS, r->ranks_count, quanta, &whole);
    lh_table_column(table, "part", "where the time goes", NULL, false);
    lh_table_column(table, "sum_s", "mean", scale.unit, true);
    lh_table_column(table, "fraction", "share", "%", true);
    for (int part = 0; part <= LH_PARTS; part++) {
        const LhTime time_ps =
            part < LH_PARTS ? parts[part] : r->makespan_ps * (LhTime)r->ranks_count;

        if (part > 0 && part < LH_PARTS && time_ps == 0)
            continue;
        lh_table_row(table);
        lh_table_cell_printf(table, "%s%s",
                             part < LH_PARTS && lh_part_is_exposed(part) ? "exposed " : "",
                             part < LH_PARTS ? lh_part_name(part) : "makespan");
        lh_table_cell(table, lh_text_scaled(scale, part < LH_PARTS ? quanta[part] : whole, text),
                      lh_text_seconds(time_ps, exact));
        lh_cell_percent(table, r->makespan_ps == 0 ? 0
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
    { "of that, exposed", "ms", 1e9, value_exposed },
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
    lh_table_row(table);
    lh_table_cell(table, name, NULL);
    lh_cell_count(table, bytes);
    lh_cell_mib(table, (double)bytes / ranks);
}

/* What the program says that all ranks send; false if it says nothing. */
static bool
claimed_bytes(const LhProgram *program, uint64_t *bytes)
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
    uint64_t claimed;
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
    title = g_strdup_printf("memory of rank %u at its peak", totals.peak_rank);
    lh_table_column(table, "tensor", title, NULL, false);
    lh_table_column(table, "bytes", "MiB", NULL, true);
    for (int kind = 0; kind < LH_TENSOR_KINDS; kind++) {
        if (rank->peak_by_tensor[kind] == 0)
            continue;
        lh_table_row(table);
        lh_table_cell(table, lh_tensor_names[kind], NULL);
        lh_cell_mib(table, (double)rank->peak_by_tensor[kind]);
    }
    lh_table_row(table);
    lh_table_cell(table, "in all", NULL);
    lh_cell_mib(table, (double)rank->peak_bytes);
    return table;
}
