/* SPDX-License-Identifier: Apache-2.0 */
/*
 * longhaul validate: compares predicted with measured times.
 */
#include "base/error.h"
#include "base/escape.h"
#include "cli/command.h"
#include "cli/interrupt.h"
#include "cli/saved.h"
#include "proof/proven.h"
#include "report/data/describe_options.h"
#include "report/page/page_pdf.h"
#include "report/page/validate_page.h"
#include "report/text/cluster/describe_machine.h"
#include "report/text/describe.h"
#include "report/validation/validation_json.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

#define CLUSTER "this-machine"
#define DEVICE "this-cpu"
#define VALIDATE_RANKS_DEFAULT 2
#define REPEAT_DEFAULT 5
#define VALIDATE_REPEAT_MAX 10000
#define TOLERANCE_DEFAULT 0.1

#define BUDGET_MAX_S 1e6

typedef struct {
    LhOutputOptions to;
    char *report;
    int backend; /* index of lh_backends */
    char *tolerance;
    uint64_t repeat;
    LhTime budget_ps;
    LhTime deadline_ps;
    int statistic; /* LhStatistic */
    char *kernels;
    char *replay_rank;
} ValidateOptions;

static const LhField validate_options[] = {
    LH_OPTION_FORMAT(ValidateOptions, to),
    LH_OPTION_OUTPUT(ValidateOptions, to),
    LH_OPTION_WRITES(
        ValidateOptions, LH_ABOUT_FILES, "report", report,
        "Also write a report to this file: a page with figures (.html, .pdf), else Markdown."),
    { .name = "backend",
      .category = LH_ABOUT_RUNNING,
      .type = LH_FIELD_CHOICE,
      .offset = offsetof(ValidateOptions, backend),
      .choices = lh_backend_names,
      .description =
          "Where schedules run: this machine, with threads as ranks (cpu, default); the hosts of "
          "the processes started by mpirun (mpi) or any launcher (tcp), one rank per process; one "
          "GPU shared by all ranks (cuda); or one GPU per rank (nccl)." },
    { .name = "tolerance",
      .category = LH_ABOUT_MEASUREMENT,
      .type = LH_FIELD_STRING,
      .offset = offsetof(ValidateOptions, tolerance),
      .placeholder = "SHARE",
      .description = "Largest allowed relative error of makespans and kernels, such as 10% or 0.1; "
                     "default 10%." },
    { .name = "repeat",
      .category = LH_ABOUT_MEASUREMENT,
      .type = LH_FIELD_UINT,
      .offset = offsetof(ValidateOptions, repeat),
      .absent = "5",
      .min = 1,
      .max = VALIDATE_REPEAT_MAX,
      .description = "Number of runs of each schedule, after an uncounted first one; default 5." },
    { .name = "budget",
      .category = LH_ABOUT_MEASUREMENT,
      .type = LH_FIELD_UNIT,
      .unit = LH_UNIT_TIME,
      .flags = LH_FIELD_SECONDS,
      .offset = offsetof(ValidateOptions, budget_ps),
      .min = 1e-3,
      .max = BUDGET_MAX_S,
      .placeholder = "SECONDS",
      .description = "Time limit for all runs: none starts after it, and skipped runs are counted. "
                     "Default: no limit." },
    LH_OPTION_DEADLINE(ValidateOptions, deadline_ps,
                       "Abort if no op and no message of a run completes, or another process is "
                       "silent, for this long; default 120 s."),
    { .name = "statistic",
      .category = LH_ABOUT_MEASUREMENT,
      .type = LH_FIELD_CHOICE,
      .offset = offsetof(ValidateOptions, statistic),
      .choices = lh_statistic_names,
      .description = "Statistic of repeated runs, as in longhaul calibrate; default median." },
    LH_OPTION_KERNELS(ValidateOptions, kernels),
    { .name = "replay-rank",
      .category = LH_ABOUT_MEASUREMENT,
      .type = LH_FIELD_STRING,
      .offset = offsetof(ValidateOptions, replay_rank),
      .placeholder = "slowest|median|fastest|RANK",
      .description =
          "Run one rank of each schedule alone, on this machine's CPU or GPU: the rank predicted "
          "to end last, in the middle, or first, or the given rank. Messages of the other ranks "
          "arrive at their predicted times. The cluster may be larger than this machine." },
    { .name = NULL },
};

static bool
is_page(const char *path)
{
    return g_str_has_suffix(path, ".html") || lh_page_is_pdf(path);
}

static bool
has_gpus(const LhBackend *backend)
{
    return backend->device != &lh_device_cpu;
}

/* Rejects a comparison of this machine with predictions for another one. For a rank that runs
 * @alone only the device must match. */
static bool
check_machine(const LhSetup *setup, const LhBackend *backend, bool alone, GError **error)
{
    if (has_gpus(backend))
        return strcmp(setup->device->name, DEVICE) != 0 ||
               lh_scenario_error(setup->scenario, "cluster", error,
                                 "%s is a cluster of CPUs, and the schedules run on GPUs; allowed: "
                                 "the cluster given to longhaul calibrate --backend %s --cluster",
                                 setup->topology->name, backend->name);
    if (backend == &lh_backend_cpu && !alone ? strcmp(setup->topology->name, CLUSTER) == 0
                                             : strcmp(setup->device->name, DEVICE) == 0)
        return true;
    if (backend != &lh_backend_cpu)
        return lh_scenario_error(
            setup->scenario, "cluster", error,
            "%s is not a cluster of CPUs, and the schedules run on CPUs; allowed: the topology "
            "file written by longhaul calibrate --backend %s --topology FILE",
            setup->topology->name, backend->name);
    return lh_scenario_error(
        setup->scenario, "cluster", error,
        alone ? "%s is not a cluster of CPUs, and the rank runs on a CPU; allowed: a cluster whose "
                "device is " DEVICE
              : "%s is not this machine, which runs the schedules; allowed: " CLUSTER,
        setup->topology->name);
}

static bool
check_module(const LhSetup *setup, GError **error)
{
    return setup->step == NULL ||
           lh_scenario_error(setup->scenario, "step", error,
                             "validate compares attention modules, not training steps");
}

static bool
prepare(const LhCommandLine *line, double *tolerance, GError **error)
{
    const ValidateOptions *o = line->options;
    const LhBackend *backend = lh_backends[o->backend];
    LhScenario *s = line->scenario;
    const bool told = s->cluster != NULL;

    *tolerance = TOLERANCE_DEFAULT;
    if (o->report != NULL && !lh_page_check_converter(o->report, error))
        return false;
    if (o->tolerance != NULL &&
        !lh_command_share("--tolerance", o->tolerance, false, tolerance, error))
        return false;
    /* Data files have predictions for GPUs, but none for this CPU. */
    if (s->profile == NULL && !has_gpus(backend)) {
        g_set_error(
            error, LH_ERROR, LH_ERROR_USAGE,
            "validate: missing profile: give --profile FILE; longhaul calibrate -o FILE makes one");
        return false;
    }
    if (s->cluster == NULL && backend != &lh_backend_cpu) {
        g_set_error(
            error, LH_ERROR, LH_ERROR_USAGE, "--backend %s needs --cluster %s", backend->name,
            has_gpus(backend) ? "NAME, the cluster these GPUs belong to"
                              : "FILE; longhaul calibrate --backend mpi --topology FILE makes one");
        return false;
    }
    if (s->cluster == NULL)
        s->cluster = g_strdup(CLUSTER);
    if (s->ranks == 0 && s->schedule_file == NULL && backend->control == &lh_control_single &&
        (o->replay_rank == NULL || !told))
        s->ranks = has_gpus(backend) ? 1 : VALIDATE_RANKS_DEFAULT;
    /* The prediction must use the collectives that run; a rank alone replays any of them. */
    if (o->replay_rank == NULL && (s->collectives < 0 || s->collectives == LH_COLLECTIVES_AUTO))
        s->collectives = LH_COLLECTIVES_DIRECT;
    return true;
}

static bool
all_within(const GPtrArray *validations, double tolerance)
{
    bool ran = false;

    for (guint i = 0; i < validations->len; i++) {
        const LhValidation *v = g_ptr_array_index(validations, i);

        ran = ran || v->refused == NULL;
        if (!lh_validation_within(v, tolerance))
            return false;
    }
    return ran;
}

/* @cores: available to the ranks; 0: unknown. */
static void
print_case(const LhSetup *setup, const LhValidateParams *params, uint32_t cores, LhFormat format,
           GString *out)
{
    const LhProgramParams *p = &setup->params;
    const LhAttention *a = &p->attention;
    const LhProgramParams plain = { .attention = *a };
    g_autofree char *mask = lh_describe_mask(&p->mask);
    g_autofree char *with = lh_describe_options(p, &plain);
    g_autofree char *groups = lh_describe_groups(p);
    g_autofree char *alone = lh_single_rank_text(&params->alone);
    const gsize from = out->len;

    if (params->alone.choice != LH_SINGLE_RANK_NONE)
        g_string_append_printf(out,
                               "In each schedule %s runs alone; messages of the other ranks arrive "
                               "at their predicted times.\n\n",
                               alone);
    else if (params->backend == &lh_backend_cuda && lh_params_ranks(p) > 1)
        g_string_append_printf(out,
                               "%u ranks share one GPU, which the simulator does not model: "
                               "predicted times will be too short, and the prediction has messages "
                               "between GPUs where memory is copied here.\n\n",
                               lh_params_ranks(p));
    else if (params->backend == &lh_backend_cpu && cores != 0 && lh_params_ranks(p) > cores)
        g_string_append_printf(out,
                               "%u ranks share %u cores, which the simulator does not model: "
                               "predicted times will be too short.\n\n",
                               lh_params_ranks(p), cores);
    if (has_gpus(params->backend)) {
        g_autofree char *profile = lh_escaped_line(
            setup->scenario->profile != NULL ? setup->scenario->profile : "those of data files");

        g_string_append_printf(out, "Kernels: %s. Constants: %s.\n\n",
                               params->backend->device->kernel_sets[params->kernel_set], profile);
    }
    g_string_append_printf(
        out, "%s, %" G_GUINT64_FORMAT " tokens, %u heads, d %u, %s, %s%s, %s%s%s\n", groups,
        a->seq_length, a->heads, a->head_dim, lh_dtype_names[a->dtype], a->linear ? "linear, " : "",
        mask, lh_pass_names[p->pass - 1], with[0] != '\0' ? "; " : "", with);
    lh_describe_left_out(setup, out);
    lh_table_words(format, out, from);
}

/* Beyond one machine: prints the summary of errors and the checksum of the prediction. */
static void
print_summary(const LhValidated *validated, GString *out)
{
    char correlation[G_ASCII_DTOSTR_BUF_SIZE];

    if (isnan(validated->rank_correlation))
        g_strlcpy(correlation, "-", sizeof(correlation));
    else
        g_ascii_formatd(correlation, sizeof(correlation), "%.3f", validated->rank_correlation);
    g_string_append_printf(
        out,
        "\nRelative error of makespans: median %.1f %%, worst %.1f %%; rank correlation %s.\n"
        "%" G_GUINT64_FORMAT " runs",
        100 * validated->error_median, 100 * validated->error_worst, correlation, validated->runs);
    if (validated->runs_left_out > 0)
        g_string_append_printf(out, ", %" G_GUINT64_FORMAT " skipped because the budget was spent",
                               validated->runs_left_out);
    g_string_append_printf(out,
                           ". SHA-256 of the prediction, made before the first run:\n"
                           "%s\n",
                           validated->prediction_sha256);
}

static void
print_hosts(const LhSlowHosts *hosts, LhFormat format, GString *out)
{
    g_autoptr(LhTable) table = NULL;

    if (hosts == NULL)
        return;
    table = lh_describe_hosts(hosts);
    g_string_append_c(out, '\n');
    lh_table_print(table, format, out);
    g_string_append_c(out, '\n');
    lh_describe_slow(hosts, out);
}

static void
print_explained(const LhAttributed *explained, LhFormat format, GString *out)
{
    g_autoptr(LhTable) table = NULL;

    if (explained == NULL)
        return;
    table = lh_describe_explained(explained);
    g_string_append_c(out, '\n');
    lh_table_print(table, format, out);
    g_string_append_c(out, '\n');
    lh_describe_cause(explained, out);
}

static void
print_validate_text(const LhSetup *setup, const LhValidated *validated,
                    const LhValidateParams *params, double tolerance, LhFormat format, GString *out)
{
    g_autoptr(LhTable) makespans = lh_describe_makespans(validated->rows, tolerance);
    g_autoptr(LhTable) kernels = lh_describe_kernel_errors(validated->rows, tolerance);

    print_case(setup, params, validated->cores, format, out);
    g_string_append_c(out, '\n');
    lh_table_print(makespans, format, out);
    g_string_append_c(out, '\n');
    lh_table_print(kernels, format, out);
    if (params->backend != &lh_backend_cpu) {
        g_autoptr(LhTable) tiers = lh_describe_tier_errors(validated->rows);

        g_string_append_c(out, '\n');
        lh_table_print(tiers, format, out);
        print_summary(validated, out);
        print_hosts(validated->hosts, format, out);
    }
    print_explained(validated->explained, format, out);
    g_string_append_printf(out,
                           "\nerror = predicted / measured - 1. start: the time until the last "
                           "rank to finish has issued its first op.\n"
                           "Kernels with less than %.0f %% of the compute time are not judged.\n"
                           "%s %.3g %%.\n",
                           100 * LH_VALIDATE_SHARE_MIN,
                           !all_within(validated->rows, tolerance) ? "NOT all within"
                           : validated->interrupted                ? "All that ran within"
                                                                   : "All within",
                           100 * tolerance);
    if (validated->interrupted)
        g_string_append(out, "Interrupted: runs that did not start may have larger errors.\n");
}

/* User data of the prediction callback. */
typedef struct {
    const LhCommandLine *line;
    const LhSetup *setup;
    const LhValidateParams *params;
    double tolerance;
} Job;

static void
print_validate(const Job *job, const LhValidated *validated, LhFormat format, GString *out)
{
    const LhStamp stamp = lh_command_stamp(job->line);

    if (format == LH_FORMAT_JSON) {
        lh_validate_json(job->setup, validated, job->params, job->tolerance, &stamp, out);
    } else if (format == LH_FORMAT_CSV) {
        g_autoptr(LhTable) makespans = lh_describe_makespans(validated->rows, job->tolerance);

        lh_table_print(makespans, LH_FORMAT_CSV, out);
    } else {
        print_validate_text(job->setup, validated, job->params, job->tolerance, format, out);
    }
}

/* Writes the prediction to the result's file, where it stays until the result replaces it. */
static bool
write_prediction(void *data, const LhValidated *validated, GError **error)
{
    const Job *job = data;
    const ValidateOptions *o = job->line->options;
    g_autoptr(GString) out = g_string_new(NULL);

    if (o->to.format != LH_FORMAT_JSON || o->to.file == NULL || strcmp(o->to.file, "-") == 0)
        return true;
    print_validate(job, validated, LH_FORMAT_JSON, out);
    return lh_command_write(&o->to, out, error);
}

/* Appends a summary sentence, for a page. */
static void
append_summary(const Job *job, const LhValidated *validated, GString *out)
{
    guint ran = 0, within = 0;

    for (guint i = 0; i < validated->rows->len; i++) {
        const LhValidation *v = g_ptr_array_index(validated->rows, i);

        ran += v->refused == NULL;
        within += v->refused == NULL && lh_validation_within(v, job->tolerance);
    }
    g_string_append_printf(out,
                           "%s %.3g %%: of %u schedules, %u %s so, in their makespan and in every "
                           "kernel with at least %.0f %% of the compute time.",
                           !all_within(validated->rows, job->tolerance) ? "Not all within"
                           : validated->interrupted                     ? "All that ran within"
                                                                        : "All within",
                           100 * job->tolerance, ran, within, within == 1 ? "is" : "are",
                           100 * LH_VALIDATE_SHARE_MIN);
    print_summary(validated, out);
}

static bool
write_validate_page(const Job *job, const LhValidated *validated, GError **error)
{
    const ValidateOptions *o = job->line->options;
    const LhStamp stamp = lh_command_stamp(job->line);
    g_autoptr(GString) of = g_string_new(NULL);
    g_autoptr(GString) summary = g_string_new(NULL);
    g_autoptr(GString) out = g_string_new(NULL);
    LhValidatePage page = { .setup = job->setup,
                            .validated = validated,
                            .stamp = &stamp,
                            .tolerance = job->tolerance,
                            .tiers = job->params->backend != &lh_backend_cpu };

    print_case(job->setup, job->params, validated->cores, LH_FORMAT_TABLE, of);
    append_summary(job, validated, summary);
    page.of = of->str;
    page.summary = summary->str;
    return lh_validate_page(&page, out, error) && lh_page_write(o->report, out, error);
}

static bool
write_all(const Job *job, const LhValidated *validated, GError **error)
{
    const ValidateOptions *o = job->line->options;
    const LhOutputOptions report = { .format = LH_FORMAT_MD, .file = o->report };
    g_autoptr(GString) out = g_string_new(NULL);
    g_autoptr(GString) markdown = g_string_new(NULL);

    print_validate(job, validated, (LhFormat)o->to.format, out);
    if (!lh_command_finish(job->line, &o->to, out, error))
        return false;
    if (o->report == NULL)
        return true;
    if (is_page(o->report))
        return write_validate_page(job, validated, error);
    print_validate(job, validated, LH_FORMAT_MD, markdown);
    return lh_command_write(&report, markdown, error);
}

/* Writes a page of a saved validation. */
static LhAnswer
show_saved(const Job *job, GError **error)
{
    g_autoptr(LhValidated) validated =
        lh_validate_from_json(job->line->saved->json, job->setup,
                              job->params->alone.choice != LH_SINGLE_RANK_NONE, error);

    return validated != NULL && write_all(job, validated, error) ? LH_ANSWER_YES : LH_ANSWER_FAILED;
}

static const LhControl *
validate_control(const LhCommandLine *line)
{
    const ValidateOptions *o = line->options;

    return lh_backends[o->backend]->control;
}

/* Whether this process is alone; processes of a job end together (job.h). */
static bool
is_alone(const LhCommandLine *line)
{
    return lh_control_resolve(validate_control(line)) == &lh_control_single;
}

static bool
goes_on(void *data, const LhProgress *at)
{
    (void)data;
    (void)at;
    return !lh_interrupted();
}

static LhAnswer
run_validate(const LhCommandLine *line, GError **error)
{
    const ValidateOptions *o = line->options;
    LhValidateParams params = {
        .backend = lh_backends[o->backend],
        .statistic = (LhStatistic)o->statistic,
        .repeat = o->repeat != 0 ? o->repeat : REPEAT_DEFAULT,
        .budget_ps = o->budget_ps,
        .deadline_us = o->deadline_ps / LH_PS_PER_US,
        .pin = lh_backends[o->backend] == &lh_backend_cpu && o->replay_rank == NULL,
        .predicted = write_prediction,
        .task = { .progress = is_alone(line) ? goes_on : NULL },
    };
    g_autoptr(LhSetup) setup = NULL;
    g_autoptr(LhValidated) validated = NULL;
    Job job = { .line = line, .params = &params };

    if (!prepare(line, &job.tolerance, error) ||
        !lh_single_rank_parse(o->replay_rank, &params.alone, error) ||
        !lh_command_kernels(o->kernels, params.backend->device, &params.kernel_set, error))
        return LH_ANSWER_FAILED;
    job.setup = setup = lh_setup_new(line->scenario, error);
    if (setup == NULL || !check_machine(setup, params.backend, o->replay_rank != NULL, error) ||
        !check_module(setup, error) || !lh_prove_setup(setup, LH_PROVE_TO_RUN, error))
        return LH_ANSWER_FAILED;
    if (line->saved != NULL)
        return show_saved(&job, error);
    params.predicted_data = &job;
    if (params.task.progress != NULL)
        lh_interrupt_listen();
    validated = lh_validate(setup, &params, error);
    if (validated == NULL)
        return LH_ANSWER_FAILED;
    if (!validated->first)
        return LH_ANSWER_YES;
    if (!write_all(&job, validated, error))
        return LH_ANSWER_FAILED;
    if (validated->interrupted)
        return LH_ANSWER_PARTIAL;
    return all_within(validated->rows, job.tolerance) ? LH_ANSWER_YES : LH_ANSWER_NO;
}

const LhCommand lh_command_validate = {
    .name = "validate",
    .arguments = "[SCENARIO] [OPTIONS] [--profile FILE]",
    .summary = "Compare predicted with measured times on this machine, op by op.",
    .details = "Simulates each schedule on the cluster this-machine with the constants of the\n"
               "profile, and executes the same program. Joins the two timelines by rank and op,\n"
               "and prints the relative errors of kernels and makespans. The compute threads of\n"
               "rank r stay on core r. Use no more ranks than cores: the simulator does not\n"
               "model ranks that share a core. Exit status 1 if the error of a makespan exceeds\n"
               "the tolerance, or that of the median op of a kernel with at least 5 % of the\n"
               "compute time. Results are not checked: longhaul run does that. Ctrl-C or SIGTERM\n"
               "ends it, if the process is alone, with the runs done so far (exit status 130).\n\n"
               "With --backend mpi or tcp each process is a rank, and the cluster is the\n"
               "topology file written by longhaul calibrate with the profile. All times are\n"
               "predicted, and the prediction stamped, before the first schedule runs. Slow\n"
               "hosts and slow links between them are listed at the end. With --backend nccl\n"
               "every rank has a GPU, and the cluster is the one given to calibrate; with cuda\n"
               "all ranks share one GPU, with one rank by default. On GPUs without --profile,\n"
               "the constants of the data files are validated.\n\n"
               "With --replay-rank one rank of each schedule runs alone, with real kernels and\n"
               "messages that take their predicted time. So two cores or one GPU suffice to\n"
               "validate the compute of a rank of any cluster, and its exposed communication.\n"
               "Links are not measured, and threads are not pinned to cores.\n\n"
               "  longhaul calibrate -o here.json\n"
               "  longhaul validate --profile here.json --schedule ring --schedule zigzag \\\n"
               "      --ranks 2 --seq-length 2K --num-attention-heads 4 --kv-channels 64\n"
               "  mpirun -n 8 longhaul validate --backend mpi --profile profile.json \\\n"
               "      --cluster cluster.json --seq-length 4K --budget 60s -o validation.json\n",
    .scenario = true,
    .ignores = LH_SCENARIO_OF_STEP,
    .common = { "--profile", "--schedule", "--model", "--seq-length", "--ranks", "--backend",
                "--tolerance", "--report", "--format", "--output" },
    .options = validate_options,
    .options_size = sizeof(ValidateOptions),
    .run = run_validate,
    .control = validate_control,
    .deadline_s = 120,
};
