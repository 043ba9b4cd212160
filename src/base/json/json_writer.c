/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Streaming JSON writer. Its only state is the stack of open containers.
 */
#include "base/json/json_writer.h"

#include "base/escape.h"
#include "base/units.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#define DEPTH_MAX 64

typedef struct {
    char closer; /* '}' or ']' */
    bool empty;
} Level;

struct _LhJsonWriter {
    GString *out; /* borrowed */
    bool compact;
    bool fine;
    bool done; /* the one top-level value is complete */
    unsigned depth;
    Level levels[DEPTH_MAX];
};

LhJsonWriter *
lh_jsonw_new(GString *out, bool compact)
{
    LhJsonWriter *w = g_new0(LhJsonWriter, 1);

    w->out = out;
    w->compact = compact;
    return w;
}

void
lh_jsonw_fine(LhJsonWriter *w)
{
    w->fine = true;
}

bool
lh_jsonw_is_fine(const LhJsonWriter *w)
{
    return w->fine;
}

void
lh_jsonw_free(LhJsonWriter *w)
{
    if (w == NULL)
        return;
    g_assert(w->depth == 0);
    g_assert(w->done);
    g_string_append_c(w->out, '\n');
    g_free(w);
}

static void
new_line(LhJsonWriter *w)
{
    const gsize end = w->out->len + 1 + 2 * w->depth;

    g_string_append_c(w->out, '\n');
    g_string_set_size(w->out, end);
    memset(w->out->str + end - 2 * w->depth, ' ', 2 * w->depth);
}

/* Length of the prefix of @text that needs no escape in any context. */
static gsize
plain_length(const char *text)
{
    gsize length = 0;

    while (text[length] >= ' ' && text[length] <= '~' && text[length] != '"' &&
           text[length] != '\\')
        length++;
    return length;
}

/* As in RFC 8259: a surrogate pair beyond U+FFFF. */
static void
append_code(GString *out, gunichar c)
{
    if (c <= 0xffff)
        g_string_append_printf(out, "\\u%04x", c);
    else
        g_string_append_printf(out, "\\u%04x\\u%04x", 0xd800 + ((c - 0x10000) >> 10),
                               0xdc00 + ((c - 0x10000) & 0x3ff));
}

/* Escapes UTF-8 text, including what a terminal interprets or hides. */
static void
append_escaped(GString *out, const char *text)
{
    g_string_append_c(out, '"');
    for (const char *p = text; *p != '\0'; p = g_utf8_next_char(p)) {
        const gunichar c = g_utf8_get_char(p);

        if (c == '"' || c == '\\')
            g_string_append_printf(out, "\\%c", (char)c);
        else if (c == '\n')
            g_string_append(out, "\\n");
        else if (c == '\t')
            g_string_append(out, "\\t");
        else if (lh_escape_is_unsafe(c))
            append_code(out, c);
        else
            g_string_append_unichar(out, c);
    }
    g_string_append_c(out, '"');
}

/* Fast path: nearly all texts are plain. */
static void
append_string(GString *out, const char *text)
{
    const gsize length = plain_length(text);
    g_autofree char *valid = NULL;

    if (text[length] == '\0') {
        g_string_append_c(out, '"');
        g_string_append_len(out, text, (gssize)length);
        g_string_append_c(out, '"');
        return;
    }
    if (g_utf8_validate(text, -1, NULL)) {
        append_escaped(out, text);
        return;
    }
    valid = g_utf8_make_valid(text, -1);
    append_escaped(out, valid);
}

/* Writes what precedes a value: comma, line break, key. */
static void
begin_value(LhJsonWriter *w, const char *key)
{
    Level *level;

    g_assert(!w->done);
    if (w->depth == 0) {
        g_assert(key == NULL);
        w->done = true; /* for a scalar; object_begin and array_begin reset it */
        return;
    }
    level = &w->levels[w->depth - 1];
    g_assert((key != NULL) == (level->closer == '}'));
    if (!level->empty)
        g_string_append_c(w->out, ',');
    if (!w->compact)
        new_line(w);
    else if (!level->empty)
        g_string_append_c(w->out, ' ');
    level->empty = false;
    if (key != NULL) {
        append_string(w->out, key);
        g_string_append(w->out, ": ");
    }
}

static void
begin_container(LhJsonWriter *w, const char *key, char opener, char closer)
{
    begin_value(w, key);
    g_assert(w->depth < DEPTH_MAX);
    w->done = false;
    g_string_append_c(w->out, opener);
    w->levels[w->depth++] = (Level){ .closer = closer, .empty = true };
}

static void
end_container(LhJsonWriter *w, char closer)
{
    Level level;

    g_assert(w->depth > 0);
    level = w->levels[--w->depth];
    g_assert(level.closer == closer);
    if (!level.empty && !w->compact)
        new_line(w);
    g_string_append_c(w->out, closer);
    w->done = w->depth == 0;
}

void
lh_jsonw_object_begin(LhJsonWriter *w, const char *key)
{
    begin_container(w, key, '{', '}');
}

void
lh_jsonw_object_end(LhJsonWriter *w)
{
    end_container(w, '}');
}

void
lh_jsonw_array_begin(LhJsonWriter *w, const char *key)
{
    begin_container(w, key, '[', ']');
}

void
lh_jsonw_array_end(LhJsonWriter *w)
{
    end_container(w, ']');
}

void
lh_jsonw_string(LhJsonWriter *w, const char *key, const char *value)
{
    begin_value(w, key);
    if (value == NULL)
        g_string_append(w->out, "null");
    else
        append_string(w->out, value);
}

void
lh_jsonw_wide(LhJsonWriter *w, const char *key, LhWide value)
{
    char buffer[LH_WIDE_TEXT_SIZE];

    begin_value(w, key);
    g_string_append(w->out, lh_wide_text(value, buffer));
}

void
lh_jsonw_uint(LhJsonWriter *w, const char *key, uint64_t value)
{
    lh_jsonw_wide(w, key, value);
}

void
lh_jsonw_uint_unless(LhJsonWriter *w, const char *key, uint64_t value, uint64_t usual)
{
    if (value != usual)
        lh_jsonw_uint(w, key, value);
}

void
lh_jsonw_int(LhJsonWriter *w, const char *key, int64_t value)
{
    lh_jsonw_wide(w, key, value);
}

void
lh_jsonw_double(LhJsonWriter *w, const char *key, double value)
{
    char buffer[G_ASCII_DTOSTR_BUF_SIZE];

    begin_value(w, key);
    g_string_append(w->out, lh_double_to_text(value, buffer));
}

void
lh_jsonw_double_or_null(LhJsonWriter *w, const char *key, double value)
{
    if (isfinite(value))
        lh_jsonw_double(w, key, value);
    else
        lh_jsonw_string(w, key, NULL);
}

void
lh_jsonw_number(LhJsonWriter *w, const char *key, const char *number)
{
    begin_value(w, key);
    g_string_append(w->out, number);
}

void
lh_jsonw_bool(LhJsonWriter *w, const char *key, bool value)
{
    begin_value(w, key);
    g_string_append(w->out, value ? "true" : "false");
}

void
lh_jsonw_seconds(LhJsonWriter *w, const char *key, LhWide time_ps)
{
    char buffer[LH_WIDE_TEXT_SIZE];

    begin_value(w, key);
    g_string_append(w->out, lh_wide_seconds(time_ps, buffer));
}
