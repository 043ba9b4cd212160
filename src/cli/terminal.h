/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a terminal shows that a file does not: colours.
 */
#pragma once

#include <stdbool.h>

/* The escape sequences that begin and end a stretch of text; empty strings without colours. */
typedef struct {
    const char *heading, *option, *error;
    const char *end;
} LhColours;

/* Those for file descriptor @fd: none unless it is a terminal other than "dumb", and none if the
 * environment's NO_COLOR is set to anything (no-color.org). */
LhColours lh_colours(int fd);
