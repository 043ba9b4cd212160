/*
 * DeepSpeed: its JSON configuration, with Ulysses sequence parallelism and AutoTP. The model, the
 * length of a sequence and recomputation are in the program that is trained with it, and must be
 * given beside the file. Names as of www.deepspeed.ai/docs/config-json.
 */
#include "plan/configuration_private.h"

#include "model/framework.h"
#include "step/step.h"

#include <inttypes.h>
#include <string.h>

#define AUTO "auto" /* what another program, such as Hugging Face's trainer, fills in */

static const LhConfigKey deepspeed_keys[] = {
    { "train-batch-size", LH_KEY_READ, NULL },
    { "train-micro-batch-size-per-gpu", LH_KEY_READ, NULL },
    { "gradient-accumulation-steps", LH_KEY_READ, NULL },
    { "zero-optimization.stage", LH_KEY_READ, NULL },
    { "zero-optimization.offload-optimizer.device", LH_KEY_READ, NULL },
    { "zero-optimization.offload-param.device", LH_KEY_READ, NULL },
    { "zero-optimization.zero-hpz-partition-size", LH_KEY_READ, NULL },
    { "zero-optimization.mics-shard-size", LH_KEY_READ, NULL },
    { "sequence-parallel-size", LH_KEY_READ, NULL },
    { "tensor-parallel.autotp-size", LH_KEY_READ, NULL },
    { "bf16.enabled", LH_KEY_READ, NULL },
    { "fp16.enabled", LH_KEY_READ, NULL },
    { "zero-optimization.offload-*", LH_KEY_NOTHING, NULL },
    { "zero-optimization.*", LH_KEY_FRAMEWORK, NULL },
    { "tensor-parallel.*", LH_KEY_FRAMEWORK, NULL },
    { "bf16.*", LH_KEY_FRAMEWORK, NULL },
    { "data-types.*", LH_KEY_FRAMEWORK, NULL },
    { "communication-data-type", LH_KEY_FRAMEWORK, NULL },
    { "seq-parallel-communication-data-type", LH_KEY_FRAMEWORK, NULL },
    { "prescale-gradients", LH_KEY_FRAMEWORK, NULL },
    { "gradient-predivide-factor", LH_KEY_FRAMEWORK, NULL },
    { "fp16.*", LH_KEY_NOTHING, NULL },
    { "optimizer.*", LH_KEY_FRAMEWORK, NULL },
    { "scheduler.*", LH_KEY_NOTHING, NULL },
    { "gradient-clipping", LH_KEY_NOTHING, NULL },
    { "steps-per-print", LH_KEY_NOTHING, NULL },
    { "wall-clock-breakdown", LH_KEY_NOTHING, NULL },
    { "dump-state", LH_KEY_NOTHING, NULL },
    { "zero-allow-untested-optimizer", LH_KEY_NOTHING, NULL },
    { "zero-force-ds-cpu-optimizer", LH_KEY_NOTHING, NULL },
    { "flops-profiler.*", LH_KEY_NOTHING, NULL },
    { "comms-logger.*", LH_KEY_NOTHING, NULL },
    { "tensorboard.*", LH_KEY_NOTHING, NULL },
    { "wandb.*", LH_KEY_NOTHING, NULL },
    { "csv-monitor.*", LH_KEY_NOTHING, NULL },
    { "checkpoint.*", LH_KEY_NOTHING, NULL },
    { "data-efficiency.*", LH_KEY_NOTHING, NULL },
    { NULL, LH_KEY_NOTHING, NULL },
};

static const char *const deepspeed_schedules[] = { "ulysses", NULL };

/* "auto" says nothing. */
static const LhFileEntry *
find_setting(const LhConfig *c, const char *name)
{
    const LhFileEntry *entry = lh_config_entry(c, name);
    const char *text = entry != NULL ? lh_entry_value(entry) : NULL;

    return g_strcmp0(text, AUTO) == 0 ? NULL : entry;
}

static bool
read_count(LhConfig *c, const char *name, uint64_t *value, GError **error)
{
    return find_setting(c, name) == NULL || lh_config_count(c, name, value, error);
}

static bool
read_flag(LhConfig *c, const char *name, bool *value, GError **error)
{
    return find_setting(c, name) == NULL || lh_config_flag(c, name, value, error);
}

static bool
take_deepspeed_batch(LhConfig *c, GError **error)
{
    const LhFileEntry *entry = find_setting(c, "train-micro-batch-size-per-gpu");
    uint64_t micro = 0, steps = 0;

    if (!read_count(c, "train-batch-size", &c->global_batch_size, error) ||
        !read_count(c, "train-micro-batch-size-per-gpu", &micro, error) ||
        !read_count(c, "gradient-accumulation-steps", &steps, error))
        return false;
    if ((entry != NULL && micro == 0) ||
        (find_setting(c, "gradient-accumulation-steps") != NULL && steps == 0))
        return lh_config_fail(c, entry, error,
                              "a step has at least one micro-batch of one sequence");
    if (micro > 0)
        lh_config_set_count(c, entry, LH_CONFIG_WAY, "micro_batch_size", micro);
    if (steps > 0 && (c->global_batch_size == 0 || micro == 0))
        lh_config_set_count(c, find_setting(c, "gradient-accumulation-steps"), LH_CONFIG_WAY,
                            "num_micro_batches", steps);
    return true;
}

static bool
take_deepspeed_ranks(LhConfig *c, GError **error)
{
    const LhFileEntry *sequence = find_setting(c, "sequence-parallel-size");
    const LhFileEntry *tensor = find_setting(c, "tensor-parallel.autotp-size");
    uint64_t context = 1, size = 1;

    if (!read_count(c, "sequence-parallel-size", &context, error) ||
        !read_count(c, "tensor-parallel.autotp-size", &size, error))
        return false;
    if (context == 0)
        return lh_config_fail(c, sequence, error,
                              "\"sequence_parallel_size\": found \"0\"; allowed: at least 1");
    lh_config_set_count(c, sequence, LH_CONFIG_WAY, "context_parallel_size", context);
    lh_config_set_count(c, tensor, LH_CONFIG_WAY, "tensor_model_parallel_size", MAX(size, 1));
    lh_config_set(c, sequence, LH_CONFIG_SCHEDULE, "schedule", deepspeed_schedules[0]);
    lh_config_set_count(c, NULL, LH_CONFIG_QUESTION, "pipeline_model_parallel_size", 1);
    return true;
}

static bool
take_zero(LhConfig *c, GError **error)
{
    static const char *const offloads[] = { "zero-optimization.offload-optimizer.device",
                                            "zero-optimization.offload-param.device" };
    static const char *const parts[] = { "zero-optimization.zero-hpz-partition-size",
                                         "zero-optimization.mics-shard-size" };
    const LhFileEntry *entry = find_setting(c, "zero-optimization.stage");
    uint64_t stage = 0, tensor = 1;

    if (!read_count(c, "zero-optimization.stage", &stage, error) ||
        !read_count(c, "tensor-parallel.autotp-size", &tensor, error))
        return false;
    if (stage > LH_SHARD_FSDP)
        return lh_config_fail(c, entry, error,
                              "\"zero_optimization.stage\": found \"%" PRIu64 "\"; allowed: 0 to 3",
                              stage);
    if (stage == LH_SHARD_FSDP && tensor > 1)
        lh_config_note(c, entry, "AutoTP is for stages 0 to 2");
    for (guint i = 0; i < G_N_ELEMENTS(offloads); i++) {
        const LhFileEntry *offload = find_setting(c, offloads[i]);

        if (offload != NULL && g_strcmp0(lh_entry_value(offload), "none") != 0)
            lh_config_note(c, offload,
                           "memory of hosts and disks is not predicted: all stays on the GPU");
    }
    for (guint i = 0; i < G_N_ELEMENTS(parts); i++) {
        const char *text =
            find_setting(c, parts[i]) != NULL ? lh_entry_value(find_setting(c, parts[i])) : NULL;

        if (text != NULL && strcmp(text, "1") != 0 && strcmp(text, "-1") != 0)
            lh_config_note(c, find_setting(c, parts[i]),
                           "shards within parts of the ranks are not predicted; all ranks shard");
    }
    lh_config_set(c, entry, LH_CONFIG_WAY, "shard", lh_shard_names[stage]);
    return true;
}

static bool
take_deepspeed_precision(LhConfig *c, GError **error)
{
    bool bf16 = false, fp16 = false;

    if (!read_flag(c, "bf16.enabled", &bf16, error) || !read_flag(c, "fp16.enabled", &fp16, error))
        return false;
    if (!bf16 && !fp16)
        lh_config_note(c, NULL, "neither bf16 nor fp16 is enabled here; bf16 is predicted");
    lh_config_set(c, lh_config_entry(c, fp16 && !bf16 ? "fp16.enabled" : "bf16.enabled"),
                  LH_CONFIG_QUESTION, "dtype", fp16 && !bf16 ? "fp16" : "bf16");
    return true;
}

static bool
deepspeed_take(LhConfig *c, GError **error)
{
    lh_config_lacks_model(c, NULL, "DeepSpeed's file has no place for it; give it beside the file");
    return take_deepspeed_batch(c, error) && take_deepspeed_ranks(c, error) &&
           take_zero(c, error) && take_deepspeed_precision(c, error);
}

/* ---- a way in its words ---- */

static bool
deepspeed_allows(const LhConfigWay *way)
{
    return (way->checkpoint == LH_CHECKPOINT_NONE || way->checkpoint == LH_CHECKPOINT_LAYER) &&
           way->pipeline == 1 && (way->tensor == 1 || way->shard != LH_SHARD_FSDP);
}

static void
deepspeed_say(const LhConfig *c, const LhConfigWay *way, GPtrArray *words)
{
    lh_config_say_count(c, words, "train_batch_size",
                        (uint64_t)way->micro_batch_size * way->micro_batches * way->data);
    lh_config_say_count(c, words, "train_micro_batch_size_per_gpu", way->micro_batch_size);
    lh_config_say_count(c, words, "gradient_accumulation_steps", way->micro_batches);
    lh_config_say_count(c, words, "zero_optimization.stage", (uint64_t)way->shard);
    lh_config_say_count(c, words, "sequence_parallel_size", way->context);
    if (way->tensor > 1)
        lh_config_say_count(c, words, "tensor_parallel.autotp_size", way->tensor);
    else
        lh_config_unsay(c, words, "tensor_parallel.autotp_size");
    lh_config_remark(c, words,
                     way->checkpoint == LH_CHECKPOINT_LAYER
                         ? "in the program: recompute every layer (gradient checkpointing)"
                         : "in the program: recompute nothing");
}

const LhConfigSystem lh_config_deepspeed = {
    .name = "DeepSpeed",
    .framework = "deepspeed",
    .keys = deepspeed_keys,
    .schedules = deepspeed_schedules,
    .take = deepspeed_take,
    .allows = deepspeed_allows,
    .say = deepspeed_say,
};
