/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Keys of Hugging Face's config.json that do not affect the shape of a language model. A key that
 * is neither in the family's row nor here is an error; a key is added here once its meaning is
 * known.
 */
#include "model/families_harmless.h"

#include <glib.h>
#include <string.h>

/* clang-format off */
static const char *const harmless[] = {
    /* tool that wrote the file, and options of loading */
    "_attn_implementation", "_attn_implementation_autoset", "_attn_implementation_internal",
    "_commit_hash", "_experts_implementation", "_flash_attn_2_enabled", "_from_model_config",
    "_name_or_path", "_output_attentions", "attention_softmax_in_fp32",
    "attn_implementation", "attn_implementation_config", "attn_implementation_internal",
    "auto_map", "bf16", "bias_dropout_add_fusion", "bias_dropout_fusion", "cache_implementation",
    "checkpoint_version", "compression_config", "context_window_size", "cpm_seq_lens",
    "custom_pipelines", "dtype", "enable_lm_head_fp32", "ep_degree", "ep_size", "expert_dtype",
    "file_name", "flash_attention", "flash_attn", "flash_rotary", "float32_logits",
    "for_llm_compressor", "fp16", "fp32", "fp32_lm_head", "fp32_residual_connection",
    "fp32_rmsnorm", "fp32_router", "fp32_softmax", "fuse_attention_ffn", "fuse_attention_qkv",
    "fuse_linear", "fuse_rope", "fuse_swiglu", "fused_dense", "fused_linear", "gate_dtype",
    "init_device", "initial_context_length", "is_legacy_config", "is_llama_config",
    "kv_cache_dtype", "kv_cache_type", "language_model_only", "mamba_ssm_cache_dtype",
    "masked_softmax_fusion", "max_batch_size", "mlc_version", "model_name", "model_revision",
    "model_version", "moe_group", "moe_router_dtype", "name", "onnx_safe", "params_dtype",
    "pipeline_parallel_degree", "prefill_chunk_size", "pretraining_tp", "quantization",
    "quantization_config", "recompute", "recompute_granularity", "reorder_and_upcast_attn",
    "residual_in_fp32", "rope_cache_length", "router_dtype", "scale_attention_softmax_in_fp32",
    "sequence_parallel_enabled", "softmax_in_fp32", "sparse_train", "tensor_parallel",
    "tensor_parallel_degree", "tokenizer_class", "tokenizer_name", "torch_dtype", "torchscript",
    "tp_size", "transformers.js_config", "transformers_version", "transformers_weights",
    "unsloth_fixed", "unsloth_version", "use_bfloat16", "use_cache", "use_cache_int8_kernel",
    "use_cache_kernel", "use_cache_quantization", "use_filtered_head", "use_flash_attention",
    "use_flash_attention_2", "use_flash_attn", "use_flash_rotary", "use_fp32_gate",
    "use_fused_mlp", "use_fused_rmsnorm", "use_fused_swiglu", "use_kernel_fusion",
    "use_mamba_kernels", "use_pytorch_attn", "use_spda", "use_ssmax", "use_unpad", "verbose",
    "vllm_version",
    /* heads for other tasks, and text generation */
    "add_classification_head", "bad_words_ids", "begin_suppress_tokens", "bos_token",
    "chunk_size_feed_forward", "class_num", "classifier_activation", "classifier_bias",
    "classifier_dropout", "classifier_pooling", "decoder_input_ids", "decoder_start_token_id",
    "diversity_penalty", "do_sample", "do_stream_output", "early_stopping",
    "encoder_no_repeat_ngram_size", "eos_token", "eos_token_ids",
    "exponential_decay_length_penalty", "finetuning_task", "forced_decoder_ids",
    "generation_config", "gradient_checkpointing", "hidden_dim_classifier", "id2label",
    "inference_params", "is_composition", "keys_to_ignore_at_inference", "label2id",
    "length_penalty", "lm_head", "max_length", "max_new_tokens", "min_length", "n_special",
    "no_repeat_ngram_size", "num_beam_groups", "num_beams", "num_labels", "num_logits_to_keep",
    "num_return_sequences", "output_attentions", "output_hidden_states", "output_past",
    "output_scores", "pad_token", "pool_type", "pre_seq_len", "predict_special_tokens", "prefix",
    "prefix_projection", "problem_type", "reference_model", "remove_invalid_values",
    "repetition_penalty", "return_dict", "return_dict_in_generate", "rm_head", "sampler",
    "sentence_transformers", "skip_cls_token", "summary_activation", "summary_proj_to_labels",
    "summary_type", "summary_use_proj", "suppress_tokens", "task_specific_params", "temperature",
    "tf_legacy_loss", "tie_encoder_decoder", "top_k", "top_p", "typical_p",
    "user_defined_symbols",
    /* training */
    "aux_loss_alpha", "capacity_factor", "distillation", "enable_expert_tensor_parallelism",
    "ffn_dropout", "ffn_loss_weight", "fine_tuning", "init_config", "init_method", "init_scale",
    "init_std", "initializer_factor", "initializer_range", "input_jitter_noise", "is_train",
    "layerdrop", "learning_rate", "load_balance_coeff", "load_balancing_loss_weight",
    "moe_aux_loss_coef", "moe_aux_loss_coeff", "moe_capacity", "moe_drop_tokens",
    "moe_eval_capacity_factor", "moe_eval_capacity_token_fraction", "moe_loss", "moe_loss_weight",
    "moe_loss_weight_fp8", "moe_min_capacity", "moe_orthogonal_loss_lambda",
    "moe_random_routing_dropped_token", "moe_router_force_load_balancing", "moe_token_dropping",
    "moe_train_capacity_factor", "moe_use_drop", "moe_use_hard_gate", "moe_z_loss_lambda",
    "mtp_loss_scaling_factor", "multi_token_pred_lambda", "noisy_expert_loss",
    "output_router_logits", "rescale_every", "rescale_layer", "rescale_prenorm_residual",
    "router_aux_loss", "router_aux_loss_coef", "router_aux_loss_coeff", "router_bias_update_rate",
    "router_ignore_padding_tokens", "router_jitter_noise", "router_z_loss_coef",
    "router_z_loss_coeff", "scale_init", "seq_aux", "use_moe_loss", "z_loss_coef",
    "z_loss_coefficient", "z_loss_weight",
    /* constants of functions without parameters */
    "act_fn", "activation", "activation_function", "activation_type", "alibi_bias_max",
    "apply_query_key_layer_scaling", "apply_residual_connection_post_layernorm",
    "attention_multiplier", "attention_softcap", "attention_value_scale", "attn_impl",
    "attn_logit_softcap", "attn_logit_softcapping", "attn_output_multiplier", "attn_scale",
    "attn_temperature_tuning", "attn_type", "attn_uses_sequence_id", "block_size", "clip_qkv",
    "dim_model_base", "embedding_fraction", "embedding_multiplier", "embedding_multiplier_scale",
    "embeddings_scale", "expert_group_num", "final_logit_softcap", "final_logit_softcapping",
    "floor_scale", "freq_allocation", "full_attn_alpha_factor", "full_attn_beta_factor",
    "full_attn_mod", "gegelu_limit", "glu_act", "group_limited_greedy", "hidden_act",
    "hidden_activate", "hidden_activation", "interpolate_factor", "layer_norm_eps",
    "layer_norm_epsilon", "layernorm_eps", "layernorm_epsilon", "layernorm_full_attention_alpha",
    "layernorm_full_attention_beta", "layernorm_func", "layernorm_linear_attention_alpha",
    "layernorm_linear_attention_beta", "layernorm_mlp_alpha", "layernorm_mlp_beta",
    "linear_act_fun", "linear_attn_alpha_factor", "linear_attn_beta_factor",
    "linear_use_lrpe_list", "ln_eps", "logit_scale", "logits_scale", "logits_scaling",
    "logn_attn", "make_vocab_size_divisible_by", "max_sequence_length_of_tokenizer",
    "max_tokenizer_truncation", "mlp_alpha_factor", "mlp_beta_factor", "mlp_hidden_act",
    "mlp_type", "model_max_len", "model_max_length", "moe_gate_act", "moe_layer_use_aux_free",
    "moe_normalize_expert_weights", "moe_renormalize", "moe_routed_scaling_factor",
    "moe_router_activation_func", "moe_router_norm", "moe_router_scaling_factor",
    "moe_router_score_function", "moe_router_topk_scaling_factor", "moe_router_use_sigmoid",
    "moe_use_aux_free", "mrope_section", "mup_attn_multiplier", "mup_embedding_multiplier",
    "mup_embeddings_scale", "mup_multiplier", "mup_output_alpha", "mup_scale_qk_dot_by_d",
    "mup_use_scaling", "mup_width_multiplier", "mup_width_scale", "n_group",
    "n_groups_of_experts", "no_scale_embedding", "norm_class", "norm_eps", "norm_epsilon",
    "norm_expert_weight", "norm_head", "norm_softmax", "norm_topk_prob", "norm_topk_probs",
    "norm_type", "normalize_topk_prob", "num_expert_group", "org_vocab_size",
    "original_max_position_embeddings", "original_rope", "output_multiplier_scale",
    "pad_sequence_to_multiple_of_64", "pad_vocab_size_multiple", "partial_rotary_factor",
    "partial_rotary_factors", "position_embedding_xdrope", "post_layer_norm", "post_layernorm",
    "postnorm", "prefix_lm", "q_head_dim", "qk_head_dim", "qkv_clip", "query_pre_attn_scalar",
    "residual_multiplier", "rms_norm", "rms_norm_eps", "rms_norm_epsilon", "rmsnorm",
    "rmsnorm_eps", "rope_3d", "rope_dim", "rope_fraction", "rope_interleave", "rope_interleaved",
    "rope_local_base_freq", "rope_local_theta", "rope_parameters", "rope_pct", "rope_percentage",
    "rope_position_scale", "rope_ratio", "rope_scaling", "rope_scaling_factor", "rope_style",
    "rope_type", "rotary", "rotary_base_scale", "rotary_compress", "rotary_dim",
    "rotary_emb_fraction", "rotary_emb_interleaved", "rotary_emb_scale_base",
    "rotary_interleaved", "rotary_ndims", "rotary_pct", "rotary_percent", "rotary_percentage",
    "rotary_scale_base", "route_norm", "route_scale", "routed_scaling_factor",
    "router_activation", "router_logit_softcapping", "router_num_group", "router_scaling_factor",
    "router_score_function", "runner_max_sequence_length", "scale_alpha", "scale_attn",
    "scale_attn_by_inverse_layer_idx", "scale_attn_weights", "scale_depth", "scale_emb",
    "scale_embed", "scale_embedding", "scale_embeddings", "scale_logits", "scale_qkv",
    "score_func", "score_function", "scoring_func", "shared_moe_mode", "softmax_scale",
    "swa_rope_theta", "swiglu_alpha", "swiglu_limit", "topk_group", "topk_groups", "topk_method",
    "train_seq_len", "use_dynamic_ntk", "use_expert_parallel", "use_gemma_norm",
    "use_grouped_topk", "use_logn_attn", "use_mrope", "use_norm", "use_positions",
    "use_rotary_pos_emb", "vocab_padding_multiple", "vocab_size_multiple", "width_scale",
    "xdrope_section",
    /* parts beside the language model, which are not modelled */
    "aligner_config", "anyres_pooling_size", "anyres_vit_max_image_size", "anyres_vit_two_views",
    "audio_config", "audio_encoder", "audio_processor", "batch_vision_input",
    "candidate_resolutions", "code2wav_config", "downsample_ratio",
    "drop_vision_last_layer", "dynamic_image_size", "embd_layer", "enable_audio_output",
    "enable_talker", "force_image_size", "freeze_mm_mlp_adapter", "freeze_mm_vision_resampler",
    "gen_aligner_config", "gen_head_config", "gen_vision_config", "global_view_pos",
    "ignore_index", "image_aspect_ratio", "image_crop_resolution", "image_grid_pinpoints",
    "image_placeholder", "image_processor_type", "image_seq_length", "image_size",
    "image_split_resolution", "image_text_hidden_size", "img_processor", "img_size",
    "max_dynamic_patch", "max_frames", "min_dynamic_patch", "mm_hidden_size",
    "mm_patch_merge_type", "mm_projector_config", "mm_projector_lr", "mm_projector_type",
    "mm_resampler_type", "mm_tokens_per_image", "mm_use_im_patch_token", "mm_use_im_start_end",
    "mm_vision_select_feature", "mm_vision_select_layer", "mm_vision_tower",
    "multimodal_projector_bias", "multimodal_projector_hidden_act", "num_channels",
    "num_media_embeds", "pad2square", "patch_size", "perceiver_config", "pixel_shuffle_factor",
    "position_id_per_seconds", "projection_dim", "projector_config", "projector_hidden_act",
    "projector_hidden_size", "projector_n_layers", "projector_type",
    "mlp_connector_layers", "ps_version", "qformer_config", "query_num",
    "scale_factor", "seconds_per_chunk", "select_layer", "slice_config", "slice_mode",
    "spatial_merge_size", "speech_config", "speech_lora", "talker_config", "template", "tile_tag",
    "token2wav_config", "tokens_per_second", "tts_config", "tune_mm_mlp_adapter",
    "tune_mm_vision_resampler", "unfreeze_mm_vision_tower", "use_backbone_lora",
     "use_image_start_end", "use_llm_lora", "use_mm_proj",
    "use_thumbnail", "use_unified_vision_chunk", "user_token_id", "video_config",
    "video_placeholder", "video_processor_type", "vision_batch_size", "vision_config",
    "vision_encoder", "vision_feature_layer", "vision_feature_select_strategy", "vision_lora",
    "vision_soft_tokens_per_image", "vision_tower", "vision_use_head", "vit_add_patchemb_bias",
    "vit_input_resolution", "vit_mapping_type", "vit_norm_type", "vit_patch", "vit_path",
    "vit_remove_prenorm", "vit_token", "vit_type", "vit_used_rms_norm",
    /* multi-token prediction layers, which are not modelled */
    "mtp_hybrid_override_pattern", "mtp_layers_block_type", "mtp_num_hidden_layers",
    "mtp_num_layers", "mtp_transformer_layers", "mtp_use_dedicated_embeddings", "n_future_tokens",
    "n_mtp_layers", "n_predict", "num_mtp_layers", "num_mtp_modules", "num_nextn_predict_layers",
    "use_mtp",
    /* tokenizers, and switches of single families that change no size */
    "im_end_token", "image_token_len", "patch_token_len", "tokenizer_type", "use_rmsnorm",
    "pooling", "validate_runner_input", "order_of_interleaved_layers", "im_patch_token",
    "im_start_token", "layer_switch", "offset_alibi",
    "skip_bias_add", "skip_bias_add_qkv", "moe_jitter_eps", "pad_key_length", "scale_qk_dot_by_d",
    "understand_projector_stride", "projector_bias",
    NULL,
};
/* clang-format on */

const LhHfLeftOut lh_hf_left_out[] = {
    { "vision_config audio_config vision_tower mm_vision_tower vision_encoder audio_encoder "
      "speech_config gen_vision_config img_processor",
      "vision and audio parts are left out" },
    { "num_nextn_predict_layers num_mtp_layers num_mtp_modules n_mtp_layers mtp_num_layers "
      "mtp_num_hidden_layers n_predict n_future_tokens",
      "multi-token prediction layers are left out" },
    { "quantization_config compression_config",
      "weights are counted in the scenario's element type, not quantised" },
    { NULL, NULL },
};

/* Token ids and dropout rates. */
static const char *const harmless_endings[] = {
    "_token_id",  "_token_ids",  "_token_index",  "_dropout",       "_dropout_prob",
    "_dropout_p", "_pdrop",      "_drop_rate",    "_start_id",      "_end_id",
    "_init_id",   "_newline_id", "_dropout_rate", "_token_indices", NULL,
};

static const char *const harmless_short[] = { "dropout", "pad_id", "eod_id", "drop_path", NULL };

bool
lh_hf_is_harmless(const char *key)
{
    if (g_strv_contains(harmless, key) || g_strv_contains(harmless_short, key))
        return true;
    for (const char *const *ending = harmless_endings; *ending != NULL; ending++) {
        if (g_str_has_suffix(key, *ending))
            return true;
    }
    return false;
}
