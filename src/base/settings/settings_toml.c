/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads settings from TOML 1.0, the whole language except NUL in texts; dates stay text, integers
 * are converted to decimal without underscores. Tables may be opened in any order, but no table and
 * no key twice. A key that contains path characters is quoted in the path.
 */
#include "base/settings/settings_file.h"

#include "base/escape.h"
#include "base/settings/toml_scalar.h"
#include "base/text_reader.h"

#include <string.h>

/* How a table was defined, by its path. A closed one accepts no additions. */
typedef enum {
    TABLE_IMPLIED = 1, /* [a.b] implies a */
    TABLE_DOTTED,      /* a.b = 1 makes a */
    TABLE_OPENED,      /* [a] */
    TABLE_LIST,        /* [[a]] */
    TABLE_CLOSED,      /* a = { ... }, a = [ ... ], and values */
} TableState;

typedef struct {
    LhTextReader text;
    LhSettingsFile *entries;
    GHashTable *tables; /* path -> TableState */
    GHashTable *counts; /* path of a list of tables -> number of tables */
    unsigned depth;
} TomlReader;

static bool take_value(TomlReader *r, const char *path, GPtrArray *values);

/* ---- characters ---- */

static bool
fail_toml(TomlReader *r, const char *message)
{
    return lh_text_fail(&r->text, r->text.at, "%s", message);
}

/* The next character; NUL at the end. */
static char
toml_look(const TomlReader *r)
{
    return r->text.at < r->text.end ? *r->text.at : '\0';
}

/* Fails with what was found at the position and what is allowed. */
static bool
fail_found(TomlReader *r, const char *allowed)
{
    const char *at = r->text.at;
    const gsize length = at < r->text.end ? (gsize)(g_utf8_next_char(at) - at) : 0;
    g_autofree char *character = g_strndup(at, length);
    g_autofree char *safe = lh_escaped_line(character);

    if (length == 0)
        return lh_text_fail(&r->text, at, "found the end of the file; %s", allowed);
    if (*at == '\n')
        return lh_text_fail(&r->text, at, "found the end of the line; %s", allowed);
    return lh_text_fail(&r->text, at, "found \"%s\"; %s", safe, allowed);
}

static bool
starts(const TomlReader *r, const char *word)
{
    const gsize length = strlen(word);

    return (gsize)(r->text.end - r->text.at) >= length && strncmp(r->text.at, word, length) == 0;
}

static void
end_line(TomlReader *r)
{
    r->text.at++;
    r->text.line++;
    r->text.line_start = r->text.at;
}

static void
skip_blanks(TomlReader *r)
{
    while (toml_look(r) == ' ' || toml_look(r) == '\t')
        r->text.at++;
}

#define NO_CONTROL "allowed control characters: tabs, and line ends of LF or CR LF"

/* Control characters are not allowed, and a carriage return only before a line feed. */
static bool
is_control(char c)
{
    return ((unsigned char)c < ' ' && c != '\t') || c == '\x7f';
}

static bool
skip_comment(TomlReader *r)
{
    if (toml_look(r) != '#')
        return true;
    while (r->text.at < r->text.end && *r->text.at != '\n' && !starts(r, "\r\n")) {
        if (is_control(*r->text.at))
            return fail_found(r, NO_CONTROL);
        r->text.at++;
    }
    return true;
}

/* Blanks, comments and line ends. */
static bool
skip_lines(TomlReader *r)
{
    for (;;) {
        skip_blanks(r);
        if (!skip_comment(r))
            return false;
        if (starts(r, "\r\n"))
            r->text.at++;
        if (toml_look(r) != '\n' || r->text.at >= r->text.end)
            return true;
        end_line(r);
    }
}

/* Only a comment may follow a value or a header. */
static bool
take_line_end(TomlReader *r)
{
    skip_blanks(r);
    if (!skip_comment(r))
        return false;
    if (starts(r, "\r\n"))
        r->text.at++;
    if (r->text.at >= r->text.end)
        return true;
    if (*r->text.at != '\n')
        return fail_found(r, "the line should end here");
    end_line(r);
    return true;
}

/* ---- strings ---- */

/* \uXXXX and \UXXXXXXXX. */
static bool
take_unicode(TomlReader *r, unsigned digits, GString *out)
{
    gunichar c = 0;

    for (unsigned i = 0; i < digits; i++) {
        const int digit = g_ascii_xdigit_value(toml_look(r));

        if (digit < 0)
            return fail_found(r, "\\u takes four hexadecimal digits, and \\U eight");
        c = c << 4 | (gunichar)digit;
        r->text.at++;
    }
    if (c == 0)
        return fail_toml(r, "a NUL, which longhaul's settings cannot contain");
    if (!g_unichar_validate(c))
        return fail_toml(r,
                         "not the number of a character; allowed: 1 to D7FF, and E000 to 10FFFF");
    g_string_append_unichar(out, c);
    return true;
}

/* Reads an escape after its backslash. */
static bool
take_escape(TomlReader *r, GString *out)
{
    static const char letters[] = "btnfre\"\\", meanings[] = "\b\t\n\f\r\x1b\"\\";
    const char c = toml_look(r);
    const char *letter = c != '\0' ? strchr(letters, c) : NULL;

    if (c == 'u' || c == 'U') {
        r->text.at++;
        return take_unicode(r, c == 'u' ? 4 : 8, out);
    }
    if (letter == NULL || c == 'e')
        return fail_found(
            r, "no such escape; allowed: \\b \\t \\n \\f \\r \\\" \\\\ \\uXXXX \\UXXXXXXXX");
    g_string_append_c(out, meanings[letter - letters]);
    r->text.at++;
    return true;
}

/* Skips a backslash at the end of a line, with all white space after it. */
static bool
skip_fold(TomlReader *r)
{
    const char *at = r->text.at;

    while (at < r->text.end && (*at == ' ' || *at == '\t'))
        at++;
    if (at < r->text.end && *at == '\r')
        at++;
    if (at >= r->text.end || *at != '\n')
        return false;
    for (;;) {
        skip_blanks(r);
        if (starts(r, "\r\n"))
            r->text.at++;
        if (toml_look(r) != '\n')
            return true;
        end_line(r);
    }
}

static bool
take_short_string(TomlReader *r, char quote, GString *out)
{
    r->text.at++;
    while (toml_look(r) != quote) {
        if (r->text.at >= r->text.end || is_control(toml_look(r)))
            return fail_found(r, "the closing quote of the text is missing in this line");
        if (quote == '"' && toml_look(r) == '\\') {
            r->text.at++;
            if (!take_escape(r, out))
                return false;
        } else {
            g_string_append_c(out, *r->text.at++);
        }
    }
    r->text.at++;
    return true;
}

/* Reads one character of a multi-line text. */
static bool
take_long_character(TomlReader *r, char quote, GString *out)
{
    if (quote == '"' && toml_look(r) == '\\') {
        r->text.at++;
        return skip_fold(r) || take_escape(r, out);
    }
    if (starts(r, "\r\n"))
        r->text.at++;
    if (toml_look(r) == '\n' && r->text.at < r->text.end) {
        g_string_append_c(out, '\n');
        end_line(r);
        return true;
    }
    if (is_control(toml_look(r)))
        return fail_found(r, NO_CONTROL);
    g_string_append_c(out, *r->text.at++);
    return true;
}

static bool
take_long_string(TomlReader *r, char quote, GString *out)
{
    const char three[] = { quote, quote, quote, '\0' };

    r->text.at += strlen(three);
    if (starts(r, "\r\n"))
        r->text.at++;
    if (toml_look(r) == '\n')
        end_line(r);
    while (!starts(r, three)) {
        if (r->text.at >= r->text.end)
            return fail_toml(r, "the three closing quotes of the text are missing");
        if (!take_long_character(r, quote, out))
            return false;
    }
    r->text.at += strlen(three);
    /* Up to two quotes before the closing three belong to the text. */
    for (int i = 0; i < 2 && toml_look(r) == quote; i++)
        g_string_append_c(out, *r->text.at++);
    return true;
}

/* ---- keys ---- */

static bool
is_bare(char c)
{
    return g_ascii_isalnum(c) || c == '_' || c == '-';
}

/* Reads one component of a key. */
static bool
take_bare_key(TomlReader *r, GString *out)
{
    const char c = toml_look(r);

    if (c == '"' || c == '\'')
        return take_short_string(r, c, out);
    if (!is_bare(c))
        return fail_found(r, "expected a key: letters, digits, _ and -, or text in quotes");
    while (is_bare(toml_look(r)))
        g_string_append_c(out, *r->text.at++);
    return true;
}

/* Appends a component of a key; quotes it if it could be mistaken for a path. */
static void
append_key(GString *path, const char *word)
{
    if (path->len > 0)
        g_string_append_c(path, '.');
    if (word[0] != '\0' && strpbrk(word, ".[]\"") == NULL) {
        g_string_append(path, word);
        return;
    }
    g_string_append_c(path, '"');
    for (const char *c = word; *c != '\0'; c++)
        g_string_append_printf(path, "%s%c", *c == '"' || *c == '\\' ? "\\" : "", *c);
    g_string_append_c(path, '"');
}

/* Reads a key with one or more components and appends it to @path: "a.b.c". All but the last are
 * tables, which @state defines. */
static bool
take_key(TomlReader *r, GString *path, TableState state)
{
    for (;;) {
        g_autoptr(GString) word = g_string_new(NULL);
        g_autofree char *shown = NULL;
        TableState found;

        if (!take_bare_key(r, word))
            return false;
        append_key(path, word->str);
        if (path->len > LH_SETTINGS_PATH_MAX)
            return fail_toml(r, "the name of a setting is too long");
        skip_blanks(r);
        if (toml_look(r) != '.')
            return true;
        r->text.at++;
        skip_blanks(r);
        found = (TableState)GPOINTER_TO_INT(g_hash_table_lookup(r->tables, path->str));
        if (found == 0 || (found == TABLE_IMPLIED && state == TABLE_DOTTED)) {
            g_hash_table_insert(r->tables, g_strdup(path->str), GINT_TO_POINTER(state));
        } else if (found == TABLE_CLOSED || (state == TABLE_DOTTED && found != TABLE_DOTTED)) {
            shown = g_strescape(path->str, NULL);
            return lh_text_fail(&r->text, r->text.at,
                                "\"%.80s\" is complete and cannot be extended", shown);
        } else if (found == TABLE_LIST) {
            g_string_append_printf(path, "[%d]",
                                   GPOINTER_TO_INT(g_hash_table_lookup(r->counts, path->str)) - 1);
        }
    }
}

/* Sets @path to @state, if that is allowed. */
static bool
make(TomlReader *r, const char *path, TableState state)
{
    const TableState found = (TableState)GPOINTER_TO_INT(g_hash_table_lookup(r->tables, path));
    g_autofree char *shown = NULL;

    if (found == 0 || (found == TABLE_IMPLIED && state == TABLE_OPENED) ||
        (found == TABLE_LIST && state == TABLE_LIST)) {
        g_hash_table_insert(r->tables, g_strdup(path), GINT_TO_POINTER(state));
        return true;
    }
    shown = g_strescape(path, NULL);
    return lh_text_fail(&r->text, r->text.at, "\"%.80s\" is set twice", shown);
}

/* ---- values ---- */

#define A_VALUE "text in quotes, a number, true, false, a date, [list] or {table}"

/* @reason is NULL if the word does not resemble any value. */
static bool
fail_word(TomlReader *r, const char *word, const char *reason)
{
    g_autofree char *safe = lh_escaped_line(word);

    if (reason != NULL)
        return lh_text_fail(&r->text, r->text.at, "\"%.60s\" %s", safe, reason);
    return lh_text_fail(&r->text, r->text.at, "found \"%.60s\"; allowed: " A_VALUE, safe);
}

static bool
take_plain(TomlReader *r, GPtrArray *values)
{
    const char *start = r->text.at;
    const char *at = start;
    g_autofree char *word = NULL;
    const char *reason;
    char *value;

    while (at < r->text.end && (is_bare(*at) || strchr("+.:", *at) != NULL))
        at++;
    if (at - start == 10 && at + 1 < r->text.end && *at == ' ' && g_ascii_isdigit(at[1]) &&
        start[4] == '-') { /* a date followed by a time */
        for (at++; at < r->text.end && (is_bare(*at) || strchr("+.:", *at) != NULL);)
            at++;
    }
    word = g_strndup(start, (gsize)(at - start));
    value = lh_toml_scalar(word, &reason);
    if (value == NULL)
        return at > start ? fail_word(r, word, reason) : fail_found(r, "allowed: " A_VALUE);
    g_ptr_array_add(values, value);
    r->text.at = at;
    return true;
}

static bool
take_string(TomlReader *r, GPtrArray *values)
{
    g_autoptr(GString) text = g_string_new(NULL);
    const char quote = toml_look(r);
    const char three[] = { quote, quote, quote, '\0' };

    if (!(starts(r, three) ? take_long_string(r, quote, text) : take_short_string(r, quote, text)))
        return false;
    g_ptr_array_add(values, g_string_free(g_steal_pointer(&text), FALSE));
    return true;
}

static LhSettingsEntry *
add(TomlReader *r, const char *path, LhSettingsKind kind)
{
    const guint column =
        (guint)g_utf8_strlen(r->text.line_start, r->text.at - r->text.line_start) + 1;

    return lh_settings_add(r->entries, path, kind, r->text.line, column, r->text.error);
}

/* NOLINTBEGIN(misc-no-recursion) */
static bool
take_array(TomlReader *r, const char *path)
{
    LhSettingsEntry *entry = add(r, path, LH_SETTINGS_LIST);

    if (entry == NULL)
        return false;
    r->text.at++;
    for (guint index = 0;; index++) {
        g_autofree char *inner = g_strdup_printf("%s[%u]", path, index);

        if (!skip_lines(r))
            return false;
        if (toml_look(r) == ']')
            break;
        if (!take_value(r, inner, entry->values) || !skip_lines(r))
            return false;
        if (toml_look(r) == ']')
            break;
        if (toml_look(r) != ',')
            return fail_found(r, "a list goes on with \",\" or ends with \"]\"");
        r->text.at++;
    }
    r->text.at++;
    return true;
}

static bool
take_table(TomlReader *r, const char *path)
{
    r->text.at++;
    skip_blanks(r);
    for (bool first = true; toml_look(r) != '}'; first = false) {
        g_autoptr(GString) key = g_string_new(path);

        if (!first && toml_look(r) != ',')
            return fail_found(r, "a table in a line goes on with \",\" or ends with \"}\"");
        r->text.at += !first;
        skip_blanks(r);
        if (!take_key(r, key, TABLE_DOTTED))
            return false;
        if (toml_look(r) != '=')
            return fail_found(r, "a key is followed by \"=\"");
        r->text.at++;
        skip_blanks(r);
        if (!make(r, key->str, TABLE_CLOSED) || !take_value(r, key->str, NULL))
            return false;
        skip_blanks(r);
    }
    r->text.at++;
    return true;
}

/* Reads a value: appends it to @values if it is a scalar of a list, else adds a setting. */
static bool
take_value(TomlReader *r, const char *path, GPtrArray *values)
{
    const char c = toml_look(r);
    LhSettingsEntry *entry = NULL;
    bool ok;

    if (c == '[' || c == '{') {
        if (r->depth >= LH_SETTINGS_DEPTH_MAX)
            return fail_toml(r, "lists and tables are nested too deeply");
        r->depth++;
        ok = c == '[' ? take_array(r, path) : take_table(r, path);
        r->depth--;
        return ok;
    }
    if (values == NULL) {
        entry = add(r, path, c == '"' || c == '\'' ? LH_SETTINGS_WORD : LH_SETTINGS_PLAIN);
        if (entry == NULL)
            return false;
        values = entry->values;
    }
    return c == '"' || c == '\'' ? take_string(r, values) : take_plain(r, values);
}
/* NOLINTEND(misc-no-recursion) */

/* ---- lines ---- */

/* Reads [a.b] or [[a.b]]: sets @table to the path of the following keys. */
static bool
take_header(TomlReader *r, GString *table)
{
    const bool list = starts(r, "[[");
    int count;

    g_string_truncate(table, 0);
    r->text.at += list ? 2 : 1;
    skip_blanks(r);
    if (!take_key(r, table, TABLE_IMPLIED))
        return false;
    if (!starts(r, list ? "]]" : "]"))
        return fail_found(r, list ? "the header ends with \"]]\"" : "the header ends with \"]\"");
    r->text.at += list ? 2 : 1;
    if (!make(r, table->str, list ? TABLE_LIST : TABLE_OPENED))
        return false;
    if (list) {
        count = GPOINTER_TO_INT(g_hash_table_lookup(r->counts, table->str));
        g_hash_table_insert(r->counts, g_strdup(table->str), GINT_TO_POINTER(count + 1));
        g_string_append_printf(table, "[%d]", count);
    }
    return take_line_end(r);
}

static bool
take_setting(TomlReader *r, const GString *table)
{
    g_autoptr(GString) key = g_string_new(table->str);

    if (!take_key(r, key, TABLE_DOTTED))
        return false;
    if (toml_look(r) != '=')
        return fail_found(r, "a key is followed by \"=\"");
    r->text.at++;
    skip_blanks(r);
    return make(r, key->str, TABLE_CLOSED) && take_value(r, key->str, NULL) && take_line_end(r);
}

static bool
take_all(TomlReader *r)
{
    g_autoptr(GString) table = g_string_new(NULL);

    while (skip_lines(r)) {
        if (r->text.at >= r->text.end)
            return true;
        if (!(toml_look(r) == '[' ? take_header(r, table) : take_setting(r, table)))
            return false;
    }
    return false;
}

LhSettingsFile *
lh_settings_toml(const char *file, const char *text, gsize length, GError **error)
{
    g_autoptr(LhSettingsFile) e = lh_settings_new(file, text, length, false, error);
    g_autoptr(GHashTable) tables = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    g_autoptr(GHashTable) counts = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    static const char mark[] = "\xef\xbb\xbf"; /* byte order mark that some programs write */
    const char *start = text + (length >= 3 && memcmp(text, mark, 3) == 0 ? 3 : 0);
    TomlReader r = { .text = { .file = file,
                               .at = start,
                               .end = text + length,
                               .line_start = start,
                               .line = 1,
                               .error = error },
                     .entries = e,
                     .tables = tables,
                     .counts = counts };

    if (e == NULL)
        return NULL;
    return take_all(&r) ? g_steal_pointer(&e) : NULL;
}
