/* SPDX-License-Identifier: Apache-2.0 */
/*
 * longhaul: finds the command and runs it. Only this file prints errors and turns a command's
 * answer into the exit status.
 */
#include "base/error.h"
#include "base/escape.h"
#include "base/files/file_uses.h"
#include "base/files/output.h"
#include "cli/fatal.h"
#include "cli/help.h"
#include "cli/interrupt.h"
#include "cli/job.h"
#include "cli/options.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Returns the end of the location in "path:line:column: error: ...", which is printed without the
 * program's name; NULL: no location. */
static const char *
find_place_end(const char *message)
{
    const char *mark = strstr(message, ": error: ");

    return mark != NULL && mark > message ? mark : NULL;
}

static void
report(const GError *error)
{
    g_autofree char *message = lh_escaped_lines(error->message);
    const LhColours colours = lh_colours(STDERR_FILENO);
    const char *place = find_place_end(message);
    const int place_length = place == NULL ? 0 : (int)(place - message);

    fprintf(stderr, "%.*s: %serror:%s %s\n", place == NULL ? INT_MAX : place_length,
            place == NULL ? "longhaul" : message, colours.error, colours.end,
            place == NULL ? message : place + strlen(": error: "));
}

static LhAnswer
print_help(const LhCommand *command, bool all, GError **error)
{
    g_autofree char *help = lh_help_text(command, all, lh_colours(STDOUT_FILENO));

    return lh_output_stdout(help, strlen(help), error) ? LH_ANSWER_YES : LH_ANSWER_FAILED;
}

static LhAnswer
run_command(const LhCommand *command, const char *const *argv, char *const *arguments,
            GError **error)
{
    LhCommandLine line = { .command = command, .argv = argv };
    GError *failure = NULL;
    LhHelpExtent help = LH_HELP_NONE;
    LhAnswer answer = LH_ANSWER_FAILED;

    lh_file_uses_clear();
    if (!lh_options_parse(command, arguments, &line, &help, &failure))
        lh_job_refuse(command, arguments, failure);
    else if (help != LH_HELP_NONE)
        answer = print_help(command, help == LH_HELP_ALL, &failure);
    else
        answer = lh_job_run(&line, &failure);
    lh_interrupt_end();
    if (failure != NULL)
        g_propagate_error(error, failure);
    lh_options_clear(command, &line);
    return answer;
}

typedef struct {
    gboolean help, all, version;
} TopOptions;

/* Parses the options before the command; GOption stops at the first word that is not an option. */
static bool
parse_top(char ***words, TopOptions *top, GError **error)
{
    const GOptionEntry entries[] = {
        { "help", 'h', 0, G_OPTION_ARG_NONE, &top->help, NULL, NULL },
        { "all", '\0', 0, G_OPTION_ARG_NONE, &top->all, NULL, NULL },
        { "version", 'V', 0, G_OPTION_ARG_NONE, &top->version, NULL, NULL },
        { 0 },
    };
    g_autoptr(GOptionContext) context = g_option_context_new(NULL);
    g_autoptr(GError) cause = NULL;

    g_option_context_set_strict_posix(context, TRUE);
    g_option_context_set_help_enabled(context, FALSE);
    g_option_context_add_main_entries(context, entries, NULL);
    if (g_option_context_parse_strv(context, words, &cause) && (top->help || !top->all))
        return true;
    g_set_error(error, LH_ERROR, LH_ERROR_USAGE,
                "there is no option %s before a command; see longhaul help",
                cause == NULL ? "--all" : strrchr(cause->message, ' ') + 1);
    return false;
}

static LhAnswer
run_command_line(int argc, char **argv, GError **error)
{
    g_autoptr(GStrvBuilder) builder = g_strv_builder_new();
    g_auto(GStrv) words = NULL;
    TopOptions top = { .help = FALSE };
    const LhCommand *command;

    for (int i = 0; i < argc; i++)
        g_strv_builder_add(builder, argv[i]);
    words = g_strv_builder_end(builder);
    if (!parse_top(&words, &top, error))
        return LH_ANSWER_FAILED;
    if (top.help)
        return print_help(NULL, top.all, error);
    if (!top.version && (words[0] == NULL || words[1] == NULL)) {
        g_set_error(error, LH_ERROR, LH_ERROR_USAGE, "a command is missing; see longhaul help");
        return LH_ANSWER_FAILED;
    }
    command = lh_command_find(top.version ? "version" : words[1], error);
    if (command == NULL)
        return LH_ANSWER_FAILED;
    return run_command(command, (const char *const *)argv, top.version ? &words[1] : &words[2],
                       error);
}

int
main(int argc, char **argv)
{
    g_autoptr(GError) error = NULL;
    LhAnswer answer;

    lh_fatal_install(lh_files_discard_unfinished);
    lh_output_init();
    answer = run_command_line(argc, argv, &error);
    if (error != NULL)
        report(error);
    return lh_answer_status(answer, error);
}
