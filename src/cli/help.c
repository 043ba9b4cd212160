/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Help for terminals. Descriptions are one text in the tables and are broken here; the details of a
 * command come in lines that fit.
 */
#include "cli/help.h"

#include "cli/options.h"
#include "scenario/setting.h"

#include <string.h>

#define WIDTH 80
#define OPTION_WIDTH 28  /* of the column of options */
#define COMMAND_WIDTH 14 /* of the column of commands */

const char *const lh_help_format_names[] = { "text", "man", "json", NULL };

G_STATIC_ASSERT(G_N_ELEMENTS(lh_help_format_names) == LH_HELP_FORMATS + 1);

const char *const lh_exit_meanings[LH_EXIT_STATUSES] = {
    "success",
    "the answer is no: refused, not proven, out of memory, wrong",
    "the command line cannot be understood",
    "a file or a value cannot be used",
    "something failed while running",
};

const char *const lh_help_purpose =
    "longhaul predicts how long-context training runs behave when the attention of one sequence is "
    "distributed over many GPUs.";

const char *
lh_help_heading(const LhCommand *command, const LhField *field, bool scenario)
{
    if (!scenario)
        return "Options";
    if ((field->flags & LH_SCENARIO_OF_SCHEDULES) != 0)
        return "Options of some schedules; at least one schedule in question must read them";
    return command->no_file ? "What to work on"
                            : "What to work on (these options replace what the scenario file says)";
}

/* Appends the words of @text in lines of at most WIDTH columns; the first begins at @column, the
 * others behind @indent spaces. */
static void
append_wrapped(GString *out, const char *text, gsize column, gsize indent)
{
    g_auto(GStrv) words = g_strsplit(text, " ", -1);

    for (char **word = words; *word != NULL; word++) {
        const gsize length = (gsize)g_utf8_strlen(*word, -1);

        if (word != words && column + 1 + length > WIDTH) {
            g_string_append_printf(out, "\n%*s", (int)indent, "");
            column = indent;
        } else if (word != words) {
            g_string_append_c(out, ' ');
            column++;
        }
        g_string_append(out, *word);
        column += length;
    }
    g_string_append_c(out, '\n');
}

typedef struct {
    GString *out;
    LhColours colours;
    const LhCommand *command; /* NULL: all */
    const char *heading;      /* the last one written */
} HelpWriter;

static void
write_heading(HelpWriter *w, const char *heading)
{
    if (heading != w->heading)
        g_string_append_printf(w->out, "\n%s%s:%s\n", w->colours.heading, heading, w->colours.end);
    w->heading = heading;
}

static void
write_option(const LhField *field, bool scenario, void *data)
{
    HelpWriter *w = data;
    g_autofree char *option = lh_setting_option(field);
    g_autofree char *placeholder = lh_setting_placeholder(field);
    g_autofree char *description = lh_options_description(w->command, field);
    const bool flag = lh_setting_is_flag(field);
    const char letter[] = { '-', lh_options_letter(field), ',', ' ', '\0' };
    const char *dash = lh_options_letter(field) != 0 ? letter : "";
    const gsize width =
        strlen("  ") + strlen(dash) + strlen(option) + (flag ? 0 : 1 + strlen(placeholder));

    write_heading(w, lh_help_heading(w->command, field, scenario));
    g_string_append_printf(w->out, "  %s%s%s%s%s%s", w->colours.option, dash, option,
                           w->colours.end, flag ? "" : " ", flag ? "" : placeholder);
    if (width > OPTION_WIDTH)
        g_string_append_printf(w->out, "\n%*s", OPTION_WIDTH + 2, "");
    else
        g_string_append_printf(w->out, "%*s", (int)(OPTION_WIDTH + 2 - width), "");
    append_wrapped(w->out, description, OPTION_WIDTH + 2, OPTION_WIDTH + 2);
}

static void
write_overview(HelpWriter *w)
{
    append_wrapped(w->out, lh_help_purpose, 0, 0);
    g_string_append(w->out, "\nUsage: longhaul COMMAND [OPTIONS]\n");
    write_heading(w, "Commands");
    for (guint i = 0; lh_commands[i] != NULL; i++) {
        g_string_append_printf(w->out, "  %s%-12s%s", w->colours.option, lh_commands[i]->name,
                               w->colours.end);
        append_wrapped(w->out, lh_commands[i]->summary, COMMAND_WIDTH, COMMAND_WIDTH);
    }
    g_string_append(w->out, "\nlonghaul help COMMAND explains a command and lists its options.\n");
    write_heading(w, "Exit status");
    for (guint i = 0; i < LH_EXIT_STATUSES; i++)
        g_string_append_printf(w->out, "  %u  %s\n", i, lh_exit_meanings[i]);
}

char *
lh_help_text(const LhCommand *command, LhColours colours)
{
    g_autoptr(GString) out = g_string_new(NULL);
    HelpWriter w = { .out = out, .colours = colours, .command = command };

    if (command == NULL) {
        write_overview(&w);
        return g_string_free(g_steal_pointer(&out), FALSE);
    }
    append_wrapped(out, command->summary, 0, 0);
    g_string_append_printf(out, "\nUsage: longhaul %s%s%s\n", command->name,
                           command->arguments[0] != '\0' ? " " : "", command->arguments);
    lh_options_each(command, write_option, &w);
    if (command->details != NULL)
        g_string_append_printf(out, "\n%s", command->details);
    return g_string_free(g_steal_pointer(&out), FALSE);
}

/* --- the listing for programs -------------------------------------------------------------------
 */

static const char *
type_name(const LhField *field)
{
    static const char *const names[] = {
        [LH_FIELD_STRING] = "string",  [LH_FIELD_UINT] = "integer", [LH_FIELD_INT] = "integer",
        [LH_FIELD_DOUBLE] = "number",  [LH_FIELD_BOOL] = "flag",    [LH_FIELD_CHOICE] = "choice",
        [LH_FIELD_OBJECT] = "struct",  [LH_FIELD_ARRAY] = "struct", [LH_FIELD_UINTS] = "integers",
        [LH_FIELD_STRINGS] = "string",
    };

    if (field->type != LH_FIELD_UNIT)
        return names[field->type];
    return field->unit == LH_UNIT_TIME ? "time" : "count";
}

typedef struct {
    LhJsonWriter *w;
    const LhCommand *command;
} Lister;

static void
list_option(const LhField *field, bool scenario, void *data)
{
    const Lister *lister = data;
    LhJsonWriter *w = lister->w;
    const bool list = lh_options_is_list(lister->command, field);
    g_autofree char *option = lh_setting_option(field);
    g_autofree char *placeholder = lh_setting_placeholder(field);
    g_autofree char *description = lh_options_description(lister->command, field);
    const char letter[] = { '-', lh_options_letter(field), '\0' };
    g_autofree char *bounds = field->type == LH_FIELD_STRING || field->type == LH_FIELD_STRINGS ||
                                      field->type == LH_FIELD_ARRAY
                                  ? NULL
                                  : lh_field_bounds(field);

    lh_jsonw_object_begin(w, NULL);
    lh_jsonw_string(w, "option", option);
    if (letter[1] != '\0')
        lh_jsonw_string(w, "short", letter);
    lh_jsonw_string(w, "section", lh_help_heading(lister->command, field, scenario));
    lh_jsonw_string(w, "type", type_name(field));
    lh_jsonw_bool(w, "repeatable", list);
    if (!lh_setting_is_flag(field))
        lh_jsonw_string(w, "placeholder", placeholder);
    if (bounds != NULL)
        lh_jsonw_string(w, "bounds", bounds);
    if (field->names != NULL)
        lh_jsonw_string(w, "names", field->names);
    if (lh_options_use(field) != LH_FILE_USE_NONE)
        lh_jsonw_string(w, "file", lh_file_use_names[lh_options_use(field)]);
    if (field->type == LH_FIELD_CHOICE) {
        lh_jsonw_array_begin(w, "choices");
        for (const char *const *choice = field->choices; *choice != NULL; choice++)
            lh_jsonw_string(w, NULL, *choice);
        lh_jsonw_array_end(w);
    }
    lh_jsonw_string(w, "description", description);
    lh_jsonw_object_end(w);
}

static void
list_command(LhJsonWriter *w, const LhCommand *command)
{
    Lister lister = { w, command };

    lh_jsonw_object_begin(w, NULL);
    lh_jsonw_string(w, "name", command->name);
    lh_jsonw_string(w, "summary", command->summary);
    lh_jsonw_string(w, "arguments", command->arguments);
    lh_jsonw_bool(w, "scenario", command->scenario && !command->no_file);
    if (command->names != NULL)
        lh_jsonw_string(w, "names", command->names);
    if (lh_options_use_of(command->names) != LH_FILE_USE_NONE)
        lh_jsonw_string(w, "file", lh_file_use_names[lh_options_use_of(command->names)]);
    lh_jsonw_array_begin(w, "options");
    lh_options_each(command, list_option, &lister);
    lh_jsonw_array_end(w);
    lh_jsonw_object_end(w);
}

void
lh_help_json(const LhCommand *command, const LhStamp *stamp, GString *out)
{
    g_autoptr(LhJsonWriter) w = lh_jsonw_new(out, false);

    lh_document_begin(w, "longhaul.help/1", stamp, NULL, false);
    lh_jsonw_array_begin(w, "commands");
    for (guint i = 0; lh_commands[i] != NULL; i++) {
        if (command == NULL || command == lh_commands[i])
            list_command(w, lh_commands[i]);
    }
    lh_jsonw_array_end(w);
    lh_jsonw_array_begin(w, "exit_statuses");
    for (guint i = 0; i < LH_EXIT_STATUSES; i++)
        lh_jsonw_string(w, NULL, lh_exit_meanings[i]);
    lh_jsonw_array_end(w);
    lh_jsonw_object_end(w);
}
