/*
 * longhaul reproduce: predicts what others have measured, and says how far off it is.
 */
#include "base/error.h"
#include "cli/command.h"
#include "plan/reproduce.h"
#include "report/accuracy_figure.h"
#include "report/reproduction.h"

#include <stddef.h>

#define TABLES_MAX 1000

typedef struct {
    LhOutputOptions to;
    char *rows, *figure;
    bool fit;
    uint64_t jobs;
} ReproduceOptions;

static const LhField reproduce_options[] = {
    LH_OPTION_FORMAT(ReproduceOptions, to),
    LH_OPTION_OUTPUT(ReproduceOptions, to),
    { .name = "rows",
      .type = LH_FIELD_STRING,
      .offset = offsetof(ReproduceOptions, rows),
      .min = 1,
      .max = -1,
      .placeholder = "PLACE",
      .names = "files",
      .description = "Take the rows from files TABLE.csv in this folder, or from this file; "
                     "without TABLE, of all tables whose files are there." },
    { .name = "fit",
      .type = LH_FIELD_BOOL,
      .offset = offsetof(ReproduceOptions, fit),
      .description = "Fit the constants of the tables anew, to the rows that each table names for "
                     "it, and use them." },
    LH_OPTION_JOBS(ReproduceOptions, jobs, "Cases to predict"),
    LH_OPTION_FIGURE(ReproduceOptions, figure,
                     "Also draw the published numbers that are judged beside the predictions, to "
                     "this .svg, .png or .pdf file."),
    { .name = NULL },
};

/* Words of a table, which come from files, as a paragraph of @format. */
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

/* Error bars are judged by all tables: one alone may well be better or worse than they say. */
static bool
is_of_all(const LhCommandLine *line)
{
    const ReproduceOptions *o = line->options;

    return line->arguments->len == 0 && o->rows == NULL;
}

/* The summary; behind it, the numbers of tables that were named. */
static void
print_reproduce_text(const GPtrArray *tables, bool named, bool all, LhFormat format, GString *out)
{
    g_autoptr(LhTable) summary = lh_describe_reproduction(tables);

    lh_table_print(summary, format, out);
    if (all) {
        const gsize from = out->len + 1;

        g_string_append_c(out, '\n');
        lh_describe_error_bars(tables, out);
        lh_table_words(format, out, from);
    }
    for (guint i = 0; i < tables->len; i++) {
        const LhReproducedTable *table = g_ptr_array_index(tables, i);
        g_autoptr(LhTable) cases = NULL;

        if (!named && table->constants == NULL)
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

static void
print_reproduce(const LhCommandLine *line, const GPtrArray *tables, GString *out)
{
    const ReproduceOptions *o = line->options;
    const LhFormat format = (LhFormat)o->to.format;
    const LhStamp stamp = lh_command_stamp(line);
    g_autoptr(LhTable) all = NULL;

    if (format == LH_FORMAT_JSON) {
        lh_reproduction_json(tables, &stamp, out);
        return;
    }
    if (format == LH_FORMAT_CSV) {
        all = lh_reproduction_table(tables);
        lh_table_print(all, format, out);
        return;
    }
    print_reproduce_text(tables, line->arguments->len > 0, is_of_all(line), format, out);
}

static bool
bars_hold(const LhCommandLine *line, const GPtrArray *tables)
{
    guint within, judged;

    lh_reproduced_bars(tables, &within, &judged);
    return !is_of_all(line) || lh_reproduced_bars_hold(within, judged);
}

static int
run_reproduce(const LhCommandLine *line, GError **error)
{
    const ReproduceOptions *o = line->options;
    const LhReproduceParams params = {
        .names = line->arguments, .folder = o->rows, .fit = o->fit, .jobs = (guint)o->jobs
    };
    g_autoptr(GPtrArray) tables = lh_reproduce(&params, error);
    g_autoptr(GString) out = g_string_new(NULL);

    if (tables == NULL)
        return LH_ERROR_INPUT;
    print_reproduce(line, tables, out);
    if (!lh_command_write(&o->to, out, error))
        return LH_ERROR_RUNTIME;
    if (o->figure != NULL && !lh_accuracy_figure_draw(tables, o->figure, error))
        return LH_ERROR_RUNTIME;
    return lh_reproduced_within(tables) && bars_hold(line, tables) ? 0 : LH_ERROR_NO;
}

const LhCommand lh_command_reproduce = {
    .name = "reproduce",
    .arguments = "[TABLE..] [OPTIONS]",
    .summary = "Predict what others have measured, and say how far off the predictions are.",
    .details = "Predicts the numbers of published tables (longhaul list tables), those of each\n"
               "TABLE, or of all of them. Numbers that constants were fitted to are not judged.\n"
               "A table is named as its file of rows without the ending; --rows takes tables of\n"
               "the same columns from elsewhere. Exit status 1 if a table is further off than\n"
               "its bounds allow, or says wrongly of a case that it fits in memory, and, of all\n"
               "tables, if not 70 to 90 % of the numbers are within their error bars.\n\n"
               "  longhaul reproduce\n"
               "  longhaul reproduce ring_flash_attention\n"
               "  longhaul reproduce lightseq_table1 --rows folder --format json\n",
    .options = reproduce_options,
    .options_size = sizeof(ReproduceOptions),
    .arguments_max = TABLES_MAX,
    .names = "tables",
    .run = run_reproduce,
};
