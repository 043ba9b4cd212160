/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/verify_report.h"

#include "base/escape.h"
#include "report/data/notes.h"
#include "report/data/result_json.h"
#include "report/text/number_cells.h"
#include "scenario/setup_model.h"

#define FINDINGS_SHOWN 12 /* per schedule */

/* "1-16,24" from increasing numbers. Caller frees. */
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

static const char *const verdicts[] = { "proven", "refused", "NOT PROVEN", NULL };

static const char *
verdict_of(const LhProven *proven)
{
    if (proven->unproven->len > 0)
        return verdicts[2];
    return verdicts[proven->proven->len > 0 ? 0 : 1];
}

static const char *const queue_states[] = { "yes", "no", "-", NULL };

/* Whether all programs end in one queue for each rank. */
static const char *
queue_of(const LhProven *proven)
{
    if (proven->programs == 0)
        return queue_states[2];
    return queue_states[proven->queued == proven->programs ? 0 : 1];
}

/* "1.23 T": three digits suffice for a total. */
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

/* A row of the table, as text. */
typedef struct {
    const char *schedule, *verdict, *ranks, *refused, *one_queue;
    const char *programs, *ops, *messages, *orders, *pairs, *bytes, *flops;
} ProvenTexts;

#define PROVEN_ROW(member, ...)                                                                    \
    LH_FIELD_ROW(STRING, ProvenTexts, member, #member, ALWAYS, __VA_ARGS__)

/* Its columns. */
static const LhField proven_fields[] = {
    PROVEN_ROW(schedule, .description = "Name of the schedule or program."),
    PROVEN_ROW(verdict, .choices = verdicts,
               .description = "Whether all its programs are proven; refused: it has none."),
    PROVEN_ROW(ranks, .description =
                          "Proven numbers of ranks, or those that are not proven: \"1-16,24\"."),
    PROVEN_ROW(refused, .description = "Numbers of ranks refused by the schedule."),
    PROVEN_ROW(one_queue, .choices = queue_states,
               .description =
                   "Whether all programs end in one queue for each rank; -: there is none."),
    PROVEN_ROW(programs,
               .description = "Programs checked, a number as text like the following ones."),
    PROVEN_ROW(ops, .description = "Ops checked."),
    PROVEN_ROW(messages, .description = "Likewise."),
    PROVEN_ROW(orders, .description = "Pairs of ops whose order was checked."),
    PROVEN_ROW(pairs, .description = "Pairs of query and key attended to."),
    PROVEN_ROW(bytes, .description = "Bytes sent."),
    PROVEN_ROW(flops, .description = "Flops of attention."),
    { .name = NULL },
};

static LhTable *
make_table(const LhVerifyReport *report, bool for_machines)
{
    static const struct {
        const char *title;
        bool number;
    } columns[] = {
        { "schedule", false },  { "verdict", false }, { "for ranks", false }, { "refused", false },
        { "one queue", false }, { "programs", true }, { "ops", true },        { "messages", true },
        { "orders", true },     { "pairs", true },    { "bytes sent", true }, { "flops", true },
    };
    g_autofree char *notes = for_machines ? lh_notes_text(report->model) : NULL;
    LhTable *table = lh_table_new();

    for (guint i = 0; i < G_N_ELEMENTS(columns); i++)
        lh_table_column(table, proven_fields[i].name, columns[i].title, NULL, columns[i].number);
    if (for_machines)
        lh_table_column(table, "model_notes", "model notes", NULL, false);
    for (guint i = 0; i < report->schedules->len; i++) {
        add_proven_row(table, g_ptr_array_index(report->schedules, i));
        if (for_machines)
            lh_table_cell(table, notes != NULL ? notes : "", notes);
    }
    return table;
}

/* Prints the first few findings: one mistake shows on many ranks and in many programs. */
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
        g_string_append_printf(out, "%s, %u more findings: see --format json\n", name,
                               findings->len - FINDINGS_SHOWN);
}

/* Prints one line for each schedule that rejects a case. */
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
                               " programs, the first with %s\n",
                               any ? "" : "\n", proven->name, proven->refusals,
                               proven->refusals + proven->programs, proven->refusal);
        any = true;
    }
}

/* Prints why a schedule deadlocks with one queue per rank. */
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
                               " programs need concurrent streams, the first with %s: there is a "
                               "cycle if all streams of a rank are one queue\n",
                               any ? "" : "\n", name, proven->programs - proven->queued,
                               proven->programs, proven->not_queued);
        any = true;
    }
}

/* Prints what the proofs do not cover. */
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

/* ---- as JSON ---- */

static const LhField refusal_fields[] = {
    LH_FIELD_ROW(STRING, LhProven, name, "schedule", ALWAYS, .description = "The schedule."),
    LH_FIELD_ROW(UINT, LhProven, refusals, "programs", ALWAYS,
                 .description = "Number of programs that it refuses."),
    LH_FIELD_ROW(STRING, LhProven, refusal, "first", ALWAYS,
                 .description = "First refused program, and the reason."),
    { .name = NULL },
};

typedef struct {
    const char *schedule;
    int pass; /* index of lh_pass_names */
    const char *message;
} Finding;

static const LhField finding_fields[] = {
    LH_FIELD_ROW(STRING, Finding, schedule, "schedule", ALWAYS, .description = "The schedule."),
    LH_FIELD_ROW(CHOICE, Finding, pass, "pass", ALWAYS, .choices = lh_pass_names,
                 .description = "The pass."),
    LH_FIELD_ROW(STRING, Finding, message, "message", ALWAYS,
                 .description = "The mistake and its place."),
    { .name = NULL },
};

typedef struct {
    LhDocumentHead head;
    bool proven;
    const char *passes;
    GPtrArray *results;  /* of ProvenTexts * */
    GPtrArray *refusals; /* of LhProven * */
    GArray *findings;    /* of Finding */
    GPtrArray *unchecked;
} Verdict;

static const char *const verdict_schema[] = { "longhaul.verdict/1", NULL };

const LhField lh_verdict_fields[] = {
    LH_DOCUMENT_HEAD(Verdict, head, verdict_schema),
    LH_FIELD_ROW(BOOL, Verdict, proven, "proven", ALWAYS,
                 .description = "Whether there are programs and all are proven."),
    LH_FIELD_ROW(STRING, Verdict, passes, "passes", ALWAYS,
                 .description = "Passes checked: \"fwd, bwd, both\"."),
    LH_FIELD_ROW(POINTERS, Verdict, results, "results", ALWAYS, .fields = proven_fields,
                 .description = "Results by schedule, over all numbers of ranks."),
    LH_FIELD_ROW(POINTERS, Verdict, refusals, "refusals", ALWAYS, .fields = refusal_fields,
                 .description = "Schedules that refuse programs."),
    LH_FIELD_ROW(ARRAY, Verdict, findings, "findings", ALWAYS, .fields = finding_fields,
                 .element_size = sizeof(Finding),
                 .description = "Reasons why programs are not proven."),
    LH_FIELD_ROW(STRINGS, Verdict, unchecked, "unchecked", ALWAYS,
                 .description = "What the proofs do not cover."),
    { .name = NULL },
};

static void
add_findings(const LhProven *proven, GArray *findings)
{
    for (guint i = 0; i < proven->findings->len; i++) {
        const LhProofFinding *finding = &g_array_index(proven->findings, LhProofFinding, i);
        const Finding found = { .schedule = proven->name,
                                .pass = (int)finding->pass - 1,
                                .message = finding->message };

        g_array_append_val(findings, found);
    }
}

static void
print_verify_json(const LhCommandLine *line, const LhVerifyReport *report, GString *out)
{
    g_autofree char *passes = describe_passes(report->passes);
    g_autoptr(LhTable) table = make_table(report, false);
    g_autoptr(GPtrArray) results = lh_table_texts(table, proven_fields);
    g_autoptr(GPtrArray) refusals = g_ptr_array_new(), unchecked = g_ptr_array_new();
    g_autoptr(GArray) findings = g_array_new(FALSE, FALSE, sizeof(Finding));
    LhStamp stamp = lh_command_stamp(line);
    Verdict verdict = { .proven = lh_verify_report_all_proven(report),
                        .passes = passes,
                        .results = results,
                        .refusals = refusals,
                        .findings = findings,
                        .unchecked = unchecked };

    stamp.model = report->model;
    verdict.head = lh_document_head(verdict_schema[0], &stamp, NULL);
    for (guint i = 0; i < report->schedules->len; i++) {
        LhProven *proven = g_ptr_array_index(report->schedules, i);

        if (proven->refusals > 0)
            g_ptr_array_add(refusals, proven);
        add_findings(proven, findings);
        for (guint k = 0; k < proven->unchecked->len; k++)
            g_ptr_array_add(unchecked, g_ptr_array_index(proven->unchecked, k));
    }
    lh_json_encode_text(lh_verdict_fields, &verdict, out);
    lh_document_head_clear(&verdict.head);
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
        g_string_append_printf(out,
                               "%s of " LH_DEFAULT_MODEL " (the default: no --model is given)\n\n",
                               report->passes == 1u << LH_PASS_FWD ? "prefills" : "training steps");
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
