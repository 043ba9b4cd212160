/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads settings from arguments of the commands of a shell script, or from a list of arguments:
 * words that begin with "-" are names, the words after them values. base/shell/shell.h describes
 * what is followed in a script.
 */
#include "base/settings/settings_arguments.h"

#include "base/shell/shell.h"

#include <string.h>

typedef struct {
    LhSettingsFile *entries;
    LhSettingsEntry *entry; /* the argument that further values belong to; NULL: none */
    LhSettingsEntry *last;  /* the last argument; NULL: the command has none yet */
    bool overrides;         /* the command has a settings file, which "name=value" overrides */
} ArgumentReader;

/* Commands whose arguments are not settings: they handle files, folders, text and machines. */
static const char *const utilities[] = {
    ".",        "alias",    "apt",      "apt-get",  "awk",     "basename", "break",    "cat",
    "cd",       "chmod",    "chown",    "cmp",      "command", "conda",    "continue", "cp",
    "curl",     "cut",      "date",     "declare",  "df",      "diff",     "dirname",  "du",
    "echo",     "egrep",    "exit",     "export",   "false",   "find",     "free",     "getopts",
    "git",      "grep",     "head",     "hostname", "kill",    "let",      "ln",       "local",
    "ls",       "mkdir",    "mktemp",   "module",   "mount",   "mv",       "nproc",    "nvidia-smi",
    "pip",      "pip3",     "pkill",    "popd",     "printf",  "ps",       "pushd",    "pwd",
    "read",     "readonly", "readlink", "realpath", "return",  "rm",       "rmdir",    "rsync",
    "scontrol", "scp",      "sed",      "seq",      "set",     "shift",    "shopt",    "sleep",
    "sort",     "source",   "tail",     "tar",      "tee",     "touch",    "tr",       "trap",
    "true",     "type",     "typeset",  "ulimit",   "umask",   "uname",    "uniq",     "unset",
    "unzip",    "wait",     "wc",       "wget",     "which",   "xargs",    NULL
};

/* Whether it is an option: "--name", "-name"; not "-1". */
static bool
is_argument(const char *text)
{
    const char *name = text + (g_str_has_prefix(text, "--") ? 2 : 1);

    return text[0] == '-' && g_ascii_isalpha(name[0]) && strpbrk(name, " \t\n") == NULL;
}

/* Whether it is an override "model.num_layers=32", as programs with trees of settings accept; "+"
 * and "~" may precede it. @any: also without a tree, as after a settings file. */
static bool
is_override(const char *text, bool any)
{
    const char *name = text + strspn(text, "+~");
    const gsize length = strcspn(name, "=");

    return name[length] == '=' && (any || memchr(name, '.', length) != NULL) &&
           g_ascii_isalpha(name[0]) &&
           strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.") ==
               length;
}

static bool
take_argument(ArgumentReader *r, const LhShellWord *word, GError **error)
{
    const char *text = word->text->str;
    const char *name = text + strspn(text, is_argument(text) ? "-" : "+~");
    const char *equals = strchr(name, '=');
    g_autofree char *path =
        equals != NULL ? g_strndup(name, (gsize)(equals - name)) : g_strdup(name);

    r->entry =
        lh_settings_add(r->entries, path, equals != NULL ? LH_SETTINGS_WORD : LH_SETTINGS_FLAG,
                        word->line, word->column, error);
    if (r->entry == NULL)
        return false;
    r->last = r->entry;
    if (equals != NULL && is_override(text, r->overrides) &&
        (strcmp(equals, "=null") == 0 || strcmp(equals, "=None") == 0)) {
        r->entry->kind = LH_SETTINGS_NONE;
        r->entry = NULL;
    } else if (equals != NULL) {
        g_ptr_array_add(r->entry->values, g_strdup(equals + 1));
        r->entry = NULL; /* complete */
    }
    return true;
}

/* Marks the current setting as undecided if one of its words, or its command, is. */
static void
take_openness(ArgumentReader *r, const LhShellWord *word, LhShellOpen open)
{
    if (word->open_line != 0)
        open = (LhShellOpen){ word->open_line, word->open_variable };
    if (open.line == 0 || r->last == NULL || r->last->open_line != 0)
        return;
    r->last->open_line = open.line;
    r->last->open_variable = g_strdup(open.variable);
}

/* Keeps a word that is not an option, or not only its value. */
static void
keep_word(GPtrArray **words, const char *name, const LhShellWord *word)
{
    LhSettingsEntry *entry = g_new0(LhSettingsEntry, 1);

    entry->path = g_strdup(name);
    entry->kind = LH_SETTINGS_WORD;
    entry->values = g_ptr_array_new_with_free_func(g_free);
    g_ptr_array_add(entry->values, g_strdup(word->text->str));
    entry->line = word->line;
    entry->column = word->column;
    if (*words == NULL)
        *words = g_ptr_array_new_with_free_func(lh_settings_entry_free);
    g_ptr_array_add(*words, entry);
}

static bool
take_operand_of(ArgumentReader *r, const LhShellWord *word, GError **error)
{
    const char *text = word->text->str;

    /* The last option of a launcher may seem to own the word, which may be the program to
     * launch. */
    if ((r->entry == NULL || r->entry->values->len > 0) && word->open_line == 0 &&
        (g_str_has_suffix(text, ".yaml") || g_str_has_suffix(text, ".yml"))) {
        keep_word(&r->entries->operands, "configuration", word);
        r->overrides = true;
    }
    if (g_str_has_suffix(text, ".py"))
        keep_word(&r->entries->programs, "program", word);
    if (r->entry == NULL)
        return true;
    if (r->entry->values->len >= LH_SETTINGS_MAX)
        return lh_settings_fail(r->entries, word->line, word->column, error,
                                "an argument has more than %d values", LH_SETTINGS_MAX);
    g_ptr_array_add(r->entry->values, g_strdup(word->text->str));
    r->entry->kind = r->entry->values->len == 1 ? LH_SETTINGS_WORD : LH_SETTINGS_LIST;
    return true;
}

/* Whether it is one word "--a 1 --b", which another script splits. */
static bool
is_string_of_options(const char *text)
{
    text += strspn(text, " \t\n");
    return g_str_has_prefix(text, "--") && g_ascii_isalpha(text[2]) &&
           strpbrk(text, " \t\n") != NULL;
}

static bool
take_word(ArgumentReader *r, const LhShellWord *word, LhShellOpen open, GError **error)
{
    const bool name = is_argument(word->text->str) || is_override(word->text->str, r->overrides);

    if (!(name ? take_argument(r, word, error) : take_operand_of(r, word, error)))
        return false;
    if (name || r->entry != NULL)
        take_openness(r, word, name ? open : (LhShellOpen){ 0, "" });
    return true;
}

static bool
take_options(ArgumentReader *r, const LhShellWord *word, LhShellOpen open, GError **error)
{
    const char *text = word->text->str;
    bool ok = true;

    for (const char *at = text + strspn(text, " \t\n"); ok && *at != '\0';
         at += strspn(at, " \t\n")) {
        const gsize length = strcspn(at, " \t\n");
        LhShellWord part = *word;

        part.text = g_string_new_len(at, (gssize)length);
        part.open_line = at + length > text + word->open_from ? word->open_line : 0;
        ok = take_word(r, &part, open, error);
        g_string_free(part.text, TRUE);
        at += length;
    }
    return ok;
}

static bool
take_command(void *data, const GPtrArray *words, LhShellOpen open, GError **error)
{
    ArgumentReader *r = data;
    const LhShellWord *first = g_ptr_array_index(words, 0);
    bool ok = true;

    if (g_strv_contains(utilities, first->text->str))
        return true;
    r->entry = r->last = NULL;
    r->overrides = false;
    for (guint i = 0; ok && i < words->len; i++) {
        const LhShellWord *word = g_ptr_array_index(words, i);

        ok =
            (r->entry == NULL || r->entry->values->len > 0) && is_string_of_options(word->text->str)
                ? take_options(r, word, open, error)
                : take_word(r, word, open, error);
    }
    return ok;
}

static void
take_unused(void *data, const char *name, const LhShellWord *word)
{
    const ArgumentReader *r = data;
    LhSettingsEntry *entry = g_new0(LhSettingsEntry, 1);

    entry->path = g_strdup(name);
    entry->kind = LH_SETTINGS_FLAG;
    entry->values = g_ptr_array_new_with_free_func(g_free);
    entry->line = word->line;
    entry->column = word->column;
    g_ptr_array_add(r->entries->unused, entry);
}

static void
take_written(void *data, const char *path, const char *text)
{
    const ArgumentReader *r = data;

    if (r->entries->written == NULL)
        r->entries->written = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
    g_hash_table_replace(r->entries->written, g_strdup(path), g_strdup(text));
}

static void
take_end(void *data, guint line)
{
    const ArgumentReader *r = data;

    r->entries->ended_line = line;
}

LhSettingsFile *
lh_settings_script(const char *file, const char *text, gsize length, const GPtrArray *variables,
                   GError **error)
{
    g_autoptr(LhSettingsFile) e = lh_settings_new(file, text, length, true, error);
    ArgumentReader r = { .entries = e };
    const LhShellAsked asked = { .variables = variables,
                                 .call = take_command,
                                 .unused = take_unused,
                                 .written = take_written,
                                 .ended = take_end,
                                 .data = &r };

    if (e == NULL || !lh_shell_run(file, text, length, &asked, error))
        return NULL;
    return g_steal_pointer(&e);
}

LhSettingsFile *
lh_settings_arguments(const char *file, const char *text, gsize length, GError **error)
{
    return lh_settings_script(file, text, length, NULL, error);
}
