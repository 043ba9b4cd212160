/* SPDX-License-Identifier: Apache-2.0 */
/*
 * longhaul reproduce: predicts published measurements and prints the errors.
 */
#include "base/error.h"
#include "cli/command.h"
#include "papers/reproduce.h"
#include "report/draw/accuracy_figure.h"
#include "report/text/describe_checklist.h"
#include "report/text/reproduction.h"
#include "report/text/reproduction_values.h"

#include <stddef.h>

#define TABLES_MAX 1000
#define PAPERS "papers" /* name of the checklist of papers */

typedef struct {
    LhOutputOptions to;
    char *rows, *figure, *checklist;
    bool fit, cross_fit;
    uint64_t jobs;
} ReproduceOptions;

static const LhField reproduce_options[] = {
    LH_OPTION_FORMAT(ReproduceOptions, to),
    LH_OPTION_OUTPUT(ReproduceOptions, to),
    { .name = "rows",
      .category = LH_ABOUT_INPUT,
      .type = LH_FIELD_STRING,
      .offset = offsetof(ReproduceOptions, rows),
      .min = 1,
      .max = -1,
      .placeholder = "PLACE",
      .names = "files",
      .description = "Read the rows from TABLE.csv files in this folder, or from this file. "
                     "Without TABLE, uses every table whose file is there." },
    { .name = "fit",
      .category = LH_ABOUT_MEASUREMENT,
      .type = LH_FIELD_BOOL,
      .offset = offsetof(ReproduceOptions, fit),
      .description = "Fit the constants of the tables again, to the rows that each table names for "
                     "it, and use them." },
    { .name = "cross-fit",
      .category = LH_ABOUT_MEASUREMENT,
      .type = LH_FIELD_BOOL,
      .offset = offsetof(ReproduceOptions, cross_fit),
      .description = "Also fit the constants to the judged rows, and print the errors of the other "
                     "rows with these constants." },
    { .name = "checklist",
      .category = LH_ABOUT_INPUT,
      .type = LH_FIELD_STRING,
      .offset = offsetof(ReproduceOptions, checklist),
      .min = 1,
      .max = -1,
      .placeholder = "NAME",
      .names = "checklists",
      .description = "Judge the claims of a checklist, line by line, by the tables it names "
                     "(`papers`, or a file of format longhaul.checklist/1)." },
    LH_OPTION_JOBS(ReproduceOptions, jobs, "Cases to predict"),
    LH_OPTION_FIGURE(ReproduceOptions, figure,
                     "Also draw the judged published values beside the predictions, to this .svg, "
                     ".png or .pdf file."),
    { .name = NULL },
};

/* Appends a description of a table, which contains words of files, as a paragraph of @format. */
static void
print_words(void (*describe)(const LhReproducedTable *, GString *), const LhReproducedTable *table,
            LhFormat format, GString *out)
{
    const gsize before = out->len;

    g_string_append_c(out, '\n');
    describe(table, out);
    if (out->len == before + 1)
        g_string_truncate(out, before);
    else
        lh_table_words(format, out, before + 1);
}

/* Whether all tables are judged: only then are the error bars judged, since one table alone may be
 * better or worse than they say. */
static bool
is_of_all(const LhCommandLine *line)
{
    const ReproduceOptions *o = line->options;

    return line->arguments->len == 0 && o->rows == NULL && o->checklist == NULL;
}

/* Prints, after the summaries, the values of tables that were named, and the fitted constants. */
static void
print_tables_text(const GPtrArray *tables, bool named, LhFormat format, GString *out)
{
    for (guint i = 0; i < tables->len; i++) {
        const LhReproducedTable *table = g_ptr_array_index(tables, i);
        g_autoptr(LhTable) cases = NULL;

        if (!named && table->constants == NULL && table->cross_constants == NULL)
            continue;
        print_words(lh_describe_reproduced, table, format, out);
        if (!named)
            continue;
        if (table->all.left_out < table->all.cases) {
            cases = lh_reproduced_cases(table);
            g_string_append_c(out, '\n');
            lh_table_print(cases, format, out);
        }
        print_words(lh_describe_left_out_cases, table, format, out);
    }
}

/* Prints a line for each table, or for each line of the checklist. */
static void
print_reproduce_text(const LhCommandLine *line, const GPtrArray *tables, const GArray *checked,
                     LhFormat format, GString *out)
{
    g_autoptr(LhTable) summary =
        checked != NULL ? lh_describe_checklist(checked) : lh_describe_reproduction(tables);

    lh_table_print(summary, format, out);
    if (is_of_all(line)) {
        const gsize from = out->len + 1;

        g_string_append_c(out, '\n');
        lh_describe_error_bars(tables, out);
        lh_table_words(format, out, from);
    }
    print_tables_text(tables, line->arguments->len > 0, format, out);
}

/* @checked: lines of the checklist; NULL: no checklist. */
static void
print_reproduce(const LhCommandLine *line, const GPtrArray *tables, const GArray *checked,
                GString *out)
{
    const ReproduceOptions *o = line->options;
    const LhFormat format = (LhFormat)o->to.format;
    const LhStamp stamp = lh_command_stamp(line);
    g_autoptr(LhTable) all = NULL;

    if (format == LH_FORMAT_JSON) {
        lh_reproduction_json(tables, checked, &stamp, out);
        return;
    }
    if (format == LH_FORMAT_CSV) {
        all = checked != NULL ? lh_describe_checklist(checked) : lh_reproduction_table(tables);
        lh_table_print(all, format, out);
        return;
    }
    print_reproduce_text(line, tables, checked, format, out);
}

static bool
bars_hold(const LhCommandLine *line, const GPtrArray *tables)
{
    guint within, judged;

    lh_reproduced_bars(tables, &within, &judged);
    return !is_of_all(line) || lh_reproduced_bars_hold(within, judged);
}

/* What to print. */
typedef struct {
    LhChecklist *checklist; /* NULL: none given */
    GPtrArray *tables;      /* of LhReproducedTable * */
    GArray *checked;        /* lines of the checklist */
} Reproduced;

static void
reproduced_clear(Reproduced *r)
{
    g_clear_pointer(&r->checked, g_array_unref);
    g_clear_pointer(&r->tables, g_ptr_array_unref);
    lh_checklist_free(r->checklist);
}

G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(Reproduced, reproduced_clear)

/* With all tables, those of the papers come first. */
static bool
sort_tables(GPtrArray *tables, GError **error)
{
    g_autoptr(LhChecklist) papers = lh_checklist_load(PAPERS, error);

    if (papers == NULL)
        return false;
    lh_checklist_sort(papers, tables);
    return true;
}

static bool
reproduce_checklist(const ReproduceOptions *o, LhReproduceParams *params, Reproduced *r,
                    GError **error)
{
    g_autoptr(GPtrArray) names = NULL;

    if (params->names->len > 0) {
        g_set_error(error, LH_ERROR, LH_ERROR_USAGE,
                    "\"%s\" with --checklist: a checklist names its own tables",
                    (const char *)g_ptr_array_index(params->names, 0));
        return false;
    }
    r->checklist = lh_checklist_load(o->checklist, error);
    if (r->checklist == NULL)
        return false;
    params->names = names = lh_checklist_tables(r->checklist);
    r->tables = lh_reproduce(params, error);
    if (r->tables != NULL)
        r->checked = lh_checklist_check(r->checklist, r->tables, error);
    return r->checked != NULL;
}

static bool
reproduce(const LhCommandLine *line, Reproduced *r, GError **error)
{
    const ReproduceOptions *o = line->options;
    LhReproduceParams params = {
        .names = line->arguments,
        .folder = o->rows,
        .fit = o->fit,
        .cross_fit = o->cross_fit,
        .jobs = (guint)o->jobs,
    };

    if (o->checklist != NULL)
        return reproduce_checklist(o, &params, r, error);
    r->tables = lh_reproduce(&params, error);
    return r->tables != NULL && (!is_of_all(line) || sort_tables(r->tables, error));
}

static LhAnswer
run_reproduce(const LhCommandLine *line, GError **error)
{
    const ReproduceOptions *o = line->options;
    g_auto(Reproduced) r = { 0 };
    g_autoptr(GString) out = g_string_new(NULL);

    if (!reproduce(line, &r, error))
        return LH_ANSWER_FAILED;
    print_reproduce(line, r.tables, r.checked, out);
    if (!lh_command_write(&o->to, out, error) ||
        (o->figure != NULL && !lh_accuracy_figure_draw(r.tables, o->figure, error)))
        return LH_ANSWER_FAILED;
    return lh_reproduced_within(r.tables) && bars_hold(line, r.tables) ? LH_ANSWER_YES
                                                                       : LH_ANSWER_NO;
}

const LhCommand lh_command_reproduce = {
    .name = "reproduce",
    .arguments = "[TABLE..] [OPTIONS]",
    .summary = "Predict published measurements, and print the errors of the predictions.",
    .details = "Predicts the values of published tables (longhaul list tables): of each TABLE,\n"
               "or of all. Values used to fit constants are not judged. TABLE is the name of a\n"
               "file of rows without its ending; --rows reads tables with the same columns from\n"
               "elsewhere. Exit status 1 if the error of a table exceeds its bounds, if a table\n"
               "wrongly predicts that a case fits in memory, or, with all tables, unless 70 to\n"
               "90 % of the values are within their error bars.\n\n"
               "  longhaul reproduce\n"
               "  longhaul reproduce --checklist papers\n"
               "  longhaul reproduce ring_flash_attention\n"
               "  longhaul reproduce lightseq_table1 --rows folder --format json\n",
    .options = reproduce_options,
    .options_size = sizeof(ReproduceOptions),
    .arguments_max = TABLES_MAX,
    .names = "tables",
    .run = run_reproduce,
};
