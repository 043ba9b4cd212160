/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A result that a command saved as JSON. The command line is read from its stamp, so the result can
 * be computed again and shown in another form. Files that the recorded command line wrote are not
 * written again.
 */
#pragma once

#include "base/json/json.h"
#include "cli/command.h"

struct _LhSaved {
    LhJson *json;
    const LhCommand *command; /* the command that wrote it */
    GPtrArray *argv;          /* of char *, ends with NULL: its command line */
};

/* Loads a result. LH_ERROR_INPUT with file, line and field if it is not a result of a command in
 * @writers (names, NULL-terminated). Caller frees. */
LhSaved *lh_saved_load(const char *path, const char *const *writers, GError **error);
void lh_saved_free(LhSaved *saved);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(LhSaved, lh_saved_free)

/* Parses the recorded command line, without its outputs and the options on how it was computed. The
 * caller clears @line in either case. */
bool lh_saved_line(const LhSaved *saved, LhCommandLine *line, GError **error);

/* Compares @again, the JSON that the same command line gives now, with the saved result, ignoring
 * version, date and paths of inputs. LH_ERROR_INPUT at the first difference. */
bool lh_saved_check(const LhSaved *saved, const GString *again, GError **error);
