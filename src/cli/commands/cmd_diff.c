/* SPDX-License-Identifier: Apache-2.0 */
/*
 * longhaul diff: compares two results.
 */
#include "base/error.h"
#include "cli/command.h"
#include "report/diff/outcome_load.h"
#include "report/text/describe_diff.h"

#include <stddef.h>
#include <string.h>

typedef struct {
    LhOutputOptions to;
    char *tolerance; /* a share; NULL: no limit */
} DiffOptions;

static const LhField diff_options[] = {
    LH_OPTION_FORMAT(DiffOptions, to),
    LH_OPTION_OUTPUT(DiffOptions, to),
    { .name = "tolerance",
      .category = LH_ABOUT_MEASUREMENT,
      .type = LH_FIELD_STRING,
      .offset = offsetof(DiffOptions, tolerance),
      .placeholder = "SHARE",
      .description = "Exit with status 1 if a time or peak memory is larger in B by more than "
                     "this, such as 2% or 0.02, or if something runs only in A." },
    { .name = NULL },
};

static void
print_diff_table(const LhTable *table, LhFormat format, GString *out)
{
    if (table == NULL)
        return;
    if (out->len > 0)
        g_string_append_c(out, '\n');
    lh_table_print(table, format, out);
}

/* Prints the changes inside the single result, or inside the two winners. */
static void
print_parts(const LhDiff *diff, LhFormat format, GString *out)
{
    const char *const a = diff->a->winner, *const b = diff->b->winner;
    g_autoptr(GPtrArray) names = lh_diff_names(diff);
    const char *const only = names->len == 1 ? g_ptr_array_index(names, 0) : NULL;
    g_autoptr(LhTable) first = NULL;
    g_autoptr(LhTable) second = NULL;

    if (a != NULL || only != NULL)
        first = lh_describe_diff_parts(diff, a != NULL ? a : only);
    if (b != NULL && g_strcmp0(a, b) != 0 && names->len > 1)
        second = lh_describe_diff_parts(diff, b);
    print_diff_table(first, format, out);
    print_diff_table(second, format, out);
}

static void
print_diff_text(const LhDiff *diff, LhFormat format, GString *out)
{
    g_autoptr(LhTable) of_case = lh_describe_diff_case(diff);
    g_autoptr(LhTable) entries = lh_describe_diff_entries(diff);
    g_autoptr(GString) words = g_string_new(NULL);

    print_diff_table(of_case, format, out);
    print_diff_table(entries, format, out);
    print_parts(diff, format, out);
    lh_describe_diff_words(diff, words);
    lh_table_words(format, words, 0);
    if (words->len > 0)
        g_string_append_printf(out, "\n%s", words->str);
}

static void
print_diff(const LhCommandLine *line, const LhDiff *diff, GString *out)
{
    const DiffOptions *o = line->options;
    const LhStamp stamp = lh_command_stamp(line);
    g_autoptr(LhTable) table = NULL;

    if (o->to.format == LH_FORMAT_JSON) {
        lh_diff_json(diff, &stamp, out);
    } else if (o->to.format == LH_FORMAT_CSV) {
        table = lh_diff_table(diff);
        lh_table_print(table, LH_FORMAT_CSV, out);
    } else {
        print_diff_text(diff, (LhFormat)o->to.format, out);
    }
}

static LhAnswer
run_diff(const LhCommandLine *line, GError **error)
{
    const DiffOptions *o = line->options;
    g_autoptr(LhOutcome) a = NULL;
    g_autoptr(LhOutcome) b = NULL;
    g_autoptr(LhDiff) diff = NULL;
    g_autoptr(GString) out = g_string_new(NULL);
    double tolerance = -1;

    if (o->tolerance != NULL &&
        !lh_command_share("--tolerance", o->tolerance, true, &tolerance, error))
        return LH_ANSWER_FAILED;
    if (line->arguments->len != 2) {
        g_set_error(error, LH_ERROR, LH_ERROR_USAGE, "diff takes two results, found %u arguments",
                    line->arguments->len);
        return LH_ANSWER_FAILED;
    }
    a = lh_outcome_load(g_ptr_array_index(line->arguments, 0), error);
    b = a == NULL ? NULL : lh_outcome_load(g_ptr_array_index(line->arguments, 1), error);
    diff = b == NULL ? NULL : lh_diff_new(a, b, tolerance, error);
    if (diff == NULL)
        return LH_ANSWER_FAILED;
    print_diff(line, diff, out);
    if (!lh_command_write(&o->to, out, error))
        return LH_ANSWER_FAILED;
    return diff->regressions->len > 0 ? LH_ANSWER_NO : LH_ANSWER_YES;
}

const LhCommand lh_command_diff = {
    .name = "diff",
    .arguments = "A B [OPTIONS]",
    .summary = "Show what changed between two results, and whether it became worse.",
    .details = "A and B are files that sim, compare or plan wrote with --format json, both of\n"
               "the same kind (schemas longhaul.result/3, longhaul.plan/1; longhaul.path/1 of\n"
               "sim --critical-path). The exit status is 0, unless --tolerance is given and\n"
               "something is worse by more: then it is 1.\n\n"
               "Differences between the inputs are listed first: fields of the scenario, options\n"
               "that affect the result, and changed files. Giving a default value explicitly is\n"
               "no difference. A value missing in a result of an earlier version counts as not\n"
               "given. Results of interrupted commands are partial: --tolerance is refused for\n"
               "them.\n\n"
               "  longhaul compare dfa-2node -o before.json\n"
               "  longhaul compare dfa-2node --seq-length 128K -o after.json\n"
               "  longhaul diff before.json after.json --tolerance 2%\n",
    .arguments_max = 2,
    .names = "files",
    .options = diff_options,
    .options_size = sizeof(DiffOptions),
    .run = run_diff,
};
