/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Man pages, in the man(7) macros that every man(1) formats.
 */
#include "cli/man.h"
#include "cli/help.h"
#include "cli/options.h"
#include "config.h"
#include "scenario/setting.h"

#include <string.h>

#define LINE_WIDTH 72 /* before escaping; escaped lines may be longer */

/* Appends @text escaped so that roff prints it literally, unless it begins a line. */
static void
append_text(GString *out, const char *text)
{
    for (const char *c = text; *c != '\0'; c++) {
        if (*c == '\\')
            g_string_append(out, "\\e");
        else if (*c == '-')
            g_string_append(out, "\\-");
        else
            g_string_append_c(out, *c);
    }
}

static void
append_line(GString *out, const char *text)
{
    if (text[0] == '.' || text[0] == '\'')
        g_string_append(out, "\\&");
    append_text(out, text);
    g_string_append_c(out, '\n');
}

/* Appends a macro with one quoted argument. */
static void
append_macro(GString *out, const char *macro, const char *argument)
{
    g_string_append_printf(out, ".%s \"", macro);
    append_text(out, argument);
    g_string_append(out, "\"\n");
}

static void
write_title(GString *out, const char *name)
{
    g_autofree char *upper = g_ascii_strup(name, -1);

    g_string_append(out, ".TH ");
    append_text(out, upper);
    g_string_append(out, " 1 \"\" \"longhaul " LH_VERSION "\" \"User Commands\"\n");
}

/* Appends @text as lines for roff to fill; each sentence begins a line, as roff expects. */
static void
append_filled(GString *out, const char *text)
{
    g_auto(GStrv) words = g_strsplit(text, " ", -1);
    g_autoptr(GString) line = g_string_new(NULL);

    for (char **word = words; *word != NULL; word++) {
        const bool sentence = g_str_has_suffix(line->str, ".");

        if (line->len > 0 && (sentence || line->len + 1 + strlen(*word) > LINE_WIDTH)) {
            append_line(out, line->str);
            g_string_truncate(line, 0);
        }
        g_string_append_printf(line, "%s%s", line->len > 0 ? " " : "", *word);
    }
    append_line(out, line->str);
}

typedef struct {
    GString *out;
    const LhCommand *command;
    const char *heading; /* the last one written */
} ManWriter;

static void
write_options_heading(ManWriter *w)
{
    append_macro(w->out, "SH", "OPTIONS");
    if (lh_help_note(w->command) != NULL)
        append_line(w->out, lh_help_note(w->command));
}

static void
write_man_option(const LhHelpOption *entry, void *data)
{
    ManWriter *w = data;
    const LhField *field = entry->field;
    g_autofree char *option = lh_setting_option(field);
    g_autofree char *placeholder = lh_setting_placeholder(field);
    g_autofree char *description = lh_options_description(w->command, field);

    if (w->heading == NULL)
        write_options_heading(w);
    if (entry->heading != w->heading)
        append_macro(w->out, "SS", entry->heading);
    w->heading = entry->heading;
    g_string_append(w->out, ".TP\n\\fB");
    if (lh_options_letter(field) != 0)
        g_string_append_printf(w->out, "\\-%c\\fR, \\fB", lh_options_letter(field));
    append_text(w->out, option);
    g_string_append(w->out, "\\fR");
    if (!lh_setting_is_flag(field)) {
        g_string_append(w->out, " \\fI");
        append_text(w->out, placeholder);
        g_string_append(w->out, "\\fR");
    }
    g_string_append_c(w->out, '\n');
    append_filled(w->out, description);
}

/* Whether a line is an example: it begins with two spaces and is printed verbatim. */
static bool
is_example(const char *line)
{
    return g_str_has_prefix(line, "  ");
}

static void
write_details(GString *out, const char *details)
{
    g_auto(GStrv) lines = g_strsplit(details == NULL ? "" : details, "\n", -1);
    bool example = false, gap = false;

    for (char **line = lines; *line != NULL; line++) {
        if ((*line)[0] == '\0') {
            gap = true;
            continue;
        }
        if (example && !is_example(*line))
            g_string_append(out, ".EE\n.RE\n");
        if (gap && !is_example(*line))
            g_string_append(out, ".PP\n");
        if (!example && is_example(*line))
            g_string_append(out, ".PP\n.RS 4\n.EX\n");
        example = is_example(*line);
        gap = false;
        append_line(out, example ? *line + strlen("  ") : *line);
    }
    if (example)
        g_string_append(out, ".EE\n.RE\n");
}

static void
write_statuses(GString *out)
{
    append_macro(out, "SH", "EXIT STATUS");
    for (guint i = 0; i < LH_EXIT_STATUSES; i++) {
        g_string_append_printf(out, ".TP\n%u\n", i);
        append_line(out, lh_exit_meanings[i]);
    }
}

static void
write_environment(GString *out)
{
    static const struct {
        const char *name, *meaning;
    } variables[] = {
        { "LONGHAUL_DATA_DIR",
          "Folder of topologies, devices, models and scenarios; replaces " LH_DATA_DIR "." },
        { "LONGHAUL_SECRET_FILE, LONGHAUL_SECRET",
          "Secret by which processes that connect over TCP authenticate to each other: a file that "
          "only its owner can read, or the secret itself." },
        { "LONGHAUL_SOCKET_IFNAME", "Prefixes of network interface names, separated by commas: "
                                    "processes listen over TCP on these interfaces only." },
        { "NO_COLOR", "If set, output is not coloured." },
        { "SOURCE_DATE_EPOCH", "Timestamp of outputs, in seconds since 1970." },
    };

    append_macro(out, "SH", "ENVIRONMENT");
    for (guint i = 0; i < G_N_ELEMENTS(variables); i++) {
        append_macro(out, "TP\n.B", variables[i].name);
        append_filled(out, variables[i].meaning);
    }
}

static void
write_see_also(GString *out, const LhCommand *command)
{
    g_autoptr(GString) pages = g_string_new(NULL);

    append_macro(out, "SH", "SEE ALSO");
    if (command != NULL)
        g_string_append(pages, ".BR longhaul (1)");
    for (guint i = 0; command == NULL && lh_commands[i] != NULL; i++)
        g_string_append_printf(pages, "%s.BR longhaul\\-%s (1)", pages->len > 0 ? " ,\n" : "",
                               lh_commands[i]->name);
    g_string_append_printf(out, "%s\n", pages->str);
}

static void
write_man_overview(GString *out)
{
    write_title(out, "longhaul");
    append_macro(out, "SH", "NAME");
    append_line(out, "longhaul - predict the performance of attention distributed over many GPUs");
    append_macro(out, "SH", "SYNOPSIS");
    g_string_append(out, ".B longhaul\n.I COMMAND\n.RI [ OPTIONS ]\n");
    append_macro(out, "SH", "DESCRIPTION");
    append_filled(out, lh_help_purpose);
    append_macro(out, "SH", "COMMANDS");
    for (guint i = 0; lh_commands[i] != NULL; i++) {
        append_macro(out, "TP\n.B", lh_commands[i]->name);
        append_line(out, lh_commands[i]->summary);
    }
}

static void
write_command(GString *out, const LhCommand *command)
{
    g_autofree char *name = g_strdup_printf("longhaul-%s", command->name);
    g_autofree char *summary = g_strdup_printf("%s - %s", name, command->summary);
    ManWriter w = { .out = out, .command = command };

    if (g_str_has_suffix(summary, "."))
        summary[strlen(summary) - 1] = '\0';
    write_title(out, name);
    append_macro(out, "SH", "NAME");
    append_line(out, summary);
    append_macro(out, "SH", "SYNOPSIS");
    append_macro(out, "B", "longhaul");
    append_macro(out, "B", command->name);
    if (command->arguments[0] != '\0')
        append_line(out, command->arguments);
    append_macro(out, "SH", "DESCRIPTION");
    if (command->details == NULL)
        append_line(out, command->summary);
    write_details(out, command->details);
    lh_help_options(command, true, write_man_option, &w);
}

char *
lh_help_man(const LhCommand *command)
{
    g_autoptr(GString) out = g_string_new(NULL);

    if (command == NULL)
        write_man_overview(out);
    else
        write_command(out, command);
    write_statuses(out);
    write_environment(out);
    write_see_also(out, command);
    return g_string_free(g_steal_pointer(&out), FALSE);
}
