/* SPDX-License-Identifier: Apache-2.0 */
/*
 * NeMo 1.0: its YAML, and that of its launcher, which has the same under "training.". Model and
 * training options are Megatron-LM's under other names; values may refer to others (${multiply:4,
 * ${.a}}). Names as of github:NVIDIA/NeMo-Framework-Launcher, launcher_scripts/conf/training.
 */
#include "framework_config/nemo/nemo.h"

#include "framework_config/common/config_words.h"
#include "framework_config/megatron/megatron.h"
#include "framework_config/megatron/megatron_context.h"
#include "framework_config/megatron/megatron_words.h"

#include <inttypes.h>
#include <string.h>

/* clang-format off */
static const LhConfigAlias nemo_names[] = {
    { "trainer.devices", "nproc-per-node" },
    { "trainer.num-nodes", "nnodes" },
    { "trainer.precision", "precision" },
    { "model.encoder-seq-length", "seq-length" },
    { "model.data.seq-length", "seq-length" },
    { "model.activations-checkpoint-granularity", "recompute-granularity" },
    { "model.activations-checkpoint-method", "recompute-method" },
    { "model.activations-checkpoint-num-layers", "recompute-num-layers" },
    { "model.num-micro-batches-with-partial-activation-checkpoints",
      "num-microbatches-with-partial-activation-checkpoints" },
    { "model.bias", "add-bias-linear" },
    { "model.activation", "activation-func" },
    { "model.use-flash-attention", "use-flash-attn" },
    { "model.ub-tp-comm-overlap", "tp-comm-overlap" },
    { "model.ub-tp-comm-overlap-cfg", "tp-comm-overlap-cfg" },
    { "model.bias-dropout-add-fusion", "bias-dropout-fusion" },
    { "model.expert-tensor-parallel-size", "expert-tensor-parallel-size" },
    { "model.rotary-percentage", "rotary-percent" },
    { "model.tokenizer.type", "tokenizer-type" },
    { "model.tokenizer.model", "tokenizer-model" },
    { "model.tokenizer.use-fast", "tokenizer-use-fast" },
    { "model.fsdp", "fsdp" },
    { "model.fsdp-sharding-strategy", "fsdp-sharding-strategy" },
    { "model.fsdp-grad-reduce-dtype", "fsdp-grad-reduce-dtype" },
    { "model.optim.name", "optim-name" },
    { "model.optim.overlap-grad-sync", "overlap-grad-reduce" },
    { "model.optim.overlap-param-sync", "overlap-param-gather" },
    { "model.optim.grad-sync-dtype", "grad-sync-dtype" },
    { "model.optim.bucket-cap-mb", "bucket-cap-mb" },
    { "model.gc-interval", "manual-gc-interval" },
    { "model.nsys-profile.enabled", "use-nsys-profiler" },
    { NULL, NULL },
};

static const LhConfigKey nemo_keys[] = {
    LH_CONFIG_READ("precision"),
    LH_CONFIG_READ("optim-name"),
    LH_CONFIG_READ("fsdp"),
    LH_CONFIG_READ("fsdp-sharding-strategy"),
    LH_CONFIG_VALUE("grad-sync-dtype",
                    "fp32: bf16:ddp.gradient_reduce=activation,states.gradient=activation"),
    LH_CONFIG_VALUE("fsdp-grad-reduce-dtype",
                    "32: fp32: bf16:fsdp.gradient_reduce=activation "
                    "16:fsdp.gradient_reduce=activation"),
    LH_CONFIG_NOT("bucket-cap-mb", "",
                  "buckets have 40 million parameters"),
    LH_CONFIG_NOT("grad-allreduce-chunk-size-mb", "125",
                  "buckets have 40 million parameters"),
    LH_CONFIG_NOT("megatron-amp-o2", "true",
                  "weights and activations have 16 bits, and master weights are fp32"),
    LH_CONFIG_NOT("transformer-engine", "true",
                  "kernels are fused as in TransformerEngine"),
    LH_CONFIG_NOT("mcore-gpt", "true",
                  "kernels are fused as in TransformerEngine"),
    LH_CONFIG_NOT("activations-checkpoint-layers-per-pipeline", "",
                  "all micro-batches are recomputed alike, in plain 1F1B order"),
    LH_CONFIG_NOT("accumulate-grad-batches", "1",
                  "a step has the full batch"),
    LH_CONFIG_NOT("rampup-batch-size", "",
                  "a step has the full batch"),
    LH_CONFIG_NOT("ub-tp-comm-bulk-wgrad", "false",
                  "matrix products are not split to overlap with tensor-parallel communication"),
    LH_CONFIG_NOT("transformer-block-type", "pre_ln",
                  "a layer has one norm before attention and one before the MLP"),
    LH_CONFIG_NOT("attention-type", "multihead",
                  "attention is causal in all heads"),
    LH_CONFIG_NOT("headscale", "false",
                  "heads are not scaled"),
    LH_CONFIG_NOTHING("library"), LH_CONFIG_NOTHING("tokenizer-use-fast"),
    LH_CONFIG_NOTHING("use-scaled-init-method"), LH_CONFIG_NOTHING("ffn-dropout"),
    LH_CONFIG_NOTHING("do-layer-norm-weight-decay"), LH_CONFIG_NOTHING("pre-process"),
    LH_CONFIG_NOTHING("post-process"), LH_CONFIG_NOTHING("normalize-attention-scores"),
    LH_CONFIG_NOTHING("scale-positional-embedding"), LH_CONFIG_NOTHING("native-amp-init-scale"),
    LH_CONFIG_NOTHING("native-amp-growth-interval"), LH_CONFIG_NOTHING("grad-div-ar-fusion"),
    LH_CONFIG_NOTHING("resume-from-checkpoint"), LH_CONFIG_NOTHING("onnx-safe"),
    LH_CONFIG_NOTHING("apex-transformer-log-level"), LH_CONFIG_NOTHING("gradient-as-bucket-view"),
    LH_CONFIG_NOTHING("sync-batch-comm"), LH_CONFIG_NOTHING("batch-p2p-comm"),
    LH_CONFIG_NOTHING("reduce-amax"), LH_CONFIG_NOTHING("use-emha"),
    LH_CONFIG_NOTHING("fp8-e4m3"), LH_CONFIG_NOTHING("fp8-hybrid"),
    LH_CONFIG_NOTHING("get-attention-mask-from-fusion"),
    LH_CONFIG_NOTHING("contiguous-grad-buffer"), LH_CONFIG_NOTHING("contiguous-param-buffer"),
    LH_CONFIG_NOTHING("fsdp-sharded-checkpoint"), LH_CONFIG_NOTHING("seq-len-interpolation-factor"),
    LH_CONFIG_NOTHING("time-limit"), LH_CONFIG_NOTHING("dependency"),
    LH_CONFIG_NOTHING("results-dir"), LH_CONFIG_NOTHING("accelerator"),
    LH_CONFIG_NOTHING("logger"), LH_CONFIG_NOTHING("enable-checkpointing"),
    LH_CONFIG_NOTHING("use-distributed-sampler"), LH_CONFIG_NOTHING("replace-sampler-ddp"),
    LH_CONFIG_NOTHING("max-epochs"), LH_CONFIG_NOTHING("max-steps"),
    LH_CONFIG_NOTHING("max-time"), LH_CONFIG_NOTHING("log-every-n-steps"),
    LH_CONFIG_NOTHING("val-check-interval"), LH_CONFIG_NOTHING("limit-val-batches"),
    LH_CONFIG_NOTHING("limit-test-batches"), LH_CONFIG_NOTHING("gradient-clip-val"),
    LH_CONFIG_NOTHING("explicit-log-dir"), LH_CONFIG_NOTHING("exp-dir"),
    LH_CONFIG_NOTHING("create-wandb-logger"), LH_CONFIG_NOTHING("project"),
    LH_CONFIG_NOTHING("resume-if-exists"), LH_CONFIG_NOTHING("resume-ignore-no-checkpoint"),
    LH_CONFIG_NOTHING("create-checkpoint-callback"), LH_CONFIG_NOTHING("monitor"),
    LH_CONFIG_NOTHING("save-top-k"), LH_CONFIG_NOTHING("mode"),
    LH_CONFIG_NOTHING("always-save-nemo"), LH_CONFIG_NOTHING("save-nemo-on-train-end"),
    LH_CONFIG_NOTHING("filename"), LH_CONFIG_NOTHING("model-parallel-size"),
    LH_CONFIG_NOTHING("log-step-timing"), LH_CONFIG_NOTHING("sync-cuda"),
    LH_CONFIG_NOTHING("buffer-size"), LH_CONFIG_NOTHING("seconds-to-sleep"),
    LH_CONFIG_NOTHING("trace"), LH_CONFIG_NOTHING("start-step"), LH_CONFIG_NOTHING("end-step"),
    LH_CONFIG_NOTHING("ranks"), LH_CONFIG_NOTHING("gen-shape"), LH_CONFIG_NOTHING("betas"),
    LH_CONFIG_NOTHING("constant-steps"), LH_CONFIG_NOTHING("warmup-steps"),
    LH_CONFIG_NOTHING("data-impl"), LH_CONFIG_NOTHING("splits-string"),
    LH_CONFIG_NOTHING("skip-warmup"), LH_CONFIG_NOTHING("index-mapping-dir"),
    LH_CONFIG_NOTHING("data-prefix"),
    { NULL, LH_KEY_NOTHING, NULL, NULL },
};
/* clang-format on */

/* ---- values that refer to others ---- */

#define DEPTH_MAX 16
#define STEPS_MAX 100000 /* per file */

typedef struct {
    LhSettingsFile *entries;
    unsigned steps, depth;
} Resolver;

static char *resolve(Resolver *r, const char *path, const char *text);

/* Finds the setting "a.b", ".a" beside @path, or "..a" one level up. */
static const LhSettingsEntry *
find_named(const Resolver *r, const char *path, const char *name)
{
    const gsize up = strspn(name, ".");
    g_autoptr(GString) whole = g_string_new(up > 0 ? path : "");
    const LhSettingsEntry *entry;

    for (gsize i = 0; i < up; i++) {
        const char *dot = strrchr(whole->str, '.');

        g_string_truncate(whole, dot != NULL ? (gsize)(dot - whole->str) : 0);
    }
    g_string_append_printf(whole, "%s%s", whole->len > 0 ? "." : "", name + up);
    entry = lh_settings_find(r->entries, whole->str);
    if (entry == NULL && g_str_has_prefix(whole->str, "training."))
        entry = lh_settings_find(r->entries, whole->str + strlen("training."));
    return entry;
}

/* End of the part, at the next comma outside braces. */
static const char *
end_of_part(const char *text)
{
    unsigned depth = 0;

    for (; *text != '\0' && (depth > 0 || *text != ','); text++)
        depth = *text == '{' ? depth + 1 : *text == '}' && depth > 0 ? depth - 1 : depth;
    return text;
}

/* NOLINTBEGIN(misc-no-recursion): DEPTH_MAX */

/* The product in "multiply:4, ${.hidden_size}", after the name; NULL: a part is not a number. */
static char *
multiply(Resolver *r, const char *path, const char *parts)
{
    guint64 product = 1;

    for (const char *end = end_of_part(parts);; end = end_of_part(parts)) {
        g_autofree char *part = g_strstrip(g_strndup(parts, (gsize)(end - parts)));
        g_autofree char *value = resolve(r, path, part);
        guint64 number;

        if (value == NULL || !g_ascii_string_to_unsigned(value, 10, 0, UINT32_MAX, &number, NULL) ||
            !g_uint64_checked_mul(&product, product, number))
            return NULL;
        if (*end == '\0')
            break;
        parts = end + 1;
    }
    return g_strdup_printf("%" PRIu64, (uint64_t)product);
}

/* The value of @text, of the setting @path: itself, or what "${...}" refers to. NULL: unknown.
 * Caller frees. */
static char *
resolve(Resolver *r, const char *path, const char *text)
{
    const gsize length = strlen(text);
    g_autofree char *inner = NULL;
    char *found = NULL;

    if (strstr(text, "${") == NULL)
        return g_strdup(text);
    if (!g_str_has_prefix(text, "${") || text[length - 1] != '}' || r->depth >= DEPTH_MAX ||
        r->steps >= STEPS_MAX)
        return NULL;
    r->steps++;
    r->depth++;
    inner = g_strstrip(g_strndup(text + 2, length - 3));
    if (g_str_has_prefix(inner, "multiply:")) {
        found = multiply(r, path, inner + strlen("multiply:"));
    } else if (strpbrk(inner, "${}:") == NULL) {
        const LhSettingsEntry *entry = find_named(r, path, inner);
        const char *value = entry != NULL ? lh_settings_entry_value(entry) : NULL;

        found = value != NULL ? resolve(r, entry->path, value) : NULL;
    }
    r->depth--;
    return found;
}

/* NOLINTEND(misc-no-recursion) */

static void
nemo_prepare(LhSettingsFile *entries)
{
    Resolver r = { .entries = entries };

    for (guint i = 0; i < entries->entries->len; i++) {
        const LhSettingsEntry *entry = g_ptr_array_index(entries->entries, i);
        const char *value = lh_settings_entry_value(entry);
        char *made = value != NULL ? resolve(&r, entry->path, value) : NULL;

        if (made == NULL)
            continue;
        g_free(g_ptr_array_index(entry->values, 0));
        g_ptr_array_index(entry->values, 0) = made;
    }
}

/* ---- the framework ---- */

static bool
nemo_take(LhConfig *c, GError **error)
{
    return lh_config_megatron.take(c, error);
}

static bool
nemo_allows(const LhConfigWay *way)
{
    return lh_config_megatron.allows(way) && way->shard != LH_SHARD_ZERO2;
}

static void
say_nemo_sharding(const LhConfig *c, const LhConfigWay *way, GPtrArray *words)
{
    const bool fsdp = way->shard == LH_SHARD_FSDP;

    if (fsdp)
        lh_config_say(c, words, "model.fsdp", LH_SETTINGS_PLAIN, "true");
    else
        lh_config_unsay(c, words, "model.fsdp");
    lh_config_say(c, words, "model.optim.name", LH_SETTINGS_WORD,
                  way->shard == LH_SHARD_ZERO1 ? "mcore_distributed_optim" : "fused_adam");
}

static void
nemo_say(const LhConfig *c, const LhConfigWay *way, GPtrArray *words)
{
    lh_config_megatron_say_sizes(c, way, words);
    say_nemo_sharding(c, way, words);
}

const LhConfigSystem lh_config_nemo = {
    .name = "NeMo",
    .framework = "megatron-lm",
    .last_word = true,
    .keys = nemo_keys,
    .base = &lh_config_megatron,
    .aliases = nemo_names,
    .prepare = nemo_prepare,
    .schedules = lh_config_megatron_schedules,
    .take = nemo_take,
    .allows = nemo_allows,
    .say = nemo_say,
};
