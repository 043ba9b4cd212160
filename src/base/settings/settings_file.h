/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Settings files of other programs, in any syntax: TOML, YAML, JSON, or command-line arguments in a
 * shell script. Each reader returns a flat list of settings in the order of the file; their meaning
 * is not known here.
 *
 * Messages read "file:line:column: error: ...", LH_ERROR_INPUT. A file is UTF-8 and at most 1 MiB;
 * depth and number of settings are bounded.
 */
#pragma once

#include <glib.h>
#include <stdbool.h>

#define LH_SETTINGS_BYTES_MAX (1 << 20)
#define LH_SETTINGS_DEPTH_MAX 32
#define LH_SETTINGS_MAX 10000
#define LH_SETTINGS_PATH_MAX 512 /* bytes */

typedef enum {
    LH_SETTINGS_WORD,  /* quoted text, or an argument */
    LH_SETTINGS_PLAIN, /* a number, a boolean, a date: unquoted, where that matters */
    LH_SETTINGS_LIST,  /* of words and plain values */
    LH_SETTINGS_FLAG,  /* an argument without a value: `values` is empty */
    LH_SETTINGS_NONE,  /* null: `values` is empty */
} LhSettingsKind;

/* One setting. */
typedef struct {
    char *path; /* "parallelism.context_parallel_degree"; for arguments the name without "--" */
    LhSettingsKind kind;
    GPtrArray *values; /* of char *: one, or those of a list */
    guint line, column;
    /* Of the undecided condition of a script that the setting or its value depends on; 0: none. */
    guint open_line;
    const char *file;    /* file that contains it, if not the main one; interned */
    bool missing;        /* it names a file that does not exist */
    char *open_variable; /* variable that would decide it; "": only a shell can; NULL: decided */
} LhSettingsEntry;

typedef struct {
    char *file;   /* its name in messages */
    char *sha256; /* of its text */
    /* Of LhSettingsEntry *; paths are unique except for arguments, of which the last one counts. */
    GPtrArray *entries;
    /* Of LhSettingsEntry *: variables of a script that hold options but are never used; without
     * values. */
    GPtrArray *unused;
    /* Of LhSettingsEntry *: YAML files given to a program without an option, one value each; NULL:
     * none. */
    GPtrArray *operands;
    GPtrArray *programs; /* of LhSettingsEntry *: Python programs that a script runs; NULL: none */
    /* Of a script: line of an "exit" that ends it for want of something; 0: none. */
    guint ended_line;
    GHashTable *written; /* of a script: path -> text of the files that it writes; NULL: none */
    GHashTable *taken;   /* paths of settings and of their parents; NULL: duplicates are allowed */
} LhSettingsFile;

typedef LhSettingsFile *LhSettingsFileReader(const char *file, const char *text, gsize length,
                                             GError **error);

/* TOML 1.0. Tables in lists are "list[0].key". */
LhSettingsFileReader lh_settings_toml;

/* YAML 1.1 without aliases, tags and merge keys; one document. LH_ERROR_RUNTIME in a program built
 * without libyaml. */
LhSettingsFileReader lh_settings_yaml;

LhSettingsFileReader lh_settings_json;

/*
 * "--name value ...", "--name=value", "--flag" and "-name" of the commands of a shell script, or a
 * list of arguments; see base/shell/shell.h. Commands that only handle files and folders (mkdir,
 * cp) have no settings.
 */
LhSettingsFileReader lh_settings_arguments;

/* Reads the file with @reader. Caller frees. */
LhSettingsFile *lh_settings_load(const char *path, LhSettingsFileReader *reader, GError **error);

void lh_settings_free(LhSettingsFile *entries);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(LhSettingsFile, lh_settings_free)

/* The last setting of @path, or NULL. */
const LhSettingsEntry *lh_settings_find(const LhSettingsFile *entries, const char *path);

/* The value of a setting; NULL for lists whose length is not 1, flags and null. */
const char *lh_settings_entry_value(const LhSettingsEntry *entry);

/* All its values, separated by spaces. Caller frees. */
char *lh_settings_entry_text(const LhSettingsEntry *entry);

/* --- for readers --------------------------------------------------------------------------------
 */

/* Makes an empty list and checks the text: UTF-8, without NUL, and not too long. Duplicate paths
 * are allowed only if @again. Caller frees. */
LhSettingsFile *lh_settings_new(const char *file, const char *text, gsize length, bool again,
                                GError **error);

void lh_settings_entry_free(gpointer entry);

/* Rejects a path that is too long or a duplicate. */
bool lh_settings_take(LhSettingsFile *entries, const char *path, guint line, guint column,
                      GError **error);

/* Appends a setting without values; NULL, with @error, if its path is rejected or there are too
 * many. */
LhSettingsEntry *lh_settings_add(LhSettingsFile *entries, const char *path, LhSettingsKind kind,
                                 guint line, guint column, GError **error);

/* Sets @error at a place of the file; returns false. */
bool lh_settings_fail(const LhSettingsFile *entries, guint line, guint column, GError **error,
                      const char *format, ...) G_GNUC_PRINTF(5, 6);
