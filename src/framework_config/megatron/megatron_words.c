/* SPDX-License-Identifier: Apache-2.0 */
#include "framework_config/megatron/megatron_words.h"

#include "framework_config/common/config_words.h"
#include "framework_config/megatron/megatron_context.h"

static void
say_pipeline(const LhConfig *c, const LhConfigWay *way, GPtrArray *words)
{
    lh_config_say_count(c, words, "pipeline-model-parallel-size", way->pipeline);
    lh_config_unsay(c, words, "num-virtual-stages-per-pipeline-rank");
    if (way->chunks == 1 || c->system->base == NULL)
        lh_config_unsay(c, words, "virtual-pipeline-model-parallel-size");
    if (way->chunks > 1 && c->system->base != NULL)
        lh_config_say_count(c, words, "virtual-pipeline-model-parallel-size", way->chunks);
    else if (way->chunks > 1)
        lh_config_say_count(c, words, "num-layers-per-virtual-pipeline-stage",
                            way->layers_of_chunk);
    else
        lh_config_unsay(c, words, "num-layers-per-virtual-pipeline-stage");
    if (way->embedding_counts)
        lh_config_say(c, words, "account-for-embedding-in-pipeline-split", LH_SETTINGS_FLAG, NULL);
    else
        lh_config_unsay(c, words, "account-for-embedding-in-pipeline-split");
    if (way->loss_counts)
        lh_config_say(c, words, "account-for-loss-in-pipeline-split", LH_SETTINGS_FLAG, NULL);
    else
        lh_config_unsay(c, words, "account-for-loss-in-pipeline-split");
}

static void
say_recomputation(const LhConfig *c, const LhConfigWay *way, GPtrArray *words)
{
    g_autofree char *modules = lh_recompute_text(way->recompute.modules, " ");

    lh_config_unsay(c, words, "recompute-activations");
    lh_config_unsay(c, words, "moe-layer-recompute");
    lh_config_unsay(c, words, "checkpoint-activations");
    lh_config_unsay(c, words, "activations-checkpoint-method");
    if (modules[0] != '\0')
        lh_config_say(c, words, "recompute-modules", LH_SETTINGS_LIST, modules);
    else
        lh_config_unsay(c, words, "recompute-modules");
    if (way->checkpoint == LH_CHECKPOINT_NONE)
        lh_config_unsay(c, words, "recompute-granularity");
    else
        lh_config_say(c, words, "recompute-granularity", LH_SETTINGS_WORD,
                      way->checkpoint == LH_CHECKPOINT_LAYER ? "full" : "selective");
    if (way->checkpoint == LH_CHECKPOINT_LAYER) {
        lh_config_say(c, words, "recompute-method", LH_SETTINGS_WORD,
                      way->recompute.layers > 0 ? lh_recompute_method_names[way->recompute.method]
                                                : "uniform");
        lh_config_say_count(c, words, "recompute-num-layers", MAX(way->recompute.layers, 1));
    } else {
        lh_config_unsay(c, words, "recompute-method");
        lh_config_unsay(c, words, "recompute-num-layers");
    }
}

static void
say_sharding(const LhConfig *c, const LhConfigWay *way, GPtrArray *words)
{
    lh_config_unsay(c, words, "use-torch-fsdp2");
    lh_config_unsay(c, words, "use-custom-fsdp");
    if (way->shard == LH_SHARD_DDP)
        lh_config_unsay(c, words, "use-distributed-optimizer");
    else
        lh_config_say(c, words, "use-distributed-optimizer", LH_SETTINGS_FLAG, NULL);
    if (way->shard == LH_SHARD_ZERO2 || way->shard == LH_SHARD_FSDP) {
        lh_config_say(c, words, "use-megatron-fsdp", LH_SETTINGS_FLAG, NULL);
        lh_config_say(c, words, "data-parallel-sharding-strategy", LH_SETTINGS_WORD,
                      way->shard == LH_SHARD_ZERO2 ? "optim_grads" : "optim_grads_params");
    } else {
        lh_config_unsay(c, words, "use-megatron-fsdp");
        lh_config_unsay(c, words, "data-parallel-sharding-strategy");
    }
}

void
lh_config_megatron_say_sizes(const LhConfig *c, const LhConfigWay *way, GPtrArray *words)
{
    lh_config_say_count(c, words, "seq-length", way->seq_length);
    lh_config_say_count(c, words, "micro-batch-size", way->micro_batch_size);
    lh_config_say_count(c, words, "global-batch-size",
                        (uint64_t)way->micro_batch_size * way->micro_batches * way->data);
    lh_config_say_count(c, words, "tensor-model-parallel-size", way->tensor);
    if (way->tensor > 1)
        lh_config_say(c, words, "sequence-parallel", LH_SETTINGS_FLAG, NULL);
    else
        lh_config_unsay(c, words, "sequence-parallel");
    say_pipeline(c, way, words);
    lh_config_megatron_say_context(c, way, words);
    say_recomputation(c, way, words);
}

void
lh_config_megatron_say(const LhConfig *c, const LhConfigWay *way, GPtrArray *words)
{
    lh_config_megatron_say_sizes(c, way, words);
    say_sharding(c, way, words);
}
