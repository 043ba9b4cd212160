/* SPDX-License-Identifier: Apache-2.0 */
/*
 * DeepSpeed's JSON configuration, with Ulysses sequence parallelism and AutoTP. Model, sequence
 * length and recomputation are in the training program and must be given beside the file. Names as
 * of www.deepspeed.ai/docs/config-json.
 */
#include "framework_config/deepspeed/deepspeed.h"

#include "framework_config/common/config_messages.h"
#include "framework_config/common/config_settings.h"
#include "framework_config/common/config_values.h"
#include "framework_config/common/config_words.h"
#include "step/step.h"

#include <inttypes.h>
#include <string.h>

#define AUTO "auto" /* filled in by another program, such as Hugging Face's Trainer */

/* clang-format off */
static const LhConfigKey deepspeed_keys[] = {
    LH_CONFIG_READ("train-batch-size"),
    LH_CONFIG_READ("train-micro-batch-size-per-gpu"),
    LH_CONFIG_READ("gradient-accumulation-steps"),
    LH_CONFIG_READ("zero-optimization.stage"),
    LH_CONFIG_READ("zero-optimization.offload-optimizer.device"),
    LH_CONFIG_READ("zero-optimization.offload-param.device"),
    LH_CONFIG_READ("zero-optimization.offload-optimizer.ratio"),
    LH_CONFIG_READ("zero-optimization.cpu-offload"),
    LH_CONFIG_READ("zero-optimization.cpu-offload-params"),
    LH_CONFIG_READ("zero-optimization.zero-hpz-partition-size"),
    LH_CONFIG_READ("zero-optimization.mics-shard-size"),
    LH_CONFIG_READ("sequence-parallel-size"),
    LH_CONFIG_READ("tensor-parallel.autotp-size"),
    LH_CONFIG_READ("bf16.enabled"),
    LH_CONFIG_READ("fp16.enabled"),
    LH_CONFIG_READ("zero-optimization.reduce-bucket-size"),
    LH_CONFIG_VALUE("zero-optimization.overlap-comm", "true:ddp.overlap=yes "
    "false:ddp.overlap=no auto:"),
    LH_CONFIG_VALUE("data-types.grad-accum-dtype",
                    "fp32:states.gradient=fp32 fp16: bf16: auto: null:"),
    LH_CONFIG_VALUE("communication-data-type",
                    "fp32:ddp.gradient_reduce=fp32,fsdp.gradient_reduce=fp32 fp16: bf16: bfp16: "
                    "auto:"),
    LH_CONFIG_NOT("zero-optimization.contiguous-gradients", "true,auto",
                  "gradients are reduce-scattered and weights all-gathered, in buckets"),
    LH_CONFIG_NOT("zero-optimization.reduce-scatter", "true,auto",
                  "gradients are reduce-scattered and weights all-gathered, in buckets"),
    LH_CONFIG_NOT("zero-optimization.allgather-partitions", "true,auto",
                  "gradients are reduce-scattered and weights all-gathered, in buckets"),
    LH_CONFIG_NOT("zero-optimization.round-robin-gradients", "false,auto",
                  "weights and gradients are communicated whole, in 16 bits or fp32"),
    LH_CONFIG_NOT("zero-optimization.zero-quantized-weights", "false,auto",
                  "weights and gradients are communicated whole, in 16 bits or fp32"),
    LH_CONFIG_NOT("zero-optimization.zero-quantized-gradients", "false,auto",
                  "weights and gradients are communicated whole, in 16 bits or fp32"),
    LH_CONFIG_NOT("zero-optimization.zero-quantized-nontrainable-weights", "false,auto",
                  "weights and gradients are communicated whole, in 16 bits or fp32"),
    LH_CONFIG_NOT("zero-optimization.use-multi-rank-bucket-allreduce", "false,auto",
                  "weights and gradients are communicated whole, in 16 bits or fp32"),
    LH_CONFIG_NOT("zero-optimization.mics-hierarchical-params-gather", "false,auto",
                  "weights and gradients are communicated whole, in 16 bits or fp32"),
    LH_CONFIG_NOT("zero-optimization.elastic-checkpoint", "false,auto",
                  "weights and gradients are communicated whole, in 16 bits or fp32"),
    LH_CONFIG_NOT("zero-optimization.legacy-stage1", "false,auto",
                  "weights and gradients are communicated whole, in 16 bits or fp32"),
    LH_CONFIG_NOT("zero-optimization.use-all-reduce-for-fetch-params", "false,auto",
                  "weights and gradients are communicated whole, in 16 bits or fp32"),
    LH_CONFIG_NOT("zero-optimization.log-trace-cache-warnings", "false,auto",
                  "weights and gradients are communicated whole, in 16 bits or fp32"),
    LH_CONFIG_NOT("zero-optimization.allgather-bucket-size", "auto",
                  "the next layer is prefetched, as frameworks/deepspeed.json states"),
    LH_CONFIG_NOT("zero-optimization.stage3-prefetch-bucket-size", "auto",
                  "the next layer is prefetched, as frameworks/deepspeed.json states"),
    LH_CONFIG_NOT("zero-optimization.stage3-param-persistence-threshold", "auto",
                  "the next layer is prefetched, as frameworks/deepspeed.json states"),
    LH_CONFIG_NOT("zero-optimization.stage3-model-persistence-threshold", "auto",
                  "the next layer is prefetched, as frameworks/deepspeed.json states"),
    LH_CONFIG_NOT("zero-optimization.stage3-max-live-parameters", "auto",
                  "the next layer is prefetched, as frameworks/deepspeed.json states"),
    LH_CONFIG_NOT("zero-optimization.stage3-max-reuse-distance", "auto",
                  "the next layer is prefetched, as frameworks/deepspeed.json states"),
    LH_CONFIG_NOT("zero-optimization.sub-group-size", "auto",
                  "the next layer is prefetched, as frameworks/deepspeed.json states"),
    LH_CONFIG_NOT("zero-optimization.prefetch-bucket-size", "auto",
                  "the next layer is prefetched, as frameworks/deepspeed.json states"),
    LH_CONFIG_NOT("zero-optimization.param-persistence-threshold", "auto",
                  "the next layer is prefetched, as frameworks/deepspeed.json states"),
    LH_CONFIG_NOT("zero-optimization.max-live-parameters", "auto",
                  "the next layer is prefetched, as frameworks/deepspeed.json states"),
    LH_CONFIG_NOT("zero-optimization.max-reuse-distance", "auto",
                  "the next layer is prefetched, as frameworks/deepspeed.json states"),
    LH_CONFIG_NOT("zero-optimization.offload-optimizer.pin-memory", "true,none",
                  "copies are between pinned memory and the GPU"),
    LH_CONFIG_NOT("zero-optimization.offload-param.pin-memory", "true,none",
                  "copies are between pinned memory and the GPU"),
    LH_CONFIG_NOT("optimizer.type", "AdamW,Adam",
                  "the optimizer is Adam without compression; OneBitAdam, ZeroOneAdam and others "
                  "differ in communication and states"),
    LH_CONFIG_NOT("optimizer.params.freeze-step", "",
                  "gradients are communicated without compression"),
    LH_CONFIG_NOT("optimizer.params.comm-backend-name", "",
                  "gradients are communicated without compression"),
    LH_CONFIG_NOT("optimizer.params.cuda-aware", "",
                  "gradients are communicated without compression"),
    LH_CONFIG_NOT("optimizer.params.torch-adam", "false,auto",
                  "the optimizer is one fused kernel"),
    LH_CONFIG_NOT("tensor-parallel.tp-overlap-comm", "false",
                  "matrix products and tensor-parallel communication do not overlap"),
    LH_CONFIG_NOT("tensor-parallel.tp.tp-size", "1",
                  "the tensor-parallel size is autotp-size"),
    LH_CONFIG_NOT("seq-parallel-communication-data-type", "fp16,bf16,auto",
                  "activations are communicated in 16 bits"),
    LH_CONFIG_NOT("prescale-gradients", "false",
                  "gradients are divided where they are reduced"),
    LH_CONFIG_NOT("gradient-predivide-factor", "1,1.0",
                  "gradients are divided where they are reduced"),
    LH_CONFIG_NOT("sparse-gradients", "false",
                  "gradients of the embedding are dense"),
    LH_CONFIG_NOT("bf16.immediate-grad-update", "false,auto",
                  "there is an fp32 copy of the weights"),
    LH_CONFIG_NOT("bf16.check-grad-overflow", "false,auto",
                  "there is an fp32 copy of the weights"),
    LH_CONFIG_NOT("bf16.bf16-master-weights-and-grads", "false,auto",
                  "there is an fp32 copy of the weights"),
    LH_CONFIG_VALUE("bf16.bf16-optimizer-states",
                    "false: auto: true:states.moments=activation"),
    LH_CONFIG_NOT("fp16.fp16-master-weights-and-grads", "false,auto",
                  "there is an fp32 copy of the weights"),
    LH_CONFIG_NOT("fp16.auto-cast", "false,auto",
                  "the model is converted to 16 bits"),
    LH_CONFIG_NOT("amp.enabled", "false,auto",
                  "the model is converted to 16 bits"),
    LH_CONFIG_NOT("torch-autocast.enabled", "false,auto",
                  "the model is converted to 16 bits"),
    LH_CONFIG_NOT("activation-checkpointing.partition-activations", "false",
                  "saved activations stay whole on their GPU (a later version: What makes a long "
                  "step fit)"),
    LH_CONFIG_NOT("activation-checkpointing.cpu-checkpointing", "false",
                  "saved activations stay whole on their GPU (a later version: What makes a long "
                  "step fit)"),
    LH_CONFIG_NOT("activation-checkpointing.contiguous-memory-optimization", "false",
                  "saved activations stay whole on their GPU (a later version: What makes a long "
                  "step fit)"),
    LH_CONFIG_NOT("activation-checkpointing.synchronize-checkpoint-boundary", "false",
                  "saved activations stay whole on their GPU (a later version: What makes a long "
                  "step fit)"),
    LH_CONFIG_NOT("activation-checkpointing.number-checkpoints", "",
                  "recomputation is set by --checkpoint"),
    LH_CONFIG_NOT("pipeline.stages", "auto",
                  "the training program defines the pipeline stages"),
    LH_CONFIG_NOT("pipeline.partition", "auto",
                  "the training program defines the pipeline stages"),
    LH_CONFIG_NOT("compile.enabled", "false",
                  "small kernels are those of an eager model"),
    LH_CONFIG_NOT("compile.deepcompile", "false",
                  "small kernels are those of an eager model"),
    LH_CONFIG_NOT("sparse-attention.mode", "none",
                  "attention is dense"),
    LH_CONFIG_NOT("hybrid-engine.enabled", "false",
                  "all steps are equal"),
    LH_CONFIG_NOT("curriculum-learning.enabled", "false",
                  "all steps are equal"),
    LH_CONFIG_NOT("progressive-layer-drop.enabled", "false",
                  "all steps are equal"),
    LH_CONFIG_NOT("elasticity.enabled", "false",
                  "all steps are equal"),
    LH_CONFIG_NOT("quantize-training.enabled", "false",
                  "all steps are equal"),
    LH_CONFIG_NOTHING("optimizer.params.lr"),
    LH_CONFIG_NOTHING("optimizer.params.betas"),
    LH_CONFIG_NOTHING("optimizer.params.eps"),
    LH_CONFIG_NOTHING("optimizer.params.weight-decay"),
    LH_CONFIG_NOTHING("optimizer.params.bias-correction"),
    LH_CONFIG_NOTHING("optimizer.params.adam-w-mode"),
    LH_CONFIG_NOTHING("optimizer.params.momentum"),
    LH_CONFIG_NOTHING("optimizer.params.amsgrad"),
    LH_CONFIG_NOTHING("scheduler.type"),
    LH_CONFIG_NOTHING("scheduler.params.warmup-min-lr"),
    LH_CONFIG_NOTHING("scheduler.params.warmup-max-lr"),
    LH_CONFIG_NOTHING("scheduler.params.warmup-num-steps"),
    LH_CONFIG_NOTHING("scheduler.params.total-num-steps"),
    LH_CONFIG_NOTHING("scheduler.params.warmup-type"),
    LH_CONFIG_NOTHING("scheduler.params.last-batch-iteration"),
    LH_CONFIG_NOTHING("scheduler.params.cos-min-ratio"),
    LH_CONFIG_NOTHING("fp16.loss-scale"),
    LH_CONFIG_NOTHING("fp16.loss-scale-window"),
    LH_CONFIG_NOTHING("fp16.initial-scale-power"),
    LH_CONFIG_NOTHING("fp16.hysteresis"),
    LH_CONFIG_NOTHING("fp16.consecutive-hysteresis"),
    LH_CONFIG_NOTHING("fp16.min-loss-scale"),
    LH_CONFIG_NOTHING("gradient-clipping"),
    LH_CONFIG_NOTHING("steps-per-print"),
    LH_CONFIG_NOTHING("wall-clock-breakdown"),
    LH_CONFIG_NOTHING("dump-state"),
    LH_CONFIG_NOTHING("zero-allow-untested-optimizer"),
    LH_CONFIG_NOTHING("zero-force-ds-cpu-optimizer"),
    LH_CONFIG_NOTHING("memory-breakdown"),
    LH_CONFIG_NOTHING("disable-allgather"),
    LH_CONFIG_NOTHING("activation-checkpointing.profile"),
    LH_CONFIG_NOTHING("flops-profiler.enabled"),
    LH_CONFIG_NOTHING("flops-profiler.profile-step"),
    LH_CONFIG_NOTHING("flops-profiler.module-depth"),
    LH_CONFIG_NOTHING("flops-profiler.top-modules"),
    LH_CONFIG_NOTHING("flops-profiler.detailed"),
    LH_CONFIG_NOTHING("flops-profiler.output-file"),
    LH_CONFIG_NOTHING("comms-logger.enabled"),
    LH_CONFIG_NOTHING("comms-logger.verbose"),
    LH_CONFIG_NOTHING("comms-logger.prof-all"),
    LH_CONFIG_NOTHING("comms-logger.debug"),
    LH_CONFIG_NOTHING("comms-logger.prof-ops"),
    LH_CONFIG_NOTHING("tensorboard.enabled"),
    LH_CONFIG_NOTHING("tensorboard.output-path"),
    LH_CONFIG_NOTHING("tensorboard.job-name"),
    LH_CONFIG_NOTHING("wandb.enabled"),
    LH_CONFIG_NOTHING("wandb.team"),
    LH_CONFIG_NOTHING("wandb.group"),
    LH_CONFIG_NOTHING("wandb.project"),
    LH_CONFIG_NOTHING("csv-monitor.enabled"),
    LH_CONFIG_NOTHING("csv-monitor.output-path"),
    LH_CONFIG_NOTHING("csv-monitor.job-name"),
    LH_CONFIG_NOTHING("checkpoint.tag-validation"),
    LH_CONFIG_NOTHING("checkpoint.load-universal"),
    LH_CONFIG_NOTHING("checkpoint.use-node-local-storage"),
    LH_CONFIG_NOTHING("checkpoint.async-io"),
    LH_CONFIG_NOTHING("data-efficiency.enabled"),
    LH_CONFIG_NOTHING("data-efficiency.seed"),
    LH_CONFIG_NOTHING("zero-optimization.stage3-gather-16bit-weights-on-model-save"),
    LH_CONFIG_NOTHING("zero-optimization.gather-16bit-weights-on-model-save"),
    LH_CONFIG_NOTHING("zero-optimization.load-from-fp32-weights"),
    LH_CONFIG_NOTHING("zero-optimization.stage3-gather-fp16-weights-on-model-save"),
    LH_CONFIG_NOTHING("zero-optimization.ignore-unused-parameters"),
    LH_CONFIG_NOTHING("zero-optimization.memory-efficient-linear"),
    /* Of disks; and of a start that does not affect later steps. */
    LH_CONFIG_NOTHING("zero-optimization.offload-optimizer.nvme-path"),
    LH_CONFIG_NOTHING("zero-optimization.offload-optimizer.buffer-count"),
    LH_CONFIG_NOTHING("zero-optimization.offload-optimizer.fast-init"),
    LH_CONFIG_NOTHING("zero-optimization.offload-optimizer.pipeline"),
    LH_CONFIG_NOTHING("zero-optimization.offload-optimizer.pipeline-read"),
    LH_CONFIG_NOTHING("zero-optimization.offload-optimizer.pipeline-write"),
    LH_CONFIG_NOTHING("zero-optimization.offload-param.nvme-path"),
    LH_CONFIG_NOTHING("zero-optimization.offload-param.buffer-count"),
    LH_CONFIG_NOTHING("zero-optimization.offload-param.buffer-size"),
    LH_CONFIG_NOTHING("zero-optimization.offload-param.max-in-cpu"),
    LH_CONFIG_NOTHING("dataloader-drop-last"),
    LH_CONFIG_NOTHING("aio.block-size"),
    LH_CONFIG_NOTHING("aio.queue-depth"),
    LH_CONFIG_NOTHING("aio.thread-count"),
    LH_CONFIG_NOTHING("aio.single-submit"),
    LH_CONFIG_NOTHING("aio.overlap-events"),
    { NULL, LH_KEY_NOTHING, NULL, NULL },
};
/* clang-format on */

static const char *const deepspeed_schedules[] = { "ulysses", NULL };

/* The setting's name, or its prefixed name if another file names DeepSpeed's. */
static const char *
name_here(const LhConfig *c, const char *name)
{
    g_autofree char *beside = g_strconcat("deepspeed-config.", name, NULL);

    return lh_config_entry(c, beside) != NULL ? g_intern_string(beside) : name;
}

/* Finds a setting; "auto" counts as absent. */
static const LhSettingsEntry *
find_setting(const LhConfig *c, const char *name)
{
    const LhSettingsEntry *entry = lh_config_entry(c, name_here(c, name));
    const char *text = entry != NULL ? lh_settings_entry_value(entry) : NULL;

    return g_strcmp0(text, AUTO) == 0 ? NULL : entry;
}

static bool
read_count(LhConfig *c, const char *name, uint64_t *value, GError **error)
{
    return find_setting(c, name) == NULL || lh_config_count(c, name_here(c, name), value, error);
}

static bool
read_flag(LhConfig *c, const char *name, bool *value, GError **error)
{
    return find_setting(c, name) == NULL || lh_config_flag(c, name_here(c, name), value, error);
}

static bool
take_deepspeed_batch(LhConfig *c, GError **error)
{
    const LhSettingsEntry *entry = find_setting(c, "train-micro-batch-size-per-gpu");
    uint64_t micro = 0, steps = 0;

    if (!read_count(c, "train-batch-size", &c->global_batch_size, error) ||
        !read_count(c, "train-micro-batch-size-per-gpu", &micro, error) ||
        !read_count(c, "gradient-accumulation-steps", &steps, error))
        return false;
    if ((entry != NULL && micro == 0) ||
        (find_setting(c, "gradient-accumulation-steps") != NULL && steps == 0))
        return lh_config_fail(c, entry, error,
                              "a step needs at least one micro-batch of at least one sequence");
    if (micro > 0)
        lh_config_set_count(c, entry, LH_CONFIG_WAY, "micro_batch_size", micro);
    if (steps > 0 && micro == 0 && c->global_batch_size > 0)
        lh_config_note(c, find_setting(c, "gradient-accumulation-steps"),
                       "not modelled: %" PRIu64
                       " steps of an unknown micro-batch size: micro-batches of one sequence are "
                       "assumed, as many as make the batch",
                       steps);
    else if (steps > 0)
        lh_config_set_count(c, find_setting(c, "gradient-accumulation-steps"), LH_CONFIG_WAY,
                            "num_micro_batches", steps);
    return true;
}

static bool
take_deepspeed_ranks(LhConfig *c, GError **error)
{
    const LhSettingsEntry *sequence = find_setting(c, "sequence-parallel-size");
    const LhSettingsEntry *tensor = find_setting(c, "tensor-parallel.autotp-size");
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

/* Bucket size: elements in DeepSpeed, bytes in the framework file. */
static bool
take_bucket(LhConfig *c, GError **error)
{
    const char *name = "zero-optimization.reduce-bucket-size";
    const LhSettingsEntry *entry = find_setting(c, name);
    const char *text = entry != NULL ? lh_settings_entry_value(entry) : NULL;
    double elements;
    char *end;
    g_autofree char *bytes = NULL;

    if (entry == NULL)
        return true;
    elements = text != NULL ? g_ascii_strtod(text, &end) : 0;
    if (text == NULL || end == text || *end != '\0' || !(elements >= 1) || elements > 1e12)
        return lh_config_fail(
            c, entry, error,
            "\"zero_optimization.reduce_bucket_size\" must be a number of elements");
    bytes = g_strdup_printf("%" PRIu64, 2 * (uint64_t)elements);
    lh_config_set_framework(c, "ddp.bucket_bytes", bytes);
    return true;
}

/* Whether @device, or the older flag @legacy, says that something is in host memory. Disks are not
 * modelled; host memory stands for them. */
static bool
is_offloaded(LhConfig *c, const char *device, const char *legacy, bool *offloaded, GError **error)
{
    const LhSettingsEntry *entry = find_setting(c, device);
    const char *text = entry != NULL ? lh_settings_entry_value(entry) : NULL;

    *offloaded = text != NULL && strcmp(text, "none") != 0;
    if (*offloaded && strcmp(text, "cpu") != 0)
        lh_config_note(c, entry, "not modelled: offload to %.20s: host memory stands for disks",
                       text);
    return *offloaded || read_flag(c, legacy, offloaded, error);
}

/* Reads ZeRO-Offload and its share, of stage 3 only (ZeRO-Offload++). */
static bool
take_offload(LhConfig *c, int shard, GError **error)
{
    const char *device = "zero-optimization.offload-optimizer.device";
    const char *of_param = "zero-optimization.offload-param.device";
    const LhSettingsEntry *ratio = find_setting(c, "zero-optimization.offload-optimizer.ratio");
    bool optimizer, param;

    if (!is_offloaded(c, device, "zero-optimization.cpu-offload", &optimizer, error) ||
        !is_offloaded(c, of_param, "zero-optimization.cpu-offload-params", &param, error))
        return false;
    if (param && shard == LH_SHARD_FSDP)
        lh_config_set(c, find_setting(c, of_param), LH_CONFIG_WAY, "offload_param", NULL);
    else if (param)
        lh_config_note(c, find_setting(c, of_param), "it needs ZeRO's stage 3");
    if (optimizer && shard == LH_SHARD_DDP)
        lh_config_note(c, find_setting(c, device), "it needs a stage of ZeRO");
    else if (optimizer)
        lh_config_set(c, find_setting(c, device), LH_CONFIG_WAY, "optimizer_cpu_offload", NULL);
    if (ratio == NULL)
        return true;
    if (!optimizer || shard != LH_SHARD_FSDP || param)
        lh_config_note(c, ratio,
                       "a ratio of %.20s needs ZeRO's stage 3 with the optimizer, but not weights, "
                       "offloaded",
                       lh_settings_entry_value(ratio));
    else
        lh_config_set(c, ratio, LH_CONFIG_WAY, "optimizer_offload_fraction",
                      lh_settings_entry_value(ratio));
    return true;
}

bool
lh_config_deepspeed_zero(LhConfig *c, int *shard, GError **error)
{
    static const char *const parts[] = { "zero-optimization.zero-hpz-partition-size",
                                         "zero-optimization.mics-shard-size" };
    const LhSettingsEntry *entry = find_setting(c, "zero-optimization.stage");
    uint64_t stage = 0, tensor = 1;

    if (!take_bucket(c, error) || !read_count(c, "zero-optimization.stage", &stage, error) ||
        !read_count(c, "tensor-parallel.autotp-size", &tensor, error))
        return false;
    if (stage > LH_SHARD_FSDP)
        return lh_config_fail(c, entry, error,
                              "\"zero_optimization.stage\": found \"%" PRIu64 "\"; allowed: 0 to 3",
                              stage);
    if (stage == LH_SHARD_FSDP && tensor > 1)
        lh_config_note(c, entry, "AutoTP supports only stages 0 to 2");
    for (guint i = 0; i < G_N_ELEMENTS(parts); i++) {
        const char *text = find_setting(c, parts[i]) != NULL
                               ? lh_settings_entry_value(find_setting(c, parts[i]))
                               : NULL;

        if (text != NULL && strcmp(text, "1") != 0 && strcmp(text, "-1") != 0)
            lh_config_note(c, find_setting(c, parts[i]),
                           "not modelled: sharding within groups of %.20s ranks: all ranks shard",
                           text);
    }
    if (entry != NULL)
        *shard = (int)stage;
    return take_offload(c, *shard, error);
}

static bool
take_zero(LhConfig *c, GError **error)
{
    int shard = LH_SHARD_DDP;

    if (!lh_config_deepspeed_zero(c, &shard, error))
        return false;
    lh_config_set(c, find_setting(c, "zero-optimization.stage"), LH_CONFIG_WAY, "shard",
                  lh_shard_names[shard]);
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
    lh_config_lacks_model(c, NULL, "DeepSpeed's file cannot contain it; give it beside the file");
    return take_deepspeed_batch(c, error) && take_deepspeed_ranks(c, error) &&
           take_zero(c, error) && take_deepspeed_precision(c, error);
}

/* ---- writing a way of training ---- */

static bool
deepspeed_allows(const LhConfigWay *way)
{
    return (way->checkpoint == LH_CHECKPOINT_NONE || way->checkpoint == LH_CHECKPOINT_LAYER) &&
           way->recompute.layers == 0 && way->pipeline == 1 &&
           (way->tensor == 1 || way->shard != LH_SHARD_FSDP);
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
