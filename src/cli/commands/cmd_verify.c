/*
 * longhaul verify: proves schedules for many numbers of ranks.
 */
#include "base/error.h"
#include "base/escape.h"
#include "cli/command.h"
#include "cli/progress.h"
#include "proof/run_time_estimate.h"
#include "report/data/notes.h"
#include "report/data/result_json.h"
#include "report/text/describe.h"
#include "report/text/number_cells.h"
#include "scenario/config_check.h"
#include "scenario/schedule_pairs.h"
#include "scenario/setting.h"
#include "scenario/setup_model.h"
#include "scenario/setup_params.h"

#include <stddef.h>

#define VERIFY_RANKS_DEFAULT "1-16,24,25,32,33,36,64"
#define FINDINGS_SHOWN 12 /* of a schedule */

typedef struct {
    LhOutputOptions to;
    char *from_config;
    GPtrArray *set; /* of char * */
    char *ranks;
    LhTime max_work_ps;
} VerifyOptions;

static const LhField verify_options[] = {
    LH_OPTION_FORMAT(VerifyOptions, to),
    LH_OPTION_OUTPUT(VerifyOptions, to),
    LH_OPTION_FROM_CONFIG(VerifyOptions, from_config, "Its whole step is proven."),
    LH_OPTION_SET(VerifyOptions, set),
    { .name = "ranks",
      .type = LH_FIELD_STRING,
      .offset = offsetof(VerifyOptions, ranks),
      .placeholder = "LIST",
      .description = "Numbers of ranks, such as 1-16,24; default: the scenario's, or "
                     "else " VERIFY_RANKS_DEFAULT "." },
    LH_OPTION_MAX_WORK(VerifyOptions, max_work_ps),
    { .name = NULL },
};

typedef struct {
    GPtrArray *schedules; /* of LhProven * */
    unsigned passes;      /* bit 1 << LhPass */
    LhModel *model;       /* NULL: a program of a file alone */
} Report;

/* --- output -------------------------------------------------------------------------------------
 */

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
make_table(const Report *report, bool for_machines)
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
print_refusals(const Report *report, GString *out)
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
print_queues(const Report *report, GString *out)
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

static bool
all_proven(const Report *report)
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
print_verify_json(const LhCommandLine *line, const Report *report, GString *out)
{
    g_autofree char *passes = describe_passes(report->passes);
    g_autoptr(LhJsonWriter) w = lh_jsonw_new(out, false);
    g_autoptr(LhTable) table = make_table(report, false);
    const LhStamp stamp = lh_command_stamp(line);

    lh_stamp_json(w, "longhaul.verdict/1", &stamp, NULL);
    lh_notes_json(w, report->model);
    lh_jsonw_bool(w, "proven", all_proven(report));
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

static void
print_verify(const LhCommandLine *line, const Report *report, GString *out)
{
    const VerifyOptions *o = line->options;
    g_autoptr(LhTable) table = make_table(report, o->to.format == LH_FORMAT_CSV);
    g_autofree char *passes = describe_passes(report->passes);
    gsize from = out->len;

    if (o->to.format == LH_FORMAT_JSON) {
        print_verify_json(line, report, out);
        return;
    }
    if (o->to.format != LH_FORMAT_CSV && line->scenario->step &&
        lh_setup_takes_default_model(line->scenario)) {
        g_string_append(out, "training steps of " LH_DEFAULT_MODEL
                             " (taken, since no --model is given)\n\n");
        lh_table_words((LhFormat)o->to.format, out, from);
    }
    if (o->to.format != LH_FORMAT_CSV)
        print_notes(report->model, (LhFormat)o->to.format, out);
    lh_table_print(table, (LhFormat)o->to.format, out);
    from = out->len;
    if (o->to.format == LH_FORMAT_CSV)
        return;
    print_refusals(report, out);
    print_queues(report, out);
    for (guint i = 0; i < report->schedules->len; i++)
        print_findings(g_ptr_array_index(report->schedules, i), out);
    for (guint i = 0; i < report->schedules->len; i++)
        print_unchecked(g_ptr_array_index(report->schedules, i), out);
    g_string_append_printf(out, "\n%s (%s).\n", all_proven(report) ? "Proven" : "Not proven",
                           passes);
    lh_table_words((LhFormat)o->to.format, out, from);
}

/* --- the command --------------------------------------------------------------------------------
 */

static GArray *
one_number(uint64_t ranks)
{
    GArray *one = g_array_new(FALSE, FALSE, sizeof(uint64_t));

    g_array_append_val(one, ranks);
    return one;
}

/* @gpus_per_node is set if the scenario names a cluster. */
static GArray *
choose_ranks(const LhCommandLine *line, uint32_t *gpus_per_node, GError **error)
{
    const LhScenario *s = line->scenario;
    const VerifyOptions *o = line->options;
    uint64_t ranks = 0;

    if (!lh_setup_ranks(s, &ranks, error))
        return NULL;
    if (s->cluster != NULL) {
        g_autoptr(LhSetup) setup = lh_setup_new(s, error);

        if (setup == NULL)
            return NULL;
        *gpus_per_node = (uint32_t)setup->topology->gpus_per_node;
        ranks = setup->network.ranks;
    } else if (s->ranks != 0) {
        ranks = s->ranks;
    }
    if (o->ranks != NULL)
        return lh_setting_parse_ranges("--ranks", o->ranks, error);
    if (ranks > LH_RANKS_MAX) {
        g_set_error(error, LH_ERROR, LH_ERROR_INPUT,
                    "%" G_GUINT64_FORMAT " ranks; 1 to %u are possible", ranks, LH_RANKS_MAX);
        return NULL;
    }
    return ranks != 0 ? one_number(ranks)
                      : lh_setting_parse_ranges("--ranks", VERIFY_RANKS_DEFAULT, error);
}

static unsigned
choose_passes(const LhScenario *s)
{
    return s->step        ? 1u << LH_PASS_BOTH
           : s->pass >= 0 ? 1u << (s->pass + 1)
                          : 1u << LH_PASS_FWD | 1u << LH_PASS_BWD | 1u << LH_PASS_BOTH;
}

/* Whether a schedule is left out: none was named, and it does not compute the kind of attention
 * that was asked for. */
static bool
is_other_kind(const LhScenario *s, const LhSchedule *schedule, const LhModel *model)
{
    return s->schedule == NULL && !lh_pairs_wanted(s, model) &&
           (s->attention >= 0 || s->model != NULL) &&
           !lh_schedule_takes(schedule, lh_setup_is_linear(s, model));
}

/* The schedules to prove, which between them read every option. Caller unrefs. */
static GPtrArray *
choose_schedules(const LhScenario *s, const LhModel *model, GError **error)
{
    g_autoptr(GPtrArray) schedules = lh_setup_schedules(s, error);
    bool linear = false;

    for (guint i = 0; schedules != NULL && i < schedules->len;) {
        const LhSchedule *schedule = g_ptr_array_index(schedules, i);

        if (is_other_kind(s, schedule, model)) {
            g_ptr_array_remove_index(schedules, i);
            continue;
        }
        linear = linear || (s->attention != 0 && lh_schedule_takes(schedule, true));
        i++;
    }
    if (schedules == NULL || !lh_pairs_of(s, model, 0, schedules, NULL, error) ||
        !lh_check_read(s, schedules, linear, error))
        return NULL;
    return g_steal_pointer(&schedules);
}

/* About how long all proofs take. */
static double
seconds_to_prove(const LhProveParams *params, const GArray *ranks, const GPtrArray *schedules)
{
    double seconds = 0;

    for (guint i = 0; i < schedules->len; i++)
        seconds += lh_prove_work(params, g_ptr_array_index(schedules, i), ranks);
    return seconds;
}

static bool
prove_each(const LhProveParams *params, const GArray *ranks, const GPtrArray *schedules,
           Report *report, GError **error)
{
    for (guint i = 0; i < schedules->len; i++) {
        LhProven *proven = lh_prove(params, g_ptr_array_index(schedules, i), ranks, error);

        if (proven == NULL)
            return false;
        g_ptr_array_add(report->schedules, proven);
    }
    return true;
}

static bool
prove_all(const LhCommandLine *line, LhProveParams *params, const GArray *ranks, Report *report,
          GError **error)
{
    const VerifyOptions *o = line->options;
    g_autoptr(GPtrArray) schedules = choose_schedules(line->scenario, params->sources.model, error);
    LhProgressLine progress;
    double seconds;
    bool ok;

    if (schedules == NULL)
        return false;
    seconds = seconds_to_prove(params, ranks, schedules);
    if (!lh_run_time_check(seconds, o->max_work_ps, error))
        return false;
    lh_progress_start(&progress, seconds);
    params->progress = lh_progress_draw_proof;
    params->progress_data = &progress;
    ok = prove_each(params, ranks, schedules, report, error);
    lh_progress_end(&progress);
    params->progress = NULL;
    params->progress_data = NULL;
    return ok;
}

static bool
verify_schedules(const LhCommandLine *line, Report *report, GError **error)
{
    const LhScenario *s = line->scenario;
    LhModel *model = lh_setup_load_model(s, error);
    g_autoptr(LhDocuments) documents = NULL;
    g_autoptr(GArray) ranks = NULL;
    LhProveParams params = { .scenario = s, .passes = choose_passes(s) };

    if (model == NULL)
        return false;
    report->model = model;
    documents = lh_setup_load_documents(s, error);
    if (documents == NULL && s->document_lengths != NULL)
        return false;
    params.sources.model = model;
    params.sources.documents = documents;
    ranks = choose_ranks(line, &params.sources.gpus_per_node, error);
    report->passes = params.passes;
    return ranks != NULL && prove_all(line, &params, ranks, report, error);
}

/* Proves the program of --schedule-file, if there is one. */
static bool
verify_file(const LhCommandLine *line, Report *report, bool *found, GError **error)
{
    const LhScenario *s = line->scenario;
    const VerifyOptions *o = line->options;
    g_autoptr(LhProgram) program = NULL;

    *found = s->schedule_file != NULL;
    if (!*found)
        return true;
    program = lh_setup_load_program(s, error);
    if (program == NULL)
        return false;
    if (o->ranks != NULL) {
        g_set_error(error, LH_ERROR, LH_ERROR_INPUT,
                    "--ranks: the schedule file %s says this itself; leave it out",
                    s->schedule_file);
        return false;
    }
    report->passes = 1u << program->params.pass;
    g_ptr_array_add(report->schedules, lh_prove_program(s->schedule_file, program));
    return true;
}

static void
proven_free(gpointer data)
{
    lh_proven_free(data);
}

static int
prove_and_print(const LhCommandLine *line, Report *report, GError **error)
{
    const VerifyOptions *o = line->options;
    g_autoptr(GString) out = g_string_new(NULL);
    bool found;

    if (!verify_file(line, report, &found, error))
        return LH_ERROR_INPUT;
    if ((!found || line->scenario->schedule != NULL) && !verify_schedules(line, report, error))
        return LH_ERROR_INPUT;
    print_verify(line, report, out);
    if (!lh_command_write(&o->to, out, error))
        return LH_ERROR_RUNTIME;
    return all_proven(report) ? 0 : LH_ERROR_NO;
}

static int
run_verify(const LhCommandLine *line, GError **error)
{
    g_autoptr(GPtrArray) schedules = g_ptr_array_new_with_free_func(proven_free);
    Report report = { .schedules = schedules };
    int status;

    lh_command_warn_config(line);
    status = prove_and_print(line, &report, error);
    lh_model_free(report.model);
    return status;
}

const LhCommand lh_command_verify = {
    .name = "verify",
    .arguments = "[SCENARIO] [OPTIONS]",
    .summary = "Prove schedules correct for many numbers of ranks, masks and options.",
    .details = "For each schedule, each pass and each number of ranks, this proves with integers\n"
               "alone: every send has its receive; no timing leads to a deadlock; no two\n"
               "accesses race; each rank ends with exactly the (query, key) pairs of the mask;\n"
               "all memory is freed; and bytes, flops and peak memory equal the closed forms of\n"
               "the schedule. Column \"one queue\" says whether it also ends on a device that\n"
               "runs all streams of a rank in one queue, in program order; over NCCL only such\n"
               "programs are run. The others count what was checked, over all numbers of ranks.\n"
               "Exit status 1 if anything is not proven.\n\n"
               "What scenario and options leave open is varied: there are as many heads as the\n"
               "schedule needs, softmax and linear attention if it computes both, and one at a\n"
               "time the masks that it takes and the values of its own options (options up to 16\n"
               "ranks, grids for any number, every mask with every option up to 8). What they\n"
               "state is taken as stated. A case that a schedule refuses is no failure; a line\n"
               "gives the reason for the first such case.\n\n"
               "  longhaul verify\n"
               "  longhaul verify --schedule zigzag --ranks 1-16,24 --pass bwd\n"
               "  longhaul verify --schedule-file mine.schedule.json\n",
    .scenario = true,
    .config_parts = LH_CONFIG_QUESTION | LH_CONFIG_WAY | LH_CONFIG_SCHEDULE,
    .ignores = LH_SCENARIO_OF_SIMULATION | LH_SCENARIO_OF_COLLECTIVES | LH_SCENARIO_OF_CHANCE |
               LH_SCENARIO_OF_PROOF | LH_SCENARIO_OF_ONE_CASE,
    .options = verify_options,
    .options_size = sizeof(VerifyOptions),
    .run = run_verify,
};
