/* SPDX-License-Identifier: Apache-2.0 */
/*
 * torchtitan: the TOML files of its trainer, as of 2025. (Later configurations are Python programs
 * and are not read.) Names and defaults as of github:pytorch/torchtitan,
 * torchtitan/config/job_config.py.
 *
 * Its ring of scaled_dot_product_attention on zigzag halves is simulated as `zigzag` (rotate method
 * alltoall), and as `te-allgather` where keys are gathered (allgather, the default). Its selective
 * recomputation by op keeps matrix products and attention; longhaul's recomputes attention.
 */
#include "framework_config/torchtitan/torchtitan.h"

#include "framework_config/common/config_messages.h"
#include "framework_config/common/config_settings.h"
#include "framework_config/common/config_values.h"
#include "framework_config/common/config_words.h"
#include "framework_config/torchtitan/torchtitan_keys.h"
#include "model/framework.h"
#include "step/pipeline/pipeline.h"

#include <inttypes.h>
#include <string.h>

/* Old paths of settings that are now in [parallelism]. */
static const LhConfigAlias torchtitan_names[] = {
    { "training.data-parallel-replicate-degree", "parallelism.data-parallel-replicate-degree" },
    { "training.data-parallel-shard-degree", "parallelism.data-parallel-shard-degree" },
    { "training.data-parallel-degree", "parallelism.data-parallel-shard-degree" },
    { "training.tensor-parallel-degree", "parallelism.tensor-parallel-degree" },
    { "training.pipeline-parallel-degree", "parallelism.pipeline-parallel-degree" },
    { "experimental.context-parallel-degree", "parallelism.context-parallel-degree" },
    { "experimental.context-parallel-rotate-method", "parallelism.context-parallel-rotate-method" },
    { "experimental.pipeline-parallel-degree", "parallelism.pipeline-parallel-degree" },
    { "experimental.pipeline-parallel-schedule", "parallelism.pipeline-parallel-schedule" },
    { "experimental.pipeline-parallel-split-points", "parallelism.pipeline-parallel-split-points" },
    { "experimental.pipeline-parallel-schedule-csv", "parallelism.pipeline-parallel-schedule-csv" },
    { "experimental.enable-async-tensor-parallel", "parallelism.enable-async-tensor-parallel" },
    { "experimental.enable-compiled-autograd", "parallelism.enable-compiled-autograd" },
    { NULL, NULL },
};

static const char *const torchtitan_schedules[] = { "te-allgather", "zigzag", NULL };

/* context_parallel_rotate_method for each schedule. */
static const char *const rotate_methods[] = { "allgather", "alltoall", NULL };

/* torchtitan's names of models in models/. */
static const struct {
    const char *name, *flavor, *model;
} models[] = {
    { "llama3", "8B", "llama-3-8b" },       { "llama3", "70B", "llama-3-70b" },
    { "llama3", "405B", "llama-3.1-405b" }, { "llama2", "7B", "llama-7b" },
    { "llama2", "13B", "llama-13b" },       { "llama2", "70B", "llama-2-70b" },
    { "qwen3", "8B", "qwen3-8b" },          { "qwen3", "32B", "qwen3-32b" },
    { "qwen3", "235B-A22B", "qwen3-235b" }, { "deepseek_v3", "671B", "deepseek-v3" },
};

static bool
refuse(const LhConfig *c, const char *name, const char *found, const char *allowed, GError **error)
{
    const LhSettingsEntry *entry = lh_config_entry(c, name);
    g_autofree char *shown = g_strescape(found, NULL);

    return lh_config_fail(c, entry, error, "\"%s\": found \"%.40s\"; allowed: %s", entry->path,
                          shown, allowed);
}

static void
lacks_flavor(LhConfig *c, const char *name, const char *flavor)
{
    const LhSettingsEntry *entry = lh_config_entry(c, "model.flavor");
    g_autofree char *shown = g_strescape(name, NULL);
    g_autofree char *shown_flavor = g_strescape(flavor, NULL);
    g_autoptr(GString) known = g_string_new(NULL);

    if (entry == NULL)
        entry = lh_config_entry(c, "model.name");
    for (guint i = 0; i < G_N_ELEMENTS(models); i++)
        g_string_append_printf(known, "%s%s %s", i > 0 ? ", " : "", models[i].name,
                               models[i].flavor);
    if (name[0] == '\0' || flavor[0] == '\0')
        lh_config_lacks_model(c, entry, "%s is missing; add it (known: %s)",
                              name[0] != '\0'     ? "model.flavor"
                              : flavor[0] != '\0' ? "model.name"
                                                  : "model.name with model.flavor",
                              known->str);
    else
        lh_config_lacks_model(
            c, entry, "\"%.40s\" of flavor \"%.40s\" is unknown (known: %s); give one of these",
            shown, shown_flavor, known->str);
}

static bool
take_torchtitan_model(LhConfig *c, GError **error)
{
    const char *name = "", *flavor = "";
    const LhSettingsEntry *entry = lh_config_entry(c, "model.flavor");

    if (!lh_config_word(c, "model.name", &name, error) ||
        !lh_config_word(c, "model.flavor", &flavor, error))
        return false;
    for (guint i = 0; i < G_N_ELEMENTS(models); i++) {
        if (strcmp(models[i].name, name) == 0 && strcmp(models[i].flavor, flavor) == 0) {
            lh_config_set(c, entry, LH_CONFIG_QUESTION, "model", models[i].model);
            return true;
        }
    }
    lacks_flavor(c, name, flavor);
    return true;
}

/* Reads a degree; -1 means all remaining ranks. */
static bool
read_degree(LhConfig *c, const char *name, uint64_t *degree, bool *rest, GError **error)
{
    const char *text = "";

    if (!lh_config_word(c, name, &text, error))
        return false;
    *rest = strcmp(text, "-1") == 0;
    return *rest || lh_config_count(c, name, degree, error);
}

static bool
take_data(LhConfig *c, GError **error)
{
    const char *shard_name = "parallelism.data-parallel-shard-degree";
    const char *copies_name = "parallelism.data-parallel-replicate-degree";
    const char *reshard = "default", *offload_name = "training.enable-cpu-offload";
    uint64_t shards = 1, copies = 1, context = 1;
    bool rest = lh_config_entry(c, shard_name) == NULL, ignored;
    bool sharded, offload = false;

    if ((!rest && !read_degree(c, shard_name, &shards, &rest, error)) ||
        !read_degree(c, copies_name, &copies, &ignored, error) ||
        !lh_config_count(c, "parallelism.context-parallel-degree", &context, error) ||
        !lh_config_flag(c, offload_name, &offload, error) ||
        !lh_config_word(c, "parallelism.fsdp-reshard-after-forward", &reshard, error))
        return false;
    sharded = rest || shards > 1 || context > 1;
    if (sharded && copies > 1)
        lh_config_note(c, lh_config_entry(c, copies_name),
                       "not modelled: %" PRIu64 " replicas of sharding groups: all ranks shard",
                       copies);
    if (strcmp(reshard, "never") == 0)
        lh_config_set_framework(c, "fsdp.reshard_after_forward", "no");
    else if (strcmp(reshard, "always") == 0)
        lh_config_note(c, lh_config_entry(c, "parallelism.fsdp-reshard-after-forward"),
                       "not modelled: always: with one pipeline stage the last block's weights "
                       "stay, as by default");
    else if (strcmp(reshard, "default") != 0)
        return refuse(c, "parallelism.fsdp-reshard-after-forward", reshard,
                      "default, always, never", error);
    if (!rest && shards > 0 && copies > 0 && shards < UINT16_MAX && copies < UINT16_MAX)
        lh_config_set_count(c, lh_config_entry(c, shard_name), LH_CONFIG_WAY, "data_parallel_size",
                            shards * copies);
    lh_config_set(c, lh_config_entry(c, shard_name), LH_CONFIG_WAY, "shard",
                  lh_shard_names[sharded ? LH_SHARD_FSDP : LH_SHARD_DDP]);
    if (offload && sharded)
        lh_config_set(c, lh_config_entry(c, offload_name), LH_CONFIG_WAY, "offload_param", NULL);
    else if (offload)
        lh_config_note(c, lh_config_entry(c, offload_name), "it needs sharded weights");
    return true;
}

static bool
take_torchtitan_context(LhConfig *c, GError **error)
{
    const char *name = "parallelism.context-parallel-rotate-method", *method = "allgather";
    const char *balance = "parallelism.context-parallel-load-balancer", *balancer = "headtail";
    const LhSettingsEntry *length = lh_config_entry(c, "training.seq-len");
    uint64_t context = 1, tokens = 0;
    int which;

    if (!lh_config_word(c, name, &method, error) || !lh_config_word(c, balance, &balancer, error) ||
        !lh_config_count(c, "training.seq-len", &tokens, error) ||
        !lh_config_count(c, "parallelism.context-parallel-degree", &context, error))
        return false;
    which = lh_config_index(rotate_methods, method);
    if (which < 0)
        return refuse(c, name, method, "allgather, alltoall", error);
    if (length == NULL) /* default of torchtitan */
        lh_config_set_count(c, NULL, LH_CONFIG_QUESTION, "seq_length", 2048);
    if (lh_config_entry(c, "parallelism.context-parallel-degree") == NULL)
        lh_config_set_count(c, NULL, LH_CONFIG_WAY, "context_parallel_size", 1);
    if (strcmp(balancer, "headtail") != 0)
        lh_config_note(c, lh_config_entry(c, balance),
                       "not modelled: %.20s: headtail is predicted instead", balancer);
    if (context > 1 && tokens % (2 * context) != 0)
        lh_config_note(c, length,
                       "%" PRIu64 " tokens cannot be split into the %" PRIu64
                       " half-chunks of %" PRIu64 " context-parallel ranks",
                       tokens, 2 * context, context);
    lh_config_set(c, lh_config_entry(c, name), LH_CONFIG_SCHEDULE, "schedule",
                  torchtitan_schedules[which]);
    return true;
}

static bool
take_batch(LhConfig *c, GError **error)
{
    const char *local_name = lh_config_entry(c, "training.local-batch-size") != NULL
                                 ? "training.local-batch-size"
                                 : "training.batch-size";
    uint64_t local = 8, micro = 1, stages = 1; /* 8 sequences: default of torchtitan */
    bool rest = false;

    if (!lh_config_count(c, local_name, &local, error) ||
        !lh_config_count(c, "parallelism.pipeline-parallel-degree", &stages, error) ||
        !lh_config_count(c, "parallelism.pipeline-parallel-microbatch-size", &micro, error) ||
        !read_degree(c, "training.global-batch-size", &c->global_batch_size, &rest, error))
        return false;
    if (local == 0 || micro == 0)
        return refuse(c, local == 0 ? local_name : "parallelism.pipeline-parallel-microbatch-size",
                      "0", "at least 1", error);
    if (stages <= 1) {
        lh_config_set_count(c, lh_config_entry(c, local_name), LH_CONFIG_WAY, "micro_batch_size",
                            local);
        return true;
    }
    lh_config_set_count(c, lh_config_entry(c, "parallelism.pipeline-parallel-microbatch-size"),
                        LH_CONFIG_WAY, "micro_batch_size", micro);
    if (c->global_batch_size == 0 && local % micro == 0)
        lh_config_set_count(c, lh_config_entry(c, local_name), LH_CONFIG_WAY, "num_micro_batches",
                            local / micro);
    return true;
}

static bool
take_torchtitan_pipeline(LhConfig *c, GError **error)
{
    const char *name = "parallelism.pipeline-parallel-schedule", *order = "1F1B";
    uint64_t stages = 1, layers = 0;

    if (!lh_config_word(c, name, &order, error) ||
        !lh_config_count(c, "parallelism.pipeline-parallel-degree", &stages, error) ||
        !lh_config_count(c, "parallelism.pipeline-parallel-layers-per-stage", &layers, error))
        return false;
    if (stages <= 1)
        return true;
    if (g_ascii_strcasecmp(order, "GPipe") == 0)
        lh_config_set(c, lh_config_entry(c, name), LH_CONFIG_WAY, "pipeline_schedule",
                      lh_pipeline_order_names[LH_PIPELINE_GPIPE]);
    else if (g_ascii_strcasecmp(order, "Interleaved1F1B") == 0 && layers > 0)
        lh_config_set_count(c, lh_config_entry(c, "parallelism.pipeline-parallel-layers-per-stage"),
                            LH_CONFIG_WAY, "num_layers_per_virtual_pipeline_stage", layers);
    else if (g_ascii_strcasecmp(order, "1F1B") != 0)
        lh_config_note(c, lh_config_entry(c, name),
                       "not modelled: %.30s: 1F1B is predicted instead", order);
    return true;
}

/* Every n-th layer is recomputed whole, 0 and 1: all of them. */
static bool
take_frequency(LhConfig *c, const char *option, GError **error)
{
    const LhSettingsEntry *entry = lh_config_entry(c, "activation-checkpoint.selective-ac-option");
    guint64 every;

    if (!g_ascii_string_to_unsigned(option, 10, 0, UINT16_MAX, &every, NULL))
        return refuse(c, "activation-checkpoint.selective-ac-option", option, "op, or a number",
                      error);
    if (every <= 1)
        return true;
    lh_config_set(c, entry, LH_CONFIG_WAY, "recompute_method",
                  lh_recompute_method_names[LH_RECOMPUTE_EVERY]);
    lh_config_set_count(c, entry, LH_CONFIG_WAY, "recompute_num_layers", every);
    return true;
}

static bool
take_policies(LhConfig *c, GError **error)
{
    static const char *const modes[] = { "none", "selective", "full", NULL };
    static const int policies[] = { LH_CHECKPOINT_NONE, LH_CHECKPOINT_SELECTIVE,
                                    LH_CHECKPOINT_LAYER };
    const char *mode = "selective", *type = "bfloat16", *option = "2";
    int which;

    if (!lh_config_word(c, "activation-checkpoint.mode", &mode, error) ||
        !lh_config_word(c, "activation-checkpoint.selective-ac-option", &option, error) ||
        !lh_config_word(c, "training.mixed-precision-param", &type, error))
        return false;
    which = lh_config_index(modes, mode);
    if (which < 0)
        return refuse(c, "activation-checkpoint.mode", mode, "none, selective, full", error);
    if (which == 1 && strcmp(option, "op") != 0) {
        if (!take_frequency(c, option, error))
            return false;
        which = 2;
    }
    if (which == 1)
        lh_config_note(c, lh_config_entry(c, "activation-checkpoint.mode"),
                       "not modelled: activation-checkpoint.mode selective op: which matrix "
                       "products it keeps; only attention is recomputed, which takes more memory");
    if (strcmp(type, "bfloat16") != 0)
        lh_config_note(c, lh_config_entry(c, "training.mixed-precision-param"),
                       "not modelled: %.20s: bf16 is predicted instead", type);
    lh_config_set(c, lh_config_entry(c, "activation-checkpoint.mode"), LH_CONFIG_WAY, "checkpoint",
                  lh_checkpoint_names[policies[which]]);
    lh_config_set(c, NULL, LH_CONFIG_QUESTION, "dtype", "bf16");
    return true;
}

static bool
take_rest(LhConfig *c, GError **error)
{
    const LhSettingsEntry *converters = lh_config_entry(c, "model.converters");
    uint64_t experts = 1;

    if (!lh_config_count(c, "parallelism.expert-parallel-degree", &experts, error))
        return false;
    if (experts > 1)
        lh_config_note(c, lh_config_entry(c, "parallelism.expert-parallel-degree"),
                       "not modelled: expert parallelism of %" PRIu64
                       ": every rank has all experts "
                       "(a later version: Experts spread over ranks)",
                       experts);
    if (converters != NULL && converters->values->len > 0) {
        g_autofree char *text = lh_settings_entry_text(converters);

        lh_config_note(c, converters,
                       "not modelled: model.converters %.60s: matrix products are in 16 bits (a "
                       "later version: FP8, MXFP8, NVFP4)",
                       text);
    }
    return true;
}

/* Refuses an optimizer that runs within the backward pass, where no step has it. */
static bool
refuse_early_step(const LhConfig *c, GError **error)
{
    const char *name = "optimizer.early-step-in-backward";
    bool early = false;

    return lh_config_flag(c, name, &early, error) &&
           (!early || refuse(c, name, "true",
                             "false (a step runs its optimizer behind the backward pass)", error));
}

static bool
torchtitan_take(LhConfig *c, GError **error)
{
    return take_torchtitan_model(c, error) && take_data(c, error) &&
           take_torchtitan_context(c, error) && take_batch(c, error) &&
           take_torchtitan_pipeline(c, error) && take_policies(c, error) && take_rest(c, error) &&
           refuse_early_step(c, error);
}

/* ---- writing a way of training ---- */

static bool
torchtitan_allows(const LhConfigWay *way)
{
    return way->checkpoint != LH_CHECKPOINT_REMAT && way->recompute.modules == 0 &&
           (way->recompute.layers == 0 || way->recompute.method == LH_RECOMPUTE_EVERY) &&
           (way->shard == LH_SHARD_FSDP || (way->shard == LH_SHARD_DDP && way->context == 1));
}

static void
say_torchtitan_pipeline(const LhConfig *c, const LhConfigWay *way, GPtrArray *words)
{
    lh_config_say_count(c, words, "parallelism.pipeline_parallel_degree", way->pipeline);
    if (way->pipeline == 1)
        return;
    lh_config_say(c, words, "parallelism.pipeline_parallel_schedule", LH_SETTINGS_WORD,
                  way->order == LH_PIPELINE_GPIPE ? "GPipe"
                  : way->chunks > 1               ? "Interleaved1F1B"
                                                  : "1F1B");
    lh_config_say_count(c, words, "parallelism.pipeline_parallel_microbatch_size",
                        way->micro_batch_size);
    lh_config_say_count(c, words, "parallelism.pipeline_parallel_layers_per_stage",
                        way->layers_of_chunk);
}

static void
torchtitan_say(const LhConfig *c, const LhConfigWay *way, GPtrArray *words)
{
    static const char *const modes[] = { [LH_CHECKPOINT_NONE] = "none",
                                         [LH_CHECKPOINT_SELECTIVE] = "selective",
                                         [LH_CHECKPOINT_LAYER] = "full" };
    const uint64_t local =
        (uint64_t)way->micro_batch_size * (way->pipeline > 1 ? way->micro_batches : 1);
    const bool sharded = way->shard == LH_SHARD_FSDP;
    g_autofree char *every = g_strdup_printf("%u", way->recompute.layers);
    const int method = way->context > 1 ? lh_config_index(torchtitan_schedules, way->schedule) : -1;

    lh_config_say_count(c, words, "training.seq_len", way->seq_length);
    lh_config_say_count(c, words, "training.local_batch_size", local);
    lh_config_say_count(c, words, "training.global_batch_size",
                        (uint64_t)way->micro_batch_size * way->micro_batches * way->data);
    lh_config_say_count(c, words, "parallelism.data_parallel_replicate_degree",
                        sharded ? 1 : way->data);
    lh_config_say_count(c, words, "parallelism.data_parallel_shard_degree",
                        sharded ? way->data : 1);
    lh_config_say_count(c, words, "parallelism.tensor_parallel_degree", way->tensor);
    lh_config_say_count(c, words, "parallelism.context_parallel_degree", way->context);
    if (method >= 0)
        lh_config_say(c, words, "parallelism.context_parallel_rotate_method", LH_SETTINGS_WORD,
                      rotate_methods[method]);
    say_torchtitan_pipeline(c, way, words);
    lh_config_say(c, words, "activation_checkpoint.mode", LH_SETTINGS_WORD,
                  way->recompute.layers > 0 ? "selective" : modes[way->checkpoint]);
    if (way->recompute.layers > 0)
        lh_config_say(c, words, "activation_checkpoint.selective_ac_option", LH_SETTINGS_WORD,
                      every);
    else if (way->checkpoint == LH_CHECKPOINT_SELECTIVE)
        lh_config_say(c, words, "activation_checkpoint.selective_ac_option", LH_SETTINGS_WORD,
                      "op");
    else
        lh_config_unsay(c, words, "activation_checkpoint.selective_ac_option");
}

const LhConfigSystem lh_config_torchtitan = {
    .name = "torchtitan",
    .framework = "torchtitan",
    .keys = lh_config_torchtitan_keys,
    .aliases = torchtitan_names,
    .schedules = torchtitan_schedules,
    .take = torchtitan_take,
    .allows = torchtitan_allows,
    .say = torchtitan_say,
};
