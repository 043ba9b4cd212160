/* SPDX-License-Identifier: Apache-2.0 */
/* Keys that several families share. */
#include "model/families_private.h"

const LhHfKey lh_hf_sizes[] = {
    NUMBER("hidden_size", HIDDEN),
    NUMBER("num_hidden_layers", LAYERS),
    NUMBER("num_attention_heads", HEADS),
    NUMBER("intermediate_size", FFN),
    NUMBER("max_position_embeddings", POSITIONS),
    END,
};

const LhHfKey lh_hf_groups[] = {
    NUMBER("num_key_value_heads", GROUPS),
    NUMBER("head_dim", HEAD_DIM),
    IS_SO("is_decoder", DECODER),
    END,
};

/* Biases of attention's four matrices or its first three, and of the MLP's. */
const LhHfKey lh_hf_biases[] = {
    IS_SO("attention_bias", QKV_BIAS),
    IS_SO("attention_bias", O_BIAS),
    IS_SO("mlp_bias", MLP_BIAS),
    END,
};

const LhHfKey lh_hf_qkv_biases[] = {
    IS_SO("attention_bias", QKV_BIAS),
    IS_SO("qkv_bias", QKV_BIAS),
    IS_SO("mlp_bias", MLP_BIAS),
    END,
};

const LhHfKey lh_hf_windows[] = {
    NUMBER("sliding_window", WINDOW),
    IS_SO("use_sliding_window", USE_WINDOW),
    NUMBER("max_window_layers", WINDOW_FIRST),
    { .name = "layer_types", .type = LH_HF_WORDS, .slot = LH_HF_LAYER_TYPES },
    END,
};

const LhHfKey lh_hf_patterns[] = {
    ANY("sliding_window_pattern", WINDOW_PATTERN),
    ANY("_sliding_window_pattern", WINDOW_PATTERN),
    NUMBER("sliding_window_size", WINDOW),
    END,
};

const LhHfKey lh_hf_experts[] = {
    NUMBER("num_experts", EXPERTS),
    NUMBER("num_local_experts", EXPERTS),
    NUMBER("n_routed_experts", EXPERTS),
    NUMBER("num_experts_per_tok", EXPERTS_PER_TOKEN),
    NUMBER("num_experts_per_token", EXPERTS_PER_TOKEN),
    NUMBER("experts_per_token", EXPERTS_PER_TOKEN),
    NUMBER("moe_intermediate_size", EXPERT_FFN),
    END,
};

const LhHfKey lh_hf_latent[] = {
    NUMBER("qk_nope_head_dim", QK_NOPE),
    NUMBER("qk_rope_head_dim", QK_ROPE),
    NUMBER("v_head_dim", V_DIM),
    NUMBER("q_lora_rank", Q_RANK),
    NUMBER("kv_lora_rank", KV_RANK),
    NOT("use_mla", NO_LATENT),
    END,
};

const LhHfKey lh_hf_phi3[] = {
    IS_SO("lm_head_bias", HEAD_BIAS),
    IS_SO("attention_bias", QKV_BIAS),
    IS_SO("attention_bias", O_BIAS),
    IS_SO("mlp_bias", MLP_BIAS),
    END,
};

const LhHfKey lh_hf_qk_norms[] = {
    IS_SO("use_qk_norm", QK_NORM),
    IS_SO("qk_layernorm", QK_NORM),
    END,
};

const LhHfKey lh_hf_ernie[] = {
    IS_SO("use_bias", QKV_BIAS),
    IS_SO("use_bias", O_BIAS),
    IS_SO("use_bias", MLP_BIAS),
    NUMBER("moe_num_experts", EXPERTS),
    NUMBER("moe_k", EXPERTS_PER_TOKEN),
    NUMBER("moe_intermediate_size", EXPERT_FFN),
    NUMBER("moe_num_shared_experts", SHARED_EXPERTS),
    NUMBER("moe_layer_start_index", DENSE_FIRST),
    { .name = "moe_layer_end_index", .type = LH_HF_SIGNED, .slot = LH_HF_MOE_LAST },
    NUMBER("moe_layer_interval", MOE_PHASE_LAST),
    END,
};

const LhHfKey lh_hf_hunyuan[] = {
    ANY("moe_topk", EXPERTS_PER_TOKEN),
    ANY("moe_intermediate_size", EXPERT_FFN),
    ANY("num_shared_expert", SHARED_EXPERTS),
    NUMBER("num_experts", EXPERTS),
    NUMBER("moe_layer_num_skipped", DENSE_FIRST),
    NUMBER("attention_head_dim", HEAD_DIM),
    IS_SO("use_mixed_mlp_moe", NONE),
    IS_SO("use_qk_norm", QK_NORM),
    NOT_TRUE("use_cla", "layers that share keys and values (cross-layer attention)"),
    NUMBER("cla_share_factor", NONE),
    NOT_TRUE("use_mla", "latent attention that replaces the shape of the other keys"),
    NUMBER("kv_lora_rank", NONE),
    NUMBER("q_lora_rank", NONE),
    NUMBER("qk_nope_head_dim", NONE),
    NUMBER("qk_rope_head_dim", NONE),
    NUMBER("v_head_dim", NONE),
    ANY("dense_list", NONE),
    END,
};
