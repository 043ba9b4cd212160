/* SPDX-License-Identifier: Apache-2.0 */
/*
 * longhaul list: prints known names, one per line.
 */
#include "cli/commands/cmd_list.h"

#include "base/error.h"
#include "base/files/data_files.h"
#include "cli/commands/file_formats.h"
#include "cli/options.h"
#include "collective_check/collective_time.h"
#include "model/framework.h"
#include "model/framework_remedies.h"
#include "model/model.h"
#include "model/model_file.h"
#include "papers/checklist.h"
#include "scenario/scenario.h"
#include "scenario/setting.h"
#include "sched/schedule.h"
#include "sim/network/topology.h"

#include <stddef.h>
#include <string.h>

/* Table formats, followed by names alone. */
static const char *const table_formats[] = { "table", "json", "csv", "md", "names", NULL };

#define FORMAT_NAMES (LH_FORMAT_MD + 1)

typedef struct {
    LhOutputOptions to;
} ListOptions;

static const LhField list_options[] = {
    { .name = "format",
      .category = LH_ABOUT_OUTPUT,
      .type = LH_FIELD_CHOICE,
      .offset = offsetof(ListOptions, to.format),
      .choices = table_formats,
      .description = "Output format; default table. names: the names alone, one per line." },
    LH_OPTION_OUTPUT(ListOptions, to),
    { .name = NULL },
};

/* Adds a row for each item of a kind; false with @error if a data file cannot be read. */
typedef bool (*ListFunc)(LhTable *table, GError **error);

/* Adds a row. @group is the cell of the extra column that some kinds have; NULL: no such column. */
static void
add_to(LhTable *table, const char *name, const char *group, const char *line)
{
    const char *text = line != NULL ? line : "";
    const char *end = strstr(text, ". "); /* the first sentence */
    g_autofree char *first =
        end == NULL ? g_strdup(text) : g_strndup(text, (gsize)(end - text) + 1);

    lh_table_row(table);
    lh_table_cell(table, name, NULL);
    if (group != NULL)
        lh_table_cell(table, group, NULL);
    lh_table_cell(table, first, text);
}

static void
add_line(LhTable *table, const char *name, const char *line)
{
    add_to(table, name, NULL, line);
}

static void
add_schedules(LhTable *table, bool softmax)
{
    for (guint i = 0; lh_schedules[i] != NULL; i++) {
        if (lh_schedule_takes(lh_schedules[i], false) == softmax)
            add_to(table, lh_schedules[i]->name, lh_schedule_attention(lh_schedules[i]),
                   lh_schedules[i]->summary);
    }
}

static bool
list_schedules(LhTable *table, GError **error)
{
    (void)error;
    add_schedules(table, true);
    add_schedules(table, false);
    return true;
}

static bool
list_kernels(LhTable *table, GError **error)
{
    (void)error;
    for (int i = 0; i < LH_KERNELS_COUNT; i++)
        add_line(table, lh_kernels[i]->name, lh_kernels[i]->summary);
    return true;
}

/* "--seq-length N". @column is what the table has between option and description. */
static void
add_option(LhTable *table, const char *column, const LhField *field)
{
    g_autofree char *option = lh_setting_option(field);
    g_autofree char *placeholder = lh_setting_placeholder(field);
    g_autofree char *text =
        lh_setting_is_flag(field) ? g_strdup(option) : g_strconcat(option, " ", placeholder, NULL);
    g_autofree char *description = lh_options_description(NULL, field);

    lh_table_row(table);
    lh_table_cell(table, text, NULL);
    lh_table_cell(table, column, NULL);
    lh_table_cell(table, description, NULL);
}

static void
add_category(LhTable *table, bool of_schedules, int category)
{
    for (const LhField *field = lh_scenario_options(); field->name != NULL; field++) {
        if ((int)field->category == category &&
            ((field->flags & LH_SCENARIO_OF_SCHEDULES) != 0) == of_schedules)
            add_option(table, lh_option_sections[category].name, field);
    }
}

/* In the order of help. */
static void
add_options(LhTable *table, bool of_schedules)
{
    for (int category = LH_ABOUT_NOTHING + 1; category < LH_OPTION_CATEGORIES; category++)
        add_category(table, of_schedules, category);
}

static bool
list_operations(LhTable *table, GError **error)
{
    (void)error;
    for (const LhNcclTestOp *op = lh_nccl_test_ops; op->name != NULL; op++)
        add_line(table, op->name, op->summary);
    return true;
}

static bool
list_scenario_options(LhTable *table, GError **error)
{
    (void)error;
    add_options(table, false);
    return true;
}

static bool
list_schedule_options(LhTable *table, GError **error)
{
    (void)error;
    add_options(table, true);
    return true;
}

/* Whether @command has exactly the option @field among its own options. */
static bool
has_own(const LhCommand *command, const LhField *field)
{
    g_autofree char *name = lh_setting_option(field);
    g_autofree char *placeholder = lh_setting_placeholder(field);
    const LhField *own = command->options == NULL ? NULL : lh_setting_find(command->options, name);
    g_autofree char *its_own = own == NULL ? NULL : lh_setting_placeholder(own);

    return own != NULL && strcmp(its_own, placeholder) == 0 &&
           strcmp(own->description, field->description) == 0;
}

/* Adds an option of command @first with all commands that have it, unless an earlier command has
 * it. */
static void
add_own_option(LhTable *table, guint first, const LhField *field)
{
    g_autoptr(GString) commands = g_string_new(NULL);

    for (guint i = 0; i < first; i++) {
        if (has_own(lh_commands[i], field))
            return;
    }
    for (guint i = first; lh_commands[i] != NULL; i++) {
        if (has_own(lh_commands[i], field))
            g_string_append_printf(commands, "%s%s", commands->len > 0 ? ", " : "",
                                   lh_commands[i]->name);
    }
    add_option(table, commands->str, field);
}

static bool
list_command_options(LhTable *table, GError **error)
{
    (void)error;
    for (guint i = 0; lh_commands[i] != NULL; i++) {
        for (const LhField *field = lh_commands[i]->options; field != NULL && field->name != NULL;
             field++)
            add_own_option(table, i, field);
    }
    return true;
}

static bool
list_commands(LhTable *table, GError **error)
{
    (void)error;
    for (guint i = 0; lh_commands[i] != NULL; i++)
        add_line(table, lh_commands[i]->name, lh_commands[i]->summary);
    return true;
}

static bool
list_formats(LhTable *table, GError **error)
{
    (void)error;
    for (const LhFileFormat *format = lh_file_formats; format->name != NULL; format++)
        add_line(table, format->name, format->line);
    return true;
}

static bool
list_models(LhTable *table, GError **error)
{
    g_auto(GStrv) names = lh_data_list("models");

    for (guint i = 0; names[i] != NULL; i++) {
        g_autoptr(LhModel) model = lh_model_load(names[i], error);

        if (model == NULL)
            return false;
        add_line(table, names[i], model->description);
    }
    return true;
}

static bool
list_frameworks(LhTable *table, GError **error)
{
    g_auto(GStrv) names = lh_data_list("frameworks");

    for (guint i = 0; names[i] != NULL; i++) {
        g_autoptr(LhFramework) framework = lh_framework_load(names[i], error);

        if (framework == NULL)
            return false;
        add_line(table, names[i], framework->description);
    }
    return true;
}

/* Adds the values of one framework, "lightseq fsdp.unit"; without a framework, the fields
 * themselves. */
static void
add_facts(LhTable *table, const LhFramework *framework, bool fields)
{
    for (guint i = 0; i < framework->facts->len; i++) {
        const LhFrameworkFact *fact = &g_array_index(framework->facts, LhFrameworkFact, i);

        lh_table_row(table);
        if (fields) {
            lh_table_cell_printf(table, "%s.%s", fact->group, fact->name);
            lh_table_cell(table, fact->text, NULL);
            lh_table_cell(table, fact->description, NULL);
            continue;
        }
        lh_table_cell_printf(table, "%s %s.%s", framework->name, fact->group, fact->name);
        lh_table_cell_printf(table, "%s (%s)", fact->text, lh_origin_names[fact->origin]);
        lh_table_cell(table, fact->source != NULL ? fact->source : "not stated", NULL);
    }
}

static bool
list_framework_fields(LhTable *table, GError **error)
{
    g_autoptr(LhFramework) none = lh_framework_new();

    (void)error;
    add_facts(table, none, true);
    return true;
}

static bool
list_framework_values(LhTable *table, GError **error)
{
    g_auto(GStrv) names = lh_data_list("frameworks");

    for (guint i = 0; names[i] != NULL; i++) {
        g_autoptr(LhFramework) framework = lh_framework_load(names[i], error);

        if (framework == NULL)
            return false;
        add_facts(table, framework, false);
    }
    return true;
}

static bool
list_framework_remedies(LhTable *table, GError **error)
{
    g_auto(GStrv) names = lh_data_list("frameworks");

    for (guint i = 0; names[i] != NULL; i++) {
        g_autoptr(LhFramework) f = lh_framework_load(names[i], error);

        if (f == NULL)
            return false;
        for (guint k = 0; f->remedies != NULL && k < f->remedies->len; k++) {
            const LhFrameworkRemedy *r = &g_array_index(f->remedies, LhFrameworkRemedy, k);

            lh_table_row(table);
            lh_table_cell_printf(table, "%s %s=%s", f->name, lh_remedy_option_names[r->option],
                                 r->value);
            lh_table_cell_printf(table, "%s (%s)", r->words, lh_origin_names[r->origin]);
            lh_table_cell(table, r->source, NULL);
        }
    }
    return true;
}

static bool
list_checklists(LhTable *table, GError **error)
{
    g_auto(GStrv) names = lh_data_list("scenarios/checklists");

    for (guint i = 0; names[i] != NULL; i++) {
        g_autoptr(LhChecklist) checklist = lh_checklist_load(names[i], error);

        if (checklist == NULL)
            return false;
        add_line(table, names[i], checklist->description);
    }
    return true;
}

static bool
list_tables(LhTable *table, GError **error)
{
    g_auto(GStrv) names = lh_paper_list();

    for (guint i = 0; names[i] != NULL; i++) {
        g_autoptr(LhPaper) paper = lh_paper_load(names[i], error);

        if (paper == NULL)
            return false;
        add_line(table, names[i], paper->description);
    }
    return true;
}

static bool
list_topologies(LhTable *table, GError **error)
{
    g_auto(GStrv) names = lh_data_list("topologies");

    for (guint i = 0; names[i] != NULL; i++) {
        g_autoptr(LhTopology) topology = lh_topology_load(names[i], error);

        if (topology == NULL)
            return false;
        add_line(table, names[i], topology->description);
    }
    return true;
}

static bool
list_devices(LhTable *table, GError **error)
{
    g_auto(GStrv) names = lh_data_list("devices");

    for (guint i = 0; names[i] != NULL; i++) {
        g_autoptr(LhDevice) device = lh_device_load(names[i], error);

        if (device == NULL)
            return false;
        add_line(table, names[i], device->description);
    }
    return true;
}

static bool
list_scenarios(LhTable *table, GError **error)
{
    g_auto(GStrv) names = lh_data_list("scenarios");

    for (guint i = 0; names[i] != NULL; i++) {
        g_autoptr(LhScenario) scenario = lh_scenario_load(names[i], error);

        if (scenario == NULL)
            return false;
        add_line(table, names[i], scenario->description);
    }
    return true;
}

static bool list_kinds(LhTable *table, GError **error);

static const struct {
    const char *kind;
    const char *line;
    ListFunc list;
    const char *group; /* the extra column, after the name; NULL: none */
} kinds[] = {
    { "schedules", "ways to distribute the attention of one sequence over GPUs", list_schedules,
      "attention" },
    { "models", "architectures of transformers", list_models, NULL },
    { "frameworks", "training frameworks: what they shard, overlap and fuse", list_frameworks,
      NULL },
    { "framework-fields", "fields of a training framework, with their defaults",
      list_framework_fields, "default" },
    { "framework-values", "values of the training frameworks, with sources", list_framework_values,
      "value" },
    { "framework-remedies", "options of the training frameworks that save memory, with sources",
      list_framework_remedies, "words" },
    { "topologies", "clusters", list_topologies, NULL },
    { "devices", "GPUs", list_devices, NULL },
    { "scenarios", "cases ready to compare and simulate", list_scenarios, NULL },
    { "tables", "published measurements that can be reproduced", list_tables, NULL },
    { "checklists", "claims of papers, line by line", list_checklists, NULL },
    { "kernels", "functions called by compute ops", list_kernels, NULL },
    { "operations", "NCCL operations, by their nccl-tests names", list_operations, NULL },
    { "commands", "commands of longhaul", list_commands, NULL },
    { "command-options", "options of commands, without those of scenarios", list_command_options,
      "commands" },
    { "options", "options of the command line, which are also the fields of a scenario",
      list_scenario_options, "category" },
    { "schedule-options", "further such options, each read by some schedules only",
      list_schedule_options, "category" },
    { "formats", "formats of the files that longhaul reads and writes", list_formats, NULL },
    { "kinds", "kinds of names that can be listed", list_kinds, NULL },
};

static bool
list_kinds(LhTable *table, GError **error)
{
    (void)error;
    for (guint i = 0; i < G_N_ELEMENTS(kinds); i++)
        add_line(table, kinds[i].kind, kinds[i].line);
    return true;
}

static void
add_columns(const char *kind, LhTable *table)
{
    lh_table_column(table, "name", kind, NULL, false);
    for (guint i = 0; i < G_N_ELEMENTS(kinds); i++) {
        if (strcmp(kinds[i].kind, kind) == 0 && kinds[i].group != NULL)
            lh_table_column(table, kinds[i].group, kinds[i].group, NULL, false);
    }
    lh_table_column(table, "description", "description", NULL, false);
}

static bool
fill(const char *kind, LhTable *table, GError **error)
{
    const char *names[G_N_ELEMENTS(kinds) + 1] = { NULL };
    const char *near;
    g_autofree char *all = NULL;

    for (guint i = 0; i < G_N_ELEMENTS(kinds); i++) {
        if (strcmp(kinds[i].kind, kind) == 0)
            return kinds[i].list(table, error);
        names[i] = kinds[i].kind;
    }
    near = lh_nearest_word(kind, names);
    all = g_strjoinv(", ", (char **)names);
    g_set_error(error, LH_ERROR, LH_ERROR_USAGE, "list: unknown kind \"%s\"; known: %s%s%s%s", kind,
                all, near != NULL ? "; did you mean " : "", near != NULL ? near : "",
                near != NULL ? "?" : "");
    return false;
}

/* ---- as JSON ---- */

typedef struct {
    const char *name, *description;
    const char *attention, *preset, *value, *words, *category,
        *commands; /* NULL: its kind has none */
} Entry;

static const LhField entry_fields[] = {
    LH_FIELD_ROW(STRING, Entry, name, "name", ALWAYS,
                 .description = "Name; of an option, including the placeholder of its value."),
    LH_FIELD_ROW(STRING, Entry, attention, "attention", IF_ANY,
                 .description = "Schedules: the attention that it distributes."),
    LH_FIELD_ROW(STRING, Entry, preset, "default", IF_ANY,
                 .description = "Fields of training systems: the default."),
    LH_FIELD_ROW(STRING, Entry, value, "value", IF_ANY,
                 .description = "Values of training systems: the value and how it is known."),
    LH_FIELD_ROW(STRING, Entry, words, "words", IF_ANY,
                 .description = "The framework's own words and their provenance."),
    LH_FIELD_ROW(STRING, Entry, category, "category", IF_ANY,
                 .description = "Options: section of help."),
    LH_FIELD_ROW(STRING, Entry, commands, "commands", IF_ANY,
                 .description = "Options: commands that have the option."),
    LH_FIELD_ROW(STRING, Entry, description, "description", ALWAYS,
                 .description = "Description, in sentences."),
    { .name = NULL },
};

typedef struct {
    LhDocumentHead head;
    GPtrArray *entries; /* of Entry * */
} List;

static const char *const list_schema[] = { "longhaul.list/1", NULL };

const LhField lh_list_fields[] = {
    LH_DOCUMENT_HEAD(List, head, list_schema),
    LH_FIELD_ROW(POINTERS, List, entries, "entries", ALWAYS, .fields = entry_fields,
                 .description = "The items of the kind."),
    { .name = NULL },
};

static void
print_list_json(const LhCommandLine *line, const LhTable *table, GString *out)
{
    const LhStamp stamp = lh_command_stamp(line);
    g_auto(LhDocumentHead) head = lh_document_head(list_schema[0], &stamp, NULL);
    g_autoptr(GPtrArray) entries = lh_table_texts(table, entry_fields);
    const List list = { .head = head, .entries = entries };

    lh_json_encode_text(lh_list_fields, &list, out);
}

static LhAnswer
run_list(const LhCommandLine *line, GError **error)
{
    const ListOptions *o = line->options;
    const char *kind = line->arguments->len > 0 ? g_ptr_array_index(line->arguments, 0) : "kinds";
    g_autoptr(LhTable) table = lh_table_new();
    g_autoptr(GString) out = g_string_new(NULL);

    add_columns(kind, table);
    if (!fill(kind, table, error))
        return LH_ANSWER_FAILED;
    if (o->to.format == LH_FORMAT_JSON)
        print_list_json(line, table, out);
    else if (o->to.format == FORMAT_NAMES)
        lh_table_names(table, out);
    else
        lh_table_print(table, (LhFormat)o->to.format, out);
    return lh_command_write(&o->to, out, error) ? LH_ANSWER_YES : LH_ANSWER_FAILED;
}

const LhCommand lh_command_list = {
    .name = "list",
    .arguments = "[KIND]",
    .summary = "List the known schedules, models, clusters and other names.",
    .details = "Without KIND it lists the kinds.\n\n"
               "  longhaul list\n"
               "  longhaul list schedules\n"
               "  longhaul list options --format md\n",
    .options = list_options,
    .options_size = sizeof(ListOptions),
    .arguments_max = 1,
    .names = "kinds",
    .run = run_list,
};
