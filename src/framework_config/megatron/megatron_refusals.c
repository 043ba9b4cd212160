/* SPDX-License-Identifier: Apache-2.0 */
#include "framework_config/megatron/megatron_refusals.h"

#include "framework_config/common/config_messages.h"
#include "framework_config/common/config_values.h"

#include <string.h>

bool
lh_config_megatron_refuse_layers(const LhConfig *c, GError **error)
{
    static const struct {
        const char *name, *why;
        bool never;
    } rows[] = {
        { "multi-latent-attention", "its heads have different widths for q, k and for v" },
        { "hybrid-layer-pattern", "it mixes kinds of layers" },
        { "hybrid-override-pattern", "it mixes kinds of layers" },
        { "is-hybrid-model", "it mixes kinds of layers" },
        { "experimental-attention-variant", "its kind of attention is not supported" },
        { "heterogeneous-layers-config-path", "its layers differ in shape" },
        { "hybrid-attention-ratio", "it mixes kinds of layers" },
        { "hybrid-mlp-ratio", "it mixes kinds of layers" },
        { "encoder-num-layers", "it is an encoder with a decoder", true },
        { "decoder-num-layers", "it is an encoder with a decoder", true },
        { "bert-no-binary-head", "it is an encoder", true },
        { "bert-binary-head", "it is an encoder", true },
        { "language-model-type", "it is a vision-language model", true },
        { "vision-model-type", "it is a vision-language model", true },
        { "vision-pretraining", "it is a vision model", true },
        { "retro-project-dir", "it has cross-attention to retrieved text", true },
    };

    for (guint i = 0; i < G_N_ELEMENTS(rows); i++) {
        const LhSettingsEntry *entry = lh_config_entry(c, rows[i].name);
        g_autofree char *text = entry != NULL ? lh_settings_entry_text(entry) : NULL;

        if (entry != NULL &&
            (strcmp(text, "false") != 0 || strcmp(rows[i].name, "bert-binary-head") == 0))
            return lh_config_fail(
                c, entry, error,
                "\"%s\": %s, which %s; remove the option and name a similar model with --model",
                rows[i].name, rows[i].why,
                rows[i].never ? "is not supported" : "a later version will support");
    }
    return true;
}

bool
lh_config_megatron_refuse_program(const LhConfig *c, GError **error)
{
    static const struct {
        const char *name, *why;
    } rows[] = {
        { "pretrain_bert.py", "an encoder" },
        { "pretrain_t5.py", "an encoder with a decoder" },
        { "pretrain_ict.py", "an encoder" },
        { "pretrain_retro.py", "a decoder with cross-attention" },
        { "pretrain_mamba.py", "a model that mixes kinds of layers" },
        { "pretrain_vlm.py", "a vision-language model" },
        { "pretrain_vision_classify.py", "a vision model" },
        { "pretrain_vision_dino.py", "a vision model" },
        { "pretrain_vision_inpaint.py", "a vision model" },
    };
    const GPtrArray *programs = c->entries->programs;

    for (guint i = 0; programs != NULL && i < programs->len; i++) {
        const LhSettingsEntry *program = g_ptr_array_index(programs, i);
        g_autofree char *base = g_path_get_basename(g_ptr_array_index(program->values, 0));

        for (guint k = 0; k < G_N_ELEMENTS(rows); k++) {
            if (strcmp(base, rows[k].name) == 0)
                return lh_config_fail(
                    c, program, error,
                    "%s trains %s, which is not supported; only text decoders are", base,
                    rows[k].why);
        }
    }
    return true;
}

bool
lh_config_megatron_refuse_stacks(const LhConfig *c, GError **error)
{
    for (guint i = 0; i < c->entries->entries->len; i++) {
        const LhSettingsEntry *entry = g_ptr_array_index(c->entries->entries, i);

        if (strstr(entry->path, "model.encoder.") != NULL)
            return lh_config_fail(c, entry, error,
                                  "\"%.60s\": it is an encoder with a decoder, which is not "
                                  "supported; only text decoders are",
                                  entry->path);
    }
    return true;
}
