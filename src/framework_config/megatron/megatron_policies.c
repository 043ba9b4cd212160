/* SPDX-License-Identifier: Apache-2.0 */
#include "framework_config/megatron/megatron_policies.h"

#include "framework_config/common/config_messages.h"
#include "framework_config/common/config_settings.h"
#include "framework_config/common/config_values.h"
#include "framework_config/deepspeed/deepspeed.h"
#include "framework_config/megatron/megatron_muon.h"

#include <inttypes.h>
#include <string.h>

bool
lh_config_megatron_is_swift(const LhConfig *c)
{
    return c->arguments && lh_config_entry(c, "model") != NULL &&
           lh_config_entry(c, "num-layers") == NULL;
}

/* Reads NeMo's sharding: from the optimizer's name, or "fsdp" with a strategy. */
static bool
read_nemo_sharding(LhConfig *c, bool *distributed, bool *torch, GError **error)
{
    static const char *const optimizers[] = { "mcore_distributed_optim", "distributed_fused_adam",
                                              NULL };
    static const char *const others[] = { "fused_adam", "adam", "adamw", "adamw_optim", NULL };
    const char *optimizer = others[0], *strategy = "full";

    if (c->system->base == NULL)
        return true;
    if (!lh_config_word(c, "optim-name", &optimizer, error) ||
        !lh_config_flag(c, "fsdp", torch, error) ||
        !lh_config_word(c, "fsdp-sharding-strategy", &strategy, error))
        return false;
    *distributed = *distributed || lh_config_index(optimizers, optimizer) >= 0;
    if (!*distributed && lh_config_index(others, optimizer) < 0)
        lh_config_note(c, lh_config_entry(c, "optim-name"),
                       "not modelled: model.optim.name %.40s: the optimizer has the states of Adam",
                       optimizer);
    if (*torch && strcmp(strategy, "full") != 0)
        lh_config_note(c, lh_config_entry(c, "fsdp-sharding-strategy"),
                       "not modelled: fsdp_sharding_strategy %.20s: full is predicted instead",
                       strategy);
    else if (!*torch && lh_config_entry(c, "fsdp-sharding-strategy") != NULL &&
             strcmp(strategy, "full") != 0)
        lh_config_note(c, lh_config_entry(c, "fsdp-sharding-strategy"),
                       "it needs model.fsdp, which is not set");
    return true;
}

/* Reads ZeRO's stage of Megatron-DeepSpeed, with DeepSpeed's engine. *@stage is unchanged without
 * the engine. */
static bool
read_stage(LhConfig *c, int *stage, GError **error)
{
    const LhSettingsEntry *entry = lh_config_entry(c, "zero-stage");
    const LhSettingsEntry *file = lh_config_entry(c, "deepspeed-config");
    bool engine = false;
    uint64_t number = 0;

    if (!lh_config_flag(c, "deepspeed", &engine, error) ||
        !lh_config_count(c, "zero-stage", &number, error))
        return false;
    if (entry != NULL && number > LH_SHARD_FSDP)
        return lh_config_fail(c, entry, error,
                              "\"zero-stage\": found \"%" PRIu64 "\"; allowed: 0 to 3", number);
    if (!engine && entry != NULL)
        lh_config_note(c, entry, "it needs --deepspeed, which is not given");
    if (!engine)
        return true;
    *stage = entry != NULL ? (int)number : -1;
    if (!lh_config_deepspeed_zero(c, stage, error))
        return false;
    if (*stage < 0)
        lh_config_lacks(
            c, lh_config_entry(c, "deepspeed"), "shard",
            "ZeRO's stage is in DeepSpeed's file, which is neither beside this file nor in the "
            "working folder: put it there, add --zero-stage N, or give --shard");
    if (file != NULL && file->missing && *stage >= 0) {
        g_autofree char *text = lh_settings_entry_text(file);
        g_autofree char *shown = g_strescape(text, NULL);

        lh_config_note(c, file, "the file %.80s does not exist, and has not been read", shown);
    }
    lh_config_note(c, lh_config_entry(c, "deepspeed"),
                   "not modelled: deepspeed: gradients and weights are communicated as by "
                   "Megatron-LM with the same sharding");
    return true;
}

bool
lh_config_megatron_take_sharding(LhConfig *c, GError **error)
{
    static const char *const strategies[] = { "no_shard", "optim", "optim_grads",
                                              "optim_grads_params", NULL };
    const LhSettingsEntry *entry = lh_config_entry(c, "data-parallel-sharding-strategy");
    const char *strategy = "no_shard";
    bool distributed = lh_config_megatron_is_swift(c), megatron = false, torch = false;
    int shard, stage = -1;

    if (!lh_config_flag(c, "use-distributed-optimizer", &distributed, error) ||
        !lh_config_flag(c, "use-megatron-fsdp", &megatron, error) ||
        !lh_config_flag(c, "use-custom-fsdp", &megatron, error) ||
        !lh_config_flag(c, "use-torch-fsdp2", &torch, error) ||
        !read_nemo_sharding(c, &distributed, &torch, error) ||
        !lh_config_word(c, "data-parallel-sharding-strategy", &strategy, error))
        return false;
    shard = lh_config_index(strategies, strategy);
    if (shard < 0)
        return lh_config_fail(c, entry, error,
                              "\"data-parallel-sharding-strategy\": found \"%.40s\"; allowed: "
                              "no_shard, optim, optim_grads, optim_grads_params",
                              strategy);
    if (entry != NULL && !megatron)
        lh_config_note(c, entry, "it needs --use-megatron-fsdp, which is not given");
    if (torch)
        shard = LH_SHARD_FSDP;
    else if (!megatron)
        shard = distributed || lh_config_megatron_is_dist_muon(c) ? LH_SHARD_ZERO1 : LH_SHARD_DDP;
    if (!read_stage(c, &stage, error))
        return false;
    if (stage >= 0)
        shard = stage;
    lh_config_set(c, entry, LH_CONFIG_WAY, "shard", lh_shard_names[shard]);
    return true;
}

bool
lh_config_megatron_take_pipeline(LhConfig *c, GError **error)
{
    uint64_t stages = 1, chunks = 0, layers = 0;
    bool embedding = false, loss = false;
    const LhSettingsEntry *entry = lh_config_entry(c, "num-virtual-stages-per-pipeline-rank");

    if (entry == NULL)
        entry = lh_config_entry(c, "virtual-pipeline-model-parallel-size");
    if (!lh_config_count(c, "pipeline-model-parallel-size", &stages, error) ||
        !lh_config_count(c, "num-layers", &layers, error) ||
        !lh_config_count(c, "virtual-pipeline-model-parallel-size", &chunks, error) ||
        !lh_config_count(c, "num-virtual-stages-per-pipeline-rank", &chunks, error) ||
        !lh_config_flag(c, "account-for-embedding-in-pipeline-split", &embedding, error) ||
        !lh_config_flag(c, "account-for-loss-in-pipeline-split", &loss, error))
        return false;
    if (embedding)
        lh_config_set(c, lh_config_entry(c, "account-for-embedding-in-pipeline-split"),
                      LH_CONFIG_WAY, "account_for_embedding_in_pipeline_split", NULL);
    if (loss)
        lh_config_set(c, lh_config_entry(c, "account-for-loss-in-pipeline-split"), LH_CONFIG_WAY,
                      "account_for_loss_in_pipeline_split", NULL);
    layers += (embedding ? 1U : 0U) + (loss ? 1U : 0U);
    if (chunks > 1 && stages > 1 && layers % (stages * chunks) == 0 && layers > 0)
        lh_config_set_count(c, entry, LH_CONFIG_WAY, "num_layers_per_virtual_pipeline_stage",
                            layers / (stages * chunks));
    else if (chunks > 1)
        lh_config_note(c, entry,
                       "%" PRIu64 " layers on %" PRIu64 " stages cannot be split into %" PRIu64
                       " chunks each; one chunk is assumed",
                       layers, stages, chunks);
    return true;
}
