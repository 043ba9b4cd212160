/* SPDX-License-Identifier: Apache-2.0 */
#include "framework_config/configuration.h"

#include "base/error.h"
#include "base/files/file_input.h"
#include "base/settings/settings_arguments.h"
#include "framework_config/common/config_messages.h"
#include "framework_config/common/config_names.h"
#include "framework_config/common/config_settings.h"
#include "framework_config/configuration_beside.h"
#include "framework_config/configuration_launch.h"
#include "framework_config/configuration_sort.h"
#include "framework_config/configuration_systems.h"
#include "framework_config/deepspeed/deepspeed.h"
#include "framework_config/torchtitan/torchtitan.h"
#include "scenario/setup.h"

#include <string.h>

#define ARGUMENTS "MODEL_ARGS." /* prefix in test files of Megatron-LM: "--name: value" */

/* Readers by the ending of the file's name. */
static const struct {
    const char *ending;
    LhSettingsFileReader *reader;
    const LhConfigSystem *system; /* NULL: determined by the settings */
} formats[] = {
    { ".toml", lh_settings_toml, &lh_config_torchtitan },
    { ".json", lh_settings_json, &lh_config_deepspeed },
    { ".yaml", lh_settings_yaml, NULL },
    { ".yml", lh_settings_yaml, NULL },
    { "", lh_settings_arguments, NULL },
};

static guint
format_of(const char *file)
{
    guint i = 0;

    while (!g_str_has_suffix(file, formats[i].ending))
        i++;
    return i;
}

const char *
lh_config_system_name(const LhConfig *config)
{
    return config->system->name;
}

/* Whether the file is a command line, or a list of its arguments in YAML ("MODEL_ARGS:"). */
static bool
is_arguments(const LhSettingsFile *entries)
{
    for (guint i = 0; entries->taken != NULL && i < entries->entries->len; i++) {
        const LhSettingsEntry *entry = g_ptr_array_index(entries->entries, i);

        if (g_str_has_prefix(entry->path, ARGUMENTS))
            return true;
    }
    return entries->taken == NULL;
}

static void
fail_without_settings(const LhConfig *config, GError **error)
{
    const GPtrArray *unused = config->entries->unused;
    const LhSettingsEntry *first = unused->len > 0 ? g_ptr_array_index(unused, 0) : NULL;

    if (first != NULL)
        lh_config_fail(config, first, error,
                       "%s holds options, but no command of the file uses it, and no setting of %s "
                       "was found: add the command, or give the script that runs it",
                       first->path, config->system->name);
    else if (config->entries->ended_line != 0)
        lh_config_fail(config, NULL, error,
                       "the script ends in line %u, before it starts a program with settings of "
                       "%s: supply the variables that it needs there by --set VAR=value",
                       config->entries->ended_line, config->system->name);
    else
        lh_config_fail(config, NULL, error,
                       "the file contains no setting of %s that configures training",
                       config->system->name);
}

/* Notes missing files of settings that a program is given. */
static void
note_operands(LhConfig *config)
{
    const GPtrArray *operands = config->entries->operands;

    for (guint i = 0; operands != NULL && i < operands->len; i++) {
        const LhSettingsEntry *operand = g_ptr_array_index(operands, i);
        g_autofree char *shown = g_strescape(g_ptr_array_index(operand->values, 0), NULL);

        if (!operand->missing)
            continue;
        lh_config_note(config, operand, "%.80s does not exist, and has not been read", shown);
        if (config->no_model != NULL)
            lh_config_lacks_model(config, operand,
                                  "it is in %.80s, which is neither beside this file nor in the "
                                  "working folder; give --from-config that file",
                                  shown);
    }
}

static bool
has_setting(const LhConfig *config, const char *field)
{
    for (guint i = 0; i < config->settings->len; i++) {
        if (strcmp(((const LhConfigSetting *)g_ptr_array_index(config->settings, i))->field,
                   field) == 0)
            return true;
    }
    return false;
}

static LhConfig *
decode_config(LhSettingsFile *entries, const LhConfigSystem *system, GError **error)
{
    g_autoptr(LhConfig) config = g_new0(LhConfig, 1);

    config->system = system;
    config->entries = entries;
    config->settings = g_ptr_array_new_with_free_func(lh_config_setting_free);
    config->lacks = g_ptr_array_new_with_free_func(lh_config_lack_free);
    config->unsaid = g_ptr_array_new_with_free_func(lh_config_lack_free);
    config->names = g_ptr_array_new_with_free_func(g_free);
    config->notes = g_ptr_array_new_with_free_func(g_free);
    config->framework_values = g_ptr_array_new_with_free_func(g_free);
    config->framework_name = system->framework;
    config->arguments = is_arguments(entries);
    config->unknown = g_ptr_array_new();
    config->elsewhere = g_ptr_array_new();
    if (system->prepare != NULL)
        system->prepare(entries);
    for (guint i = 0; i < entries->entries->len; i++)
        g_ptr_array_add(
            config->names,
            lh_config_name_of(
                system, ((const LhSettingsEntry *)g_ptr_array_index(entries->entries, i))->path));
    if (system->framework_of != NULL)
        config->framework_name = system->framework_of(config);
    config->framework = lh_framework_load(config->framework_name, NULL);
    if (!lh_config_sort(config, error) || !lh_config_take_keys(config, system, error) ||
        !system->take(config, error))
        return NULL;
    lh_config_launch(config);
    note_operands(config);
    if (!has_setting(config, "seq_length"))
        lh_config_unsaid(config, LH_CONFIG_QUESTION, "seq_length",
                         "the sequence length is not given; without --seq-length it is %d per "
                         "context-parallel rank",
                         LH_DEFAULT_TOKENS_PER_RANK);
    if (config->read + config->not_modelled + config->elsewhere->len == 0) {
        fail_without_settings(config, error);
        return NULL;
    }
    for (guint i = 0; i < entries->unused->len; i++)
        lh_config_note(config, g_ptr_array_index(entries->unused, i),
                       "%s holds options, but no command of the file uses it: they are left out",
                       ((const LhSettingsEntry *)g_ptr_array_index(entries->unused, i))->path);
    return g_steal_pointer(&config);
}

LhConfig *
lh_config_parse(const char *file, const char *text, gsize length, const GPtrArray *variables,
                GError **error)
{
    const guint format = format_of(file);
    LhSettingsFileReader *reader = formats[format].reader;
    LhSettingsFile *entries;

    if (g_str_has_suffix(file, ".py") || g_str_has_suffix(file, ".ipynb")) {
        g_set_error(error, LH_ERROR, LH_ERROR_INPUT,
                    "%s:1:1: error: this is a Python program, such as a recipe of NeMo 2.0, "
                    "Megatron-Bridge or torchtitan, and is not run: give --from-config the command "
                    "line that starts it, with its overrides, or its settings as YAML, TOML or "
                    "JSON, and --model the config.json of its model",
                    file);
        return NULL;
    }
    if (variables != NULL && reader != lh_settings_arguments) {
        g_set_error(error, LH_ERROR, LH_ERROR_USAGE,
                    "--set applies to variables of a script, and %s is not a script", file);
        return NULL;
    }
    entries = variables != NULL ? lh_settings_script(file, text, length, variables, error)
                                : reader(file, text, length, error);
    if (entries == NULL)
        return NULL;
    if (!lh_config_take_beside(entries, error)) {
        lh_settings_free(entries);
        return NULL;
    }
    return decode_config(entries,
                         formats[format].system != NULL ? formats[format].system
                                                        : lh_config_system_of(entries),
                         error);
}

LhConfig *
lh_config_load(const char *path, const GPtrArray *variables, GError **error)
{
    gsize length;
    g_autofree char *text = lh_input_read(path, LH_SETTINGS_BYTES_MAX, &length, error);

    return text == NULL ? NULL : lh_config_parse(path, text, length, variables, error);
}

void
lh_config_free(LhConfig *config)
{
    if (config == NULL)
        return;
    g_ptr_array_unref(config->settings);
    g_ptr_array_unref(config->lacks);
    g_ptr_array_unref(config->unsaid);
    g_ptr_array_unref(config->names);
    g_ptr_array_unref(config->framework_values);
    lh_framework_free(config->framework);
    g_ptr_array_unref(config->notes);
    g_ptr_array_unref(config->unknown);
    g_ptr_array_unref(config->elsewhere);
    lh_settings_free(config->entries);
    g_free(config->model);
    g_free(config->no_model);
    g_free(config);
}
