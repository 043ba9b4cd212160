/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every option of every reader: two files that differ only in it must differ in the resulting
 * scenario or in the notes on it. Options without any effect are counted and change nothing.
 */
#include "base/error.h"
#include "framework_config/configuration.h"
#include "framework_config/configuration_scenario.h"
#include "framework_config/configuration_systems.h"
#include "framework_config/deepspeed/deepspeed.h"
#include "framework_config/megatron/megatron.h"
#include "framework_config/nemo/nemo.h"
#include "framework_config/torchtitan/torchtitan.h"
#include "framework_config/trainer/trainer.h"
#include "run_tests.h"

#include <stdarg.h>
#include <string.h>

#define EVERYTHING (LH_CONFIG_QUESTION | LH_CONFIG_WAY | LH_CONFIG_SCHEDULE)

/* How to write a framework's file that sets @name: the text before it and the settings always
 * beside it. */
typedef struct {
    const LhConfigSystem *system;
    const char *file, *base;
    const char *other; /* replacement for the same setting in @base */
} Writer;

#define SHAPE "--num-layers 4 --hidden-size 64 --num-attention-heads 4 --bf16"
#define BASE                                                                                       \
    "--num-layers 4 --hidden-size 64 --num-attention-heads 4 --vocab-size 100 --bf16 "             \
    "--seq-length 1024 --max-position-embeddings 1024\n"

#define NEMO                                                                                       \
    "model:\n  encoder_seq_length: 64\n  activations_checkpoint_granularity: null\n"               \
    "trainer:\n  num_nodes: 1\n"

static const Writer writers[] = {
    { &lh_config_megatron, "f.sh", BASE, "" },
    { &lh_config_torchtitan, "f.toml", "training.seq_len = 2048\n", "" },
    { &lh_config_deepspeed, "f.json", "", "" },
    { &lh_config_trainer, "f.yaml", "num_processes: 8\n", "cutoff_len: 8\n" },
    { &lh_config_nemo, "f.yaml", NEMO, NEMO },
};

/* Two values for settings that more than one table reads, and the settings they require. */
static const struct {
    const char *name, *one, *other; /* NULL: absent */
    const char *beside;             /* NULL: none */
} pairs[] = {
    { "seq-length", "64", "128", NULL },
    { "global-batch-size", "2", "4", NULL },
    { "cp-comm-type", "p2p", "a2a", NULL },
    { "hierarchical-context-parallel-sizes", "8 2", "4 4",
      "--cp-comm-type a2a+p2p --context-parallel-size 16" },
    { "sequence-parallel", "true", "false", "--tensor-model-parallel-size 2" },
    { "num-virtual-stages-per-pipeline-rank", "1", "2", "--pipeline-model-parallel-size 2" },
    { "virtual-pipeline-model-parallel-size", "1", "2", "--pipeline-model-parallel-size 2" },
    { "account-for-embedding-in-pipeline-split", "true", "false", NULL },
    { "account-for-loss-in-pipeline-split", "true", "false", NULL },
    { "use-distributed-optimizer", "true", "false", NULL },
    { "data-parallel-sharding-strategy", "optim", "optim_grads", "--use-megatron-fsdp" },
    { "use-megatron-fsdp", "true", "false", "--data-parallel-sharding-strategy optim" },
    { "use-custom-fsdp", "true", "false", "--data-parallel-sharding-strategy optim" },
    { "use-torch-fsdp2", "true", "false", NULL },
    { "recompute-granularity", "full", "selective", NULL },
    { "recompute-method", "block", "uniform", "--recompute-granularity full" },
    { "recompute-num-layers", "1", "2", "--recompute-granularity full --recompute-method block" },
    { "recompute-activations", "true", "false", NULL },
    { "moe-layer-recompute", "true", "false", "--num-experts 4" },
    { "recompute-modules", "moe_act", "core_attn", "--recompute-granularity selective" },
    { "bf16", "true", "false", NULL },
    { "fp16", "true", "false", "--bf16=false" },
    { "fp8-format", "hybrid", "false", NULL },
    { "fp8", "hybrid", "false", NULL },
    { "window-size", "8,0", "16,0", NULL },
    { "expert-model-parallel-size", "1", "2", NULL },
    { "num-layers", "4", "8", NULL },
    { "hidden-size", "64", "128", NULL },
    { "ffn-hidden-size", "64", "128", NULL },
    { "num-attention-heads", "4", "8", NULL },
    { "group-query-attention", "true", "false", "--num-query-groups 2" },
    { "num-query-groups", "1", "2", "--group-query-attention" },
    { "kv-channels", "16", "32", NULL },
    { "vocab-size", "100", "200", NULL },
    { "padded-vocab-size", "128", "256", NULL },
    { "swiglu", "true", "false", NULL },
    { "gated-linear-unit", "true", "false", NULL },
    { "activation-func", "swiglu", "gelu", NULL },
    { "untie-embeddings-and-output-weights", "true", "false", NULL },
    { "share-embeddings-and-output-weights", "true", "false", NULL },
    { "num-experts", "4", "8", NULL },
    { "num-moe-experts", "4", "8", NULL },
    { "moe-router-topk", "1", "3", "--num-experts 4" },
    { "moe-ffn-hidden-size", "32", "64", "--num-experts 4" },
    { "moe-shared-expert-intermediate-size", "64", "128",
      "--num-experts 4 --moe-ffn-hidden-size 64" },
    { "moe-layer-freq", "([0]*1+[1]*3)", "1", "--num-experts 4" },
    { "multi-latent-attention", "true", "false", NULL },
    { "hybrid-layer-pattern", "M*M*", "false", NULL },
    { "hybrid-override-pattern", "M*M*", "false", NULL },
    { "is-hybrid-model", "true", "false", NULL },
    { "experimental-attention-variant", "dsa", "false", NULL },
    { "heterogeneous-layers-config-path", "x", "false", NULL },
    { "nnodes", "1", "2", "--nproc-per-node 8" },
    { "nproc-per-node", "4", "8", "--nnodes 1" },
    { "world-size", "8", "16", NULL },
    { "position-embedding-type", "rope", "learned_absolute", NULL },
    { "max-position-embeddings", "64", "128", "--position-embedding-type learned_absolute" },
    { "add-qkv-bias", "true", "false", NULL },
    { "add-bias-linear", "true", "false", NULL },
    { "qk-layernorm", "true", "false", NULL },
    { "cross-entropy-loss-fusion", "true", "false", NULL },
    { "cross-entropy-fusion-impl", "te", "native", "--cross-entropy-loss-fusion" },
    { "use-precision-aware-optimizer", "true", "false", NULL },
    { "exp-avg-dtype", "bf16", "fp32", "--use-precision-aware-optimizer --exp-avg-sq-dtype bf16" },
    { "exp-avg-sq-dtype", "bf16", "fp32", "--use-precision-aware-optimizer --exp-avg-dtype bf16" },
    { "accumulate-allreduce-grads-in-fp32", "true", "false", NULL },
    { "optimizer", "muon", "adam", NULL },
    { "muon-num-ns-steps", "5", "6", "--optimizer muon" },
    { "muon-tp-mode", "blockwise", "duplicated", "--optimizer muon" },
    { "muon-momentum", "0.9", "0.95", "--optimizer muon" },
    { "muon-nesterov", "true", "false", "--optimizer dist_muon" },
    { "muon-scale-mode", "spectral", "unit_rms_norm", "--optimizer muon" },
    { "muon-extra-scale-factor", "0.2", "1", "--optimizer muon" },
    { "muon-coefficient-type", "simple", "quintic", "--optimizer muon" },
    { "model.name", "llama3", "qwen3", "model.flavor = \"8B\"\n" },
    { "model.flavor", "8B", "70B", "model.name = \"llama3\"\n" },
    { "training.local-batch-size", "1", "2", NULL },
    { "training.batch-size", "1", "2", NULL },
    { "training.global-batch-size", "8", "16", NULL },
    { "training.mixed-precision-param", "bfloat16", "float32", NULL },
    { "parallelism.data-parallel-replicate-degree", "1", "2", NULL },
    { "parallelism.data-parallel-shard-degree", "1", "2", NULL },
    { "parallelism.context-parallel-rotate-method", "allgather", "alltoall", NULL },
    { "parallelism.pipeline-parallel-schedule", "GPipe", "1F1B",
      "parallelism.pipeline_parallel_degree = 2\n" },
    { "parallelism.pipeline-parallel-microbatch-size", "1", "2",
      "parallelism.pipeline_parallel_degree = 2\n" },
    { "parallelism.pipeline-parallel-layers-per-stage", "1", "2",
      "parallelism.pipeline_parallel_degree = 2\n"
      "parallelism.pipeline_parallel_schedule = \"Interleaved1F1B\"\n" },
    { "parallelism.expert-parallel-degree", "1", "2", NULL },
    { "parallelism.fsdp-reshard-after-forward", "default", "never", NULL },
    { "activation-checkpoint.mode", "full", "none", NULL },
    { "activation-checkpoint.selective-ac-option", "op", "2", NULL },
    { "model.converters", "float8", "mx", NULL },
    { "parallelism.context-parallel-load-balancer", "headtail", "ptrr", NULL },
    { "train-batch-size", "8", "16", NULL },
    { "train-micro-batch-size-per-gpu", "1", "2", NULL },
    { "gradient-accumulation-steps", "1", "2", NULL },
    { "zero-optimization.stage", "1", "2", NULL },
    { "zero-optimization.offload-optimizer.device", "cpu", "none", NULL },
    { "zero-optimization.offload-param.device", "cpu", "none", NULL },
    { "zero-optimization.offload-optimizer.ratio", "0.5", "1", NULL },
    { "zero-optimization.cpu-offload", "true", "false", NULL },
    { "zero-optimization.cpu-offload-params", "true", "false", NULL },
    { "optimizer-cpu-offload", "true", "false", NULL },
    { "optimizer-offload-fraction", "0.5", NULL, NULL },
    { "overlap-cpu-optimizer-d2h-h2d", "true", "false", NULL },
    { "cpu-offloading", "true", "false", NULL },
    { "cpu-offloading-num-layers", "1", "2", NULL },
    { "training.enable-cpu-offload", "true", "false", NULL },
    { "fsdp-config.fsdp-offload-params", "true", "false", NULL },
    { "fsdp-config.offload-params", "true", "false", NULL },
    { "deepspeed-config.offload-optimizer-device", "cpu", "none", "distributed_type: DEEPSPEED\n" },
    { "deepspeed-config.offload-param-device", "cpu", "none", "distributed_type: DEEPSPEED\n" },
    { "zero-optimization.zero-hpz-partition-size", "1", "8", NULL },
    { "zero-optimization.mics-shard-size", "-1", "8", NULL },
    { "zero-optimization.reduce-bucket-size", "5e8", "2e8", NULL },
    { "sequence-parallel-size", "1", "2", NULL },
    { "tensor-parallel.autotp-size", "1", "2", NULL },
    { "model-name-or-path", "org/Meta-Llama-3-8B", "org/Qwen3-8B", NULL },
    { "base-model", "org/Meta-Llama-3-8B", "org/Qwen3-8B", NULL },
    { "model", "org/Meta-Llama-3-8B", "org/Qwen3-8B", "!--bf16" },
    { "model-id", "org/Meta-Llama-3-8B", "org/Qwen3-8B", NULL },
    { "per-device-train-batch-size", "1", "2", NULL },
    { "max-length", "1024", "2048", "!" SHAPE "\n" },
    { "max-seq-length", "1024", "2048", NULL },
    { "cutoff-len", "1024", "2048", NULL },
    { "sequence-len", "1024", "2048", NULL },
    { "micro-batch-size", "1", "2", NULL },
    { "gradient-checkpointing", "true", "false", NULL },
    { "fsdp-config.activation-checkpointing", "true", "false", NULL },
    { "fsdp-config.fsdp-activation-checkpointing", "true", "false", NULL },
    { "mixed-precision", "bf16", "fp16", NULL },
    { "torch-dtype", "bfloat16", "float16", NULL },
    { "config-file", "a.yaml", "b.yaml", NULL },
    { "deepspeed-config.deepspeed-config-file", "a.json", "b.json", NULL },
    { "distributed-type", "FSDP", "DEEPSPEED", NULL },
    { "num-processes", "8", "16", NULL },
    { "use-peft", "true", "false", NULL },
    { "lora-r", "8", "16", "use_peft: true\n" },
    { "lora-rank", "8", "16", "use_peft: true\n" },
    { "lora-target-linear", "true", "false", "adapter: lora\nlora_target_modules: o_proj\n" },
    { "lora-target", "o_proj", "down_proj", "adapter: lora\n" },
    { "lora-target-modules", "o_proj", "down_proj", "adapter: lora\n" },
    { "target-modules", "o_proj", "down_proj", "adapter: lora\n" },
    { "fsdp", "full_shard", "", NULL },
    { "deepspeed", "a.json", "false", "!" BASE "--zero-stage 2" },
    { "fsdp-config.fsdp-sharding-strategy", "FULL_SHARD", "NO_SHARD", NULL },
    { "fsdp-config.fsdp-reshard-after-forward", "true", "false", "distributed_type: FSDP\n" },
    { "fsdp-config.reshard-after-forward", "true", "false", "distributed_type: FSDP\n" },
    { "deepspeed-config.zero-stage", "2", "3", "distributed_type: DEEPSPEED\n" },
    { "deepspeed-config.gradient-accumulation-steps", "2", "3", NULL },
    { "sequence-parallel-degree", "1", "2", NULL },
    { "context-parallel-size", "1", "2", NULL },
    { "tensor-parallel-size", "1", "2", NULL },
    { "parallelism-config.parallelism-config-cp-size", "1", "2", NULL },
    { "parallelism-config.parallelism-config-tp-size", "1", "2", NULL },
    { "cp-size", "1", "2", NULL },
    { "parallelism-config.parallelism-config-sp-size", "1", "2", NULL },
    { "disable-gradient-checkpointing", "true", "false", "stage: sft\n" },
    { "dist-config.name", "ddp", "fsdp2", NULL },
    { "dist-config.config-file", "a.json", "b.json", "distributed_type: DEEPSPEED\n" },
    { "fsdp-config.sharding-strategy", "FULL_SHARD", "NO_SHARD", NULL },
    { "dp-shard-size", "2", "4", NULL },
    { "dp-replicate-size", "1", "2", "dp_shard_size: 4\n" },
    { "parallelism-config.parallelism-config-dp-shard-size", "2", "4", NULL },
    { "parallelism-config.parallelism-config-dp-replicate-size", "1", "2", "dp_shard_size: 4\n" },
    { "tensor-model-parallel-size", "1", "2", NULL },
    { "pipeline-model-parallel-size", "1", "2", NULL },
    { "tokenizer-type", "GPT2BPETokenizer", "Llama2Tokenizer", "!" SHAPE },
    { "tokenizer-model", "org/Llama-2-7b-hf", "org/Meta-Llama-3-8B", "!" SHAPE },
    { "precision", "bf16", "16", NULL },
    { "checkpoint-activations", "true", "false", NULL },
    { "checkpoint-num-layers", "1", "2", "--checkpoint-activations" },
    { "activations-checkpoint-method", "uniform", "block", NULL },
    { "activations-checkpoint-num-layers", "1", "2", "--activations-checkpoint-method uniform" },
    { "zero-stage", "1", "2", "--deepspeed" },
    { "ds-sequence-parallel-size", "1", "2", NULL },
    { "deepspeed-config", "a.json", "b.json", "--deepspeed --zero-stage 1" },
    { "disable-bias-linear", "true", "false", NULL },
    { "make-vocab-size-divisible-by", "1", "64", NULL },
    { "pad-vocab-size-to", "128", "256", NULL },
    { "use-rotary-position-embeddings", "true", "false", NULL },
    { "merge-file", "x", NULL, "!" SHAPE },
    { "recipe", "a", "b", "!--bf16" },
    { "glu-activation", "swiglu", "none", NULL },
    { "hybrid-attention-ratio", "0.1", "false", NULL },
    { "hybrid-mlp-ratio", "0.5", "false", NULL },
    { "encoder-num-layers", "12", "false", NULL },
    { "decoder-num-layers", "12", "false", NULL },
    { "bert-binary-head", "false", NULL, NULL },
    { "bert-no-binary-head", "true", "false", NULL },
    { "language-model-type", "mistral_7b", "false", NULL },
    { "vision-model-type", "clip", "false", NULL },
    { "vision-pretraining", "true", "false", NULL },
    { "retro-project-dir", "x", "false", NULL },
    { "optim-name", "mcore_distributed_optim", "fused_adam", NULL },
    { "fsdp-sharding-strategy", "full", "hybrid", NULL },
    { "optimizer.early-step-in-backward", "false", "true", NULL },
    { "optim", "adamw_torch", "adamw_8bit", NULL },
    { "optimizer", "adamw_torch", "adamw_torch_fused", NULL },
    { "bf16.enabled", "true", "false", NULL },
    { "fp16.enabled", "true", "false", NULL },
};

/* All failures. */
static GString *wrong;

static void G_GNUC_PRINTF(2, 3) expect(bool ok, const char *format, ...)
{
    va_list args;

    if (ok)
        return;
    va_start(args, format);
    g_string_append_vprintf(wrong, format, args);
    va_end(args);
    g_string_append_c(wrong, '\n');
}

static bool
is_plain(const char *value)
{
    char *end;

    if (strcmp(value, "true") == 0 || strcmp(value, "false") == 0)
        return true;
    (void)g_ascii_strtod(value, &end);
    return end != value && *end == '\0';
}

/* Whether the setting is the one present in every file. */
static bool
is_base(const Writer *w, const char *name)
{
    const gsize length = name != NULL ? strlen(name) : 0;

    return length > 0 && strncmp(w->base, name, length) == 0 &&
           strchr(" :", w->base[length]) != NULL;
}

/* Writes a file that sets @name to @value (NULL: does not set it). Caller frees. */
static char *
write_text(const Writer *w, const char *name, const char *value, const char *beside)
{
    g_autofree char *under = name != NULL ? g_strdelimit(g_strdup(name), "-", '_') : NULL;
    const char *quote = value != NULL && is_plain(value) ? "" : "\"";
    g_auto(GStrv) parts = under != NULL ? g_strsplit(under, ".", -1) : NULL;
    const bool based = is_base(w, under);
    g_autoptr(GString) text = g_string_new(based ? w->other : w->base);

    /* Some names belong to two frameworks. */
    if (beside != NULL && beside[0] == '!' && g_str_has_suffix(w->file, ".sh"))
        g_string_assign(text, beside + 1); /* replaces the settings always present */
    else if (beside != NULL && beside[0] != '!' &&
             g_str_has_prefix(beside, "--") == g_str_has_suffix(w->file, ".sh"))
        g_string_append(text, beside);
    if (g_str_has_suffix(w->file, ".sh")) {
        if (name != NULL && value != NULL)
            g_string_append_printf(text,
                                   strchr(value, ' ') != NULL ? "\nrun --%s %s" : "\nrun --%s='%s'",
                                   name, value);
    } else if (g_str_has_suffix(w->file, ".yaml")) {
        guint i = 0;

        for (; parts != NULL && parts[i] != NULL; i++)
            g_string_append_printf(text, "%s%s:", i > 0 ? "\n  " : "", parts[i]);
        if (name != NULL)
            g_string_append_printf(text, " %s%s%s\n", quote, value, quote);
    } else if (g_str_has_suffix(w->file, ".toml")) {
        if (name != NULL)
            g_string_append_printf(text, "%s = %s%s%s\n", under, quote, value, quote);
    } else {
        for (guint i = 0; parts != NULL && parts[i] != NULL; i++)
            g_string_append_printf(text, "{\"%s\": ", parts[i]);
        if (name != NULL)
            g_string_append_printf(text, "%s%s%s", quote, value, quote);
        else
            g_string_append(text, "{");
        for (guint i = 0; i < (parts != NULL ? g_strv_length(parts) : 1); i++)
            g_string_append_c(text, '}');
    }
    return g_string_free(g_steal_pointer(&text), FALSE);
}

/* Result of reading the file: its scenario, model and notes; or its error. Caller frees. */
static char *
answer_of(const Writer *w, const char *text, guint *without_effect)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(LhConfig) c = lh_config_parse(w->file, text, strlen(text), NULL, &error);
    g_autoptr(LhScenario) s = lh_scenario_new();
    GString *out = g_string_new(NULL);

    *without_effect = 0;
    if (c == NULL || !lh_config_apply(c, EVERYTHING, s, &error)) {
        g_string_append(out, error->message);
        return g_string_free(out, FALSE);
    }
    lh_scenario_lines(s, out);
    g_string_append_printf(out, "%s\nprocesses %u\n", c->model != NULL ? c->model : "",
                           (guint)c->processes);
    for (guint i = 0; i < c->notes->len; i++)
        g_string_append_printf(out, "%s\n", (const char *)g_ptr_array_index(c->notes, i));
    g_string_append_printf(out, "unknown %u\n", c->unknown->len);
    if (!lh_config_check_way(c, EVERYTHING, s, &error))
        g_string_append_printf(out, "%s\n", error->message);
    g_string_append_printf(out, "%s\n", c->no_model != NULL ? c->no_model : "");
    *without_effect = c->without_effect;
    return g_string_free(out, FALSE);
}

static void
check_pair(const Writer *w, const char *name, const char *one, const char *other,
           const char *beside)
{
    g_autofree char *first = write_text(w, name, one, beside);
    g_autofree char *second = write_text(w, other != NULL ? name : NULL, other, beside);
    guint counted;
    g_autofree char *a = answer_of(w, first, &counted), *b = answer_of(w, second, &counted);

    expect(strcmp(a, b) != 0, "%s: %s and %s are the same", name, one, other);
}

/* Checks an option that is not modelled, with the value that is predicted and with another one. */
static void
check_not_modelled(const Writer *w, const LhConfigKey *key)
{
    g_auto(GStrv) usual = g_strsplit(key->field, ",", -1);
    const char *as_predicted = usual[0] != NULL && usual[0][0] != '\0' ? usual[0] : "7";

    check_pair(w, key->name, as_predicted, strcmp(as_predicted, "true") == 0 ? "false" : "other",
               NULL);
    expect(key->reason != NULL && strlen(key->reason) > 8, "%s has no reason", key->name);
}

/* Asserts that two of the values give different results. */
static void
check_framework(const Writer *w, const LhConfigKey *key)
{
    g_auto(GStrv) rows = g_strsplit(key->field, " ", -1);
    g_autoptr(GHashTable) answers = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);

    for (guint i = 0; rows[i] != NULL; i++) {
        g_autofree char *value = g_strndup(rows[i], strcspn(rows[i], ":"));
        g_autofree char *text = write_text(w, key->name, value, NULL);
        guint counted;
        char *answer = answer_of(w, text, &counted);

        expect(strstr(answer, "error:") == NULL, "%s", answer);
        g_hash_table_add(answers, answer);
    }
    expect(g_hash_table_size(answers) > 1, "%s changes nothing", key->name);
}

/* Asserts that the setting is counted as ignored and changes nothing else. */
static void
check_nothing(const Writer *w, const LhConfigKey *key)
{
    const char *beside = g_str_has_suffix(w->file, ".json") ? NULL : "";
    g_autofree char *with = write_text(w, key->name, "7", beside);
    g_autofree char *without = write_text(w, NULL, NULL, beside);
    guint more, less;
    g_autofree char *a = answer_of(w, with, &more), *b = answer_of(w, without, &less);

    if (g_str_has_suffix(w->file, ".json")) { /* alone it does not describe training */
        expect(strstr(a, "the file contains no setting") != NULL, "%s: %s", key->name, a);
        return;
    }
    expect(more == less + 1, "%s is not counted", key->name);
    expect(strcmp(a, b) == 0, "%s changes something:\n%s%s", key->name, a, b);
}

static void
check_read(const Writer *w, const LhConfigKey *key)
{
    for (guint i = 0; i < G_N_ELEMENTS(pairs); i++) {
        if (strcmp(pairs[i].name, key->name) == 0) {
            check_pair(w, key->name, pairs[i].one, pairs[i].other, pairs[i].beside);
            return;
        }
    }
    expect(false, "the test has no two values of %s", key->name);
}

static void
check_key(const Writer *w, const LhConfigKey *key)
{
    const size_t length = strlen(key->name);

    expect(key->name[length - 1] != '*', "%s stands for others", key->name);
    switch (key->kind) {
    case LH_KEY_QUESTION:
    case LH_KEY_WAY:
        check_pair(w, key->name, "2", "4", NULL);
        break;
    case LH_KEY_READ:
        check_read(w, key);
        break;
    case LH_KEY_FRAMEWORK:
        check_framework(w, key);
        break;
    case LH_KEY_NOT_MODELLED:
        check_not_modelled(w, key);
        break;
    case LH_KEY_NOTHING:
        check_nothing(w, key);
        break;
    }
}

START_TEST(every_option_counts)
{
    wrong = g_string_new(NULL);
    for (guint i = 0; lh_config_systems[i] != NULL; i++) {
        const Writer *w = writers;

        while (w->system != lh_config_systems[i])
            w++;
        for (const LhConfigKey *key = w->system->keys; key->name != NULL; key++)
            check_key(w, key);
    }
    g_string_truncate(wrong, MIN(wrong->len, 3000)); /* longer texts exceed a message of Check */
    ck_assert_msg(wrong->len == 0, "%s", wrong->str);
    g_string_free(wrong, TRUE);
}
END_TEST

/* A duplicate name would be found only once. */
START_TEST(every_option_stands_once)
{
    for (guint i = 0; lh_config_systems[i] != NULL; i++) {
        g_autoptr(GHashTable) names = g_hash_table_new(g_str_hash, g_str_equal);

        for (const LhConfigKey *key = lh_config_systems[i]->keys; key->name != NULL; key++)
            ck_assert_msg(g_hash_table_add(names, (gpointer)key->name), "%s stands twice",
                          key->name);
    }
}
END_TEST

LH_TEST_MAIN("configuration_options", every_option_counts, every_option_stands_once)
