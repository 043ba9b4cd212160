/* SPDX-License-Identifier: Apache-2.0 */
/* A tool's output, line by line and word by word. */
#include "import/cluster/readers_private.h"

#include "base/error.h"

#include <math.h>
#include <string.h>

#define MARK "\xef\xbb\xbf" /* UTF-8 byte order mark, which some editors write */

/* --- words --------------------------------------------------------------------------------------
 */

LhToolWord
lh_tool_word(const LhToolReader *r, guint index)
{
    const LhToolWord none = { r->text.at, 0 };

    return index < r->words->len ? g_array_index(r->words, LhToolWord, index) : none;
}

bool
lh_tool_is(LhToolWord word, const char *text)
{
    return word.length == strlen(text) && memcmp(word.at, text, word.length) == 0;
}

bool
lh_tool_begins(LhToolWord word, const char *text)
{
    const gsize length = strlen(text);

    return word.length >= length && memcmp(word.at, text, length) == 0;
}

bool
lh_tool_same(LhToolWord a, LhToolWord b)
{
    return a.length == b.length && memcmp(a.at, b.at, a.length) == 0;
}

bool
lh_tool_line_has(const LhToolReader *r, const char *text)
{
    const char *const begin = r->text.line_start;

    return g_strstr_len(begin, r->text.at - begin, text) != NULL;
}

char *
lh_tool_text(LhToolWord word)
{
    return g_utf8_make_valid(word.at, (gssize)MIN(word.length, LH_TOOL_NAME_BYTES_MAX));
}

bool
lh_tool_uint(LhToolWord word, uint64_t *value)
{
    return lh_tool_numbered(word, "", value);
}

bool
lh_tool_numbered(LhToolWord word, const char *prefix, uint64_t *value)
{
    const gsize from = strlen(prefix);
    uint64_t number = 0;

    if (!lh_tool_begins(word, prefix) || word.length == from)
        return false;
    for (gsize i = from; i < word.length; i++) {
        const char c = word.at[i];

        if (!g_ascii_isdigit(c) || number > (UINT64_MAX - 9) / 10)
            return false;
        number = number * 10 + (uint64_t)(c - '0');
    }
    *value = number;
    return true;
}

bool
lh_tool_double(LhToolWord word, double *value)
{
    char text[40];
    char *end;
    double number;

    if (word.length == 0 || word.length >= sizeof(text) ||
        !(g_ascii_isdigit(*word.at) || *word.at == '-'))
        return false;
    memcpy(text, word.at, word.length);
    text[word.length] = '\0';
    if (strspn(text, "0123456789.eE+-") != word.length)
        return false;
    number = g_ascii_strtod(text, &end);
    if (end != text + word.length || !isfinite(number))
        return false;
    *value = number;
    return true;
}

/* --- lines --------------------------------------------------------------------------------------
 */

/* End of a terminal's escape sequence for colours or underlining, "\e[4m"; @at if there is none. */
static const char *
skip_escape(const char *at, const char *end)
{
    const char *to = at + 2;

    if (end - at < 2 || at[0] != '\033' || at[1] != '[')
        return at;
    while (to < end && (g_ascii_isdigit(*to) || *to == ';'))
        to++;
    return to < end && g_ascii_isalpha(*to) ? to + 1 : at;
}

/* Splits a line into words, separated by white space and escape sequences, after skipping a
 * launcher's prefix. */
static bool
cut_words(LhToolReader *r, const char *end)
{
    const char *at = lh_tool_after_prefix(r->text.line_start, end);

    g_array_set_size(r->words, 0);
    while (at < end) {
        const char *const after = skip_escape(at, end);
        LhToolWord word = { after, 0 };

        if (after != at || g_ascii_isspace(*at)) {
            at = after != at ? after : at + 1;
            continue;
        }
        while (at < end && !g_ascii_isspace(*at) && skip_escape(at, end) == at)
            at++;
        word.length = (gsize)(at - word.at);
        if (r->words->len == LH_TOOL_WORDS_MAX)
            return lh_text_fail(&r->text, word.at, "a line of more than %d words",
                                LH_TOOL_WORDS_MAX);
        g_array_append_val(r->words, word);
    }
    return true;
}

bool
lh_tool_next(LhToolReader *r, bool *more)
{
    LhTextReader *t = &r->text;
    const char *end;

    *more = t->at < t->end;
    if (!*more)
        return true;
    if (t->line == LH_TOOL_LINES_MAX)
        return lh_text_fail(t, t->at, "more than %d lines", LH_TOOL_LINES_MAX);
    t->line++;
    t->line_start = t->at;
    end = memchr(t->at, '\n', (gsize)(t->end - t->at));
    end = end == NULL ? t->end : end;
    t->at = MIN(end + 1, t->end);
    if (end - t->line_start > LH_TOOL_LINE_BYTES_MAX)
        return lh_text_fail(t, t->line_start, "a line of more than %d bytes",
                            LH_TOOL_LINE_BYTES_MAX);
    return cut_words(r, end);
}

/* --- a file -------------------------------------------------------------------------------------
 */

void
lh_tool_rewind(LhToolReader *r, const char *text)
{
    r->text.at = r->text.line_start = text;
    r->text.line = 0;
}

static bool
check_text(LhToolReader *r, const char *text, gsize length)
{
    const char *bad;

    if (g_utf8_validate_len(text, length, &bad))
        return true;
    r->text.line = 1;
    for (const char *at = text; at < bad; at++) {
        if (*at == '\n') {
            r->text.line++;
            r->text.line_start = at + 1;
        }
    }
    return lh_text_fail(&r->text, bad, "not text in UTF-8");
}

bool
lh_tool_begin(LhToolReader *r)
{
    const char *text = r->text.at;
    gsize length = (gsize)(r->text.end - text);

    if (length > LH_TOOL_BYTES_MAX) {
        g_set_error(r->text.error, LH_ERROR, LH_ERROR_INPUT, "%s:1: error: larger than %u MiB",
                    r->text.file, LH_TOOL_BYTES_MAX >> 20);
        return false;
    }
    if (length >= strlen(MARK) && memcmp(text, MARK, strlen(MARK)) == 0)
        text += strlen(MARK);
    length = (gsize)(r->text.end - text);
    lh_tool_rewind(r, text);
    return check_text(r, text, length);
}
