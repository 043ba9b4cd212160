/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Colours on terminals.
 */
#pragma once

#include <stdbool.h>

/* Escape sequences that begin and end coloured text; empty strings without colours. */
typedef struct {
    const char *heading, *option, *error;
    const char *end;
} LhColours;

/* Colours for file descriptor @fd: none unless it is a terminal other than "dumb", and none if
 * NO_COLOR is set in the environment (no-color.org). */
LhColours lh_colours(int fd);
