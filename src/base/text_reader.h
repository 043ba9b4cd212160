/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A text read from start to end, with messages about positions in it.
 */
#pragma once

#include <glib.h>
#include <stdbool.h>

typedef struct {
    const char *file;       /* its name in messages */
    const char *at, *end;   /* the rest of the text */
    const char *line_start; /* of the current line */
    guint line;             /* from 1 */
    GError **error;
} LhTextReader;

/* Sets the error, LH_ERROR_INPUT: "FILE:LINE:COLUMN: error: ..." at @place, which must be in the
 * current line; columns are characters, as in editors. Returns false. */
bool lh_text_fail(const LhTextReader *r, const char *place, const char *format, ...)
    G_GNUC_PRINTF(3, 4);
