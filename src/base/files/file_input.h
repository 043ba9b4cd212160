/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads files. Every file opened here is an input of this command and is protected from its outputs
 * (file_uses.h); only system files are read elsewhere.
 */
#pragma once

#include <glib.h>
#include <stdbool.h>
#include <stdio.h>

/* NULL with LH_ERROR_INPUT and the cause, or LH_ERROR_USAGE if the command writes the file. Caller
 * closes. */
FILE *lh_input_open(const char *path, GError **error);

/*
 * Reads the whole file, at most @most bytes (a whole number of MiB), and appends a NUL. Memory
 * grows with the contents: the size of a pipe is unknown, and /dev/zero has no end. Errors as
 * above. Caller frees.
 */
char *lh_input_read(const char *path, gsize most, gsize *length, GError **error);
