/*
 * Command lines. GOption splits them; the values are read by the tables that also read files.
 */
#include "cli/options.h"

#include "base/data.h"
#include "base/error.h"
#include "plan/setting.h"
#include "sched/schedule.h"

#include <string.h>

#define HELP_WIDTH 28 /* of the column of options */

/* What GOption's callbacks work on. */
typedef struct {
    const LhCommand *command;
    LhCommandLine *line;
    bool help;
} Parser;

/* Calls @call with every option of @command, its own first; @scenario says whether an option is one
 * of the scenario's. */
static void
each_option(const LhCommand *command, void (*call)(const LhField *field, bool scenario, void *data),
            void *data)
{
    for (const LhField *field = command->options; field != NULL && field->name != NULL; field++)
        call(field, false, data);
    for (const LhField *field = lh_scenario_options(); command->scenario && field->name != NULL;
         field++) {
        g_autofree char *option = lh_setting_option(field);

        /* A command's own option hides the scenario's (verify has its own --ranks). */
        if (command->options == NULL || lh_setting_find(command->options, option) == NULL)
            call(field, true, data);
    }
}

/* Whether it is the one option with a short form, -o. */
static bool
is_output(const LhField *field)
{
    return strcmp(field->name, "output") == 0;
}

static gboolean
on_option(const char *name, const char *value, gpointer data, GError **error)
{
    Parser *parser = data;
    const char *option = strcmp(name, "-o") == 0 ? "--output" : name;
    const LhField *field;

    if (strcmp(option, "--help") == 0 || strcmp(option, "-h") == 0) {
        parser->help = true;
        return TRUE;
    }
    field =
        parser->command->options == NULL ? NULL : lh_setting_find(parser->command->options, option);
    if (field != NULL)
        return lh_setting_parse(field, value, parser->line->options, error);
    field = lh_setting_find(lh_scenario_options(), option);
    g_assert(field != NULL);
    return lh_scenario_set(parser->line->scenario, field, value, error);
}

typedef struct {
    GArray *entries;  /* of GOptionEntry */
    GPtrArray *names; /* of char *, owning the entries' names */
} Entries;

static void
add_entry(const LhField *field, bool scenario, void *data)
{
    Entries *e = data;
    char *option = lh_setting_option(field);
    GOptionEntry entry = { .arg = G_OPTION_ARG_CALLBACK };

    (void)scenario;
    g_ptr_array_add(e->names, option);
    entry.long_name = option + strlen("--");
    entry.short_name = is_output(field) ? 'o' : 0;
    /* FILENAME keeps GLib from recoding the value by the locale. */
    entry.flags = lh_setting_is_flag(field) ? G_OPTION_FLAG_NO_ARG : G_OPTION_FLAG_FILENAME;
    entry.arg_data = (gpointer)(guintptr)on_option;
    g_array_append_val(e->entries, entry);
}

static void
add_name(const LhField *field, bool scenario, void *data)
{
    (void)scenario;
    g_ptr_array_add(data, lh_setting_option(field));
}

/* Words GOption's errors as longhaul words its own. GOption's messages end with the option
 * concerned. */
static void
reword(const LhCommand *command, const GError *cause, GError **error)
{
    g_autoptr(GPtrArray) names = g_ptr_array_new_with_free_func(g_free);
    const char *option = strrchr(cause->message, ' ') + 1;
    const char *near;

    each_option(command, add_name, names);
    g_ptr_array_add(names, g_strdup("--help"));
    g_ptr_array_add(names, NULL);
    if (cause->code == G_OPTION_ERROR_BAD_VALUE) {
        g_set_error(error, LH_ERROR, LH_ERROR_USAGE, "%s needs a value; see longhaul help %s",
                    option, command->name);
        return;
    }
    near = lh_nearest_word(option, (const char *const *)names->pdata);
    if (near != NULL)
        g_set_error(error, LH_ERROR, LH_ERROR_USAGE, "%s has no option %s; did you mean %s?",
                    command->name, option, near);
    else
        g_set_error(error, LH_ERROR, LH_ERROR_USAGE, "%s has no option %s; see longhaul help %s",
                    command->name, option, command->name);
}

/* Takes the options out of @words (a strv, which is changed). */
static bool
split(Parser *parser, char ***words, GError **error)
{
    const GOptionEntry end = { 0 };
    const GOptionEntry help = {
        "help", 'h', G_OPTION_FLAG_NO_ARG, G_OPTION_ARG_CALLBACK, (gpointer)(guintptr)on_option,
        NULL,   NULL
    };
    g_autoptr(GPtrArray) names = g_ptr_array_new_with_free_func(g_free);
    g_autoptr(GArray) entries = g_array_new(FALSE, FALSE, sizeof(GOptionEntry));
    Entries e = { entries, names };
    g_autoptr(GOptionContext) context = g_option_context_new(NULL);
    GOptionGroup *group = g_option_group_new("main", "", "", parser, NULL);
    g_autoptr(GError) cause = NULL;

    each_option(parser->command, add_entry, &e);
    g_array_append_val(entries, help);
    g_array_append_val(entries, end);
    g_option_group_add_entries(group, (const GOptionEntry *)(void *)entries->data);
    g_option_context_set_main_group(context, group);
    g_option_context_set_help_enabled(context, FALSE);
    if (g_option_context_parse_strv(context, words, &cause))
        return true;
    if (cause->domain == G_OPTION_ERROR)
        reword(parser->command, cause, error);
    else
        g_propagate_error(error, g_steal_pointer(&cause));
    return false;
}

/* True if @word is the name of a schedule: `show` takes one where others take a scenario. */
static bool
is_scenario(const char *word)
{
    for (guint i = 0; lh_schedules[i] != NULL; i++) {
        if (strcmp(lh_schedules[i]->name, word) == 0)
            return false;
    }
    return true;
}

/* Takes what is left besides the options: the scenario and the command's arguments. */
static bool
take_arguments(const LhCommand *command, char *const *words, LhCommandLine *line,
               const char **scenario, GError **error)
{
    for (guint i = 1; words[i] != NULL; i++) {
        if (strcmp(words[i], "--") == 0)
            continue;
        if (command->scenario && *scenario == NULL &&
            (command->arguments_max == 0 || is_scenario(words[i]))) {
            *scenario = words[i];
            continue;
        }
        if (line->arguments->len >= command->arguments_max) {
            g_set_error(error, LH_ERROR, LH_ERROR_USAGE,
                        "%s: unexpected argument \"%s\"; usage: longhaul %s%s%s", command->name,
                        words[i], command->name, command->arguments[0] != '\0' ? " " : "",
                        command->arguments);
            return false;
        }
        g_ptr_array_add(line->arguments, g_strdup(words[i]));
    }
    return true;
}

/* Refuses "--flag=value", which GOption would take for the flag. */
static bool
check_flags(const LhCommand *command, char *const *words, GError **error)
{
    for (guint i = 1; words[i] != NULL && strcmp(words[i], "--") != 0; i++) {
        const char *equals = strchr(words[i], '=');
        g_autofree char *option =
            equals == NULL ? NULL : g_strndup(words[i], (gsize)(equals - words[i]));
        const LhField *field = NULL;

        if (option == NULL)
            continue;
        if (command->options != NULL)
            field = lh_setting_find(command->options, option);
        if (field == NULL && command->scenario)
            field = lh_setting_find(lh_scenario_options(), option);
        if (field != NULL && lh_setting_is_flag(field)) {
            g_set_error(error, LH_ERROR, LH_ERROR_USAGE, "%s takes no value; found \"%s\"", option,
                        equals + 1);
            return false;
        }
    }
    return true;
}

/* Loads the scenario called @word. Where a schedule could stand as well and the word is neither,
 * the error is about schedules. */
static LhScenario *
load_scenario(const LhCommand *command, const char *word, GError **error)
{
    g_autofree char *path = lh_data_find("scenarios", word, NULL);

    if (path == NULL && command->arguments_max > 0) {
        lh_schedule_find(word, error);
        return NULL;
    }
    return lh_scenario_load(word, error);
}

/*
 * The scenario file is named among the options, which replace what it says. So a first pass looks
 * for it and for the arguments, and discards the options.
 */
static bool
find_scenario(const LhCommand *command, char *const *words, LhCommandLine *line, GError **error)
{
    g_auto(GStrv) copy = g_strdupv((char **)words);
    LhCommandLine scratch = { .scenario = lh_scenario_new(),
                              .options = g_malloc0(command->options_size) };
    Parser parser = { .command = command, .line = &scratch };
    const char *file = NULL;
    const bool ok = split(&parser, &copy, error) &&
                    (parser.help || take_arguments(command, copy, line, &file, error));

    lh_options_clear(command, &scratch);
    if (!ok)
        return false;
    if (!command->scenario)
        return true;
    line->scenario = file == NULL ? lh_scenario_new() : load_scenario(command, file, error);
    return line->scenario != NULL;
}

bool
lh_options_parse(const LhCommand *command, char *const *arguments, LhCommandLine *line, bool *help,
                 GError **error)
{
    g_autoptr(GStrvBuilder) builder = g_strv_builder_new();
    g_auto(GStrv) words = NULL;
    Parser parser = { .command = command, .line = line };

    g_strv_builder_add(builder, command->name); /* GOption skips the program's name */
    g_strv_builder_addv(builder, (const char **)(void *)arguments);
    words = g_strv_builder_end(builder);
    line->options = g_malloc0(command->options_size);
    line->arguments = g_ptr_array_new_with_free_func(g_free);
    if (!check_flags(command, words, error) || !find_scenario(command, words, line, error) ||
        !split(&parser, &words, error))
        return false;
    *help = parser.help;
    return true;
}

void
lh_options_clear(const LhCommand *command, LhCommandLine *line)
{
    lh_scenario_free(line->scenario);
    g_clear_pointer(&line->arguments, g_ptr_array_unref);
    if (command->options != NULL && line->options != NULL)
        lh_json_clear(command->options, line->options);
    g_free(line->options);
}

/* --- help ---------------------------------------------------------------------------------------
 */

typedef struct {
    GString *out;
    const char *heading; /* the last one written */
} HelpWriter;

static void
write_heading(HelpWriter *h, const LhField *field, bool scenario)
{
    const bool few = scenario && (field->flags & LH_SCENARIO_OF_SCHEDULES) != 0;
    const char *heading =
        few        ? "Options of some schedules, which the others ignore"
        : scenario ? "What to work on (these options replace what the scenario file says)"
                   : "Options";

    if (heading != h->heading)
        g_string_append_printf(h->out, "\n%s:\n", heading);
    h->heading = heading;
}

static void
write_option(const LhField *field, bool scenario, void *data)
{
    HelpWriter *h = data;
    g_autofree char *option = lh_setting_option(field);
    g_autofree char *placeholder = lh_setting_placeholder(field);
    g_autofree char *left = g_strdup_printf("  %s%s%s%s", is_output(field) ? "-o, " : "", option,
                                            lh_setting_is_flag(field) ? "" : " ",
                                            lh_setting_is_flag(field) ? "" : placeholder);

    write_heading(h, field, scenario);
    if (strlen(left) > HELP_WIDTH)
        g_string_append_printf(h->out, "%s\n%*s  %s\n", left, HELP_WIDTH, "", field->description);
    else
        g_string_append_printf(h->out, "%-*s  %s\n", HELP_WIDTH, left, field->description);
}

static void
write_commands(GString *out)
{
    for (guint i = 0; lh_commands[i] != NULL; i++)
        g_string_append_printf(out, "  %-12s%s\n", lh_commands[i]->name, lh_commands[i]->summary);
}

char *
lh_options_help(const LhCommand *command)
{
    g_autoptr(GString) out = g_string_new(NULL);
    HelpWriter writer = { .out = out };

    if (command == NULL) {
        g_string_append(out, "longhaul predicts how long-context training runs behave when the "
                             "attention of one\nsequence is distributed over many GPUs.\n\n"
                             "Usage: longhaul COMMAND [OPTIONS]\n\nCommands:\n");
        write_commands(out);
        g_string_append(out, "\nlonghaul help COMMAND explains a command and lists its options.\n\n"
                             "Exit status:\n"
                             "  0  success\n"
                             "  1  the answer is no: refused, not proven, out of memory, wrong\n"
                             "  2  the command line cannot be understood\n"
                             "  3  a file or a value cannot be used\n"
                             "  4  something failed while running\n");
        return g_string_free(g_steal_pointer(&out), FALSE);
    }
    g_string_append_printf(out, "%s\n\nUsage: longhaul %s%s%s\n", command->summary, command->name,
                           command->arguments[0] != '\0' ? " " : "", command->arguments);
    each_option(command, write_option, &writer);
    if (command->details != NULL)
        g_string_append_printf(out, "\n%s", command->details);
    return g_string_free(g_steal_pointer(&out), FALSE);
}

/* --- completion ---------------------------------------------------------------------------------
 */

static void
write_completion_option(const LhField *field, bool scenario, void *data)
{
    g_autofree char *option = lh_setting_option(field);

    (void)scenario;
    g_string_append_printf(data, " %s", option);
}

static void
write_completion_choices(const LhField *field, bool scenario, void *data)
{
    g_autofree char *option = lh_setting_option(field);
    g_autofree char *words = NULL;

    (void)scenario;
    if (field->type != LH_FIELD_CHOICE)
        return;
    words = g_strjoinv(" ", (char **)field->choices);
    g_string_append_printf(data, "        %s) words='%s' ;;\n", option, words);
}

/* Writes the words that may follow in a line with @command: its options, or the values of the last
 * one. */
static void
write_completion_command(const LhCommand *command, GString *out)
{
    g_string_append_printf(out, "    %s)\n        words='", command->name);
    each_option(command, write_completion_option, out);
    g_string_append(out, "'\n        case $previous in\n");
    each_option(command, write_completion_choices, out);
    g_string_append(out, "        --schedule) words=$schedules ;;\n        esac ;;\n");
}

void
lh_options_completion(GString *out)
{
    g_string_append(out, "# bash completion of longhaul; made by: longhaul help completion\n"
                         "_longhaul()\n{\n    local words='' schedules='");
    for (guint i = 0; lh_schedules[i] != NULL; i++)
        g_string_append_printf(out, " %s", lh_schedules[i]->name);
    g_string_append(out, "'\n    local previous=${COMP_WORDS[COMP_CWORD-1]}\n"
                         "    case ${COMP_WORDS[1]} in\n");
    for (guint i = 0; lh_commands[i] != NULL; i++)
        write_completion_command(lh_commands[i], out);
    g_string_append(out, "    esac\n    [ \"$COMP_CWORD\" -eq 1 ] && words='");
    for (guint i = 0; lh_commands[i] != NULL; i++)
        g_string_append_printf(out, " %s", lh_commands[i]->name);
    g_string_append(out,
                    "'\n    COMPREPLY=($(compgen -W \"$words\" -- \"${COMP_WORDS[COMP_CWORD]}\"))\n"
                    "}\ncomplete -o default -F _longhaul longhaul\n");
}
