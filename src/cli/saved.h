/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A result that a command has written as JSON: what was asked, read from its own stamp, so that it
 * can be made again and be shown in another form. Nothing that the recorded command line wrote is
 * written again.
 */
#pragma once

#include "base/json/json.h"
#include "cli/command.h"

struct _LhSaved {
    LhJson *json;
    const LhCommand *command; /* that wrote it */
    GPtrArray *argv;          /* of char *, NULL at the end: as it was called */
};

/* LH_ERROR_INPUT with file, line and field for what is no result of a command in @writers
 * (NULL-terminated), the names of commands. Caller frees. */
LhSaved *lh_saved_load(const char *path, const char *const *writers, GError **error);
void lh_saved_free(LhSaved *saved);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(LhSaved, lh_saved_free)

/* The command line that asked for it, without what it wrote and how it was worked out. The caller
 * clears @line in either case. */
bool lh_saved_line(const LhSaved *saved, LhCommandLine *line, GError **error);

/* Whether @again, the JSON that the command makes of the line now, is what was saved, but for the
 * version of the program, the date and where files are. LH_ERROR_INPUT at the first difference. */
bool lh_saved_check(const LhSaved *saved, const GString *again, GError **error);
