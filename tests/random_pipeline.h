/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Random steps of pipelines, each a function of its seed, as members of a scenario.
 */
#pragma once

#include "step_results.h"

/* Pipelines of many micro-batches, in all orders, with stages that differ; some of the forward pass
 * alone. */
static inline char *
random_pipeline(uint64_t seed)
{
    static const char *const models[] = { "gpt3-125m", "gpt3-1.3b", "llama-3-70b-12l", NULL };
    static const char *const clusters[] = { "hgx-h100", "dgx-a100-80g", "fat-tree-a100",
                                            "azure-nc96-a100", NULL };
    static const char *const shards[] = { "ddp", "zero1", "zero2", "fsdp", NULL };
    static const char *const whole[] = { "ddp", "fsdp", NULL };
    static const char *const checkpoints[] = { "none", "selective", "layer", "remat", NULL };
    static const char *const schedules[] = { "ring", "zigzag", "te-a2a", NULL };
    static const char *const frameworks[] = { "pytorch-fsdp", "megatron-lm", "deepspeed", NULL };
    static const char embedding[] = ", \"account_for_embedding_in_pipeline_split\": true";
    static const char both[] = ", \"account_for_embedding_in_pipeline_split\": true, "
                               "\"account_for_loss_in_pipeline_split\": true";
    static const char *const ends[] = { "", "", embedding, both, NULL };
    static const uint32_t tensor[] = { 1, 1, 1, 2 }, context[] = { 1, 1, 1, 2 };
    static const uint32_t data[] = { 1, 1, 2 }, stages[] = { 2, 2, 3, 4, 4, 6 };
    static const uint32_t layers[] = { 0, 0, 1, 2, 3 }, rounds[] = { 6, 10, 16, 24 };
    const uint32_t t = number(tensor, G_N_ELEMENTS(tensor), seed, 1);
    const uint32_t c = number(context, G_N_ELEMENTS(context), seed, 2);
    const uint32_t d = number(data, G_N_ELEMENTS(data), seed, 3);
    const uint32_t p = number(stages, G_N_ELEMENTS(stages), seed, 4);
    const uint32_t virtual_layers = number(layers, G_N_ELEMENTS(layers), seed, 5);
    const uint32_t ranks = t * c * d * p;
    const bool forward_only = lh_rng_bits(seed, 16, 0) % 6 == 0;
    const bool gpipe = !forward_only && virtual_layers == 0 && lh_rng_bits(seed, 6, 0) % 8 == 0;
    static const char documents[] = ", \"document_distribution\": \"lognormal:1K,1\"";
    const bool packed = !forward_only && lh_rng_bits(seed, 17, 0) % 8 == 0;
    const bool slow = lh_rng_bits(seed, 7, 0) % 8 == 0;
    g_autofree char *chunks =
        virtual_layers == 0
            ? g_strdup("")
            : g_strdup_printf(", \"num_layers_per_virtual_pipeline_stage\": %u", virtual_layers);

    g_autofree char *policy =
        forward_only
            ? g_strdup_printf("\"pass\": \"fwd\", \"shard\": \"%s\"", pick(whole, seed, 11))
            : g_strdup_printf("\"shard\": \"%s\", \"checkpoint\": \"%s\"", pick(shards, seed, 11),
                              pick(checkpoints, seed, 12));

    return g_strdup_printf(
        "\"model\": \"%s\", \"cluster\": \"%s:%u\", \"ranks\": %u, \"seq_length\": \"4K\", "
        "\"tensor_model_parallel_size\": \"%u\", \"context_parallel_size\": %u, "
        "\"data_parallel_size\": %u, \"pipeline_model_parallel_size\": %u, "
        "\"num_micro_batches\": %u, %s, \"schedule\": [\"%s\"], \"framework\": \"%s\"%s%s%s%s%s",
        pick(models, seed, 8), pick(clusters, seed, 9), (ranks + 1) / 2, ranks, t, c, d, p,
        p * number(rounds, G_N_ELEMENTS(rounds), seed, 10), policy, pick(schedules, seed, 13),
        pick(frameworks, seed, 14), chunks, virtual_layers == 0 ? pick(ends, seed, 15) : "",
        gpipe ? ", \"pipeline_schedule\": \"gpipe\"" : "", packed ? documents : "",
        slow ? ", \"straggler\": [{\"rank\": 1, \"factor\": 1.3}]" : "");
}
