/*
 * What trains with Hugging Face's Trainer: configurations of accelerate, TRL, axolotl and
 * LLaMA-Factory in YAML, and arguments of ms-swift and of TRL's scripts. They name each other's
 * settings alike, and are one table. The step is PyTorch's FSDP around an eager model, or
 * DeepSpeed's where the file asks for it.
 */
#include "framework_config/configuration_private.h"

#include "model/framework.h"
#include "step/step.h"

#include <inttypes.h>
#include <string.h>

/* clang-format off */
static const LhConfigKey trainer_keys[] = {
    LH_CONFIG_READ("model-name-or-path"),
    LH_CONFIG_READ("base-model"),
    LH_CONFIG_READ("model"),
    LH_CONFIG_READ("model-id"),
    LH_CONFIG_READ("per-device-train-batch-size"),
    LH_CONFIG_READ("micro-batch-size"),
    LH_CONFIG_READ("train-batch-size"),
    LH_CONFIG_READ("gradient-accumulation-steps"),
    LH_CONFIG_READ("max-length"),
    LH_CONFIG_READ("max-seq-length"),
    LH_CONFIG_READ("cutoff-len"),
    LH_CONFIG_READ("sequence-len"),
    LH_CONFIG_READ("gradient-checkpointing"),
    LH_CONFIG_READ("fsdp-config.activation-checkpointing"),
    LH_CONFIG_READ("fsdp-config.fsdp-activation-checkpointing"),
    LH_CONFIG_READ("bf16"),
    LH_CONFIG_READ("fp16"),
    LH_CONFIG_READ("mixed-precision"),
    LH_CONFIG_READ("torch-dtype"),
    LH_CONFIG_READ("distributed-type"),
    LH_CONFIG_NOTHING("num-machines"),
    LH_CONFIG_READ("num-processes"),
    LH_CONFIG_READ("fsdp"),
    LH_CONFIG_READ("deepspeed"),
    LH_CONFIG_READ("fsdp-config.fsdp-sharding-strategy"),
    LH_CONFIG_READ("fsdp-config.fsdp-reshard-after-forward"),
    LH_CONFIG_READ("fsdp-config.reshard-after-forward"),
    LH_CONFIG_READ("deepspeed-config.zero-stage"),
    LH_CONFIG_READ("deepspeed-config.gradient-accumulation-steps"),
    LH_CONFIG_READ("sequence-parallel-degree"),
    LH_CONFIG_READ("sequence-parallel-size"),
    LH_CONFIG_READ("context-parallel-size"),
    LH_CONFIG_READ("tensor-parallel-size"),
    LH_CONFIG_READ("parallelism-config.parallelism-config-cp-size"),
    LH_CONFIG_READ("parallelism-config.parallelism-config-tp-size"),
    LH_CONFIG_READ("parallelism-config.parallelism-config-sp-size"),
    LH_CONFIG_READ("disable-gradient-checkpointing"),
    LH_CONFIG_VALUE("pure-bf16", "false: true:states.master=no,states.moments=activation,"
                                 "states.gradient=activation"),
    LH_CONFIG_NOT("parallelism-config.parallelism-config-sp-backend", "deepspeed",
                  "attention is exchanged as --schedule says"),
    LH_CONFIG_NOTHING("parallelism-config.parallelism-config-sp-seq-length-is-variable"),
    LH_CONFIG_NOTHING("parallelism-config.parallelism-config-sp-attn-implementation"),
    LH_CONFIG_NOT("use-muon", "false", "the optimizer has the states of Adam in fp32"),
    LH_CONFIG_NOT("use-adam-mini", "false", "the optimizer has the states of Adam in fp32"),
    LH_CONFIG_NOT("use-apollo", "false", "the optimizer has the states of Adam in fp32"),
    LH_CONFIG_NOT("use-llama-pro", "false", "all weights are trained, in 16 bits"),
    LH_CONFIG_NOT("lisa-n-layers", "", "all weights are trained, in 16 bits"),
    LH_CONFIG_NOT("lisa-activated-layers", "0", "all weights are trained, in 16 bits"),
    LH_CONFIG_NOT("galore-rank", "", "all weights are trained, in 16 bits"),
    LH_CONFIG_NOT("qat.weight-dtype", "", "products are in 16 bits (a later version: FP8, MXFP8, "
                                          "NVFP4)"),
    LH_CONFIG_NOT("qat.activation-dtype", "", "products are in 16 bits (a later version: FP8, "
                                              "MXFP8, NVFP4)"),
    LH_CONFIG_NOT("liger-layer-norm", "false",
                  "small kernels and the loss are those of an eager model (a later version: "
                  "What makes a long step fit)"),
    LH_CONFIG_NOT("attn-impl", "flash_attention_2,flash_attention_3,flash_attn,sdpa,auto",
                  "attention is one kernel that keeps no scores"),
    LH_CONFIG_NOT("streaming", "false", "data are there when they are needed"),
    LH_CONFIG_NOTHING("load-from-cache-file"),
    LH_CONFIG_NOTHING("lazy-tokenize"),
    LH_CONFIG_NOTHING("loss-scale"),
    LH_CONFIG_NOTHING("agent-template"),
    LH_CONFIG_NOTHING("response-prefix"),
    LH_CONFIG_NOTHING("lora-model-dir"),
    LH_CONFIG_NOTHING("gradient-checkpointing-kwargs"),
    LH_CONFIG_READ("cp-size"),
    LH_CONFIG_READ("dist-config.name"),
    LH_CONFIG_READ("dist-config.config-file"),
    LH_CONFIG_READ("fsdp-config.sharding-strategy"),
    LH_CONFIG_READ("dp-shard-size"),
    LH_CONFIG_READ("dp-replicate-size"),
    LH_CONFIG_READ("parallelism-config.parallelism-config-dp-shard-size"),
    LH_CONFIG_READ("parallelism-config.parallelism-config-dp-replicate-size"),
    LH_CONFIG_READ("tensor-model-parallel-size"),
    LH_CONFIG_READ("pipeline-model-parallel-size"),
    LH_CONFIG_NOT("cp-mode", "ulysses",
                  "attention is exchanged as --schedule says"),
    LH_CONFIG_NOT("expert-parallel-size", "1",
                  "every rank has all experts (a later version: Experts spread over ranks)"),
    LH_CONFIG_NOT("expert-model-parallel-size", "1",
                  "every rank has all experts (a later version: Experts spread over ranks)"),
    LH_CONFIG_NOT("tiled-mlp", "false",
                  "the MLP sees all tokens at once (a later version: What makes a long step fit)"),
    LH_CONFIG_NOT("fp8-backend", "",
                  "products are in 16 bits (a later version: FP8, MXFP8, NVFP4)"),
    LH_CONFIG_NOT("fp8-enable-fsdp-float8-all-gather", "false",
                  "products are in 16 bits (a later version: FP8, MXFP8, NVFP4)"),
    LH_CONFIG_NOT("fsdp-config.fsdp-limit-all-gathers", "true",
                  "the next layer is gathered while one computes"),
    LH_CONFIG_NOT("badam-mode", "",
                  "all weights are trained, in 16 bits"),
    LH_CONFIG_NOTHING("badam-switch-mode"),
    LH_CONFIG_NOTHING("badam-switch-interval"),
    LH_CONFIG_NOTHING("badam-verbose"),
    LH_CONFIG_NOTHING("model-class"),
    LH_CONFIG_NOTHING("dist-config.dcp-path"),
    LH_CONFIG_NOTHING("train-dataset"),
    LH_CONFIG_NOTHING("sample-backend"),
    LH_CONFIG_NOTHING("max-new-tokens"),
    LH_CONFIG_NOTHING("min-sample-len"),
    LH_CONFIG_NOTHING("datasets.path"),
    LH_CONFIG_NOTHING("datasets.type"),
    LH_CONFIG_NOTHING("datasets.name"),
    LH_CONFIG_NOTHING("datasets.field"),
    LH_CONFIG_NOTHING("datasets.split"),
    LH_CONFIG_NOTHING("datasets.data-files"),
    LH_CONFIG_NOTHING("datasets.field-messages"),
    LH_CONFIG_NOTHING("special-tokens.eos-token"),
    LH_CONFIG_NOTHING("special-tokens.bos-token"),
    LH_CONFIG_NOT("fsdp-config.fsdp-offload-params", "false",
                  "all stays on the GPU (a later version: What makes a long step fit)"),
    LH_CONFIG_NOT("fsdp-config.offload-params", "false",
                  "all stays on the GPU (a later version: What makes a long step fit)"),
    LH_CONFIG_NOT("deepspeed-config.offload-optimizer-device", "none",
                  "all stays on the GPU (a later version: What makes a long step fit)"),
    LH_CONFIG_NOT("deepspeed-config.offload-param-device", "none",
                  "all stays on the GPU (a later version: What makes a long step fit)"),
    LH_CONFIG_NOT("fsdp-config.fsdp-auto-wrap-policy", "TRANSFORMER_BASED_WRAP",
                  "a layer is gathered at once"),
    LH_CONFIG_NOT("fsdp-config.auto-wrap-policy", "TRANSFORMER_BASED_WRAP",
                  "a layer is gathered at once"),
    LH_CONFIG_NOT("fsdp-config.fsdp-min-num-params", "0",
                  "a layer is gathered at once"),
    LH_CONFIG_NOT("fsdp-config.fsdp-backward-prefetch",
                  "BACKWARD_PRE,BACKWARD_PREFETCH_BACKWARD_PRE",
                  "the next layer is gathered while one computes"),
    LH_CONFIG_NOT("fsdp-config.fsdp-backward-prefetch-policy", "BACKWARD_PRE",
                  "the next layer is gathered while one computes"),
    LH_CONFIG_NOT("fsdp-config.fsdp-forward-prefetch", "false",
                  "the next layer is gathered while one computes"),
    LH_CONFIG_NOT("fsdp-config.xla", "false",
                  "devices are GPUs"),
    LH_CONFIG_NOT("fsdp-config.xla-fsdp-grad-ckpt", "false",
                  "devices are GPUs"),
    LH_CONFIG_READ("deepspeed-config.deepspeed-config-file"),
    LH_CONFIG_READ("config-file"),
    LH_CONFIG_NOTHING("config"),
    LH_CONFIG_NOT("attn-implementation", "flash_attention_2,flash_attention_3,fa2,sdpa,auto",
                  "attention is one kernel that keeps no scores"),
    LH_CONFIG_NOT("flash-attn", "flash_attention_2,flash_attention_3,fa2,sdpa,auto",
                  "attention is one kernel that keeps no scores"),
    LH_CONFIG_NOT("flash-attention", "true",
                  "attention is one kernel that keeps no scores"),
    LH_CONFIG_NOT("sdp-attention", "true",
                  "attention is one kernel that keeps no scores"),
    LH_CONFIG_NOT("xformers-attention", "false",
                  "attention is one kernel that keeps no scores"),
    LH_CONFIG_NOT("eager-attention", "false",
                  "attention is one kernel that keeps no scores"),
    LH_CONFIG_NOT("s2-attention", "false",
                  "attention is one kernel that keeps no scores"),
    LH_CONFIG_NOT("shift-attn", "false",
                  "attention is one kernel that keeps no scores"),
    LH_CONFIG_NOT("packing", "true",
                  "every sequence is as long as the longest that is allowed"),
    LH_CONFIG_NOT("sample-packing", "true",
                  "every sequence is as long as the longest that is allowed"),
    LH_CONFIG_NOT("padding-free", "false",
                  "every sequence is as long as the longest that is allowed"),
    LH_CONFIG_NOT("group-by-length", "false",
                  "every sequence is as long as the longest that is allowed"),
    LH_CONFIG_NOT("eval-packing", "false",
                  "every sequence is as long as the longest that is allowed"),
    LH_CONFIG_NOT("neat-packing", "false",
                  "every sequence is as long as the longest that is allowed"),
    LH_CONFIG_NOT("optim", "adamw_torch,adamw_torch_fused,adamw_hf",
                  "the optimizer has the states of Adam in fp32"),
    LH_CONFIG_NOT("optimizer", "adamw_torch,adamw_torch_fused,adamw_hf",
                  "the optimizer has the states of Adam in fp32"),
    LH_CONFIG_NOT("adapter", "full",
                  "all weights are trained"),
    LH_CONFIG_NOT("finetuning-type", "full",
                  "all weights are trained"),
    LH_CONFIG_NOT("train-type", "full",
                  "all weights are trained"),
    LH_CONFIG_NOT("tuner-type", "full",
                  "all weights are trained"),
    LH_CONFIG_NOT("use-peft", "false",
                  "all weights are trained, in 16 bits"),
    LH_CONFIG_NOT("load-in-8bit", "false",
                  "all weights are trained, in 16 bits"),
    LH_CONFIG_NOT("load-in-4bit", "false",
                  "all weights are trained, in 16 bits"),
    LH_CONFIG_NOT("use-dora", "false",
                  "all weights are trained, in 16 bits"),
    LH_CONFIG_NOT("use-rslora", "false",
                  "all weights are trained, in 16 bits"),
    LH_CONFIG_NOT("lora-target-linear", "false",
                  "all weights are trained, in 16 bits"),
    LH_CONFIG_NOT("use-galore", "false",
                  "all weights are trained, in 16 bits"),
    LH_CONFIG_NOT("use-badam", "false",
                  "all weights are trained, in 16 bits"),
    LH_CONFIG_NOT("freeze-vision-tower", "false",
                  "all weights are trained, in 16 bits"),
    LH_CONFIG_NOT("lora-r", "",
                  "all weights are trained, in 16 bits"),
    LH_CONFIG_NOT("lora-rank", "",
                  "all weights are trained, in 16 bits"),
    LH_CONFIG_NOT("lora-alpha", "",
                  "all weights are trained, in 16 bits"),
    LH_CONFIG_NOT("lora-dropout", "",
                  "all weights are trained, in 16 bits"),
    LH_CONFIG_NOT("lora-target", "",
                  "all weights are trained, in 16 bits"),
    LH_CONFIG_NOT("lora-target-modules", "",
                  "all weights are trained, in 16 bits"),
    LH_CONFIG_NOT("lora-modules-to-save", "",
                  "all weights are trained, in 16 bits"),
    LH_CONFIG_NOT("quantization-bit", "",
                  "all weights are trained, in 16 bits"),
    LH_CONFIG_NOT("quantization-method", "",
                  "all weights are trained, in 16 bits"),
    LH_CONFIG_NOT("quant-bits", "",
                  "all weights are trained, in 16 bits"),
    LH_CONFIG_NOT("quant-method", "",
                  "all weights are trained, in 16 bits"),
    LH_CONFIG_NOT("use-liger-kernel", "false",
                  "small kernels and the loss are those of an eager model (a later version: "
                  "What makes a long step fit)"),
    LH_CONFIG_NOT("enable-liger-kernel", "false",
                  "small kernels and the loss are those of an eager model (a later version: "
                  "What makes a long step fit)"),
    LH_CONFIG_NOT("liger-fused-linear-cross-entropy", "false",
                  "small kernels and the loss are those of an eager model (a later version: "
                  "What makes a long step fit)"),
    LH_CONFIG_NOT("liger-rms-norm", "false",
                  "small kernels and the loss are those of an eager model (a later version: "
                  "What makes a long step fit)"),
    LH_CONFIG_NOT("liger-rope", "false",
                  "small kernels and the loss are those of an eager model (a later version: "
                  "What makes a long step fit)"),
    LH_CONFIG_NOT("liger-glu-activation", "false",
                  "small kernels and the loss are those of an eager model (a later version: "
                  "What makes a long step fit)"),
    LH_CONFIG_NOT("cut-cross-entropy", "false",
                  "small kernels and the loss are those of an eager model (a later version: "
                  "What makes a long step fit)"),
    LH_CONFIG_NOT("activation-offloading", "false",
                  "small kernels and the loss are those of an eager model (a later version: "
                  "What makes a long step fit)"),
    LH_CONFIG_NOT("torch-compile", "false",
                  "small kernels and the loss are those of an eager model (a later version: "
                  "What makes a long step fit)"),
    LH_CONFIG_NOT("unsloth", "false",
                  "small kernels and the loss are those of an eager model (a later version: "
                  "What makes a long step fit)"),
    LH_CONFIG_NOT("use-unsloth", "false",
                  "small kernels and the loss are those of an eager model (a later version: "
                  "What makes a long step fit)"),
    LH_CONFIG_NOT("plugins", "",
                  "no plugin changes kernels or the loss (a later version: What makes a long "
                  "step fit)"),
    LH_CONFIG_NOT("fp8", "false",
                  "products are in 16 bits (a later version: FP8, MXFP8, NVFP4)"),
    LH_CONFIG_NOT("rl", "sft,pt",
                  "one model is trained on its next tokens"),
    LH_CONFIG_NOT("stage", "sft,pt",
                  "one model is trained on its next tokens"),
    LH_CONFIG_NOTHING("gradient-checkpointing-kwargs.use-reentrant"),
    LH_CONFIG_NOT("ddp-bucket-cap-mb", "25",
                  "buckets are of 25 MiB"),
    LH_CONFIG_NOT("ddp-find-unused-parameters", "false",
                  "gradients are reduced as they come"),
    LH_CONFIG_NOT("ddp-broadcast-buffers", "false",
                  "gradients are reduced as they come"),
    LH_CONFIG_NOT("ddp-static-graph", "false",
                  "gradients are reduced as they come"),
    LH_CONFIG_NOT("ring-attn-func", "",
                  "attention is exchanged as --schedule says"),
    LH_CONFIG_NOT("heads-k-stride", "",
                  "attention is exchanged as --schedule says"),
    LH_CONFIG_NOTHING("compute-environment"),
    LH_CONFIG_NOTHING("debug"),
    LH_CONFIG_NOTHING("downcast-bf16"),
    LH_CONFIG_NOTHING("enable-cpu-affinity"),
    LH_CONFIG_NOTHING("machine-rank"),
    LH_CONFIG_NOTHING("main-process-ip"),
    LH_CONFIG_NOTHING("main-process-port"),
    LH_CONFIG_NOTHING("main-training-function"),
    LH_CONFIG_NOTHING("rdzv-backend"),
    LH_CONFIG_NOTHING("same-network"),
    LH_CONFIG_NOTHING("tpu-env"),
    LH_CONFIG_NOTHING("tpu-use-cluster"),
    LH_CONFIG_NOTHING("tpu-use-sudo"),
    LH_CONFIG_NOTHING("use-cpu"),
    LH_CONFIG_NOTHING("gpu-ids"),
    LH_CONFIG_NOTHING("fsdp-config.fsdp-use-orig-params"),
    LH_CONFIG_NOTHING("fsdp-config.fsdp-cpu-ram-efficient-loading"),
    LH_CONFIG_NOTHING("fsdp-config.fsdp-sync-module-states"),
    LH_CONFIG_NOTHING("fsdp-config.fsdp-state-dict-type"),
    LH_CONFIG_NOTHING("fsdp-config.fsdp-transformer-layer-cls-to-wrap"),
    LH_CONFIG_NOTHING("fsdp-config.transformer-layer-cls-to-wrap"),
    LH_CONFIG_NOTHING("fsdp-config.state-dict-type"),
    LH_CONFIG_NOTHING("fsdp-config.cpu-ram-efficient-loading"),
    LH_CONFIG_NOTHING("fsdp-config.fsdp-version"),
    LH_CONFIG_NOTHING("fsdp-config.version"),
    LH_CONFIG_NOTHING("fsdp-version"),
    LH_CONFIG_NOTHING("deepspeed-config.gradient-clipping"),
    LH_CONFIG_NOTHING("deepspeed-config.zero3-init-flag"),
    LH_CONFIG_NOTHING("deepspeed-config.zero3-save-16bit-model"),
    LH_CONFIG_NOTHING("deepspeed-config.deepspeed-multinode-launcher"),
    LH_CONFIG_NOTHING("learning-rate"),
    LH_CONFIG_NOTHING("lr-scheduler"),
    LH_CONFIG_NOTHING("lr-scheduler-type"),
    LH_CONFIG_NOTHING("warmup-steps"),
    LH_CONFIG_NOTHING("warmup-ratio"),
    LH_CONFIG_NOTHING("weight-decay"),
    LH_CONFIG_NOTHING("max-grad-norm"),
    LH_CONFIG_NOTHING("num-train-epochs"),
    LH_CONFIG_NOTHING("num-epochs"),
    LH_CONFIG_NOTHING("max-steps"),
    LH_CONFIG_NOTHING("adam-beta1"),
    LH_CONFIG_NOTHING("adam-beta2"),
    LH_CONFIG_NOTHING("adam-epsilon"),
    LH_CONFIG_NOTHING("seed"),
    LH_CONFIG_NOTHING("data-seed"),
    LH_CONFIG_NOTHING("output-dir"),
    LH_CONFIG_NOTHING("overwrite-output-dir"),
    LH_CONFIG_NOTHING("logging-steps"),
    LH_CONFIG_NOTHING("logging-dir"),
    LH_CONFIG_NOTHING("logging-strategy"),
    LH_CONFIG_NOTHING("log-level"),
    LH_CONFIG_NOTHING("report-to"),
    LH_CONFIG_NOTHING("run-name"),
    LH_CONFIG_NOTHING("save-steps"),
    LH_CONFIG_NOTHING("save-strategy"),
    LH_CONFIG_NOTHING("save-total-limit"),
    LH_CONFIG_NOTHING("save-only-model"),
    LH_CONFIG_NOTHING("save-safetensors"),
    LH_CONFIG_NOTHING("saves-per-epoch"),
    LH_CONFIG_NOTHING("resume-from-checkpoint"),
    LH_CONFIG_NOTHING("auto-resume-from-checkpoints"),
    LH_CONFIG_NOTHING("evals-per-epoch"),
    LH_CONFIG_NOTHING("eval-steps"),
    LH_CONFIG_NOTHING("eval-strategy"),
    LH_CONFIG_NOTHING("evaluation-strategy"),
    LH_CONFIG_NOTHING("do-train"),
    LH_CONFIG_NOTHING("do-eval"),
    LH_CONFIG_NOTHING("per-device-eval-batch-size"),
    LH_CONFIG_NOTHING("eval-batch-size"),
    LH_CONFIG_NOTHING("val-set-size"),
    LH_CONFIG_NOTHING("val-size"),
    LH_CONFIG_NOTHING("split-dataset-ratio"),
    LH_CONFIG_NOTHING("dataset"),
    LH_CONFIG_NOTHING("dataset-dir"),
    LH_CONFIG_NOTHING("dataset-name"),
    LH_CONFIG_NOTHING("dataset-config"),
    LH_CONFIG_NOTHING("dataset-text-field"),
    LH_CONFIG_NOTHING("dataset-num-proc"),
    LH_CONFIG_NOTHING("dataset-processes"),
    LH_CONFIG_NOTHING("dataset-prepared-path"),
    LH_CONFIG_NOTHING("datasets"),
    LH_CONFIG_NOTHING("chat-template"),
    LH_CONFIG_NOTHING("template"),
    LH_CONFIG_NOTHING("trust-remote-code"),
    LH_CONFIG_NOTHING("tokenizer-type"),
    LH_CONFIG_NOTHING("tokenizer-name-or-path"),
    LH_CONFIG_NOTHING("model-type"),
    LH_CONFIG_NOTHING("hub-model-id"),
    LH_CONFIG_NOTHING("push-to-hub"),
    LH_CONFIG_NOTHING("hub-strategy"),
    LH_CONFIG_NOTHING("wandb-project"),
    LH_CONFIG_NOTHING("wandb-entity"),
    LH_CONFIG_NOTHING("wandb-watch"),
    LH_CONFIG_NOTHING("wandb-name"),
    LH_CONFIG_NOTHING("wandb-log-model"),
    LH_CONFIG_NOTHING("preprocessing-num-workers"),
    LH_CONFIG_NOTHING("dataloader-num-workers"),
    LH_CONFIG_NOTHING("dataloader-pin-memory"),
    LH_CONFIG_NOTHING("ddp-timeout"),
    LH_CONFIG_NOTHING("plot-loss"),
    LH_CONFIG_NOTHING("overwrite-cache"),
    LH_CONFIG_NOTHING("max-samples"),
    LH_CONFIG_NOTHING("special-tokens"),
    LH_CONFIG_NOTHING("special-tokens.pad-token"),
    LH_CONFIG_NOTHING("train-on-inputs"),
    LH_CONFIG_NOTHING("strict"),
    LH_CONFIG_NOTHING("tf32"),
    LH_CONFIG_NOTHING("local-rank"),
    LH_CONFIG_NOTHING("shuffle-merged-datasets"),
    LH_CONFIG_NOTHING("remove-unused-columns"),
    LH_CONFIG_NOTHING("include-num-input-tokens-seen"),
    LH_CONFIG_NOTHING("loss-watchdog-threshold"),
    LH_CONFIG_NOTHING("loss-watchdog-patience"),
    LH_CONFIG_NOTHING("early-stopping-patience"),
    LH_CONFIG_NOTHING("neftune-noise-alpha"),
    LH_CONFIG_NOTHING("pad-to-sequence-len"),
    LH_CONFIG_NOTHING("system"),
    LH_CONFIG_NOTHING("swift-version"),
    LH_CONFIG_NOTHING("model-revision"),
    LH_CONFIG_NOTHING("model-author"),
    LH_CONFIG_NOTHING("model-name"),
    { NULL, LH_KEY_NOTHING, NULL, NULL },
};
/* clang-format on */

static const char *const trainer_schedules[] = { "ulysses", "zigzag", NULL };

/* The first of the settings @names, which mean the same, that is there; NULL: none. */
static const char *
find_name(const LhConfig *c, const char *const *names)
{
    for (; *names != NULL; names++) {
        const LhSettingsEntry *entry = lh_config_entry(c, *names);

        if (entry != NULL && g_strcmp0(lh_settings_entry_value(entry), "auto") != 0)
            return *names;
    }
    return NULL;
}

static bool
take_trainer_model(LhConfig *c, GError **error)
{
    static const char *const names[] = { "model-name-or-path", "base-model", "model", "model-id",
                                         NULL };
    const char *name = find_name(c, names), *published = "";
    g_autofree char *model = NULL;
    g_autofree char *shown = NULL;

    if (name == NULL) {
        lh_config_lacks_model(c, NULL, "model_name_or_path, base_model or --model is not there");
        return true;
    }
    if (!lh_config_word(c, name, &published, error))
        return false;
    model = lh_config_model_of(published);
    shown = g_strescape(published, NULL);
    if (model != NULL)
        lh_config_set(c, lh_config_entry(c, name), LH_CONFIG_QUESTION, "model", model);
    else
        lh_config_lacks_model(c, lh_config_entry(c, name),
                              "%.80s is none of longhaul list models; give its config.json", shown);
    return true;
}

/* Sets @field to the one of @names that is there. */
static bool
take_size(LhConfig *c, const char *const *names, unsigned part, const char *field, GError **error)
{
    const char *name = find_name(c, names);
    uint64_t value = 0;

    if (name == NULL)
        return true;
    if (!lh_config_count(c, name, &value, error))
        return false;
    if (value == 0)
        return lh_config_fail(c, lh_config_entry(c, name), error, "\"%s\" is at least 1", name);
    lh_config_set_count(c, lh_config_entry(c, name), part, field, value);
    return true;
}

/* What programs do where they are not told. */
typedef struct {
    const char *name;
    const char *marks[4];   /* settings that no other has */
    uint64_t length, batch; /* tokens, sequences; 0: it is not said here */
    bool recomputes;
} Program;

static const Program programs[] = {
    { "LLaMA-Factory", { "finetuning-type", "cutoff-len", "stage" }, 2048, 8, true },
    { "ms-swift", { "tuner-type", "train-type" }, 0, 1, true },
    { "axolotl", { "base-model", "sequence-len" }, 0, 1, false },
    { "Hugging Face's Trainer", { "model-name-or-path", "max-seq-length" }, 0, 8, false },
};

/* Whose settings these are; NULL: it is not known. */
static const Program *
program_of(const LhConfig *c)
{
    for (guint i = 0; i < G_N_ELEMENTS(programs); i++) {
        for (guint k = 0; programs[i].marks[k] != NULL; k++) {
            if (lh_config_entry(c, programs[i].marks[k]) != NULL)
                return &programs[i];
        }
    }
    return NULL;
}

/* What is not said is as the program has it. */
static void
take_default(LhConfig *c, unsigned part, const char *field, uint64_t value, const char *what)
{
    lh_config_set_count(c, NULL, part, field, value);
    lh_config_unsaid(c, part, field, "%s is not said; %" PRIu64 " is taken, as %s has it", what,
                     value, program_of(c)->name);
}

static void
take_trainer_defaults(LhConfig *c, bool length, bool batch)
{
    const Program *program = program_of(c);

    if (program == NULL)
        return;
    if (!length && program->length > 0)
        take_default(c, LH_CONFIG_QUESTION, "seq_length", program->length,
                     "how many tokens a sequence has at most");
    if (!batch)
        take_default(c, LH_CONFIG_WAY, "micro_batch_size", program->batch,
                     "how many sequences a GPU has at once");
}

static bool
take_trainer_sizes(LhConfig *c, GError **error)
{
    static const char *const lengths[] = { "max-length", "max-seq-length", "cutoff-len",
                                           "sequence-len", NULL };
    static const char *const batches[] = { "per-device-train-batch-size", "micro-batch-size",
                                           "train-batch-size",
                                           "deepspeed-config.train-micro-batch-size-per-gpu",
                                           NULL };
    static const char *const steps[] = { "gradient-accumulation-steps",
                                         "deepspeed-config.gradient-accumulation-steps", NULL };
    static const char *const contexts[] = { "sequence-parallel-degree",
                                            "sequence-parallel-size",
                                            "context-parallel-size",
                                            "cp-size",
                                            "parallelism-config.parallelism-config-cp-size",
                                            "deepspeed-config.sequence-parallel-size",
                                            "parallelism-config.parallelism-config-sp-size",
                                            NULL };
    static const char *const tensors[] = { "tensor-parallel-size",
                                           "parallelism-config.parallelism-config-tp-size",
                                           "deepspeed-config.tensor-parallel.autotp-size", NULL };
    const char *context = find_name(c, contexts);

    take_trainer_defaults(c, find_name(c, lengths) != NULL, find_name(c, batches) != NULL);
    if (context == NULL)
        lh_config_set_count(c, NULL, LH_CONFIG_WAY, "context_parallel_size", 1);
    lh_config_set(c, context != NULL ? lh_config_entry(c, context) : NULL, LH_CONFIG_SCHEDULE,
                  "schedule", trainer_schedules[0]);
    return take_size(c, lengths, LH_CONFIG_QUESTION, "seq_length", error) &&
           take_size(c, batches, LH_CONFIG_WAY, "micro_batch_size", error) &&
           take_size(c, steps, LH_CONFIG_WAY, "num_micro_batches", error) &&
           take_size(c, contexts, LH_CONFIG_WAY, "context_parallel_size", error) &&
           take_size(c, tensors, LH_CONFIG_WAY, "tensor_model_parallel_size", error) &&
           lh_config_count(c, "num-processes", &c->processes, error);
}

static bool
refuse_word(const LhConfig *c, const char *name, const char *found, const char *allowed,
            GError **error)
{
    g_autofree char *shown = g_strescape(found, NULL);

    return lh_config_fail(c, lh_config_entry(c, name), error,
                          "\"%s\": found \"%.40s\"; allowed: %s", name, shown, allowed);
}

/* Groups of ranks that shard, and copies of them. */
static bool
take_shard_groups(LhConfig *c, int shard, GError **error)
{
    static const char *const shards[] = { "dp-shard-size",
                                          "parallelism-config.parallelism-config-dp-shard-size",
                                          NULL };
    static const char *const copies[] = { "dp-replicate-size",
                                          "parallelism-config.parallelism-config-dp-replicate-size",
                                          NULL };
    const char *shard_name = find_name(c, shards), *copies_name = find_name(c, copies);
    uint64_t each = 0, count = 1;

    if ((shard_name != NULL && !lh_config_count(c, shard_name, &each, error)) ||
        (copies_name != NULL && !lh_config_count(c, copies_name, &count, error)))
        return false;
    if (count > 1 && shard != LH_SHARD_DDP)
        lh_config_note(c, lh_config_entry(c, copies_name),
                       "not modelled: %" PRIu64 " copies of groups that shard: all ranks shard",
                       count);
    if (each > 0 && count > 0 && each < UINT16_MAX && count < UINT16_MAX)
        lh_config_set_count(c, lh_config_entry(c, shard_name), LH_CONFIG_WAY, "data_parallel_size",
                            each * count);
    return true;
}

/* A model that Megatron-LM trains for such a program is cut in ways that this reader has not. */
static bool
refuse_megatron(const LhConfig *c, GError **error)
{
    static const char *const names[] = { "tensor-model-parallel-size",
                                         "pipeline-model-parallel-size" };

    for (guint i = 0; i < G_N_ELEMENTS(names); i++) {
        const LhSettingsEntry *entry = lh_config_entry(c, names[i]);
        g_autofree char *text = entry != NULL ? lh_settings_entry_text(entry) : NULL;
        g_autofree char *shown = text != NULL ? g_strescape(text, NULL) : NULL;

        if (g_strcmp0(text, "1") != 0 && entry != NULL)
            return lh_config_fail(c, entry, error,
                                  "\"%s\": found \"%.20s\": Megatron-LM trains the model then; "
                                  "give --from-config its settings by their own names (--%s %.20s)",
                                  names[i], shown, names[i], shown);
    }
    return true;
}

/* "FULL_SHARD" or its number. */
static bool
shard_of(LhConfig *c, int *shard, GError **error)
{
    static const char *const words[] = {
        "FULL_SHARD", "SHARD_GRAD_OP", "NO_SHARD", "HYBRID_SHARD", "1", "2", "3", "4", NULL
    };
    static const int shards[] = { LH_SHARD_FSDP, LH_SHARD_ZERO2, LH_SHARD_DDP, LH_SHARD_FSDP };
    static const char *const names[] = { "fsdp-config.fsdp-sharding-strategy",
                                         "fsdp-config.sharding-strategy", NULL };
    const char *name = find_name(c, names), *word = "FULL_SHARD";
    int which;

    if (name != NULL && !lh_config_word(c, name, &word, error))
        return false;
    which = lh_config_index(words, word);
    if (which < 0)
        return refuse_word(c, name, word, "FULL_SHARD, SHARD_GRAD_OP, NO_SHARD, HYBRID_SHARD",
                           error);
    if (which % 4 == 3)
        lh_config_note(c, lh_config_entry(c, name),
                       "not modelled: HYBRID_SHARD: all ranks shard, not those of a node");
    *shard = shards[which % 4];
    return true;
}

/* "full_shard auto_wrap", as the Trainer's own option has it. */
static int
shard_of_words(LhConfig *c, const LhSettingsEntry *entry)
{
    g_autofree char *text = lh_settings_entry_text(entry);

    if (strstr(text, "offload") != NULL)
        lh_config_note(c, entry,
                       "not modelled: offload: all stays on the GPU (a later version: What makes a "
                       "long step fit)");
    return strstr(text, "full_shard") != NULL || strstr(text, "hybrid_shard") != NULL
               ? LH_SHARD_FSDP
           : strstr(text, "shard_grad_op") != NULL ? LH_SHARD_ZERO2
                                                   : LH_SHARD_DDP;
}

/* Whether it is said how FSDP does something, which is an answer in itself where nothing else names
 * a way. */
static bool
has_fsdp(const LhConfig *c)
{
    for (const LhConfigKey *key = trainer_keys; key->name != NULL; key++) {
        if (g_str_has_prefix(key->name, "fsdp-config.") && key->kind != LH_KEY_NOTHING &&
            lh_config_entry(c, key->name) != NULL)
            return true;
    }
    return false;
}

/* A file that is not there says how ranks shard. */
static void
lacks_way(LhConfig *c, const LhSettingsEntry *file)
{
    g_autofree char *shown = g_strescape(g_ptr_array_index(file->values, 0), NULL);

    lh_config_lacks(c, file, "shard",
                    "how ranks shard is in %.80s, which is neither beside this file nor in the "
                    "working folder: put it there, or give --shard",
                    shown);
}

/* "zero3_offload": the files that ms-swift has itself. */
static bool
shard_by_name(LhConfig *c, const LhSettingsEntry *file, int *shard, GError **error)
{
    g_autofree char *text = lh_settings_entry_text(file);
    g_autofree char *shown = g_strescape(text, NULL);

    if (g_str_has_prefix(text, "zero") && text[4] >= '0' && text[4] <= '3' &&
        (text[5] == '\0' || strcmp(text + 5, "_offload") == 0)) {
        *shard = text[4] - '0';
        if (text[5] != '\0')
            lh_config_note(c, file,
                           "not modelled: deepspeed %.20s: all stays on the GPU (a later version: "
                           "What makes a long step fit)",
                           shown);
        return true;
    }
    return lh_config_fail(c, file, error,
                          "\"%.40s\": found \"%.60s\"; allowed: a file of DeepSpeed's settings "
                          "(.json), zero0, zero1, zero2, zero3, zero2_offload, zero3_offload",
                          file->path, shown);
}

/* DeepSpeed's stage, as accelerate has it or as its own file does. */
static bool
shard_by_deepspeed(LhConfig *c, const LhSettingsEntry *file, int *shard, GError **error)
{
    uint64_t stage = LH_SHARD_ZERO2; /* accelerate's */

    if (file != NULL && file->missing) {
        lacks_way(c, file);
        return true;
    }
    if (file != NULL)
        return shard_by_name(c, file, shard, error);
    if (!lh_config_count(c, "deepspeed-config.zero-stage", &stage, error))
        return false;
    if (stage > LH_SHARD_FSDP)
        return refuse_word(c, "deepspeed-config.zero-stage", "more than 3", "0 to 3", error);
    *shard = (int)stage;
    return lh_config_deepspeed_zero(c, shard, error);
}

/* Whether DeepSpeed trains: its file, or accelerate's settings of it. */
static bool
has_deepspeed(const LhConfig *c)
{
    for (guint i = 0; i < c->names->len; i++) {
        if (g_str_has_prefix(g_ptr_array_index(c->names, i), "deepspeed-config.zero-optim") ||
            strcmp(g_ptr_array_index(c->names, i), "deepspeed-config.zero-stage") == 0)
            return true;
    }
    return false;
}

/* Who shards: by "distributed_type", by LLaMA-Factory's "dist_config.name", or by what is there. */
static bool
read_sharder(LhConfig *c, const LhSettingsEntry **deepspeed, bool *fsdp, bool *by_deepspeed,
             GError **error)
{
    static const char *const kinds[] = { "NO", "MULTI_GPU", "FSDP", "DEEPSPEED", NULL };
    static const char *const names[] = { "ddp", "fsdp", "fsdp2", "deepspeed", NULL };
    const char *kind = NULL, *name = NULL;
    int which = -1;

    if (!lh_config_word(c, "distributed-type", &kind, error) ||
        !lh_config_word(c, "dist-config.name", &name, error))
        return false;
    *deepspeed = lh_config_entry(c, "deepspeed");
    if (kind != NULL && (which = lh_config_index(kinds, kind)) < 0)
        return refuse_word(c, "distributed-type", kind, "NO, MULTI_GPU, FSDP, DEEPSPEED", error);
    if (kind == NULL && name != NULL && (which = lh_config_index(names, name)) < 0)
        return refuse_word(c, "dist-config.name", name, "ddp, fsdp, fsdp2, deepspeed", error);
    if (which == 3 && *deepspeed == NULL)
        *deepspeed = lh_config_entry(c, "dist-config.config-file");
    if (*deepspeed == NULL)
        *deepspeed = lh_config_entry(c, "deepspeed-config.deepspeed-config-file");
    *by_deepspeed =
        which == 3 || *deepspeed != NULL || (kind == NULL && name == NULL && has_deepspeed(c));
    *fsdp = which == 2 || (kind == NULL && which == 1) || (which < 0 && has_fsdp(c));
    return true;
}

static bool
take_trainer_sharding(LhConfig *c, GError **error)
{
    static const char *const reshards[] = { "fsdp-config.fsdp-reshard-after-forward",
                                            "fsdp-config.reshard-after-forward", NULL };
    const char *reshard = find_name(c, reshards);
    const LhSettingsEntry *file = lh_config_entry(c, "config-file");
    const LhSettingsEntry *deepspeed = NULL, *words = lh_config_entry(c, "fsdp");
    bool fsdp = false, by_deepspeed = false;
    int shard = LH_SHARD_DDP;

    if (!read_sharder(c, &deepspeed, &fsdp, &by_deepspeed, error))
        return false;
    if (by_deepspeed) {
        if (!shard_by_deepspeed(c, deepspeed, &shard, error))
            return false;
    } else if (words != NULL) {
        shard = shard_of_words(c, words);
    } else if (fsdp) {
        if (!shard_of(c, &shard, error))
            return false;
    } else if (file != NULL && file->missing) {
        lacks_way(c, file);
    }
    if (reshard != NULL) {
        const char *value = lh_settings_entry_value(lh_config_entry(c, reshard));

        if (shard == LH_SHARD_FSDP &&
            (g_strcmp0(value, "false") == 0 || g_strcmp0(value, "SHARD_GRAD_OP") == 0))
            lh_config_set_framework(c, "fsdp.reshard_after_forward", "no");
    }
    lh_config_set(c, NULL, LH_CONFIG_WAY, "shard", lh_shard_names[shard]);
    return take_shard_groups(c, shard, error);
}

static bool
take_trainer_policies(LhConfig *c, GError **error)
{
    static const char *const names[] = { "gradient-checkpointing",
                                         "fsdp-config.activation-checkpointing",
                                         "fsdp-config.fsdp-activation-checkpointing", NULL };
    const char *mixed = "no", *type = "";
    const Program *program = program_of(c);
    bool again = program != NULL && program->recomputes && lh_config_entry(c, names[0]) == NULL;
    bool fp16 = false, bf16 = false, off = false;

    if (!lh_config_flag(c, "disable-gradient-checkpointing", &off, error) ||
        !lh_config_flag(c, "pure-bf16", &bf16, error))
        return false;
    again = again && !off;
    for (guint i = 0; names[i] != NULL; i++) {
        bool one = false;

        if (!lh_config_flag(c, names[i], &one, error))
            return false;
        again = again || one;
    }
    if (!lh_config_word(c, "mixed-precision", &mixed, error) ||
        !lh_config_word(c, "torch-dtype", &type, error) ||
        (find_name(c, (const char *const[]){ "fp16", NULL }) != NULL &&
         !lh_config_flag(c, "fp16", &fp16, error)) ||
        (find_name(c, (const char *const[]){ "bf16", NULL }) != NULL &&
         !lh_config_flag(c, "bf16", &bf16, error)))
        return false;
    fp16 = fp16 || strcmp(mixed, "fp16") == 0 || strcmp(type, "float16") == 0;
    if (lh_config_entry(c, "bf16") != NULL && /* it is what the GPU can do */
        g_strcmp0(lh_settings_entry_value(lh_config_entry(c, "bf16")), "auto") == 0)
        bf16 = !fp16;
    bf16 = bf16 || strcmp(mixed, "bf16") == 0 || strcmp(type, "bfloat16") == 0;
    if (strcmp(mixed, "fp8") == 0)
        lh_config_note(c, lh_config_entry(c, "mixed-precision"),
                       "not modelled: fp8: products are in 16 bits (a later version: FP8, MXFP8, "
                       "NVFP4)");
    else if (!fp16 && !bf16)
        lh_config_note(c, NULL, "neither bf16 nor fp16 is asked for; bf16 is predicted");
    lh_config_set(c, NULL, LH_CONFIG_QUESTION, "dtype", fp16 && !bf16 ? "fp16" : "bf16");
    lh_config_set(c, NULL, LH_CONFIG_WAY, "checkpoint",
                  lh_checkpoint_names[again ? LH_CHECKPOINT_LAYER : LH_CHECKPOINT_NONE]);
    lh_config_set_count(c, NULL, LH_CONFIG_QUESTION, "pipeline_model_parallel_size", 1);
    return true;
}

static const char *
framework_of(const LhConfig *c)
{
    const LhSettingsEntry *kind = lh_config_entry(c, "distributed-type");
    const LhSettingsEntry *name = lh_config_entry(c, "dist-config.name");

    return lh_config_entry(c, "deepspeed") != NULL ||
                   (kind != NULL ? g_strcmp0(lh_settings_entry_value(kind), "DEEPSPEED") == 0
                                 : (name != NULL &&
                                    g_strcmp0(lh_settings_entry_value(name), "deepspeed") == 0) ||
                                       has_deepspeed(c))
               ? "deepspeed"
               : "pytorch-fsdp";
}

static bool
trainer_take(LhConfig *c, GError **error)
{
    return refuse_megatron(c, error) && take_trainer_model(c, error) &&
           take_trainer_sizes(c, error) && take_trainer_sharding(c, error) &&
           take_trainer_policies(c, error);
}

/* ---- a way in its words ---- */

static bool
trainer_allows(const LhConfigWay *way)
{
    return (way->checkpoint == LH_CHECKPOINT_NONE || way->checkpoint == LH_CHECKPOINT_LAYER) &&
           way->pipeline == 1;
}

static void
trainer_say(const LhConfig *c, const LhConfigWay *way, GPtrArray *words)
{
    g_autofree char *ranks = g_strdup_printf(
        "%s, tensor parallel %u, context parallel %u, data parallel %u, as the launcher has it",
        lh_shard_names[way->shard], way->tensor, way->context, way->data);

    lh_config_say_count(c, words, "per_device_train_batch_size", way->micro_batch_size);
    lh_config_say_count(c, words, "gradient_accumulation_steps", way->micro_batches);
    lh_config_say(c, words, "gradient_checkpointing", LH_SETTINGS_PLAIN,
                  way->checkpoint == LH_CHECKPOINT_LAYER ? "true" : "false");
    lh_config_remark(c, words, ranks);
}

const LhConfigSystem lh_config_trainer = {
    .name = "Hugging Face's Trainer",
    .framework = "pytorch-fsdp",
    .framework_of = framework_of,
    .keys = trainer_keys,
    .schedules = trainer_schedules,
    .take = trainer_take,
    .allows = trainer_allows,
    .say = trainer_say,
};
