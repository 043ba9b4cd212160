/* SPDX-License-Identifier: Apache-2.0 */
#include "report/data/plan_values.h"

#include "compare/error_bar.h"
#include "planner/pareto_front.h"
#include "report/data/notes.h"
#include "report/data/result_values.h"
#include "step/pipeline.h"

#define SECONDS_PER_HOUR 3600.0
#define HOURS_PER_DAY 24.0
#define BILLION 1e9
#define WATTS_PER_KILOWATT 1e3

const LhPlanCluster *
lh_plan_cluster_at(const LhPlanAnswer *answer, guint index)
{
    return g_ptr_array_index(answer->clusters, index);
}

LhPlanBill
lh_plan_bill(const LhPlanWeights *weights, const LhPlanAnswer *answer, guint cluster,
             const LhPlanWay *way)
{
    const LhPlanPrice *price = &weights->prices[cluster];
    const double gpus = lh_plan_cluster_at(answer, cluster)->space->gpus;
    const double hours = BILLION / way->tokens_per_s / SECONDS_PER_HOUR; /* a billion tokens */
    const double billions = weights->tokens / BILLION;

    return (LhPlanBill){
        .days = billions * hours / HOURS_PER_DAY,
        .gpu_hours = billions * hours * gpus,
        .cost = billions * hours * gpus * price->per_gpu_hour,
        .cost_per_billion_tokens = hours * gpus * price->per_gpu_hour,
        .kwh_per_billion_tokens = hours * gpus * price->watts / WATTS_PER_KILOWATT,
    };
}

/* ---- fields ---- */

static void
add_asked(LhRecord *v, const char *key, double value)
{
    if (value > 0)
        lh_record_real(v, key, value);
    else
        lh_record_none(v, key);
}

static void
add_sizes(LhRecord *v, const LhPlanSpace *space, guint point)
{
    const LhPlanPoint *p = lh_plan_point(space, point);
    const LhPlanShape *shape = lh_plan_shape(space, p);
    g_autofree char *schedule = lh_plan_point_schedule(space, point);

    lh_record_integer(v, "tensor_model_parallel_size", shape->sizes.tensor);
    lh_record_integer(v, "context_parallel_size", shape->sizes.context);
    lh_record_integer(v, "data_parallel_size", shape->sizes.data);
    lh_record_integer(v, "pipeline_model_parallel_size", shape->sizes.pipeline);
    lh_record_integer(v, "virtual_pipeline_model_parallel_size", p->chunks);
    lh_record_text(v, "pipeline_schedule", lh_pipeline_order_names[p->order]);
    lh_record_integer(v, "micro_batch_size", shape->micro_batch_size);
    lh_record_integer(v, "num_micro_batches", shape->micro_batches);
    lh_record_text(v, "schedule", schedule);
    lh_record_text(v, "checkpoint", lh_checkpoint_names[p->checkpoint]);
    lh_record_text(v, "shard", lh_shard_names[p->shard]);
    lh_record_text(v, "framework", shape->setup != NULL ? shape->setup->framework->name : NULL);
}

static void
add_bill(LhRecord *v, const LhPlanBill *bill)
{
    add_asked(v, "days", bill->days);
    add_asked(v, "gpu_hours", bill->gpu_hours);
    add_asked(v, "cost", bill->cost);
    add_asked(v, "cost_per_billion_tokens", bill->cost_per_billion_tokens);
    add_asked(v, "kwh_per_billion_tokens", bill->kwh_per_billion_tokens);
}

LhRecord *
lh_plan_way_values(const LhPlanAnswer *answer, const LhPlanWeights *weights, guint cluster,
                   const LhPlanWay *way, guint place)
{
    const LhPlanSpace *space = lh_plan_cluster_at(answer, cluster)->space;
    const LhPlanBill bill = lh_plan_bill(weights, answer, cluster, way);
    g_autofree char *notes = lh_notes_text(space->setup->model);
    g_autofree char *of_links = lh_link_notes_text(space->setup);
    LhRecord *v = lh_record_new();

    lh_record_text(v, "cluster", space->cluster);
    lh_record_integer(v, "gpus", space->gpus);
    lh_record_text(v, "decided", lh_plan_cluster_at(answer, cluster)->interrupted ? "no" : "yes");
    if (place > 0)
        lh_record_integer(v, "place", place);
    else
        lh_record_none(v, "place");
    add_sizes(v, space, way->point);
    lh_record_real(v, "iteration_s", way->iteration_s);
    add_asked(v, "time_error", way->time_error.above);
    lh_add_time_bar(v, way->iteration_s, way->time_error);
    lh_record_text(v, "told_apart_from_best", place == 1 ? NULL : way->tied ? "no" : "yes");
    lh_record_real(v, "tokens_per_s", way->tokens_per_s);
    lh_record_real(v, "mfu", way->mfu);
    lh_record_integer(v, "peak_bytes", way->peak_bytes);
    lh_add_peak_bar(v, way->peak_bytes, lh_memory_error(space->setup));
    if (way->limit_bytes > 0)
        lh_record_integer(v, "usable_bytes", way->limit_bytes);
    else
        lh_record_none(v, "usable_bytes");
    add_bill(v, &bill);
    lh_record_text(v, "model_notes", notes);
    lh_record_text(v, "link_notes", of_links);
    return v;
}

GArray *
lh_plan_front(const LhPlanCluster *cluster)
{
    const LhPlanSearch *search = cluster->search;
    GArray *front = g_array_new(FALSE, FALSE, sizeof(LhPlanWay));

    for (guint i = 0; search != NULL && i < search->ran->len; i++) {
        const guint point = g_array_index(search->ran, guint, i);

        if (lh_plan_on_front(search, point)) {
            const LhPlanWay way = lh_plan_way(search, point);

            g_array_append_val(front, way);
        }
    }
    return front;
}

/* ---- CSV ---- */

static void
add_row(LhTable *table, bool *columns, LhRecord *values)
{
    if (!*columns)
        lh_record_columns(values, table);
    *columns = true;
    lh_table_row(table);
    lh_record_cells(values, table);
    lh_record_free(values);
}

#define VALUES_OF_CLUSTER 3 /* cluster, gpus, decided */

/* Of a cluster without any way what is the cluster's. Its space has points. Caller frees. */
static LhRecord *
values_without_way(const LhPlanAnswer *answer, const LhPlanWeights *weights, guint cluster)
{
    const LhPlanWay none = { .iteration_s = 1, .tokens_per_s = 1 };
    LhRecord *values = lh_plan_way_values(answer, weights, cluster, &none, 1);

    lh_record_blank(values, VALUES_OF_CLUSTER);
    return values;
}

/* Without any way there are columns all the same. */
static void
add_way_columns(LhTable *table, const LhPlanAnswer *answer, const LhPlanWeights *weights)
{
    g_autoptr(LhRecord) values = values_without_way(answer, weights, 0);

    lh_record_columns(values, table);
}

LhTable *
lh_plan_table(const LhPlanAnswer *answer, const LhPlanWeights *weights)
{
    LhTable *table = lh_table_new();
    bool columns = false;

    for (guint c = 0; c < answer->clusters->len; c++) {
        const LhPlanCluster *cluster = lh_plan_cluster_at(answer, c);
        const GPtrArray *ways = cluster->ways;

        if (ways->len == 0 && cluster->interrupted && cluster->space->points->len > 0)
            add_row(table, &columns, values_without_way(answer, weights, c));
        for (guint i = 0; i < ways->len; i++)
            add_row(table, &columns,
                    lh_plan_way_values(answer, weights, c, g_ptr_array_index(ways, i), i + 1));
    }
    if (!columns && lh_plan_cluster_at(answer, 0)->space->points->len > 0)
        add_way_columns(table, answer, weights);
    return table;
}
