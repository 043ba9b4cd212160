/* SPDX-License-Identifier: Apache-2.0 */
#include "report/data/plan_values.h"

#include "base/json/json_decode.h"
#include "compare/error_bar.h"
#include "planner/pareto_front.h"
#include "report/base/field_cells.h"
#include "report/data/notes.h"
#include "step/pipeline/pipeline.h"

#include <math.h>

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
    const double hours = BILLION / way->tokens_per_s / SECONDS_PER_HOUR; /* for a billion tokens */
    const double billions = weights->tokens / BILLION;

    return (LhPlanBill){
        .days = billions * hours / HOURS_PER_DAY,
        .gpu_hours = billions * hours * gpus,
        .cost = billions * hours * gpus * price->per_gpu_hour,
        .cost_per_billion_tokens = hours * gpus * price->per_gpu_hour,
        .kwh_per_billion_tokens = hours * gpus * price->watts / WATTS_PER_KILOWATT,
    };
}

/* ---- a configuration ---- */

static const char *const decided_names[] = { "no", "yes", NULL };
static const char *const told_apart_names[] = { "no", "yes", NULL };

#define WAY(kind, member, key, when, ...)                                                          \
    LH_FIELD_ROW(kind, LhPlanWayValues, member, key, when, __VA_ARGS__)

const LhField lh_plan_way_fields[] = {
    WAY(STRING, cluster, "cluster", ALWAYS, .description = "Topology and nodes."),
    WAY(UINT, gpus, "gpus", ALWAYS, .description = "GPUs of the cluster."),
    WAY(CHOICE, decided, "decided", ALWAYS, .choices = decided_names,
        .description =
            "no: the plan was interrupted before all configurations of the cluster were decided."),
    WAY(UINT, place, "place", OR_NULL,
        .description =
            "Place, 1 for the fastest; null: on the Pareto front, but not among the fastest."),
    WAY(UINT, tensor_model_parallel_size, "tensor_model_parallel_size", ALWAYS,
        .description = "Tensor-parallel ranks."),
    WAY(UINT, context_parallel_size, "context_parallel_size", ALWAYS,
        .description = "Context-parallel ranks."),
    WAY(UINT, data_parallel_size, "data_parallel_size", ALWAYS,
        .description = "Data-parallel ranks."),
    WAY(UINT, pipeline_model_parallel_size, "pipeline_model_parallel_size", ALWAYS,
        .description = "Pipeline stages; 1: no pipeline."),
    WAY(UINT, virtual_pipeline_model_parallel_size, "virtual_pipeline_model_parallel_size", ALWAYS,
        .description = "Chunks of layers per stage; 1: not interleaved."),
    WAY(CHOICE, pipeline_schedule, "pipeline_schedule", ALWAYS, .choices = lh_pipeline_order_names,
        .description = "Order of micro-batches in the pipeline."),
    WAY(UINT, micro_batch_size, "micro_batch_size", ALWAYS,
        .description = "Sequences per micro-batch."),
    WAY(UINT, num_micro_batches, "num_micro_batches", ALWAYS,
        .description = "Micro-batches of a data-parallel rank."),
    WAY(STRING, schedule, "schedule", ALWAYS,
        .description =
            "Attention schedule with its arrangement of ranks; empty without context parallelism."),
    WAY(CHOICE, checkpoint, "checkpoint", ALWAYS, .choices = lh_checkpoint_names,
        .description = "Recomputation."),
    WAY(CHOICE, shard, "shard", ALWAYS, .choices = lh_shard_names,
        .description = "Sharding of weights, gradients and optimizer states."),
    WAY(STRING, loss, "loss", OR_NULL,
        .description = "Value of --loss that the search turned on since the step does not fit "
                       "without; null: as it is without. So are the next eight."),
    WAY(STRING, tiled_mlp, "tiled_mlp", OR_NULL, .description = "Likewise."),
    WAY(STRING, recompute_modules, "recompute_modules", OR_NULL, .description = "Likewise."),
    WAY(STRING, recompute_method, "recompute_method", OR_NULL, .description = "Likewise."),
    WAY(UINT, recompute_num_layers, "recompute_num_layers", OR_NULL, .min = 1, .max = -1,
        .description = "Likewise."),
    WAY(STRING, cpu_offloading_num_layers, "cpu_offloading_num_layers", OR_NULL,
        .description = "Likewise."),
    WAY(STRING, exp_avg_dtype, "exp_avg_dtype", OR_NULL, .description = "Likewise."),
    WAY(STRING, main_params_dtype, "main_params_dtype", OR_NULL, .description = "Likewise."),
    WAY(STRING, main_grads_dtype, "main_grads_dtype", OR_NULL, .description = "Likewise."),
    WAY(STRING, remedies, "remedies", OR_NULL,
        .description = "These options in the framework's words; null: none."),
    WAY(STRING, framework, "framework", OR_NULL, .description = "Training framework of the step."),
    WAY(DOUBLE, iteration_s, "iteration_s", ALWAYS, .max = -1, .description = "Time of a step."),
    WAY(DOUBLE, time_error, "time_error", OR_NULL, .max = -1,
        .description = "Relative error e of this time: four of five measured times are between "
                       "time / (1 + e) and time x (1 + e)."),
    LH_TIME_BAR_ROWS(LhPlanWayValues, time_bar),
    WAY(CHOICE, told_apart_from_best, "told_apart_from_best", OR_NULL, .choices = told_apart_names,
        .description = "Whether it differs from the fastest of its cluster by more than their "
                       "error bar (else they are tied); null for the fastest."),
    WAY(DOUBLE, tokens_per_s, "tokens_per_s", ALWAYS, .max = -1,
        .description = "Tokens per second of the whole cluster."),
    WAY(DOUBLE, mfu, "mfu", ALWAYS, .max = -1,
        .description = "Model flops over the peak of all GPUs."),
    WAY(UINT, peak_bytes, "peak_bytes", ALWAYS, .description = "Highest peak memory of a rank."),
    LH_PEAK_BAR_ROWS(LhPlanWayValues, peak_bar),
    WAY(UINT, usable_bytes, "usable_bytes", OR_NULL, .description = "Memory available to a rank."),
    WAY(DOUBLE, days, "days", OR_NULL, .max = -1,
        .description = "Days for the tokens of --days-for."),
    WAY(DOUBLE, gpu_hours, "gpu_hours", OR_NULL, .max = -1, .description = "Likewise."),
    WAY(DOUBLE, cost, "cost", OR_NULL, .max = -1,
        .description = "Cost for these tokens, by --cost-per-gpu-hour."),
    WAY(DOUBLE, cost_per_billion_tokens, "cost_per_billion_tokens", OR_NULL, .max = -1,
        .description = "Cost of a billion tokens, by --cost-per-gpu-hour."),
    WAY(DOUBLE, kwh_per_billion_tokens, "kwh_per_billion_tokens", OR_NULL, .max = -1,
        .description = "Energy for a billion tokens, by --watts."),
    WAY(STRING, model_notes, "model_notes", OR_NULL,
        .description = "Notes on how the model's file was read, as one text; null without any."),
    WAY(STRING, link_notes, "link_notes", OR_NULL,
        .description =
            "Contradictions of measured collectives with links or each other, and links for which "
            "a profile found other values than the topology file, as one text; null without any."),
    { .name = NULL },
};

/* NAN if it is 0. */
static double
asked_value(double value)
{
    return value > 0 ? value : NAN;
}

static void
fill_sizes(LhPlanWayValues *v, const LhPlanSpace *space, guint point)
{
    const LhPlanPoint *p = lh_plan_point(space, point);
    const LhPlanShape *shape = lh_plan_shape(space, p);

    v->tensor_model_parallel_size = shape->sizes.tensor;
    v->context_parallel_size = shape->sizes.context;
    v->data_parallel_size = shape->sizes.data;
    v->pipeline_model_parallel_size = shape->sizes.pipeline;
    v->virtual_pipeline_model_parallel_size = p->chunks;
    v->pipeline_schedule = (int)p->order;
    v->micro_batch_size = shape->micro_batch_size;
    v->num_micro_batches = shape->micro_batches;
    v->schedule = lh_plan_point_schedule(space, point);
    v->checkpoint = (int)lh_plan_point_checkpoint(p);
    v->shard = (int)p->shard;
    v->framework = shape->setup != NULL ? g_strdup(shape->setup->framework->name) : NULL;
}

static void
fill_remedies(LhPlanWayValues *v, const LhPlanSpace *space, guint point)
{
    const LhPlanPoint *p = lh_plan_point(space, point);
    const LhPlanShape *shape = lh_plan_shape(space, p);
    const LhRemedies *r = &p->remedies;

    v->loss = lh_remedies_value(r, LH_REMEDY_LOSS);
    v->tiled_mlp = lh_remedies_value(r, LH_REMEDY_TILED_MLP);
    v->recompute_modules = lh_remedies_value(r, LH_REMEDY_MODULES);
    v->recompute_method = lh_remedies_value(r, LH_REMEDY_METHOD);
    v->recompute_num_layers = r->layers > 0 ? r->layers : LH_FIELD_NO_UINT;
    v->cpu_offloading_num_layers = lh_remedies_value(r, LH_REMEDY_OFFLOAD);
    v->exp_avg_dtype = lh_remedies_value(r, LH_REMEDY_MOMENTS);
    v->main_params_dtype = lh_remedies_value(r, LH_REMEDY_PARAMS);
    v->main_grads_dtype = lh_remedies_value(r, LH_REMEDY_GRADS);
    v->remedies = lh_remedies_any(r) && shape->setup != NULL
                      ? lh_remedies_words(r, shape->setup->framework)
                      : NULL;
}

static void
fill_bill(LhPlanWayValues *v, const LhPlanBill *bill)
{
    v->days = asked_value(bill->days);
    v->gpu_hours = asked_value(bill->gpu_hours);
    v->cost = asked_value(bill->cost);
    v->cost_per_billion_tokens = asked_value(bill->cost_per_billion_tokens);
    v->kwh_per_billion_tokens = asked_value(bill->kwh_per_billion_tokens);
}

static void
fill_answer(LhPlanWayValues *v, const LhPlanSpace *space, const LhPlanWay *way)
{
    v->iteration_s = way->iteration_s;
    v->time_error = asked_value(way->time_error.above);
    v->time_bar = lh_time_bar_values(way->iteration_s, way->time_error);
    v->tokens_per_s = way->tokens_per_s;
    v->mfu = way->mfu;
    v->peak_bytes = way->peak_bytes;
    v->peak_bar = lh_peak_bar_values(way->peak_bytes, lh_memory_error(space->setup));
    v->usable_bytes = way->limit_bytes > 0 ? way->limit_bytes : LH_FIELD_NO_UINT;
}

LhPlanWayValues
lh_plan_way_values(const LhPlanAnswer *answer, const LhPlanWeights *weights, guint cluster,
                   const LhPlanWay *way, guint place)
{
    const LhPlanCluster *of = lh_plan_cluster_at(answer, cluster);
    const LhPlanBill bill = lh_plan_bill(weights, answer, cluster, way);
    LhPlanWayValues v = {
        .cluster = g_strdup(of->space->cluster),
        .gpus = of->space->gpus,
        .decided = of->interrupted ? 0 : 1,
        .place = place > 0 ? place : LH_FIELD_NO_UINT,
        .told_apart_from_best = place == 1  ? -1
                                : way->tied ? 0
                                            : 1,
        .model_notes = lh_notes_text(of->space->setup->model),
        .link_notes = lh_link_notes_text(of->space->setup),
    };

    fill_sizes(&v, of->space, way->point);
    fill_remedies(&v, of->space, way->point);
    fill_answer(&v, of->space, way);
    fill_bill(&v, &bill);
    return v;
}

void
lh_plan_way_values_clear(LhPlanWayValues *values)
{
    lh_json_clear(lh_plan_way_fields, values);
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
add_row(LhTable *table, const LhPlanAnswer *answer, const LhPlanWeights *weights, guint cluster,
        guint index)
{
    const LhPlanCluster *of = lh_plan_cluster_at(answer, cluster);
    g_auto(LhPlanWayValues) values =
        lh_plan_way_values(answer, weights, cluster, g_ptr_array_index(of->ways, index), index + 1);

    lh_table_row(table);
    lh_field_cells(lh_plan_way_fields, &values, table);
}

/* Row of a cluster without any configuration: the values of the cluster; the other cells are empty.
 */
static void
add_undecided(LhTable *table, const LhPlanCluster *cluster)
{
    lh_table_row(table);
    lh_table_cell(table, cluster->space->cluster, NULL);
    lh_table_cell_printf(table, "%u", cluster->space->gpus);
    lh_table_cell(table, decided_names[0], NULL);
}

LhTable *
lh_plan_table(const LhPlanAnswer *answer, const LhPlanWeights *weights)
{
    LhTable *table = lh_table_new();
    bool any = lh_plan_cluster_at(answer, 0)->space->points->len > 0;

    for (guint c = 0; c < answer->clusters->len; c++) {
        const LhPlanCluster *cluster = lh_plan_cluster_at(answer, c);

        any = any || cluster->ways->len > 0;
    }
    if (any)
        lh_field_columns(lh_plan_way_fields, NULL, table);
    for (guint c = 0; c < answer->clusters->len; c++) {
        const LhPlanCluster *cluster = lh_plan_cluster_at(answer, c);

        if (cluster->ways->len == 0 && cluster->interrupted && cluster->space->points->len > 0)
            add_undecided(table, cluster);
        for (guint i = 0; i < cluster->ways->len; i++)
            add_row(table, answer, weights, c, i);
    }
    return table;
}
