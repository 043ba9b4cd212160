/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writing results: a file appears whole or not at all, whatever fails and whoever else writes to
 * it.
 *
 * The text goes to a new file of a random name beside the one named, which is flushed to the disk
 * and then takes the name. As with an editor, a symbolic link stays and the file that it points to
 * is replaced, and a file that is replaced passes on its mode and its owner. Where replacing would
 * lose something (other hard links, the owner) or is not allowed (the folder is read-only, the file
 * is a mount point), the file is overwritten, after room for all of the text is reserved. What is
 * no regular file (a pipe, a terminal, /dev/null) is written to directly.
 *
 * Errors are LH_ERROR_RUNTIME and name the path and the cause. A file that is read (file_uses.h) is
 * not written: that is LH_ERROR_USAGE.
 */
#pragma once

#include <glib.h>
#include <stdbool.h>

/*
 * For the beginning of main(). Standard streams that are closed are replaced by some on which
 * nothing can be done, so that no file gets their number and writing to them fails. A file that
 * grows beyond the limit of its size is an error in place of a signal. Signals that end the process
 * (SIGINT, SIGTERM, ...) remove unfinished files and end children first.
 */
void lh_output_init(void);

/*
 * Whether @path can be written to, as far as can be known without changing it: to be called before
 * long work.
 */
bool lh_output_check(const char *path, GError **error);

/* Whether @path is there and is a pipe, a terminal or another device to which bytes are sent: what
 * is written replaces nothing. */
bool lh_output_is_stream(const char *path);

/* Sets @error (LH_ERROR_USAGE), which says what is @allowed in place of @path, and returns false.
 */
bool lh_output_refuse(const char *option, const char *path, const char *allowed, GError **error);

bool lh_output_file(const char *path, const char *text, gsize length, GError **error);
/*
 * A file that is written piece by piece, of any length, and appears as if it had been written at
 * once. A file that can only be overwritten (see above) is written elsewhere first.
 */
typedef struct _LhOutputStream LhOutputStream;

LhOutputStream *lh_output_open(const char *path, GError **error);

/* What fails is said at the end; until then, further pieces are dropped. */
void lh_output_write(LhOutputStream *stream, const char *text, gsize length);

/* Whether all of it was written. If not, the file is as it was before. Frees the stream. */
bool lh_output_close(LhOutputStream *stream, GError **error);

/* Leaves the file as it was before; NULL is allowed. Frees the stream. */
void lh_output_discard(LhOutputStream *stream);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(LhOutputStream, lh_output_discard)

bool lh_output_stdout(const char *text, gsize length, GError **error);

/* Removes the files that are not complete yet: for those who end the process at once. It is safe in
 * signal handlers and allocates nothing. */
void lh_files_discard_unfinished(void);
