/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table of families: one row per family, not per model; sizes are in the files. Defaults are
 * those of the configuration class in the family's own code.
 */
#include "model/families_private.h"

#include <glib.h>
#include <string.h>

const char *const lh_hf_text_parts[] = {
    "text_config", "llm_config", "language_config", "thinker_config.text_config",
    "text_model",  NULL,
};

const LhHfWrapper lh_hf_wrappers[] = {
    { "gemma3", "gemma3_text" },
    { "llama4", "llama4_text" },
    { "llava", "llama" },
    { "llava_next", "llama" },
    { "vipllava", "llama" },
    { "video_llava", "llama" },
    { "deepseek_vl", "llama" },
    { "multi_modality", "llama" },
    { "deepseek_vl_v2", "deepseek_v2" },
    { "paligemma", "gemma" },
    { "mistral3", "mistral" },
    { "pixtral", "mistral" },
    { "idefics2", "mistral" },
    { "idefics3", "llama" },
    { "smolvlm", "llama" },
    { "aya_vision", "cohere2" },
    { "qwen2_vl", "qwen2_vl" },
    { "qwen2_5_vl", "qwen2_5_vl" },
    { "qwen2_5_omni", "qwen2" },
    { "qwen2_audio", "qwen2" },
    { "qwen3_5", "qwen3_5_text" },
    { "qwen3_5_moe", "qwen3_5_moe_text" },
    { "qwen3_vl", "qwen3_vl_text" },
    { "qwen3_vl_moe", "qwen3_vl_moe_text" },
    { "glm4v", "glm4v_text" },
    { "glm4v_moe", "glm4v_moe_text" },
    { "kimi_vl", "deepseek_v3" },
    { "kimi_k25", "kimi_k2" },
    { "step3_vl", "step3_text" },
    { "ernie4_5_moe_vl", "ernie4_5_moe" },
    { "minimax_m3_vl", "minimax_m3" },
    { "llava_next_video", "llama" },
    { "llava_onevision", "qwen2" },
    { "perception_lm", "llama" },
    { "janus", "llama" },
    { "deepseek_vl_hybrid", "llama" },
    { "internvl", "qwen2" },
    { "got_ocr2", "qwen2" },
    { "audioflamingo3", "qwen2" },
    { "granite_speech", "granite" },
    { "glm46v", "glm4v_text" },
    { "lfm2_vl", "lfm2" },
    { "blip_2", "opt" },
    { "instructblip", "opt" },
    { "instructblipvideo", "opt" },
    { "shieldgemma2", "gemma3_text" },
    { "cohere2_vision", "cohere2" },
    { NULL, NULL },
};

const LhHfKey lh_hf_common_keys[] = {
    NUMBER("vocab_size", VOCAB),
    IS_SO("tie_word_embeddings", TIED),
    { .name = "rope_theta", .type = LH_HF_REAL, .slot = LH_HF_ROTARY_BASE },
    { .name = "rope_parameters.rope_theta", .type = LH_HF_REAL, .slot = LH_HF_ROTARY_BASE },
    NOT_TRUE("is_encoder_decoder", "a decoder that attends to an encoder's output"),
    NOT_TRUE("add_cross_attention", "attention to another model's output"),
    NOT_MODELLED("cross_attention_hidden_size", "attention to another model's output"),
    NOT_MODELLED("pruned_heads", "layers with different numbers of heads"),
    END,
};

/* If several rows contain the same word, the first counts. */
const LhHfFamily *const lh_hf_families[] = {
    lh_hf_families_llama,    lh_hf_families_qwen,       lh_hf_families_gemma,
    lh_hf_families_deepseek, lh_hf_families_experts,    lh_hf_families_gpt,
    lh_hf_families_encoders, lh_hf_families_unmodelled, NULL,
};

bool
lh_hf_has_word(const char *words, const char *word)
{
    const gsize length = strlen(word);

    for (const char *at = words; at != NULL && *at != '\0'; at += strspn(at, " ")) {
        const gsize span = strcspn(at, " ");

        if (span == length && strncmp(at, word, length) == 0)
            return true;
        at += span;
    }
    return false;
}

const LhHfFamily *
lh_hf_family(const char *model_type)
{
    for (const LhHfFamily *const *kin = lh_hf_families; *kin != NULL; kin++) {
        for (const LhHfFamily *f = *kin; f->model_types != NULL; f++) {
            if (lh_hf_has_word(f->model_types, model_type))
                return f;
        }
    }
    return NULL;
}

const LhHfFamily *
lh_hf_family_of_architecture(const char *architecture)
{
    for (const LhHfFamily *const *kin = lh_hf_families; *kin != NULL; kin++) {
        for (const LhHfFamily *f = *kin; f->model_types != NULL; f++) {
            if (lh_hf_has_word(f->architectures, architecture))
                return f;
        }
    }
    return NULL;
}
