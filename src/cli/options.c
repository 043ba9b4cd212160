/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Command line parsing. GOption splits the words; values are read by the tables that also read
 * files.
 */
#include "cli/options.h"

#include "base/error.h"
#include "base/files/data_files.h"
#include "framework_config/configuration_scenario.h"
#include "scenario/setting.h"
#include "sched/schedule.h"

#include <string.h>

#define SHOWN_MAX 60 /* characters of a value in a message */

/* User data of GOption's callbacks. */
typedef struct {
    const LhCommand *command;
    LhCommandLine *line;
    GHashTable *given; /* option -> its value so far, of those that take one value */
    bool help, all_help;
} Parser;

/* Whether @command takes the scenario's option @field. A command's own option hides one of the same
 * name (verify has its own --ranks). */
static bool
takes(const LhCommand *command, const LhField *field)
{
    g_autofree char *option = lh_setting_option(field);

    return command->scenario && (field->flags & command->ignores) == 0 &&
           (command->reads == 0 || (field->flags & command->reads) != 0) &&
           (command->options == NULL || lh_setting_find(command->options, option) == NULL);
}

void
lh_options_each(const LhCommand *command, LhOptionFunc call, void *data)
{
    for (const LhField *field = command->options; field != NULL && field->name != NULL; field++)
        call(field, false, data);
    for (const LhField *field = lh_scenario_options(); field->name != NULL; field++) {
        if (takes(command, field))
            call(field, true, data);
    }
}

void
lh_options_forget(const LhField *field, void *options)
{
    const LhField only[] = { *field, { .name = NULL } };
    void *value = (char *)options + field->offset;

    lh_json_clear(only, options);
    if (field->type == LH_FIELD_UINT || field->type == LH_FIELD_UNIT)
        memset(value, 0, sizeof(uint64_t));
    else if (field->type == LH_FIELD_CHOICE)
        memset(value, 0, sizeof(int));
    else if (field->type == LH_FIELD_BOOL)
        *(bool *)value = false;
}

LhFileUse
lh_options_use_of(const char *names)
{
    return names != NULL && (strcmp(names, "files") == 0 || lh_data_kind(names) != NULL)
               ? LH_FILE_USE_READ
               : LH_FILE_USE_NONE;
}

LhFileUse
lh_options_use(const LhField *field)
{
    if ((field->flags & LH_FIELD_UPDATED) != 0)
        return LH_FILE_USE_UPDATED;
    if ((field->flags & LH_FIELD_WRITTEN) != 0)
        return LH_FILE_USE_WRITTEN;
    return lh_options_use_of(field->names);
}

bool
lh_options_is_output(const LhField *field)
{
    return strcmp(field->name, "output") == 0;
}

char
lh_options_letter(const LhField *field)
{
    return lh_options_is_output(field) ? 'o' : field->letter;
}

static bool
adds_up(const LhField *field)
{
    return field->type == LH_FIELD_STRINGS || field->type == LH_FIELD_ARRAY;
}

bool
lh_options_is_list(const LhCommand *command, const LhField *field)
{
    return adds_up(field) && !(command->one_program && strcmp(field->name, "schedule") == 0);
}

/* Lists the commands that accept the scenario's option @field several times; "" if all commands
 * that take it do, or none does. */
static void
name_repeaters(const LhField *field, GString *names)
{
    bool all = true;

    for (guint i = 0; lh_commands[i] != NULL; i++) {
        if (!takes(lh_commands[i], field))
            continue;
        if (lh_options_is_list(lh_commands[i], field))
            g_string_append_printf(names, "%s%s", names->len > 0 ? ", " : "", lh_commands[i]->name);
        else
            all = false;
    }
    if (all)
        g_string_truncate(names, 0);
}

char *
lh_options_description(const LhCommand *command, const LhField *field)
{
    const bool list = command != NULL ? lh_options_is_list(command, field) : adds_up(field);
    g_autoptr(GString) names = g_string_new(NULL);

    if (!list)
        return g_strdup(field->description);
    if (command == NULL)
        name_repeaters(field, names);
    return g_strdup_printf("%s May be repeated%s%s.", field->description,
                           names->len > 0 ? " to " : "", names->str);
}

/* Returns the option of @command named @option ("--ranks"), or NULL. */
static const LhField *
find_option(const LhCommand *command, const char *option, bool *scenario)
{
    const LhField *field =
        command->options == NULL ? NULL : lh_setting_find(command->options, option);

    *scenario = field == NULL;
    if (field == NULL)
        field = lh_setting_find(lh_scenario_options(), option);
    return field != NULL && (!*scenario || takes(command, field)) ? field : NULL;
}

/* @text as shown in messages: printable and shortened. Caller frees. */
static char *
shown(const char *text)
{
    g_autofree char *valid = g_utf8_make_valid(text, -1);
    g_autofree char *start = g_utf8_substring(valid, 0, MIN(g_utf8_strlen(valid, -1), SHOWN_MAX));

    return g_strescape(start, NULL);
}

/* Rejects a second value of a single-valued option: it is unclear which one was meant. */
static bool
take_once(Parser *parser, const char *option, const char *value, GError **error)
{
    const char *before = g_hash_table_lookup(parser->given, option);
    g_autofree char *first = before == NULL ? NULL : shown(before);
    g_autofree char *second = shown(value);

    if (before == NULL) {
        g_hash_table_insert(parser->given, g_strdup(option), g_strdup(value));
        return true;
    }
    g_set_error(error, LH_ERROR, LH_ERROR_USAGE,
                "%s takes one value, found two: \"%s\" and \"%s\"; remove one", option, first,
                second);
    return false;
}

/* Returns the long form of @name, which may be the short form ("-o") of one of the command's own
 * options. Caller frees. */
static char *
long_form(const LhCommand *command, const char *name)
{
    for (const LhField *f = command->options; f != NULL && f->name != NULL; f++) {
        if (name[1] != '-' && name[1] == lh_options_letter(f))
            return lh_setting_option(f);
    }
    return g_strdup(name);
}

static gboolean
on_option(const char *name, const char *value, gpointer data, GError **error)
{
    Parser *parser = data;
    g_autofree char *option = long_form(parser->command, name);
    const LhField *field;
    bool scenario;

    if (strcmp(option, "--help") == 0 || strcmp(option, "-h") == 0) {
        parser->help = true;
        return TRUE;
    }
    field = find_option(parser->command, option, &scenario);
    if (field == NULL && strcmp(option, "--all") == 0) {
        parser->all_help = true;
        return TRUE;
    }
    g_assert(field != NULL);
    if (!lh_setting_is_flag(field) && !adds_up(field) && !take_once(parser, option, value, error))
        return false;
    if (!scenario)
        return lh_setting_parse(field, value, parser->line->options, error);
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
    entry.short_name = lh_options_letter(field);
    /* With FILENAME, GLib does not recode the value by the locale. */
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

/* Sets an error that lists the commands which read a scenario option that this one does not; false
 * if no such option exists. */
static bool
name_readers(const LhCommand *command, const char *option, GError **error)
{
    const LhField *field = lh_setting_find(lh_scenario_options(), option);
    g_autoptr(GString) readers = g_string_new(NULL);

    if (field == NULL || !command->scenario)
        return false;
    for (guint i = 0; lh_commands[i] != NULL; i++) {
        if (takes(lh_commands[i], field))
            g_string_append_printf(readers, "%s%s", readers->len > 0 ? ", " : "",
                                   lh_commands[i]->name);
    }
    g_set_error(error, LH_ERROR, LH_ERROR_USAGE,
                "%s has no effect on %s; commands that read it: %s", option, command->name,
                readers->str);
    return true;
}

/* Rewords GOption's errors, whose messages end with the option concerned. */
static void
reword(const LhCommand *command, const GError *cause, GError **error)
{
    g_autoptr(GPtrArray) names = g_ptr_array_new_with_free_func(g_free);
    const char *option = strrchr(cause->message, ' ') + 1;
    const char *near;

    lh_options_each(command, add_name, names);
    g_ptr_array_add(names, g_strdup("--help"));
    g_ptr_array_add(names, NULL);
    if (cause->code == G_OPTION_ERROR_BAD_VALUE) {
        g_set_error(error, LH_ERROR, LH_ERROR_USAGE, "%s needs a value; see longhaul help %s --all",
                    option, command->name);
        return;
    }
    if (name_readers(command, option, error))
        return;
    near = lh_nearest_word(option, (const char *const *)names->pdata);
    if (near != NULL)
        g_set_error(error, LH_ERROR, LH_ERROR_USAGE, "%s has no option %s; did you mean %s?",
                    command->name, option, near);
    else
        g_set_error(error, LH_ERROR, LH_ERROR_USAGE,
                    "%s has no option %s; see longhaul help %s --all", command->name, option,
                    command->name);
}

/* --all belongs to help, unless the command has such an option of its own. */
static bool
check_all(const Parser *parser, GError **error)
{
    if (!parser->all_help || parser->help)
        return true;
    g_set_error(error, LH_ERROR, LH_ERROR_USAGE,
                "--all selects the options shown by --help, which is missing; see longhaul help %s",
                parser->command->name);
    return false;
}

/* Parses the options and removes them from @words (a strv, changed). */
static bool
split(Parser *parser, char ***words, GError **error)
{
    const GOptionEntry last[] = {
        { "help", 'h', G_OPTION_FLAG_NO_ARG, G_OPTION_ARG_CALLBACK, (gpointer)(guintptr)on_option,
          NULL, NULL },
        { "all", '\0', G_OPTION_FLAG_NO_ARG, G_OPTION_ARG_CALLBACK, (gpointer)(guintptr)on_option,
          NULL, NULL },
        { 0 },
    };
    g_autoptr(GPtrArray) names = g_ptr_array_new_with_free_func(g_free);
    g_autoptr(GArray) entries = g_array_new(FALSE, FALSE, sizeof(GOptionEntry));
    Entries e = { entries, names };
    g_autoptr(GOptionContext) context = g_option_context_new(NULL);
    GOptionGroup *group = g_option_group_new("main", "", "", parser, NULL);
    g_autoptr(GError) cause = NULL;

    lh_options_each(parser->command, add_entry, &e);
    g_array_append_vals(entries, last, G_N_ELEMENTS(last));
    g_option_group_add_entries(group, (const GOptionEntry *)(void *)entries->data);
    g_option_context_set_main_group(context, group);
    g_option_context_set_help_enabled(context, FALSE);
    if (g_option_context_parse_strv(context, words, &cause))
        return check_all(parser, error);
    if (cause->domain == G_OPTION_ERROR)
        reword(parser->command, cause, error);
    else
        g_propagate_error(error, g_steal_pointer(&cause));
    return false;
}

/* Whether @word is neither a schedule's name nor a pair of them: `show` takes a schedule where
 * other commands take a scenario. */
static bool
is_scenario(const char *word)
{
    if (strpbrk(word, LH_SCHEDULE_PAIRS) != NULL && lh_schedule_find(word, NULL) != NULL)
        return false;
    for (guint i = 0; lh_schedules[i] != NULL; i++) {
        if (strcmp(lh_schedules[i]->name, word) == 0)
            return false;
    }
    return true;
}

/* Takes the words that are not options: the scenario and the command's arguments. */
static bool
take_arguments(const LhCommand *command, char *const *words, LhCommandLine *line,
               const char **scenario, GError **error)
{
    for (guint i = 1; words[i] != NULL; i++) {
        if (strcmp(words[i], "--") == 0)
            continue;
        if (command->scenario && !command->no_file && *scenario == NULL &&
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

/* Rejects "--flag=value", which GOption would accept as the flag. */
static bool
check_flags(const LhCommand *command, char *const *words, GError **error)
{
    static const char *const help_flags[] = { "--help", "--all", NULL };

    for (guint i = 1; words[i] != NULL && strcmp(words[i], "--") != 0; i++) {
        const char *equals = strchr(words[i], '=');
        g_autofree char *option =
            equals == NULL ? NULL : g_strndup(words[i], (gsize)(equals - words[i]));
        const LhField *field;
        bool scenario;

        if (option == NULL)
            continue;
        field = find_option(command, option, &scenario);
        if (field != NULL ? lh_setting_is_flag(field) : g_strv_contains(help_flags, option)) {
            g_set_error(error, LH_ERROR, LH_ERROR_USAGE, "%s takes no value; found \"%s\"", option,
                        equals + 1);
            return false;
        }
    }
    return true;
}

/* Loads the scenario named @word. If a schedule is allowed too and the word is neither, the error
 * is about schedules. */
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

/* Rejects a scenario with lists of values for commands that simulate one case: no value of a list
 * was chosen. */
static bool
check_sweep(const LhCommand *command, const LhScenario *scenario, GError **error)
{
    if (scenario->axes == NULL || command->sweeps)
        return true;
    return lh_json_error(
        scenario->json, "sweep", error,
        "\"sweep\" lists values, and %s takes one case; remove it, or use longhaul sweep",
        command->name);
}

static GHashTable *
new_given(void)
{
    return g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
}

/* Returns the value of the option with @flag, borrowed from @options, or NULL. */
static const void *
find_flagged(const LhCommand *command, unsigned flag, const void *options)
{
    for (const LhField *f = command->options; f != NULL && f->name != NULL; f++) {
        if ((f->flags & flag) != 0)
            return *(const void *const *)(const void *)((const char *)options + f->offset);
    }
    return NULL;
}

/* Loads the configuration at @path and applies it to the scenario @file (NULL: none). With a sweep,
 * the scenario lists the values and overrides the configuration. */
static bool
load_config(const LhCommand *command, const char *path, const GPtrArray *variables,
            const char *file, LhCommandLine *line, GError **error)
{
    line->scenario = file == NULL ? lh_scenario_new() : load_scenario(command, file, error);
    if (line->scenario == NULL)
        return false;
    line->config = lh_config_load(path, variables, error);
    return line->config != NULL &&
           lh_config_apply(line->config, command->config_parts, line->scenario, error);
}

static bool
check_variables(const GPtrArray *variables, const char *config, GError **error)
{
    if (variables == NULL || config != NULL)
        return true;
    g_set_error(error, LH_ERROR, LH_ERROR_USAGE, "--set has no effect without --from-config");
    return false;
}

/* Copies a GPtrArray of char *; NULL for NULL. Caller unrefs. */
static GPtrArray *
copy_strings(const GPtrArray *strings)
{
    GPtrArray *copy = strings != NULL ? g_ptr_array_new_with_free_func(g_free) : NULL;

    for (guint i = 0; strings != NULL && i < strings->len; i++)
        g_ptr_array_add(copy, g_strdup(g_ptr_array_index(strings, i)));
    return copy;
}

/*
 * First pass: finds the scenario file, the arguments and the configuration, and discards the
 * options. Options replace values of the scenario wherever it stands on the command line, so it is
 * loaded first.
 */
static bool
find_scenario(const LhCommand *command, char *const *words, LhCommandLine *line, GError **error)
{
    g_auto(GStrv) copy = g_strdupv((char **)words);
    LhCommandLine scratch = { .scenario = lh_scenario_new(),
                              .options = g_malloc0(command->options_size) };
    g_autoptr(GHashTable) given = new_given();
    Parser parser = { .command = command, .line = &scratch, .given = given };
    g_autofree char *config = NULL;
    g_autoptr(GPtrArray) variables = NULL;
    const char *file = NULL;
    const bool ok = split(&parser, &copy, error) &&
                    (parser.help || take_arguments(command, copy, line, &file, error));

    config = g_strdup(find_flagged(command, LH_COMMAND_CONFIG, scratch.options));
    variables = copy_strings(find_flagged(command, LH_COMMAND_VARIABLES, scratch.options));
    lh_options_clear(command, &scratch);
    if (!ok || !check_variables(variables, config, error))
        return false;
    if (!command->scenario)
        return true;
    if (config != NULL && file != NULL && !command->sweeps) {
        g_set_error(error, LH_ERROR, LH_ERROR_USAGE,
                    "a scenario and --from-config both define the case; give one of them");
        return false;
    }
    if (config != NULL)
        return load_config(command, config, variables, file, line, error);
    line->scenario = file == NULL ? lh_scenario_new() : load_scenario(command, file, error);
    return line->scenario != NULL && check_sweep(command, line->scenario, error);
}

/* Lets the output file's ending choose the format (.json, .csv or .md), if the command has that
 * format. Rejects an ending that contradicts --format. */
static bool
choose_format(Parser *parser, GError **error)
{
    const LhField *fields = parser->command->options;
    const LhField *format = fields == NULL ? NULL : lh_setting_find(fields, "--format");
    const LhField *output = fields == NULL ? NULL : lh_setting_find(fields, "--output");
    const char *file = g_hash_table_lookup(parser->given, "--output");
    const char *given = g_hash_table_lookup(parser->given, "--format");
    const char *ending = file == NULL ? NULL : strrchr(file, '.');

    if (format == NULL || ending == NULL || (output->flags & LH_COMMAND_FORMATTED) == 0 ||
        !g_strv_contains(format->choices, ending + 1))
        return true;
    if (given == NULL)
        return lh_setting_parse(format, ending + 1, parser->line->options, error);
    if (strcmp(given, ending + 1) == 0)
        return true;
    g_set_error(error, LH_ERROR, LH_ERROR_USAGE,
                "--format %s contradicts the ending of --output: a file ending in %s is read as %s",
                given, ending, ending + 1);
    return false;
}

bool
lh_options_parse(const LhCommand *command, char *const *arguments, LhCommandLine *line,
                 LhHelpExtent *help, GError **error)
{
    g_autoptr(GStrvBuilder) builder = g_strv_builder_new();
    g_auto(GStrv) words = NULL;
    g_autoptr(GHashTable) given = new_given();
    Parser parser = { .command = command, .line = line, .given = given };

    g_strv_builder_add(builder, command->name); /* GOption skips the program's name */
    g_strv_builder_addv(builder, (const char **)(void *)arguments);
    words = g_strv_builder_end(builder);
    line->options = g_malloc0(command->options_size);
    line->arguments = g_ptr_array_new_with_free_func(g_free);
    if (!check_flags(command, words, error) || !find_scenario(command, words, line, error))
        return false;
    /* A schedule file given in place of a scenario counts as --schedule-file. */
    if (line->scenario != NULL && line->scenario->json == NULL &&
        line->scenario->schedule_file != NULL &&
        !take_once(&parser, "--schedule-file", line->scenario->schedule_file, error))
        return false;
    if (!split(&parser, &words, error))
        return false;
    *help = !parser.help ? LH_HELP_NONE : parser.all_help ? LH_HELP_ALL : LH_HELP_COMMON;
    if (!parser.help && line->config != NULL &&
        (!lh_config_check_model(line->config, line->scenario, error) ||
         !lh_config_check_way(line->config, command->config_parts, line->scenario, error)))
        return false;
    if (line->config != NULL)
        lh_config_note_unsaid(line->config, command->config_parts, line->scenario);
    return choose_format(&parser, error);
}

void
lh_options_clear(const LhCommand *command, LhCommandLine *line)
{
    lh_scenario_free(line->scenario);
    lh_config_free(line->config);
    g_clear_pointer(&line->arguments, g_ptr_array_unref);
    if (command->options != NULL && line->options != NULL)
        lh_json_clear(command->options, line->options);
    g_free(line->options);
}
