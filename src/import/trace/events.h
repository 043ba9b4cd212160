/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Streaming reader of the events of a JSON trace of any size; everything around them is skipped.
 * PyTorch's profiler sometimes writes names without escapes. An event that is not valid JSON is
 * counted and skipped, and reading continues at the next line that begins an event.
 */
#pragma once

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

/* A span of text. */
typedef struct {
    const char *at;
    gsize length;
} LhExcerpt;

typedef struct {
    /* Receives an event: the text of its object, from `{` to `}`, with valid nesting; @line: its
     * first line. Spans are valid during the call only. */
    void (*event)(void *data, LhExcerpt text, uint64_t line);
    /* Receives another member of the file's object. */
    void (*member)(void *data, LhExcerpt key, LhExcerpt value);
    void *data;
} LhEventsSink;

typedef struct {
    uint64_t events; /* events passed to the sink */
    uint64_t broken; /* events skipped as invalid */
    char *sha256;    /* of the bytes read; caller frees */
} LhEventsResult;

#define LH_EVENT_BYTES_MAX 1048576 /* of an event, or of another member passed to the sink */

/* Reads at most @size bytes. Returns 0 at the end of the file, -1 with @error on failure. */
typedef gssize (*LhEventsRead)(void *data, char *into, gsize size, GError **error);

/* Reads all events. LH_ERROR_INPUT, "FILE:LINE: error: ...", if the file is not a trace or ends
 * early. */
bool lh_events_read(const char *file, LhEventsRead read, void *read_data, const LhEventsSink *sink,
                    LhEventsResult *result, GError **error);

/*
 * Iterates over the members of an object: @at begins at the object's first byte and is advanced.
 * False at the end, or with *@broken set if the text is not valid JSON. Nested values are spans of
 * their own.
 */
bool lh_excerpt_next(LhExcerpt *at, LhExcerpt *key, LhExcerpt *value, bool *broken);

/* Whether it is the string @text, in quotes and without escapes. */
bool lh_excerpt_is(LhExcerpt span, const char *text);

/* The string without quotes and escapes; other values unchanged. Invalid UTF-8 becomes U+FFFD.
 * Caller frees. */
char *lh_excerpt_text(LhExcerpt span);

/* Parses a number, or a string with one, times @scale: "1.5" with scale 1000 is 1500. Exact for
 * decimals, rounded half up. False if it is not a number or does not fit. */
bool lh_excerpt_scaled(LhExcerpt span, int64_t scale, int64_t *value);
bool lh_excerpt_uint(LhExcerpt span, uint64_t *value);
