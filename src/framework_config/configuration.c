/*
 * What configurations of all systems share: finding the system, names, fields, errors, words. What
 * each system's settings mean is in its own file.
 */
#include "framework_config/configuration.h"

#include "base/error.h"
#include "base/files/data_files.h"
#include "base/files/file_input.h"
#include "framework_config/configuration_private.h"
#include "scenario/setup.h"

#include <inttypes.h>
#include <stdarg.h>
#include <string.h>

#define COUNT_MAX (UINT64_C(1) << 40)
#define SHOWN "%.60s"
#define ARGUMENTS "MODEL_ARGS." /* of tests of Megatron-LM: "--name: value" */
#define ENVIRONMENT "ENV_VARS." /* likewise */

/* What a setting says of a scenario. */
typedef struct {
    unsigned part; /* LhConfigParts */
    const char *field;
    char *value; /* NULL: a flag */
    const LhSettingsEntry *entry;
} Setting;

/* What of the way another file says. */
typedef struct {
    const LhSettingsEntry *entry;
    unsigned part;     /* LhConfigParts */
    const char *field; /* of the scenario, that may say it */
    char *why;
} Lack;

/* How files are read and written, by their ending. */
static const struct {
    const char *ending;
    LhSettingsFileReader *reader;
    const LhConfigSystem *system; /* NULL: what its settings say */
} formats[] = {
    { ".toml", lh_settings_toml, &lh_config_torchtitan },
    { ".json", lh_settings_json, &lh_config_deepspeed },
    { ".yaml", lh_settings_yaml, NULL },
    { ".yml", lh_settings_yaml, NULL },
    { "", lh_settings_arguments, NULL },
};

const LhConfigSystem *const lh_config_systems[] = { &lh_config_megatron,  &lh_config_torchtitan,
                                                    &lh_config_deepspeed, &lh_config_trainer,
                                                    &lh_config_nemo,      NULL };

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

/* ---- names ---- */

static const char *
last_word(const char *path)
{
    const char *dot = strrchr(path, '.');

    return dot != NULL ? dot + 1 : path;
}

/* The name that a path with this end has; NULL: it has no other. */
static const char *
name_by_alias(const LhConfigSystem *system, const char *path)
{
    for (const LhConfigAlias *alias = system->aliases; alias->path != NULL; alias++) {
        const char *end = path + strlen(path) - MIN(strlen(path), strlen(alias->path));

        if (strcmp(end, alias->path) == 0 && (end == path || end[-1] == '.'))
            return alias->name;
    }
    return NULL;
}

/* Which of a list it is ("datasets[0].path") is no part of its name. */
static char *
name_of(const LhConfigSystem *system, const char *path)
{
    const bool whole =
        !system->last_word || system->aliases != NULL || g_str_has_prefix(path, LH_CONFIG_BESIDE);
    const char *last = whole ? path : last_word(path);
    GString *name = g_string_new(NULL);

    for (const char *at = last + strspn(last, "-"); *at != '\0'; at++) {
        if (*at == '[' && at[1 + strspn(at + 1, "0123456789")] == ']')
            at += 1 + strspn(at + 1, "0123456789");
        else
            g_string_append_c(name, *at == '_' ? '-' : g_ascii_tolower(*at));
    }
    if (system->aliases != NULL && !g_str_has_prefix(path, LH_CONFIG_BESIDE)) {
        const char *known = name_by_alias(system, name->str);
        char *found = g_strdup(known != NULL       ? known
                               : system->last_word ? last_word(name->str)
                                                   : name->str);

        g_string_free(name, TRUE);
        return found;
    }
    return g_string_free(name, FALSE);
}

/* The name of it that is the system's own, if it has one. */
static const char *
own_path(const LhConfigSystem *system, const char *path)
{
    for (const LhConfigAlias *alias = system->aliases; alias != NULL && alias->path != NULL;
         alias++) {
        if (strcmp(alias->name, path) == 0)
            return alias->path;
    }
    return path;
}

static const LhConfigKey *
find_key(const LhConfigSystem *system, const char *name)
{
    for (const LhConfigKey *key = system->keys; key->name != NULL; key++) {
        if (strcmp(key->name, name) == 0)
            return key;
    }
    return system->base != NULL ? find_key(system->base, name) : NULL;
}

/* A key of DeepSpeed's own file, which another file names. */
static const LhConfigKey *
find_beside_key(const char *name)
{
    static const char prefix[] = "deepspeed-config.";

    return g_str_has_prefix(name, prefix) ? find_key(&lh_config_deepspeed, name + strlen(prefix))
                                          : NULL;
}

static const LhConfigKey *
find_launch_key(const char *name)
{
    const LhConfigKey *key = lh_config_launch_keys;

    while (key->name != NULL && strcmp(key->name, name) != 0)
        key++;
    return key->name != NULL ? key : NULL;
}

const LhSettingsEntry *
lh_config_entry(const LhConfig *config, const char *name)
{
    for (guint i = config->names->len; i-- > 0;) {
        const LhSettingsEntry *entry = g_ptr_array_index(config->entries->entries, i);

        if (strcmp(g_ptr_array_index(config->names, i), name) == 0)
            return entry->kind == LH_SETTINGS_NONE ? NULL : entry;
    }
    return NULL;
}

/* ---- messages ---- */

/* "file:line:column", of an entry or of the whole file; caller frees. */
static char *
place(const LhConfig *config, const LhSettingsEntry *entry)
{
    const char *file = entry != NULL && entry->file != NULL ? entry->file : config->entries->file;

    return g_strdup_printf("%s:%u:%u", file, entry != NULL ? entry->line : 1,
                           entry != NULL ? entry->column : 1);
}

void
lh_config_note(LhConfig *config, const LhSettingsEntry *entry, const char *format, ...)
{
    g_autofree char *where = place(config, entry);
    g_autofree char *message = NULL;
    va_list args;

    va_start(args, format);
    message = g_strdup_vprintf(format, args);
    va_end(args);
    g_ptr_array_add(config->notes, g_strdup_printf("%s: warning: %s", where, message));
}

bool
lh_config_fail(const LhConfig *config, const LhSettingsEntry *entry, GError **error,
               const char *format, ...)
{
    g_autofree char *where = place(config, entry);
    g_autofree char *message = NULL;
    va_list args;

    va_start(args, format);
    message = g_strdup_vprintf(format, args);
    va_end(args);
    g_set_error(error, LH_ERROR, LH_ERROR_INPUT, "%s: error: %s", where, message);
    return false;
}

void
lh_config_lacks_model(LhConfig *config, const LhSettingsEntry *entry, const char *format, ...)
{
    va_list args;

    g_free(config->no_model);
    va_start(args, format);
    config->no_model = g_strdup_vprintf(format, args);
    va_end(args);
    config->no_model_at = entry;
}

bool
lh_config_check_model(const LhConfig *config, const LhScenario *scenario, GError **error)
{
    if (scenario->model != NULL || scenario->model_text != NULL)
        return true;
    return lh_config_fail(config, config->no_model_at, error,
                          "it does not say which model is trained: %s, or name the model with "
                          "--model",
                          config->no_model != NULL ? config->no_model
                                                   : "files of this system say nothing of models");
}

static void
lack_free(gpointer data)
{
    Lack *lack = data;

    g_free(lack->why);
    g_free(lack);
}

void
lh_config_lacks(LhConfig *config, const LhSettingsEntry *entry, const char *field,
                const char *format, ...)
{
    Lack *lack = g_new(Lack, 1);
    va_list args;

    va_start(args, format);
    *lack = (Lack){ entry, LH_CONFIG_WAY, field, g_strdup_vprintf(format, args) };
    va_end(args);
    g_ptr_array_add(config->lacks, lack);
}

void
lh_config_unsaid(LhConfig *config, unsigned part, const char *field, const char *format, ...)
{
    Lack *lack = g_new(Lack, 1);
    va_list args;

    va_start(args, format);
    *lack = (Lack){ NULL, part, field, g_strdup_vprintf(format, args) };
    va_end(args);
    g_ptr_array_add(config->unsaid, lack);
}

static bool
refuse_entry(const LhConfig *config, const LhSettingsEntry *entry, const char *allowed,
             GError **error)
{
    g_autofree char *text = lh_settings_entry_text(entry);
    g_autofree char *shown = g_strescape(text, NULL);
    g_autofree char *path = g_strescape(entry->path, NULL);

    return lh_config_fail(
        config, entry, error, "\"" SHOWN "\": found \"" SHOWN "\"; allowed: %s%s", path, shown,
        allowed, strchr(text, '$') != NULL ? "; the file does not say what the variable is" : "");
}

/* ---- values ---- */

/* The value of an argument is its first word: behind the last one of a program stands its script.
 */
static const char *
entry_value(const LhConfig *config, const LhSettingsEntry *entry)
{
    const bool arguments = config->arguments;

    return arguments && entry->values->len > 0 ? g_ptr_array_index(entry->values, 0)
                                               : lh_settings_entry_value(entry);
}

/* "500_000" as YAML and TOML have it: underscores stand between digits. Caller frees. */
static char *
without_underscores(const char *text)
{
    GString *digits = g_string_new(NULL);

    for (const char *at = text; *at != '\0'; at++) {
        if (*at != '_' || at == text || !g_ascii_isdigit(at[-1]) || !g_ascii_isdigit(at[1]))
            g_string_append_c(digits, *at);
    }
    return g_string_free(digits, FALSE);
}

bool
lh_config_count(const LhConfig *config, const char *name, uint64_t *value, GError **error)
{
    const LhSettingsEntry *entry = lh_config_entry(config, name);
    const char *said = entry != NULL ? entry_value(config, entry) : NULL;
    g_autofree char *text =
        said != NULL && !config->arguments ? without_underscores(said) : g_strdup(said);
    guint64 number;

    if (entry == NULL)
        return true;
    if (text == NULL || !g_ascii_string_to_unsigned(text, 10, 0, COUNT_MAX, &number, NULL))
        return refuse_entry(config, entry, "a whole number", error);
    *value = number;
    return true;
}

bool
lh_config_flag(const LhConfig *config, const char *name, bool *value, GError **error)
{
    const LhSettingsEntry *entry = lh_config_entry(config, name);
    const char *text = entry != NULL ? entry_value(config, entry) : NULL;
    const bool arguments = config->arguments;

    if (entry == NULL)
        return true;
    if (arguments && (text == NULL || strcmp(text, "false") != 0))
        *value = true; /* what stands behind a flag is none of its values */
    else if (text != NULL && (strcmp(text, "true") == 0 || strcmp(text, "false") == 0))
        *value = strcmp(text, "true") == 0;
    else
        return refuse_entry(config, entry, "true, false", error);
    return true;
}

bool
lh_config_word(const LhConfig *config, const char *name, const char **value, GError **error)
{
    const LhSettingsEntry *entry = lh_config_entry(config, name);

    if (entry == NULL)
        return true;
    if (entry_value(config, entry) == NULL)
        return refuse_entry(config, entry, "one word", error);
    *value = entry_value(config, entry);
    return true;
}

int
lh_config_index(const char *const *words, const char *word)
{
    for (int i = 0; words[i] != NULL; i++) {
        if (strcmp(words[i], word) == 0)
            return i;
    }
    return -1;
}

/* ---- models ---- */

/* Published names of what has the shape of another. */
static const struct {
    const char *name, *model;
} other_names[] = {
    { "llama-2-7b", "llama-7b" },          { "llama-2-13b", "llama-13b" },
    { "llama-3.1-8b", "llama-3-8b" },      { "llama-3.1-70b", "llama-3-70b" },
    { "llama-3.3-70b", "llama-3-70b" },    { "qwen3-235b-a22b", "qwen3-235b" },
    { "deepseek-v3-base", "deepseek-v3" }, { "deepseek-r1", "deepseek-v3" },
};

char *
lh_config_model_of(const char *published)
{
    static const char *const ends[] = { "-hf",   "-2507", "-instruct", "-thinking",
                                        "-chat", "-base", "-v0.1",     NULL };
    const char *slash = strrchr(published, '/');
    g_autofree char *name = g_ascii_strdown(slash != NULL ? slash + 1 : published, -1);
    const char *from = g_str_has_prefix(name, "meta-") ? name + strlen("meta-") : name;
    g_autofree char *path = NULL;

    for (guint i = 0; ends[i] != NULL; i++) {
        if (g_str_has_suffix(name, ends[i]))
            name[strlen(name) - strlen(ends[i])] = '\0';
    }
    for (guint i = 0; i < G_N_ELEMENTS(other_names); i++) {
        if (strcmp(from, other_names[i].name) == 0)
            from = other_names[i].model;
    }
    if (from[0] == '\0' || strchr(from, '.') == from)
        return NULL;
    path = lh_data_find("models", from, NULL);
    return path != NULL ? g_strdup(from) : NULL;
}

/* ---- settings ---- */

static void
setting_free(gpointer data)
{
    Setting *setting = data;

    g_free(setting->value);
    g_free(setting);
}

void
lh_config_set(LhConfig *config, const LhSettingsEntry *entry, unsigned part, const char *field,
              const char *value)
{
    Setting *setting = g_new(Setting, 1);

    *setting = (Setting){ .part = part, .field = field, .value = g_strdup(value), .entry = entry };
    g_ptr_array_add(config->settings, setting);
}

void
lh_config_set_count(LhConfig *config, const LhSettingsEntry *entry, unsigned part,
                    const char *field, uint64_t value)
{
    g_autofree char *text = g_strdup_printf("%" PRIu64, value);

    lh_config_set(config, entry, part, field, text);
}

/* Settings whose value is that of a field. */
static bool
take_key(LhConfig *config, const LhConfigKey *key, GError **error)
{
    const unsigned part = key->kind == LH_KEY_WAY ? LH_CONFIG_WAY : LH_CONFIG_QUESTION;
    const LhSettingsEntry *entry = lh_config_entry(config, key->name);
    uint64_t number = 0;

    if (entry == NULL)
        return true;
    if (!lh_config_count(config, key->name, &number, error))
        return false;
    if (number == 0)
        return refuse_entry(config, entry, "at least 1", error);
    lh_config_set_count(config, entry, part, key->field, number);
    return true;
}

static bool
take_keys(LhConfig *config, const LhConfigSystem *system, GError **error)
{
    for (const LhConfigKey *key = system->keys; key->name != NULL; key++) {
        if ((key->kind == LH_KEY_WAY || key->kind == LH_KEY_QUESTION) &&
            !take_key(config, key, error))
            return false;
    }
    return system->base == NULL || take_keys(config, system->base, error);
}

/* Where settings are known by their last word, two of them must not contradict each other. */
static bool
check_twice(const LhConfig *config, guint index, GError **error)
{
    const LhSettingsEntry *entry = g_ptr_array_index(config->entries->entries, index);
    const char *name = g_ptr_array_index(config->names, index);
    const LhSettingsEntry *last = lh_config_entry(config, name);
    g_autofree char *one = lh_settings_entry_text(entry);
    g_autofree char *other = last != NULL ? lh_settings_entry_text(last) : NULL;

    if (config->entries->taken == NULL || last == NULL || entry->kind == LH_SETTINGS_NONE ||
        strcmp(one, other) == 0)
        return true;
    return lh_config_fail(config, last, error,
                          "\"%s\" is \"" SHOWN "\" here and \"" SHOWN "\" in "
                          "line %u",
                          name, other, one, entry->line);
}

/* ---- how the system does it ---- */

bool
lh_config_set_framework(LhConfig *config, const char *key, const char *text)
{
    const char *has = config->framework != NULL ? lh_framework_text(config->framework, key) : NULL;
    g_autofree char *before = g_strdup(has);

    if (config->framework == NULL || strcmp(before, text) == 0)
        return false;
    if (!lh_framework_set(config->framework, key, text, config->entries->file))
        g_assert_not_reached();
    if (strcmp(before, lh_framework_text(config->framework, key)) == 0)
        return false;
    g_ptr_array_add(config->framework_values, g_strdup_printf("%s=%s", key, text));
    return true;
}

/* What is set, as the tables have it: a flag is true. Caller frees. */
static char *
said_text(const LhConfig *config, const LhSettingsEntry *entry)
{
    const char *value = entry_value(config, entry);

    if (entry->kind == LH_SETTINGS_FLAG)
        return g_strdup("true");
    return value != NULL && entry->values->len == 1 ? g_strdup(value)
                                                    : lh_settings_entry_text(entry);
}

/* Lays the value over the framework's. */
static bool
take_framework(LhConfig *config, const LhSettingsEntry *entry, const LhConfigKey *key,
               GError **error)
{
    g_autofree char *said = said_text(config, entry);
    g_auto(GStrv) rows = g_strsplit(key->field, " ", -1);
    g_autoptr(GString) allowed = g_string_new(NULL);
    bool differs = false;

    for (guint i = 0; rows[i] != NULL; i++) {
        const gsize length = strcspn(rows[i], ":");
        g_auto(GStrv) effects = NULL;

        g_string_append_printf(allowed, "%s%.*s", i > 0 ? ", " : "", (int)length, rows[i]);
        if (strlen(said) != length || g_ascii_strncasecmp(said, rows[i], length) != 0)
            continue;
        effects = g_strsplit(rows[i] + length + 1, ",", -1);
        for (guint k = 0; effects[k] != NULL && effects[k][0] != '\0'; k++) {
            g_autofree char *name = g_strndup(effects[k], strcspn(effects[k], "="));

            differs |= lh_config_set_framework(config, name, strchr(effects[k], '=') + 1);
        }
        if (differs)
            config->read++;
        else
            g_ptr_array_add(config->elsewhere, (gpointer)entry);
        return true;
    }
    return refuse_entry(config, entry, allowed->str, error);
}

static void
take_not_modelled(LhConfig *config, const LhSettingsEntry *entry, const LhConfigKey *key)
{
    g_autofree char *said = said_text(config, entry);
    g_autofree char *shown = g_strescape(said, NULL);
    g_auto(GStrv) usual = g_strsplit(key->field, ",", -1);

    for (guint i = 0; usual[i] != NULL && entry->open_line == 0; i++) {
        if (g_ascii_strcasecmp(usual[i], said) == 0) {
            g_ptr_array_add(config->elsewhere, (gpointer)entry);
            return;
        }
    }
    config->not_modelled++;
    if (entry->open_line != 0)
        lh_config_note(config, entry,
                       "not modelled: %s, which the condition in line %u decides: %s", key->name,
                       entry->open_line, key->reason);
    else
        lh_config_note(config, entry, "not modelled: %s " SHOWN ": %s", key->name, shown,
                       key->reason);
}

/* A setting that a condition decides which the script does not: who decides it is named. */
static bool
fail_open(const LhConfig *config, const LhSettingsEntry *entry, GError **error)
{
    g_autofree char *path = g_strescape(entry->path, NULL);

    if (entry->open_variable[0] == '\0')
        return lh_config_fail(config, entry, error,
                              "\"" SHOWN "\" depends on the condition in line %u, which only a "
                              "shell can decide: give the variables that it sets by --set "
                              "VAR=value, or leave the other branch out",
                              path, entry->open_line);
    return lh_config_fail(config, entry, error,
                          "\"" SHOWN "\" depends on the condition in line %u, which the file does "
                          "not decide: give --set %s=value",
                          path, entry->open_line, entry->open_variable);
}

/* How many processes a launcher starts is compared with the cluster, and nothing else. */
static bool
is_only_compared(const char *name)
{
    static const char *const names[] = { "nnodes", "nproc-per-node", "world-size", NULL };

    return lh_config_index(names, name) >= 0;
}

static bool
take_open(LhConfig *config, const char *name, LhSettingsEntry *entry, GError **error)
{
    if (!is_only_compared(name))
        return fail_open(config, entry, error);
    lh_config_note(config, entry,
                   "%s depends on the condition in line %u: how many processes start is not known",
                   name, entry->open_line);
    entry->kind = LH_SETTINGS_NONE;
    return true;
}

/* Sorts the settings by what they are to us. */
static bool
sort(LhConfig *config, GError **error)
{
    const GPtrArray *entries = config->entries->entries;

    for (guint i = 0; i < entries->len; i++) {
        LhSettingsEntry *entry = g_ptr_array_index(entries, i);
        const LhConfigKey *key = find_key(config->system, g_ptr_array_index(config->names, i));

        if (key == NULL)
            key = find_beside_key(g_ptr_array_index(config->names, i));
        if (key == NULL && (config->arguments || config->system->base != NULL))
            key = find_launch_key(g_ptr_array_index(config->names, i));
        if (g_str_has_prefix(entry->path, ENVIRONMENT))
            config->without_effect++;
        else if (key == NULL)
            g_ptr_array_add(config->unknown, entry);
        else if (entry->kind == LH_SETTINGS_NONE || key->kind == LH_KEY_NOTHING)
            config->without_effect++;
        else if (lh_config_entry(config, g_ptr_array_index(config->names, i)) != entry &&
                 config->entries->taken == NULL)
            config->without_effect++; /* the last one counts */
        else if (entry->open_line != 0 && key->kind != LH_KEY_NOT_MODELLED) {
            if (!take_open(config, g_ptr_array_index(config->names, i), entry, error))
                return false;
        } else if (key->kind == LH_KEY_NOT_MODELLED)
            take_not_modelled(config, entry, key);
        else if (key->kind == LH_KEY_FRAMEWORK) {
            if (!take_framework(config, entry, key, error))
                return false;
        } else if (check_twice(config, i, error))
            config->read++;
        else
            return false;
    }
    return true;
}

/* Whether it is a command line, or a list of its arguments in YAML ("MODEL_ARGS:"). */
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

/* Whether a command line has settings of a tree, "model.micro_batch_size=1". */
static bool
has_tree(const LhSettingsFile *entries)
{
    for (guint i = 0; i < entries->entries->len; i++) {
        const LhSettingsEntry *entry = g_ptr_array_index(entries->entries, i);

        if (strchr(entry->path, '.') != NULL)
            return true;
    }
    return false;
}

/* Whose settings most of them are: of Megatron-LM, of NeMo, of torchtitan, or of what is built on
 * Hugging Face's Trainer. */
static const LhConfigSystem *
system_of(const LhSettingsFile *entries)
{
    const LhConfigSystem *const systems[] = { &lh_config_megatron, &lh_config_trainer,
                                              &lh_config_nemo, &lh_config_torchtitan };
    guint known[] = { 0, 0, 0, 0 }, most = 0;

    for (guint i = 0; i < entries->entries->len; i++) {
        const LhSettingsEntry *entry = g_ptr_array_index(entries->entries, i);

        for (guint k = 0; k < G_N_ELEMENTS(systems); k++) {
            g_autofree char *name = name_of(systems[k], entry->path);

            if (systems[k] == &lh_config_megatron && strcmp(name, "deepspeed") == 0 &&
                entry->values->len > 0)
                continue; /* a flag there, and a file elsewhere */
            known[k] += find_key(systems[k], name) != NULL ? 1 : 0;
        }
    }
    if (!has_tree(entries)) /* NeMo and torchtitan take no others */
        known[2] = known[3] = 0;
    for (guint k = 1; k < G_N_ELEMENTS(systems); k++)
        most = known[k] > known[most] ? k : most;
    return systems[most];
}

static void
fail_without_settings(const LhConfig *config, GError **error)
{
    const GPtrArray *unused = config->entries->unused;
    const LhSettingsEntry *first = unused->len > 0 ? g_ptr_array_index(unused, 0) : NULL;

    if (first != NULL)
        lh_config_fail(config, first, error,
                       "%s holds options, and no command of the file is given it, nor any setting "
                       "of %s: add the command, or give the script that runs it",
                       first->path, config->system->name);
    else if (config->entries->ended_line != 0)
        lh_config_fail(
            config, NULL, error,
            "the script ends in line %u, before it starts a program that has settings of "
            "%s: give what it asks for there by --set VAR=value",
            config->entries->ended_line, config->system->name);
    else
        lh_config_fail(config, NULL, error,
                       "nothing in it is a setting of %s that says how to train",
                       config->system->name);
}

/* Files of settings that a program is given, and that are not there. */
static void
note_operands(LhConfig *config)
{
    const GPtrArray *operands = config->entries->operands;

    for (guint i = 0; operands != NULL && i < operands->len; i++) {
        const LhSettingsEntry *operand = g_ptr_array_index(operands, i);
        g_autofree char *shown = g_strescape(g_ptr_array_index(operand->values, 0), NULL);

        if (!operand->missing)
            continue;
        lh_config_note(config, operand, "%.80s is not there, and has not been read", shown);
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
        if (strcmp(((const Setting *)g_ptr_array_index(config->settings, i))->field, field) == 0)
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
    config->settings = g_ptr_array_new_with_free_func(setting_free);
    config->lacks = g_ptr_array_new_with_free_func(lack_free);
    config->unsaid = g_ptr_array_new_with_free_func(lack_free);
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
            name_of(system,
                    ((const LhSettingsEntry *)g_ptr_array_index(entries->entries, i))->path));
    if (system->framework_of != NULL)
        config->framework_name = system->framework_of(config);
    config->framework = lh_framework_load(config->framework_name, NULL);
    if (!sort(config, error) || !take_keys(config, system, error) || !system->take(config, error))
        return NULL;
    lh_config_launch(config);
    note_operands(config);
    if (!has_setting(config, "seq_length"))
        lh_config_unsaid(config, LH_CONFIG_QUESTION, "seq_length",
                         "how many tokens a sequence has is not said; without --seq-length it is "
                         "%d for each context-parallel rank",
                         LH_DEFAULT_TOKENS_PER_RANK);
    if (config->read + config->not_modelled + config->elsewhere->len == 0) {
        fail_without_settings(config, error);
        return NULL;
    }
    for (guint i = 0; i < entries->unused->len; i++)
        lh_config_note(config, g_ptr_array_index(entries->unused, i),
                       "%s holds options, and no command of the file is given it: they are left "
                       "out",
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
                    "%s:1:1: error: this is a program in Python, such as a recipe of NeMo 2.0, "
                    "Megatron-Bridge or torchtitan; nobody runs it here: give --from-config the "
                    "command line that starts it, with its overrides, or what it writes as YAML, "
                    "TOML or JSON, and --model the config.json of its model",
                    file);
        return NULL;
    }
    if (variables != NULL && reader != lh_settings_arguments) {
        g_set_error(error, LH_ERROR, LH_ERROR_USAGE,
                    "--set is about variables of a script, and %s is none", file);
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
    return decode_config(
        entries, formats[format].system != NULL ? formats[format].system : system_of(entries),
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

/* ---- into scenarios ---- */

static const LhField *
field_named(const char *name)
{
    const LhField *field = lh_scenario_options();

    while (strcmp(field->name, name) != 0)
        field++;
    return field;
}

/* An error of a value, which names the option, as one of the file. */
static bool
reword(const LhConfig *config, const LhSettingsEntry *entry, GError *cause, GError **error)
{
    const char *colon = strstr(cause->message, ": ");
    g_autofree char *path = g_strescape(entry != NULL ? entry->path : "", NULL);

    lh_config_fail(config, entry, error, "\"" SHOWN "\": %s", path,
                   colon != NULL ? colon + 2 : cause->message);
    g_error_free(cause);
    return false;
}

/* Whether a scenario that is asked beside the configuration says it, or goes through values of it.
 */
static bool
is_said(const LhScenario *scenario, const char *field)
{
    for (guint i = 0; scenario->axes != NULL && i < scenario->axes->len; i++) {
        const LhScenarioAxis *axis = g_ptr_array_index(scenario->axes, i);

        if (strcmp(axis->field->name, field) == 0)
            return true;
    }
    return scenario->json != NULL && lh_json_has(scenario->json, field);
}

bool
lh_config_check_way(const LhConfig *config, unsigned parts, const LhScenario *scenario,
                    GError **error)
{
    for (guint i = 0; (parts & LH_CONFIG_WAY) != 0 && i < config->lacks->len; i++) {
        const Lack *lack = g_ptr_array_index(config->lacks, i);

        if (!lh_scenario_has_option(scenario, lack->field) && !is_said(scenario, lack->field))
            return lh_config_fail(config, lack->entry, error, "%s", lack->why);
    }
    return true;
}

void
lh_config_note_unsaid(LhConfig *config, unsigned parts, const LhScenario *scenario)
{
    for (guint i = 0; i < config->unsaid->len; i++) {
        const Lack *lack = g_ptr_array_index(config->unsaid, i);

        if ((lack->part & parts) != 0 && !lh_scenario_has_option(scenario, lack->field) &&
            !is_said(scenario, lack->field) && scenario->document_lengths == NULL)
            lh_config_note(config, lack->entry, "%s", lack->why);
    }
}

static bool
apply_setting(const LhConfig *config, const Setting *setting, LhScenario *scenario, GError **error)
{
    g_autofree char *where = place(config, setting->entry);
    g_autofree char *path =
        g_strescape(setting->entry != NULL ? setting->entry->path : setting->field, NULL);
    GError *cause = NULL;

    if (is_said(scenario, setting->field))
        return true;
    if (!lh_scenario_set_from(scenario, field_named(setting->field), setting->value,
                              g_strdup_printf("%s: error: \"" SHOWN "\"", where, path), &cause))
        return reword(config, setting->entry, cause, error);
    return true;
}

bool
lh_config_apply(const LhConfig *config, unsigned parts, LhScenario *scenario, GError **error)
{
    const char *const *schedules = config->system->schedules;
    const Setting step = { .field = "step" };
    const Setting framework = { .field = "framework", .value = (char *)config->framework_name };

    if (!apply_setting(config, &step, scenario, error) ||
        !apply_setting(config, &framework, scenario, error))
        return false;
    g_clear_pointer(&scenario->framework_values, g_ptr_array_unref);
    scenario->framework_values = g_ptr_array_ref(config->framework_values);
    for (guint i = 0; i < config->settings->len; i++) {
        const Setting *setting = g_ptr_array_index(config->settings, i);

        if ((setting->part & parts) != 0 && !apply_setting(config, setting, scenario, error))
            return false;
    }
    for (; (parts & LH_CONFIG_LIMITS) != 0 && *schedules != NULL; schedules++) {
        const Setting schedule = { .field = "schedule", .value = (char *)*schedules };

        if (!apply_setting(config, &schedule, scenario, error))
            return false;
    }
    if ((parts & LH_CONFIG_LIMITS) != 0)
        scenario->system = config->system;
    if ((parts & LH_CONFIG_QUESTION) != 0) {
        scenario->global_batch_size = config->global_batch_size;
        g_free(scenario->model_text);
        scenario->model_text = g_strdup(config->model);
        g_free(scenario->model_file);
        scenario->model_file = g_strdup(config->entries->file);
    }
    return true;
}

/* ---- words ---- */

bool
lh_config_allows(const LhConfigSystem *system, const LhConfigWay *way)
{
    return system->allows(way);
}

static void
word_free(gpointer data)
{
    LhConfigWord *word = data;

    g_free(word->line);
    g_free(word->was);
    g_free(word);
}

/* "--name value", "name: value", "name = value", "name": value. Paths of tables are opened by a
 * line of their own in TOML. Caller frees. */
static char *
line_of(const LhConfig *config, const char *path, LhSettingsKind kind, const char *value)
{
    const char *file = config->entries->file;
    const char *dot = strrchr(path, '.');
    const char *last = dot != NULL ? dot + 1 : path;
    const bool word = kind == LH_SETTINGS_WORD;
    g_autofree char *list = NULL;
    g_autofree char *name = g_strdelimit(g_strdup(last), "-", '_');
    g_auto(GStrv) parts = NULL;

    if (config->entries->taken == NULL)
        return value == NULL ? g_strdup_printf("--%s", path)
                             : g_strdup_printf("--%s %s", path, value);
    if (value == NULL)
        value = "true";
    if (kind == LH_SETTINGS_LIST) {
        parts = g_strsplit(value, " ", -1);
        list = g_strjoinv(", ", parts);
        return g_strdup_printf("%s: [%s]", name, list);
    }
    if (g_str_has_suffix(file, ".toml"))
        return g_strdup_printf(word ? "%s = \"%s\"" : "%s = %s", last, value);
    if (!g_str_has_suffix(file, ".json"))
        return g_strdup_printf("%s: %s", name, value);
    if (dot != NULL) {
        g_autofree char *table = g_strndup(path, (gsize)(dot - path));

        return g_strdup_printf("\"%s\": { \"%s\": %s }", table, last, value);
    }
    return g_strdup_printf("\"%s\": %s", last, value);
}

/* Opens the table of @path in TOML, if the last word was in another one. */
static void
open_table(const LhConfig *config, GPtrArray *words, const char *path)
{
    const char *dot = strrchr(path, '.');
    LhConfigWord *word;
    g_autofree char *header = NULL;

    if (dot == NULL || !g_str_has_suffix(config->entries->file, ".toml"))
        return;
    header = g_strdup_printf("[%.*s]", (int)(dot - path), path);
    for (guint i = words->len; i-- > 0;) {
        word = g_ptr_array_index(words, i);
        if (word->line[0] == '[') {
            if (strcmp(word->line, header) == 0)
                return;
            break;
        }
    }
    word = g_new0(LhConfigWord, 1);
    word->line = g_steal_pointer(&header);
    g_ptr_array_add(words, word);
}

void
lh_config_say(const LhConfig *config, GPtrArray *words, const char *path, LhSettingsKind kind,
              const char *value)
{
    g_autofree char *name = name_of(config->system, path);
    const LhSettingsEntry *entry = lh_config_entry(config, name);
    g_autofree char *was = entry != NULL ? lh_settings_entry_text(entry) : NULL;
    LhConfigWord *word = g_new0(LhConfigWord, 1);
    const char *said = value != NULL ? value : "";

    open_table(config, words, path);
    word->line = line_of(config, own_path(config->system, path), kind, value);
    word->added = entry == NULL;
    if (entry != NULL && value == NULL && g_strcmp0(was, "false") != 0)
        g_clear_pointer(&was, g_free); /* a flag that is set */
    else if (was != NULL && strcmp(was, said) == 0)
        g_clear_pointer(&was, g_free);
    word->was = g_steal_pointer(&was);
    g_ptr_array_add(words, word);
}

void
lh_config_say_count(const LhConfig *config, GPtrArray *words, const char *path, uint64_t value)
{
    g_autofree char *text = g_strdup_printf("%" PRIu64, value);

    lh_config_say(config, words, path, LH_SETTINGS_PLAIN, text);
}

void
lh_config_unsay(const LhConfig *config, GPtrArray *words, const char *path)
{
    g_autofree char *name = name_of(config->system, path);
    const LhSettingsEntry *entry = lh_config_entry(config, name);
    g_autofree char *was = entry != NULL ? lh_settings_entry_text(entry) : NULL;
    LhConfigWord *word;

    if (entry == NULL || g_strcmp0(was, "false") == 0)
        return;
    open_table(config, words, path);
    word = g_new0(LhConfigWord, 1);
    word->line = line_of(config, own_path(config->system, path), entry->kind,
                         entry->values->len > 0 ? was : NULL);
    word->take_out = true;
    g_ptr_array_add(words, word);
}

void
lh_config_remark(const LhConfig *config, GPtrArray *words, const char *text)
{
    LhConfigWord *word = g_new0(LhConfigWord, 1);

    (void)config;
    word->line = g_strdup(text);
    g_ptr_array_add(words, word);
}

GPtrArray *
lh_config_words(const LhConfig *config, const LhConfigWay *way)
{
    GPtrArray *words = g_ptr_array_new_with_free_func(word_free);

    config->system->say(config, way, words);
    return words;
}
