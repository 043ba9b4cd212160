/*
 * longhaul help: prints the help of a command or of longhaul, or a completion script.
 */
#include "base/output.h"
#include "cli/options.h"

#include <string.h>

static int
run(const LhCommandLine *line, GError **error)
{
    g_autoptr(GString) out = g_string_new(NULL);
    const char *name = line->arguments->len > 0 ? g_ptr_array_index(line->arguments, 0) : NULL;
    const LhCommand *command = NULL;
    g_autofree char *help = NULL;

    if (name != NULL && strcmp(name, "completion") == 0) {
        lh_options_completion(out);
        return lh_output_stdout(out->str, out->len, error) ? 0 : 1;
    }
    if (name != NULL) {
        command = lh_command_find(name, error);
        if (command == NULL)
            return 0;
    }
    help = lh_options_help(command);
    g_string_append(out, help);
    return lh_output_stdout(out->str, out->len, error) ? 0 : 1;
}

const LhCommand lh_command_help = {
    .name = "help",
    .arguments = "[COMMAND]",
    .summary = "Explain a command and list its options.",
    .details = "longhaul help completion prints a completion script for bash.\n",
    .arguments_max = 1,
    .run = run,
};
