/* SPDX-License-Identifier: Apache-2.0 */
#include "step/legality.h"

#include "step/lora.h"
#include "step/memory/recomputation.h"
#include "step/muon/muon.h"
#include "step/packs.h"
#include "step/pipeline/pipeline.h"

#include <inttypes.h>
#include <string.h>

#define RANKS_MAX LH_RANKS_MAX
#define PIPELINE_WORK_MAX (UINT32_C(1) << 17) /* each takes about 20 KiB */

#define SHARED_MAX 4 /* sizes that are divided among tensor-parallel ranks */

/* "nearest legal numbers of stages: 3, 6": the values next to @value for which @p would be legal,
 * up to @most; @what names them. Caller frees. */
static char *
legal_near(const LhStepParams *p, const char *what, uint64_t value, uint64_t most,
           bool (*is_legal)(const LhStepParams *p, uint64_t value))
{
    uint64_t below = MIN(value, most), above = value + 1;
    g_autofree char *numbers = NULL;

    while (below > 0 && !is_legal(p, below))
        below--;
    while (above <= most && !is_legal(p, above))
        above++;
    if (below == 0 && above > most)
        return g_strdup_printf("there are no legal %s for these ranks", what);
    numbers = lh_near_text(below, above <= most ? above : below);
    return g_strdup_printf("nearest legal %s: %s", what, numbers);
}

/* A size that is divided among tensor-parallel ranks. */
typedef struct {
    const char *what;
    uint64_t size;
} Shared;

static guint
find_shared(const LhModel *m, Shared shared[SHARED_MAX])
{
    const uint64_t dense =
        m->num_experts > 0 && lh_model_dense(m) > 0 ? m->weights.dense_ffn_hidden_size : 0;
    const Shared all[SHARED_MAX] = {
        { "the number of heads", m->num_attention_heads },
        { m->num_experts > 0 ? "the width of an expert" : "the width of the MLP",
          m->ffn_hidden_size },
        { "the width of a shared expert", m->weights.shared_ffn_hidden_size },
        { "the width of the dense layers' MLP", dense },
    };

    memcpy(shared, all, sizeof(all));
    return SHARED_MAX;
}

/* Vocabulary entries on each of @t ranks. */
static uint64_t
tokens_of(const LhModel *m, uint64_t t)
{
    return (m->vocab_size + t - 1) / t;
}

static bool
has_vocabulary(const LhModel *m, uint64_t t)
{
    return m->vocab_size > (t - 1) * tokens_of(m, t);
}

static bool
has_groups(const LhModel *m, uint64_t t)
{
    const uint64_t groups = MAX(m->num_query_groups, 1);

    return groups % t == 0 || t % groups == 0;
}

/* Whether @t is a legal tensor-parallel size for the ranks of a stage. */
static bool
is_tensor_size(const LhStepParams *p, uint64_t t)
{
    Shared shared[SHARED_MAX];
    const guint count = find_shared(p->model, shared);

    for (guint i = 0; i < count; i++) {
        if (shared[i].size % t != 0)
            return false;
    }
    return lh_step_stage_ranks(p) % t == 0 && has_vocabulary(p->model, t) &&
           has_groups(p->model, t);
}

static bool
check_tensor_parallel(const LhStepParams *p, GError **error)
{
    const LhModel *m = p->model;
    const uint64_t t = p->tensor_parallel, most = lh_step_stage_ranks(p);
    g_autofree char *near = NULL;
    Shared shared[SHARED_MAX];
    const guint count = find_shared(m, shared);

    if (is_tensor_size(p, t))
        return true;
    near = legal_near(p, "tensor-parallel sizes", t, most, is_tensor_size);
    for (guint i = 0; i < count; i++) {
        if (shared[i].size % t != 0)
            return lh_program_refuse(error,
                                     "%s, %" PRIu64 ", must be a multiple of the tensor-parallel "
                                     "size, %" PRIu64 "; %s",
                                     shared[i].what, shared[i].size, t, near);
    }
    if (!has_vocabulary(m, t))
        return lh_program_refuse(error,
                                 "a vocabulary of %" PRIu64 " tokens, %" PRIu64
                                 " on each of %" PRIu64
                                 " tensor-parallel ranks, leaves the last one without any; %s",
                                 m->vocab_size, tokens_of(m, t), t, near);
    return lh_program_refuse(error,
                             "%" PRIu64
                             " key-value heads can neither be shared among nor copied to "
                             "%" PRIu64 " tensor-parallel ranks: one number must divide the other; "
                             "%s",
                             MAX(m->num_query_groups, 1), t, near);
}

static bool
has_softmax(const LhModel *m)
{
    for (guint i = 0; i < m->layers->len; i++) {
        if (g_array_index(m->layers, LhLayerRun, i).kind == LH_LAYER_SOFTMAX)
            return true;
    }
    return false;
}

static bool
check_model(const LhStepParams *p, GError **error)
{
    const LhModel *m = p->model;

    if (m->weights.attention_parameters > 0)
        return lh_program_refuse(error, "%s has latent attention, which steps do not support",
                                 m->name != NULL ? m->name : "the model");
    if (m->weights.embedding_width > 0)
        return lh_program_refuse(error,
                                 "the embedding has width %" PRIu64 ", the model %" PRIu64
                                 ", which steps do not support",
                                 m->weights.embedding_width, m->hidden_size);
    if (m->num_experts > 0 && m->experts_per_token <= m->weights.shared_experts)
        return lh_program_refuse(error,
                                 "of %" PRIu64 " experts per token %" PRIu64
                                 " are shared, which leaves none for the router to choose",
                                 m->experts_per_token, m->weights.shared_experts);
    if (m->rotary_base > 0 && m->kv_channels % 2 != 0 && has_softmax(m))
        return lh_program_refuse(error,
                                 "heads of %" PRIu64
                                 " elements do not support a rotary embedding, which needs an even "
                                 "number: give --kv-channels, or a model whose rotary_base is 0",
                                 m->kv_channels);
    if (m->num_layers > UINT16_MAX)
        return lh_program_refuse(error, "a step has at most %u layers", UINT16_MAX);
    return true;
}

/* Number of layers that are divided among stages, including the ends that count. */
static uint64_t
places_of(const LhStepParams *p)
{
    return p->model->num_layers + (p->embedding_counts ? 1u : 0) + (p->loss_counts ? 1u : 0);
}

/* Whether @stages is a legal number of stages, with the same number of chunks on each. */
static bool
is_stages(const LhStepParams *p, uint64_t stages)
{
    const uint64_t parts = stages * lh_step_chunks(p);

    return parts <= p->model->num_layers && places_of(p) % parts == 0 &&
           lh_step_ranks(p) % stages == 0 &&
           (stages > 1 || (lh_step_chunks(p) == 1 && !p->embedding_counts && !p->loss_counts)) &&
           (lh_step_chunks(p) == 1 || p->micro_batches % stages == 0);
}

/* Checks that all stages and chunks have equally many layers, and that with several chunks the
 * number of micro-batches is a multiple of the number of stages. */
static bool
check_stages(const LhStepParams *p, GError **error)
{
    const uint32_t stages = lh_step_stages(p), chunks = lh_step_chunks(p);
    const uint64_t parts = (uint64_t)stages * chunks, all = places_of(p);
    g_autofree char *near = NULL;
    const char *ends = all == p->model->num_layers       ? ""
                       : all == p->model->num_layers + 2 ? ", with the embedding and the loss"
                       : p->loss_counts                  ? ", with the loss"
                                                         : ", with the embedding";

    if (is_stages(p, stages))
        return true;
    near = legal_near(p, "numbers of stages", stages, p->model->num_layers, is_stages);
    if (p->model->num_layers < parts)
        return lh_program_refuse(
            error, "%" PRIu64 " layers cannot be shared among %" PRIu64 "%s; %s",
            p->model->num_layers, parts,
            chunks > 1 ? " chunks of pipeline stages" : " pipeline stages", near);
    if (chunks > 1 && p->micro_batches % stages != 0) {
        const uint64_t below = p->micro_batches / stages * stages;
        g_autofree char *numbers = lh_near_text(below, below + stages);

        return lh_program_refuse(error,
                                 "with several chunks of layers on a stage, the number of "
                                 "micro-batches, %u, must be a multiple of the number of pipeline "
                                 "stages, %u; nearest legal numbers of micro-batches: %s",
                                 p->micro_batches, stages, numbers);
    }
    return lh_program_refuse(
        error,
        "the number of layers%s, %" PRIu64 ", must be a multiple of the number of %s, %" PRIu64
        "; %s",
        ends, all, chunks > 1 ? "chunks of all pipeline stages" : "pipeline stages", parts, near);
}

static bool
check_pipeline(const LhStepParams *p, GError **error)
{
    const uint32_t stages = lh_step_stages(p), chunks = lh_step_chunks(p);

    if (stages == 1 && chunks > 1)
        return lh_program_refuse(error, "several chunks of layers need several pipeline stages");
    if (chunks > 1 && p->pipeline_order != LH_PIPELINE_1F1B)
        return lh_program_refuse(error, "several chunks of layers on a pipeline stage need the "
                                        "order 1f1b");
    if (stages > 1 && p->model->num_layers * p->micro_batches > PIPELINE_WORK_MAX)
        return lh_program_refuse(
            error, "a pipeline has at most %u micro-batches times layers, not %u times %" PRIu64,
            PIPELINE_WORK_MAX, p->micro_batches, p->model->num_layers);
    if (stages == 1 && (p->embedding_counts || p->loss_counts))
        return lh_program_refuse(
            error,
            "the embedding and the loss can count as layers only with several pipeline stages");
    return check_stages(p, error);
}

/* Layers of the smallest chunk. */
static uint32_t
layers_of_chunk(const LhStepParams *p)
{
    uint32_t least = (uint32_t)p->model->num_layers;

    for (uint32_t chunk = 0; chunk < lh_step_stages(p) * lh_step_chunks(p); chunk++)
        least = MIN(least, lh_step_chunk_begins(p, chunk + 1) - lh_step_chunk_begins(p, chunk));
    return least;
}

static bool
check_offload(const LhStepParams *p, GError **error)
{
    const uint32_t layers = layers_of_chunk(p);
    const char *of = lh_step_chunks(p) > 1   ? "a chunk of a pipeline stage has"
                     : lh_step_stages(p) > 1 ? "a pipeline stage has"
                                             : "the model has";

    if (p->offload_layers <= layers || p->offload_layers == LH_STEP_OFFLOAD_ALL)
        return true;
    return lh_program_refuse(error,
                             "the activations of %u layers cannot be offloaded where %s %u; "
                             "nearest legal number: %u, or all",
                             p->offload_layers, of, layers, layers);
}

static bool
check_host_states(const LhStepParams *p, GError **error)
{
    if (p->optimizer_offload < 0 || p->optimizer_offload > 1)
        return lh_program_refuse(error,
                                 "a share of %g of the optimizer cannot be offloaded; allowed: 0 "
                                 "to 1",
                                 p->optimizer_offload);
    if (p->offload_param && p->optimizer_offload < 1)
        return lh_program_refuse(error, "weights are in host memory only with all of the "
                                        "optimizer: give --optimizer-cpu-offload, whole");
    if (p->offload_param && p->shard != LH_SHARD_FSDP)
        return lh_program_refuse(error, "weights are in host memory only if they are sharded: give "
                                        "--shard fsdp");
    if (p->gradients_leave && p->shard < LH_SHARD_ZERO2)
        return lh_program_refuse(error, "gradients leave for host memory early only if they are "
                                        "reduced to shards: zero2 or fsdp");
    return true;
}

static bool
has_linear(const LhModel *m)
{
    for (guint i = 0; i < m->layers->len; i++) {
        if (g_array_index(m->layers, LhLayerRun, i).kind == LH_LAYER_LINEAR)
            return true;
    }
    return false;
}

/* Schedules of linear attention compute the state before a rank's tokens, not the one behind the
 * last, which is what a later token needs. */
static bool
check_forward_only(const LhStepParams *p, GError **error)
{
    if (!p->forward_only)
        return true;
    if (has_linear(p->model))
        return lh_program_refuse(error, "a forward pass alone does not support linear attention: "
                                        "its schedules do not leave the state behind the last "
                                        "token");
    if (p->packs != NULL || p->module.mask.documents_count > 0)
        return lh_program_refuse(error, "a forward pass alone does not support packed documents");
    if (p->lora_rank > 0 || p->offload_layers > 0 || p->optimizer_offload > 0)
        return lh_program_refuse(error, "a forward pass alone has no adapters to train, and no "
                                        "activations or optimizer states to offload");
    if (p->shard != LH_SHARD_DDP && p->shard != LH_SHARD_FSDP)
        return lh_program_refuse(error, "a forward pass alone has no gradients and optimizer "
                                        "states to share: ddp or fsdp");
    return true;
}

bool
lh_step_check(const LhStepParams *p, GError **error)
{
    if (p->tensor_parallel == 0 || p->data_parallel == 0 || p->micro_batches == 0 ||
        p->module.ranks == 0)
        return lh_program_refuse(error, "a step needs at least one rank and one micro-batch");
    if (lh_step_ranks(p) > RANKS_MAX)
        return lh_program_refuse(error, "a step has at most %u ranks", RANKS_MAX);
    if (p->micro_batches > UINT16_MAX)
        return lh_program_refuse(error, "a step has at most %u micro-batches", UINT16_MAX);
    return check_forward_only(p, error) && check_model(p, error) &&
           check_tensor_parallel(p, error) && check_pipeline(p, error) &&
           lh_step_check_recomputation(p, error) && lh_step_check_packs(p, error) &&
           check_offload(p, error) && check_host_states(p, error) && lh_step_check_lora(p, error) &&
           lh_muon_check(p, error);
}
