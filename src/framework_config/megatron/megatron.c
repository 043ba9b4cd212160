/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Megatron-LM: arguments of its training scripts, YAML of its --yaml-cfg, and YAML of Megatron
 * Bridge, whose fields have the same names. Names and defaults as of github:NVIDIA/Megatron-LM,
 * megatron/training/arguments.py.
 *
 * Expert parallelism and FP8 are not modelled; a note says so.
 */
#include "framework_config/megatron/megatron.h"

#include "framework_config/common/config_messages.h"
#include "framework_config/common/config_settings.h"
#include "framework_config/common/config_values.h"
#include "framework_config/megatron/megatron_context.h"
#include "framework_config/megatron/megatron_keys.h"
#include "framework_config/megatron/megatron_model.h"
#include "framework_config/megatron/megatron_muon.h"
#include "framework_config/megatron/megatron_offload.h"
#include "framework_config/megatron/megatron_policies.h"
#include "framework_config/megatron/megatron_recomputation.h"
#include "framework_config/megatron/megatron_words.h"
#include "step/step.h"

#include <inttypes.h>
#include <string.h>

/* ---- loss and optimizer states ---- */

/* TransformerEngine's fused loss writes the gradients in place of the logits. Megatron-LM's own
 * fused loss is predicted like the unfused one. */
static bool
take_loss(LhConfig *c, GError **error)
{
    const LhSettingsEntry *entry = lh_config_entry(c, "cross-entropy-loss-fusion");
    const LhSettingsEntry *which = lh_config_entry(c, "cross-entropy-fusion-impl");
    const char *kind = "native";
    bool fused = false;

    if (!lh_config_flag(c, "cross-entropy-loss-fusion", &fused, error) ||
        !lh_config_word(c, "cross-entropy-fusion-impl", &kind, error))
        return false;
    if (which != NULL && !fused)
        lh_config_note(c, which, "it needs --cross-entropy-loss-fusion, which is not given");
    if (!fused)
        return true;
    if (strcmp(kind, "te") != 0) {
        lh_config_note(c, entry,
                       "not modelled: cross-entropy-loss-fusion by %.20s: time and memory of the "
                       "loss are as without it (a later version: What makes a long step fit)",
                       kind);
        return true;
    }
    lh_config_set_framework(c, "logits.loss", lh_loss_names[LH_LOSS_FUSED]);
    return true;
}

static bool
take_states(LhConfig *c, GError **error)
{
    static const char *const names[] = { "exp-avg-dtype", "exp-avg-sq-dtype" };
    const char *types[] = { "fp32", "fp32" };
    bool aware = false, summed = true;

    if (!lh_config_flag(c, "use-precision-aware-optimizer", &aware, error) ||
        !lh_config_flag(c, "accumulate-allreduce-grads-in-fp32", &summed, error))
        return false;
    if (aware && lh_config_entry(c, names[0]) == NULL && lh_config_entry(c, names[1]) == NULL)
        lh_config_note(c, lh_config_entry(c, "use-precision-aware-optimizer"),
                       "moments stay fp32 without --exp-avg-dtype and --exp-avg-sq-dtype");
    if (aware)
        lh_config_note(
            c, lh_config_entry(c, "use-precision-aware-optimizer"),
            "not modelled: store_param_remainders: TransformerEngine stores the lower 16 "
            "bits of the fp32 copy beside bf16 weights; the copy has 32 bits");
    if (!summed)
        lh_config_set_framework(c, "states.gradient", "activation");
    for (guint i = 0; i < G_N_ELEMENTS(names); i++) {
        const LhSettingsEntry *entry = lh_config_entry(c, names[i]);

        if (!lh_config_word(c, names[i], &types[i], error))
            return false;
        if (entry != NULL && !aware)
            lh_config_note(c, entry,
                           "it needs --use-precision-aware-optimizer, which is not given");
        else if (strcmp(types[i], "fp32") != 0 &&
                 (strcmp(types[i], "fp8") == 0 || strcmp(types[0], types[1]) != 0) && i == 1)
            lh_config_note(c, entry,
                           "not modelled: %s %.20s: both moments have the same type, fp32 or 16 "
                           "bits (a later version: FP8, MXFP8, NVFP4)",
                           names[i], types[i]);
    }
    if (aware && (strcmp(types[0], "bf16") == 0 || strcmp(types[0], "fp16") == 0) &&
        strcmp(types[0], types[1]) == 0)
        lh_config_set_framework(c, "states.moments", "activation");
    else if (aware && strcmp(types[0], "fp32") != 0)
        lh_config_note(c, lh_config_entry(c, names[0]),
                       "not modelled: %s %.20s: both moments have the same type, fp32 or 16 bits "
                       "(a later version: FP8, MXFP8, NVFP4)",
                       names[0], types[0]);
    return true;
}

/* ---- the rest ---- */

static bool
take_precision(LhConfig *c, GError **error)
{
    bool bf16 = false, fp16 = false;
    const char *fp8[] = { "fp8-format", "fp8" }, *precision = "";

    if (!lh_config_flag(c, "bf16", &bf16, error) || !lh_config_flag(c, "fp16", &fp16, error) ||
        (c->system->base != NULL && !lh_config_word(c, "precision", &precision, error)))
        return false;
    bf16 = bf16 || g_str_has_prefix(precision, "bf16");
    fp16 = fp16 || g_str_has_prefix(precision, "16");
    if (!bf16 && !fp16 && !lh_config_megatron_is_swift(c))
        lh_config_note(c, lh_config_entry(c, "precision"),
                       "%s, so %s trains in fp32; bf16 is predicted",
                       c->system->base != NULL ? "trainer.precision is neither bf16 nor 16"
                                               : "neither --bf16 nor --fp16 is given",
                       c->system->name);
    lh_config_set(c, lh_config_entry(c, fp16 && !bf16 ? "fp16" : "bf16"), LH_CONFIG_QUESTION,
                  "dtype", fp16 && !bf16 ? "fp16" : "bf16");
    for (guint i = 0; i < G_N_ELEMENTS(fp8); i++) {
        const LhSettingsEntry *entry = lh_config_entry(c, fp8[i]);
        g_autofree char *text = entry != NULL ? lh_settings_entry_text(entry) : NULL;

        if (entry != NULL && strcmp(text, "false") != 0)
            lh_config_note(c, entry,
                           "not modelled: %s %.20s: matrix products are in 16 bits (a later "
                           "version: FP8, MXFP8, NVFP4)",
                           fp8[i], text);
    }
    return true;
}

static bool
take_ranks(LhConfig *c, GError **error)
{
    uint64_t tensor = 1, experts = 1;
    bool sequence = false;

    if (!lh_config_count(c, "global-batch-size", &c->global_batch_size, error) ||
        !lh_config_count(c, "world-size", &c->processes, error))
        return false;
    if (!lh_config_count(c, "tensor-model-parallel-size", &tensor, error) ||
        !lh_config_count(c, "expert-model-parallel-size", &experts, error) ||
        !lh_config_flag(c, "sequence-parallel", &sequence, error))
        return false;
    if (tensor > 1 && !sequence)
        lh_config_note(c, lh_config_entry(c, "tensor-model-parallel-size"),
                       "without --sequence-parallel every tensor-parallel rank computes whole "
                       "norms; sequence parallelism is predicted");
    if (experts > 1)
        lh_config_note(c, lh_config_entry(c, "expert-model-parallel-size"),
                       "not modelled: expert parallelism of %" PRIu64
                       ": every rank has all experts "
                       "(a later version: Experts spread over ranks)",
                       experts);
    return true;
}

/* ms-swift's maximum sequence length, which all sequences are assumed to have. */
static bool
take_length(LhConfig *c, GError **error)
{
    const LhSettingsEntry *entry = lh_config_entry(c, "max-length");
    uint64_t length = 0;

    if (entry == NULL || lh_config_entry(c, "seq-length") != NULL)
        return true;
    if (!lh_config_count(c, "max-length", &length, error))
        return false;
    if (length == 0)
        return lh_config_fail(c, entry, error, "\"max-length\": found \"0\"; allowed: at least 1");
    lh_config_set_count(c, entry, LH_CONFIG_QUESTION, "seq_length", length);
    return true;
}

static bool
megatron_take(LhConfig *c, GError **error)
{
    return lh_config_megatron_take_model(c, error) && take_length(c, error) &&
           lh_config_megatron_take_context(c, error) && lh_config_megatron_take_window(c, error) &&
           lh_config_megatron_take_recomputation(c, error) &&
           lh_config_megatron_take_sharding(c, error) &&
           lh_config_megatron_take_offload(c, error) &&
           lh_config_megatron_take_pipeline(c, error) && take_precision(c, error) &&
           take_loss(c, error) && take_states(c, error) &&
           lh_config_megatron_take_optimizer(c, error) && take_ranks(c, error);
}

/* ---- writing a way of training ---- */

static bool
megatron_allows(const LhConfigWay *way)
{
    return way->checkpoint != LH_CHECKPOINT_REMAT && way->order != LH_PIPELINE_GPIPE &&
           (way->recompute.layers == 0 || way->recompute.method != LH_RECOMPUTE_EVERY);
}

const LhConfigSystem lh_config_megatron = {
    .name = "Megatron-LM",
    .framework = "megatron-lm",
    .last_word = true,
    .keys = lh_config_megatron_keys,
    .schedules = lh_config_megatron_schedules,
    .take = megatron_take,
    .allows = megatron_allows,
    .say = lh_config_megatron_say,
};
