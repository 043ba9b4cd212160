/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Help for terminals. Descriptions are wrapped here; the details of a command are wrapped in the
 * tables.
 */
#include "cli/help.h"

#include "cli/options.h"
#include "scenario/setting.h"

#include <string.h>

#define WIDTH 80
#define OPTION_WIDTH 28  /* of the column of options */
#define COMMAND_WIDTH 14 /* of the column of commands */
#define COMMON_HEADING "Common options"

const char *const lh_help_format_names[] = { "text", "man", "json", NULL };

G_STATIC_ASSERT(G_N_ELEMENTS(lh_help_format_names) == LH_HELP_FORMATS + 1);

const char *const lh_exit_meanings[LH_EXIT_STATUSES] = {
    "success",
    "the answer is no: refused, not proven, out of memory, wrong",
    "the command line is invalid",
    "a file or a value is invalid",
    "a runtime failure",
};

const char *const lh_help_purpose =
    "longhaul predicts the performance of long-context training when the attention of one sequence "
    "is distributed over many GPUs.";

/* The options of a command, to be grouped into sections. */
typedef struct {
    const LhCommand *command;
    GArray *options; /* of LhHelpOption */
} Sorter;

static void
sort_option(const LhField *field, bool scenario, void *data)
{
    const Sorter *sorter = data;
    g_autofree char *name = lh_setting_option(field);
    const bool common = g_strv_contains(sorter->command->common, name);
    const LhHelpOption option = {
        .field = field,
        .scenario = scenario,
        .common = common,
        .heading = common ? COMMON_HEADING : lh_option_sections[field->category].title,
    };

    g_assert(field->category != LH_ABOUT_NOTHING);
    g_array_append_val(sorter->options, option);
}

/* The option called @name, or NULL. */
static const LhHelpOption *
find_common(const GArray *options, const char *name)
{
    for (guint i = 0; i < options->len; i++) {
        const LhHelpOption *option = &g_array_index(options, LhHelpOption, i);
        g_autofree char *own = option->common ? lh_setting_option(option->field) : NULL;

        if (g_strcmp0(own, name) == 0)
            return option;
    }
    return NULL;
}

/* Options of @category that are not common; does not call @call if it is NULL. */
static guint
take_category(const GArray *options, LhOptionCategory category, LhHelpOptionFunc call, void *data)
{
    guint count = 0;

    for (guint i = 0; i < options->len; i++) {
        const LhHelpOption *option = &g_array_index(options, LhHelpOption, i);

        if (option->common || option->field->category != category)
            continue;
        if (call != NULL)
            call(option, data);
        count++;
    }
    return count;
}

guint
lh_help_options(const LhCommand *command, bool all, LhHelpOptionFunc call, void *data)
{
    g_autoptr(GArray) options = g_array_new(FALSE, FALSE, sizeof(LhHelpOption));
    Sorter sorter = { command, options };
    const bool rest = all || command->common[0] == NULL;
    guint count = 0;

    lh_options_each(command, sort_option, &sorter);
    for (const char *const *name = command->common; *name != NULL; name++) {
        const LhHelpOption *option = find_common(options, *name);

        g_assert(option != NULL);
        call(option, data);
    }
    for (int category = LH_ABOUT_NOTHING + 1; category < LH_OPTION_CATEGORIES; category++)
        count += take_category(options, (LhOptionCategory)category, rest ? call : NULL, data);
    return rest ? 0 : count;
}

const char *
lh_help_note(const LhCommand *command)
{
    return command->scenario && !command->no_file ? "Options override the scenario file." : NULL;
}

/* Appends the words of @text in lines of at most WIDTH columns. The first line starts at @column,
 * the others are indented by @indent spaces. */
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
write_option(const LhHelpOption *entry, void *data)
{
    HelpWriter *w = data;
    const LhField *field = entry->field;
    g_autofree char *option = lh_setting_option(field);
    g_autofree char *placeholder = lh_setting_placeholder(field);
    g_autofree char *description = lh_options_description(w->command, field);
    const bool flag = lh_setting_is_flag(field);
    const char letter[] = { '-', lh_options_letter(field), ',', ' ', '\0' };
    const char *dash = lh_options_letter(field) != 0 ? letter : "";
    const gsize width =
        strlen("  ") + strlen(dash) + strlen(option) + (flag ? 0 : 1 + strlen(placeholder));

    write_heading(w, entry->heading);
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
    g_string_append(w->out,
                    "\nlonghaul help COMMAND explains a command and lists its common options;\n"
                    "longhaul help COMMAND --all lists all of them.\n");
    write_heading(w, "Exit status");
    for (guint i = 0; i < LH_EXIT_STATUSES; i++)
        g_string_append_printf(w->out, "  %u  %s\n", i, lh_exit_meanings[i]);
}

static void
write_help(HelpWriter *w, bool all)
{
    const LhCommand *command = w->command;
    guint more;

    append_wrapped(w->out, command->summary, 0, 0);
    g_string_append_printf(w->out, "\nUsage: longhaul %s%s%s\n", command->name,
                           command->arguments[0] != '\0' ? " " : "", command->arguments);
    if (lh_help_note(command) != NULL)
        g_string_append_printf(w->out, "%s\n", lh_help_note(command));
    more = lh_help_options(command, all, write_option, w);
    if (command->details != NULL)
        g_string_append_printf(w->out, "\n%s", command->details);
    if (more > 0)
        g_string_append_printf(w->out, "\n%u more option%s: longhaul help %s --all\n", more,
                               more == 1 ? "" : "s", command->name);
}

char *
lh_help_text(const LhCommand *command, bool all, LhColours colours)
{
    g_autoptr(GString) out = g_string_new(NULL);
    HelpWriter w = { .out = out, .colours = colours, .command = command };

    if (command == NULL)
        write_overview(&w);
    else
        write_help(&w, all);
    for (guint i = 0; command == NULL && all && lh_commands[i] != NULL; i++) {
        g_autofree char *title = g_strdup_printf("longhaul %s", lh_commands[i]->name);

        write_heading(&w, title);
        w.heading = NULL; /* the same pointer is never another text */
        w.command = lh_commands[i];
        write_help(&w, true);
    }
    return g_string_free(g_steal_pointer(&out), FALSE);
}
