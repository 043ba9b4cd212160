/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An append-only file of lines, so that long work can resume after being killed at any byte. Its
 * first line identifies the work; an incomplete last line is dropped. Only one process writes it at
 * a time.
 *
 * Errors are LH_ERROR_RUNTIME with path and cause, unless stated otherwise. A file that is
 * otherwise read or written is LH_ERROR_USAGE (file_uses.h).
 */
#pragma once

#include <glib.h>
#include <stdbool.h>

typedef struct _LhAppendLog LhAppendLog;

/*
 * Opens or creates @path for the work that @first identifies: one line, without its line end.
 * LH_ERROR_INPUT if the file begins with another line, or is not a regular file. @lines is set to
 * the complete lines after the first (of char *, without line ends); caller unrefs. Ends with
 * lh_append_log_close().
 */
LhAppendLog *lh_append_log_open(const char *path, const char *first, GPtrArray **lines,
                                GError **error);

/* Appends a line, given without its line end. A failure is reported by lh_append_log_close(); until
 * then, further lines are dropped. */
void lh_append_log_append(LhAppendLog *journal, const char *line);

/* Closes and frees the log; false with @error if a write failed. */
bool lh_append_log_close(LhAppendLog *journal, GError **error);

/* The same without reporting errors. NULL is allowed. */
void lh_append_log_free(LhAppendLog *journal);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(LhAppendLog, lh_append_log_free)
