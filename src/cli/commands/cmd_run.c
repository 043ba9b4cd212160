/* SPDX-License-Identifier: Apache-2.0 */
/*
 * longhaul run: executes one schedule with real data.
 */
#include "base/error.h"
#include "cli/command.h"
#include "cli/run_files.h"
#include "proof/proven.h"
#include "report/text/describe_critical.h"
#include "report/text/describe_run.h"

#include <stddef.h>

#define RUN_REPEAT_MAX 1000000
#define CHECK_TOKENS_MIN 2
#define CHECK_TOKENS_MAX (1 << 20)

typedef struct {
    LhOutputOptions to;
    int backend;   /* index of lh_backends */
    int bootstrap; /* of lh_controls */
    char *kernels;
    int inputs; /* LhInputKind */
    uint64_t repeat;
    uint64_t check_tokens;
    LhTime deadline_ps;
    GPtrArray *inject; /* of char * */
    bool critical_path;
    LhRunFileOptions files;
} RunOptions;

static const LhField run_options[] = {
    LH_OPTION_FORMAT(RunOptions, to),
    LH_OPTION_OUTPUT(RunOptions, to),
    LH_OPTION_BACKEND(RunOptions, backend,
                      "Where ranks run: threads of this process (cpu, default); one per process of "
                      "mpirun (mpi) or, over TCP, of any launcher (tcp); all on one GPU (cuda); or "
                      "one GPU each, of this machine or one per process (nccl)."),
    LH_OPTION_BOOTSTRAP(
        RunOptions, bootstrap,
        "How the processes of --backend tcp or nccl rendezvous: not at all, one process has all "
        "ranks (single), through MPI, or over TCP with the environment of torchrun or of a Slurm "
        "step; default auto, whichever environment is present."),
    LH_OPTION_KERNELS(RunOptions, kernels),
    { .name = "inputs",
      .category = LH_ABOUT_MEASUREMENT,
      .type = LH_FIELD_CHOICE,
      .offset = offsetof(RunOptions, inputs),
      .choices = lh_input_names,
      .description =
          "Distribution of the values of q, k, v and do, see docs/internals/runtime.md; default "
          "normal." },
    { .name = "repeat",
      .category = LH_ABOUT_MEASUREMENT,
      .type = LH_FIELD_UINT,
      .offset = offsetof(RunOptions, repeat),
      .absent = "1",
      .min = 1,
      .max = RUN_REPEAT_MAX,
      .description =
          "Number of runs; default 1. Their results must be bitwise equal (the last bits may "
          "differ with cuDNN). On a GPU an untimed run comes first, unless --inject is given." },
    { .name = "check-tokens",
      .category = LH_ABOUT_MEASUREMENT,
      .type = LH_FIELD_UINT,
      .offset = offsetof(RunOptions, check_tokens),
      .min = CHECK_TOKENS_MIN,
      .max = CHECK_TOKENS_MAX,
      .description = "Check only this many tokens per rank: the first, the last and a sample drawn "
                     "by --seed. The check is then linear in the sequence length instead of "
                     "quadratic; default all tokens." },
    LH_OPTION_DEADLINE(
        RunOptions, deadline_ps,
        "Abort if no op and no message completes for this long; default at least 60 s."),
    { .name = "inject",
      .category = LH_ABOUT_MEASUREMENT,
      .type = LH_FIELD_STRINGS,
      .offset = offsetof(RunOptions, inject),
      .placeholder = "FAULT",
      .description = "Insert a fault on purpose: drop-pair, duplicate-pair, mask-shift, local-lse, "
                     "stale-buffer, wrong-kv-head, stall:RANK or delay:SEED." },
    { .name = "critical-path",
      .category = LH_ABOUT_OUTPUT,
      .type = LH_FIELD_BOOL,
      .offset = offsetof(RunOptions, critical_path),
      .flags = LH_COMMAND_SHOWN,
      .description = "Also print the critical path of the measured run: its chain of ops and "
                     "messages, the slack of the rest, and the ops with most slack." },
    LH_OPTION_RUN_FILES(RunOptions, files),
    { .name = NULL },
};

static void
print_run_text(LhFormat format, const LhSetup *setup, const LhExecuted *executed,
               const LhExecuteParams *params, GString *out)
{
    g_autoptr(LhTable) errors = lh_describe_errors(executed);
    g_autoptr(LhTable) counts = lh_describe_counts(executed);

    lh_describe_run(setup, executed, params, out);
    lh_table_words(format, out, 0);
    g_string_append_c(out, '\n');
    lh_table_print(errors, format, out);
    g_string_append_c(out, '\n');
    lh_table_print(counts, format, out);
    lh_describe_outcome(executed, params, out);
}

static void
print_run(const LhCommandLine *line, const LhSetup *setup, const LhExecuted *executed,
          const LhExecuteParams *params, const LhExecutedPath *path, GString *out)
{
    const RunOptions *o = line->options;
    const LhStamp stamp = lh_command_stamp(line);

    if (o->to.format == LH_FORMAT_JSON) {
        lh_run_json(setup, executed, params, path, &stamp, out);
    } else if (o->to.format == LH_FORMAT_CSV) {
        g_autoptr(LhTable) table =
            path != NULL ? lh_critical_table(path->critical) : lh_describe_errors(executed);

        lh_table_print(table, LH_FORMAT_CSV, out);
    } else {
        print_run_text((LhFormat)o->to.format, setup, executed, params, out);
        if (o->critical_path)
            lh_describe_executed_path(path, (LhFormat)o->to.format, out);
    }
}

/* Finds the critical path; NULL if it is not wanted, or nothing ran. */
static LhExecutedPath *
find_path(const RunOptions *o, const LhSetup *setup, const LhExecuted *executed,
          LhTimeline *timeline)
{
    if (!o->critical_path || timeline == NULL || timeline->records->len == 0)
        return NULL;
    lh_timeline_sort(timeline);
    return lh_executed_path_new(setup, executed->program, timeline->records,
                                executed->run->makespan_ps);
}

/* Mean share of the time in which a rank computes nothing. */
static double
bubble_of(const LhRunResult *run)
{
    double busy_ps = 0;

    for (uint32_t r = 0; r < run->ranks_count; r++)
        busy_ps += (double)run->ranks[r].busy_ps;
    return run->makespan_ps == 0
               ? 0
               : 1 - busy_ps / ((double)run->makespan_ps * (double)run->ranks_count);
}

static uint32_t
last_rank(const LhRunResult *run)
{
    uint32_t last = 0;

    for (uint32_t r = 1; r < run->ranks_count; r++) {
        if (run->ranks[r].finish_ps > run->ranks[last].finish_ps)
            last = r;
    }
    return last;
}

static bool
write_run_files(LhRunFiles *files, const LhSetup *setup, const LhExecuted *executed, GError **error)
{
    LhGantt gantt = { .setup = setup,
                      .name = lh_run_name(setup),
                      .program = executed->program,
                      .makespan_ps = executed->run->makespan_ps,
                      .last_rank = last_rank(executed->run),
                      .bubble = bubble_of(executed->run) };

    if (files->timeline != NULL && files->timeline->records->len > 0) {
        lh_timeline_sort(files->timeline);
        lh_timeline_meet(files->timeline, executed->program);
    }
    lh_run_files_add_last(files, gantt.last_rank);
    return lh_run_files_write(files, &gantt, error);
}

/* Returns "drop-pair,delay:1", or NULL if no fault was given. Caller frees. */
static char *
join_faults(const GPtrArray *faults)
{
    g_autoptr(GString) text = g_string_new(NULL);

    for (guint i = 0; faults != NULL && i < faults->len; i++)
        g_string_append_printf(text, "%s%s", i > 0 ? "," : "",
                               (const char *)g_ptr_array_index(faults, i));
    return faults == NULL ? NULL : g_string_free(g_steal_pointer(&text), FALSE);
}

static bool
check_sample(const RunOptions *o, const LhSetup *setup, GError **error)
{
    if (o->check_tokens == 0)
        return true;
    if (setup->step != NULL)
        g_set_error(error, LH_ERROR, LH_ERROR_USAGE,
                    "--check-tokens has no effect on a training step, which is checked as a whole");
    else if (setup->params.pass == LH_PASS_BWD)
        g_set_error(error, LH_ERROR, LH_ERROR_USAGE,
                    "--check-tokens is not supported with --pass bwd: its inputs o and lse need "
                    "the reference of all tokens; use --pass both");
    return setup->step == NULL && setup->params.pass != LH_PASS_BWD;
}

static const LhControl *
run_control(const LhCommandLine *line)
{
    const RunOptions *o = line->options;
    LhBackend backend;

    return lh_backend_choose(lh_backends[o->backend], lh_controls[o->bootstrap], &backend, NULL)
               ? backend.control
               : NULL;
}

static LhAnswer
run_run(const LhCommandLine *line, GError **error)
{
    const RunOptions *o = line->options;
    g_autoptr(LhSetup) setup = NULL;
    g_autoptr(LhExecuted) executed = NULL;
    g_autoptr(LhExecutedPath) path = NULL;
    g_auto(LhRunFiles) files = { .options = NULL };
    g_autoptr(GString) out = g_string_new(NULL);
    g_autofree char *faults = join_faults(o->inject);
    LhBackend backend;
    LhExecuteParams params = {
        .backend = &backend,
        .inputs = (LhInputKind)o->inputs,
        .repeat = o->repeat,
        .check_tokens = (uint32_t)o->check_tokens,
        .deadline_ps = o->deadline_ps,
        .inject = faults,
    };

    files.stamp = lh_command_stamp(line);
    if (!lh_command_check_program(line, error) ||
        !lh_backend_choose(lh_backends[o->backend], lh_controls[o->bootstrap], &backend, error) ||
        !lh_command_kernels(o->kernels, params.backend->device, &params.kernel_set, error))
        return LH_ANSWER_FAILED;
    setup = lh_setup_new(line->scenario, error);
    if (setup == NULL || !lh_setup_check_one(setup, error) || !check_sample(o, setup, error) ||
        !lh_run_files_init(&files, &o->files, setup, true, error) ||
        !lh_prove_setup(setup, LH_PROVE_TO_RUN, error))
        return LH_ANSWER_FAILED;
    if (files.timeline == NULL && o->critical_path)
        files.timeline = lh_timeline_new(NULL);
    if (files.timeline != NULL) {
        params.timeline = lh_timeline_collect;
        params.timeline_data = files.timeline;
    }
    executed = lh_execute_setup(setup, &params, error);
    if (executed == NULL)
        return LH_ANSWER_FAILED;
    if (!executed->whole)
        return LH_ANSWER_YES;
    path = find_path(o, setup, executed, files.timeline);
    print_run(line, setup, executed, &params, path, out);
    if (!lh_command_write(&o->to, out, error) || !write_run_files(&files, setup, executed, error))
        return LH_ANSWER_FAILED;
    return lh_executed_ok(executed) ? LH_ANSWER_YES : LH_ANSWER_NO;
}

const LhCommand lh_command_run = {
    .name = "run",
    .arguments = "[SCENARIO] [OPTIONS]",
    .summary = "Execute one schedule with real data, and check its results.",
    .details = "Executes the program that sim simulates, on this machine: each rank is a host\n"
               "thread and a thread for each stream, with real kernels and real transfers. Then\n"
               "checks every output of every rank against attention of the whole sequence in\n"
               "fp64, and bytes sent, flops and peak memory against those of verify and sim.\n"
               "Exit status 1 if an error is larger than its gate or a count differs; 4 if the\n"
               "run got stuck; the error lists what every rank waits for. The check takes up to\n"
               "three times as long as the run; docs/internals/runtime.md describes it.\n\n"
               "  longhaul run --schedule zigzag --ranks 4 --seq-length 512 \\\n"
               "      --num-attention-heads 4 --kv-channels 64\n"
               "  longhaul run --schedule ring --ranks 5 --seq-length 320 --inject local-lse\n"
               "  longhaul run --schedule ring --ranks 4 --seq-length 1K --critical-path\n"
               "  mpirun -n 4 longhaul run --backend mpi --schedule ring --ranks 4 \\\n"
               "      --seq-length 256\n"
               "  srun -n 4 longhaul run --backend tcp --schedule ring --ranks 4\n"
               "  longhaul run --backend cuda --schedule ring --ranks 4 --seq-length 4096\n",
    .scenario = true,
    .one_program = true,
    .ignores = LH_SCENARIO_OF_SIMULATION,
    .common = { "--schedule", "--model", "--ranks", "--seq-length", "--backend", "--repeat",
                "--figure", "--trace", "--format", "--output" },
    .options = run_options,
    .options_size = sizeof(RunOptions),
    .run = run_run,
    .control = run_control,
    .deadline_s = 60,
};
