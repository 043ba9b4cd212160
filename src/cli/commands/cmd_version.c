/* SPDX-License-Identifier: Apache-2.0 */
/*
 * longhaul version: prints the versions of longhaul and of GLib.
 */
#include "base/files/output.h"
#include "cli/command.h"
#include "config.h"

static LhAnswer
run_version(const LhCommandLine *line, GError **error)
{
    g_autoptr(GString) out = g_string_new(NULL);

    (void)line;
    g_string_append_printf(out, "longhaul %s (GLib %u.%u.%u)\n", LH_VERSION, glib_major_version,
                           glib_minor_version, glib_micro_version);
    return lh_output_stdout(out->str, out->len, error) ? LH_ANSWER_YES : LH_ANSWER_FAILED;
}

const LhCommand lh_command_version = {
    .name = "version",
    .arguments = "",
    .summary = "Print the versions of longhaul and of GLib.",
    .run = run_version,
};
