/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reading files. Whatever is opened here is read by this command, and nothing that it writes may
 * overwrite it (file_uses.h); the only other readers are of files of the system's.
 */
#pragma once

#include <glib.h>
#include <stdbool.h>
#include <stdio.h>

/* NULL with LH_ERROR_INPUT, which says why it cannot be read, or LH_ERROR_USAGE if the command
 * writes it. Caller closes. */
FILE *lh_input_open(const char *path, GError **error);

/*
 * The whole of it, @most bytes at most, which are whole MiB, and a NUL behind. Memory grows with
 * what is there: the size of a pipe is not known, and /dev/zero has none. Errors as above. Caller
 * frees.
 */
char *lh_input_read(const char *path, gsize most, gsize *length, GError **error);
