/*
 * Writing results: a file appears whole or not at all.
 */
#pragma once

#include <glib.h>
#include <stdbool.h>

/*
 * Writes @text to @path: to a temporary name beside it, then renamed over it. What is not a regular
 * file (a pipe, a terminal) is written directly; a symbolic link is followed. LH_ERROR_RUNTIME.
 */
bool lh_output_file(const char *path, const char *text, gsize length, GError **error);

/* Writes @text to standard output and flushes it. LH_ERROR_RUNTIME. */
bool lh_output_stdout(const char *text, gsize length, GError **error);
