/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pages for man(1), generated from the tables of commands and options.
 */
#pragma once

#include "cli/command.h"

/* The man page of a command (longhaul-compare.1), or of longhaul itself (NULL). Caller frees. */
char *lh_help_man(const LhCommand *command);
