/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tiny models and steps for tests.
 */
#pragma once

#include "base/rng.h"
#include "step/packs.h"
#include "step/step.h"

/* The parameters that tests vary. All zero except `schedule`: one rank, two layers, nothing sharded
 * or recomputed. */
typedef struct {
    const char *schedule; /* attention schedule */
    uint32_t tensor, context, data;
    uint32_t stages, chunks; /* of the pipeline; 0: one */
    bool embedding_counts, loss_counts;
    LhPipelineOrder order;
    uint32_t layers, micro_batches, batch;
    bool forward_only;
    LhShard shard;
    LhCheckpoint checkpoint;
    LhRecompute recompute;
    uint32_t offload; /* layers of a chunk */
    double optimizer_offload;
    bool overlap_copies, offload_param;
    LhDtype dtype;
    uint32_t heads;  /* 0: 8, or 16 on many ranks */
    uint32_t groups; /* key-value heads; 0: as many as heads */
    bool linear, gelu, layer_norm, tied, gate;
    /* Routed experts, 0: none; chosen per token, 0: 2; shared experts; and leading layers that have
     * a dense MLP instead. */
    uint32_t experts, choices, shared, dense;
    uint32_t window;     /* sliding window of every second layer; 0: none */
    uint64_t vocabulary; /* 0: 64 */
    uint64_t tokens;     /* per sequence on a context-parallel rank; 0: 16 */
    LhLoss loss;
    unsigned documents; /* 0: one; 1: a pack for all micro-batches; 2: each has its own */
    uint64_t chunk_rows, tile_rows; /* of the loss, and of the MLP; 0: the rule of the kind, none */
    uint32_t rank, targets;         /* of LoRA; 0: none, all */
    LhMuonParams muon;
    LhStepBehaviour behaviour;
} TinyStep;

/* The model of @tiny. Caller frees. */
static inline LhModel *
tiny_model(const TinyStep *tiny)
{
    const uint32_t usual = tiny->context > 4 || tiny->tensor > 4 ? 16 : 8;
    const uint32_t heads = tiny->heads != 0 ? tiny->heads : usual;
    LhModel *model = g_new0(LhModel, 1);
    LhLayerRun run = {
        .kind = tiny->linear ? LH_LAYER_LINEAR : LH_LAYER_SOFTMAX,
        .count = 1,
        .output_gate = tiny->gate,
        .whole = tiny->window > 0,
    };

    model->name = g_strdup("tiny");
    model->num_layers = tiny->layers != 0 ? tiny->layers : 2;
    model->layers = g_array_new(FALSE, FALSE, sizeof(LhLayerRun));
    g_array_append_val(model->layers, run);
    if (tiny->window > 0) {
        run.whole = false;
        g_array_append_val(model->layers, run);
    }
    model->hidden_size = 8 * heads;
    model->num_attention_heads = heads;
    model->num_query_groups = tiny->groups != 0 ? tiny->groups : heads;
    model->kv_channels = 8;
    model->ffn_hidden_size = 3 * model->hidden_size;
    model->gated_mlp = !tiny->gelu;
    if (tiny->experts > 0) {
        model->ffn_hidden_size = model->hidden_size;
        model->num_experts = tiny->experts + tiny->shared;
        model->experts_per_token = (tiny->choices != 0 ? tiny->choices : 2) + tiny->shared;
        model->weights.shared_experts = tiny->shared;
        model->weights.dense_layers = tiny->dense;
        model->weights.dense_ffn_hidden_size = 2 * model->hidden_size;
    }
    model->weights.biases = tiny->layer_norm;
    model->vocab_size = tiny->vocabulary != 0 ? tiny->vocabulary : 64;
    model->tied_embeddings = tiny->tied;
    model->sliding_window = tiny->window;
    model->rotary_base = 10000;
    return model;
}

/* Ends of the documents of pack @number, of @tokens tokens in all, for a test: from many short ones
 * to one; @count of them. Caller frees. */
static inline uint64_t *
tiny_pack(uint64_t tokens, uint32_t number, uint32_t *count)
{
    GArray *ends = g_array_new(FALSE, FALSE, sizeof(uint64_t));
    const uint64_t most = MAX(tokens >> number % 4, 1);
    uint64_t end = 0;

    while (end < tokens) {
        const uint64_t length = 1 + lh_rng_bits(number, tokens, end) % most;

        end = number % 4 == 0 && number % 8 != 0 ? tokens : MIN(end + length, tokens);
        g_array_append_val(ends, end);
    }
    *count = ends->len;
    return (uint64_t *)(void *)g_array_free(ends, FALSE);
}

/* The program of @p with documents as in TinyStep. */
static inline LhProgram *
tiny_step_of(LhStepParams *p, unsigned documents, GError **error)
{
    const uint32_t count = documents > 1 ? p->data_parallel * p->micro_batches : documents;
    g_autofree LhDocumentPack *packs = g_new0(LhDocumentPack, MAX(count, 1));
    LhProgram *program;

    for (uint32_t i = 0; i < count; i++)
        packs[i].ends = tiny_pack(p->module.attention.seq_length, i, &packs[i].count);
    p->module.mask = lh_step_pack_mask(p->module.mask, packs[0]);
    p->packs = count > 1 ? packs : NULL;
    p->packs_count = count > 1 ? count : 0;
    program = lh_step_new(p, error);
    for (uint32_t i = 0; i < count; i++)
        g_free((void *)packs[i].ends);
    return program;
}

/* The program of @tiny; NULL with @error if it is rejected. Caller frees. */
static inline LhProgram *
tiny_step(const TinyStep *tiny, GError **error)
{
    g_autoptr(LhModel) model = tiny_model(tiny);
    const LhSchedule *schedule = lh_schedule_find(tiny->schedule, NULL);
    const uint32_t context = MAX(tiny->context, 1);
    LhStepParams p = {
        .model = model,
        .schedule = { schedule, schedule },
        .module = {
            .attention = {
                .batch = MAX(tiny->batch, 1),
                .seq_length = (tiny->tokens != 0 ? tiny->tokens : 16) * context,
                .dtype = tiny->dtype,
                .decay = tiny->linear ? 0.9 : 0,
            },
            .ranks = context,
            .mask.causal = true,
        },
        .window = tiny->window,
        .tensor_parallel = MAX(tiny->tensor, 1),
        .data_parallel = MAX(tiny->data, 1),
        .pipeline_parallel = tiny->stages,
        .chunks = tiny->chunks,
        .embedding_counts = tiny->embedding_counts,
        .loss_counts = tiny->loss_counts,
        .pipeline_order = tiny->order,
        .micro_batches = MAX(tiny->micro_batches, 1),
        .forward_only = tiny->forward_only,
        .shard = tiny->shard,
        .checkpoint = tiny->checkpoint,
        .recompute = tiny->recompute,
        .loss = tiny->loss,
        .loss_chunk_rows = tiny->chunk_rows,
        .mlp_tile_rows = tiny->tile_rows,
        .offload_layers = tiny->offload,
        .optimizer_offload = tiny->optimizer_offload,
        .overlap_optimizer_copies = tiny->overlap_copies,
        .gradients_leave = tiny->optimizer_offload > 0 && tiny->shard >= LH_SHARD_ZERO2,
        .offload_param = tiny->offload_param,
        .lora_rank = tiny->rank,
        .lora_targets = tiny->targets != 0 ? tiny->targets : LH_LORA_ALL,
        .muon = tiny->muon,
        .behaviour = tiny->behaviour,
        .learning_rate = 1e-2,
    };

    return tiny_step_of(&p, tiny->documents, error);
}
