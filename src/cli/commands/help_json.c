/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/commands/help_json.h"

#include "base/json/json_decode.h"
#include "cli/help.h"
#include "cli/options.h"
#include "scenario/setting.h"

/* ---- an option ---- */

typedef struct {
    char *option, *letter; /* NULL, like all that follow: none */
    char *category, *section;
    bool common, scenario;
    char *type;
    bool repeatable;
    char *placeholder, *bounds, *names, *file;
    GPtrArray *choices;
    char *description;
} Option;

#define OPTION(kind, member, key, when, ...)                                                       \
    LH_FIELD_ROW(kind, Option, member, key, when, __VA_ARGS__)

static const LhField option_fields[] = {
    OPTION(STRING, option, "option", ALWAYS, .description = "Name, as typed."),
    OPTION(STRING, letter, "short", IF_ANY, .description = "Short form."),
    OPTION(STRING, category, "category", ALWAYS, .description = "Category, in a word."),
    OPTION(STRING, section, "section", ALWAYS, .description = "Title of the category."),
    OPTION(BOOL, common, "common", ALWAYS,
           .description = "Whether help lists it among the common options."),
    OPTION(BOOL, scenario, "scenario", ALWAYS,
           .description = "Whether it is also a field of scenarios."),
    OPTION(STRING, type, "type", ALWAYS, .description = "Type of the value."),
    OPTION(BOOL, repeatable, "repeatable", ALWAYS,
           .description = "Whether it may be given several times."),
    OPTION(STRING, placeholder, "placeholder", IF_ANY,
           .description = "Placeholder of the value in help; flags have none."),
    OPTION(STRING, bounds, "bounds", IF_ANY, .description = "Bounds of the value."),
    OPTION(STRING, names, "names", IF_ANY,
           .description = "Kind of names that it takes, as in `longhaul list`."),
    OPTION(STRING, file, "file", IF_ANY, .description = "How the file that it names is used."),
    OPTION(STRINGS, choices, "choices", IF_ANY, .description = "Allowed values."),
    OPTION(STRING, description, "description", ALWAYS, .description = "Description, in sentences."),
    { .name = NULL },
};

static char *
type_name(const LhField *field)
{
    static const char *const names[] = {
        [LH_FIELD_STRING] = "string",  [LH_FIELD_UINT] = "integer", [LH_FIELD_INT] = "integer",
        [LH_FIELD_DOUBLE] = "number",  [LH_FIELD_BOOL] = "flag",    [LH_FIELD_CHOICE] = "choice",
        [LH_FIELD_OBJECT] = "struct",  [LH_FIELD_ARRAY] = "struct", [LH_FIELD_UINTS] = "integers",
        [LH_FIELD_STRINGS] = "string",
    };

    if (field->type != LH_FIELD_UNIT)
        return g_strdup(names[field->type]);
    return g_strdup(field->unit == LH_UNIT_TIME ? "time" : "count");
}

/* Lengths of strings and lists are not bounds of a value. */
static char *
bounds_of(const LhField *field)
{
    const bool lengths = field->type == LH_FIELD_STRING || field->type == LH_FIELD_STRINGS ||
                         field->type == LH_FIELD_ARRAY;

    return lengths ? NULL : lh_field_bounds(field);
}

static GPtrArray *
choices_of(const LhField *field)
{
    GPtrArray *choices;

    if (field->type != LH_FIELD_CHOICE)
        return NULL;
    choices = g_ptr_array_new_with_free_func(g_free);
    for (const char *const *choice = field->choices; *choice != NULL; choice++)
        g_ptr_array_add(choices, g_strdup(*choice));
    return choices;
}

/* How files with @use are used; NULL: not a file. */
static char *
file_use(LhFileUse use)
{
    return use == LH_FILE_USE_NONE ? NULL : g_strdup(lh_file_use_names[use]);
}

typedef struct {
    GArray *options; /* of Option */
    const LhCommand *command;
} Lister;

static void
list_option(const LhHelpOption *entry, void *data)
{
    const Lister *lister = data;
    const LhField *field = entry->field;
    const char letter[] = { '-', lh_options_letter(field), '\0' };
    const Option option = {
        .option = lh_setting_option(field),
        .letter = letter[1] != '\0' ? g_strdup(letter) : NULL,
        .category = g_strdup(lh_option_sections[field->category].name),
        .section = g_strdup(lh_option_sections[field->category].title),
        .common = entry->common,
        .scenario = entry->scenario,
        .type = type_name(field),
        .repeatable = lh_options_is_list(lister->command, field),
        .placeholder = lh_setting_is_flag(field) ? NULL : lh_setting_placeholder(field),
        .bounds = bounds_of(field),
        .names = g_strdup(field->names),
        .file = file_use(lh_options_use(field)),
        .choices = choices_of(field),
        .description = lh_options_description(lister->command, field),
    };

    g_array_append_val(lister->options, option);
}

/* ---- a command ---- */

typedef struct {
    const char *name, *summary, *arguments; /* borrowed, like `names` */
    bool scenario;
    const char *names; /* NULL: its arguments are no names */
    const char *file;  /* likewise, no files */
    GArray *options;   /* of Option */
} Command;

#define COMMAND(kind, member, key, when, ...)                                                      \
    LH_FIELD_ROW(kind, Command, member, key, when, __VA_ARGS__)

static const LhField command_fields[] = {
    COMMAND(STRING, name, "name", ALWAYS, .description = "Name, as typed."),
    COMMAND(STRING, summary, "summary", ALWAYS, .description = "Summary, in one sentence."),
    COMMAND(STRING, arguments, "arguments", OR_NULL,
            .description = "Arguments after the name; null: none."),
    COMMAND(BOOL, scenario, "scenario", ALWAYS,
            .description = "Whether a scenario file may be an argument."),
    COMMAND(STRING, names, "names", IF_ANY,
            .description = "Kind of names that the arguments are, as in `longhaul list`."),
    COMMAND(STRING, file, "file", IF_ANY, .description = "How files named by arguments are used."),
    COMMAND(ARRAY, options, "options", ALWAYS, .fields = option_fields,
            .element_size = sizeof(Option), .description = "All options, by category."),
    { .name = NULL },
};

static Command
describe_command(const LhCommand *of)
{
    const LhFileUse use = lh_options_use_of(of->names);
    Lister lister = { g_array_new(FALSE, FALSE, sizeof(Option)), of };

    lh_help_options(of, true, list_option, &lister);
    return (Command){
        .name = of->name,
        .summary = of->summary,
        .arguments = of->arguments,
        .scenario = of->scenario && !of->no_file,
        .names = of->names,
        .file = use != LH_FILE_USE_NONE ? lh_file_use_names[use] : NULL,
        .options = lister.options,
    };
}

/* ---- the document ---- */

typedef struct {
    LhDocumentHead head;
    GArray *commands; /* of Command */
    const GPtrArray *exit_statuses;
} Help;

static const char *const help_schema[] = { "longhaul.help/1", NULL };

const LhField lh_help_fields[] = {
    LH_DOCUMENT_HEAD(Help, head, help_schema),
    LH_FIELD_ROW(ARRAY, Help, commands, "commands", ALWAYS, .fields = command_fields,
                 .element_size = sizeof(Command),
                 .description = "All commands, in the order of help."),
    LH_FIELD_ROW(STRINGS, Help, exit_statuses, "exit_statuses", ALWAYS,
                 .description = "Meaning of each exit status, from 0."),
    { .name = NULL },
};

static GArray *
describe_commands(const LhCommand *command)
{
    GArray *commands = g_array_new(FALSE, FALSE, sizeof(Command));

    for (guint i = 0; lh_commands[i] != NULL; i++) {
        if (command == NULL || command == lh_commands[i]) {
            const Command described = describe_command(lh_commands[i]);

            g_array_append_val(commands, described);
        }
    }
    return commands;
}

static void
commands_free(GArray *commands)
{
    static const LhField options[] = {
        COMMAND(ARRAY, options, "options", ALWAYS, .fields = option_fields),
        { .name = NULL },
    };

    for (guint i = 0; i < commands->len; i++)
        lh_json_clear(options, &g_array_index(commands, Command, i));
    g_array_unref(commands);
}

void
lh_help_json(const LhCommand *command, const LhStamp *stamp, GString *out)
{
    g_autoptr(GPtrArray) statuses = g_ptr_array_new();
    g_auto(LhDocumentHead) head = lh_document_head(help_schema[0], stamp, NULL);
    const Help help = { .head = head,
                        .commands = describe_commands(command),
                        .exit_statuses = statuses };

    for (guint i = 0; i < LH_EXIT_STATUSES; i++)
        g_ptr_array_add(statuses, (gpointer)lh_exit_meanings[i]);
    lh_json_encode_text(lh_help_fields, &help, out);
    commands_free(help.commands);
}
