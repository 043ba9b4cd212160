/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A file of lines that is only ever appended to, so that long work which is killed at any byte goes
 * on from what it has written. Its first line says what the work is; a last line without its end is
 * dropped. One process writes it at a time.
 *
 * Errors are LH_ERROR_RUNTIME and name the path and the cause, unless said otherwise. A file that
 * is read or written otherwise is LH_ERROR_USAGE (file_uses.h).
 */
#pragma once

#include <glib.h>
#include <stdbool.h>

typedef struct _LhAppendLog LhAppendLog;

/*
 * Opens the file @path, which is made if it is not there, for the work that @first describes: one
 * line, without its end. LH_ERROR_INPUT if the file begins with another one, or is not a regular
 * file. @lines is set to the complete lines behind the first (of char *, without ends); the caller
 * unrefs them. Ends with lh_append_log_close().
 */
LhAppendLog *lh_append_log_open(const char *path, const char *first, GPtrArray **lines,
                                GError **error);

/* Appends a line, given without its end. What fails is said at the end; until then, further lines
 * are dropped. */
void lh_append_log_append(LhAppendLog *journal, const char *line);

/* Whether all of it was written. Frees the journal. */
bool lh_append_log_close(LhAppendLog *journal, GError **error);

/* The same, where nobody asks. NULL is allowed. */
void lh_append_log_free(LhAppendLog *journal);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(LhAppendLog, lh_append_log_free)
