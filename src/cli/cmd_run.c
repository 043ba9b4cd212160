/*
 * longhaul run: one schedule, executed with real data.
 */
#include "base/error.h"
#include "cli/command.h"
#include "report/describe_run.h"
#include "report/figure.h"
#include "report/gantt.h"
#include "report/output.h"

#include <stddef.h>
#include <stdio.h>

#define REPEAT_MAX 1000000
#define DEADLINE_S_MAX 1e6

static const LhField options[] = {
    LH_CLI_FORMAT,
    LH_CLI_OUTPUT,
    { .name = "backend",
      .type = LH_FIELD_CHOICE,
      .offset = offsetof(LhCli, backend),
      .choices = lh_transport_names,
      .description = "cpu: all ranks in this process; mpi: one each, by mpirun. Default cpu." },
    { .name = "kernels",
      .type = LH_FIELD_CHOICE,
      .offset = offsetof(LhCli, kernels),
      .choices = lh_kernel_set_names,
      .description = "cpu: fast; reference: slow, fp64 inside. Default cpu." },
    { .name = "inputs",
      .type = LH_FIELD_CHOICE,
      .offset = offsetof(LhCli, inputs),
      .choices = lh_input_names,
      .description = "Distribution of q, k, v and do; see docs/runtime.md. Default normal." },
    { .name = "repeat",
      .type = LH_FIELD_UINT,
      .offset = offsetof(LhCli, repeat),
      .min = 1,
      .max = REPEAT_MAX,
      .description = "Run so many times; results must be equal to the bit. Default 1." },
    { .name = "deadline",
      .type = LH_FIELD_UNIT,
      .unit = LH_UNIT_TIME,
      .offset = offsetof(LhCli, deadline_ps),
      .min = 1e-3,
      .max = DEADLINE_S_MAX,
      .description = "Give up when nothing has moved for so long. Default 60 s or more." },
    { .name = "inject",
      .type = LH_FIELD_STRING,
      .offset = offsetof(LhCli, inject),
      .description = "A fault on purpose: drop-pair, duplicate-pair, mask-shift, local-lse, "
                     "stale-buffer, wrong-kv-head, stall:RANK, delay:SEED." },
    LH_CLI_FIGURE("Draw a Gantt chart of up to 16 ranks; *.svg or *.png, with its .gp and .dat."),
    { .name = "timeline",
      .type = LH_FIELD_STRING,
      .offset = offsetof(LhCli, timeline),
      .description = "Write one CSV row for each op to this file." },
    { .name = NULL },
};

static void
print_text(const LhCli *cli, const LhSetup *setup, const LhExecuted *executed,
           const LhExecuteParams *params, GString *out)
{
    const LhFormat format = lh_cli_format(cli);
    g_autoptr(LhTable) errors = lh_describe_errors(executed);
    g_autoptr(LhTable) counts = lh_describe_counts(executed);

    lh_describe_run(setup, executed, params, out);
    g_string_append_c(out, '\n');
    lh_table_print(errors, format, out);
    g_string_append_c(out, '\n');
    lh_table_print(counts, format, out);
    g_string_append_printf(
        out, "\n%s\n",
        lh_executed_ok(executed)
            ? "Every rank's result is that of one device in fp64, within the gates."
            : "This run is WRONG.");
}

static void
print(const LhCli *cli, const LhSetup *setup, const LhExecuted *executed,
      const LhExecuteParams *params, GString *out)
{
    const LhStamp stamp = lh_cli_stamp(cli);

    if (lh_cli_format(cli) == LH_FORMAT_JSON) {
        lh_run_json(setup, executed, params, &stamp, out);
    } else if (lh_cli_format(cli) == LH_FORMAT_CSV) {
        g_autoptr(LhTable) errors = lh_describe_errors(executed);

        lh_table_print(errors, LH_FORMAT_CSV, out);
    } else {
        print_text(cli, setup, executed, params, out);
    }
}

static bool
write_files(const LhCli *cli, const LhSetup *setup, const LhExecuted *executed,
            LhTimeline *timeline, GError **error)
{
    const LhCompareRow row = { .name = executed->name,
                               .program = executed->program,
                               .result = executed->busy };

    if (timeline == NULL)
        return true;
    lh_timeline_sort(timeline);
    if (cli->timeline != NULL) {
        g_autoptr(GString) csv = g_string_new(NULL);

        lh_timeline_csv(timeline, executed->program, csv);
        if (!lh_output_file(cli->timeline, csv->str, csv->len, error))
            return false;
    }
    return cli->figure == NULL || lh_gantt_draw(setup, &row, timeline, cli->figure, error);
}

static bool
check(const LhCli *cli, GError **error)
{
    if (cli->figure != NULL && !lh_figure_check_path(cli->figure, error))
        return false;
    if (cli->scenario->schedule != NULL || cli->scenario->schedule_file != NULL)
        return true;
    g_set_error(error, LH_ERROR, LH_ERROR_USAGE,
                "run: no schedule: give --schedule NAME; see longhaul list schedules");
    return false;
}

/*
 * A process of several that failed says so at once and ends the others, after they too had time to
 * say what they see: none is left behind.
 */
static void
end_others(const LhTransport *transport, const GError *error)
{
    if (transport->abandon == NULL)
        return;
    fprintf(stderr, "longhaul: error: %s\n", error->message);
    fflush(stderr);
    transport->abandon(error->code);
}

static int
run(LhCli *cli, GError **error)
{
    g_autoptr(LhSetup) setup = NULL;
    g_autoptr(LhExecuted) executed = NULL;
    g_autoptr(LhTimeline) timeline = NULL;
    g_autoptr(GString) out = g_string_new(NULL);
    g_autoptr(GError) failure = NULL;
    LhExecuteParams params = {
        .transport = lh_transports[cli->backend],
        .kernels = (LhKernelSet)cli->kernels,
        .inputs = (LhInputKind)cli->inputs,
        .repeat = cli->repeat,
        .deadline_ps = cli->deadline_ps,
        .inject = cli->inject,
    };

    if (!check(cli, error))
        return LH_ERROR_USAGE;
    setup = lh_setup_new(cli->scenario, error);
    if (setup == NULL)
        return LH_ERROR_INPUT;
    if (cli->figure != NULL || cli->timeline != NULL) {
        timeline = lh_timeline_new(cli->timeline != NULL ? UINT32_MAX : LH_GANTT_RANKS_MAX);
        params.timeline = lh_timeline_collect;
        params.timeline_data = timeline;
    }
    executed = lh_execute_setup(setup, &params, &failure);
    if (executed == NULL) {
        end_others(params.transport, failure);
        g_propagate_error(error, g_steal_pointer(&failure));
        return LH_ERROR_RUNTIME;
    }
    if (!executed->whole)
        return 0;
    print(cli, setup, executed, &params, out);
    if (!write_files(cli, setup, executed, timeline, error) || !lh_cli_write(cli, out, error))
        return LH_ERROR_RUNTIME;
    return lh_executed_ok(executed) ? 0 : LH_ERROR_NO;
}

const LhCommand lh_command_run = {
    .name = "run",
    .arguments = "[SCENARIO] [OPTIONS]",
    .summary = "One schedule, executed with real data and held against the answer.",
    .details =
        "Executes exactly the program that sim plays, on this machine: every rank with its\n"
        "streams, real kernels and real transfers. Every output of every rank is compared with\n"
        "fp64 attention of the whole sequence; bytes sent, flops and peak memory with what verify\n"
        "and sim say. Exit status 1 if anything is outside its gate, 4 if the run got stuck: then\n"
        "it says for every rank what it waits for. Long sequences take long: the fp64 answer\n"
        "costs 14 B h d N^2 flops, so make the model small.\n\n"
        "  longhaul run --schedule zigzag --ranks 4 --seq-length 512 --num-attention-heads 4 \\\n"
        "      --kv-channels 64\n"
        "  longhaul run --schedule ring --ranks 5 --seq-length 320 --inject local-lse\n"
        "  mpirun -n 4 longhaul run --backend mpi --schedule ring --ranks 4 --seq-length 256\n",
    .scenario = true,
    .options = options,
    .run = run,
};
