/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Programs that train with Hugging Face's Trainer: configurations of accelerate, TRL, axolotl and
 * LLaMA-Factory in YAML, and arguments of ms-swift and of TRL's scripts. They share most names of
 * settings, and one table describes all. The step is PyTorch's FSDP around an eager model, or
 * DeepSpeed's if the file asks for it.
 */
#include "framework_config/trainer/trainer.h"

#include "framework_config/common/config_messages.h"
#include "framework_config/common/config_settings.h"
#include "framework_config/common/config_values.h"
#include "framework_config/common/config_words.h"
#include "framework_config/common/published_model.h"
#include "framework_config/trainer/trainer_keys.h"
#include "framework_config/trainer/trainer_lora.h"
#include "framework_config/trainer/trainer_names.h"
#include "framework_config/trainer/trainer_optimizer.h"
#include "framework_config/trainer/trainer_sharding.h"

#include <inttypes.h>
#include <string.h>

static const char *const trainer_schedules[] = { "ulysses", "zigzag", NULL };

static bool
take_trainer_model(LhConfig *c, GError **error)
{
    static const char *const names[] = { "model-name-or-path", "base-model", "model", "model-id",
                                         NULL };
    const char *name = lh_config_trainer_find_name(c, names), *published = "";
    g_autofree char *model = NULL;
    g_autofree char *shown = NULL;

    if (name == NULL) {
        lh_config_lacks_model(c, NULL, "model_name_or_path, base_model or --model is missing");
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
                              "%.80s is not in longhaul list models; give its config.json", shown);
    return true;
}

/* Sets @field to the one of @names that exists. */
static bool
take_size(LhConfig *c, const char *const *names, unsigned part, const char *field, GError **error)
{
    const char *name = lh_config_trainer_find_name(c, names);
    uint64_t value = 0;

    if (name == NULL)
        return true;
    if (!lh_config_count(c, name, &value, error))
        return false;
    if (value == 0)
        return lh_config_fail(c, lh_config_entry(c, name), error, "\"%s\" must be at least 1",
                              name);
    lh_config_set_count(c, lh_config_entry(c, name), part, field, value);
    return true;
}

/* Defaults of the programs. */
typedef struct {
    const char *name;
    const char *marks[4];   /* settings that identify the program */
    uint64_t length, batch; /* default tokens and sequences; 0: no default */
    bool recomputes;
} Program;

static const Program programs[] = {
    { "LLaMA-Factory", { "finetuning-type", "cutoff-len", "stage" }, 2048, 8, true },
    { "ms-swift", { "tuner-type", "train-type" }, 0, 1, true },
    { "axolotl", { "base-model", "sequence-len" }, 0, 1, false },
    { "Hugging Face's Trainer", { "model-name-or-path", "max-seq-length" }, 0, 8, false },
};

/* The program that the settings belong to; NULL: unknown. */
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

/* Takes a default of the program for a field that is not set. */
static void
take_default(LhConfig *c, unsigned part, const char *field, uint64_t value, const char *what)
{
    lh_config_set_count(c, NULL, part, field, value);
    lh_config_unsaid(c, part, field, "%s is not given; %" PRIu64 " is assumed, the default of %s",
                     what, value, program_of(c)->name);
}

static void
take_trainer_defaults(LhConfig *c, bool length, bool batch)
{
    const Program *program = program_of(c);

    if (program == NULL)
        return;
    if (!length && program->length > 0)
        take_default(c, LH_CONFIG_QUESTION, "seq_length", program->length,
                     "the maximum sequence length");
    if (!batch)
        take_default(c, LH_CONFIG_WAY, "micro_batch_size", program->batch,
                     "the batch size per GPU");
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
    const char *context = lh_config_trainer_find_name(c, contexts);

    take_trainer_defaults(c, lh_config_trainer_find_name(c, lengths) != NULL,
                          lh_config_trainer_find_name(c, batches) != NULL);
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

/* Rejects a model that Megatron-LM trains for such a program: its parallelism is not in these
 * settings. */
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
                                  "\"%s\": found \"%.20s\": Megatron-LM then trains the model; "
                                  "give --from-config its settings by their own names (--%s %.20s)",
                                  names[i], shown, names[i], shown);
    }
    return true;
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
        (lh_config_trainer_find_name(c, (const char *const[]){ "fp16", NULL }) != NULL &&
         !lh_config_flag(c, "fp16", &fp16, error)) ||
        (lh_config_trainer_find_name(c, (const char *const[]){ "bf16", NULL }) != NULL &&
         !lh_config_flag(c, "bf16", &bf16, error)))
        return false;
    fp16 = fp16 || strcmp(mixed, "fp16") == 0 || strcmp(type, "float16") == 0;
    if (lh_config_entry(c, "bf16") != NULL && /* depends on the GPU */
        g_strcmp0(lh_settings_entry_value(lh_config_entry(c, "bf16")), "auto") == 0)
        bf16 = !fp16;
    bf16 = bf16 || strcmp(mixed, "bf16") == 0 || strcmp(type, "bfloat16") == 0;
    if (strcmp(mixed, "fp8") == 0)
        lh_config_note(c, lh_config_entry(c, "mixed-precision"),
                       "not modelled: fp8: matrix products are in 16 bits (a later version: FP8, "
                       "MXFP8, NVFP4)");
    else if (!fp16 && !bf16)
        lh_config_note(c, NULL, "neither bf16 nor fp16 is set; bf16 is predicted");
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
                                       lh_config_trainer_has_deepspeed(c))
               ? "deepspeed"
               : "pytorch-fsdp";
}

static bool
trainer_take(LhConfig *c, GError **error)
{
    return refuse_megatron(c, error) && take_trainer_model(c, error) &&
           take_trainer_sizes(c, error) && lh_config_trainer_take_sharding(c, error) &&
           take_trainer_policies(c, error) && lh_config_trainer_take_optimizer(c, error) &&
           lh_config_trainer_take_lora(c, error);
}

/* ---- writing a way of training ---- */

static bool
trainer_allows(const LhConfigWay *way)
{
    return (way->checkpoint == LH_CHECKPOINT_NONE || way->checkpoint == LH_CHECKPOINT_LAYER) &&
           way->recompute.layers == 0 && way->pipeline == 1;
}

static void
trainer_say(const LhConfig *c, const LhConfigWay *way, GPtrArray *words)
{
    g_autofree char *ranks = g_strdup_printf(
        "%s, tensor parallel %u, context parallel %u, data parallel %u: set by the launcher",
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
    .keys = lh_config_trainer_keys,
    .schedules = trainer_schedules,
    .take = trainer_take,
    .allows = trainer_allows,
    .say = trainer_say,
};
