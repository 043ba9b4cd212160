/* SPDX-License-Identifier: Apache-2.0 */
#include "framework_config/common/config_words.h"

#include "framework_config/common/config_names.h"
#include "framework_config/common/config_values.h"

#include <inttypes.h>
#include <string.h>

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

/* A setting in the syntax of the file: "--name value", "name: value", "name = value", "name":
 * value. In TOML open_table() writes the table. Caller frees. */
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

/* Opens the table of @path in TOML, unless the last setting was in it. */
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
    g_autofree char *name = lh_config_name_of(config->system, path);
    const LhSettingsEntry *entry = lh_config_entry(config, name);
    g_autofree char *was = entry != NULL ? lh_settings_entry_text(entry) : NULL;
    LhConfigWord *word = g_new0(LhConfigWord, 1);
    const char *said = value != NULL ? value : "";

    open_table(config, words, path);
    word->line = line_of(config, lh_config_own_path(config->system, path), kind, value);
    word->added = entry == NULL;
    if (entry != NULL && value == NULL && g_strcmp0(was, "false") != 0)
        g_clear_pointer(&was, g_free); /* a flag that is already set */
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
    g_autofree char *name = lh_config_name_of(config->system, path);
    const LhSettingsEntry *entry = lh_config_entry(config, name);
    g_autofree char *was = entry != NULL ? lh_settings_entry_text(entry) : NULL;
    LhConfigWord *word;

    if (entry == NULL || g_strcmp0(was, "false") == 0)
        return;
    open_table(config, words, path);
    word = g_new0(LhConfigWord, 1);
    word->line = line_of(config, lh_config_own_path(config->system, path), entry->kind,
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
