/* SPDX-License-Identifier: Apache-2.0 */
#include "import/trace/events.h"

#include "base/error.h"

#include <math.h>
#include <string.h>

#define BUFFER_BYTES 65536
#define DEPTH_MAX 128
#define KEY_BYTES_MAX 256

typedef struct {
    const char *file;
    LhEventsRead read;
    void *read_data;
    const LhEventsSink *sink;
    LhEventsResult *result;
    GChecksum *checksum;
    GError *failure; /* error from reading the file */
    uint64_t line;
    gsize at, end; /* in the buffer */
    GString *text; /* of the current value */
    char buffer[BUFFER_BYTES];
} Scanner;

/* --- characters ---------------------------------------------------------------------------------
 */

static bool
fill(Scanner *s)
{
    const gssize got =
        s->failure != NULL ? -1 : s->read(s->read_data, s->buffer, sizeof(s->buffer), &s->failure);

    s->at = 0;
    s->end = got > 0 ? (gsize)got : 0;
    if (got > 0)
        g_checksum_update(s->checksum, (const guchar *)s->buffer, got);
    return got > 0;
}

/* Next character without consuming it; -1 at the end. */
static int
peek(Scanner *s)
{
    if (s->at == s->end && !fill(s))
        return -1;
    return (unsigned char)s->buffer[s->at];
}

static int
take_character(Scanner *s)
{
    const int c = peek(s);

    if (c >= 0)
        s->at++;
    if (c == '\n')
        s->line++;
    return c;
}

static bool
is_space(int c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

static int
peek_word(Scanner *s)
{
    while (is_space(peek(s)))
        take_character(s);
    return peek(s);
}

static bool
fail_events(Scanner *s, const char *found, const char *allowed, GError **error)
{
    if (s->failure != NULL) {
        g_propagate_error(error, g_steal_pointer(&s->failure));
        return false;
    }
    g_set_error(error, LH_ERROR, LH_ERROR_INPUT, "%s:%" G_GUINT64_FORMAT ": error: %s; allowed: %s",
                s->file, s->line, found, allowed);
    return false;
}

/* Sets an error with the next character as what was found. */
static bool
fail_at(Scanner *s, const char *allowed, GError **error)
{
    const int c = peek_word(s);
    char found[32];

    if (c < 0)
        return fail_events(s, "the file ends here", allowed, error);
    if (c > ' ' && c < 0x7f)
        g_snprintf(found, sizeof(found), "found '%c'", c);
    else
        g_snprintf(found, sizeof(found), "found byte 0x%02x", (unsigned)c);
    return fail_events(s, found, allowed, error);
}

/* --- values -------------------------------------------------------------------------------------
 */

typedef enum {
    VALUE_WHOLE,
    VALUE_BROKEN, /* a line break in a string, too long, or mismatched brackets */
    VALUE_ENDED,  /* the file ended within it */
} Value;

/* Appends @c; false if the text is too long. */
static bool
keep_character(Scanner *s, int c)
{
    if (s->text->len >= LH_EVENT_BYTES_MAX)
        return false;
    g_string_append_c(s->text, (char)c);
    return true;
}

/* Reads up to the closing quote; the opening one has been consumed. */
static Value
read_string(Scanner *s, bool keeps)
{
    int c;

    while ((c = take_character(s)) != '"') {
        if (c < 0)
            return VALUE_ENDED;
        if (c == '\n' || (keeps && !keep_character(s, c)))
            return VALUE_BROKEN;
        if (c != '\\')
            continue;
        c = take_character(s);
        if (c < 0)
            return VALUE_ENDED;
        if (c == '\n' || (keeps && !keep_character(s, c)))
            return VALUE_BROKEN;
    }
    return keeps && !keep_character(s, c) ? VALUE_BROKEN : VALUE_WHOLE;
}

/* Tracks brackets; false if @c closes another bracket than the open one, or nesting is too deep. */
static bool
nest(char *open, guint *depth, int c)
{
    if (c == '{' || c == '[') {
        if (*depth == DEPTH_MAX)
            return false;
        open[(*depth)++] = c == '{' ? '}' : ']';
    } else if (c == '}' || c == ']') {
        if (*depth == 0 || open[*depth - 1] != c)
            return false;
        (*depth)--;
    }
    return true;
}

/* Reads the next value, into text if @keeps. Only its brackets and strings are checked. */
static Value
read_value(Scanner *s, bool keeps)
{
    char open[DEPTH_MAX];
    guint depth = 0;
    int c = peek_word(s);

    g_string_truncate(s->text, 0);
    if (c < 0)
        return VALUE_ENDED;
    do {
        c = take_character(s);
        if (c < 0)
            return VALUE_ENDED;
        if (!nest(open, &depth, c) || (keeps && !keep_character(s, c)))
            return VALUE_BROKEN;
        if (c == '"') {
            const Value string = read_string(s, keeps);

            if (string != VALUE_WHOLE)
                return string;
        }
        c = peek(s);
    } while (depth > 0 || (c >= 0 && !is_space(c) && strchr(",:}]", c) == NULL));
    return VALUE_WHOLE;
}

static LhExcerpt
text_of(const Scanner *s)
{
    return (LhExcerpt){ s->text->str, s->text->len };
}

/* --- events -------------------------------------------------------------------------------------
 */

/* Skips to the next line that begins an object, which may be the current one. */
static void
resynchronise(Scanner *s)
{
    bool at_line = s->at > 0 && s->buffer[s->at - 1] == '\n';
    int c;

    do {
        while (!at_line && (c = peek(s)) >= 0 && c != '\n')
            take_character(s);
        at_line = false;
        c = peek_word(s);
    } while (c >= 0 && c != '{');
}

static bool
read_event(Scanner *s, GError **error)
{
    const uint64_t line = s->line;
    const Value value = read_value(s, true);

    if (value == VALUE_ENDED)
        return fail_events(s, "the file ends within an event", "a whole trace", error);
    if (value == VALUE_BROKEN) {
        s->result->broken++;
        resynchronise(s);
        return true;
    }
    s->result->events++;
    s->sink->event(s->sink->data, text_of(s), line);
    return true;
}

/* Whether the latest event is valid JSON throughout: unescaped brackets in names may have ended it
 * early. */
static bool
is_json(const Scanner *s)
{
    LhExcerpt at = text_of(s), key, value;
    bool broken = false;

    while (lh_excerpt_next(&at, &key, &value, &broken))
        ;
    return !broken;
}

/* Reads the events; the list's `[` has been consumed. */
static bool
read_events(Scanner *s, GError **error)
{
    for (;;) {
        const int c = peek_word(s);

        if (c == ']') {
            take_character(s);
            return true;
        }
        if (c != '{')
            return fail_at(s, "an event, which begins with '{', or the end of the list, ']'",
                           error);
        if (!read_event(s, error))
            return false;
        if (peek_word(s) == ',')
            take_character(s);
        else if (peek(s) != ']' && peek(s) != '{') {
            if (is_json(s))
                return fail_at(s, "',' or ']' after an event", error);
            resynchronise(s);
        }
    }
}

static bool
read_key(Scanner *s, char *key, gsize size, GError **error)
{
    if (peek_word(s) != '"')
        return fail_at(s, "the name of a member, in quotes", error);
    g_string_truncate(s->text, 0);
    take_character(s);
    if (read_string(s, true) != VALUE_WHOLE)
        return fail_events(s, "an unterminated member name", "one on one line, in quotes", error);
    g_string_truncate(s->text, s->text->len - 1);
    g_strlcpy(key, s->text->str, size);
    if (peek_word(s) != ':')
        return fail_at(s, "':' after the name of a member", error);
    take_character(s);
    return true;
}

static bool
read_member(Scanner *s, bool *events, GError **error)
{
    char key[KEY_BYTES_MAX];

    if (!read_key(s, key, sizeof(key), error))
        return false;
    if (strcmp(key, "traceEvents") == 0) {
        *events = true;
        if (peek_word(s) != '[')
            return fail_at(s, "a list of events, '[', as \"traceEvents\"", error);
        take_character(s);
        return read_events(s, error);
    }
    if (read_value(s, true) != VALUE_WHOLE)
        return fail_events(s, "the value of a member of the file cannot be read",
                           "valid JSON of at most 1 MiB beside \"traceEvents\"", error);
    s->sink->member(s->sink->data, (LhExcerpt){ key, strlen(key) }, text_of(s));
    return true;
}

/* Reads the members of the file's object; its `{` has been consumed. */
static bool
read_members(Scanner *s, GError **error)
{
    bool events = false;

    while (peek_word(s) != '}') {
        if (!read_member(s, &events, error))
            return false;
        if (peek_word(s) == ',')
            take_character(s);
        else if (peek(s) != '}')
            return fail_at(s, "',' or '}' after a member of the file", error);
    }
    return events ||
           fail_events(s, "there is no \"traceEvents\"", "a trace, which has this list", error);
}

static bool
read_file(Scanner *s, GError **error)
{
    switch (peek_word(s)) {
    case '{':
        take_character(s);
        return read_members(s, error);
    case '[':
        take_character(s);
        return read_events(s, error);
    default:
        return fail_at(s, "a trace in JSON, which begins with '{' or '['", error);
    }
}

bool
lh_events_read(const char *file, LhEventsRead read, void *read_data, const LhEventsSink *sink,
               LhEventsResult *result, GError **error)
{
    g_autofree Scanner *s = g_new0(Scanner, 1);
    bool ok;

    *result = (LhEventsResult){ 0 };
    s->file = file;
    s->read = read;
    s->read_data = read_data;
    s->sink = sink;
    s->result = result;
    s->line = 1;
    s->checksum = g_checksum_new(G_CHECKSUM_SHA256);
    s->text = g_string_new(NULL);
    ok = read_file(s, error);
    while (ok && fill(s))
        ; /* include the rest in the checksum */
    if (ok && s->failure != NULL)
        ok = fail_events(s, "", "", error);
    if (ok)
        result->sha256 = g_strdup(g_checksum_get_string(s->checksum));
    g_clear_error(&s->failure);
    g_checksum_free(s->checksum);
    g_string_free(s->text, TRUE);
    return ok;
}

/* --- spans --------------------------------------------------------------------------------------
 */

static void
skip_space(LhExcerpt *at)
{
    while (at->length > 0 && is_space((unsigned char)*at->at)) {
        at->at++;
        at->length--;
    }
}

static bool
skip_char(LhExcerpt *at, char c)
{
    skip_space(at);
    if (at->length == 0 || *at->at != c)
        return false;
    at->at++;
    at->length--;
    return true;
}

/* Length of the string at @at, with quotes; 0 if it is unterminated. */
static gsize
string_length(LhExcerpt at)
{
    for (gsize i = 1; i < at.length; i++) {
        if (at.at[i] == '\\')
            i++;
        else if (at.at[i] == '"')
            return i + 1;
    }
    return 0;
}

/* Length of the value at @at; 0 if there is none. */
static gsize
value_length(LhExcerpt at)
{
    char open[DEPTH_MAX];
    guint depth = 0;
    gsize i = 0;

    while (i < at.length) {
        const char c = at.at[i];

        if (depth == 0 && i > 0 && (is_space((unsigned char)c) || strchr(",:}]", c) != NULL))
            return i;
        if (!nest(open, &depth, c))
            return 0;
        if (c == '"') {
            const gsize length = string_length((LhExcerpt){ at.at + i, at.length - i });

            if (length == 0)
                return 0;
            i += length;
        } else {
            i++;
        }
        if (depth == 0 && (c == '}' || c == ']' || c == '"'))
            return i;
    }
    return 0;
}

static bool
take_value(LhExcerpt *at, LhExcerpt *value)
{
    skip_space(at);
    value->at = at->at;
    value->length = value_length(*at);
    at->at += value->length;
    at->length -= value->length;
    return value->length > 0;
}

bool
lh_excerpt_next(LhExcerpt *at, LhExcerpt *key, LhExcerpt *value, bool *broken)
{
    skip_space(at);
    if (at->length > 0 && (*at->at == '{' || *at->at == ','))
        skip_char(at, *at->at);
    if (skip_char(at, '}'))
        return false;
    skip_space(at);
    *broken = at->length == 0 || *at->at != '"' || !take_value(at, key) || !skip_char(at, ':') ||
              !take_value(at, value);
    return !*broken;
}

bool
lh_excerpt_is(LhExcerpt span, const char *text)
{
    const gsize length = strlen(text);

    return span.length == length + 2 && *span.at == '"' && memcmp(span.at + 1, text, length) == 0;
}

/* Character for a backslash and @c; \u sequences are kept as they are. */
static char
unescaped(char c)
{
    switch (c) {
    case 'n':
        return '\n';
    case 't':
        return '\t';
    case 'r':
    case 'b':
    case 'f':
        return ' ';
    default:
        return c;
    }
}

char *
lh_excerpt_text(LhExcerpt span)
{
    g_autoptr(GString) text = g_string_sized_new(span.length);

    if (span.length == 0)
        return g_strdup("");
    if (span.length < 2 || *span.at != '"')
        return g_utf8_make_valid(span.at, (gssize)span.length);
    for (gsize i = 1; i + 1 < span.length; i++) {
        if (span.at[i] == '\\' && i + 2 < span.length)
            g_string_append_c(text, unescaped(span.at[++i]));
        else if (span.at[i] != '\0')
            g_string_append_c(text, span.at[i]);
    }
    return g_utf8_make_valid(text->str, (gssize)text->len);
}

#define NUMBER_CHARS_MAX 64

/* Copies the number's text; false if it is too long for a number. */
static bool
number_text(LhExcerpt span, char *text)
{
    if (span.length >= 2 && *span.at == '"')
        span = (LhExcerpt){ span.at + 1, span.length - 2 };
    if (span.length == 0 || span.length >= NUMBER_CHARS_MAX)
        return false;
    memcpy(text, span.at, span.length);
    text[span.length] = '\0';
    return strspn(text, "0123456789+-.eE") == span.length;
}

static bool
scaled_float(const char *text, int64_t scale, int64_t *value)
{
    char *end;
    const double x = g_ascii_strtod(text, &end) * (double)scale;

    if (end == text || *end != '\0' || !isfinite(x) || fabs(x) >= 9e18)
        return false;
    *value = llround(x);
    return true;
}

/* Appends a digit; false on overflow. */
static bool
add_digit(int64_t *value, int digit)
{
    if (*value > (INT64_MAX - digit) / 10)
        return false;
    *value = *value * 10 + digit;
    return true;
}

bool
lh_excerpt_scaled(LhExcerpt span, int64_t scale, int64_t *value)
{
    char text[NUMBER_CHARS_MAX];
    const char *at = text;
    int64_t whole = 0, part = 0, unit = scale;
    bool half = false;

    if (!number_text(span, text))
        return false;
    if (strpbrk(text, "eE") != NULL)
        return scaled_float(text, scale, value);
    if (*at == '-')
        at++;
    if (!g_ascii_isdigit(*at))
        return false;
    for (; g_ascii_isdigit(*at); at++) {
        if (!add_digit(&whole, *at - '0'))
            return false;
    }
    if (*at == '.') {
        for (at++; g_ascii_isdigit(*at); at++) {
            half = half || (unit == 1 && *at >= '5');
            part += (*at - '0') * (unit / 10);
            unit = unit >= 10 ? unit / 10 : 0; /* further digits are below the rounding digit */
        }
    }
    if (*at != '\0' || whole > (INT64_MAX - scale) / scale)
        return false;
    *value = whole * scale + part + (half ? 1 : 0);
    if (*text == '-')
        *value = -*value;
    return true;
}

bool
lh_excerpt_uint(LhExcerpt span, uint64_t *value)
{
    int64_t number;

    if (!lh_excerpt_scaled(span, 1, &number) || number < 0)
        return false;
    *value = (uint64_t)number;
    return true;
}
