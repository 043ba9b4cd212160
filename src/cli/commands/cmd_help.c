/* SPDX-License-Identifier: Apache-2.0 */
/*
 * longhaul help: prints the help of a command or of longhaul, a completion script, or the
 * JSON Schema of a format.
 */
#include "base/error.h"
#include "base/files/output.h"
#include "cli/commands/file_formats.h"
#include "cli/commands/help_json.h"
#include "cli/completion.h"
#include "cli/help.h"
#include "cli/man.h"

#include <stddef.h>
#include <string.h>
#include <unistd.h>

typedef struct {
    int format; /* LhHelpFormat */
    bool all;
} HelpOptions;

static const LhField help_options[] = {
    { .name = "format",
      .category = LH_ABOUT_OUTPUT,
      .type = LH_FIELD_CHOICE,
      .offset = offsetof(HelpOptions, format),
      .choices = lh_help_format_names,
      .description = "text (default); man: a page for man; json: every option of every command, "
                     "for programs." },
    { .name = "all",
      .category = LH_ABOUT_OUTPUT,
      .type = LH_FIELD_BOOL,
      .offset = offsetof(HelpOptions, all),
      .description = "Show every option, not only the common ones; without a command, every option "
                     "of every command." },
    { .name = NULL },
};

static const char *
argument(const LhCommandLine *line, guint index)
{
    return index < line->arguments->len ? g_ptr_array_index(line->arguments, index) : NULL;
}

/* Appends the completion script of the shell named by the second argument; default bash. */
static bool
append_completion(const LhCommandLine *line, GString *out, GError **error)
{
    const char *name = argument(line, 1);
    g_autofree char *all = NULL;

    for (int shell = 0; lh_shell_names[shell] != NULL; shell++) {
        if (name != NULL && strcmp(lh_shell_names[shell], name) != 0)
            continue;
        lh_help_completion(shell, out);
        return true;
    }
    all = g_strjoinv(", ", (char **)(void *)lh_shell_names);
    g_set_error(error, LH_ERROR, LH_ERROR_USAGE,
                "help completion: unknown shell \"%.60s\"; known: %s", name, all);
    return false;
}

/* Appends the JSON Schema of the format that the second argument names. */
static bool
append_schema(const LhCommandLine *line, GString *out, GError **error)
{
    const char *name = argument(line, 1);
    g_autofree char *schema = lh_file_format_schema(name != NULL ? name : "", error);

    if (schema != NULL)
        g_string_append(out, schema);
    return schema != NULL;
}

static bool
explain(const LhCommandLine *line, GString *out, GError **error)
{
    const HelpOptions *o = line->options;
    const char *name = argument(line, 0);
    const LhCommand *command = name == NULL ? NULL : lh_command_find(name, error);
    const LhStamp stamp = lh_command_stamp(line);
    g_autofree char *text = NULL;

    if (name != NULL && command == NULL)
        return false;
    if (argument(line, 1) != NULL) {
        g_set_error(error, LH_ERROR, LH_ERROR_USAGE, "help: unexpected argument \"%.60s\"",
                    argument(line, 1));
        return false;
    }
    if (o->format == LH_HELP_JSON) {
        lh_help_json(command, &stamp, out);
        return true;
    }
    text = o->format == LH_HELP_MAN ? lh_help_man(command)
                                    : lh_help_text(command, o->all, lh_colours(STDOUT_FILENO));
    g_string_append(out, text);
    return true;
}

/* Pages and listings always have every option; scripts and schemas are not help of a command. */
static bool
check_help_options(const LhCommandLine *line, bool of_command, GError **error)
{
    const HelpOptions *o = line->options;

    if (!of_command && (o->all || o->format != LH_HELP_TEXT)) {
        g_set_error(error, LH_ERROR, LH_ERROR_USAGE,
                    "help %s: --all and --format apply only to the help of commands",
                    argument(line, 0));
        return false;
    }
    if (o->all && o->format != LH_HELP_TEXT) {
        g_set_error(error, LH_ERROR, LH_ERROR_USAGE,
                    "--all applies only to help as text; %s always has every option",
                    lh_help_format_names[o->format]);
        return false;
    }
    return true;
}

static LhAnswer
run_help(const LhCommandLine *line, GError **error)
{
    g_autoptr(GString) out = g_string_new(NULL);
    const char *of = argument(line, 0);
    bool (*append)(const LhCommandLine *, GString *, GError **) =
        g_strcmp0(of, "completion") == 0 ? append_completion
        : g_strcmp0(of, "schema") == 0   ? append_schema
                                         : explain;

    if (!check_help_options(line, append == explain, error) || !append(line, out, error))
        return LH_ANSWER_FAILED;
    return lh_output_stdout(out->str, out->len, error) ? LH_ANSWER_YES : LH_ANSWER_FAILED;
}

const LhCommand lh_command_help = {
    .name = "help",
    .arguments = "[COMMAND | completion SHELL | schema FORMAT] [OPTIONS]",
    .summary = "Explain a command and list its options.",
    .details = "help completion prints a completion script for bash, zsh or fish. Meson installs\n"
               "these scripts and the man pages, longhaul.1 and one for each command. help\n"
               "schema prints the JSON Schema of a file that longhaul reads or writes (`longhaul\n"
               "list formats`); it is installed, too.\n\n"
               "  longhaul help compare\n"
               "  longhaul help compare --all\n"
               "  longhaul help compare --format man | man -l -\n"
               "  source <(longhaul help completion bash)\n"
               "  longhaul help schema result\n",
    .options = help_options,
    .options_size = sizeof(HelpOptions),
    .arguments_max = 2,
    .names = "commands",
    .run = run_help,
};
