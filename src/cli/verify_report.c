/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/verify_report.h"

#include "base/escape.h"
#include "report/data/notes.h"
#include "report/data/result_json.h"
#include "report/text/number_cells.h"
#include "scenario/setup_model.h"

#define FINDINGS_SHOWN 12 /* of a schedule */

/* "1-16,24": the numbers rise. Caller frees. */
static char *
format_ranges(const GArray *numbers)
{
    GString *text = g_string_new(NULL);

    for (guint i = 0; i < numbers->len; i++) {
        const uint64_t first = g_array_index(numbers, uint64_t, i);
        uint64_t last = first;

        while (i + 1 < numbers->len && g_array_index(numbers, uint64_t, i + 1) == last + 1) {
            last++;
            i++;
        }
        g_string_append_printf(text, "%s%" G_GUINT64_FORMAT, text->len > 0 ? "," : "", first);
        if (last > first)
            g_string_append_printf(text, "-%" G_GUINT64_FORMAT, last);
    }
    return g_string_free(text, FALSE);
}

static const char *
verdict_of(const LhProven *proven)
{
    if (proven->unproven->len > 0)
        return "NOT PROVEN";
    return proven->proven->len > 0 ? "proven" : "refused";
}

/* Whether all programs end in one queue for each rank. */
static const char *
queue_of(const LhProven *proven)
{
    if (proven->programs == 0)
        return "-";
    return proven->queued == proven->programs ? "yes" : "no";
}

/* "1.23 T": three digits are enough for a total. */
static void
add_magnitude(LhTable *table, LhWide count)
{
    static const char *const prefixes[] = { "", " k", " M", " G", " T", " P", " E", " Z", " Y" };
    char exact[LH_WIDE_TEXT_SIZE];
    g_autofree char *text = NULL;
    double value = (double)count;
    guint prefix = 0;

    for (; value >= 999.5 && prefix + 1 < G_N_ELEMENTS(prefixes); prefix++)
        value /= 1000;
    text = g_strdup_printf("%.3g%s", value, prefixes[prefix]);
    lh_table_cell(table, text, lh_wide_text(count, exact));
}

static void
add_proven_row(LhTable *table, const LhProven *p)
{
    g_autofree char *proven = format_ranges(p->proven);
    g_autofree char *unproven = format_ranges(p->unproven);
    g_autofree char *refused = format_ranges(p->refused);

    lh_table_row(table);
    lh_table_cell(table, p->name, NULL);
    lh_table_cell(table, verdict_of(p), NULL);
    lh_table_cell(table, p->unproven->len > 0 ? unproven : proven, NULL);
    lh_table_cell(table, refused[0] != '\0' ? refused : "-", refused);
    lh_table_cell(table, queue_of(p), NULL);
    lh_cell_count(table, p->programs);
    lh_cell_count(table, p->ops);
    lh_cell_count(table, p->messages);
    lh_cell_count(table, p->orders);
    add_magnitude(table, p->pairs);
    add_magnitude(table, p->bytes);
    add_magnitude(table, p->flops);
}

static LhTable *
make_table(const LhVerifyReport *report, bool for_machines)
{
    static const struct {
        const char *key, *title;
        bool number;
    } columns[] = {
        { "schedule", "schedule", false },
        { "verdict", "verdict", false },
        { "ranks", "for ranks", false },
        { "refused", "refused", false },
        { "one_queue", "one queue", false },
        { "programs", "programs", true },
        { "ops", "ops", true },
        { "messages", "messages", true },
        { "orders", "orders", true },
        { "pairs", "pairs", true },
        { "bytes", "bytes sent", true },
        { "flops", "flops", true },
    };
    g_autofree char *notes = for_machines ? lh_notes_text(report->model) : NULL;
    LhTable *table = lh_table_new();

    for (guint i = 0; i < G_N_ELEMENTS(columns); i++)
        lh_table_column(table, columns[i].key, columns[i].title, NULL, columns[i].number);
    if (for_machines)
        lh_table_column(table, "model_notes", "model notes", NULL, false);
    for (guint i = 0; i < report->schedules->len; i++) {
        add_proven_row(table, g_ptr_array_index(report->schedules, i));
        if (for_machines)
            lh_table_cell(table, notes != NULL ? notes : "", notes);
    }
    return table;
}

/* Prints the first few findings, because one mistake shows on many ranks and in many programs. */
static void
print_findings(const LhProven *proven, GString *out)
{
    const GArray *findings = proven->findings;
    g_autofree char *name = lh_escaped_line(proven->name);

    for (guint i = 0; i < MIN(findings->len, FINDINGS_SHOWN); i++) {
        const LhProofFinding *finding = &g_array_index(findings, LhProofFinding, i);

        g_string_append_printf(out, "%s%s, %s, %s\n", i == 0 ? "\n" : "", name,
                               lh_pass_names[finding->pass - 1], finding->message);
    }
    if (findings->len > FINDINGS_SHOWN)
        g_string_append_printf(out, "%s, %u findings more: --format json has all of them\n", name,
                               findings->len - FINDINGS_SHOWN);
}

/* Prints one line for each schedule that refuses something. */
static void
print_refusals(const LhVerifyReport *report, GString *out)
{
    bool any = false;

    for (guint i = 0; i < report->schedules->len; i++) {
        const LhProven *proven = g_ptr_array_index(report->schedules, i);

        if (proven->refusals == 0)
            continue;
        g_string_append_printf(out,
                               "%s%s refuses %" G_GUINT64_FORMAT " of %" G_GUINT64_FORMAT
                               " programs, first with %s\n",
                               any ? "" : "\n", proven->name, proven->refusals,
                               proven->refusals + proven->programs, proven->refusal);
        any = true;
    }
}

/* Prints why a schedule does not end in one queue for each rank. */
static void
print_queues(const LhVerifyReport *report, GString *out)
{
    bool any = false;

    for (guint i = 0; i < report->schedules->len; i++) {
        const LhProven *proven = g_ptr_array_index(report->schedules, i);
        g_autofree char *name = lh_escaped_line(proven->name);

        if (proven->not_queued == NULL)
            continue;
        g_string_append_printf(out,
                               "%s%s: %" G_GUINT64_FORMAT " of %" G_GUINT64_FORMAT
                               " programs need streams that run at the same time, first with %s: "
                               "a cycle, if all streams of a rank are one queue\n",
                               any ? "" : "\n", name, proven->programs - proven->queued,
                               proven->programs, proven->not_queued);
        any = true;
    }
}

/* Prints what the proofs leave open. */
static void
print_unchecked(const LhProven *proven, GString *out)
{
    for (guint i = 0; i < proven->unchecked->len; i++)
        g_string_append_printf(out, "%sNot checked: %s\n", i == 0 ? "\n" : "",
                               (const char *)g_ptr_array_index(proven->unchecked, i));
}

bool
lh_verify_report_all_proven(const LhVerifyReport *report)
{
    bool any = false;

    for (guint i = 0; i < report->schedules->len; i++) {
        const LhProven *proven = g_ptr_array_index(report->schedules, i);

        if (proven->unproven->len > 0)
            return false;
        any = any || proven->proven->len > 0;
    }
    return any;
}

static void
write_findings(LhJsonWriter *w, const LhProven *proven)
{
    for (guint i = 0; i < proven->findings->len; i++) {
        const LhProofFinding *finding = &g_array_index(proven->findings, LhProofFinding, i);

        lh_jsonw_object_begin(w, NULL);
        lh_jsonw_string(w, "schedule", proven->name);
        lh_jsonw_string(w, "pass", lh_pass_names[finding->pass - 1]);
        lh_jsonw_string(w, "message", finding->message);
        lh_jsonw_object_end(w);
    }
}

static void
write_refusal(LhJsonWriter *w, const LhProven *proven)
{
    if (proven->refusals == 0)
        return;
    lh_jsonw_object_begin(w, NULL);
    lh_jsonw_string(w, "schedule", proven->name);
    lh_jsonw_uint(w, "programs", proven->refusals);
    lh_jsonw_string(w, "first", proven->refusal);
    lh_jsonw_object_end(w);
}

/* "fwd, bwd, both"; caller frees. */
static char *
describe_passes(unsigned passes)
{
    GString *text = g_string_new(NULL);

    for (LhPass pass = LH_PASS_FWD; pass <= LH_PASS_BOTH; pass++) {
        if ((passes & (1u << pass)) != 0)
            g_string_append_printf(text, "%s%s", text->len > 0 ? ", " : "",
                                   lh_pass_names[pass - 1]);
    }
    return g_string_free(text, FALSE);
}

static void
print_verify_json(const LhCommandLine *line, const LhVerifyReport *report, GString *out)
{
    g_autofree char *passes = describe_passes(report->passes);
    g_autoptr(LhJsonWriter) w = lh_jsonw_new(out, false);
    g_autoptr(LhTable) table = make_table(report, false);
    LhStamp stamp = lh_command_stamp(line);

    stamp.model = report->model;
    lh_document_begin(w, "longhaul.verdict/1", &stamp, NULL, false);
    lh_jsonw_bool(w, "proven", lh_verify_report_all_proven(report));
    lh_jsonw_string(w, "passes", passes);
    lh_table_json(table, w, "results");
    lh_jsonw_array_begin(w, "refusals");
    for (guint i = 0; i < report->schedules->len; i++)
        write_refusal(w, g_ptr_array_index(report->schedules, i));
    lh_jsonw_array_end(w);
    lh_jsonw_array_begin(w, "findings");
    for (guint i = 0; i < report->schedules->len; i++)
        write_findings(w, g_ptr_array_index(report->schedules, i));
    lh_jsonw_array_end(w);
    lh_jsonw_array_begin(w, "unchecked");
    for (guint i = 0; i < report->schedules->len; i++) {
        const LhProven *proven = g_ptr_array_index(report->schedules, i);

        for (guint k = 0; k < proven->unchecked->len; k++)
            lh_jsonw_string(w, NULL, g_ptr_array_index(proven->unchecked, k));
    }
    lh_jsonw_array_end(w);
    lh_jsonw_object_end(w);
}

static void
print_notes(const LhModel *model, LhFormat format, GString *out)
{
    const gsize from = out->len;

    lh_describe_notes(model, out);
    if (out->len == from)
        return;
    lh_table_words(format, out, from);
    g_string_append_c(out, '\n');
}

void
lh_verify_report_print(const LhCommandLine *line, const LhVerifyReport *report, LhFormat format,
                       GString *out)
{
    g_autoptr(LhTable) table = make_table(report, format == LH_FORMAT_CSV);
    g_autofree char *passes = describe_passes(report->passes);
    gsize from = out->len;

    if (format == LH_FORMAT_JSON) {
        print_verify_json(line, report, out);
        return;
    }
    if (format != LH_FORMAT_CSV && line->scenario->step &&
        lh_setup_takes_default_model(line->scenario)) {
        g_string_append(out, "training steps of " LH_DEFAULT_MODEL
                             " (taken, since no --model is given)\n\n");
        lh_table_words(format, out, from);
    }
    if (format != LH_FORMAT_CSV)
        print_notes(report->model, format, out);
    lh_table_print(table, format, out);
    from = out->len;
    if (format == LH_FORMAT_CSV)
        return;
    print_refusals(report, out);
    print_queues(report, out);
    for (guint i = 0; i < report->schedules->len; i++)
        print_findings(g_ptr_array_index(report->schedules, i), out);
    for (guint i = 0; i < report->schedules->len; i++)
        print_unchecked(g_ptr_array_index(report->schedules, i), out);
    g_string_append_printf(out, "\n%s (%s).\n",
                           lh_verify_report_all_proven(report) ? "Proven" : "Not proven", passes);
    lh_table_words(format, out, from);
}
