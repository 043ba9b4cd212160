/*
 * The table of families. A row per family, not per model: sizes stand in the files. Defaults are
 * those of the configuration class of the family's own code.
 */
#include "model/families.h"

#include <glib.h>
#include <string.h>

#define NUMBER(key, size)                                                                          \
    {                                                                                              \
        .name = (key), .type = LH_HF_NUMBER, .slot = LH_HF_##size                                  \
    }
#define IS_SO(key, fact)                                                                           \
    {                                                                                              \
        .name = (key), .type = LH_HF_TRUTH, .slot = LH_HF_##fact                                   \
    }
#define NOT(key, fact)                                                                             \
    {                                                                                              \
        .name = (key), .type = LH_HF_FALSE_TRUTH, .slot = LH_HF_##fact                             \
    }
#define ANY(key, size)                                                                             \
    {                                                                                              \
        .name = (key), .type = LH_HF_ANY, .slot = LH_HF_##size                                     \
    }
#define WORD(key, fact, word)                                                                      \
    {                                                                                              \
        .name = (key), .type = LH_HF_ONE_WORD, .slot = LH_HF_##fact, .text = (word)                \
    }
#define NOT_MODELLED(key, why)                                                                     \
    {                                                                                              \
        .name = (key), .type = LH_HF_NOT_MODELLED, .text = (why)                                   \
    }
#define NOT_TRUE(key, why)                                                                         \
    {                                                                                              \
        .name = (key), .type = LH_HF_NOT_TRUE, .text = (why)                                       \
    }
#define END                                                                                        \
    {                                                                                              \
        .name = NULL                                                                               \
    }

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

/* ---- keys that several families have ---- */

const LhHfKey lh_hf_common_keys[] = {
    NUMBER("vocab_size", VOCAB),
    IS_SO("tie_word_embeddings", TIED),
    { .name = "rope_theta", .type = LH_HF_REAL, .slot = LH_HF_ROTARY_BASE },
    { .name = "rope_parameters.rope_theta", .type = LH_HF_REAL, .slot = LH_HF_ROTARY_BASE },
    NOT_TRUE("is_encoder_decoder", "a decoder that attends to an encoder's output"),
    NOT_TRUE("add_cross_attention", "attention to another model's output"),
    NOT_MODELLED("cross_attention_hidden_size", "attention to another model's output"),
    NOT_MODELLED("pruned_heads", "layers of different numbers of heads"),
    END,
};

static const LhHfKey size_keys[] = {
    NUMBER("hidden_size", HIDDEN),
    NUMBER("num_hidden_layers", LAYERS),
    NUMBER("num_attention_heads", HEADS),
    NUMBER("intermediate_size", FFN),
    NUMBER("max_position_embeddings", POSITIONS),
    END,
};

static const LhHfKey groups[] = {
    NUMBER("num_key_value_heads", GROUPS),
    NUMBER("head_dim", HEAD_DIM),
    IS_SO("is_decoder", DECODER),
    END,
};

/* Attention's four matrices or its first three, and those of the MLP. */
static const LhHfKey biases[] = {
    IS_SO("attention_bias", QKV_BIAS),
    IS_SO("attention_bias", O_BIAS),
    IS_SO("mlp_bias", MLP_BIAS),
    END,
};

static const LhHfKey llama[] = { NUMBER("max_sequence_length", NONE), END };

static const LhHfKey qkv_biases[] = {
    IS_SO("attention_bias", QKV_BIAS),
    IS_SO("qkv_bias", QKV_BIAS),
    IS_SO("mlp_bias", MLP_BIAS),
    END,
};

static const LhHfKey windows[] = {
    NUMBER("sliding_window", WINDOW),
    IS_SO("use_sliding_window", USE_WINDOW),
    NUMBER("max_window_layers", WINDOW_FIRST),
    { .name = "layer_types", .type = LH_HF_WORDS, .slot = LH_HF_LAYER_TYPES },
    END,
};

/* Of a class whose layers all have the window, whatever max_window_layers says. */
static const LhHfKey same_windows[] = {
    NUMBER("sliding_window", WINDOW),
    IS_SO("use_sliding_window", USE_WINDOW),
    NUMBER("max_window_layers", NONE),
    END,
};

static const LhHfKey patterns[] = {
    ANY("sliding_window_pattern", WINDOW_PATTERN),
    ANY("_sliding_window_pattern", WINDOW_PATTERN),
    NUMBER("sliding_window_size", WINDOW),
    END,
};

static const LhHfKey experts[] = {
    NUMBER("num_experts", EXPERTS),
    NUMBER("num_local_experts", EXPERTS),
    NUMBER("n_routed_experts", EXPERTS),
    NUMBER("num_experts_per_tok", EXPERTS_PER_TOKEN),
    NUMBER("num_experts_per_token", EXPERTS_PER_TOKEN),
    NUMBER("experts_per_token", EXPERTS_PER_TOKEN),
    NUMBER("moe_intermediate_size", EXPERT_FFN),
    END,
};

/* DeepSeek's MoE, which many have taken over. */
static const LhHfKey deepseek_experts[] = {
    NUMBER("n_routed_experts", EXPERTS),
    NUMBER("n_shared_experts", SHARED_EXPERTS),
    NUMBER("num_shared_experts", SHARED_EXPERTS),
    NUMBER("first_k_dense_replace", DENSE_FIRST),
    ANY("moe_layer_freq", MOE_PHASE_FIRST),
    { .name = "mlp_layer_types", .type = LH_HF_WORDS, .slot = LH_HF_MLP_TYPES },
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

static const LhHfKey latent[] = {
    NUMBER("qk_nope_head_dim", QK_NOPE),
    NUMBER("qk_rope_head_dim", QK_ROPE),
    NUMBER("v_head_dim", V_DIM),
    NUMBER("q_lora_rank", Q_RANK),
    NUMBER("kv_lora_rank", KV_RANK),
    NOT("use_mla", NO_LATENT),
    END,
};

static const LhHfKey n_names[] = {
    NUMBER("n_embd", HIDDEN),
    NUMBER("hidden_size", HIDDEN),
    NUMBER("n_embed", HIDDEN),
    NUMBER("n_layer", LAYERS),
    NUMBER("num_hidden_layers", LAYERS),
    NUMBER("n_head", HEADS),
    NUMBER("num_attention_heads", HEADS),
    NUMBER("n_inner", FFN),
    NUMBER("n_positions", POSITIONS),
    NUMBER("n_ctx", POSITIONS),
    NUMBER("seq_length", POSITIONS),
    END,
};

/* ---- keys of one family ---- */

static const LhHfKey bigcode[] = { IS_SO("multi_query", MULTI_QUERY), END };

static const LhHfKey gpt_neo[] = {
    NUMBER("hidden_size", HIDDEN),
    NUMBER("num_layers", LAYERS),
    NUMBER("num_heads", HEADS),
    NUMBER("num_hidden_layers", LAYERS),
    NUMBER("num_attention_heads", HEADS),
    NUMBER("intermediate_size", FFN),
    NUMBER("max_position_embeddings", POSITIONS),
    NUMBER("window_size", WINDOW),
    { .name = "attention_layers", .type = LH_HF_WORDS, .slot = LH_HF_LAYER_TYPES },
    ANY("attention_types", NONE),
    END,
};

static const LhHfKey neox[] = {
    { .name = "rotary_emb_base", .type = LH_HF_REAL, .slot = LH_HF_ROTARY_BASE },
    IS_SO("attention_bias", BIASES),
    IS_SO("use_parallel_residual", NONE),
    END,
};

static const LhHfKey jais[] = {
    WORD("position_embedding_type", NO_ROTARY, "alibi"),
    END,
};

static const LhHfKey opt[] = {
    NUMBER("ffn_dim", FFN),
    NUMBER("word_embed_proj_dim", EMBEDDING),
    IS_SO("do_layer_norm_before", NONE),
    IS_SO("_remove_final_layer_norm", NONE),
    IS_SO("enable_bias", BIASES),
    IS_SO("layer_norm_elementwise_affine", NONE),
    END,
};

static const LhHfKey falcon[] = {
    NUMBER("num_kv_heads", GROUPS),
    NUMBER("n_head_kv", GROUPS),
    NUMBER("ffn_hidden_size", FFN),
    NUMBER("max_position_embeddings", POSITIONS),
    NUMBER("num_ln_in_parallel_attn", NORMS),
    IS_SO("multi_query", MULTI_QUERY),
    IS_SO("new_decoder_architecture", GROUPED),
    IS_SO("alibi", NO_ROTARY),
    IS_SO("bias", BIASES),
    IS_SO("parallel_attn", NONE),
    END,
};

static const LhHfKey mpt[] = {
    NUMBER("d_model", HIDDEN),
    NUMBER("n_layers", LAYERS),
    NUMBER("n_heads", HEADS),
    NUMBER("expansion_ratio", FFN_TIMES),
    NUMBER("max_seq_len", POSITIONS),
    IS_SO("learned_pos_emb", LEARNED),
    NOT("no_bias", BIASES),
    NUMBER("attn_config.kv_n_heads", GROUPS),
    IS_SO("attn_config.alibi", NO_ROTARY),
    IS_SO("attn_config.qk_ln", QK_NORM_HEADS),
    NOT_TRUE("attn_config.prefix_lm", "a prefix that sees all of itself"),
    END,
};

static const LhHfKey dbrx[] = {
    NUMBER("d_model", HIDDEN),
    NUMBER("n_layers", LAYERS),
    NUMBER("n_heads", HEADS),
    NUMBER("max_seq_len", POSITIONS),
    NUMBER("attn_config.kv_n_heads", GROUPS),
    { .name = "attn_config.rope_theta", .type = LH_HF_REAL, .slot = LH_HF_ROTARY_BASE },
    NUMBER("ffn_config.ffn_hidden_size", FFN),
    ANY("ffn_config.ffn_act_fn", NONE),
    NUMBER("ffn_config.moe_num_experts", EXPERTS),
    NUMBER("ffn_config.moe_top_k", EXPERTS_PER_TOKEN),
    END,
};

static const LhHfKey chatglm[] = {
    NUMBER("num_layers", LAYERS),
    NUMBER("ffn_hidden_size", FFN),
    NUMBER("kv_channels", HEAD_DIM),
    NUMBER("padded_vocab_size", VOCAB),
    NUMBER("seq_length", POSITIONS),
    NUMBER("multi_query_group_num", GROUPS),
    IS_SO("multi_query_attention", UNGROUPED),
    IS_SO("add_qkv_bias", QKV_BIAS),
    IS_SO("add_bias_linear", BIASES),
    NOT_TRUE("position_encoding_2d", "a prefix that sees all of itself (GLM's mask)"),
    END,
};

static const LhHfKey qwen[] = {
    NUMBER("kv_channels", HEAD_DIM),
    NUMBER("seq_length", NONE), /* of training */
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

static const LhHfKey baichuan[] = { NUMBER("model_max_length", POSITIONS), END };
static const LhHfKey orion[] = { NUMBER("max_sequence_length", POSITIONS), END };

static const LhHfKey internlm[] = {
    IS_SO("bias", QKV_BIAS),
    IS_SO("bias", O_BIAS),
    IS_SO("qkv_bias", QKV_BIAS),
    END,
};

static const LhHfKey pangu[] = {
    IS_SO("bias", QKV_BIAS),
    IS_SO("bias", O_BIAS),
    END,
};

static const LhHfKey internlm3[] = {
    IS_SO("qkv_bias", QKV_BIAS),
    IS_SO("bias", O_BIAS),
    IS_SO("bias", MLP_BIAS),
    END,
};

static const LhHfKey cohere[] = { IS_SO("use_qk_norm", QK_NORM_HEADS), END };

static const LhHfKey cohere2[] = {
    WORD("position_embedding_type", NONE, "rope_gptj"),
    IS_SO("use_embedding_sharing", NONE), /* tie_word_embeddings decides */
    IS_SO("use_parallel_block", NONE),
    IS_SO("use_parallel_embedding", NONE),
    NOT("use_gated_activation", PLAIN),
    END,
};

static const LhHfKey seed_oss[] = {
    IS_SO("attention_bias", QKV_BIAS),
    IS_SO("attention_out_bias", O_BIAS),
    IS_SO("mlp_bias", MLP_BIAS),
    END,
};

static const LhHfKey apertus[] = {
    IS_SO("qk_norm", QK_NORM),
    IS_SO("post_norm", NONE),
    END,
};

static const LhHfKey exaone[] = { NUMBER("num_layers", LAYERS), END };

static const LhHfKey minicpm[] = {
    NOT_MODELLED("sparse_config", "attention to blocks of tokens that are chosen by the query"),
    END,
};

static const LhHfKey phi[] = {
    IS_SO("qk_layernorm", QK_NORM),
    NUMBER("n_head_kv", GROUPS),
    END,
};

static const LhHfKey phi3[] = {
    IS_SO("lm_head_bias", HEAD_BIAS),
    IS_SO("attention_bias", QKV_BIAS),
    IS_SO("attention_bias", O_BIAS),
    IS_SO("mlp_bias", MLP_BIAS),
    END,
};

static const LhHfKey stablelm[] = {
    IS_SO("use_qkv_bias", QKV_BIAS),
    IS_SO("qk_layernorm", QK_NORM_HEADS),
    IS_SO("use_parallel_residual", NONE),
    END,
};

static const LhHfKey starcoder2[] = { IS_SO("use_bias", BIASES), END };

static const LhHfKey qk_norms[] = {
    IS_SO("use_qk_norm", QK_NORM),
    IS_SO("qk_layernorm", QK_NORM),
    END,
};

static const LhHfKey wide_norms[] = {
    IS_SO("use_qk_norm", QK_NORM_HEADS),
    WORD("qk_norm_type", NONE, "per_layer"),
    END,
};

static const LhHfKey granite[] = {
    NUMBER("shared_intermediate_size", SHARED_FFN),
    NUMBER("num_local_experts", EXPERTS),
    NUMBER("num_experts_per_tok", EXPERTS_PER_TOKEN),
    END,
};

static const LhHfKey granite_hybrid[] = {
    WORD("position_embedding_type", NO_ROTARY, "nope"),
    { .name = "layer_types", .type = LH_HF_WORDS, .slot = LH_HF_LAYER_TYPES },
    { .name = "layers_block_type", .type = LH_HF_WORDS, .slot = LH_HF_LAYER_TYPES },
    /* of its Mamba-2 layers, which layer_types refuses if there are any */
    NUMBER("mamba_chunk_size", NONE),
    IS_SO("mamba_conv_bias", NONE),
    NUMBER("mamba_d_conv", NONE),
    NUMBER("mamba_d_head", NONE),
    NUMBER("mamba_d_state", NONE),
    NUMBER("mamba_expand", NONE),
    NUMBER("mamba_n_groups", NONE),
    NUMBER("mamba_n_heads", NONE),
    IS_SO("mamba_proj_bias", NONE),
    END,
};

static const LhHfKey ernie[] = {
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

static const LhHfKey hunyuan[] = {
    ANY("moe_topk", EXPERTS_PER_TOKEN),
    ANY("moe_intermediate_size", EXPERT_FFN),
    ANY("num_shared_expert", SHARED_EXPERTS),
    NUMBER("num_experts", EXPERTS),
    NUMBER("moe_layer_num_skipped", DENSE_FIRST),
    NUMBER("attention_head_dim", HEAD_DIM),
    IS_SO("use_mixed_mlp_moe", NONE),
    IS_SO("use_qk_norm", QK_NORM),
    NOT_TRUE("use_cla", "layers that share their keys and values (cross-layer attention)"),
    NUMBER("cla_share_factor", NONE),
    NOT_TRUE("use_mla", "latent attention in place of what the other keys say"),
    NUMBER("kv_lora_rank", NONE),
    NUMBER("q_lora_rank", NONE),
    NUMBER("qk_nope_head_dim", NONE),
    NUMBER("qk_rope_head_dim", NONE),
    NUMBER("v_head_dim", NONE),
    ANY("dense_list", NONE),
    END,
};

static const LhHfKey bailing[] = {
    IS_SO("use_bias", O_BIAS),
    IS_SO("use_qkv_bias", QKV_BIAS),
    IS_SO("use_qk_norm", QK_NORM),
    NUMBER("moe_shared_expert_intermediate_size", NONE),
    IS_SO("moe_router_enable_expert_bias", ROUTER_BIAS),
    IS_SO("moe_router_enable_routed_scaling", NONE),
    IS_SO("moe_router_enable_shared_expert", NONE),
    END,
};

static const LhHfKey dsa[] = {
    NUMBER("index_topk", TOP_K),
    NUMBER("index_n_heads", INDEX_HEADS),
    NUMBER("index_head_dim", INDEX_DIM),
    IS_SO("indexer_rope_interleave", NONE),
    NUMBER("index_topk_freq", NONE),
    ANY("index_topk_pattern", NONE),
    NUMBER("index_skip_topk_offset", NONE),
    IS_SO("index_share_for_mtp_iteration", NONE),
    { .name = "indexer_types", .type = LH_HF_WORDS, .slot = LH_HF_NONE },
    END,
};

static const LhHfKey kimi[] = {
    NOT_MODELLED("linear_attn_config", "layers of Kimi Delta Attention"),
    END,
};

static const LhHfKey llama4[] = {
    NUMBER("attention_chunk_size", CHUNK),
    ANY("no_rope_layers", ROPE_LAYERS),
    NUMBER("no_rope_layer_interval", NOPE_INTERVAL),
    NUMBER("interleave_moe_layer_step", MOE_PHASE_LAST),
    ANY("moe_layers", MOE_LAYERS),
    NUMBER("intermediate_size_mlp", DENSE_FFN),
    IS_SO("use_qk_norm", NONE), /* its norms have no weights */
    { .name = "layer_types", .type = LH_HF_WORDS, .slot = LH_HF_LAYER_TYPES },
    END,
};

static const LhHfKey no_rope[] = {
    ANY("no_rope_layers", ROPE_LAYERS),
    NUMBER("no_rope_layer_interval", NOPE_INTERVAL),
    NUMBER("global_attn_every_n_layers", WINDOW_PATTERN),
    END,
};

static const LhHfKey step3[] = {
    NUMBER("num_attention_groups", GROUPS),
    NUMBER("share_q_dim", Q_SHARED),
    NUMBER("share_expert_dim", SHARED_FFN),
    NUMBER("share_expert_dims", SHARED_FFN),
    NUMBER("moe_num_experts", EXPERTS),
    NUMBER("moe_top_k", EXPERTS_PER_TOKEN),
    NUMBER("moe_intermediate_size", EXPERT_FFN),
    ANY("moe_layers_enum", MOE_LAYERS),
    NUMBER("max_seq_len", POSITIONS),
    IS_SO("use_moe", NONE),
    IS_SO("use_moe_router_bias", ROUTER_BIAS),
    NUMBER("moe_every_n_layer", MOE_PHASE_FIRST),
    NUMBER("moe_layer_offset", NONE),
    END,
};

static const LhHfKey mimo_flash[] = {
    NOT_MODELLED("swa_num_key_value_heads", "layers of different numbers of key-value heads"),
    NOT_MODELLED("hybrid_layer_pattern", "layers of different numbers of key-value heads"),
    NOT_MODELLED("swa_num_attention_heads", "layers of different numbers of heads"),
    END,
};

static const LhHfKey minimax[] = {
    NUMBER("num_local_experts", EXPERTS),
    NUMBER("shared_intermediate_size", SHARED_FFN),
    IS_SO("use_routing_bias", ROUTER_BIAS),
    { .name = "attn_type_list", .type = LH_HF_ANY, .slot = LH_HF_ATTENTION_LIST },
    NOT_MODELLED("sparse_attention_config", "attention to blocks of tokens that the query chooses"),
    END,
};

static const LhHfKey arctic[] = {
    IS_SO("use_residual", NONE),
    IS_SO("parallel_attn_mlp_res", SHARED_IS_WIDE),
    NUMBER("moe_layer_frequency", MOE_PHASE_LAST),
    END,
};

static const LhHfKey mllama[] = {
    NOT_MODELLED("cross_attention_layers", "layers that attend to an image"),
    END,
};

static const LhHfKey transnormer[] = {
    NUMBER("decoder_embed_dim", HIDDEN),
    NUMBER("hidden_dim", HIDDEN),
    NUMBER("decoder_layers", LAYERS),
    NUMBER("decoder_attention_heads", HEADS),
    NUMBER("glu_dim", FFN),
    NUMBER("max_position_embeddings", POSITIONS),
    END,
};

static const LhHfKey bert[] = {
    NUMBER("type_vocab_size", TYPES),
    NUMBER("embedding_size", EMBEDDING),
    IS_SO("is_decoder", DECODER),
    WORD("position_embedding_type", LEARNED, "absolute"),
    END,
};

static const LhHfKey distilbert[] = {
    NUMBER("dim", HIDDEN),
    NUMBER("n_layers", LAYERS),
    NUMBER("n_heads", HEADS),
    NUMBER("hidden_dim", FFN),
    IS_SO("sinusoidal_pos_embds", NONE),
    NUMBER("max_position_embeddings", POSITIONS),
    END,
};

static const LhHfKey causal_or_not[] = { NOT("is_causal", BIDIRECTIONAL), END };
static const LhHfKey gemma_both[] = {
    NOT_TRUE("use_bidirectional_attention", "windows to both sides"),
    END,
};

#define KEYS(...)                                                                                  \
    {                                                                                              \
        __VA_ARGS__                                                                                \
    }
#define D(fact, value)                                                                             \
    {                                                                                              \
        LH_HF_##fact, (value)                                                                      \
    }

const LhHfFamily lh_hf_families[] = {
    /* ---- Llama and those that share its code ---- */
    { .model_types = "llama llava Yi yi aquila xverse skywork",
      .architectures = "LlamaForCausalLM LLaMAForCausalLM YiForCausalLM AquilaForCausalLM",
      .keys = KEYS(size_keys, groups, biases, llama),
      .defaults = { D(HIDDEN, 4096), D(LAYERS, 32), D(HEADS, 32), D(FFN, 11008), D(VOCAB, 32000),
                    D(POSITIONS, 2048) } },
    { .model_types = "mistral",
      .architectures = "MistralForCausalLM",
      .keys = KEYS(size_keys, groups, windows),
      .defaults = { D(HIDDEN, 4096), D(LAYERS, 32), D(HEADS, 32), D(GROUPS, 8), D(FFN, 14336),
                    D(VOCAB, 32000), D(WINDOW, 4096), D(USE_WINDOW, 1) } },
    { .model_types = "ministral",
      .architectures = "MinistralForCausalLM",
      .keys = KEYS(size_keys, groups, windows),
      .defaults = { D(HIDDEN, 4096), D(LAYERS, 32), D(HEADS, 32), D(GROUPS, 8), D(FFN, 14336),
                    D(VOCAB, 32000), D(WINDOW, 4096), D(USE_WINDOW, 1) } },
    { .model_types = "ministral3",
      .architectures = "Ministral3ForCausalLM",
      .keys = KEYS(size_keys, groups, windows),
      .defaults = { D(HIDDEN, 4096), D(LAYERS, 34), D(HEADS, 32), D(GROUPS, 8), D(HEAD_DIM, 128),
                    D(FFN, 14336), D(VOCAB, 131072), D(USE_WINDOW, 1) } },
    { .model_types = "mixtral",
      .architectures = "MixtralForCausalLM",
      .keys = KEYS(size_keys, groups, windows, experts),
      .defaults = { D(HIDDEN, 4096), D(LAYERS, 32), D(HEADS, 32), D(GROUPS, 8), D(FFN, 14336),
                    D(VOCAB, 32000), D(EXPERTS, 8), D(EXPERTS_PER_TOKEN, 2), D(USE_WINDOW, 1) } },
    { .model_types = "smollm3",
      .architectures = "SmolLM3ForCausalLM",
      .keys = KEYS(size_keys, groups, biases, windows, no_rope),
      .defaults = { D(TIED, 1), D(NOPE_INTERVAL, 4), D(HIDDEN, 2048), D(LAYERS, 36), D(HEADS, 16),
                    D(GROUPS, 4), D(FFN, 11008), D(VOCAB, 128256) } },
    { .model_types = "seed_oss",
      .architectures = "SeedOssForCausalLM",
      .keys = KEYS(size_keys, groups, seed_oss),
      .defaults = { D(QKV_BIAS, 1), D(HIDDEN, 4096), D(LAYERS, 64), D(HEADS, 80), D(GROUPS, 8),
                    D(HEAD_DIM, 128), D(FFN, 27648), D(VOCAB, 155136) } },
    { .model_types = "apertus",
      .architectures = "ApertusForCausalLM",
      .keys = KEYS(size_keys, groups, biases, apertus),
      .defaults = { D(PLAIN, 1), D(QK_NORM, 1), D(HIDDEN, 4096), D(LAYERS, 32), D(HEADS, 32),
                    D(FFN, 14336), D(VOCAB, 131072) } },
    { .model_types = "arcee",
      .architectures = "ArceeForCausalLM",
      .keys = KEYS(size_keys, groups, biases),
      .defaults = { D(PLAIN, 1), D(HIDDEN, 2560), D(LAYERS, 32), D(HEADS, 32), D(FFN, 18432),
                    D(VOCAB, 32000) } },
    { .model_types = "bitnet",
      .architectures = "BitNetForCausalLM",
      .keys = KEYS(size_keys, groups, biases),
      .defaults = { D(FFN_NORM, 1), D(HIDDEN, 2560), D(LAYERS, 30), D(HEADS, 20), D(GROUPS, 5),
                    D(FFN, 6912), D(VOCAB, 128256) } },
    { .model_types = "helium",
      .architectures = "HeliumForCausalLM",
      .keys = KEYS(size_keys, groups, biases),
      .defaults = { D(HIDDEN, 2560), D(LAYERS, 24), D(HEADS, 20), D(GROUPS, 20), D(FFN, 7040),
                    D(VOCAB, 48000), D(HEAD_DIM, 128) } },
    { .model_types = "baichuan",
      .architectures = "BaichuanForCausalLM BaiChuanForCausalLM",
      .keys = KEYS(size_keys, baichuan),
      .defaults = { D(ROTARY_UP_TO, 4096), D(HIDDEN, 4096), D(LAYERS, 32), D(HEADS, 32),
                    D(FFN, 11008), D(VOCAB, 125696) } },
    { .model_types = "orion",
      .architectures = "OrionForCausalLM",
      .keys = KEYS(size_keys, groups, biases, orion),
      .defaults = { D(NORM_BIAS, 1), D(HIDDEN, 4096), D(LAYERS, 40), D(HEADS, 40), D(FFN, 15360),
                    D(VOCAB, 84608) } },
    { .model_types = "internlm",
      .architectures = "InternLMForCausalLM",
      .keys = KEYS(size_keys, groups, internlm),
      .defaults = { D(QKV_BIAS, 1), D(O_BIAS, 1), D(HIDDEN, 4096), D(LAYERS, 32), D(HEADS, 32),
                    D(FFN, 11008), D(VOCAB, 103168) } },
    { .model_types = "internlm2",
      .architectures = "InternLM2ForCausalLM",
      .keys = KEYS(size_keys, groups, internlm),
      .defaults = { D(QKV_BIAS, 1), D(O_BIAS, 1), D(HIDDEN, 4096), D(LAYERS, 32), D(HEADS, 32),
                    D(FFN, 11008), D(VOCAB, 103168) } },
    { .model_types = "PanguEmbedded",
      .architectures = "PanguEmbeddedForCausalLM",
      .keys = KEYS(size_keys, groups, pangu) },
    { .model_types = "internlm3",
      .architectures = "InternLM3ForCausalLM",
      .keys = KEYS(size_keys, groups, internlm3),
      .defaults = { D(HIDDEN, 4096), D(LAYERS, 32), D(HEADS, 32), D(GROUPS, 2), D(FFN, 11008),
                    D(VOCAB, 128512) } },
    { .model_types = "minicpm",
      .architectures = "MiniCPMForCausalLM",
      .keys = KEYS(size_keys, groups, biases, minicpm, experts),
      .defaults = { D(TIED, 1), D(HIDDEN, 4096), D(LAYERS, 32), D(HEADS, 32), D(FFN, 11008),
                    D(VOCAB, 32000) } },
    { .model_types = "minicpm3",
      .architectures = "MiniCPM3ForCausalLM",
      .keys = KEYS(size_keys, groups, biases, latent),
      .defaults = { D(TIED, 1), D(QK_NOPE, 64), D(QK_ROPE, 32), D(Q_RANK, 768), D(KV_RANK, 256) } },
    { .model_types = "exaone",
      .architectures = "ExaoneForCausalLM",
      .keys = KEYS(size_keys, groups, exaone),
      .defaults = { D(HIDDEN, 4096), D(LAYERS, 32), D(HEADS, 32), D(FFN, 14336),
                    D(VOCAB, 102400) } },
    { .model_types = "exaone4",
      .architectures = "Exaone4ForCausalLM",
      .keys = KEYS(size_keys, groups, windows, patterns),
      .defaults = { D(QK_NORM, 1), D(HIDDEN, 4096), D(LAYERS, 32), D(HEADS, 32), D(GROUPS, 32),
                    D(FFN, 16384), D(VOCAB, 102400), D(WINDOW, 4096), D(WINDOW_PATTERN, 4),
                    D(USE_WINDOW, 1) } },
    { .model_types = "solar",
      .refused = "layers that add what earlier ones have left (bskcn)",
      .refused_by = "bskcn_1" },
    { .model_types = "olmo",
      .architectures = "OlmoForCausalLM",
      .keys = KEYS(size_keys, groups, biases),
      .defaults = { D(NORM_BARE, 1), D(HIDDEN, 4096), D(LAYERS, 32), D(HEADS, 32), D(FFN, 11008),
                    D(VOCAB, 50304) } },
    { .model_types = "olmo2",
      .architectures = "Olmo2ForCausalLM",
      .keys = KEYS(size_keys, groups, biases),
      .defaults = { D(QK_NORM_HEADS, 1), D(HIDDEN, 4096), D(LAYERS, 32), D(HEADS, 32),
                    D(FFN, 11008), D(VOCAB, 50304) } },
    { .model_types = "olmo3",
      .architectures = "Olmo3ForCausalLM",
      .keys = KEYS(size_keys, groups, biases, windows),
      .defaults = { D(QK_NORM_HEADS, 1), D(HIDDEN, 4096), D(LAYERS, 32), D(HEADS, 32),
                    D(FFN, 11008), D(VOCAB, 50304), D(WINDOW, 4096), D(WINDOW_PATTERN, 4),
                    D(USE_WINDOW, 1) } },
    { .model_types = "olmoe",
      .architectures = "OlmoeForCausalLM",
      .keys = KEYS(size_keys, groups, biases, experts),
      .defaults = { D(QK_NORM_HEADS, 1), D(HIDDEN, 2048), D(LAYERS, 16), D(HEADS, 16), D(FFN, 2048),
                    D(VOCAB, 50304), D(EXPERTS, 64), D(EXPERTS_PER_TOKEN, 8) } },
    { .model_types = "flex_olmo",
      .architectures = "FlexOlmoForCausalLM",
      .keys = KEYS(size_keys, groups, biases, experts),
      .defaults = { D(QK_NORM_HEADS, 1), D(HIDDEN, 4096), D(LAYERS, 32), D(HEADS, 32),
                    D(FFN, 11008), D(VOCAB, 100352), D(EXPERTS, 7), D(EXPERTS_PER_TOKEN, 5) } },
    { .model_types = "granite",
      .architectures = "GraniteForCausalLM",
      .keys = KEYS(size_keys, groups, biases),
      .defaults = { D(HIDDEN, 4096), D(LAYERS, 32), D(HEADS, 32), D(FFN, 11008),
                    D(VOCAB, 32000) } },
    { .model_types = "granitemoe granitemoeshared",
      .architectures = "GraniteMoeForCausalLM GraniteMoeSharedForCausalLM",
      .keys = KEYS(size_keys, groups, biases, granite),
      .defaults = { D(HIDDEN, 4096), D(LAYERS, 32), D(HEADS, 32), D(FFN, 11008), D(VOCAB, 32000),
                    D(EXPERTS, 8), D(EXPERTS_PER_TOKEN, 2) } },
    { .model_types = "granitemoehybrid",
      .architectures = "GraniteMoeHybridForCausalLM",
      .keys = KEYS(size_keys, groups, biases, granite, granite_hybrid),
      .defaults = { D(LISTED, 1), D(HIDDEN, 4096), D(LAYERS, 32), D(HEADS, 32), D(FFN, 11008),
                    D(VOCAB, 32000), D(EXPERTS, 8), D(EXPERTS_PER_TOKEN, 2),
                    D(SHARED_FFN, 1024) } },
    { .model_types = "cohere",
      .architectures = "CohereForCausalLM",
      .keys = KEYS(size_keys, groups, biases, cohere),
      .defaults = { D(TIED, 1), D(NORMS, 1), D(HIDDEN, 8192), D(LAYERS, 40), D(HEADS, 64),
                    D(FFN, 22528), D(VOCAB, 256000) } },
    { .model_types = "cohere2",
      .architectures = "Cohere2ForCausalLM",
      .keys = KEYS(size_keys, groups, biases, windows, patterns, cohere2),
      .defaults = { D(TIED, 1), D(NORMS, 1), D(HIDDEN, 8192), D(LAYERS, 40), D(HEADS, 64),
                    D(FFN, 22528), D(VOCAB, 256000), D(WINDOW, 4096), D(WINDOW_PATTERN, 4),
                    D(USE_WINDOW, 1) } },
    { .model_types = "stablelm stablelm_epoch",
      .architectures = "StableLmForCausalLM StableLMEpochForCausalLM",
      .keys = KEYS(size_keys, groups, stablelm),
      .defaults = { D(NORM_BIAS, 1), D(HIDDEN, 2560), D(LAYERS, 32), D(HEADS, 32), D(GROUPS, 32),
                    D(FFN, 6912), D(VOCAB, 50304) } },
    { .model_types = "glm",
      .architectures = "GlmForCausalLM",
      .keys = KEYS(size_keys, groups, qkv_biases),
      .defaults = { D(QKV_BIAS, 1), D(HIDDEN, 4096), D(LAYERS, 40), D(HEADS, 32), D(GROUPS, 2),
                    D(HEAD_DIM, 128), D(FFN, 13696), D(VOCAB, 151552) } },
    { .model_types = "glm4 glm4v_text",
      .architectures = "Glm4ForCausalLM",
      .keys = KEYS(size_keys, groups, qkv_biases),
      .defaults = { D(NORMS, 4), D(QKV_BIAS, 1), D(HIDDEN, 4096), D(LAYERS, 40), D(HEADS, 32),
                    D(GROUPS, 2), D(HEAD_DIM, 128), D(FFN, 13696), D(VOCAB, 151552) } },
    { .model_types = "chatglm",
      .architectures = "ChatGLMModel ChatGLMForConditionalGeneration",
      .keys = KEYS(size_keys, chatglm),
      .defaults = { D(UNGROUPED, 0), D(HIDDEN, 4096), D(HEADS, 32), D(LAYERS, 28), D(FFN, 13696),
                    D(VOCAB, 65024), D(QKV_BIAS, 1) } },
    { .model_types = "hunyuan_v1_dense",
      .architectures = "HunYuanDenseV1ForCausalLM",
      .keys = KEYS(size_keys, groups, biases, hunyuan),
      .defaults = { D(QK_NORM, 1), D(HIDDEN, 4096), D(LAYERS, 32), D(HEADS, 32), D(FFN, 11008),
                    D(VOCAB, 290943) } },
    { .model_types = "ernie4_5",
      .architectures = "Ernie4_5_ForCausalLM Ernie4_5ForCausalLM",
      .keys = KEYS(size_keys, groups, ernie),
      .defaults = { D(TIED, 1), D(HIDDEN, 1024), D(LAYERS, 18), D(HEADS, 16), D(GROUPS, 2),
                    D(HEAD_DIM, 128), D(FFN, 3072), D(VOCAB, 103424) } },
    { .model_types = "mimo",
      .architectures = "MiMoForCausalLM",
      .keys = KEYS(size_keys, groups, qkv_biases, windows),
      .defaults = { D(QKV_BIAS, 1), D(GROUPS, 8), D(WINDOW_FIRST, 28) } },

    /* ---- Qwen ---- */
    { .model_types = "qwen",
      .architectures = "QWenLMHeadModel",
      .keys = KEYS(size_keys, qwen),
      .defaults = { D(QKV_BIAS, 1), D(FFN_HALVES, 1), D(HIDDEN, 4096), D(LAYERS, 32), D(HEADS, 32),
                    D(FFN, 22016), D(VOCAB, 151936) } },
    { .model_types = "qwen2",
      .architectures = "Qwen2ForCausalLM",
      .keys = KEYS(size_keys, groups, qkv_biases, windows, causal_or_not),
      .defaults = { D(QKV_BIAS, 1), D(HIDDEN, 4096), D(LAYERS, 32), D(HEADS, 32), D(GROUPS, 32),
                    D(FFN, 22016), D(VOCAB, 151936), D(WINDOW, 4096), D(WINDOW_FIRST, 28) } },
    { .model_types = "qwen2_vl qwen2_vl_text qwen2_5_vl qwen2_5_vl_text",
      .architectures = "Qwen2VLForConditionalGeneration Qwen2_5_VLForConditionalGeneration",
      .keys = KEYS(size_keys, groups, qkv_biases, windows),
      .defaults = { D(QKV_BIAS, 1), D(HIDDEN, 8192), D(LAYERS, 80), D(HEADS, 64), D(GROUPS, 8),
                    D(FFN, 29568), D(VOCAB, 152064), D(WINDOW, 4096), D(WINDOW_FIRST, 80) } },
    { .model_types = "qwen2_5_omni_text",
      .architectures = "Qwen2_5OmniForConditionalGeneration",
      .keys = KEYS(size_keys, groups, qkv_biases, windows),
      .defaults = { D(QKV_BIAS, 1), D(HIDDEN, 3584), D(LAYERS, 28), D(HEADS, 28), D(GROUPS, 4),
                    D(FFN, 18944), D(VOCAB, 152064), D(WINDOW, 32768), D(WINDOW_FIRST, 28) } },
    { .model_types = "qwen2_moe",
      .architectures = "Qwen2MoeForCausalLM",
      .keys = KEYS(size_keys, groups, qkv_biases, windows, experts, qwen_experts, qwen_shared),
      .defaults = { D(QKV_BIAS, 1), D(SHARED_GATE, 1), D(HIDDEN, 2048), D(LAYERS, 24), D(HEADS, 16),
                    D(GROUPS, 16), D(FFN, 5632), D(VOCAB, 151936), D(EXPERTS, 60),
                    D(EXPERTS_PER_TOKEN, 4), D(EXPERT_FFN, 1408), D(SHARED_FFN, 5632),
                    D(WINDOW, 4096), D(WINDOW_FIRST, 28) } },
    { .model_types = "qwen3 qwen3_vl_text",
      .architectures = "Qwen3ForCausalLM",
      .keys = KEYS(size_keys, groups, biases, windows),
      .defaults = { D(QK_NORM, 1), D(HIDDEN, 4096), D(LAYERS, 32), D(HEADS, 32), D(GROUPS, 32),
                    D(HEAD_DIM, 128), D(FFN, 22016), D(VOCAB, 151936), D(WINDOW, 4096),
                    D(WINDOW_FIRST, 28) } },
    { .model_types = "qwen3_vl_moe_text",
      .architectures = "Qwen3VLMoeForConditionalGeneration",
      .keys = KEYS(size_keys, groups, biases, same_windows, experts, qwen_experts, qk_norms),
      .defaults = { D(QK_NORM, 1), D(HIDDEN, 2048), D(LAYERS, 24), D(HEADS, 16), D(GROUPS, 16),
                    D(FFN, 5632), D(VOCAB, 151936), D(EXPERTS, 60), D(EXPERTS_PER_TOKEN, 4),
                    D(EXPERT_FFN, 1408) } },
    { .model_types = "qwen3_omni_moe_text",
      .architectures = "Qwen3OmniMoeForConditionalGeneration",
      .keys = KEYS(size_keys, groups, biases, same_windows, experts, qwen_experts, qk_norms),
      .defaults = { D(QK_NORM, 1), D(HIDDEN, 2048), D(LAYERS, 28), D(HEADS, 28), D(GROUPS, 4),
                    D(FFN, 18944), D(VOCAB, 3584), D(EXPERTS, 128), D(EXPERTS_PER_TOKEN, 8),
                    D(EXPERT_FFN, 768), D(USE_WINDOW, 1) } },
    { .model_types = "qwen3_moe",
      .architectures = "Qwen3MoeForCausalLM",
      .keys = KEYS(size_keys, groups, biases, same_windows, experts, qwen_experts, qkv_biases,
                   qk_norms),
      .defaults = { D(QK_NORM, 1), D(HIDDEN, 2048), D(LAYERS, 24), D(HEADS, 32), D(GROUPS, 4),
                    D(FFN, 6144), D(VOCAB, 151936), D(EXPERTS, 128), D(EXPERTS_PER_TOKEN, 8),
                    D(EXPERT_FFN, 768), D(WINDOW, 4096) } },
    { .model_types = "qwen3_next qwen3_5_text qwen3_5_moe_text qwen3_5 qwen3_5_moe",
      .architectures = "Qwen3NextForCausalLM",
      .refused = "layers of Gated DeltaNet",
      .refused_by = "linear_num_value_heads full_attention_interval layer_types" },

    /* ---- Gemma ---- */
    { .model_types = "gemma",
      .architectures = "GemmaForCausalLM",
      .keys = KEYS(size_keys, groups, biases),
      .defaults = { D(TIED, 1), D(HIDDEN, 3072), D(LAYERS, 28), D(HEADS, 16), D(GROUPS, 16),
                    D(HEAD_DIM, 256), D(FFN, 24576), D(VOCAB, 256000) } },
    { .model_types = "gemma2",
      .architectures = "Gemma2ForCausalLM",
      .keys = KEYS(size_keys, groups, biases, windows, patterns),
      .defaults = { D(TIED, 1), D(NORMS, 4), D(HIDDEN, 2304), D(LAYERS, 26), D(HEADS, 8),
                    D(GROUPS, 4), D(HEAD_DIM, 256), D(FFN, 9216), D(VOCAB, 256000), D(WINDOW, 4096),
                    D(WINDOW_PATTERN, 2), D(USE_WINDOW, 1) } },
    { .model_types = "gemma3_text",
      .architectures = "Gemma3ForCausalLM",
      .keys = KEYS(size_keys, groups, biases, windows, patterns, gemma_both),
      .defaults = { D(TIED, 1), D(NORMS, 4), D(QK_NORM, 1), D(HIDDEN, 2304), D(LAYERS, 26),
                    D(HEADS, 8), D(GROUPS, 4), D(HEAD_DIM, 256), D(FFN, 9216), D(VOCAB, 262208),
                    D(WINDOW, 4096), D(WINDOW_PATTERN, 6), D(USE_WINDOW, 1) } },
    { .model_types = "gemma3n gemma3n_text",
      .architectures = "Gemma3nForConditionalGeneration",
      .refused = "embeddings in every layer and layers that share their keys and values",
      .refused_by = "altup_num_inputs num_kv_shared_layers hidden_size_per_layer_input" },
    { .model_types = "gemma4 gemma4_text",
      .architectures = "Gemma4ForConditionalGeneration",
      .refused = "layers of different shapes of attention",
      .refused_by = "global_head_dim num_global_key_value_heads attention_k_eq_v" },

    /* ---- DeepSeek, and those that share its experts or its attention ---- */
    { .model_types = "deepseek",
      .architectures = "DeepseekForCausalLM",
      .keys = KEYS(size_keys, groups, biases, deepseek_experts, experts),
      .defaults = { D(HIDDEN, 4096), D(LAYERS, 30), D(HEADS, 32), D(FFN, 11008),
                    D(VOCAB, 102400) } },
    { .model_types = "deepseek_v2",
      .architectures = "DeepseekV2ForCausalLM",
      .keys = KEYS(size_keys, groups, biases, deepseek_experts, experts, latent),
      .defaults = { D(HIDDEN, 4096), D(LAYERS, 30), D(HEADS, 32), D(FFN, 11008), D(VOCAB, 102400),
                    D(EXPERT_FFN, 1407), D(KV_RANK, 512), D(Q_RANK, 1536), D(QK_ROPE, 64),
                    D(QK_NOPE, 128), D(V_DIM, 128) } },
    { .model_types = "glm4_moe_lite",
      .architectures = "Glm4MoeLiteForCausalLM",
      .keys = KEYS(size_keys, groups, biases, deepseek_experts, experts, latent),
      .defaults = { D(ROUTER_BIAS, 1), D(HIDDEN, 2048), D(LAYERS, 47), D(HEADS, 20), D(FFN, 10240),
                    D(VOCAB, 154880), D(EXPERT_FFN, 1536), D(SHARED_EXPERTS, 1), D(EXPERTS, 64),
                    D(EXPERTS_PER_TOKEN, 4), D(DENSE_FIRST, 1), D(KV_RANK, 512), D(Q_RANK, 768),
                    D(QK_ROPE, 64), D(QK_NOPE, 192), D(V_DIM, 256) } },
    { .model_types = "deepseek_v3 kimi_k2",
      .architectures = "DeepseekV3ForCausalLM",
      .keys = KEYS(size_keys, groups, biases, deepseek_experts, experts, latent, kimi),
      .defaults = { D(ROUTER_BIAS, 1), D(HIDDEN, 7168), D(LAYERS, 61), D(HEADS, 128), D(FFN, 18432),
                    D(VOCAB, 129280), D(EXPERT_FFN, 2048), D(SHARED_EXPERTS, 1), D(EXPERTS, 256),
                    D(EXPERTS_PER_TOKEN, 8), D(DENSE_FIRST, 3), D(KV_RANK, 512), D(Q_RANK, 1536),
                    D(QK_ROPE, 64), D(QK_NOPE, 128), D(V_DIM, 128) } },
    { .model_types = "deepseek_v32 glm_moe_dsa",
      .architectures = "DeepseekV32ForCausalLM GlmMoeDsaForCausalLM",
      .keys = KEYS(size_keys, groups, biases, deepseek_experts, experts, latent, dsa, windows),
      .defaults = { D(ROUTER_BIAS, 1), D(TOP_K, 2048), D(INDEX_HEADS, 64), D(INDEX_DIM, 128),
                    D(HIDDEN, 7168), D(LAYERS, 61), D(HEADS, 128), D(FFN, 18432), D(VOCAB, 129280),
                    D(EXPERT_FFN, 2048), D(SHARED_EXPERTS, 1), D(EXPERTS, 256),
                    D(EXPERTS_PER_TOKEN, 8), D(DENSE_FIRST, 3), D(KV_RANK, 512), D(Q_RANK, 1536),
                    D(QK_ROPE, 64), D(QK_NOPE, 128), D(V_DIM, 128) } },
    { .model_types = "deepseek_v4 deepseek_ref",
      .architectures = "DeepseekV4ForCausalLM",
      .refused = "attention to compressed tokens, and several residual streams",
      .refused_by = "compress_ratios hc_mult" },
    { .model_types = "dots1",
      .architectures = "Dots1ForCausalLM",
      .keys = KEYS(size_keys, groups, biases, windows, deepseek_experts, experts),
      .defaults = { D(QK_NORM, 1), D(ROUTER_BIAS, 1), D(HIDDEN, 4608), D(LAYERS, 62), D(HEADS, 32),
                    D(FFN, 10944), D(EXPERT_FFN, 1408), D(VOCAB, 152064), D(WINDOW, 4096),
                    D(WINDOW_FIRST, 62) } },
    { .model_types = "glm4v_moe_text",
      .architectures = "Glm4vMoeForConditionalGeneration",
      .keys = KEYS(size_keys, groups, qkv_biases, deepseek_experts, experts, qk_norms),
      .defaults = { D(ROUTER_BIAS, 1), D(QKV_BIAS, 1), D(HIDDEN, 4096), D(LAYERS, 46), D(HEADS, 96),
                    D(GROUPS, 8), D(FFN, 10944), D(VOCAB, 151424), D(EXPERTS, 128),
                    D(EXPERTS_PER_TOKEN, 8), D(EXPERT_FFN, 1408), D(SHARED_EXPERTS, 1),
                    D(DENSE_FIRST, 1) } },
    { .model_types = "glm4_moe",
      .architectures = "Glm4MoeForCausalLM",
      .keys = KEYS(size_keys, groups, qkv_biases, deepseek_experts, experts, qk_norms),
      .defaults = { D(ROUTER_BIAS, 1), D(HIDDEN, 4096), D(LAYERS, 46), D(HEADS, 96), D(GROUPS, 8),
                    D(FFN, 10944), D(VOCAB, 151552), D(EXPERTS, 128), D(EXPERTS_PER_TOKEN, 8),
                    D(EXPERT_FFN, 1408), D(SHARED_EXPERTS, 1), D(DENSE_FIRST, 1) } },
    { .model_types = "bailing_moe bailing_moe_v2",
      .architectures = "BailingMoeForCausalLM BailingMoeV2ForCausalLM",
      .keys = KEYS(size_keys, groups, windows, deepseek_experts, experts, bailing) },
    { .model_types = "bailing_moe_linear bailing_hybrid",
      .refused = "groups of layers of gated linear attention",
      .refused_by = "layer_group_size" },
    { .model_types = "ernie4_5_moe ernie4_5_moe_vl",
      .architectures = "Ernie4_5_MoeForCausalLM",
      .keys = KEYS(size_keys, groups, ernie),
      .defaults = { D(TIED, 1), D(ROUTER_BIAS, 1), D(HIDDEN, 2560), D(LAYERS, 28), D(HEADS, 20),
                    D(GROUPS, 4), D(FFN, 12288), D(VOCAB, 103424), D(EXPERTS, 64),
                    D(EXPERTS_PER_TOKEN, 6), D(EXPERT_FFN, 1536), D(DENSE_FIRST, 1) } },
    { .model_types = "hunyuan_v1_moe hunyuan hunyuan_moe",
      .architectures = "HunYuanMoEV1ForCausalLM HunYuanForCausalLM",
      .keys = KEYS(size_keys, groups, biases, hunyuan),
      .defaults = { D(HIDDEN, 4096), D(LAYERS, 32), D(HEADS, 32), D(FFN, 11008) } },
    { .model_types = "longcat_flash LongcatFlash",
      .architectures = "LongcatFlashForCausalLM",
      .refused = "layers of two attentions, and experts that do nothing",
      .refused_by = "zero_expert_num" },
    { .model_types = "kimi_linear kimi_k3",
      .architectures = "KimiLinearForCausalLM",
      .refused = "layers of Kimi Delta Attention",
      .refused_by = "linear_attn_config" },

    /* ---- other mixtures of experts ---- */
    { .model_types = "gpt_oss",
      .architectures = "GptOssForCausalLM",
      .keys = KEYS(size_keys, groups, biases, windows, experts),
      .defaults = { D(QKV_BIAS, 1), D(O_BIAS, 1), D(EXPERT_BIAS, 1), D(SINKS, 1), D(HIDDEN, 2880),
                    D(LAYERS, 36), D(HEADS, 64), D(GROUPS, 8), D(HEAD_DIM, 64), D(FFN, 2880),
                    D(VOCAB, 201088), D(EXPERTS, 128), D(EXPERTS_PER_TOKEN, 4), D(WINDOW, 128),
                    D(WINDOW_PATTERN, 2), D(USE_WINDOW, 1) } },
    { .model_types = "llama4_text llama4",
      .architectures = "Llama4ForCausalLM",
      .keys = KEYS(size_keys, groups, biases, experts, llama4),
      .defaults = { D(SHARED_EXPERTS, 1), D(HIDDEN, 5120), D(LAYERS, 48), D(HEADS, 40),
                    D(GROUPS, 8), D(HEAD_DIM, 128), D(FFN, 8192), D(DENSE_FFN, 16384),
                    D(VOCAB, 202048), D(EXPERTS, 16), D(EXPERTS_PER_TOKEN, 1), D(CHUNK, 8192),
                    D(NOPE_INTERVAL, 4), D(MOE_PHASE_LAST, 1) } },
    { .model_types = "step3_text step3",
      .architectures = "Step3TextForCausalLM",
      .keys = KEYS(size_keys, groups, step3),
      .defaults = { D(HIDDEN, 7168), D(LAYERS, 61), D(HEADS, 64), D(GROUPS, 1), D(HEAD_DIM, 256),
                    D(Q_SHARED, 2048), D(FFN, 18432), D(VOCAB, 128815), D(EXPERTS, 48),
                    D(EXPERTS_PER_TOKEN, 3), D(EXPERT_FFN, 5120), D(SHARED_FFN, 5120),
                    D(DENSE_FIRST, 4), D(MOE_LAST, 59) } },
    { .model_types = "step3p5 step3p7",
      .refused = "layers of different numbers of heads",
      .refused_by = "attention_other_setting layer_types" },
    { .model_types = "minimax_m2",
      .architectures = "MiniMaxM2ForCausalLM",
      .keys = KEYS(size_keys, groups, experts, minimax, wide_norms),
      .defaults = { D(QK_NORM_HEADS, 1), D(ROUTER_BIAS, 1) } },
    { .model_types = "minimax_m3 minimax_m3_text",
      .refused = "attention to blocks of tokens that the query chooses",
      .refused_by = "sparse_attention_config" },
    { .model_types = "minimax minimax_m1 minimax_text_01",
      .architectures = "MiniMaxText01ForCausalLM MiniMaxM1ForCausalLM MiniMaxForCausalLM",
      .keys = KEYS(size_keys, groups, windows, experts, minimax),
      .defaults = { D(LISTED, 1), D(LINEAR_GATE, 1), D(HIDDEN, 4096), D(LAYERS, 32), D(HEADS, 32),
                    D(GROUPS, 8), D(FFN, 14336), D(VOCAB, 32000), D(EXPERTS, 8),
                    D(EXPERTS_PER_TOKEN, 2) } },
    { .model_types = "phimoe",
      .architectures = "PhiMoEForCausalLM PhimoeForCausalLM",
      .keys = KEYS(size_keys, groups, biases, windows, experts, phi3),
      .defaults = { D(NORM_BIAS, 1), D(HIDDEN, 4096), D(LAYERS, 32), D(HEADS, 32), D(GROUPS, 8),
                    D(FFN, 6400), D(VOCAB, 32064), D(EXPERTS, 16), D(EXPERTS_PER_TOKEN, 2),
                    D(USE_WINDOW, 1) } },
    { .model_types = "dbrx",
      .architectures = "DbrxForCausalLM",
      .keys = KEYS(dbrx),
      .defaults = { D(HIDDEN, 2048), D(HEADS, 16), D(LAYERS, 24), D(VOCAB, 32000), D(EXPERTS, 4),
                    D(EXPERTS_PER_TOKEN, 1), D(FFN, 3584), D(GROUPS, 1) } },
    { .model_types = "arctic",
      .architectures = "ArcticForCausalLM",
      .keys = KEYS(size_keys, groups, windows, experts, arctic),
      .defaults = { D(HIDDEN, 4096), D(LAYERS, 32), D(HEADS, 32), D(FFN, 14336), D(VOCAB, 32000),
                    D(EXPERTS, 8), D(EXPERTS_PER_TOKEN, 1), D(USE_WINDOW, 1) } },

    /* ---- GPT and its kin ---- */
    { .model_types = "gpt2",
      .architectures = "GPT2LMHeadModel",
      .keys = KEYS(n_names),
      .defaults = { D(PLAIN, 1), D(TIED, 1), D(FFN_TIMES, 4), D(LEARNED, 1), D(BIASES, 1),
                    D(HIDDEN, 768), D(LAYERS, 12), D(HEADS, 12), D(VOCAB, 50257),
                    D(POSITIONS, 1024) } },
    { .model_types = "gpt_bigcode",
      .architectures = "GPTBigCodeForCausalLM",
      .keys = KEYS(n_names, bigcode),
      .defaults = { D(PLAIN, 1), D(TIED, 1), D(FFN_TIMES, 4), D(LEARNED, 1), D(BIASES, 1),
                    D(MULTI_QUERY, 1), D(HIDDEN, 768), D(LAYERS, 12), D(HEADS, 12), D(VOCAB, 50257),
                    D(POSITIONS, 1024) } },
    { .model_types = "gptj",
      .architectures = "GPTJForCausalLM",
      .keys = KEYS(n_names),
      .defaults = { D(PLAIN, 1), D(FFN_TIMES, 4), D(NORMS, 1), D(NORM_BIAS, 1), D(MLP_BIAS, 1),
                    D(HEAD_BIAS, 1), D(HIDDEN, 4096), D(LAYERS, 28), D(HEADS, 16),
                    D(VOCAB, 50400) } },
    { .model_types = "codegen",
      .architectures = "CodeGenForCausalLM",
      .keys = KEYS(n_names),
      .defaults = { D(PLAIN, 1), D(FFN_TIMES, 4), D(NORMS, 1), D(NORM_BIAS, 1), D(MLP_BIAS, 1),
                    D(HEAD_BIAS, 1), D(HIDDEN, 4096), D(LAYERS, 28), D(HEADS, 16),
                    D(VOCAB, 50400) } },
    { .model_types = "gpt_neo",
      .architectures = "GPTNeoForCausalLM",
      .keys = KEYS(gpt_neo),
      .defaults = { D(PLAIN, 1), D(TIED, 1), D(FFN_TIMES, 4), D(LEARNED, 1), D(NORM_BIAS, 1),
                    D(O_BIAS, 1), D(MLP_BIAS, 1), D(HIDDEN, 2048), D(LAYERS, 24), D(HEADS, 16),
                    D(VOCAB, 50257), D(POSITIONS, 2048), D(WINDOW, 256), D(WINDOW_ODD, 1),
                    D(USE_WINDOW, 1) } },
    { .model_types = "gpt_neox gpt_neox_reward_model",
      .architectures = "GPTNeoXForCausalLM",
      .keys = KEYS(size_keys, neox),
      .defaults = { D(PLAIN, 1), D(BIASES, 1), D(HIDDEN, 6144), D(LAYERS, 44), D(HEADS, 64),
                    D(FFN, 24576), D(VOCAB, 50432) } },
    { .model_types = "jais",
      .architectures = "JAISLMHeadModel",
      .keys = KEYS(n_names, jais),
      .defaults = { D(TIED, 1), D(FFN_TIMES, 4), D(BIASES, 1), D(HIDDEN, 768), D(LAYERS, 12),
                    D(HEADS, 12), D(VOCAB, 50257) } },
    { .model_types = "opt",
      .architectures = "OPTForCausalLM",
      .keys = KEYS(size_keys, opt),
      .defaults = { D(PLAIN, 1), D(TIED, 1), D(LEARNED, 1), D(MORE_POSITIONS, 2), D(BIASES, 1),
                    D(HIDDEN, 768), D(LAYERS, 12), D(HEADS, 12), D(FFN, 3072), D(VOCAB, 50272),
                    D(POSITIONS, 2048) } },
    { .model_types = "bloom",
      .architectures = "BloomForCausalLM BloomModel",
      .keys = KEYS(n_names),
      .defaults = { D(PLAIN, 1), D(TIED, 1), D(FFN_TIMES, 4), D(BIASES, 1), D(NO_ROTARY, 1),
                    D(EMBEDDING_NORM, 1), D(HIDDEN, 64), D(LAYERS, 2), D(HEADS, 8),
                    D(VOCAB, 250880) } },
    { .model_types = "falcon RefinedWeb RefinedWebModel",
      .architectures = "FalconForCausalLM RWForCausalLM",
      .keys = KEYS(n_names, falcon),
      .defaults = { D(PLAIN, 1), D(TIED, 1), D(FFN_TIMES, 4), D(MULTI_QUERY, 1), D(NORM_BIAS, 1),
                    D(NORMS, 1), D(HIDDEN, 4544), D(LAYERS, 32), D(HEADS, 71), D(VOCAB, 65024) } },
    { .model_types = "mpt",
      .architectures = "MPTForCausalLM MptForCausalLM",
      .keys = KEYS(mpt),
      .defaults = { D(PLAIN, 1), D(TIED, 1), D(FFN_TIMES, 4), D(LEARNED, 1), D(NO_ROTARY, 1),
                    D(HIDDEN, 2048), D(HEADS, 16), D(LAYERS, 24), D(VOCAB, 50368),
                    D(POSITIONS, 2048) } },
    { .model_types = "phi",
      .architectures = "PhiForCausalLM",
      .keys = KEYS(size_keys, groups, n_names, phi),
      .defaults = { D(PLAIN, 1), D(QK_NORM_BIAS, 1), D(BIASES, 1), D(HEAD_BIAS, 1), D(NORMS, 1),
                    D(FFN, 8192), D(HIDDEN, 2048), D(LAYERS, 24), D(HEADS, 32), D(VOCAB, 51200) } },
    { .model_types = "phi-msft mixformer-sequential",
      .architectures = "MixFormerSequentialForCausalLM PhiForCausalLM",
      .keys = KEYS(size_keys, groups, n_names, phi),
      .defaults = { D(PLAIN, 1), D(QK_NORM_BIAS, 1), D(BIASES, 1), D(HEAD_BIAS, 1), D(NORMS, 1),
                    D(FFN_TIMES, 4), D(HIDDEN, 2048), D(LAYERS, 24), D(HEADS, 32),
                    D(VOCAB, 51200) } },
    { .model_types = "phi4mm phi4_multimodal",
      .architectures = "Phi4MMForCausalLM Phi4MultimodalForCausalLM",
      .keys = KEYS(size_keys, groups, windows, phi3),
      .defaults = { D(HIDDEN, 3072), D(LAYERS, 32), D(HEADS, 32), D(GROUPS, 8), D(FFN, 8192),
                    D(VOCAB, 200064), D(USE_WINDOW, 1) } },
    { .model_types = "phi3 phi3_v",
      .architectures = "Phi3ForCausalLM Phi3VForCausalLM",
      .keys = KEYS(size_keys, groups, windows, phi3),
      .defaults = { D(HIDDEN, 3072), D(LAYERS, 32), D(HEADS, 32), D(FFN, 8192), D(VOCAB, 32064),
                    D(USE_WINDOW, 1) } },
    { .model_types = "phi3small",
      .architectures = "Phi3SmallForCausalLM",
      .refused = "attention to blocks of tokens, by a pattern",
      .refused_by = "blocksparse_block_size" },
    { .model_types = "phi4flash",
      .refused = "Mamba layers, and layers that share a cache",
      .refused_by = "mb_per_layer" },
    { .model_types = "starcoder2",
      .architectures = "Starcoder2ForCausalLM",
      .keys = KEYS(size_keys, groups, windows, starcoder2),
      .defaults = { D(PLAIN, 1), D(TIED, 1), D(NORM_BIAS, 1), D(BIASES, 1), D(HIDDEN, 3072),
                    D(LAYERS, 30), D(HEADS, 24), D(GROUPS, 2), D(FFN, 12288), D(VOCAB, 49152),
                    D(USE_WINDOW, 1) } },
    { .model_types = "nemotron",
      .architectures = "NemotronForCausalLM",
      .keys = KEYS(size_keys, groups, biases),
      .defaults = { D(PLAIN, 1), D(NORM_BIAS, 1), D(HIDDEN, 6144), D(LAYERS, 32), D(HEADS, 48),
                    D(FFN, 24576), D(VOCAB, 256000) } },
    { .model_types = "persimmon",
      .architectures = "PersimmonForCausalLM",
      .keys = KEYS(size_keys, qk_norms),
      .defaults = { D(PLAIN, 1), D(BIASES, 1), D(QK_NORM, 1), D(QK_NORM_BIAS, 1), D(HIDDEN, 4096),
                    D(LAYERS, 36), D(HEADS, 64), D(FFN, 16384), D(VOCAB, 262144) } },
    { .model_types = "nemotron-nas deci",
      .architectures = "DeciLMForCausalLM",
      .refused = "layers of different shapes, and layers without attention",
      .refused_by = "block_configs num_key_value_heads_per_layer" },

    /* ---- encoders ---- */
    { .model_types = "bert",
      .architectures = "BertModel BertForMaskedLM",
      .keys = KEYS(size_keys, bert),
      .defaults = { D(PLAIN, 1), D(TIED, 1), D(HEADLESS, 1), D(BIDIRECTIONAL, 1), D(LEARNED, 1),
                    D(BIASES, 1), D(TYPES, 2), D(POOLER, 1), D(HIDDEN, 768), D(LAYERS, 12),
                    D(HEADS, 12), D(FFN, 3072), D(VOCAB, 30522), D(POSITIONS, 512) } },
    { .model_types = "xlm-roberta camembert",
      .architectures = "XLMRobertaModel XLMRobertaForMaskedLM CamembertModel CamembertForMaskedLM",
      .keys = KEYS(size_keys, bert),
      .defaults = { D(PLAIN, 1), D(TIED, 1), D(HEADLESS, 1), D(BIDIRECTIONAL, 1), D(LEARNED, 1),
                    D(BIASES, 1), D(TYPES, 2), D(POOLER, 1), D(HIDDEN, 768), D(LAYERS, 12),
                    D(HEADS, 12), D(FFN, 3072), D(VOCAB, 30522), D(POSITIONS, 512) } },
    { .model_types = "roberta",
      .architectures = "RobertaModel RobertaForMaskedLM",
      .keys = KEYS(size_keys, bert),
      .defaults = { D(PLAIN, 1), D(TIED, 1), D(HEADLESS, 1), D(BIDIRECTIONAL, 1), D(LEARNED, 1),
                    D(BIASES, 1), D(TYPES, 2), D(POOLER, 1), D(HIDDEN, 768), D(LAYERS, 12),
                    D(HEADS, 12), D(FFN, 3072), D(VOCAB, 50265), D(POSITIONS, 512) } },
    { .model_types = "electra",
      .architectures = "ElectraModel ElectraForPreTraining",
      .keys = KEYS(size_keys, bert),
      .defaults = { D(PLAIN, 1), D(TIED, 1), D(HEADLESS, 1), D(BIDIRECTIONAL, 1), D(LEARNED, 1),
                    D(BIASES, 1), D(TYPES, 2), D(EMBEDDING, 128), D(EMBEDDING_ALL, 1),
                    D(HIDDEN, 256), D(LAYERS, 12), D(HEADS, 4), D(FFN, 1024), D(VOCAB, 30522),
                    D(POSITIONS, 512) } },
    { .model_types = "distilbert",
      .architectures = "DistilBertModel DistilBertForMaskedLM",
      .keys = KEYS(distilbert),
      .defaults = { D(PLAIN, 1), D(TIED, 1), D(HEADLESS, 1), D(BIDIRECTIONAL, 1), D(LEARNED, 1),
                    D(BIASES, 1), D(HIDDEN, 768), D(LAYERS, 6), D(HEADS, 12), D(FFN, 3072),
                    D(VOCAB, 30522), D(POSITIONS, 512) } },
    { .model_types = "albert",
      .architectures = "AlbertModel AlbertForMaskedLM",
      .refused = "layers that share their weights",
      .refused_by = "num_hidden_groups inner_group_num" },
    { .model_types = "modernbert",
      .architectures = "ModernBertForMaskedLM ModernBertModel",
      .refused = "windows to both sides",
      .refused_by = "local_attention global_attn_every_n_layers" },
    { .model_types = "deberta deberta-v2",
      .architectures = "DebertaModel DebertaV2Model",
      .refused = "attention to positions beside that to tokens (disentangled)",
      .refused_by = "relative_attention pos_att_type" },

    /* ---- layers or masks that there are not yet ---- */
    { .model_types = "transnormer",
      .architectures = "TransnormerForCausalLM",
      .keys = KEYS(transnormer),
      .defaults = { D(LINEAR, 1), D(LINEAR_GATE, 1) } },
    { .model_types = "mimo_v2_flash mimo_v2",
      .architectures = "MiMoV2FlashForCausalLM",
      .keys = KEYS(size_keys, groups, biases, windows, mimo_flash),
      .refused = "layers of different numbers of key-value heads",
      .refused_by = "swa_num_key_value_heads hybrid_layer_pattern" },
    { .model_types = "mllama mllama_text_model",
      .architectures = "MllamaForConditionalGeneration",
      .keys = KEYS(size_keys, groups, mllama),
      .refused = "layers that attend to an image",
      .refused_by = "cross_attention_layers" },
    { .model_types = "nemotron_h nemotron_h_v2 nemotron_h_puzzle",
      .architectures = "NemotronHForCausalLM",
      .refused = "layers of Mamba-2, and layers without attention",
      .refused_by = "hybrid_override_pattern layers_block_type mamba_num_heads ssm_state_size" },
    { .model_types = "jamba",
      .architectures = "JambaForCausalLM",
      .refused = "layers of Mamba",
      .refused_by = "attn_layer_period mamba_d_state" },
    { .model_types = "zamba zamba2",
      .architectures = "ZambaForCausalLM Zamba2ForCausalLM",
      .refused = "layers of Mamba, and layers that share their weights",
      .refused_by = "layers_block_type attn_layer_period mamba_d_state" },
    { .model_types = "bamba",
      .architectures = "BambaForCausalLM",
      .refused = "layers of Mamba-2",
      .refused_by = "attn_layer_indices mamba_d_state" },
    { .model_types = "falcon_h1",
      .architectures = "FalconH1ForCausalLM",
      .refused = "layers of attention and Mamba-2 side by side",
      .refused_by = "mamba_d_ssm mamba_d_state" },
    { .model_types = "mamba mamba2 falcon_mamba codestral_mamba",
      .architectures = "MambaForCausalLM Mamba2ForCausalLM FalconMambaForCausalLM",
      .refused = "layers of Mamba",
      .refused_by = "state_size conv_kernel" },
    { .model_types = "plamo2",
      .architectures = "Plamo2ForCausalLM",
      .refused = "layers of Mamba",
      .refused_by = "mamba_d_state" },
    { .model_types = "hymba",
      .architectures = "HymbaForCausalLM",
      .refused = "layers of attention and Mamba side by side",
      .refused_by = "mamba_d_state" },
    { .model_types = "recurrent_gemma",
      .architectures = "RecurrentGemmaForCausalLM",
      .refused = "layers of gated linear recurrence (RG-LRU)",
      .refused_by = "_block_types block_types lru_width" },
    { .model_types = "rwkv rwkv5 rwkv6 rwkv7 rwkv6qwen2",
      .architectures = "RwkvForCausalLM Rwkv5ForCausalLM Rwkv6ForCausalLM RWKV7ForCausalLM",
      .refused = "layers of RWKV",
      .refused_by = "attention_hidden_size head_size" },
    { .model_types = "retnet",
      .architectures = "RetNetForCausalLM",
      .refused = "layers of retention with a value wider than its key",
      .refused_by = "decoder_value_embed_dim" },
    { .model_types = "lfm2 lfm2_moe lfm2_vl",
      .architectures = "Lfm2ForCausalLM Lfm2MoeForCausalLM",
      .refused = "layers of short convolutions",
      .refused_by = "conv_L_cache layer_types" },
    { .model_types = "openelm",
      .architectures = "OpenELMForCausalLM",
      .refused = "layers of different numbers of heads",
      .refused_by = "num_query_heads" },
    { .model_types = "t5 mt5 umt5 longt5 bart mbart pegasus marian whisper m2m_100 speech_to_text "
                     "encoder-decoder t5gemma switch_transformers blenderbot fsmt led prophetnet",
      .architectures = "T5ForConditionalGeneration MT5ForConditionalGeneration "
                       "BartForConditionalGeneration WhisperForConditionalGeneration",
      .refused = "a decoder that attends to an encoder's output",
      .refused_by = "is_encoder_decoder relative_attention_num_buckets encoder_layers" },
    { .model_types = "xlnet",
      .architectures = "XLNetLMHeadModel",
      .refused = "attention in permuted order",
      .refused_by = "attn_type" },
    { .model_types = "longformer big_bird",
      .refused = "attention to a window and chosen tokens",
      .refused_by = "attention_window attention_type" },
    { .model_types = "clip clip_vision_model siglip siglip_vision_model vit dinov2",
      .refused = "an encoder of images, which is no language model",
      .refused_by = "image_size vision_config" },
    { .model_types = NULL },
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
    for (const LhHfFamily *f = lh_hf_families; f->model_types != NULL; f++) {
        if (lh_hf_has_word(f->model_types, model_type))
            return f;
    }
    return NULL;
}

const LhHfFamily *
lh_hf_family_of_architecture(const char *architecture)
{
    for (const LhHfFamily *f = lh_hf_families; f->model_types != NULL; f++) {
        if (lh_hf_has_word(f->architectures, architecture))
            return f;
    }
    return NULL;
}
