/* SPDX-License-Identifier: Apache-2.0 */
/*
 * longhaul verify: proves schedules for many numbers of ranks.
 */
#include "base/error.h"
#include "cli/command.h"
#include "cli/progress.h"
#include "cli/verify_report.h"
#include "proof/run_time_estimate.h"
#include "report/text/describe.h"
#include "scenario/config_check.h"
#include "scenario/schedule_pairs.h"
#include "scenario/setting.h"
#include "scenario/setup_model.h"
#include "scenario/setup_params.h"

#include <stddef.h>

#define VERIFY_RANKS_DEFAULT "1-16,24,25,32,33,36,64"

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
    LH_OPTION_FROM_CONFIG(VerifyOptions, from_config, "The whole training step is proven."),
    LH_OPTION_SET(VerifyOptions, set),
    { .name = "ranks",
      .category = LH_ABOUT_CLUSTER,
      .type = LH_FIELD_STRING,
      .offset = offsetof(VerifyOptions, ranks),
      .placeholder = "LIST",
      .description = "Numbers of ranks, such as 1-16,24; default: the scenario's, or "
                     "else " VERIFY_RANKS_DEFAULT "." },
    LH_OPTION_MAX_WORK(VerifyOptions, max_work_ps),
    { .name = NULL },
};

/* --- the command --------------------------------------------------------------------------------
 */

static GArray *
one_number(uint64_t ranks)
{
    GArray *one = g_array_new(FALSE, FALSE, sizeof(uint64_t));

    g_array_append_val(one, ranks);
    return one;
}

/* Sets @gpus_per_node if the scenario names a cluster. */
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
                    "%" G_GUINT64_FORMAT " ranks; allowed: 1 to %u", ranks, LH_RANKS_MAX);
        return NULL;
    }
    return ranks != 0 ? one_number(ranks)
                      : lh_setting_parse_ranges("--ranks", VERIFY_RANKS_DEFAULT, error);
}

static unsigned
choose_passes(const LhScenario *s)
{
    return s->step && s->pass != LH_PASS_FWD - 1 ? 1u << LH_PASS_BOTH
           : s->pass >= 0                        ? 1u << (s->pass + 1)
                          : 1u << LH_PASS_FWD | 1u << LH_PASS_BWD | 1u << LH_PASS_BOTH;
}

/* Whether a schedule is skipped: none was named, and this one does not compute the requested kind
 * of attention. */
static bool
is_other_kind(const LhScenario *s, const LhSchedule *schedule, const LhModel *model)
{
    return s->schedule == NULL && !lh_pairs_wanted(s, model) &&
           (s->attention >= 0 || s->model != NULL) &&
           !lh_schedule_takes(schedule, lh_setup_is_linear(s, model));
}

/* The schedules to prove; every option must be read by at least one of them. Caller unrefs. */
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

static bool
prove_all(const LhCommandLine *line, LhProveParams *params, const GArray *ranks,
          LhVerifyReport *report, GError **error)
{
    const VerifyOptions *o = line->options;
    g_autoptr(GPtrArray) schedules = choose_schedules(line->scenario, params->sources.model, error);
    g_autoptr(GPtrArray) proven = NULL;
    LhProgressLine progress;
    double seconds;

    if (schedules == NULL)
        return false;
    seconds = lh_prove_work(params, schedules, ranks);
    if (!lh_run_time_check(seconds, o->max_work_ps, error))
        return false;
    lh_progress_start(&progress, seconds);
    params->task = (LhTask){ .progress = lh_progress_draw_proof, .data = &progress };
    proven = lh_prove(params, schedules, ranks, error);
    lh_progress_end(&progress);
    params->task = (LhTask){ 0 };
    if (proven == NULL)
        return false;
    g_ptr_array_extend_and_steal(report->schedules, g_steal_pointer(&proven));
    return true;
}

static bool
verify_schedules(const LhCommandLine *line, LhVerifyReport *report, GError **error)
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
verify_file(const LhCommandLine *line, LhVerifyReport *report, bool *found, GError **error)
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
                    "--ranks: the schedule file %s specifies its own ranks; remove it",
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

static LhAnswer
prove_and_print(const LhCommandLine *line, LhVerifyReport *report, GError **error)
{
    const VerifyOptions *o = line->options;
    g_autoptr(GString) out = g_string_new(NULL);
    bool found;

    if (!verify_file(line, report, &found, error) ||
        ((!found || line->scenario->schedule != NULL) && !verify_schedules(line, report, error)))
        return LH_ANSWER_FAILED;
    lh_verify_report_print(line, report, (LhFormat)o->to.format, out);
    if (!lh_command_write(&o->to, out, error))
        return LH_ANSWER_FAILED;
    return lh_verify_report_all_proven(report) ? LH_ANSWER_YES : LH_ANSWER_NO;
}

/* The seed only draws documents. */
static bool
check_seed(const LhScenario *s, GError **error)
{
    if (s->document_distribution != NULL || !lh_scenario_has_option(s, "seed"))
        return true;
    g_set_error_literal(error, LH_ERROR, LH_ERROR_USAGE,
                        "--seed has no effect on verify without --document-distribution");
    return false;
}

static LhAnswer
run_verify(const LhCommandLine *line, GError **error)
{
    g_autoptr(GPtrArray) schedules = g_ptr_array_new_with_free_func(proven_free);
    LhVerifyReport report = { .schedules = schedules };
    LhAnswer answer;

    if (!check_seed(line->scenario, error))
        return LH_ANSWER_FAILED;
    lh_command_warn_config(line);
    answer = prove_and_print(line, &report, error);
    lh_model_free(report.model);
    return answer;
}

const LhCommand lh_command_verify = {
    .name = "verify",
    .arguments = "[SCENARIO] [OPTIONS]",
    .summary = "Prove schedules correct for many numbers of ranks, masks and options.",
    .details = "For each schedule, pass and number of ranks, this proves with integer arithmetic\n"
               "alone: every send has its receive; no timing leads to a deadlock; no two\n"
               "accesses race; each rank ends with exactly the (query, key) pairs of the mask;\n"
               "all memory is freed; and bytes, flops and peak memory equal the closed forms of\n"
               "the schedule. Column \"one queue\" shows whether the program also completes on a\n"
               "device that runs all streams of a rank in one queue, in program order; NCCL runs\n"
               "only such programs. The other columns count what was checked, over all numbers\n"
               "of ranks. Exit status 1 if anything is not proven.\n\n"
               "What the scenario and options leave open is varied: as many heads as the\n"
               "schedule needs, softmax and linear attention if it computes both, and one at a\n"
               "time its masks and the values of its own options (options up to 16 ranks, grids\n"
               "for any number, every mask with every option up to 8). What they specify is\n"
               "fixed. A case that a schedule refuses is no failure; a line gives the reason for\n"
               "the first such case.\n\n"
               "  longhaul verify\n"
               "  longhaul verify --schedule zigzag --ranks 1-16,24 --pass bwd\n"
               "  longhaul verify --schedule-file mine.schedule.json\n",
    .scenario = true,
    .config_parts = LH_CONFIG_QUESTION | LH_CONFIG_WAY | LH_CONFIG_SCHEDULE,
    .ignores = LH_SCENARIO_OF_SIMULATION | LH_SCENARIO_OF_COLLECTIVES | LH_SCENARIO_OF_PROOF |
               LH_SCENARIO_OF_ONE_CASE,
    .common = { "--schedule", "--schedule-file", "--ranks", "--model", "--step", "--mask", "--pass",
                "--from-config", "--format", "--output" },
    .options = verify_options,
    .options_size = sizeof(VerifyOptions),
    .run = run_verify,
};
