/*
 * Settings as arguments of a command line: words as a shell splits them, of which those that begin
 * with "-" are names, and those behind them values. Of a shell only what says values is known:
 * quotes, comments, variables that are set to text, lists in parentheses. Nothing is run.
 */
#include "base/entries.h"

#include "base/text_reader.h"

#include <string.h>

#define WORD_BYTES_MAX 65536                       /* with its variables replaced */
#define WORDS_BYTES_MAX (4 * LH_ENTRIES_BYTES_MAX) /* likewise, all together */

typedef struct {
    LhTextReader text;
    LhEntries *entries;
    GHashTable *variables; /* name -> value */
    LhFileEntry *entry;    /* the argument that values are added to; NULL: none */
    gsize words_bytes;     /* so far */
    const char *word;      /* where the last one begins, or its line; NULL: there is none */
    glong word_column;     /* characters before it */
} ArgumentReader;

/* A word as it is written, and its place. */
typedef struct {
    GString *text;
    bool quoted; /* any of it */
    guint line, column;
} Word;

static char
look(const ArgumentReader *r)
{
    return r->text.at < r->text.end ? *r->text.at : '\0';
}

static void
skip_one(ArgumentReader *r)
{
    if (*r->text.at++ == '\n') {
        r->text.line++;
        r->text.line_start = r->text.at;
    }
}

/* ---- variables ---- */

static bool
is_name(char c)
{
    return g_ascii_isalnum(c) || c == '_';
}

/* "NAME", and of "NAME:-value" or "NAME-value" the value where NAME is not known. NULL: not known.
 * Caller frees. */
static char *
value_of(const ArgumentReader *r, const char *name, gsize length)
{
    g_autofree char *key = NULL;
    const char *value;
    gsize end = 0;

    while (end < length && is_name(name[end]))
        end++;
    key = g_strndup(name, end);
    value = g_hash_table_lookup(r->variables, key);
    if (value != NULL && (end == length || name[end] == ':' || name[end] == '-'))
        return g_strdup(value);
    if (end + 1 < length && name[end] == ':' && name[end + 1] == '-')
        return g_strndup(name + end + 2, length - end - 2);
    if (end < length && name[end] == '-')
        return g_strndup(name + end + 1, length - end - 1);
    return NULL;
}

/* A variable at "$": its value, or as it is written. */
static void
take_variable(ArgumentReader *r, GString *out)
{
    const char *start = r->text.at + 1;
    const bool braced = start < r->text.end && *start == '{';
    const char *at = start + (braced ? 1 : 0);
    const char *name = at;
    g_autofree char *value = NULL;

    while (at < r->text.end && *at != '\n' && (braced ? *at != '}' : is_name(*at)))
        at++;
    if (!braced || (at < r->text.end && *at == '}'))
        value = value_of(r, name, (gsize)(at - name));
    if (value == NULL || out->len > WORD_BYTES_MAX) {
        g_string_append_c(out, '$');
        r->text.at++;
        return;
    }
    g_string_append(out, value);
    r->text.at = at + (braced ? 1 : 0);
}

/* ---- words ---- */

static bool
take_quoted(ArgumentReader *r, GString *out)
{
    const LhTextReader start = r->text;
    const char quote = *r->text.at;

    r->text.at++;
    while (look(r) != quote) {
        if (r->text.at >= r->text.end)
            return lh_text_fail(&start, start.at, "the quote has no end");
        if (quote == '"' && look(r) == '\\' && r->text.at + 1 < r->text.end) {
            r->text.at++;
            if (look(r) != '\n')
                g_string_append_c(out, *r->text.at);
            skip_one(r);
        } else if (quote == '"' && look(r) == '$') {
            take_variable(r, out);
        } else {
            g_string_append_c(out, *r->text.at);
            skip_one(r);
        }
    }
    r->text.at++;
    return true;
}

static bool
ends_argument(char c)
{
    return c == '\0' || strchr(" \t\r\n;&|()<>", c) != NULL;
}

/* The column here, counted on from the word before: a line may have many. */
static guint
find_column(ArgumentReader *r)
{
    if (r->word == NULL || r->word < r->text.line_start) {
        r->word = r->text.line_start;
        r->word_column = 0;
    }
    r->word_column += g_utf8_strlen(r->word, r->text.at - r->word);
    r->word = r->text.at;
    return (guint)r->word_column + 1;
}

static bool
check_word(ArgumentReader *r, const Word *word)
{
    r->words_bytes += word->text->len;
    if (word->text->len > WORD_BYTES_MAX)
        return lh_entries_fail(r->entries, word->line, word->column, r->text.error,
                               "a word has more than %d bytes", WORD_BYTES_MAX);
    return r->words_bytes <= WORDS_BYTES_MAX ||
           lh_entries_fail(r->entries, word->line, word->column, r->text.error,
                           "up to here, words have more than %d MiB with their variables replaced",
                           WORDS_BYTES_MAX >> 20);
}

/* The word that begins here. */
static bool
take_word(ArgumentReader *r, Word *word)
{
    word->line = r->text.line;
    word->column = find_column(r);
    word->quoted = false;
    g_string_truncate(word->text, 0);
    while (r->text.at < r->text.end && !ends_argument(look(r))) {
        const char c = look(r);

        if (c == '"' || c == '\'') {
            word->quoted = true;
            if (!take_quoted(r, word->text))
                return false;
        } else if (c == '\\' && r->text.at + 1 < r->text.end) {
            r->text.at++;
            if (look(r) != '\n')
                g_string_append_c(word->text, *r->text.at);
            skip_one(r);
        } else if (c == '$') {
            take_variable(r, word->text);
        } else {
            g_string_append_c(word->text, c);
            r->text.at++;
        }
    }
    return check_word(r, word);
}

/* ---- what words are ---- */

/* "--name", "-name"; not "-1". */
static bool
is_argument(const Word *word)
{
    const char *text = word->text->str;
    const char *name = text + (g_str_has_prefix(text, "--") ? 2 : 1);

    return text[0] == '-' && g_ascii_isalpha(name[0]) && strpbrk(name, " \t\n") == NULL;
}

static bool
take_argument(ArgumentReader *r, const Word *word)
{
    const char *text = word->text->str;
    const char *name = text + (g_str_has_prefix(text, "--") ? 2 : 1);
    const char *equals = strchr(name, '=');
    g_autofree char *path =
        equals != NULL ? g_strndup(name, (gsize)(equals - name)) : g_strdup(name);

    r->entry = lh_entries_add(r->entries, path, equals != NULL ? LH_ENTRY_WORD : LH_ENTRY_FLAG,
                              word->line, word->column, r->text.error);
    if (r->entry == NULL)
        return false;
    if (equals != NULL) {
        g_ptr_array_add(r->entry->values, g_strdup(equals + 1));
        r->entry = NULL; /* complete */
    }
    return true;
}

/* NAME=VALUE sets the variable; other words do nothing. */
static void
set_variable(ArgumentReader *r, const Word *word)
{
    const char *text = word->text->str;
    gsize end = 0;

    while (is_name(text[end]))
        end++;
    if (end == 0 || g_ascii_isdigit(text[0]) || text[end] != '=')
        return;
    g_hash_table_replace(r->variables, g_strndup(text, end), g_strdup(text + end + 1));
}

static bool
take_arguments(ArgumentReader *r, const Word *word)
{
    if (!word->quoted && is_argument(word))
        return take_argument(r, word);
    if (r->entry == NULL) {
        set_variable(r, word);
        return true;
    }
    if (r->entry->values->len >= LH_ENTRIES_MAX)
        return lh_entries_fail(r->entries, word->line, word->column, r->text.error,
                               "an argument has more than %d values", LH_ENTRIES_MAX);
    g_ptr_array_add(r->entry->values, g_strdup(word->text->str));
    r->entry->kind = r->entry->values->len == 1 ? LH_ENTRY_WORD : LH_ENTRY_LIST;
    return true;
}

/* What stands between words. A line end that no backslash takes away ends an argument's values. */
static void
skip(ArgumentReader *r)
{
    while (r->text.at < r->text.end) {
        const char c = look(r);

        if (c == '#') {
            while (r->text.at < r->text.end && *r->text.at != '\n')
                r->text.at++;
        } else if (c == '\\' && r->text.at + 1 < r->text.end &&
                   (r->text.at[1] == '\n' || r->text.at[1] == '\r')) {
            r->text.at += r->text.at[1] == '\r' ? 2 : 1;
            if (look(r) == '\n')
                skip_one(r);
        } else if (strchr(";&|()<>\n", c) != NULL) {
            r->entry = NULL;
            skip_one(r);
        } else if (c == ' ' || c == '\t' || c == '\r') {
            r->text.at++;
        } else {
            return;
        }
    }
}

LhEntries *
lh_entries_arguments(const char *file, const char *text, gsize length, GError **error)
{
    g_autoptr(LhEntries) e = lh_entries_new(file, text, length, true, error);
    g_autoptr(GHashTable) variables =
        g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
    g_autoptr(GString) written = g_string_new(NULL);
    ArgumentReader r = { .text = { .file = file,
                                   .at = text,
                                   .end = text + length,
                                   .line_start = text,
                                   .line = 1,
                                   .error = error },
                         .entries = e,
                         .variables = variables };
    Word word = { .text = written };

    if (e == NULL)
        return NULL;
    for (skip(&r); r.text.at < r.text.end; skip(&r)) {
        if (!take_word(&r, &word) || !take_arguments(&r, &word))
            return NULL;
    }
    return g_steal_pointer(&e);
}
