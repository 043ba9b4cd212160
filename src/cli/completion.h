/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shell completion, generated from the tables of commands and options.
 */
#pragma once

#include <glib.h>

/* "bash", "zsh", "fish"; NULL-terminated. */
extern const char *const lh_shell_names[];

/* Appends the completion script of the shell lh_shell_names[@shell]. */
void lh_help_completion(int shell, GString *out);
