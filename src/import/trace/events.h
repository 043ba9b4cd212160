/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The events of a trace in JSON, one after another, of a file of any length: what stands around
 * them is read past. PyTorch's profiler writes names that are not escaped now and then, so an event
 * that is no JSON is counted and left out, and reading goes on at the next line that begins one.
 */
#pragma once

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

/* Part of a text. */
typedef struct {
    const char *at;
    gsize length;
} LhExcerpt;

typedef struct {
    /* An event: the text of its object, from `{` to `}`, of valid nesting; @line: where it begins.
     * Spans end with the call. */
    void (*event)(void *data, LhExcerpt text, uint64_t line);
    /* Another member of the file's object. */
    void (*member)(void *data, LhExcerpt key, LhExcerpt value);
    void *data;
} LhEventsSink;

typedef struct {
    uint64_t events; /* that were told */
    uint64_t broken; /* that were left out */
    char *sha256;    /* of what was read; caller frees */
} LhEventsResult;

#define LH_EVENT_BYTES_MAX 1048576 /* an event, or another member that is told of */

/* The next bytes of a file, at most @size; 0 at its end, -1 with @error if it cannot be read. */
typedef gssize (*LhEventsRead)(void *data, char *into, gsize size, GError **error);

/* Reads to the end. LH_ERROR_INPUT, "FILE:LINE: error: ...", if this is no trace or ends early. */
bool lh_events_read(const char *file, LhEventsRead read, void *read_data, const LhEventsSink *sink,
                    LhEventsResult *result, GError **error);

/*
 * The members of an object's text one after another: @at begins at the object's first byte. False
 * at its end, or if it is no JSON: then *@broken is set. Nested values are spans of their own.
 */
bool lh_excerpt_next(LhExcerpt *at, LhExcerpt *key, LhExcerpt *value, bool *broken);

/* Whether it is the string @text, quotes aside and without escapes. */
bool lh_excerpt_is(LhExcerpt span, const char *text);

/* The string without its quotes and escapes; any other value as it stands. Not valid UTF-8 becomes
 * U+FFFD. Caller frees. */
char *lh_excerpt_text(LhExcerpt span);

/* A number, or a string that holds one, of which @scale is one: "1.5" of scale 1000 is 1500. Exact
 * for decimals, rounded half up. False if it is none, or does not fit. */
bool lh_excerpt_scaled(LhExcerpt span, int64_t scale, int64_t *value);
bool lh_excerpt_uint(LhExcerpt span, uint64_t *value);
