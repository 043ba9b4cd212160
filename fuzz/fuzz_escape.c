/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Escaped text stays within its field. For each language a small reader here parses the output as
 * the real one does: it must find one field, cell or string without anything active in it, and in
 * CSV and JSON the original text.
 */
#include "fuzz.h"

#include "base/escape.h"
#include "base/json/json_writer.h"

#include <cjson/cJSON.h>
#include <string.h>

/* --- terminals ----------------------------------------------------------------------------------
 */

/* Checks for UTF-8 without characters that a terminal interprets or hides, except line breaks if
 * @breaks. */
static void
check_shown(const char *text, bool breaks)
{
    g_assert(g_utf8_validate(text, -1, NULL));
    for (const char *p = text; *p != '\0'; p = g_utf8_next_char(p)) {
        const gunichar c = g_utf8_get_char(p);
        const GUnicodeType type = g_unichar_type(c);

        if (c == '\n' && breaks)
            continue;
        g_assert(type != G_UNICODE_CONTROL && type != G_UNICODE_LINE_SEPARATOR &&
                 type != G_UNICODE_PARAGRAPH_SEPARATOR);
        g_assert(!(c >= 0x202a && c <= 0x202e) && !(c >= 0x2066 && c <= 0x2069));
    }
}

static guint
count_breaks(const char *text)
{
    guint count = 0;

    for (; *text != '\0'; text++)
        count += *text == '\n';
    return count;
}

static bool
is_plain(const char *text)
{
    for (; *text != '\0'; text++) {
        if (!g_ascii_isprint(*text))
            return false;
    }
    return true;
}

/* Escaping is idempotent and leaves harmless text unchanged. */
static void
check_terminal(const char *text)
{
    g_autofree char *line = lh_escaped_line(text);
    g_autofree char *lines = lh_escaped_lines(text);
    g_autofree char *again = lh_escaped_line(line);

    check_shown(line, false);
    check_shown(lines, true);
    g_assert(count_breaks(text) == count_breaks(lines));
    g_assert(strcmp(line, again) == 0);
    g_assert(!is_plain(text) || strcmp(line, text) == 0);
}

/* --- CSV ----------------------------------------------------------------------------------------
 */

/* Reads one field of RFC 4180; returns its end. */
static const char *
read_field(const char *at, GString *field)
{
    if (*at != '"') {
        const gsize length = strcspn(at, ",\n");

        g_assert(memchr(at, '"', length) == NULL);
        g_string_append_len(field, at, (gssize)length);
        return at + length;
    }
    for (at++; *at != '"' || at[1] == '"'; at++) {
        g_assert(*at != '\0');
        g_string_append_c(field, *at);
        if (*at == '"')
            at++;
    }
    return at + 1;
}

static void
check_csv(const char *text, bool formulas)
{
    g_autoptr(GString) row = g_string_new("first,");
    g_autoptr(GString) field = g_string_new(NULL);
    g_autofree char *line = lh_escaped_line(text);
    const char *content;

    lh_escape_csv(row, text, formulas);
    g_string_append(row, ",last\n");
    check_shown(row->str, true);
    g_assert(strcmp(read_field(row->str + strlen("first,"), field), ",last\n") == 0);
    content = field->str + (field->str[0] == '\'' && strcmp(field->str, line) != 0 ? 1 : 0);
    g_assert(strcmp(content, line) == 0);
    while (*content == ' ')
        content++;
    g_assert(formulas || content[0] == '\0' || content[1] == '\0' ||
             strchr("=+-@", content[0]) == NULL || field->str[0] == '\'');
}

/* --- Markdown -----------------------------------------------------------------------------------
 */

static bool
is_within_word(const char *text, const char *mark)
{
    return *mark == '_' && mark > text && g_ascii_isalnum(mark[-1]) && g_ascii_isalnum(mark[1]);
}

/* Every Markdown character has a backslash of its own, except underscores within words. */
static void
check_marks(const char *text)
{
    for (const char *p = text; *p != '\0'; p++) {
        const bool escaped = *p == '\\';

        if (escaped)
            p++;
        g_assert(escaped ? g_ascii_ispunct(*p)
                         : is_within_word(text, p) || strchr("`*_[]<>|&~", *p) == NULL);
    }
}

static void
check_md(const char *text)
{
    g_autoptr(GString) cell = g_string_new(NULL);
    g_autoptr(GString) words = g_string_new(NULL);
    g_auto(GStrv) lines = NULL;

    lh_escape_md_cell(cell, text);
    check_shown(cell->str, false);
    check_marks(cell->str);
    lh_escape_md(words, text);
    check_shown(words->str, true);
    check_marks(words->str);
    lines = g_strsplit(words->str, "\n", -1);
    for (guint i = 0; lines[i] != NULL; i++)
        g_assert(lines[i][0] == '\0' || strchr("#+-= \t", lines[i][0]) == NULL);
}

/* The text starts and ends no tag, entity of its own or attribute value. */
static void
check_html(const char *text)
{
    g_autoptr(GString) out = g_string_new(NULL);

    lh_escape_html(out, text);
    check_shown(out->str, false);
    g_assert(strpbrk(out->str, "<>\"'") == NULL);
    for (const char *at = strchr(out->str, '&'); at != NULL; at = strchr(at + 1, '&'))
        g_assert(g_str_has_prefix(at, "&amp;") || g_str_has_prefix(at, "&lt;") ||
                 g_str_has_prefix(at, "&gt;") || g_str_has_prefix(at, "&quot;") ||
                 g_str_has_prefix(at, "&#39;"));
}

/* --- gnuplot and JSON ---------------------------------------------------------------------------
 */

/* A single-quoted string ends with the first quote that is not doubled, or with its line. */
static void
check_gnuplot(const char *text)
{
    g_autoptr(GString) out = g_string_new(NULL);
    const char *at;

    lh_escape_gnuplot(out, text);
    check_shown(out->str, false);
    g_assert(out->str[0] == '\'');
    for (at = out->str + 1; *at != '\'' || at[1] == '\''; at++) {
        g_assert(*at != '\0' && *at != '\n');
        at += *at == '\'';
    }
    g_assert(at[1] == '\0');
}

static void
check_json(const char *text)
{
    g_autoptr(GString) out = g_string_new(NULL);
    LhJsonWriter *w = lh_jsonw_new(out, true);
    g_autofree char *valid = g_utf8_make_valid(text, -1);
    cJSON *read;

    lh_jsonw_string(w, NULL, text);
    lh_jsonw_free(w);
    check_shown(out->str, true);
    read = cJSON_ParseWithOpts(out->str, NULL, 1);
    g_assert(cJSON_IsString(read) && strcmp(read->valuestring, valid) == 0);
    cJSON_Delete(read);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    g_autofree char *text = g_strndup((const char *)data, size);

    check_terminal(text);
    check_csv(text, false);
    check_csv(text, true);
    check_md(text);
    check_html(text);
    check_gnuplot(text);
    check_json(text);
    return 0;
}
