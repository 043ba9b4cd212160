/* SPDX-License-Identifier: Apache-2.0 */
/* Qwen and Gemma. */
#include "model/families_private.h"

/* For a class whose layers all have the window; max_window_layers has no effect. */
static const LhHfKey same_windows[] = {
    NUMBER("sliding_window", WINDOW),
    IS_SO("use_sliding_window", USE_WINDOW),
    NUMBER("max_window_layers", NONE),
    END,
};

static const LhHfKey qwen_shared[] = {
    NUMBER("shared_expert_intermediate_size", SHARED_FFN),
    END,
};

static const LhHfKey qwen_experts[] = {
    NUMBER("decoder_sparse_step", MOE_PHASE_LAST),
    ANY("mlp_only_layers", DENSE_LAYERS),
    END,
};

static const LhHfKey qwen[] = {
    NUMBER("kv_channels", HEAD_DIM),
    NUMBER("seq_length", NONE), /* used in training only */
    NUMBER("padded_vocab_size", NONE),
    NUMBER("n_embd", HIDDEN),
    NUMBER("n_layer", LAYERS),
    NUMBER("n_head", HEADS),
    NUMBER("n_positions", NONE),
    NUMBER("n_inner", FFN),
    NUMBER("ffn_hidden_size", FFN),
    NUMBER("ffn_inter_padding_size", NONE),
    NOT("no_bias", BIASES),
    { .name = "rotary_emb_base", .type = LH_HF_REAL, .slot = LH_HF_ROTARY_BASE },
    END,
};

static const LhHfKey causal_or_not[] = { NOT("is_causal", BIDIRECTIONAL), END };

static const LhHfKey gemma_both[] = {
    NOT_TRUE("use_bidirectional_attention", "windows to both sides"),
    END,
};

const LhHfFamily lh_hf_families_qwen[] = {
    { .model_types = "qwen",
      .architectures = "QWenLMHeadModel",
      .keys = KEYS(lh_hf_sizes, qwen),
      .defaults = { D(QKV_BIAS, 1), D(FFN_HALVES, 1), D(HIDDEN, 4096), D(LAYERS, 32), D(HEADS, 32),
                    D(FFN, 22016), D(VOCAB, 151936) } },
    { .model_types = "qwen2",
      .architectures = "Qwen2ForCausalLM",
      .keys = KEYS(lh_hf_sizes, lh_hf_groups, lh_hf_qkv_biases, lh_hf_windows, causal_or_not),
      .defaults = { D(QKV_BIAS, 1), D(HIDDEN, 4096), D(LAYERS, 32), D(HEADS, 32), D(GROUPS, 32),
                    D(FFN, 22016), D(VOCAB, 151936), D(WINDOW, 4096), D(WINDOW_FIRST, 28) } },
    { .model_types = "qwen2_vl qwen2_vl_text qwen2_5_vl qwen2_5_vl_text",
      .architectures = "Qwen2VLForConditionalGeneration Qwen2_5_VLForConditionalGeneration",
      .keys = KEYS(lh_hf_sizes, lh_hf_groups, lh_hf_qkv_biases, lh_hf_windows),
      .defaults = { D(QKV_BIAS, 1), D(HIDDEN, 8192), D(LAYERS, 80), D(HEADS, 64), D(GROUPS, 8),
                    D(FFN, 29568), D(VOCAB, 152064), D(WINDOW, 4096), D(WINDOW_FIRST, 80) } },
    { .model_types = "qwen2_5_omni_text",
      .architectures = "Qwen2_5OmniForConditionalGeneration",
      .keys = KEYS(lh_hf_sizes, lh_hf_groups, lh_hf_qkv_biases, lh_hf_windows),
      .defaults = { D(QKV_BIAS, 1), D(HIDDEN, 3584), D(LAYERS, 28), D(HEADS, 28), D(GROUPS, 4),
                    D(FFN, 18944), D(VOCAB, 152064), D(WINDOW, 32768), D(WINDOW_FIRST, 28) } },
    { .model_types = "qwen2_moe",
      .architectures = "Qwen2MoeForCausalLM",
      .keys = KEYS(lh_hf_sizes, lh_hf_groups, lh_hf_qkv_biases, lh_hf_windows, lh_hf_experts,
                   qwen_experts, qwen_shared),
      .defaults = { D(QKV_BIAS, 1), D(SHARED_GATE, 1), D(HIDDEN, 2048), D(LAYERS, 24), D(HEADS, 16),
                    D(GROUPS, 16), D(FFN, 5632), D(VOCAB, 151936), D(EXPERTS, 60),
                    D(EXPERTS_PER_TOKEN, 4), D(EXPERT_FFN, 1408), D(SHARED_FFN, 5632),
                    D(WINDOW, 4096), D(WINDOW_FIRST, 28) } },
    { .model_types = "qwen3 qwen3_vl_text",
      .architectures = "Qwen3ForCausalLM",
      .keys = KEYS(lh_hf_sizes, lh_hf_groups, lh_hf_biases, lh_hf_windows),
      .defaults = { D(QK_NORM, 1), D(HIDDEN, 4096), D(LAYERS, 32), D(HEADS, 32), D(GROUPS, 32),
                    D(HEAD_DIM, 128), D(FFN, 22016), D(VOCAB, 151936), D(WINDOW, 4096),
                    D(WINDOW_FIRST, 28) } },
    { .model_types = "qwen3_vl_moe_text",
      .architectures = "Qwen3VLMoeForConditionalGeneration",
      .keys = KEYS(lh_hf_sizes, lh_hf_groups, lh_hf_biases, same_windows, lh_hf_experts,
                   qwen_experts, lh_hf_qk_norms),
      .defaults = { D(QK_NORM, 1), D(HIDDEN, 2048), D(LAYERS, 24), D(HEADS, 16), D(GROUPS, 16),
                    D(FFN, 5632), D(VOCAB, 151936), D(EXPERTS, 60), D(EXPERTS_PER_TOKEN, 4),
                    D(EXPERT_FFN, 1408) } },
    { .model_types = "qwen3_omni_moe_text",
      .architectures = "Qwen3OmniMoeForConditionalGeneration",
      .keys = KEYS(lh_hf_sizes, lh_hf_groups, lh_hf_biases, same_windows, lh_hf_experts,
                   qwen_experts, lh_hf_qk_norms),
      .defaults = { D(QK_NORM, 1), D(HIDDEN, 2048), D(LAYERS, 28), D(HEADS, 28), D(GROUPS, 4),
                    D(FFN, 18944), D(VOCAB, 3584), D(EXPERTS, 128), D(EXPERTS_PER_TOKEN, 8),
                    D(EXPERT_FFN, 768), D(USE_WINDOW, 1) } },
    { .model_types = "qwen3_moe",
      .architectures = "Qwen3MoeForCausalLM",
      .keys = KEYS(lh_hf_sizes, lh_hf_groups, lh_hf_biases, same_windows, lh_hf_experts,
                   qwen_experts, lh_hf_qkv_biases, lh_hf_qk_norms),
      .defaults = { D(QK_NORM, 1), D(HIDDEN, 2048), D(LAYERS, 24), D(HEADS, 32), D(GROUPS, 4),
                    D(FFN, 6144), D(VOCAB, 151936), D(EXPERTS, 128), D(EXPERTS_PER_TOKEN, 8),
                    D(EXPERT_FFN, 768), D(WINDOW, 4096) } },
    { .model_types = "qwen3_next qwen3_5_text qwen3_5_moe_text qwen3_5 qwen3_5_moe",
      .architectures = "Qwen3NextForCausalLM",
      .refused = "Gated DeltaNet layers",
      .refused_by = "linear_num_value_heads full_attention_interval layer_types" },
    { .model_types = NULL },
};

const LhHfFamily lh_hf_families_gemma[] = {
    { .model_types = "gemma",
      .architectures = "GemmaForCausalLM",
      .keys = KEYS(lh_hf_sizes, lh_hf_groups, lh_hf_biases),
      .defaults = { D(TIED, 1), D(HIDDEN, 3072), D(LAYERS, 28), D(HEADS, 16), D(GROUPS, 16),
                    D(HEAD_DIM, 256), D(FFN, 24576), D(VOCAB, 256000) } },
    { .model_types = "gemma2",
      .architectures = "Gemma2ForCausalLM",
      .keys = KEYS(lh_hf_sizes, lh_hf_groups, lh_hf_biases, lh_hf_windows, lh_hf_patterns),
      .defaults = { D(TIED, 1), D(NORMS, 4), D(HIDDEN, 2304), D(LAYERS, 26), D(HEADS, 8),
                    D(GROUPS, 4), D(HEAD_DIM, 256), D(FFN, 9216), D(VOCAB, 256000), D(WINDOW, 4096),
                    D(WINDOW_PATTERN, 2), D(USE_WINDOW, 1) } },
    { .model_types = "gemma3_text",
      .architectures = "Gemma3ForCausalLM",
      .keys =
          KEYS(lh_hf_sizes, lh_hf_groups, lh_hf_biases, lh_hf_windows, lh_hf_patterns, gemma_both),
      .defaults = { D(TIED, 1), D(NORMS, 4), D(QK_NORM, 1), D(HIDDEN, 2304), D(LAYERS, 26),
                    D(HEADS, 8), D(GROUPS, 4), D(HEAD_DIM, 256), D(FFN, 9216), D(VOCAB, 262208),
                    D(WINDOW, 4096), D(WINDOW_PATTERN, 6), D(USE_WINDOW, 1) } },
    { .model_types = "gemma3n gemma3n_text",
      .architectures = "Gemma3nForConditionalGeneration",
      .refused = "embeddings in every layer, and layers that share keys and values",
      .refused_by = "altup_num_inputs num_kv_shared_layers hidden_size_per_layer_input" },
    { .model_types = "gemma4 gemma4_text",
      .architectures = "Gemma4ForConditionalGeneration",
      .refused = "layers with attention of different shapes",
      .refused_by = "global_head_dim num_global_key_value_heads attention_k_eq_v" },
    { .model_types = NULL },
};
