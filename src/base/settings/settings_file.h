/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files of settings of other programs, whatever their syntax: TOML, YAML, JSON, or the arguments of
 * a command line, as a shell script has them. Each reader makes a flat list of what is set, in the
 * order of the file; what a setting means is for others to say.
 *
 * Messages read "file:line:column: error: ...", LH_ERROR_INPUT. A file is UTF-8 and of at most
 * 1 MiB; depths and numbers of settings are bounded.
 */
#pragma once

#include <glib.h>
#include <stdbool.h>

#define LH_SETTINGS_BYTES_MAX (1 << 20)
#define LH_SETTINGS_DEPTH_MAX 32
#define LH_SETTINGS_MAX 10000
#define LH_SETTINGS_PATH_MAX 512 /* bytes */

typedef enum {
    LH_SETTINGS_WORD,  /* text in quotes, or an argument */
    LH_SETTINGS_PLAIN, /* a number, a boolean, a date: not in quotes where that matters */
    LH_SETTINGS_LIST,  /* of words and plain values */
    LH_SETTINGS_FLAG,  /* an argument without a value: `values` is empty */
    LH_SETTINGS_NONE,  /* null: `values` is empty */
} LhSettingsKind;

/* One setting. */
typedef struct {
    char *path; /* "parallelism.context_parallel_degree"; of arguments the name without "--" */
    LhSettingsKind kind;
    GPtrArray *values; /* of char *: one, or those of a list */
    guint line, column;
    guint open_line; /* of the condition of a script that leaves open whether it is set, or to what;
                        0: none does */
    const char *file;    /* where it stands, if another file than the whole's; interned */
    bool missing;        /* it names a file that is not there */
    char *open_variable; /* that would decide it; "": only a shell can; NULL: nothing is open */
} LhSettingsEntry;

typedef struct {
    char *file;         /* as messages name it */
    char *sha256;       /* of its text */
    GPtrArray *entries; /* of LhSettingsEntry *; no two have the same path, but for arguments: there
                           the last one counts */
    GPtrArray *unused;  /* likewise: variables of a script that hold options, and that nothing
                           reads, by their names and without values */
    GPtrArray *operands; /* likewise: YAML that a program is given without an option, the one value;
                            NULL: there is none */
    GPtrArray *programs; /* of a script, likewise: programs in Python that it runs; NULL: none */
    guint ended_line;    /* of a script: where "exit" ends it in want of something; 0: nowhere */
    GHashTable *written; /* of a script: path -> text of a file that it writes; NULL: none */
    GHashTable *taken;   /* paths of settings and of what holds them; NULL: any may come again */
} LhSettingsFile;

typedef LhSettingsFile *LhSettingsFileReader(const char *file, const char *text, gsize length,
                                             GError **error);

/* TOML 1.0. Tables in lists are "list[0].key". */
LhSettingsFileReader lh_settings_toml;

/* YAML 1.1 without aliases, tags and merge keys; one document. LH_ERROR_RUNTIME in a program that
 * was built without libyaml. */
LhSettingsFileReader lh_settings_yaml;

LhSettingsFileReader lh_settings_json;

/*
 * "--name value ...", "--name=value", "--flag" and "-name" as the commands of a shell script have
 * them, or a list of arguments: what base/shell/shell.h says of scripts. Commands that only serve
 * files and folders (mkdir, cp) have no settings.
 */
LhSettingsFileReader lh_settings_arguments;

/* Reads the file by @reader. Caller frees. */
LhSettingsFile *lh_settings_load(const char *path, LhSettingsFileReader *reader, GError **error);

void lh_settings_free(LhSettingsFile *entries);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(LhSettingsFile, lh_settings_free)

/* The last setting of @path, or NULL. */
const LhSettingsEntry *lh_settings_find(const LhSettingsFile *entries, const char *path);

/* The one value of a setting; NULL for lists of another length than 1, flags and null. */
const char *lh_settings_entry_value(const LhSettingsEntry *entry);

/* All of its values, with spaces between them. Caller frees. */
char *lh_settings_entry_text(const LhSettingsEntry *entry);

/* --- for readers --------------------------------------------------------------------------------
 */

/* Nothing but what is known of any file: it is UTF-8, without NUL, and not too long. Paths may come
 * again only if @again. Caller frees. */
LhSettingsFile *lh_settings_new(const char *file, const char *text, gsize length, bool again,
                                GError **error);

void lh_settings_entry_free(gpointer entry);

/* Refuses a path that is too long, or has been taken. */
bool lh_settings_take(LhSettingsFile *entries, const char *path, guint line, guint column,
                      GError **error);

/* Appends a setting without values; NULL, with @error, if its path is refused or there are too
 * many. */
LhSettingsEntry *lh_settings_add(LhSettingsFile *entries, const char *path, LhSettingsKind kind,
                                 guint line, guint column, GError **error);

/* Sets @error at a place of the file; returns false. */
bool lh_settings_fail(const LhSettingsFile *entries, guint line, guint column, GError **error,
                      const char *format, ...) G_GNUC_PRINTF(5, 6);
