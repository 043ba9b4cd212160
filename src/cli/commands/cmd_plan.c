/* SPDX-License-Identifier: Apache-2.0 */
/*
 * longhaul plan: finds the fastest way to train a model on a cluster, and which cluster to buy.
 */
#include "base/error.h"
#include "base/escape.h"
#include "cli/command.h"
#include "cli/plan_live.h"
#include "cli/step_artifacts.h"
#include "proof/run_time_estimate.h"
#include "report/data/plan_json.h"
#include "report/draw/plan_figure.h"
#include "report/page/page_parts.h"
#include "report/page/page_pdf.h"
#include "report/page/plan_page.h"
#include "report/text/describe_plan.h"
#include "scenario/setting.h"
#include "scenario/setup_cluster.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

#define TOP_MAX 1000
#define TOP_DEFAULT 5
#define BATCH_MAX 1048576
#define TOKENS_MAX 1e18
#define PRICE_MAX 1e9
#define DEADLINE_DEFAULT_S 3600

typedef struct {
    LhOutputOptions to;
    char *figure;
    char *report;
    char *points;
    char *from_config;
    GPtrArray *set;      /* of char * */
    GPtrArray *clusters; /* of char * */
    uint64_t global_batch_size;
    bool max_seq_length, min_gpus, pareto, no_remedies, fit;
    uint64_t top, jobs;
    int bootstrap; /* of lh_controls */
    LhTime deadline_ps;
    char *days_for;
    GPtrArray *costs, *watts; /* of char *: numbers as text */
} PlanOptions;

static const LhField plan_options[] = {
    LH_OPTION_FORMAT(PlanOptions, to),
    LH_OPTION_OUTPUT(PlanOptions, to),
    LH_OPTION_FROM_CONFIG(
        PlanOptions, from_config,
        "Searches only configurations this framework supports, reports how far the current one is "
        "from the fastest, and prints the fastest as settings of that file."),
    LH_OPTION_SET(PlanOptions, set),
    LH_OPTION_FIGURE(PlanOptions, figure,
                     "With --pareto, draw time and memory of these configurations, a line for each "
                     "cluster, into this .svg, .png or .pdf file."),
    LH_OPTION_WRITES(PlanOptions, LH_ABOUT_FILES, "report", report,
                     "Also write the plan as a page to hand on, into this .html or .pdf file: "
                     "timeline and memory of the fastest configuration, critical paths of it and "
                     "the runner-up, and with --pareto the figure."),
    { .name = "points",
      .category = LH_ABOUT_RUNNING,
      .type = LH_FIELD_STRING,
      .offset = offsetof(PlanOptions, points),
      .flags = LH_FIELD_UPDATED,
      .description = "File that caches results, one JSON line per estimate and per simulation. The "
                     "same plan resumes from it, even after it was killed.",
      .placeholder = "FILE",
      .names = "files" },
    { .name = "cluster",
      .category = LH_ABOUT_CLUSTER,
      .type = LH_FIELD_STRINGS,
      .offset = offsetof(PlanOptions, clusters),
      .min = 1,
      .max = -1,
      .placeholder = "NAME[:NODES]",
      .names = "topologies",
      .description = "Topology and number of nodes (see `longhaul list topologies`). With several "
                     "clusters, each is planned on its own and they are compared." },
    { .name = "global-batch-size",
      .category = LH_ABOUT_STEP,
      .type = LH_FIELD_UNIT,
      .unit = LH_UNIT_COUNT,
      .offset = offsetof(PlanOptions, global_batch_size),
      .min = 1,
      .max = BATCH_MAX,
      .description =
          "Sequences per step, over all data-parallel ranks and micro-batches; default 1." },
    { .name = "max-seq-length",
      .category = LH_ABOUT_SEARCH,
      .type = LH_FIELD_BOOL,
      .offset = offsetof(PlanOptions, max_seq_length),
      .description =
          "Find the longest sequence that fits in memory, and the fastest configuration for it." },
    { .name = "min-gpus",
      .category = LH_ABOUT_SEARCH,
      .type = LH_FIELD_BOOL,
      .offset = offsetof(PlanOptions, min_gpus),
      .description = "Find the smallest number of GPUs that a step fits on, and the fastest "
                     "configuration on them. Tries 1, 2, 4 and so on within a host, then whole "
                     "hosts of a node, then whole nodes." },
    { .name = "pareto",
      .category = LH_ABOUT_SEARCH,
      .type = LH_FIELD_BOOL,
      .offset = offsetof(PlanOptions, pareto),
      .description =
          "Also find every configuration that no other one beats in both time and memory." },
    { .name = "fit",
      .category = LH_ABOUT_SEARCH,
      .type = LH_FIELD_BOOL,
      .offset = offsetof(PlanOptions, fit),
      .description =
          "Also print, for each cluster, what its fastest configuration has to turn on to fit in "
          "memory: the peak before and after each, and the time lost. Printed in any case if "
          "nothing fits as it is." },
    { .name = "no-remedies",
      .category = LH_ABOUT_SEARCH,
      .type = LH_FIELD_BOOL,
      .offset = offsetof(PlanOptions, no_remedies),
      .description = "Leave configurations that do not fit as they are. By default the search "
                     "turns on what their framework has to save memory "
                     "(`longhaul list framework-remedies`), at the least cost in time." },
    { .name = "top",
      .category = LH_ABOUT_SEARCH,
      .type = LH_FIELD_UINT,
      .offset = offsetof(PlanOptions, top),
      .absent = "5",
      .min = 1,
      .max = TOP_MAX,
      .description = "Number of fastest configurations to find; default 5." },
    LH_OPTION_JOBS(PlanOptions, jobs, "Simulations"),
    LH_OPTION_BOOTSTRAP(
        PlanOptions, bootstrap,
        "How several processes that plan together rendezvous: not at all, this process is alone "
        "(single), through MPI, or over TCP with the environment of torchrun or of a Slurm step; "
        "default auto, whichever environment is present."),
    LH_OPTION_DEADLINE(
        PlanOptions, deadline_ps,
        "With several processes, abort if one is silent for this long; default 3600 s."),
    { .name = "days-for",
      .category = LH_ABOUT_PRICE,
      .type = LH_FIELD_STRING,
      .offset = offsetof(PlanOptions, days_for),
      .placeholder = "TOKENS",
      .description = "Also print the time for this many tokens, such as 1.4e12." },
    { .name = "cost-per-gpu-hour",
      .category = LH_ABOUT_PRICE,
      .type = LH_FIELD_STRINGS,
      .offset = offsetof(PlanOptions, costs),
      .placeholder = "X",
      .description = "Price of a GPU per hour; also prints the cost of a billion tokens. Give it "
                     "once for all clusters, or once for each in their order." },
    { .name = "watts",
      .category = LH_ABOUT_PRICE,
      .type = LH_FIELD_STRINGS,
      .offset = offsetof(PlanOptions, watts),
      .placeholder = "X",
      .description =
          "Power of a GPU with its share of the host and network, in watts; also prints the energy "
          "for a billion tokens. Give it once for all clusters, or once for each in their order." },
    { .name = NULL },
};

/* ---- prices ---- */

/* Parses a number of at most @most. */
static bool
read_number(const char *option, const char *text, double most, double *number, GError **error)
{
    const LhField field = { .name = option, .type = LH_FIELD_DOUBLE, .min = 0, .max = most };

    return lh_setting_parse(&field, text, number, error);
}

/* Reads the prices of @clusters clusters, at @offset of each, from one text or one per cluster. */
static bool
read_prices(const char *option, const GPtrArray *texts, guint clusters, size_t offset,
            LhPlanPrice *prices, GError **error)
{
    if (texts == NULL)
        return true;
    if (texts->len != 1 && texts->len != clusters) {
        g_set_error(
            error, LH_ERROR, LH_ERROR_USAGE,
            "--%s is given %u times for %u clusters; allowed: once for all, or once for each",
            option, texts->len, clusters);
        return false;
    }
    for (guint i = 0; i < clusters; i++) {
        double *price = (double *)(void *)((char *)&prices[i] + offset);

        if (!read_number(option, g_ptr_array_index(texts, texts->len == 1 ? 0 : i), PRICE_MAX,
                         price, error))
            return false;
    }
    return true;
}

static guint
count_clusters(const PlanOptions *o)
{
    return o->clusters != NULL ? o->clusters->len : 1;
}

static bool
read_weights(const PlanOptions *o, LhPlanPrice *prices, LhPlanWeights *weights, GError **error)
{
    const guint clusters = count_clusters(o);

    *weights = (LhPlanWeights){ .prices = prices };
    return (o->days_for == NULL ||
            read_number("days-for", o->days_for, TOKENS_MAX, &weights->tokens, error)) &&
           read_prices("cost-per-gpu-hour", o->costs, clusters, offsetof(LhPlanPrice, per_gpu_hour),
                       prices, error) &&
           read_prices("watts", o->watts, clusters, offsetof(LhPlanPrice, watts), prices, error);
}

/* ---- checks ---- */

static bool
usage(GError **error, const char *text)
{
    g_set_error_literal(error, LH_ERROR, LH_ERROR_USAGE, text);
    return false;
}

static bool
check_question(const LhCommandLine *line, GError **error)
{
    const PlanOptions *o = line->options;
    const LhScenario *s = line->scenario;

    if (s->schedule_file != NULL)
        return usage(error,
                     "plan searches for a schedule; remove --schedule-file, or use longhaul sim");
    if (o->max_seq_length && (o->min_gpus || count_clusters(o) > 1))
        return usage(error, "--max-seq-length needs one cluster of one size; remove --min-gpus and "
                            "all clusters but one");
    if (o->max_seq_length && line->config != NULL && !lh_scenario_has_option(s, "seq_length"))
        lh_scenario_forget(line->scenario, "seq_length");
    if (o->max_seq_length && s->seq_length != 0)
        return usage(error, "--max-seq-length finds the length; remove --seq-length");
    if (o->max_seq_length && s->document_lengths != NULL)
        return usage(error, "--max-seq-length finds the length; remove --document-lengths");
    if (!o->max_seq_length && s->seq_length == 0 && s->document_lengths == NULL)
        return usage(error, "missing sequence length: give --seq-length, or --max-seq-length to "
                            "find the longest that fits");
    if (o->figure != NULL && !o->pareto)
        return usage(error, "--figure draws the configurations found by --pareto; give both");
    if (o->fit && o->no_remedies)
        return usage(error, "--fit says what has to be turned on; remove --no-remedies");
    if (o->min_gpus && s->ranks != 0)
        return usage(error, "--min-gpus finds the number of GPUs; remove --ranks");
    return true;
}

/* --min-gpus also finds the number of nodes. */
static bool
check_clusters(const PlanOptions *o, GError **error)
{
    for (guint i = 0; o->min_gpus && o->clusters != NULL && i < o->clusters->len; i++) {
        const char *colon = strrchr(g_ptr_array_index(o->clusters, i), ':');

        if (colon != NULL && strchr(colon, '/') == NULL)
            return usage(error, "--min-gpus finds the number of nodes; give --cluster a name "
                                "without a number of nodes");
    }
    return !o->min_gpus || o->clusters != NULL ||
           usage(error, "--min-gpus needs --cluster NAME: the cluster that supplies the GPUs");
}

static uint64_t
sequences_of(const LhCommandLine *line)
{
    const PlanOptions *o = line->options;

    if (o->global_batch_size != 0 || line->config == NULL)
        return MAX(o->global_batch_size, 1);
    return line->config->global_batch_size;
}

/* Rejects a configuration that leaves the workload open: defaults would plan something else. */
static bool
check_config(const LhCommandLine *line, GError **error)
{
    const char *missing = NULL;

    if (line->config == NULL)
        return true;
    if (sequences_of(line) == 0)
        missing = "the number of sequences per step; give --global-batch-size";
    else if (sequences_of(line) > BATCH_MAX)
        missing = "a batch of a supported size; give --global-batch-size";
    if (missing == NULL)
        return true;
    g_set_error(error, LH_ERROR, LH_ERROR_INPUT, "%s does not specify %s",
                line->config->entries->file, missing);
    return false;
}

/* With several clusters, keeps those that support the given NIC and link options, with their
 * prices, and prints the others. If none does, keeps all, so that the first one's error is
 * reported. */
static GPtrArray *
fitting_clusters(const LhCommandLine *line, LhPlanPrice *prices)
{
    const PlanOptions *o = line->options;
    g_autoptr(GPtrArray) kept = g_ptr_array_new();
    g_autoptr(GString) left = g_string_new(NULL);

    if (o->clusters == NULL)
        return NULL;
    for (guint i = 0; i < o->clusters->len; i++) {
        const char *name = g_ptr_array_index(o->clusters, i);
        g_autofree char *reason =
            o->clusters->len > 1 ? lh_setup_refusal_of_cluster(line->scenario, name) : NULL;

        if (reason != NULL) {
            g_autofree char *note =
                g_strdup_printf("longhaul: --cluster %s is skipped: %s", name, reason);
            g_autofree char *shown = lh_escaped_line(note);

            g_string_append_printf(left, "%s\n", shown);
            continue;
        }
        prices[kept->len] = prices[i];
        g_ptr_array_add(kept, (gpointer)name);
    }
    if (kept->len == 0)
        return g_ptr_array_ref(o->clusters);
    fputs(left->str, stderr);
    return g_steal_pointer(&kept);
}

static LhPlanAnswer *
plan(const LhCommandLine *line, const GPtrArray *clusters, const LhPlanWeights *weights,
     LhPlanQuery *query, GError **error)
{
    const PlanOptions *o = line->options;
    const LhControl *control = lh_control_resolve(lh_controls[o->bootstrap]);
    const LhTime deadline_ps =
        o->deadline_ps > 0 ? o->deadline_ps : DEADLINE_DEFAULT_S * LH_PS_PER_S;
    LhPlanLive live;
    g_autoptr(LhPlanAnswer) answer = NULL;

    *query = (LhPlanQuery){
        .scenario = line->scenario,
        .clusters = clusters,
        .config = line->config,
        .sequences = sequences_of(line),
        .remedies = !o->no_remedies,
        .fit = o->fit,
        .longest = o->max_seq_length,
        .smallest = o->min_gpus,
        .top = o->top > 0 ? (guint)o->top : TOP_DEFAULT,
        .front = o->pareto,
        .task = { .jobs = (guint)o->jobs, .progress = lh_plan_live_progress, .data = &live },
        .points_file = o->points,
        .control = control != &lh_control_single ? control : NULL,
        .deadline_us = deadline_ps / LH_PS_PER_US,
        .finished = lh_plan_live_finished,
        .finished_data = &live
    };
    lh_plan_live_start(&live, query, weights, &o->to);
    answer = lh_plan(query, error);
    if (!lh_plan_live_end(&live, answer != NULL ? error : NULL))
        return NULL;
    return g_steal_pointer(&answer);
}

/* ---- output ---- */

/* Prints the plan for people. On standard output clusters were printed as they finished, so only
 * the end is missing. */
static void
print_plan_words(const LhCommandLine *line, const LhPlanQuery *query, const LhPlanAnswer *answer,
                 const LhPlanWeights *weights, GString *out)
{
    const PlanOptions *o = line->options;
    const LhFormat format = (LhFormat)o->to.format;

    if (lh_command_is_file(o->to.file)) {
        lh_describe_plan_head(query, answer, format, out);
        for (guint i = 0; i < answer->clusters->len; i++)
            lh_describe_plan_part(query, answer, weights, i, format, out);
    }
    lh_describe_plan_end(answer, weights, format, out);
}

static void
print_plan(const LhCommandLine *line, const LhPlanQuery *query, const LhPlanAnswer *answer,
           const LhPlanWeights *weights, GString *out)
{
    const PlanOptions *o = line->options;
    const LhFormat format = (LhFormat)o->to.format;
    const LhStamp stamp = lh_command_stamp(line);

    if (format == LH_FORMAT_JSON) {
        lh_plan_json(query, answer, weights, &stamp, out);
    } else if (format == LH_FORMAT_CSV) {
        g_autoptr(LhTable) table = lh_plan_table(answer, weights);

        lh_table_print(table, format, out);
    } else {
        print_plan_words(line, query, answer, weights, out);
    }
}

/* Configurations with a timeline on the page: the fastest and the runner-up. */
#define LOOKS_MAX 2

typedef struct {
    LhPlanCase cases[LOOKS_MAX];
    LhReportRun runs[LOOKS_MAX];
    LhCritical *critical[LOOKS_MAX];
    LhPlanLook looks[LOOKS_MAX];
    guint count;
} Looks;

static void
looks_clear(Looks *c)
{
    for (guint i = 0; i < c->count; i++) {
        lh_report_run_clear(&c->runs[i]);
        lh_critical_free(c->critical[i]);
    }
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(Looks, looks_clear)

/* Simulates a configuration again for its result, and once more for its timeline. */
static bool
look(const LhPlanCase *c, guint jobs, LhReportRun *run, LhCritical **critical, GError **error)
{
    g_autoptr(LhCompareRow) row = lh_compare_run(&c->setup, c->schedule, NULL);
    LhArtifacts how = { .setup = &c->setup, .schedule = c->schedule, .result = row->result };

    if (row->result == NULL) {
        g_set_error(error, LH_ERROR, LH_ERROR_RUNTIME, "%s: %s", row->name, row->reason);
        return false;
    }
    how.seconds = lh_run_time_simulate(row->program);
    how.critical = lh_artifacts_has_critical(row->result);
    if (!lh_artifacts_write(&how, run, error))
        return false;
    if (how.critical)
        *critical = lh_artifacts_critical(&c->setup, run, jobs, error);
    return *critical != NULL || !how.critical;
}

static bool
look_at_ways(const LhPlanCluster *best, guint jobs, Looks *c, GError **error)
{
    for (guint i = 0; i < MIN(best->ways->len, LOOKS_MAX); i++) {
        const LhPlanWay *way = g_ptr_array_index(best->ways, i);

        c->count = i + 1;
        if (!lh_plan_case_init(&c->cases[i], best->space, way->point, error) ||
            !look(&c->cases[i], jobs, &c->runs[i], &c->critical[i], error))
            return false;
        c->looks[i] = (LhPlanLook){ .setup = &c->cases[i].setup,
                                    .run = &c->runs[i],
                                    .critical = c->critical[i],
                                    .point = way->point };
    }
    return true;
}

static bool
write_plan_page(const LhCommandLine *line, const LhPlanQuery *query, const LhPlanAnswer *answer,
                const LhPlanWeights *weights, GError **error)
{
    const PlanOptions *o = line->options;
    const LhStamp stamp = lh_command_stamp(line);
    LhPlanPage page = { .query = query, .answer = answer, .weights = weights, .stamp = &stamp };
    g_autoptr(GString) out = g_string_new(NULL);
    g_auto(Looks) closely = { .count = 0 };

    if (answer->interrupted) {
        g_set_error_literal(
            error, LH_ERROR, LH_ERROR_INTERRUPTED,
            "interrupted before all configurations were decided: no page is written");
        return false;
    }
    if (answer->best != G_MAXUINT &&
        !look_at_ways(g_ptr_array_index(answer->clusters, answer->best), (guint)o->jobs, &closely,
                      error))
        return false;
    page.looks = closely.looks;
    page.looks_count = closely.count;
    return lh_plan_page(&page, out, error) && lh_page_write(o->report, out, error);
}

static const LhControl *
plan_control(const LhCommandLine *line)
{
    const PlanOptions *o = line->options;

    return lh_controls[o->bootstrap];
}

static LhAnswer
run_plan(const LhCommandLine *line, GError **error)
{
    const PlanOptions *o = line->options;
    g_autofree LhPlanPrice *prices = g_new0(LhPlanPrice, count_clusters(o));
    g_autoptr(GString) out = g_string_new(NULL);
    g_autoptr(LhPlanAnswer) answer = NULL;
    g_autoptr(GPtrArray) clusters = NULL;
    LhPlanWeights weights;
    LhPlanQuery query;

    if (!check_question(line, error) || !check_config(line, error) || !check_clusters(o, error) ||
        (o->report != NULL && !lh_page_check_path("--report", o->report, error)) ||
        !read_weights(o, prices, &weights, error))
        return LH_ANSWER_FAILED;
    clusters = fitting_clusters(line, prices);
    answer = plan(line, clusters, &weights, &query, error);
    if (answer == NULL)
        return LH_ANSWER_FAILED;
    if (answer->first) {
        print_plan(line, &query, answer, &weights, out);
        if (!lh_command_finish(line, &o->to, out, error) ||
            (o->figure != NULL &&
             !lh_plan_figure(answer, (LhFigureTo){ .path = o->figure }, error)) ||
            (o->report != NULL && !write_plan_page(line, &query, answer, &weights, error)))
            return LH_ANSWER_FAILED;
    }
    if (answer->interrupted)
        return LH_ANSWER_PARTIAL;
    return answer->best != G_MAXUINT ? LH_ANSWER_YES : LH_ANSWER_NO;
}

const LhCommand lh_command_plan = {
    .name = "plan",
    .arguments = "[SCENARIO] [OPTIONS]",
    .summary = "Find the fastest way to train a model on a cluster, or the cluster to buy.",
    .details = "Searches every split of the GPUs into tensor-, context- and data-parallel ranks\n"
               "and pipeline stages, every attention schedule with each arrangement of its\n"
               "ranks, recomputation, sharding, micro-batch size, and number and order of\n"
               "pipeline chunks. Finds the fastest configurations that fit in memory. Options\n"
               "and scenario fields that are given stay fixed; the others are searched, whatever\n"
               "their defaults are elsewhere. Configurations whose lower bound exceeds the best\n"
               "times are pruned (branch and bound); the result is the same as if all were\n"
               "simulated. Without --framework steps follow the default of sim and compare:\n"
               "pytorch-fsdp, with tensor parallelism megatron-lm. Exit status 1 if nothing\n"
               "fits.\n\n"
               "Each cluster is printed when it is finished. Ctrl-C or SIGTERM ends the plan\n"
               "with the results so far (exit status 130); the rest is marked not decided.\n"
               "Processes started together by mpirun or srun share the work; the first one\n"
               "prints the plan, which is the same as that of one process.\n\n"
               "  longhaul plan --model llama-7b --cluster dfa-2node:2 --seq-length 512K\n"
               "  longhaul plan --model llama-7b --cluster dfa-2node:2 --max-seq-length\n"
               "  longhaul plan --from-config pretrain.sh --cluster hgx-h100:2\n"
               "  longhaul plan --model llama-3-8b --cluster hgx-h100 --seq-length 1M --min-gpus\n"
               "  longhaul plan --model llama-3-8b --seq-length 128K --cluster hgx-h100:2 \\\n"
               "      --cluster hgx-b200:1 --cost-per-gpu-hour 2.5 --cost-per-gpu-hour 5\n"
               "  srun --ntasks 8 longhaul plan --model llama-3.1-405b --cluster hgx-h100:64 \\\n"
               "      --seq-length 128K --points plan.jsonl\n",
    .scenario = true,
    .ignores = LH_SCENARIO_OF_PROOF | LH_SCENARIO_OF_ONE_CASE,
    .config_parts = LH_CONFIG_QUESTION | LH_CONFIG_LIMITS,
    .common = { "--model", "--cluster", "--seq-length", "--global-batch-size", "--from-config",
                "--max-seq-length", "--min-gpus", "--top", "--format", "--output" },
    .options = plan_options,
    .options_size = sizeof(PlanOptions),
    .run = run_plan,
    .control = plan_control,
    .deadline_s = DEADLINE_DEFAULT_S,
};
