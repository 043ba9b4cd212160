/* SPDX-License-Identifier: Apache-2.0 */
#include "report/text/plan_tables.h"

#include "compare/error_bar.h"
#include "report/base/text.h"
#include "report/text/describe_plan.h"
#include "report/text/number_cells.h"

/* ---- configurations ---- */

/* Optional columns. */
typedef struct {
    bool pipeline, batches, remedies, days, cost, power;
    bool bars;           /* times have error bars */
    double memory_error; /* 0: peaks have no error bar */
} MoreColumns;

/* Whether a configuration has remedies, among the fastest or on the Pareto front. */
static bool
has_remedies(const LhPlanCluster *cluster, bool front)
{
    const GArray *ran = cluster->search->ran;

    for (guint i = 0; i < (front ? ran->len : cluster->ways->len); i++) {
        if (lh_remedies_any(&lh_plan_point(cluster->space, g_array_index(ran, guint, i))->remedies))
            return true;
    }
    return false;
}

static MoreColumns
columns_of(const LhPlanWeights *weights, const LhPlanQuery *query, const LhPlanCluster *of,
           guint cluster)
{
    const LhPlanSpace *space = of->space;

    return (MoreColumns){ .pipeline = space->pipelines,
                          .batches = query->sequences > 1,
                          .remedies = has_remedies(of, query->front),
                          .days = weights->tokens > 0,
                          .cost = weights->prices[cluster].per_gpu_hour > 0,
                          .power = weights->prices[cluster].watts > 0,
                          .bars = space->setup->cost == LH_COST_DEVICE,
                          .memory_error = lh_memory_error(space->setup) };
}

static LhTable *
new_table(MoreColumns columns)
{
    LhTable *table = lh_table_new();
    char heading[LH_CELL_HEADING];

    lh_table_column(table, "time", "time", "s", true);
    if (columns.bars)
        lh_table_column(table, "error_bar", "error bar", NULL, true);
    lh_table_column(table, "vs_best", "vs best", NULL, true);
    lh_table_column(table, "tp", "tp", NULL, true);
    lh_table_column(table, "cp", "cp", NULL, true);
    lh_table_column(table, "dp", "dp", NULL, true);
    if (columns.pipeline)
        lh_table_column(table, "pp", "pp", NULL, false);
    if (columns.batches)
        lh_table_column(table, "micro_batches", "micro-batches", "number x size", true);
    lh_table_column(table, "attention", "attention", NULL, false);
    lh_table_column(table, "recomputed", "recomputed", NULL, false);
    lh_table_column(table, "shard", "shard", NULL, false);
    lh_table_column(table, "tokens_per_s", "tokens/s", NULL, true);
    lh_table_column(table, "mfu", "MFU", "%", true);
    lh_table_column(table, "peak", "memory",
                    lh_cell_peak_heading("GiB", columns.memory_error, heading), true);
    lh_table_column(table, "margin", "left", "GiB", true);
    if (columns.days)
        lh_table_column(table, "days", "days", NULL, true);
    if (columns.cost)
        lh_table_column(table, "cost", "cost of", "1e9 tokens", true);
    if (columns.power)
        lh_table_column(table, "kwh", "kWh of", "1e9 tokens", true);
    if (columns.remedies)
        lh_table_column(table, "remedies", "turned on", "framework's words", false);
    return table;
}

/* What is turned on, in the framework's words. */
static void
add_remedies_cell(LhTable *table, const LhPlanPoint *point, const LhPlanShape *shape)
{
    g_autofree char *words = lh_remedies_any(&point->remedies)
                                 ? lh_remedies_words(&point->remedies, shape->setup->framework)
                                 : g_strdup("-");

    lh_table_cell(table, words, NULL);
}

static void
add_bill_cells(LhTable *table, MoreColumns columns, const LhPlanBill *bill)
{
    if (columns.days)
        lh_table_cell_printf(table, "%.4g", bill->days);
    if (columns.cost)
        lh_table_cell_printf(table, "%.*f", LH_MONEY_DECIMALS, bill->cost_per_billion_tokens);
    if (columns.power)
        lh_table_cell_printf(table, "%.4g", bill->kwh_per_billion_tokens);
}

static void
add_way_row(LhTable *table, MoreColumns columns, const LhPlanSpace *space, const LhPlanWay *way,
            double best_s, const LhPlanBill *bill)
{
    const LhPlanPoint *p = lh_plan_point(space, way->point);
    const LhPlanShape *shape = lh_plan_shape(space, p);
    g_autofree char *schedule = lh_plan_point_schedule(space, way->point);
    g_autofree char *pipeline = lh_plan_point_pipeline(space, way->point);

    lh_table_row(table);
    lh_table_cell_printf(table, "%.4g", way->iteration_s);
    if (columns.bars)
        lh_cell_error_bar(table, way->iteration_s, way->time_error);
    lh_table_cell_printf(table, "%.2fx", way->iteration_s / best_s);
    lh_table_cell_printf(table, "%u", shape->sizes.tensor);
    lh_table_cell_printf(table, "%u", shape->sizes.context);
    lh_table_cell_printf(table, "%u", shape->sizes.data);
    if (columns.pipeline)
        lh_table_cell(table, pipeline, NULL);
    if (columns.batches)
        lh_table_cell_printf(table, "%u x %u", shape->micro_batches, shape->micro_batch_size);
    lh_table_cell(table, schedule, NULL);
    lh_table_cell(table, lh_checkpoint_names[lh_plan_point_checkpoint(p)], NULL);
    lh_table_cell(table, lh_shard_names[p->shard], NULL);
    lh_table_cell_printf(table, "%.0f", way->tokens_per_s);
    lh_cell_percent(table, way->mfu);
    lh_table_cell_printf(table, "%.1f", (double)way->peak_bytes / LH_GIB);
    if (way->limit_bytes > 0)
        lh_table_cell_printf(table, "%.1f",
                             ((double)way->limit_bytes - (double)way->peak_bytes) / LH_GIB);
    else
        lh_table_cell(table, "-", "");
    add_bill_cells(table, columns, bill);
    if (columns.remedies)
        add_remedies_cell(table, p, shape);
}

LhTable *
lh_describe_ways(const LhPlanQuery *query, const LhPlanAnswer *answer, const LhPlanWeights *weights,
                 guint index)
{
    const LhPlanCluster *cluster = lh_plan_cluster_at(answer, index);
    const LhPlanWay *best = lh_plan_best_way(cluster);
    const MoreColumns columns = columns_of(weights, query, cluster, index);
    LhTable *table = new_table(columns);

    for (guint i = 0; i < cluster->ways->len; i++) {
        const LhPlanWay *way = g_ptr_array_index(cluster->ways, i);
        const LhPlanBill bill = lh_plan_bill(weights, answer, index, way);

        add_way_row(table, columns, cluster->space, way, best->iteration_s, &bill);
    }
    return table;
}

LhTable *
lh_describe_front(const LhPlanQuery *query, const LhPlanAnswer *answer,
                  const LhPlanWeights *weights, guint index)
{
    const LhPlanCluster *cluster = lh_plan_cluster_at(answer, index);
    const LhPlanWay *best = lh_plan_best_way(cluster);
    const MoreColumns columns = columns_of(weights, query, cluster, index);
    g_autoptr(GArray) front = lh_plan_front(cluster);
    LhTable *table = new_table(columns);

    for (guint i = 0; i < front->len; i++) {
        const LhPlanWay *way = &g_array_index(front, LhPlanWay, i);
        const LhPlanBill bill = lh_plan_bill(weights, answer, index, way);

        add_way_row(table, columns, cluster->space, way, best->iteration_s, &bill);
    }
    return table;
}

/* ---- comparison of clusters ---- */

static void
add_cluster_row(LhTable *table, const LhPlanAnswer *answer, const LhPlanWeights *weights,
                guint index, double best_per_s)
{
    const LhPlanCluster *cluster = lh_plan_cluster_at(answer, index);
    const LhPlanWay *way = lh_plan_best_way(cluster);
    LhPlanBill bill;

    lh_table_row(table);
    lh_table_cell(table, cluster->space->cluster, NULL);
    lh_table_cell_printf(table, "%u", cluster->space->gpus);
    if (way == NULL) {
        lh_table_cell(table, "-", "");
        lh_table_note(table, cluster->interrupted ? "not decided" : "nothing fits or runs");
        return;
    }
    bill = lh_plan_bill(weights, answer, index, way);
    lh_table_cell_printf(table, "%.4g", way->iteration_s);
    lh_cell_error_bar(table, way->iteration_s, way->time_error);
    lh_table_cell_printf(table, "%.2fx", best_per_s / way->tokens_per_s);
    lh_table_cell_printf(table, "%.0f", way->tokens_per_s);
    lh_table_cell_printf(table, "%.1f", way->tokens_per_s / cluster->space->gpus);
    lh_cell_percent(table, way->mfu);
    lh_table_cell_printf(table, "%.1f", (double)way->peak_bytes / LH_GIB);
    if (weights->tokens > 0)
        lh_table_cell_printf(table, "%.4g", bill.days);
    if (weights->prices[0].per_gpu_hour > 0)
        lh_table_cell_printf(table, "%.*f", LH_MONEY_DECIMALS, bill.cost_per_billion_tokens);
    if (weights->prices[0].watts > 0)
        lh_table_cell_printf(table, "%.4g", bill.kwh_per_billion_tokens);
    if (cluster->interrupted)
        lh_table_note(table, "so far");
}

static LhTable *
new_clusters_table(const LhPlanWeights *weights)
{
    LhTable *table = lh_table_new();

    lh_table_column(table, "cluster", "cluster", NULL, false);
    lh_table_column(table, "gpus", "GPUs", NULL, true);
    lh_table_column(table, "time", "time", "s", true);
    lh_table_column(table, "error_bar", "error bar", NULL, true);
    lh_table_column(table, "vs_best", "vs best", NULL, true);
    lh_table_column(table, "tokens_per_s", "tokens/s", NULL, true);
    lh_table_column(table, "tokens_per_s_per_gpu", "tokens/s", "a GPU", true);
    lh_table_column(table, "mfu", "MFU", "%", true);
    lh_table_column(table, "peak", "memory", "GiB", true);
    if (weights->tokens > 0)
        lh_table_column(table, "days", "days", NULL, true);
    if (weights->prices[0].per_gpu_hour > 0)
        lh_table_column(table, "cost", "cost of", "1e9 tokens", true);
    if (weights->prices[0].watts > 0)
        lh_table_column(table, "kwh", "kWh of", "1e9 tokens", true);
    return table;
}

LhTable *
lh_describe_clusters(const LhPlanAnswer *answer, const LhPlanWeights *weights)
{
    LhTable *table = new_clusters_table(weights);
    const LhPlanWay *best = answer->best != G_MAXUINT
                                ? lh_plan_best_way(lh_plan_cluster_at(answer, answer->best))
                                : NULL;

    for (guint i = 0; i < answer->clusters->len; i++)
        add_cluster_row(table, answer, weights, i, best != NULL ? best->tokens_per_s : 0);
    return table;
}

/* ---- what has to be turned on ---- */

static void
add_fit_row(LhTable *table, const LhPlanCluster *cluster, const LhRemedies *adds,
            const LhLadderPeak *before, const LhLadderPeak *after, double lost_s)
{
    const LhPlanSpace *space = cluster->space;
    const LhSetup *setup = lh_plan_shape(space, lh_plan_point(space, cluster->fit->point))->setup;
    g_autofree char *options = adds == NULL ? g_strdup("nothing") : lh_remedies_options(adds);
    g_autofree char *words =
        adds == NULL ? g_strdup("-") : lh_remedies_words(adds, setup->framework);
    const int largest = lh_fit_largest(before);

    lh_table_row(table);
    lh_table_cell(table, space->cluster, NULL);
    lh_table_cell(table, options, NULL);
    lh_table_cell(table, words, NULL);
    lh_table_cell_printf(table, "%.1f", (double)before->bytes / LH_GIB);
    lh_table_cell_printf(table, "%s (%.1f)", lh_category_names[largest],
                         (double)before->by_category[largest] / LH_GIB);
    lh_table_cell_printf(table, "%.1f", (double)after->bytes / LH_GIB);
    lh_table_cell_printf(table, "%.4g", lost_s);
    lh_table_cell(table, after->fits ? "yes" : "no", NULL);
}

LhTable *
lh_describe_fits(const LhPlanAnswer *answer)
{
    LhTable *table = lh_table_new();
    guint fits = 0;

    lh_table_column(table, "cluster", "cluster", NULL, false);
    lh_table_column(table, "options", "turn on", NULL, false);
    lh_table_column(table, "words", "framework's words", NULL, false);
    lh_table_column(table, "before", "before", "GiB", true);
    lh_table_column(table, "largest", "largest there", "GiB", false);
    lh_table_column(table, "after", "after", "GiB", true);
    lh_table_column(table, "lost", "time lost", "s", true);
    lh_table_column(table, "fits", "fits", NULL, false);
    for (guint i = 0; i < answer->clusters->len; i++) {
        const LhPlanCluster *cluster = lh_plan_cluster_at(answer, i);
        const LhPlanFit *fit = cluster->fit;

        fits += fit != NULL;
        if (fit != NULL && fit->steps->len == 0)
            add_fit_row(table, cluster, NULL, &fit->peak, &fit->peak, 0);
        for (guint k = 0; fit != NULL && k < fit->steps->len; k++) {
            const LhFitStep *step = &g_array_index(fit->steps, LhFitStep, k);

            add_fit_row(table, cluster, &step->adds, &step->before, &step->after, step->lost_s);
        }
    }
    if (fits == 0)
        g_clear_pointer(&table, lh_table_free);
    return table;
}
