/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A text that is read from its beginning to its end, and what is said of a place in it.
 */
#pragma once

#include <glib.h>
#include <stdbool.h>

typedef struct {
    const char *file;       /* as messages name it */
    const char *at, *end;   /* what is left */
    const char *line_start; /* of the line that is being read */
    guint line;             /* from 1 */
    GError **error;
} LhTextReader;

/* Sets the error, LH_ERROR_INPUT: "FILE:LINE:COLUMN: error: ..." at @place, which is in the line
 * that is being read; columns are characters, as editors count them. Returns false. */
bool lh_text_fail(const LhTextReader *r, const char *place, const char *format, ...)
    G_GNUC_PRINTF(3, 4);
