/* SPDX-License-Identifier: Apache-2.0 */
#include "report/data/case_values.h"

#include "base/json/json_decode.h"
#include "report/data/notes.h"
#include "scenario/scenario_fields.h"
#include "scenario/setup_weights.h"
#include "step/behaviour.h"
#include "step/layer_info.h"
#include "step/lora.h"
#include "step/packs.h"
#include "step/pipeline/pipeline.h"

#include <math.h>

static const char *const mask_names[] = { "causal", "full", NULL };
static const char *const attention_names[] = { "softmax", "linear", NULL };

#define CASE(kind, member, key, when, ...)                                                         \
    LH_FIELD_ROW(kind, LhCaseValues, member, key, when, __VA_ARGS__)

static const char *const no_yes[] = { "no", "yes", NULL };

const LhField lh_case_fields[] = {
    CASE(STRING, cluster, "cluster", ALWAYS, .description = "Name of the topology."),
    CASE(UINT, nodes, "nodes", ALWAYS, .min = 1, .max = -1, .description = "Nodes of the cluster."),
    CASE(STRING, device, "device", ALWAYS, .description = "The GPU."),
    LH_LINK_ROWS(LhCaseValues, links),
    CASE(STRING, model, "model", OR_NULL,
         .description = "Model of the attention; null for a program from a file."),
    CASE(UINT, ranks, "ranks", ALWAYS, .min = 1, .max = -1,
         .description = "GPUs, over all data-parallel groups."),
    CASE(UINT, data_parallel_size, "data_parallel_size", ALWAYS, .min = 1, .max = -1,
         .description = "Data-parallel groups of ranks, each with its own batch."),
    CASE(UINT, seq_length, "seq_length", ALWAYS, .min = 1, .max = -1,
         .description = "Tokens of one sequence."),
    CASE(UINT, micro_batch_size, "micro_batch_size", ALWAYS, .min = 1, .max = -1,
         .description = "Sequences in a batch."),
    CASE(UINT, num_attention_heads, "num_attention_heads", ALWAYS, .min = 1, .max = -1,
         .description = "Query heads."),
    CASE(UINT, num_query_groups, "num_query_groups", ALWAYS, .min = 1, .max = -1,
         .description = "Key-value heads."),
    CASE(UINT, kv_channels, "kv_channels", ALWAYS, .min = 1, .max = -1,
         .description = "Dimension of a head."),
    CASE(WIDE, hidden_size, "hidden_size", ALWAYS,
         .description = "Width of the activations around the module."),
    CASE(CHOICE, dtype, "dtype", ALWAYS, .choices = lh_activation_names,
         .description = "Element type of q, k, v, o and their gradients."),
    CASE(CHOICE, attention, "attention", ALWAYS, .choices = attention_names,
         .description = "Kind of attention."),
    CASE(DOUBLE, linear_decay, "linear_decay", ALWAYS, .max = -1,
         .description = "Decay of linear attention per token; 1: none."),
    CASE(CHOICE, mask, "mask", ALWAYS, .choices = mask_names,
         .description =
             "Causal: a query attends to the keys up to its own token; else to all keys."),
    CASE(UINT, window_size, "window_size", ALWAYS,
         .description = "Length of the sliding window; 0: none."),
    CASE(UINT, documents, "documents", ALWAYS, .min = 1, .max = -1,
         .description = "Packed documents in a sequence, of the first pack if there are several."),
    CASE(CHOICE, pass, "pass", ALWAYS, .choices = lh_pass_names,
         .description = "Pass: forward, backward or both."),
    CASE(STRING, framework, "framework", OR_NULL,
         .description = "Training framework of the step; null for one attention module, as are the "
                        "next thirteen."),
    CASE(UINT, tensor_model_parallel_size, "tensor_model_parallel_size", OR_NULL, .min = 1,
         .max = -1, .description = "Tensor-parallel ranks of the step."),
    CASE(UINT, context_parallel_size, "context_parallel_size", OR_NULL, .min = 1, .max = -1,
         .description = "Context-parallel ranks of the step."),
    CASE(UINT, pipeline_model_parallel_size, "pipeline_model_parallel_size", OR_NULL, .min = 1,
         .max = -1, .description = "Pipeline stages of the step; 1: none."),
    CASE(UINT, virtual_pipeline_model_parallel_size, "virtual_pipeline_model_parallel_size",
         OR_NULL, .min = 1, .max = -1, .description = "Chunks of layers per pipeline stage."),
    CASE(CHOICE, pipeline_schedule, "pipeline_schedule", OR_NULL,
         .choices = lh_pipeline_order_names,
         .description =
             "Order of micro-batches in the pipeline; 1f1b with several chunks is interleaved."),
    CASE(UINT, num_micro_batches, "num_micro_batches", OR_NULL, .min = 1, .max = -1,
         .description = "Micro-batches of a data-parallel rank."),
    CASE(CHOICE, shard, "shard", OR_NULL, .choices = lh_shard_names,
         .description =
             "Sharding among data- and context-parallel ranks: ddp, zero1, zero2, fsdp."),
    CASE(CHOICE, checkpoint, "checkpoint", OR_NULL, .choices = lh_checkpoint_names,
         .description = "Recomputation: none, selective, layer, remat."),
    CASE(STRING, recompute_modules, "recompute_modules", IF_ANY,
         .description = "Modules of a layer that selective recomputes, if they are given."),
    CASE(CHOICE, recompute_method, "recompute_method", IF_ANY, .choices = lh_recompute_method_names,
         .description = "How the layers to recompute are chosen, if not all are, one by one."),
    CASE(UINT, recompute_num_layers, "recompute_num_layers", IF_ANY, .min = 1, .max = -1,
         .description = "The number of layers that this method takes."),
    CASE(STRING, loss, "loss", OR_NULL, .max = -1,
         .description = "How the loss is computed: eager, fused; or in chunks with the head: "
                        "chunked, tiled, fused-linear, with \":ROWS\" if these are given."),
    CASE(UINT, mlp_tile_rows, "mlp_tile_rows", OR_NULL, .max = -1,
         .description = "Rows of a tile of the MLP, at most; 0: it is not tiled."),
    CASE(CHOICE, main_params_dtype, "main_params_dtype", OR_NULL, .choices = lh_main_params_names,
         .description = "Copy of 16-bit weights that the optimizer updates: fp32, none."),
    CASE(CHOICE, main_grads_dtype, "main_grads_dtype", OR_NULL, .choices = lh_activation_names,
         .description = "Element type in which gradients are reduced."),
    CASE(CHOICE, exp_avg_dtype, "exp_avg_dtype", OR_NULL, .choices = lh_exp_avg_names,
         .description = "Element type of both of Adam's moments."),
    CASE(CHOICE, optimizer, "optimizer", IF_ANY, .choices = lh_optimizer_names,
         .description = "Optimizer of the matrices of layers, if it is not AdamW."),
    CASE(UINT, muon_num_ns_steps, "muon_num_ns_steps", IF_ANY, .min = 1, .max = -1,
         .description = "Newton-Schulz steps of Muon."),
    CASE(CHOICE, muon_tp_mode, "muon_tp_mode", IF_ANY, .choices = lh_muon_tp_mode_names,
         .description = "How Muon orthogonalises matrices that tensor-parallel ranks share."),
    CASE(DOUBLE, muon_momentum, "muon_momentum", IF_ANY, .max = 1,
         .description = "Decay rate of Muon's momentum."),
    CASE(CHOICE, muon_nesterov, "muon_nesterov", IF_ANY, .choices = no_yes,
         .description = "Whether Muon's update mixes momentum and gradient."),
    CASE(CHOICE, muon_scale_mode, "muon_scale_mode", IF_ANY, .choices = lh_muon_scale_mode_names,
         .description = "Factor of Muon's updates, by the shape of the matrix."),
    CASE(DOUBLE, muon_extra_scale_factor, "muon_extra_scale_factor", IF_ANY, .max = -1,
         .description = "Further factor of Muon's updates."),
    CASE(CHOICE, muon_coefficient_type, "muon_coefficient_type", IF_ANY,
         .choices = lh_muon_coefficient_names,
         .description = "Coefficients of Muon's Newton-Schulz steps."),
    CASE(UINT, packs, "packs", OR_NULL, .min = 1, .max = -1,
         .description = "Packs of documents of the step: one for each micro-batch of each "
                        "data-parallel rank, or one for all; null for one attention module."),
    CASE(DOUBLE, micro_batch_imbalance, "micro_batch_imbalance", OR_NULL, .min = 1, .max = -1,
         .description = "Most query-key pairs of a micro-batch over the mean, by its documents; "
                        "null for one attention module."),
    CASE(DOUBLE, rank_imbalance, "rank_imbalance", OR_NULL, .min = 1, .max = -1,
         .description = "The same of a data-parallel rank, over all its micro-batches."),
    CASE(STRING, cpu_offloading_num_layers, "cpu_offloading_num_layers", IF_ANY,
         .description = "Layers of each chunk whose activations are offloaded to the host."),
    CASE(DOUBLE, optimizer_offload_fraction, "optimizer_offload_fraction", IF_ANY, .max = 1,
         .description = "Share of the parameters whose optimizer states are in host memory."),
    CASE(CHOICE, overlap_cpu_optimizer_d2h_h2d, "overlap_cpu_optimizer_d2h_h2d", IF_ANY,
         .choices = no_yes,
         .description = "Whether their gradients and weights are copied one by one."),
    CASE(CHOICE, offload_param, "offload_param", IF_ANY, .choices = no_yes,
         .description = "Whether the weights are in host memory, too."),
    CASE(UINT, lora_rank, "lora_rank", OR_NULL, .max = -1,
         .description = "Rank of LoRA's adapters; 0: all weights are trained."),
    CASE(STRING, lora_targets, "lora_targets", OR_NULL, .max = -1,
         .description = "Matrices that have an adapter, by Megatron's names; null: none."),
    CASE(CHOICE, cost, "cost", ALWAYS, .choices = lh_cost_mode_names,
         .description = "Time model of kernels."),
    CASE(CHOICE, network, "network", ALWAYS, .choices = lh_network_model_names,
         .description = "Sharing of links by transfers."),
    CASE(CHOICE, collectives, "collectives", ALWAYS, .choices = lh_collective_model_names,
         .description =
             "Time model of collectives; auto: rings, as fluids for more than 64 ranks."),
    CASE(DOUBLE, jitter, "jitter", ALWAYS, .max = -1,
         .description = "Random variation of compute times, as a fraction."),
    CASE(UINT, seed, "seed", ALWAYS, .description = "Seed of the jitter."),
    CASE(ARRAY, straggler, "straggler", ALWAYS, .fields = lh_straggler_fields,
         .element_size = sizeof(LhStraggler),
         .description = "Slow ranks. In CSV RANK:FACTOR, joined by semicolons."),
    CASE(ARRAY, link_fault, "link_fault", ALWAYS, .fields = lh_link_fault_fields,
         .element_size = sizeof(LhLinkFault), .element_init = lh_link_fault_init,
         .description = "Slow links. In CSV TIER:NODE:FACTOR[:PART], joined by semicolons."),
    CASE(STRING, profile, "profile", OR_NULL,
         .description = "File of measured constants; null: none."),
    CASE(UINT, memory_capacity_bytes, "memory_capacity_bytes", ALWAYS,
         .description = "Memory of a GPU."),
    CASE(UINT, model_weight_bytes, "model_weight_bytes", OR_NULL,
         .description = "Bytes of the model's weights in the element type; null if unknown."),
    CASE(STRING, model_notes, "model_notes", OR_NULL,
         .description = "Notes on how the model's file was read, as one text; null without any."),
    CASE(STRING, link_notes, "link_notes", OR_NULL,
         .description =
             "Contradictions of measured collectives with links or each other, and links for which "
             "a profile found other values than the topology file, as one text; null without any."),
    { .name = NULL },
};

LhField *
lh_case_columns(const LhScenario *scenario)
{
    g_autoptr(GArray) columns = g_array_new(TRUE, TRUE, sizeof(LhField));

    for (const LhField *field = lh_case_fields; field->name != NULL; field++) {
        if ((field->flags & LH_FIELD_REQUIRED) != 0 ||
            (scenario != NULL && lh_scenario_has(scenario, field->name)))
            g_array_append_vals(columns, field, 1);
    }
    return (LhField *)(void *)g_array_free(g_steal_pointer(&columns), FALSE);
}

/* ---- links ---- */

/* NAN if it is 0. */
static double
rate_of(double value)
{
    return value > 0 ? value : NAN;
}

LhLinkValues
lh_link_values(const LhTopology *t)
{
    return (LhLinkValues){
        .nics = t->nics_per_node,
        .nic_bytes_per_s = rate_of(t->nics_per_node > 0 ? t->nic.bandwidth : 0),
        .nvlink_bytes_per_s = rate_of(t->scale_up == LH_SCALE_UP_NONE ? 0 : t->nvlink.bandwidth),
        .oversubscription = rate_of(t->fabric == LH_FABRIC_FAT_TREE ? t->oversubscription : 0),
    };
}

/* ---- the case ---- */

static void
fill_attention(LhCaseValues *v, const LhProgramParams *p)
{
    const LhAttention *a = &p->attention;

    v->seq_length = a->seq_length;
    v->micro_batch_size = a->batch;
    v->num_attention_heads = a->heads;
    v->num_query_groups = a->groups;
    v->kv_channels = a->head_dim;
    v->hidden_size = a->hidden_size != 0 ? a->hidden_size : (LhWide)a->heads * a->head_dim;
    v->dtype = (int)a->dtype;
    v->attention = a->linear ? 1 : 0;
    v->linear_decay = a->decay == 0 ? 1 : a->decay;
    v->mask = p->mask.causal ? 0 : 1;
    v->window_size = p->mask.window;
    v->documents = MAX(p->mask.documents_count, 1);
    v->pass = (int)p->pass - 1;
}

static void
fill_optimizer(LhCaseValues *v, const LhStepParams *p)
{
    static const int types[] = {
        [LH_DTYPE_BF16] = LH_EXP_AVG_BF16,
        [LH_DTYPE_FP16] = LH_EXP_AVG_FP16,
        [LH_DTYPE_FP32] = LH_EXP_AVG_FP32,
    };
    const LhDtype dtype = p != NULL ? p->module.attention.dtype : LH_DTYPE_FP32;
    const LhStepBehaviour *b = p != NULL ? &p->behaviour : NULL;

    v->main_params_dtype = v->main_grads_dtype = v->exp_avg_dtype = -1;
    if (b == NULL)
        return;
    if (dtype != LH_DTYPE_FP32)
        v->main_params_dtype = b->no_master ? LH_MAIN_PARAMS_NONE : LH_MAIN_PARAMS_FP32;
    v->main_grads_dtype = b->gradients_fp32 ? LH_DTYPE_FP32 : (int)dtype;
    v->exp_avg_dtype = b->moments == LH_MOMENTS_8BIT    ? LH_EXP_AVG_8BIT
                       : b->moments == LH_MOMENTS_16BIT ? types[dtype]
                                                        : LH_EXP_AVG_FP32;
}

static void
fill_muon(LhCaseValues *v, const LhMuonParams *muon)
{
    const bool is = muon != NULL && muon->optimizer == LH_OPTIMIZER_MUON;

    v->optimizer = is ? muon->optimizer : -1;
    v->muon_tp_mode = is ? muon->tp_mode : -1;
    v->muon_nesterov = is ? muon->nesterov : -1;
    v->muon_scale_mode = is ? muon->scale_mode : -1;
    v->muon_coefficient_type = is ? muon->coefficients : -1;
    v->muon_num_ns_steps = is ? muon->steps : LH_FIELD_NO_UINT;
    v->muon_momentum = is ? muon->momentum : (double)NAN;
    v->muon_extra_scale_factor = is ? muon->extra_scale : (double)NAN;
}

/* Parallelism and options of a training step; nothing for an attention module. */
static void
fill_step(LhCaseValues *v, const LhSetup *setup)
{
    const LhStepParams *p = setup->step != NULL ? &setup->step->params : NULL;
    bool offloads;

    v->framework = p != NULL && setup->framework != NULL ? g_strdup(setup->framework->name) : NULL;
    v->tensor_model_parallel_size = p != NULL ? p->tensor_parallel : LH_FIELD_NO_UINT;
    v->context_parallel_size = p != NULL ? p->module.ranks : LH_FIELD_NO_UINT;
    v->pipeline_model_parallel_size = p != NULL ? lh_step_stages(p) : LH_FIELD_NO_UINT;
    v->virtual_pipeline_model_parallel_size = p != NULL ? lh_step_chunks(p) : LH_FIELD_NO_UINT;
    v->pipeline_schedule = p != NULL && !p->forward_only ? (int)p->pipeline_order : -1;
    v->num_micro_batches = p != NULL ? p->micro_batches : LH_FIELD_NO_UINT;
    v->shard = p != NULL ? (int)p->shard : -1;
    v->checkpoint = p != NULL && !p->forward_only ? (int)p->checkpoint : -1;
    v->recompute_modules = p != NULL && p->recompute.modules != 0
                               ? lh_recompute_text(p->recompute.modules, ",")
                               : NULL;
    v->recompute_method = p != NULL && p->recompute.layers > 0 ? (int)p->recompute.method : -1;
    v->recompute_num_layers =
        p != NULL && p->recompute.layers > 0 ? p->recompute.layers : LH_FIELD_NO_UINT;
    fill_optimizer(v, p);
    fill_muon(v, p != NULL ? &p->muon : NULL);
    v->loss = p != NULL && !p->forward_only ? lh_step_loss_text(p) : NULL;
    v->mlp_tile_rows = p != NULL ? p->mlp_tile_rows : LH_FIELD_NO_UINT;
    v->packs = p == NULL ? LH_FIELD_NO_UINT : p->packs != NULL ? p->packs_count : 1;
    v->micro_batch_imbalance = v->rank_imbalance = p != NULL ? 1 : NAN;
    if (p != NULL && p->packs != NULL) {
        const LhStepPackImbalance imbalance = lh_step_pack_imbalance(p);

        v->micro_batch_imbalance = imbalance.micro_batches;
        v->rank_imbalance = imbalance.ranks;
    }
    if (p != NULL)
        v->cpu_offloading_num_layers = g_strdup(setup->scenario->cpu_offloading_num_layers);
    offloads = p != NULL && p->optimizer_offload > 0;
    v->optimizer_offload_fraction = offloads ? p->optimizer_offload : (double)NAN;
    v->overlap_cpu_optimizer_d2h_h2d = offloads ? p->overlap_optimizer_copies : -1;
    v->offload_param = offloads ? p->offload_param : -1;
    v->lora_rank = p != NULL ? p->lora_rank : LH_FIELD_NO_UINT;
    v->lora_targets = p != NULL && p->lora_rank > 0 ? lh_step_lora_text(p) : NULL;
}

/* For elements of @size bytes; NULL: none. */
static GArray *
hold_list(GArray *list, gsize size)
{
    return list != NULL ? g_array_ref(list) : g_array_new(FALSE, FALSE, (guint)size);
}

static void
fill_simulation(LhCaseValues *v, const LhSetup *setup)
{
    const LhScenario *s = setup->scenario;

    v->cost = (int)setup->cost;
    v->network = (int)setup->network_model;
    v->collectives = (int)setup->collectives;
    v->jitter = s->jitter;
    v->seed = s->seed;
    v->straggler = hold_list(s->straggler, sizeof(LhStraggler));
    v->link_fault = hold_list(s->link_fault, sizeof(LhLinkFault));
    v->profile = g_strdup(s->profile);
}

LhCaseValues
lh_case_values(const LhSetup *setup)
{
    const uint64_t weight_bytes = lh_setup_weight_bytes(setup);
    LhCaseValues v = {
        .cluster = g_strdup(setup->topology->name),
        .nodes = setup->network.nodes,
        .device = g_strdup(setup->device->name),
        .links = lh_link_values(setup->topology),
        .model = setup->model != NULL ? g_strdup(setup->model->name) : NULL,
        .ranks = setup->step != NULL ? lh_step_ranks(&setup->step->params)
                                     : lh_params_ranks(&setup->params),
        .data_parallel_size = MAX(setup->params.data_parallel_size, 1),
        .memory_capacity_bytes = setup->device->memory_capacity,
        .model_weight_bytes = weight_bytes > 0 ? weight_bytes : LH_FIELD_NO_UINT,
        .model_notes = lh_notes_text(setup->model),
        .link_notes = lh_link_notes_text(setup),
    };

    fill_attention(&v, &setup->params);
    fill_step(&v, setup);
    fill_simulation(&v, setup);
    return v;
}

void
lh_case_values_clear(LhCaseValues *values)
{
    lh_json_clear(lh_case_fields, values);
}
