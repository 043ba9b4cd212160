/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes results: a file appears completely or not at all, in spite of failures and concurrent
 * writers.
 *
 * The text goes to a new file with a random name in the same folder, which is flushed to disk and
 * then renamed. As with an editor, a symbolic link stays and its target is replaced; the new file
 * inherits the old one's mode and owner. Where replacing would lose something (other hard links,
 * the owner) or is not permitted (read-only folder, mount point), the file is overwritten, after
 * space for all of the text is reserved. Special files (a pipe, a terminal, /dev/null) are written
 * directly.
 *
 * Errors are LH_ERROR_RUNTIME with path and cause. A file that is an input (file_uses.h) is not
 * written: LH_ERROR_USAGE.
 */
#pragma once

#include <glib.h>
#include <stdbool.h>

/*
 * Call at the start of main(). Opens closed standard streams so that no file gets their number and
 * writing to them fails. Turns exceeding the file size limit into an error instead of a signal.
 * Makes terminating signals (SIGINT, SIGTERM, ...) first remove unfinished files and kill children.
 */
void lh_output_init(void);

/*
 * Checks that @path can be written, as far as possible without changing it: for use before long
 * work.
 */
bool lh_output_check(const char *path, GError **error);

/* Whether @path is an existing pipe, terminal or device: writing to it replaces nothing. */
bool lh_output_is_stream(const char *path);

/* Sets @error (LH_ERROR_USAGE) with what is @allowed in place of @path; returns false. */
bool lh_output_refuse(const char *option, const char *path, const char *allowed, GError **error);

bool lh_output_file(const char *path, const char *text, gsize length, GError **error);
/*
 * A file written in pieces, of any length; it appears as if written at once. A file that can only
 * be overwritten (see above) is first written elsewhere.
 */
typedef struct _LhOutputStream LhOutputStream;

LhOutputStream *lh_output_open(const char *path, GError **error);

/* A failure is reported by lh_output_close(); until then, further pieces are dropped. */
void lh_output_write(LhOutputStream *stream, const char *text, gsize length);

/* Completes the file and frees the stream. On failure the file is as before. */
bool lh_output_close(LhOutputStream *stream, GError **error);

/* Leaves the file as it was before; NULL is allowed. Frees the stream. */
void lh_output_discard(LhOutputStream *stream);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(LhOutputStream, lh_output_discard)

bool lh_output_stdout(const char *text, gsize length, GError **error);

/* Removes unfinished files: for code that exits at once. Async-signal-safe; allocates nothing. */
void lh_files_discard_unfinished(void);
