/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The simulated case, as fields for programs: "case" of a result, and the first columns of its CSV.
 */
#pragma once

#include "base/json/field.h"
#include "base/wide.h"
#include "scenario/setup.h"

/* Properties of links that a scenario may change; none where the topology has no such link. */
typedef struct {
    uint64_t nics; /* of a node */
    double nic_bytes_per_s, nvlink_bytes_per_s;
    double oversubscription;
} LhLinkValues;

LhLinkValues lh_link_values(const LhTopology *topology);

/* The rows of `member`, an LhLinkValues of the struct `of`. */
#define LH_LINK_ROWS(of, member)                                                                   \
    LH_FIELD_ROW(UINT, of, member.nics, "nics", ALWAYS,                                            \
                 .description = "NICs of a node; 0: none."),                                       \
        LH_FIELD_ROW(                                                                              \
            DOUBLE, of, member.nic_bytes_per_s, "nic_bytes_per_s", OR_NULL, .max = -1,             \
            .description =                                                                         \
                "Bandwidth of transfers over one NIC in each direction; null without NICs."),      \
        LH_FIELD_ROW(                                                                              \
            DOUBLE, of, member.nvlink_bytes_per_s, "nvlink_bytes_per_s", OR_NULL, .max = -1,       \
            .description = "Bandwidth of transfers over the links of a GPU in its node in each "   \
                           "direction (NVLink, or shared memory); null without such links."),      \
        LH_FIELD_ROW(DOUBLE, of, member.oversubscription, "oversubscription", OR_NULL, .max = -1,  \
                     .description = "Oversubscription: bandwidth below a leaf switch over "        \
                                    "bandwidth above it; null unless the fabric is a fat tree.")

/* Cluster, model, shape, mask, pass, and time models. Names are owned; a field has a value for
 * "none" (base/json/field.h). */
typedef struct {
    char *cluster;
    uint64_t nodes;
    char *device;
    LhLinkValues links;
    char *model;
    uint64_t ranks;
    uint64_t data_parallel_size;
    uint64_t seq_length;
    uint64_t micro_batch_size;
    uint64_t num_attention_heads;
    uint64_t num_query_groups;
    uint64_t kv_channels;
    LhWide hidden_size;
    int dtype;
    int attention;
    double linear_decay;
    int mask;
    uint64_t window_size;
    uint64_t documents;
    int pass;
    char *framework;
    uint64_t tensor_model_parallel_size;
    uint64_t context_parallel_size;
    uint64_t pipeline_model_parallel_size;
    uint64_t virtual_pipeline_model_parallel_size;
    int pipeline_schedule;
    uint64_t num_micro_batches;
    int shard;
    int checkpoint;
    char *recompute_modules;
    int recompute_method;
    uint64_t recompute_num_layers;
    char *loss;
    uint64_t mlp_tile_rows;
    int main_params_dtype, main_grads_dtype, exp_avg_dtype;
    /* NULL, -1, NaN without Muon. */
    int optimizer, muon_tp_mode, muon_nesterov, muon_scale_mode, muon_coefficient_type;
    uint64_t muon_num_ns_steps;
    double muon_momentum, muon_extra_scale_factor;
    uint64_t packs;
    double micro_batch_imbalance, rank_imbalance;
    char *cpu_offloading_num_layers;   /* owned; NULL: none */
    double optimizer_offload_fraction; /* NAN: none; then the next two are -1, else 0 or 1 */
    int overlap_cpu_optimizer_d2h_h2d, offload_param;
    uint64_t lora_rank;
    char *lora_targets;
    int cost;
    int network;
    int collectives;
    double jitter;
    uint64_t seed;
    GArray *straggler;
    GArray *link_fault;
    char *profile;
    uint64_t memory_capacity_bytes;
    uint64_t model_weight_bytes;
    char *model_notes;
    char *link_notes;
} LhCaseValues;

extern const LhField lh_case_fields[];

/* The fields for a table: of those that a case need not have, the ones that @scenario gives; NULL:
 * none. Caller frees. */
LhField *lh_case_columns(const LhScenario *scenario);

/* Caller clears. */
LhCaseValues lh_case_values(const LhSetup *setup);
void lh_case_values_clear(LhCaseValues *values);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(LhCaseValues, lh_case_values_clear)
