/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads files that a configuration names: settings that the command line overrides (--config_file
 * of accelerate, --job.config_file of torchtitan, the YAML of axolotl train), and DeepSpeed's JSON.
 * Searches what the script itself writes, the folder of the file, and the working folder. The
 * contents of a missing file are never guessed.
 */
#include "framework_config/configuration_beside.h"

#include "base/files/file_input.h"

#include <string.h>

#define FILES_DEPTH_MAX 4 /* of files that name other files */

typedef enum {
    WHOLE, /* all settings of the program: an error if missing */
    WAY,   /* how ranks shard */
    PART,  /* DeepSpeed's settings, which have names of their own */
} Role;

/* Settings by their last component, in lower case and with '-' for '_'. */
static const struct {
    const char *name;
    Role role;
} settings[] = {
    { "config", WHOLE },
    { "job.config-file", WHOLE },
    { "yaml-cfg", WHOLE },
    { "config-name", WHOLE },
    { "config-file", WAY },
    { "deepspeed", PART },
    { "deepspeed-config", PART },
    { "deepspeed-config-file", PART },
    { "hf-deepspeed-config", PART },
};

static const struct {
    const char *ending;
    LhSettingsFileReader *reader;
} readers[] = {
    { ".toml", lh_settings_toml },
    { ".json", lh_settings_json },
    { ".yaml", lh_settings_yaml },
    { ".yml", lh_settings_yaml },
};

static LhSettingsFileReader *
reader_of(const char *path)
{
    for (guint i = 0; i < G_N_ELEMENTS(readers); i++) {
        if (g_str_has_suffix(path, readers[i].ending))
            return readers[i].reader;
    }
    return NULL;
}

/* Row of settings[] for @path, or -1. */
static int
row_of(const char *path)
{
    g_autofree char *name = g_ascii_strdown(path, -1);

    g_strdelimit(name, "_", '-');
    for (guint i = 0; i < G_N_ELEMENTS(settings); i++) {
        const char *end = name + strlen(name) - MIN(strlen(name), strlen(settings[i].name));

        if (strcmp(end, settings[i].name) == 0 && (end == name || end[-1] == '.'))
            return (int)i;
    }
    return -1;
}

/* The text of the file @path, and where it was found; NULL: missing. Caller frees both. */
static char *
find_text(const LhSettingsFile *e, const char *path, char **found)
{
    const char *written = e->written != NULL ? g_hash_table_lookup(e->written, path) : NULL;
    g_autofree char *folder = g_path_get_dirname(e->file);
    g_autofree char *base = g_path_get_basename(path);
    const char *const places[][2] = { { folder, path }, { folder, base }, { ".", path } };
    gsize length;

    if (written != NULL) {
        *found = g_strdup(path);
        return g_strdup(written);
    }
    for (guint i = 0; i < G_N_ELEMENTS(places); i++) {
        g_autofree char *file = g_path_is_absolute(path) || strcmp(places[i][0], ".") == 0
                                    ? g_strdup(places[i][1])
                                    : g_build_filename(places[i][0], places[i][1], NULL);

        if (strchr(path, '$') == NULL && g_file_test(file, G_FILE_TEST_IS_REGULAR)) {
            *found = g_steal_pointer(&file);
            return lh_input_read(*found, LH_SETTINGS_BYTES_MAX, &length, NULL);
        }
    }
    return NULL;
}

/* Inserts the settings of @from before those of @to, so that the command line takes precedence. */
static bool
lay_under(LhSettingsFile *to, LhSettingsFile *from, guint at, const char *prefix, GError **error)
{
    if (to->entries->len + from->entries->len > LH_SETTINGS_MAX)
        return lh_settings_fail(to, 1, 1, error, "the files have more than %d settings",
                                LH_SETTINGS_MAX);
    for (guint i = 0; i < from->entries->len; i++) {
        const LhSettingsEntry *entry = g_ptr_array_index(from->entries, i);

        if (strlen(prefix) + strlen(entry->path) > LH_SETTINGS_PATH_MAX)
            return lh_settings_fail(from, entry->line, entry->column, error,
                                    "a setting's name has more than %d bytes",
                                    LH_SETTINGS_PATH_MAX);
    }
    for (guint i = 0; i < from->entries->len; i++) {
        LhSettingsEntry *entry = g_ptr_array_index(from->entries, i);
        char *path = g_strconcat(prefix, entry->path, NULL);

        g_free(entry->path);
        entry->path = path;
        if (entry->file == NULL)
            entry->file = g_intern_string(from->file);
        g_ptr_array_insert(to->entries, (int)(at + i), entry);
    }
    g_ptr_array_set_free_func(from->entries, NULL);
    return true;
}

static bool
refuse_missing(const LhSettingsFile *e, const LhSettingsEntry *entry, const char *path,
               GError **error)
{
    g_autofree char *shown = g_strescape(path, NULL);
    g_autofree char *setting = g_strescape(entry->path, NULL);

    return lh_settings_fail(e, entry->line, entry->column, error,
                            "\"%.40s\": the settings are in %.80s, which is neither beside this "
                            "file nor in the working folder: give --from-config that file",
                            setting, shown);
}

static bool take_files(LhSettingsFile *e, unsigned depth, GError **error);

/* NOLINTBEGIN(misc-no-recursion): FILES_DEPTH_MAX */

/* Reads the file @path that @entry names. */
static bool
take_file(LhSettingsFile *e, LhSettingsEntry *entry, const char *path, Role role, unsigned depth,
          GError **error)
{
    g_autofree char *found = NULL;
    g_autofree char *text = find_text(e, path, &found);
    g_autoptr(LhSettingsFile) from = NULL;
    const guint at = role == PART ? e->entries->len : 0;

    if (text == NULL && role == WHOLE)
        return refuse_missing(e, entry, path, error);
    if (text == NULL) { /* its reader reports that it is missing */
        entry->missing = true;
        return true;
    }
    from = reader_of(path)(found, text, strlen(text), error);
    if (from == NULL || !take_files(from, depth + 1, error) ||
        !lay_under(e, from, at, role == PART ? LH_CONFIG_BESIDE : "", error))
        return false;
    entry->kind = LH_SETTINGS_NONE; /* it has been read */
    return true;
}

static bool
take_files(LhSettingsFile *e, unsigned depth, GError **error)
{
    const guint count = e->entries->len;

    for (guint i = 0, left = count; depth < FILES_DEPTH_MAX && left > 0; i++, left--) {
        LhSettingsEntry *entry = g_ptr_array_index(e->entries, i);
        const int row = row_of(entry->path);
        const char *value = entry->values->len > 0 ? g_ptr_array_index(entry->values, 0) : "";
        g_autofree char *path = g_strdup(value);
        const guint before = e->entries->len;

        if (row >= 0 && reader_of(path) != NULL && entry->open_line == 0 && entry->file == NULL &&
            !take_file(e, entry, path, settings[row].role, depth, error))
            return false;
        if (row >= 0 && settings[row].role != PART)
            i += e->entries->len - before; /* skips the settings that were inserted before it */
    }
    return true;
}

/* Reads YAML that a program is given without an option, as in axolotl and LLaMA-Factory. A missing
 * file is ignored: it may be anything. */
static bool
take_operands(LhSettingsFile *e, GError **error)
{
    for (guint i = 0; e->operands != NULL && i < e->operands->len; i++) {
        LhSettingsEntry *operand = g_ptr_array_index(e->operands, i);
        g_autofree char *path = g_strdup(g_ptr_array_index(operand->values, 0));

        if (!take_file(e, operand, path, WAY, 0, error))
            return false;
    }
    return true;
}

/* NOLINTEND(misc-no-recursion) */

bool
lh_config_take_beside(LhSettingsFile *entries, GError **error)
{
    return take_operands(entries, error) && take_files(entries, 0, error);
}
