/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Escapes for terminals, CSV, Markdown, HTML and gnuplot. (json_writer.c escapes JSON.)
 */
#include "base/escape.h"

#include <string.h>

#define ASCII_MAX 0x7f

bool
lh_escape_is_unsafe(gunichar c)
{
    return c < 0x20 || (c >= 0x7f && c < 0xa0) || c == 0x061c || /* Arabic letter mark */
           (c >= 0x200e && c <= 0x200f) ||                       /* direction marks */
           (c >= 0x2028 && c <= 0x202e) || /* separators, embeddings and overrides */
           (c >= 0x2066 && c <= 0x2069) || /* isolates */
           c == 0xfeff || (c >= 0xe0000 && c <= 0xe007f);
}

static void
append_shown(GString *out, gunichar c)
{
    if (c == '\n')
        g_string_append(out, "\\n");
    else if (c == '\t')
        g_string_append(out, "\\t");
    else if (c == '\r')
        g_string_append(out, "\\r");
    else if (c <= ASCII_MAX)
        g_string_append_printf(out, "\\x%02x", c);
    else
        g_string_append_printf(out, c <= 0xffff ? "\\u%04x" : "\\U%08x", c);
}

/* Reads a character from @at. False for an invalid byte, which is then @c. */
static bool
next(const char **at, gunichar *c)
{
    *c = g_utf8_get_char_validated(*at, -1);
    if (*c == (gunichar)-1 || *c == (gunichar)-2) {
        *c = (guchar) * *at;
        (*at)++;
        return false;
    }
    *at = g_utf8_next_char(*at);
    return true;
}

/* Whether @c is an underscore within a word, as in attention_fwd, which has no meaning in Markdown.
 * @out is the text before it, @after the text after it. */
static bool
is_inside_word(const GString *out, gunichar c, const char *after)
{
    return c == '_' && out->len > 0 && g_ascii_isalnum(out->str[out->len - 1]) &&
           g_ascii_isalnum(*after);
}

/* Appends @text. @breaks: keep line breaks. @marked: characters to escape by a backslash; if there
 * are any, backslashes of escapes are escaped too. */
static void
append(GString *out, const char *text, bool breaks, const char *marked)
{
    const char *mark = *marked != '\0' ? "\\" : "";
    gunichar c;

    while (*text != '\0') {
        if (!next(&text, &c)) {
            g_string_append_printf(out, "%s\\x%02x", mark, c);
        } else if (c == '\n' && breaks) {
            g_string_append_c(out, '\n');
        } else if (lh_escape_is_unsafe(c)) {
            g_string_append(out, mark);
            append_shown(out, c);
        } else {
            if (c <= ASCII_MAX && strchr(marked, (int)c) != NULL && !is_inside_word(out, c, text))
                g_string_append_c(out, '\\');
            g_string_append_unichar(out, c);
        }
    }
}

void
lh_escape_line(GString *out, const char *text)
{
    append(out, text, false, "");
}

void
lh_escape_lines(GString *out, const char *text)
{
    append(out, text, true, "");
}

char *
lh_escaped_line(const char *text)
{
    GString *out = g_string_new(NULL);

    lh_escape_line(out, text);
    return g_string_free(out, FALSE);
}

char *
lh_escaped_lines(const char *text)
{
    GString *out = g_string_new(NULL);

    lh_escape_lines(out, text);
    return g_string_free(out, FALSE);
}

/* Whether a spreadsheet takes the text for a formula: it begins with one of these signs, possibly
 * full-width. */
static bool
begins_formula(const char *text)
{
    static const gunichar signs[] = { '=', '+', '-', '@', 0xff1d, 0xff0b, 0xff0d, 0xff20, 0x2212 };
    gunichar first;

    while (g_unichar_isspace(g_utf8_get_char(text)))
        text = g_utf8_next_char(text);
    first = g_utf8_get_char(text);

    for (guint i = 0; i < G_N_ELEMENTS(signs); i++) {
        if (first == signs[i])
            return *g_utf8_next_char(text) != '\0'; /* a dash alone is not a formula */
    }
    return false;
}

void
lh_escape_csv(GString *out, const char *text, bool formulas)
{
    g_autofree char *line = lh_escaped_line(text);
    const char *mark = !formulas && begins_formula(line) ? "'" : "";

    if (strpbrk(line, ",;\"") == NULL) {
        g_string_append_printf(out, "%s%s", mark, line);
        return;
    }
    g_string_append_printf(out, "\"%s", mark);
    for (const char *p = line; *p != '\0'; p++) {
        if (*p == '"')
            g_string_append_c(out, '"');
        g_string_append_c(out, *p);
    }
    g_string_append_c(out, '"');
}

/* Characters that begin or end a code span, emphasis, a link, an image, HTML, an entity or a
 * cell. */
#define MD_INLINE "\\`*_[]<>|&~"

/* Characters that begin a heading, a list or a rule at the start of a line. */
#define MD_BLOCK "#+-="

void
lh_escape_md(GString *out, const char *text)
{
    while (*text != '\0') {
        const gsize length = strcspn(text, "\n");
        g_autofree char *line = g_strndup(text, length);

        g_strchug(line);
        if (*line != '\0' && strchr(MD_BLOCK, *line) != NULL)
            g_string_append_c(out, '\\');
        append(out, line, false, MD_INLINE);
        text += length;
        if (*text == '\n')
            g_string_append_c(out, *text++);
    }
}

void
lh_escape_md_cell(GString *out, const char *text)
{
    append(out, text, false, MD_INLINE);
}

void
lh_escape_html(GString *out, const char *text)
{
    g_autofree char *line = lh_escaped_line(text);

    for (const char *at = line; *at != '\0'; at++) {
        switch (*at) {
        case '&':
            g_string_append(out, "&amp;");
            break;
        case '<':
            g_string_append(out, "&lt;");
            break;
        case '>':
            g_string_append(out, "&gt;");
            break;
        case '"':
            g_string_append(out, "&quot;");
            break;
        case '\'':
            g_string_append(out, "&#39;");
            break;
        default:
            g_string_append_c(out, *at);
        }
    }
}

void
lh_escape_gnuplot(GString *out, const char *text)
{
    g_autofree char *line = lh_escaped_line(text);

    g_string_append_c(out, '\'');
    for (const char *p = line; *p != '\0'; p++) {
        if (*p == '\'')
            g_string_append_c(out, '\'');
        g_string_append_c(out, *p);
    }
    g_string_append_c(out, '\'');
}
