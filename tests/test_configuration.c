/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Configurations of training frameworks: the scenario each one stands for, its warnings, and that a
 * way of training written in a framework's settings is read back as the same.
 */
#include "base/error.h"
#include "base/files/data_files.h"
#include "framework_config/common/config_words.h"
#include "framework_config/configuration.h"
#include "framework_config/configuration_scenario.h"
#include "model/model_file.h"
#include "model/parameters.h"
#include "run_tests.h"
#include "scenario/setup_model.h"
#include "scenario/step/setup_recomputation.h"
#include "step/step.h"

#include <glib/gstdio.h>
#include <string.h>

#define MEGATRON                                                                                   \
    "--num-layers 32 --hidden-size 4096 --ffn-hidden-size 14336 --num-attention-heads 32 "         \
    "--group-query-attention --num-query-groups 8 --swiglu "                                       \
    "--untie-embeddings-and-output-weights --vocab-size 128256 --bf16 --seq-length 65536 "         \
    "--disable-bias-linear --position-embedding-type rope "                                        \
    "--micro-batch-size 1 --global-batch-size 4 "
#define EVERYTHING (LH_CONFIG_QUESTION | LH_CONFIG_WAY | LH_CONFIG_SCHEDULE)

static bool
has_note(const LhConfig *config, const char *part)
{
    for (guint i = 0; i < config->notes->len; i++) {
        if (strstr(g_ptr_array_index(config->notes, i), part) != NULL)
            return true;
    }
    return false;
}

static LhConfig *
parse(const char *file, const char *text)
{
    g_autoptr(GError) error = NULL;
    LhConfig *config = lh_config_parse(file, text, strlen(text), NULL, &error);

    ck_assert_msg(config != NULL, "%s in: %s", error != NULL ? error->message : "", text);
    return config;
}

static LhScenario *
scenario_of(const LhConfig *config, unsigned parts)
{
    g_autoptr(GError) error = NULL;
    LhScenario *s = lh_scenario_new();

    ck_assert_msg(lh_config_apply(config, parts, s, &error), "%s",
                  error != NULL ? error->message : "");
    return s;
}

/* Asserts the lines of the scenario that a configuration stands for, without those equal to the
 * defaults. */
static void
check_lines(const char *file, const char *text, const char *const *lines)
{
    g_autoptr(LhConfig) config = parse(file, text);
    g_autoptr(LhScenario) s = scenario_of(config, EVERYTHING);
    g_autoptr(GString) found = g_string_new("\n");

    lh_scenario_lines(s, found);
    for (; *lines != NULL; lines++) {
        g_autofree char *line = g_strdup_printf("\n%s\n", *lines);

        ck_assert_msg(strstr(found->str, line) != NULL, "no %s in:%s", *lines, found->str);
    }
}

#define LINES(...)                                                                                 \
    (const char *const[])                                                                          \
    {                                                                                              \
        __VA_ARGS__, NULL                                                                          \
    }

START_TEST(megatron_is_a_scenario)
{
    check_lines("f.sh", MEGATRON "--tensor-model-parallel-size 2 --sequence-parallel",
                LINES("framework=megatron-lm", "tensor_model_parallel_size=2",
                      "context_parallel_size=1", "seq_length=65536", "micro_batch_size=1",
                      "dtype=bf16", "shard=ddp", "checkpoint=none", "schedule=te-p2p", "batch 4"));
    check_lines("f.sh",
                MEGATRON "--context-parallel-size 16 --cp-comm-type a2a+p2p "
                         "--hierarchical-context-parallel-sizes 8 2 --use-distributed-optimizer "
                         "--recompute-granularity full --recompute-method uniform",
                LINES("schedule=te-a2a-p2p", "hierarchical_context_parallel_sizes=8,2",
                      "shard=zero1", "checkpoint=layer"));
    check_lines("f.sh",
                MEGATRON "--cp-comm-type allgather --use-megatron-fsdp "
                         "--data-parallel-sharding-strategy optim_grads --recompute-activations",
                LINES("schedule=te-allgather", "shard=zero2", "checkpoint=selective"));
    check_lines("f.sh",
                MEGATRON "--pipeline-model-parallel-size 4 "
                         "--num-virtual-stages-per-pipeline-rank 2 --window-size 1023,0 "
                         "--use-torch-fsdp2",
                LINES("pipeline_model_parallel_size=4", "num_layers_per_virtual_pipeline_stage=4",
                      "window_size=1024", "shard=fsdp"));
    check_lines("f.sh",
                MEGATRON "--use-distributed-optimizer --optimizer-cpu-offload "
                         "--optimizer-offload-fraction 0.5 --overlap-cpu-optimizer-d2h-h2d "
                         "--cpu-offloading-num-layers 3",
                LINES("optimizer_cpu_offload=", "optimizer_offload_fraction=0.5",
                      "overlap_cpu_optimizer_d2h_h2d=", "cpu_offloading_num_layers=3"));
}
END_TEST

#define EXPERTS                                                                                    \
    "--num-experts 8 --moe-layer-freq ([0]*1+[1]*31) --moe-shared-expert-intermediate-size 64 "

/* What Megatron-LM recomputes; modules that the model lacks do nothing there. */
START_TEST(megatron_recomputes)
{
    check_lines("f.sh",
                MEGATRON "--recompute-granularity selective --recompute-modules mlp core_attn",
                LINES("checkpoint=selective", "recompute_modules=core_attn,mlp"));
    check_lines(
        "f.sh",
        MEGATRON EXPERTS "--recompute-granularity selective "
                         "--recompute-modules moe_act layernorm shared_experts mlp",
        LINES("checkpoint=selective", "recompute_modules=layernorm,mlp,moe_act,shared_experts"));
    check_lines("f.sh", MEGATRON EXPERTS "--moe-layer-recompute",
                LINES("checkpoint=selective", "recompute_modules=core_attn,moe"));
    check_lines("f.sh", MEGATRON "--recompute-granularity selective --recompute-modules moe_act",
                LINES("checkpoint=none"));
    check_lines("f.sh",
                MEGATRON "--recompute-granularity full --recompute-method block "
                         "--recompute-num-layers 3",
                LINES("checkpoint=layer", "recompute_method=block", "recompute_num_layers=3"));
    check_lines("f.sh",
                MEGATRON "--recompute-granularity full --recompute-method uniform "
                         "--recompute-num-layers 4",
                LINES("checkpoint=layer", "recompute_method=uniform", "recompute_num_layers=4"));
}
END_TEST

/* An option with another policy replaces what the file says of recomputation, not a part of it. */
START_TEST(options_replace_recomputation)
{
    g_autoptr(LhConfig) modules =
        parse("f.sh", MEGATRON "--recompute-granularity selective --recompute-modules mlp");
    g_autoptr(LhConfig) layers = parse("f.sh", MEGATRON "--recompute-granularity full "
                                                        "--recompute-method block "
                                                        "--recompute-num-layers 2");
    g_autoptr(LhFramework) framework = lh_framework_load("megatron-lm", NULL);
    const struct {
        const LhConfig *config;
        const char *field, *value;
        LhCheckpoint checkpoint;
        LhRecompute recompute;
    } rows[] = {
        { modules, "seq_length", "4K", LH_CHECKPOINT_SELECTIVE, { LH_RECOMPUTE_BIT(MLP), 0, 0 } },
        { modules, "checkpoint", "none", LH_CHECKPOINT_NONE, { 0 } },
        { modules, "checkpoint", "selective", LH_CHECKPOINT_SELECTIVE, { LH_RECOMPUTE_BIT(MLP) } },
        { layers, "checkpoint", "remat", LH_CHECKPOINT_REMAT, { 0 } },
        { layers, "recompute_num_layers", "3", LH_CHECKPOINT_LAYER, { 0, 3, LH_RECOMPUTE_BLOCK } },
        { layers,
          "recompute_modules",
          "layernorm",
          LH_CHECKPOINT_SELECTIVE,
          { LH_RECOMPUTE_BIT(LAYERNORM) } },
    };

    for (guint i = 0; i < G_N_ELEMENTS(rows); i++) {
        g_autoptr(LhScenario) s = lh_scenario_new();
        g_autoptr(GError) error = NULL;
        LhCheckpoint checkpoint;
        LhRecompute recompute;

        ck_assert(lh_config_apply(rows[i].config, EVERYTHING, s, NULL));
        lh_scenario_replace(s, rows[i].field, rows[i].value);
        ck_assert_msg(lh_setup_recomputation(s, framework, &checkpoint, &recompute, &error),
                      "%u: %s", i, error != NULL ? error->message : "");
        ck_assert_int_eq(checkpoint, rows[i].checkpoint);
        ck_assert_uint_eq(recompute.modules, rows[i].recompute.modules);
        ck_assert_uint_eq(recompute.layers, rows[i].recompute.layers);
        ck_assert_int_eq(recompute.method, rows[i].recompute.method);
    }
}
END_TEST

START_TEST(torchtitan_is_a_scenario)
{
    check_lines("f.toml",
                "[training]\nlocal_batch_size=8\n[activation_checkpoint]\nmode='selective'\n"
                "selective_ac_option='3'",
                LINES("checkpoint=layer", "recompute_method=every", "recompute_num_layers=3"));
    check_lines("f.toml",
                "[training]\nlocal_batch_size=8\n[activation_checkpoint]\nmode='selective'\n"
                "selective_ac_option='op'",
                LINES("checkpoint=selective"));
    check_lines("f.toml",
                "[model]\nname='llama3'\nflavor='70B'\n[training]\nseq_len=8192\n"
                "local_batch_size=2\n[parallelism]\ncontext_parallel_degree=4\n"
                "context_parallel_rotate_method='alltoall'\n[activation_checkpoint]\nmode='full'",
                LINES("framework=torchtitan", "model=llama-3-70b", "seq_length=8192",
                      "micro_batch_size=2", "context_parallel_size=4", "schedule=zigzag",
                      "shard=fsdp", "checkpoint=layer"));
    check_lines("f.toml",
                "[training]\nlocal_batch_size=8\n[parallelism]\npipeline_parallel_degree=4\n"
                "pipeline_parallel_schedule='Interleaved1F1B'\n"
                "pipeline_parallel_layers_per_stage=4\n"
                "data_parallel_replicate_degree=2\ndata_parallel_shard_degree=1",
                LINES("micro_batch_size=1", "num_micro_batches=8",
                      "num_layers_per_virtual_pipeline_stage=4", "data_parallel_size=2",
                      "shard=ddp", "schedule=te-allgather"));
    /* In the form of older versions, without a length, and on a command line. */
    check_lines("f.toml",
                "[training]\nbatch_size=2\ntensor_parallel_degree=2\n[experimental]\n"
                "context_parallel_degree=4\n",
                LINES("seq_length=2048", "micro_batch_size=2", "tensor_model_parallel_size=2",
                      "context_parallel_size=4"));
    check_lines("f.sh",
                "torchrun --nproc_per_node 8 -m torchtitan.train --training.seq_len 8192 "
                "--parallelism.tensor_parallel_degree=2 --activation_checkpoint.mode full",
                LINES("framework=torchtitan", "seq_length=8192", "tensor_model_parallel_size=2",
                      "checkpoint=layer"));
}
END_TEST

START_TEST(deepspeed_is_a_scenario)
{
    check_lines("f.json",
                "{\"train_micro_batch_size_per_gpu\": 2, \"gradient_accumulation_steps\": 3, "
                "\"fp16\": {\"enabled\": true}, \"zero_optimization\": {\"stage\": 2}, "
                "\"sequence_parallel_size\": 4, \"tensor_parallel\": {\"autotp_size\": 2}, "
                "\"train_batch_size\": \"auto\"}",
                LINES("framework=deepspeed", "micro_batch_size=2", "num_micro_batches=3",
                      "dtype=fp16", "shard=zero2", "context_parallel_size=4",
                      "tensor_model_parallel_size=2", "schedule=ulysses"));
    check_lines("f.json",
                "{\"zero_optimization\": {\"stage\": 3, \"offload_optimizer\": {\"device\": "
                "\"cpu\", \"ratio\": 0.3}}}",
                LINES("shard=fsdp", "optimizer_cpu_offload=", "optimizer_offload_fraction=0.3"));
    check_lines("f.json",
                "{\"zero_optimization\": {\"stage\": 3, \"offload_optimizer\": {\"device\": "
                "\"cpu\"}, \"offload_param\": {\"device\": \"cpu\"}}}",
                LINES("shard=fsdp", "optimizer_cpu_offload=", "offload_param="));
}
END_TEST

/* YAML files are recognised by their settings: accelerate's, axolotl's, and a list of Megatron-LM's
 * arguments. */
START_TEST(yaml_is_a_scenario_by_its_settings)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(LhConfig) config = lh_config_parse("f.yaml", "bf16: true\n", 11, NULL, &error);

    if (config == NULL && g_error_matches(error, LH_ERROR, LH_ERROR_RUNTIME))
        return; /* without libyaml */
    check_lines(
        "f.yaml",
        "base_model: NousResearch/Meta-Llama-3-8B\nsequence_len: 8192\nmicro_batch_size: 2\n"
        "gradient_accumulation_steps: 4\ngradient_checkpointing: true\nbf16: auto\n"
        "fsdp_config:\n  fsdp_sharding_strategy: FULL_SHARD\n",
        LINES("framework=pytorch-fsdp", "model=llama-3-8b", "seq_length=8192", "micro_batch_size=2",
              "num_micro_batches=4", "checkpoint=layer", "shard=fsdp"));
    check_lines("f.yaml",
                "base_model: meta-llama/Llama-3.1-8B-Instruct\nsequence_len: 500_000\n"
                "fsdp_config:\n  offload_params: true\n  reshard_after_forward: true\n"
                "dp_shard_size: 4\ndatasets:\n  - path: a\n    type: b\n  - path: c\n"
                "    type: d\ncontext_parallel_size: 2\n",
                LINES("model=llama-3-8b", "seq_length=500000", "shard=fsdp",
                      "offload_param=", "data_parallel_size=4", "context_parallel_size=2"));
    check_lines("f.yaml",
                "model: org/Qwen3-8B\ncutoff_len: 2048\nmicro_batch_size: 1\ncp_size: 2\n"
                "dist_config:\n  name: fsdp2\n",
                LINES("model=qwen3-8b", "shard=fsdp", "context_parallel_size=2"));
    check_lines("f.yml",
                "compute_environment: LOCAL_MACHINE\ndistributed_type: DEEPSPEED\n"
                "deepspeed_config:\n  zero_stage: 3\nmixed_precision: bf16\nnum_processes: 8\n",
                LINES("framework=deepspeed", "shard=fsdp", "dtype=bf16"));
    check_lines("f.yaml",
                "ENV_VARS:\n  A: 1\nMODEL_ARGS:\n  --num-layers: 12\n  --bf16: true\n"
                "  --seq-length: 1024\n  --tensor-model-parallel-size: 2\n",
                LINES("framework=megatron-lm", "seq_length=1024", "tensor_model_parallel_size=2"));
    check_lines("f.sh",
                "swift sft --model LLM/Qwen3-8B --train_type full --torch_dtype bfloat16 "
                "--max_length 4096 --per_device_train_batch_size 1 --output_dir x",
                LINES("framework=pytorch-fsdp", "model=qwen3-8b", "seq_length=4096"));
}
END_TEST

/* LoRA by the names of LLaMA-Factory, axolotl, TRL and ms-swift. */
START_TEST(adapters_are_read)
{
    static const char part[] =
        "swift sft --model LLM/Qwen3-8B --tuner_type lora --lora_rank 8 --target_modules q_proj "
        "down_proj lm_head --lora_dropout 0.05 --quant_bits 4 --max_length 4096";
    g_autoptr(GError) error = NULL;
    g_autoptr(LhConfig) config = lh_config_parse("f.yaml", "bf16: true\n", 11, NULL, &error);
    g_autoptr(LhConfig) noted = NULL;

    if (config == NULL && g_error_matches(error, LH_ERROR, LH_ERROR_RUNTIME))
        return; /* without libyaml */
    check_lines("f.yaml",
                "model_name_or_path: meta-llama/Meta-Llama-3-8B\nfinetuning_type: lora\n"
                "lora_rank: 64\nlora_target: all\nlora_alpha: 128\ncutoff_len: 2048\n",
                LINES("model=llama-3-8b", "lora_rank=64"));
    check_lines("f.yaml",
                "base_model: NousResearch/Meta-Llama-3-8B\nsequence_len: 8192\nadapter: qlora\n"
                "lora_r: 32\nlora_target_modules:\n  - q_proj\n  - k_proj\n  - v_proj\n"
                "  - gate_proj\n  - up_proj\nload_in_4bit: true\n",
                LINES("lora_rank=32", "lora_targets=linear_qkv,linear_fc1"));
    check_lines("f.sh",
                "python sft.py --model_name_or_path Qwen/Qwen3-8B --max_length 4096 --use_peft",
                LINES("lora_rank=16", "lora_targets=linear_qkv"));
    check_lines("f.sh", part, LINES("lora_rank=8", "lora_targets=linear_qkv,linear_fc2"));
    noted = parse("f.sh", part);
    ck_assert(has_note(noted, "adapters of a part of linear_qkv"));
    ck_assert(has_note(noted, "lm_head"));
    ck_assert(has_note(noted, "adapters have no dropout"));
    ck_assert(has_note(noted, "weights are in 16 bits"));
}
END_TEST

#define NEMO_MODEL                                                                                 \
    "model:\n  micro_batch_size: 1\n  global_batch_size: 8\n  tensor_model_parallel_size: 2\n"     \
    "  sequence_parallel: true\n  encoder_seq_length: 4096\n  num_layers: 4\n"                     \
    "  hidden_size: 64\n  ffn_hidden_size: ${multiply:4, ${.hidden_size}}\n"                       \
    "  num_attention_heads: 4\n  activations_checkpoint_granularity: full\n"                       \
    "  activations_checkpoint_method: uniform\n  optim:\n    name: mcore_distributed_optim\n"      \
    "  data:\n    seq_length: ${model.encoder_seq_length}\n"
#define NEMO_TRAINER "trainer:\n  devices: 8\n  num_nodes: 4\n  precision: bf16-mixed\n"

/* NeMo's own names, and values computed from others. */
START_TEST(nemo_is_a_scenario)
{
    static const LhConfigWay way = { .tensor = 2,
                                     .context = 1,
                                     .data = 2,
                                     .pipeline = 2,
                                     .chunks = 2,
                                     .layers_of_chunk = 1,
                                     .shard = LH_SHARD_ZERO1,
                                     .checkpoint = LH_CHECKPOINT_LAYER,
                                     .micro_batch_size = 1,
                                     .micro_batches = 4,
                                     .seq_length = 4096 };
    static const char text[] = NEMO_TRAINER NEMO_MODEL "  tokenizer:\n    type: GPT2BPETokenizer\n";
    static const char loop[] =
        NEMO_TRAINER "model:\n  encoder_seq_length: ${.a}\n  a: ${multiply:${.b},${.b}}\n"
                     "  b: ${.a}\n";
    g_autoptr(GError) error = NULL;
    g_autoptr(LhConfig) config = lh_config_parse("f.yaml", text, strlen(text), NULL, &error);
    g_autoptr(LhConfig) endless = NULL;

    if (g_error_matches(error, LH_ERROR, LH_ERROR_RUNTIME))
        return; /* without libyaml */
    check_lines("f.yaml", text,
                LINES("framework=megatron-lm", "seq_length=4096", "dtype=bf16", "shard=zero1",
                      "checkpoint=layer", "tensor_model_parallel_size=2", "batch 8"));
    ck_assert_str_eq(lh_config_system_name(config), "NeMo");
    ck_assert_uint_eq(config->processes, 32);
    ck_assert_ptr_nonnull(strstr(config->model, "\"ffn_hidden_size\": 256"));
    ck_assert_ptr_nonnull(strstr(config->model, "\"vocab_size\": 50432"));
    ck_assert_uint_eq(config->unknown->len, 0);
    check_lines("f.yaml",
                NEMO_MODEL "  tokenizer:\n    type: org/Meta-Llama-3.1-70B\n  fsdp: true\n",
                LINES("shard=fsdp"));
    endless = lh_config_parse("f.yaml", loop, strlen(loop), NULL, &error);
    ck_assert_ptr_null(endless);
    ck_assert_msg(strstr(error->message, "f.yaml:6:23: error: \"model.encoder_seq_length\"") !=
                      NULL,
                  "%s", error->message);
    g_autoptr(GPtrArray) words = lh_config_words(config, &way);
    g_autoptr(GString) said = g_string_new("\n");

    for (guint i = 0; i < words->len; i++)
        g_string_append_printf(said, "%s\n",
                               ((const LhConfigWord *)g_ptr_array_index(words, i))->line);
    ck_assert_msg(strstr(said->str, "\nmodel.virtual_pipeline_model_parallel_size: 2\n") ||
                      strstr(said->str, "\nvirtual_pipeline_model_parallel_size: 2\n"),
                  "%s", said->str);
    ck_assert_msg(strstr(said->str, "encoder_seq_length: 4096\n") != NULL, "%s", said->str);
}
END_TEST

/* Models by name, and lengths, in the form of ms-swift's Megatron. */
START_TEST(swift_is_a_scenario_of_megatron)
{
    check_lines("f.sh",
                "megatron sft --model Qwen/Qwen3-8B --tensor_model_parallel_size 2 "
                "--sequence_parallel true --max_length 8192 --micro_batch_size 1 --bf16 "
                "--global_batch_size 16 --recompute_granularity full --recompute_method uniform",
                LINES("framework=megatron-lm", "model=qwen3-8b", "seq_length=8192",
                      "tensor_model_parallel_size=2", "checkpoint=layer", "batch 16"));
}
END_TEST

/* The model of the arguments equals that of models/, except for its names. */
START_TEST(shapes_are_models)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(LhConfig) config = parse("f.sh", MEGATRON);
    g_autoptr(LhScenario) s = scenario_of(config, LH_CONFIG_QUESTION);
    g_autoptr(LhModel) found = lh_setup_load_model(s, &error);
    g_autoptr(LhModel) known = lh_model_load("llama-3-8b", &error);

    ck_assert_msg(found != NULL && known != NULL, "%s", error != NULL ? error->message : "");
    ck_assert_uint_eq(lh_model_parameters(found), lh_model_parameters(known));
    ck_assert_uint_eq(found->num_query_groups, 8);
}
END_TEST

/* Megatron-LM's defaults for omitted arguments: biases, learned positions, tied embeddings padded
 * to a divisible number of rows, GELU of four times the width, one group. */
START_TEST(silence_is_megatrons)
{
    static const char shape[] = "--num-layers 2 --hidden-size 64 --num-attention-heads 4 --bf16 "
                                "--vocab-size 100 ";
    static const struct {
        const char *beside, *has, *lacks;
    } rows[] = {
        { "--max-position-embeddings 32", "\"learned_positions\": 32", "" },
        { "--max-position-embeddings 32 --use-rotary-position-embeddings", "",
          "learned_positions" },
        { "--max-position-embeddings 32 --position-embedding-type rope", "", "learned_positions" },
        { "", "\"biases\": true", "" },
        { "--disable-bias-linear", "", "\"biases\"" },
        { "", "\"tied_embeddings\": true", "" },
        { "", "\"vocab_size\": 128", "" },
        { "--tensor-model-parallel-size 2", "\"vocab_size\": 256", "" },
        { "--make-vocab-size-divisible-by 8", "\"vocab_size\": 104", "" },
        { "--pad-vocab-size-to 112", "\"vocab_size\": 112", "" },
        { "--make-vocab-size-divisible-by 1 --tokenizer-type NullTokenizer", "\"vocab_size\": 101",
          "" },
        { "", "\"ffn_hidden_size\": 256", "" },
        { "--swiglu", "\"ffn_hidden_size\": 128", "" },
        { "--glu-activation swiglu", "\"gated_mlp\": true", "" },
        { "", "\"num_query_groups\": 4", "" },
        { "--group-query-attention", "\"num_query_groups\": 1", "" },
    };

    for (guint i = 0; i < G_N_ELEMENTS(rows); i++) {
        g_autofree char *text = g_strconcat(shape, rows[i].beside, NULL);
        g_autoptr(LhConfig) config = parse("f.sh", text);

        ck_assert_msg(strstr(config->model, rows[i].has) != NULL, "%s: %s", rows[i].beside,
                      config->model);
        ck_assert_msg(rows[i].lacks[0] == '\0' || strstr(config->model, rows[i].lacks) == NULL,
                      "%s: %s", rows[i].beside, config->model);
    }
}
END_TEST

/* Files named by a configuration are looked up beside it; a missing file is not guessed. */
START_TEST(files_beside_are_read)
{
    static const struct {
        const char *name, *text;
    } files[] = {
        { "z3.json", "{\"zero_optimization\": {\"stage\": 3, \"offload_optimizer\": "
                     "{\"device\": \"cpu\"}}, \"train_batch_size\": \"auto\"}" },
        { "t.toml", "[training]\nseq_len = 4096\n[parallelism]\ntensor_parallel_degree = 2\n" },
    };
    g_autoptr(GError) error = NULL;
    g_autofree char *folder = g_dir_make_tmp("longhaul-XXXXXX", &error);
    g_autofree char *script = g_build_filename(folder, "f.sh", NULL);
    g_autoptr(LhConfig) missing = NULL;
    g_autoptr(LhScenario) s = NULL;

    for (guint i = 0; i < G_N_ELEMENTS(files); i++) {
        g_autofree char *path = g_build_filename(folder, files[i].name, NULL);

        ck_assert(g_file_set_contents(path, files[i].text, -1, &error));
    }
    check_lines(script, "swift sft --model Qwen/Qwen3-8B --deepspeed conf/z3.json --bf16",
                LINES("framework=deepspeed", "shard=fsdp", "optimizer_cpu_offload="));
    check_lines(script,
                "torchrun -m torchtitan.train --job.config_file t.toml --training.seq_len 8192",
                LINES("framework=torchtitan", "seq_length=8192", "tensor_model_parallel_size=2"));
    check_lines("f.sh",
                "cat > d.json <<END\n{\"zero_optimization\": {\"stage\": 1}}\nEND\n" MEGATRON
                "--deepspeed --deepspeed_config d.json",
                LINES("shard=zero1"));
    missing = parse("f.sh", "swift sft --model Qwen/Qwen3-8B --deepspeed nowhere.json --bf16");
    s = scenario_of(missing, EVERYTHING);
    ck_assert(!lh_config_check_way(missing, LH_CONFIG_WAY, s, &error));
    ck_assert_msg(
        strstr(error->message, "f.sh:1:33: error: sharding is configured in nowhere.json") ==
            error->message,
        "%s", error->message);
    g_clear_error(&error);
    ck_assert_ptr_null(
        lh_config_parse("f.sh", "trl sft --config nowhere.yaml --bf16", 36, NULL, &error));
    ck_assert_msg(strstr(error->message, "the settings are in nowhere.yaml") != NULL, "%s",
                  error->message);
    for (guint i = 0; i < G_N_ELEMENTS(files); i++) {
        g_autofree char *path = g_build_filename(folder, files[i].name, NULL);

        ck_assert_int_eq(g_remove(path), 0);
    }
    ck_assert_int_eq(g_rmdir(folder), 0);
}
END_TEST

/* The processes started by launchers are counted and compared if two launchers give a number. */
START_TEST(launchers_are_compared)
{
    static const struct {
        const char *before;
        guint processes;
        bool contradicts;
    } rows[] = {
        { "torchrun --nnodes 4 --nproc-per-node 8 t.py ", 32, false },
        { "deepspeed --num_nodes 2 --num_gpus 8 t.py ", 16, false },
        { "srun --nodes=4 --ntasks-per-node=1 torchrun --nnodes 4 --nproc-per-node 8 t.py ", 32,
          false },
        { "srun --nodes=2 --gpus-per-node=8 torchrun --nnodes 4 --nproc-per-node 8 t.py ", 32,
          true },
        { "srun --nodes=2 --ntasks-per-node=8 --mpi=pmix t.py ", 16, false },
        { "torchrun --nnodes 1:4 --nproc-per-node gpu t.py ", 0, false },
    };

    for (guint i = 0; i < G_N_ELEMENTS(rows); i++) {
        g_autofree char *text = g_strconcat(rows[i].before, MEGATRON, NULL);
        g_autoptr(LhConfig) config = parse("f.sh", text);

        ck_assert_msg(config->processes == rows[i].processes, "%s", rows[i].before);
        ck_assert_uint_eq(config->unknown->len, 0);
        ck_assert_msg(has_note(config, "one of them is wrong") == rows[i].contradicts, "%s",
                      rows[i].before);
    }
}
END_TEST

/* Names of Megatron-DeepSpeed and of older versions. */
START_TEST(megatron_deepspeed_is_a_scenario)
{
    static const char text[] = MEGATRON "--deepspeed --checkpoint-activations ";
    g_autoptr(GError) error = NULL;
    g_autoptr(LhConfig) config = parse("f.sh", text);
    g_autoptr(LhScenario) s = scenario_of(config, EVERYTHING);

    check_lines("f.sh", MEGATRON "--deepspeed --zero-stage 2 --checkpoint-activations",
                LINES("framework=megatron-lm", "shard=zero2", "checkpoint=layer"));
    check_lines("f.sh", MEGATRON "--ds-sequence-parallel-size 4 --zero-stage 1",
                LINES("context_parallel_size=4", "schedule=ulysses", "shard=ddp"));
    check_lines("f.sh", MEGATRON "--deepspeed --zero-stage 1 --num-experts 1",
                LINES("shard=zero1"));
    check_lines("f.sh", MEGATRON "--activations-checkpoint-method uniform",
                LINES("checkpoint=layer"));
    ck_assert(lh_config_check_way(config, LH_CONFIG_QUESTION, s, &error));
    ck_assert(!lh_config_check_way(config, LH_CONFIG_WAY, s, &error));
    ck_assert_msg(strstr(error->message, "ZeRO's stage is in DeepSpeed's file") != NULL, "%s",
                  error->message);
}
END_TEST

/* Asserts which layers have experts, one digit per layer, and the width of the shared experts. */
static void
check_experts(const char *arguments, const char *digits, uint64_t shared_width)
{
    g_autofree char *text =
        g_strdup_printf("--num-layers 6 --hidden-size 64 --num-attention-heads 4 --vocab-size 100 "
                        "--ffn-hidden-size 256 --bf16 --num-experts 8 --moe-ffn-hidden-size 96 "
                        "--moe-router-topk 3 %s",
                        arguments);
    g_autoptr(GError) error = NULL;
    g_autoptr(LhConfig) config = parse("f.sh", text);
    g_autoptr(LhScenario) s = scenario_of(config, LH_CONFIG_QUESTION);
    g_autoptr(LhModel) m = lh_setup_load_model(s, &error);
    const uint64_t shared = shared_width > 0 ? 1 : 0;

    ck_assert_msg(m != NULL, "%s", error != NULL ? error->message : "");
    for (uint64_t i = 0; i < m->num_layers; i++) {
        const bool dense = i < m->weights.dense_layers || lh_model_layer(m, i)->dense;

        ck_assert_msg(dense == (digits[i] == '0'), "%s: layer %u", arguments, (guint)i);
    }
    ck_assert_uint_eq(m->num_experts, 8 + shared);
    ck_assert_uint_eq(m->experts_per_token, 3 + shared);
    ck_assert_uint_eq(m->weights.shared_experts, shared);
    ck_assert_uint_eq(m->weights.shared_ffn_hidden_size, shared_width);
    ck_assert_uint_eq(m->ffn_hidden_size, 96);
    if (strchr(digits, '0') != NULL)
        ck_assert_uint_eq(m->weights.dense_ffn_hidden_size, 256);
}

START_TEST(layers_have_experts_as_they_say)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(LhConfig) dense =
        parse("f.sh", MEGATRON "--num-experts 8 --moe-ffn-hidden-size 96 --moe-layer-freq [0]*32");
    g_autoptr(LhConfig) config = NULL;
    const char *text = MEGATRON "--num-experts 8\n--moe-layer-freq ([0]*3+[1]*28)";

    check_experts("", "111111", 0);
    check_experts("--moe-layer-freq 1", "111111", 0);
    check_experts("--moe-layer-freq 2", "101010", 0);
    check_experts("--moe-layer-freq 4", "100010", 0);
    check_experts("--moe-layer-freq ([0]*2+[1]*4)", "001111", 0);
    check_experts("--moe-layer-freq \"([0,1]*3)\"", "010101", 0);
    check_experts("--moe-layer-freq '[1, 1, 0, 0, 1, 0]'", "110010", 0);
    check_experts("--moe-layer-freq ([1]*4+[0]*2)", "111100", 0);
    check_experts("--moe-shared-expert-intermediate-size 96", "111111", 96);
    check_experts("--moe-shared-expert-intermediate-size 100 --moe-layer-freq 3", "100100", 100);
    ck_assert_ptr_null(strstr(dense->model, "experts"));
    ck_assert_ptr_nonnull(strstr(dense->model, "14336"));
    config = lh_config_parse("f.sh", text, strlen(text), NULL, &error);
    ck_assert_ptr_null(config);
    ck_assert_msg(g_str_has_prefix(error->message, "f.sh:2:1: error: \"moe-layer-freq\": found "),
                  "%s", error->message);
    g_clear_error(&error);
    text = MEGATRON "\n--moe-shared-expert-intermediate-size 96";
    config = lh_config_parse("f.sh", text, strlen(text), NULL, &error);
    ck_assert_ptr_null(config);
    ck_assert_msg(strstr(error->message, "in a model without experts") != NULL, "%s",
                  error->message);
}
END_TEST

START_TEST(impossible_shapes_are_refused)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(LhConfig) config =
        parse("f.sh", "--num-layers 4 --hidden-size 64 --num-attention-heads 4 "
                      "--group-query-attention --num-query-groups 3 --vocab-size 100 --bf16");
    g_autoptr(LhScenario) s = scenario_of(config, LH_CONFIG_QUESTION);

    ck_assert_ptr_null(lh_setup_load_model(s, &error));
    ck_assert(g_error_matches(error, LH_ERROR, LH_ERROR_INPUT));
    ck_assert_msg(g_str_has_prefix(error->message, "f.sh:"), "%s", error->message);
}
END_TEST

static void
check_note(const char *file, const char *text, const char *note)
{
    g_autoptr(LhConfig) config = parse(file, text);
    g_autoptr(GString) all = g_string_new(NULL);

    for (guint i = 0; i < config->notes->len; i++)
        g_string_append_printf(all, "%s\n", (const char *)g_ptr_array_index(config->notes, i));
    ck_assert_msg(note == NULL ? all->len == 0 : strstr(all->str, note) != NULL,
                  "not \"%s\" but:\n%s", note != NULL ? note : "nothing", all->str);
}

/* Types of states, and what names of optimizers say that is not modelled. */
START_TEST(optimizers_are_read)
{
    static const char part[] = "swift sft --model LLM/Qwen3-8B --max_length 8 --optim ";
    g_autofree char *paged = g_strconcat(part, "paged_adamw_8bit", NULL);
    g_autofree char *whole = g_strconcat(part, "paged_adamw", NULL);
    g_autofree char *fused = g_strconcat(part, "adamw_torch_fused", NULL);

    check_note("f.sh", paged, "paged_adamw_8bit: states stay on the GPU");
    check_note("f.sh", paged, "moments of the embedding");
    check_note("f.sh", whole, "paged_adamw: states stay on the GPU");
    check_lines("f.sh", paged, LINES("framework states.moments=8bit"));
    check_lines("f.sh", fused, LINES("framework states.step_bytes_per_parameter=0"));
}
END_TEST

START_TEST(traps_are_named)
{
    check_note("f.sh", MEGATRON, NULL);
    check_note("f.sh", MEGATRON "--context-parallel-size 8\n--cp-comm-type a2a+p2p",
               "f.sh:2:1: warning: a2a+p2p needs --hierarchical-context-parallel-sizes");
    check_note("f.sh",
               MEGATRON "--context-parallel-size 8 --cp-comm-type a2a+p2p "
                        "--hierarchical-context-parallel-sizes 4 4",
               "4 x 4 is not the 8 context-parallel ranks");
    check_note("f.sh", MEGATRON "--context-parallel-size 3",
               "65536 tokens cannot be split into the 6 half-chunks");
    check_note("f.sh", MEGATRON "--context-parallel-size 2\n --window-size 100,0",
               "f.sh:2:2: warning: with context parallelism only a2a and all_gather");
    check_note("f.sh", MEGATRON "--context-parallel-size 2 --window-size 100,0 --cp-comm-type a2a",
               NULL);
    check_note("f.sh",
               "--num-layers 32 --hidden-size 4096 --num-attention-heads 32 --bf16 "
               "--num-query-groups 8 --vocab-size 32000",
               "ignores --num-query-groups");
    check_note("f.sh", MEGATRON "--tensor-model-parallel-size 2", "without --sequence-parallel");
    check_note("f.sh", MEGATRON "--data-parallel-sharding-strategy optim",
               "it needs --use-megatron-fsdp, which is not given");
    check_note("f.sh", MEGATRON "--expert-model-parallel-size 2", "expert parallelism");
    check_note("f.toml", "[training]\nseq_len=100\n[parallelism]\ncontext_parallel_degree=8",
               "f.toml:2:9: warning: 100 tokens cannot be split");
    check_note("f.json",
               "{\"zero_optimization\": {\"stage\": 3}, \"bf16\": {\"enabled\": true},\n"
               "\"tensor_parallel\": {\"autotp_size\": 2}}",
               "f.json:1:33: warning: AutoTP supports only stages 0 to 2");
}
END_TEST

/* Options that a script sets but passes to no command. */
START_TEST(unused_options_are_named)
{
    static const char only[] = "A=1\nARGS=\"--bf16 --num-layers 4\"\n";
    g_autoptr(GError) error = NULL;
    g_autoptr(LhConfig) config = NULL;

    check_note("f.sh", "A=(--lr 1)\nB=x\n  MOE=(\n --num-experts 8)\nrun ${A[@]} " MEGATRON,
               "f.sh:4:2: warning: MOE holds options, but no command of the file uses it");
    check_note("f.sh", "A=\"--lr 1\"\nA+=\" --min-lr 1\"\nrun " MEGATRON,
               "f.sh:1:3: warning: A holds options");
    check_note("f.sh", "A=\"--lr 1\"\nB=\"$A --min-lr 1\"\nrun $B " MEGATRON, NULL);
    check_note("f.sh", "A=(--lr 1)\nfor x in ${A[@]}; do echo $x; done\nrun " MEGATRON, NULL);
    config = lh_config_parse("f.sh", only, strlen(only), NULL, &error);
    ck_assert_ptr_null(config);
    ck_assert_msg(g_str_has_prefix(error->message, "f.sh:2:6: error: ARGS holds options, but no"),
                  "%s", error->message);
}
END_TEST

START_TEST(what_is_wrong_is_refused)
{
    static const struct {
        const char *file, *text, *message;
    } rows[] = {
        { "f.sh", "--lr 1\n", "f.sh:1:1: error: the file contains no setting of Megatron-LM" },
        { "f.sh", "--bf16\n --tensor-model-parallel-size $TP\n",
          "f.sh:2:2: error: \"tensor-model-parallel-size\": found \"$TP\"; allowed: a whole "
          "number; the file does not set this variable" },
        { "f.sh", "--micro-batch-size 0",
          "f.sh:1:1: error: \"micro-batch-size\": found \"0\"; allowed: at least 1" },
        { "f.sh", "--bf16 --cp-comm-type ring",
          "f.sh:1:8: error: \"cp-comm-type\": found \"ring\"; allowed: p2p" },
        { "f.toml", "[parallelism]\ncontext_parallel_degree = 'x'",
          "f.toml:2:27: error: \"parallelism.context_parallel_degree\": found \"x\"" },
        { "f.toml", "[activation_checkpoint]\nmode='some'",
          "f.toml:2:6: error: \"activation_checkpoint.mode\": found \"some\"" },
        { "f.json", "{\"zero_optimization\": {\"stage\": 4}}",
          "f.json:1:33: error: \"zero_optimization.stage\": found \"4\"" },
        { "f.sh", "torchrun x/pretrain_bert.py " MEGATRON,
          "f.sh:1:10: error: pretrain_bert.py trains an encoder" },
        { "f.sh", MEGATRON "--deepspeed --zero-stage 1 --num-experts 128",
          "f.sh:1:346: error: \"num-experts\": found \"128\": Megatron-DeepSpeed's experts" },
        { "f.sh", "swift sft --model LLM/Qwen3-8B --max_length 8 --optim adafactor",
          "f.sh:1:47: error: \"optim\": found \"adafactor\"; allowed: adamw_torch, adamw_hf" },
        { "f.py", "x = 1", "f.py:1:1: error: this is a Python program" },
        { "f.sh", "[ -z \"$1\" ] || X=1\nA=\nif [ -z \"$A\" ]; then exit 1; fi\nrun " MEGATRON,
          "f.sh:1:1: error: the script ends in line 3" },
        { "f.sh", "run --deepspeed zero9 --model_name_or_path a/b --cutoff_len 8",
          "f.sh:1:5: error: \"deepspeed\": found \"zero9\"; allowed: a file" },
        { "f.json", "{\"bf16\": {\"enabled\": 1}}", "f.json:1:22: error: \"bf16.enabled\"" },
        { "f.sh",
          "swift sft --model org/Qwen3-8B --cutoff_len 8 --learning_rate 1 --finetuning_type full\n"
          "llamafactory --pipeline_model_parallel_size 4\n",
          "f.sh:2:14: error: \"pipeline-model-parallel-size\": found \"4\": Megatron-LM then "
          "trains" },
    };

    for (guint i = 0; i < G_N_ELEMENTS(rows); i++) {
        g_autoptr(GError) error = NULL;
        g_autoptr(LhConfig) config =
            lh_config_parse(rows[i].file, rows[i].text, strlen(rows[i].text), NULL, &error);

        ck_assert_msg(config == NULL, "not refused: %s", rows[i].text);
        ck_assert(g_error_matches(error, LH_ERROR, LH_ERROR_INPUT));
        ck_assert_msg(g_str_has_prefix(error->message, rows[i].message), "%s", error->message);
    }
}
END_TEST

/* An error names the missing model and where to give it. */
START_TEST(models_that_are_not_said_are_missed)
{
    static const struct {
        const char *file, *text, *message;
    } rows[] = {
        { "f.sh", "--bf16 --num-layers 4",
          "f.sh:1:8: error: the file does not name the model: hidden-size, num-attention-heads are "
          "missing; add them" },
        { "f.sh", "--num-layers 4 --hidden-size 4 --num-attention-heads 0",
          "f.sh:1:1: error: the file does not name the model: num-attention-heads is missing" },
        { "f.sh", "--num-layers 4 --hidden-size 64 --num-attention-heads 4 --bf16",
          "f.sh:1:1: error: the file does not name the model: the vocabulary size" },
        { "f.sh", "--bf16", "f.sh:1:1: error: the file does not name the model: num-layers" },
        { "f.toml", "[model]\nname='own'\nflavor='1B'\n",
          "f.toml:3:8: error: the file does not name the model: \"own\" of flavor \"1B\"" },
        { "f.toml", "[training]\nseq_len=8\n",
          "f.toml:1:1: error: the file does not name the model: model.name with" },
        { "f.json", "{\"train_batch_size\": 8}",
          "f.json:1:1: error: the file does not name the model: DeepSpeed's file" },
    };

    for (guint i = 0; i < G_N_ELEMENTS(rows); i++) {
        g_autoptr(GError) error = NULL;
        g_autoptr(LhConfig) config = parse(rows[i].file, rows[i].text);
        g_autoptr(LhScenario) s = scenario_of(config, EVERYTHING);

        ck_assert(!lh_config_check_model(config, s, &error));
        ck_assert(g_error_matches(error, LH_ERROR, LH_ERROR_INPUT));
        ck_assert_msg(g_str_has_prefix(error->message, rows[i].message), "%s", error->message);
    }
}
END_TEST

/* Contradicting values under two names are rejected. */
START_TEST(contradictions_are_refused)
{
    static const char text[] = "model:\n  seq_length: 8\ndataset:\n  seq_length: 16\n";
    g_autoptr(GError) error = NULL;
    g_autoptr(LhConfig) config = lh_config_parse("f.yaml", text, strlen(text), NULL, &error);

    if (g_error_matches(error, LH_ERROR, LH_ERROR_RUNTIME))
        return; /* without libyaml */
    ck_assert_ptr_null(config);
    ck_assert_str_eq(error->message,
                     "f.yaml:4:15: error: \"seq-length\" is \"16\" here and \"8\" in line 2");
}
END_TEST

START_TEST(what_is_not_understood_is_listed)
{
    g_autoptr(LhConfig) config =
        parse("f.sh", "--bf16 --foo 1 --lr 2 --transformer-impl transformer_engine");

    ck_assert_uint_eq(config->unknown->len, 1);
    ck_assert_str_eq(((const LhSettingsEntry *)g_ptr_array_index(config->unknown, 0))->path, "foo");
    ck_assert_uint_eq(config->elsewhere->len, 1);
    ck_assert_uint_eq(config->without_effect, 1);
    ck_assert_uint_eq(config->read, 1);
}
END_TEST

/* ---- words ---- */

/* Writes @way as a file. Caller frees. */
static char *
write_file(const LhConfig *config, const LhConfigWay *way)
{
    g_autoptr(GPtrArray) words = lh_config_words(config, way);
    GString *text = g_string_new(NULL);

    for (guint i = 0; i < words->len; i++) {
        const LhConfigWord *word = g_ptr_array_index(words, i);

        if (!word->take_out && !g_str_has_prefix(word->line, "in the program"))
            g_string_append_printf(text, "%s\n", word->line);
    }
    return g_string_free(text, FALSE);
}

static void
check_way(const LhScenario *s, const LhConfigWay *way, const char *text)
{
    g_autofree char *tensor = g_strdup_printf("%u", way->tensor);

    ck_assert_msg(g_strcmp0(s->tensor_model_parallel_size, tensor) == 0, "%s", text);
    ck_assert_msg(s->context_parallel_size == way->context, "%s", text);
    ck_assert_msg(MAX(s->pipeline_model_parallel_size, 1) == way->pipeline, "%s", text);
    ck_assert_msg(s->shard == way->shard && s->checkpoint == way->checkpoint, "%s", text);
    ck_assert_msg(s->micro_batch_size == way->micro_batch_size, "%s", text);
    ck_assert_msg(s->seq_length == way->seq_length, "%s", text);
    ck_assert_msg(s->num_layers_per_virtual_pipeline_stage ==
                      (way->chunks > 1 ? way->layers_of_chunk : 0),
                  "%s", text);
    if (way->context > 1)
        ck_assert_msg(strcmp(g_ptr_array_index(s->schedule, 0), way->schedule) == 0, "%s", text);
}

/* Writes a way in the settings of the file and reads it back. */
static void
check_words(const char *file, const char *text, const LhConfigWay *way)
{
    g_autoptr(LhConfig) config = parse(file, text);
    g_autofree char *said = write_file(config, way);
    g_autoptr(LhConfig) again = parse(file, said);
    g_autoptr(LhScenario) s = scenario_of(again, EVERYTHING);

    ck_assert(lh_config_allows(config->system, way));
    ck_assert_uint_eq(again->unknown->len, 0);
    ck_assert_uint_eq(again->global_batch_size,
                      (uint64_t)way->micro_batch_size * way->micro_batches * way->data);
    check_way(s, way, said);
}

static LhConfigWay
way_of(guint number, const char *const *schedules, guint count)
{
    return (LhConfigWay){ .tensor = 1 + number % 2,
                          .context = 1 + number / 2 % 2 * 7,
                          .data = 1 + number % 3,
                          .pipeline = 1 + number / 4 % 2 * 3,
                          .shard = (int)(number / 8 % 4),
                          .checkpoint = (int)(number / 32 % 3),
                          .chunks = number / 4 % 2 == 1 ? 1 + number % 2 : 1,
                          .layers_of_chunk = 8 / (1 + number % 2),
                          .micro_batch_size = 1 + number % 2,
                          .micro_batches = 4,
                          .seq_length = 65536,
                          .schedule = schedules[number % count],
                          .heads = 4,
                          .others = 2 };
}

START_TEST(words_are_read_as_what_was_meant)
{
    static const char *const megatron[] = { "te-p2p", "te-allgather", "te-a2a", "te-a2a-p2p" };
    static const char *const torchtitan[] = { "te-allgather", "zigzag" };
    guint said = 0;

    for (guint i = 0; i < 192; i++) {
        LhConfigWay way = way_of(i, megatron, G_N_ELEMENTS(megatron));
        g_autoptr(LhConfig) own = parse("f.toml", "[training]\nseq_len=1\n");

        check_words("f.sh", "--bf16", &way);
        way.schedule = torchtitan[i % 2];
        /* A single rank shards nothing, whatever the setting. */
        if (!lh_config_allows(own->system, &way) || way.context * way.data == 1)
            continue;
        said++;
        check_words("f.toml", "[training]\nseq_len=1\n", &way);
    }
    ck_assert_uint_ge(said, 48);
}
END_TEST

START_TEST(differences_are_marked)
{
    static const LhConfigWay way = { .tensor = 1,
                                     .context = 1,
                                     .data = 1,
                                     .pipeline = 1,
                                     .chunks = 1,
                                     .micro_batch_size = 1,
                                     .micro_batches = 1,
                                     .seq_length = 64 };
    g_autoptr(LhConfig) config =
        parse("f.sh", "--bf16 --seq-length 64 --tensor-model-parallel-size 2 --sequence-parallel");
    g_autoptr(GPtrArray) words = lh_config_words(config, &way);
    g_autoptr(GString) found = g_string_new(NULL);

    for (guint i = 0; i < words->len; i++) {
        const LhConfigWord *w = g_ptr_array_index(words, i);

        g_string_append_printf(found, "%s|%s|%d%d\n", w->line, w->was != NULL ? w->was : "",
                               w->added, w->take_out);
    }
    ck_assert_str_eq(found->str, "--seq-length 64||00\n"
                                 "--micro-batch-size 1||10\n"
                                 "--global-batch-size 1||10\n"
                                 "--tensor-model-parallel-size 1|2|00\n"
                                 "--sequence-parallel||01\n"
                                 "--pipeline-model-parallel-size 1||10\n"
                                 "--context-parallel-size 1||10\n");
}
END_TEST

/* Errors of a scenario name the file its value comes from; an option overrides it. */
START_TEST(errors_name_the_file)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(LhConfig) config = parse("f.sh", MEGATRON "\n--context-parallel-size 3");
    g_autoptr(LhScenario) s = scenario_of(config, EVERYTHING);
    const LhField *field = lh_scenario_options();

    ck_assert(lh_scenario_has(s, "context_parallel_size"));
    ck_assert(!lh_scenario_has_option(s, "context_parallel_size"));
    lh_scenario_error(s, "context_parallel_size", &error, "no");
    ck_assert_str_eq(error->message, "f.sh:2:1: error: \"context-parallel-size\": no");
    g_clear_error(&error);
    while (strcmp(field->name, "context_parallel_size") != 0)
        field++;
    ck_assert(lh_scenario_set(s, field, "4", NULL));
    ck_assert_uint_eq(s->context_parallel_size, 4);
    lh_scenario_error(s, "context_parallel_size", &error, "no");
    ck_assert_str_eq(error->message, "--context-parallel-size: no");
    lh_scenario_forget(s, "context_parallel_size");
    ck_assert(!lh_scenario_has(s, "context_parallel_size"));
    ck_assert_uint_eq(s->context_parallel_size, 0);
}
END_TEST

LH_TEST_MAIN("configuration", megatron_is_a_scenario, megatron_recomputes,
             options_replace_recomputation, torchtitan_is_a_scenario, deepspeed_is_a_scenario,
             yaml_is_a_scenario_by_its_settings, nemo_is_a_scenario,
             swift_is_a_scenario_of_megatron, shapes_are_models, silence_is_megatrons,
             megatron_deepspeed_is_a_scenario, launchers_are_compared, files_beside_are_read,
             layers_have_experts_as_they_say, impossible_shapes_are_refused, traps_are_named,
             unused_options_are_named, what_is_wrong_is_refused, adapters_are_read,
             optimizers_are_read, models_that_are_not_said_are_missed, contradictions_are_refused,
             what_is_not_understood_is_listed, words_are_read_as_what_was_meant,
             differences_are_marked, errors_name_the_file)
