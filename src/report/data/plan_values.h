/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Values of a plan's configurations for programs: columns of CSV and members of JSON.
 */
#pragma once

#include "planner/plan.h"
#include "report/data/result_values.h"

/* Prices of one cluster. 0: not given. */
typedef struct {
    double per_gpu_hour; /* currency units */
    double watts;        /* of a GPU with its share of the host and network */
} LhPlanPrice;

/* Prices of all clusters. */
typedef struct {
    double tokens;             /* of the whole training; 0: not given */
    const LhPlanPrice *prices; /* by cluster */
} LhPlanWeights;

/* Cost of a configuration at these prices; 0: not requested. */
typedef struct {
    double days;                    /* whole training */
    double gpu_hours;               /* whole training */
    double cost;                    /* whole training */
    double cost_per_billion_tokens; /* from the price of a GPU */
    double kwh_per_billion_tokens;
} LhPlanBill;

/* The cluster with this index in the query. */
const LhPlanCluster *lh_plan_cluster_at(const LhPlanAnswer *answer, guint index);

LhPlanBill lh_plan_bill(const LhPlanWeights *weights, const LhPlanAnswer *answer, guint cluster,
                        const LhPlanWay *way);

/* A configuration of a cluster: strings are owned. */
typedef struct {
    char *cluster;
    uint64_t gpus;
    int decided;
    uint64_t place;
    uint64_t tensor_model_parallel_size;
    uint64_t context_parallel_size;
    uint64_t data_parallel_size;
    uint64_t pipeline_model_parallel_size;
    uint64_t virtual_pipeline_model_parallel_size;
    int pipeline_schedule;
    uint64_t micro_batch_size;
    uint64_t num_micro_batches;
    char *schedule;
    int checkpoint;
    int shard;
    char *loss, *tiled_mlp, *recompute_modules, *recompute_method;
    uint64_t recompute_num_layers;
    char *cpu_offloading_num_layers, *exp_avg_dtype, *main_params_dtype, *main_grads_dtype;
    char *remedies;
    char *framework;
    double iteration_s;
    double time_error;
    LhTimeBarValues time_bar;
    int told_apart_from_best;
    double tokens_per_s;
    double mfu;
    uint64_t peak_bytes;
    LhPeakBarValues peak_bar;
    uint64_t usable_bytes;
    double days;
    double gpu_hours;
    double cost;
    double cost_per_billion_tokens;
    double kwh_per_billion_tokens;
    char *model_notes;
    char *link_notes;
} LhPlanWayValues;

extern const LhField lh_plan_way_fields[];

/* @place is 1 for the fastest; 0: not among the requested fastest ones. Caller clears. */
LhPlanWayValues lh_plan_way_values(const LhPlanAnswer *answer, const LhPlanWeights *weights,
                                   guint cluster, const LhPlanWay *way, guint place);
void lh_plan_way_values_clear(LhPlanWayValues *values);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(LhPlanWayValues, lh_plan_way_values_clear)

/* Table of all configurations, one row each, for LH_FORMAT_CSV. Caller frees. */
LhTable *lh_plan_table(const LhPlanAnswer *answer, const LhPlanWeights *weights);

/* Configurations of a cluster that no other one beats in both time and memory, fastest first: of
 * LhPlanWay; caller unrefs. */
GArray *lh_plan_front(const LhPlanCluster *cluster);
