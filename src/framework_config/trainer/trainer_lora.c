/* SPDX-License-Identifier: Apache-2.0 */
/*
 * peft has an adapter for each of q, k, v, gate and up; a step has one for q, k and v together and
 * one for gate and up, as Megatron-Bridge does, so a part of them becomes the whole, with a note.
 */
#include "framework_config/trainer/trainer_lora.h"

#include "framework_config/common/config_messages.h"
#include "framework_config/common/config_settings.h"
#include "framework_config/common/config_values.h"
#include "framework_config/trainer/trainer_names.h"

#include <string.h>

#define RANK 8U      /* default of LLaMA-Factory, ms-swift and peft */
#define RANK_TRL 16U /* ... and of TRL, which is asked for adapters by use_peft */

/* Modules of peft, by the target of a step that has them. */
static const struct {
    const char *target;
    unsigned count;
    const char *modules[3];
} targets[] = {
    { "linear_qkv", 3, { "q_proj", "k_proj", "v_proj" } },
    { "linear_proj", 1, { "o_proj" } },
    { "linear_fc1", 2, { "gate_proj", "up_proj" } },
    { "linear_fc2", 1, { "down_proj" } },
};

/* Whether the settings ask for adapters, perhaps of quantised weights. */
static bool
find_method(LhConfig *c, bool *lora, GError **error)
{
    static const char *const names[] = { "adapter", "finetuning-type", "train-type", "tuner-type" };

    if (!lh_config_flag(c, "use-peft", lora, error))
        return false;
    for (guint i = 0; i < G_N_ELEMENTS(names); i++) {
        const char *method = "full";

        if (!lh_config_word(c, names[i], &method, error))
            return false;
        *lora = *lora || strcmp(method, "lora") == 0 || strcmp(method, "qlora") == 0;
        if (strcmp(method, "qlora") == 0)
            lh_config_note(c, lh_config_entry(c, names[i]),
                           "not modelled: qlora: frozen weights are in 16 bits");
    }
    return true;
}

/* Notes the module, as a bit of @found for each of the targets; false: it is unknown. */
static bool
take_module(const char *module, unsigned found[G_N_ELEMENTS(targets)])
{
    for (guint i = 0; i < G_N_ELEMENTS(targets); i++) {
        for (unsigned k = 0; k < targets[i].count; k++) {
            if (strcmp(module, targets[i].modules[k]) == 0) {
                found[i] |= 1u << k;
                return true;
            }
        }
    }
    return false;
}

/* Sets the targets that have one of the @modules. */
static void
set_targets(LhConfig *c, const LhSettingsEntry *entry, const GPtrArray *modules)
{
    g_autoptr(GString) set = g_string_new(NULL);
    unsigned found[G_N_ELEMENTS(targets)] = { 0 };

    for (guint i = 0; i < modules->len; i++) {
        const char *module = g_ptr_array_index(modules, i);

        if (strcmp(module, "all") == 0 || strcmp(module, "all-linear") == 0)
            return; /* the default */
        if (!take_module(module, found))
            lh_config_note(c, entry, "not modelled: " LH_CONFIG_SHOWN ": it has no adapter",
                           module);
    }
    for (guint i = 0; i < G_N_ELEMENTS(targets); i++) {
        if (found[i] == 0)
            continue;
        g_string_append_printf(set, "%s%s", set->len > 0 ? "," : "", targets[i].target);
        if (found[i] != (1u << targets[i].count) - 1)
            lh_config_note(c, entry,
                           "not modelled: adapters of a part of %s: all of it has one adapter",
                           targets[i].target);
    }
    if (set->len > 0)
        lh_config_set(c, entry, LH_CONFIG_QUESTION, "lora_targets", set->str);
}

/* The words of a setting: those of a list, or of one text with commas. Caller unrefs. */
static GPtrArray *
words_of(const LhSettingsEntry *entry)
{
    GPtrArray *words = g_ptr_array_new_with_free_func(g_free);

    for (guint i = 0; i < entry->values->len; i++) {
        g_auto(GStrv) parts = g_strsplit_set(g_ptr_array_index(entry->values, i), ", []'\"", -1);

        for (guint k = 0; parts[k] != NULL; k++) {
            if (parts[k][0] != '\0')
                g_ptr_array_add(words, g_strdup(parts[k]));
        }
    }
    return words;
}

/* peft's own default, which TRL does not change, is q and v. */
static void
set_default_targets(LhConfig *c)
{
    g_autoptr(GPtrArray) words = g_ptr_array_new();

    g_ptr_array_add(words, (gpointer) "q_proj");
    g_ptr_array_add(words, (gpointer) "v_proj");
    set_targets(c, lh_config_entry(c, "use-peft"), words);
}

bool
lh_config_trainer_take_lora(LhConfig *c, GError **error)
{
    static const char *const ranks[] = { "lora-r", "lora-rank", NULL };
    static const char *const modules[] = { "lora-target-modules", "lora-target", "target-modules",
                                           NULL };
    const char *rank = lh_config_trainer_find_name(c, ranks);
    const char *module = lh_config_trainer_find_name(c, modules);
    const bool trl = lh_config_entry(c, "use-peft") != NULL;
    uint64_t value = trl ? RANK_TRL : RANK;
    bool lora = false, linear = false;

    if (!find_method(c, &lora, error) || !lh_config_flag(c, "lora-target-linear", &linear, error))
        return false;
    if (!lora)
        return true;
    if (rank != NULL && !lh_config_count(c, rank, &value, error))
        return false;
    lh_config_set_count(c, rank != NULL ? lh_config_entry(c, rank) : NULL, LH_CONFIG_QUESTION,
                        "lora_rank", value);
    if (rank == NULL)
        lh_config_unsaid(c, LH_CONFIG_QUESTION, "lora_rank",
                         "the rank of LoRA is not given; %u is assumed", (unsigned)value);
    if (module != NULL && !linear) {
        g_autoptr(GPtrArray) words = words_of(lh_config_entry(c, module));

        set_targets(c, lh_config_entry(c, module), words);
    } else if (trl && !linear) {
        set_default_targets(c);
    }
    return true;
}
