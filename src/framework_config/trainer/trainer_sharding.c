/* SPDX-License-Identifier: Apache-2.0 */
#include "framework_config/trainer/trainer_sharding.h"

#include "framework_config/common/config_messages.h"
#include "framework_config/common/config_settings.h"
#include "framework_config/common/config_values.h"
#include "framework_config/deepspeed/deepspeed.h"
#include "framework_config/trainer/trainer_keys.h"
#include "framework_config/trainer/trainer_names.h"

#include <inttypes.h>
#include <string.h>

/* Reads the sharding groups and their replicas. */
static bool
take_shard_groups(LhConfig *c, int shard, GError **error)
{
    static const char *const shards[] = { "dp-shard-size",
                                          "parallelism-config.parallelism-config-dp-shard-size",
                                          NULL };
    static const char *const copies[] = { "dp-replicate-size",
                                          "parallelism-config.parallelism-config-dp-replicate-size",
                                          NULL };
    const char *shard_name = lh_config_trainer_find_name(c, shards),
               *copies_name = lh_config_trainer_find_name(c, copies);
    uint64_t each = 0, count = 1;

    if ((shard_name != NULL && !lh_config_count(c, shard_name, &each, error)) ||
        (copies_name != NULL && !lh_config_count(c, copies_name, &count, error)))
        return false;
    if (count > 1 && shard != LH_SHARD_DDP)
        lh_config_note(c, lh_config_entry(c, copies_name),
                       "not modelled: %" PRIu64 " replicas of sharding groups: all ranks shard",
                       count);
    if (each > 0 && count > 0 && each < UINT16_MAX && count < UINT16_MAX)
        lh_config_set_count(c, lh_config_entry(c, shard_name), LH_CONFIG_WAY, "data_parallel_size",
                            each * count);
    return true;
}

/* "FULL_SHARD" or its number. */
static bool
shard_of(LhConfig *c, int *shard, GError **error)
{
    static const char *const words[] = {
        "FULL_SHARD", "SHARD_GRAD_OP", "NO_SHARD", "HYBRID_SHARD", "1", "2", "3", "4", NULL
    };
    static const int shards[] = { LH_SHARD_FSDP, LH_SHARD_ZERO2, LH_SHARD_DDP, LH_SHARD_FSDP };
    static const char *const names[] = { "fsdp-config.fsdp-sharding-strategy",
                                         "fsdp-config.sharding-strategy", NULL };
    const char *name = lh_config_trainer_find_name(c, names), *word = "FULL_SHARD";
    int which;

    if (name != NULL && !lh_config_word(c, name, &word, error))
        return false;
    which = lh_config_index(words, word);
    if (which < 0)
        return lh_config_trainer_refuse(c, name, word,
                                        "FULL_SHARD, SHARD_GRAD_OP, NO_SHARD, HYBRID_SHARD", error);
    if (which % 4 == 3)
        lh_config_note(c, lh_config_entry(c, name),
                       "not modelled: HYBRID_SHARD: all ranks shard, not those of a node");
    *shard = shards[which % 4];
    return true;
}

/* Parses "full_shard auto_wrap", the Trainer's own option. */
static int
shard_of_words(LhConfig *c, const LhSettingsEntry *entry)
{
    g_autofree char *text = lh_settings_entry_text(entry);

    if (strstr(text, "offload") != NULL && strstr(text, "full_shard") == NULL)
        lh_config_note(c, entry, "not modelled: offload without full_shard");
    else if (strstr(text, "offload") != NULL)
        lh_config_set(c, entry, LH_CONFIG_WAY, "offload_param", NULL);
    return strstr(text, "full_shard") != NULL || strstr(text, "hybrid_shard") != NULL
               ? LH_SHARD_FSDP
           : strstr(text, "shard_grad_op") != NULL ? LH_SHARD_ZERO2
                                                   : LH_SHARD_DDP;
}

/* Whether FSDP has settings; these imply FSDP if nothing else selects sharding. */
static bool
has_fsdp(const LhConfig *c)
{
    for (const LhConfigKey *key = lh_config_trainer_keys; key->name != NULL; key++) {
        if (g_str_has_prefix(key->name, "fsdp-config.") && key->kind != LH_KEY_NOTHING &&
            lh_config_entry(c, key->name) != NULL)
            return true;
    }
    return false;
}

/* Reports that sharding is configured in a missing file. */
static void
lacks_way(LhConfig *c, const LhSettingsEntry *file)
{
    g_autofree char *shown = g_strescape(g_ptr_array_index(file->values, 0), NULL);

    lh_config_lacks(c, file, "shard",
                    "sharding is configured in %.80s, which is neither beside this file nor in the "
                    "working folder: put it there, or give --shard",
                    shown);
}

/* Offloads the optimizer, or the weights, with which it is, as far as the sharding has them. */
static void
offload(LhConfig *c, const LhSettingsEntry *entry, bool optimizer, bool param, int shard)
{
    if (param && shard != LH_SHARD_FSDP)
        lh_config_note(c, entry, "not modelled: weights that are not sharded stay on the GPU");
    else if (param)
        lh_config_set(c, entry, LH_CONFIG_WAY, "offload_param", NULL);
    if (optimizer && shard == LH_SHARD_DDP)
        lh_config_note(c, entry, "it needs a stage of ZeRO");
    else if (optimizer)
        lh_config_set(c, entry, LH_CONFIG_WAY, "optimizer_cpu_offload", NULL);
}

/* Reads accelerate's words for DeepSpeed's offload; "none" is nothing. */
static bool
take_devices(LhConfig *c, int shard, GError **error)
{
    static const char *const names[] = { "deepspeed-config.offload-optimizer-device",
                                         "deepspeed-config.offload-param-device" };

    for (guint i = 0; i < G_N_ELEMENTS(names); i++) {
        const char *device = "none";

        if (!lh_config_word(c, names[i], &device, error))
            return false;
        if (strcmp(device, "none") == 0)
            continue;
        if (strcmp(device, "cpu") != 0)
            lh_config_note(c, lh_config_entry(c, names[i]),
                           "not modelled: offload to %.20s: host memory stands for disks", device);
        offload(c, lh_config_entry(c, names[i]), i == 0, i == 1, shard);
    }
    return true;
}

/* Reads FSDP's offload, of weights and optimizer. */
static bool
take_params(LhConfig *c, int shard, GError **error)
{
    static const char *const names[] = { "fsdp-config.fsdp-offload-params",
                                         "fsdp-config.offload-params", NULL };
    const char *name = lh_config_trainer_find_name(c, names);
    bool params = false;

    if (name != NULL && !lh_config_flag(c, name, &params, error))
        return false;
    if (params)
        offload(c, lh_config_entry(c, name), false, true, shard);
    return true;
}

/* "zero3_offload": files that ms-swift includes. */
static bool
shard_by_name(LhConfig *c, const LhSettingsEntry *file, int *shard, GError **error)
{
    g_autofree char *text = lh_settings_entry_text(file);
    g_autofree char *shown = g_strescape(text, NULL);

    if (g_str_has_prefix(text, "zero") && text[4] >= '0' && text[4] <= '3' &&
        (text[5] == '\0' || strcmp(text + 5, "_offload") == 0)) {
        *shard = text[4] - '0';
        if (text[5] != '\0')
            offload(c, file, true, *shard == LH_SHARD_FSDP, *shard);
        return true;
    }
    return lh_config_fail(c, file, error,
                          "\"%.40s\": found \"%.60s\"; allowed: a file of DeepSpeed's settings "
                          "(.json), zero0, zero1, zero2, zero3, zero2_offload, zero3_offload",
                          file->path, shown);
}

/* Reads DeepSpeed's stage, from accelerate's settings or from DeepSpeed's file. */
static bool
shard_by_deepspeed(LhConfig *c, const LhSettingsEntry *file, int *shard, GError **error)
{
    uint64_t stage = LH_SHARD_ZERO2; /* default of accelerate */

    if (file != NULL && file->missing) {
        lacks_way(c, file);
        return true;
    }
    if (file != NULL)
        return shard_by_name(c, file, shard, error);
    if (!lh_config_count(c, "deepspeed-config.zero-stage", &stage, error))
        return false;
    if (stage > LH_SHARD_FSDP)
        return lh_config_trainer_refuse(c, "deepspeed-config.zero-stage", "more than 3", "0 to 3",
                                        error);
    *shard = (int)stage;
    return lh_config_deepspeed_zero(c, shard, error) && take_devices(c, *shard, error);
}

bool
lh_config_trainer_has_deepspeed(const LhConfig *c)
{
    for (guint i = 0; i < c->names->len; i++) {
        if (g_str_has_prefix(g_ptr_array_index(c->names, i), "deepspeed-config.zero-optim") ||
            strcmp(g_ptr_array_index(c->names, i), "deepspeed-config.zero-stage") == 0)
            return true;
    }
    return false;
}

/* Determines who shards: from "distributed_type", from LLaMA-Factory's "dist_config.name", or from
 * the settings that exist. */
static bool
read_sharder(LhConfig *c, const LhSettingsEntry **deepspeed, bool *fsdp, bool *by_deepspeed,
             GError **error)
{
    static const char *const kinds[] = { "NO", "MULTI_GPU", "FSDP", "DEEPSPEED", NULL };
    static const char *const names[] = { "ddp", "fsdp", "fsdp2", "deepspeed", NULL };
    const char *kind = NULL, *name = NULL;
    int which = -1;

    if (!lh_config_word(c, "distributed-type", &kind, error) ||
        !lh_config_word(c, "dist-config.name", &name, error))
        return false;
    *deepspeed = lh_config_entry(c, "deepspeed");
    if (kind != NULL && (which = lh_config_index(kinds, kind)) < 0)
        return lh_config_trainer_refuse(c, "distributed-type", kind,
                                        "NO, MULTI_GPU, FSDP, DEEPSPEED", error);
    if (kind == NULL && name != NULL && (which = lh_config_index(names, name)) < 0)
        return lh_config_trainer_refuse(c, "dist-config.name", name, "ddp, fsdp, fsdp2, deepspeed",
                                        error);
    if (which == 3 && *deepspeed == NULL)
        *deepspeed = lh_config_entry(c, "dist-config.config-file");
    if (*deepspeed == NULL)
        *deepspeed = lh_config_entry(c, "deepspeed-config.deepspeed-config-file");
    *by_deepspeed = which == 3 || *deepspeed != NULL ||
                    (kind == NULL && name == NULL && lh_config_trainer_has_deepspeed(c));
    *fsdp = which == 2 || (kind == NULL && which == 1) || (which < 0 && has_fsdp(c));
    return true;
}

bool
lh_config_trainer_take_sharding(LhConfig *c, GError **error)
{
    static const char *const reshards[] = { "fsdp-config.fsdp-reshard-after-forward",
                                            "fsdp-config.reshard-after-forward", NULL };
    const char *reshard = lh_config_trainer_find_name(c, reshards);
    const LhSettingsEntry *file = lh_config_entry(c, "config-file");
    const LhSettingsEntry *deepspeed = NULL, *words = lh_config_entry(c, "fsdp");
    bool fsdp = false, by_deepspeed = false;
    int shard = LH_SHARD_DDP;

    if (!read_sharder(c, &deepspeed, &fsdp, &by_deepspeed, error))
        return false;
    if (by_deepspeed) {
        if (!shard_by_deepspeed(c, deepspeed, &shard, error))
            return false;
    } else if (words != NULL) {
        shard = shard_of_words(c, words);
    } else if (fsdp) {
        if (!shard_of(c, &shard, error) || !take_params(c, shard, error))
            return false;
    } else if (file != NULL && file->missing) {
        lacks_way(c, file);
    }
    if (reshard != NULL) {
        const char *value = lh_settings_entry_value(lh_config_entry(c, reshard));

        if (shard == LH_SHARD_FSDP &&
            (g_strcmp0(value, "false") == 0 || g_strcmp0(value, "SHARD_GRAD_OP") == 0))
            lh_config_set_framework(c, "fsdp.reshard_after_forward", "no");
    }
    lh_config_set(c, NULL, LH_CONFIG_WAY, "shard", lh_shard_names[shard]);
    return take_shard_groups(c, shard, error);
}
