/* SPDX-License-Identifier: Apache-2.0 */
/*
 * longhaul collective: predicts the output of nccl-tests on a cluster, and compares it with a log.
 */
#include "base/error.h"
#include "cli/command.h"
#include "collective_check/log_check.h"
#include "report/text/cluster/describe_log_check.h"
#include "report/text/cluster/log_check_values.h"

#include <stddef.h>
#include <string.h>

#define LOGS_MAX 256
#define BYTES_MIN 8
#define BYTES_MAX (UINT64_C(1) << 30)
#define FACTOR 2
#define FACTOR_MAX 1048576

typedef struct {
    LhOutputOptions to;
    uint64_t bytes_min, bytes_max, factor;
    uint64_t ranks, per_node;
    GPtrArray *logs; /* of char * */
    int how;         /* of ways_of_collectives */
    bool links;
} CollectiveOptions;

/* The scenario's choices, NCCL first: nccl-tests measures NCCL. */
static const char *const ways_of_collectives[] = { "nccl",        "auto",     "ring",
                                                   "tree",        "pairwise", "direct",
                                                   "closed-form", "fluid",    NULL };

static const LhField collective_options[] = {
    { .name = "minbytes",
      .category = LH_ABOUT_MEASUREMENT,
      .letter = 'b',
      .type = LH_FIELD_UNIT,
      .unit = LH_UNIT_BYTES,
      .offset = offsetof(CollectiveOptions, bytes_min),
      .min = 1,
      .max = LH_NCCL_TEST_BYTES_MAX,
      .description = "Smallest size, as in nccl-tests; default 8, or the log's." },
    { .name = "maxbytes",
      .category = LH_ABOUT_MEASUREMENT,
      .letter = 'e',
      .type = LH_FIELD_UNIT,
      .unit = LH_UNIT_BYTES,
      .offset = offsetof(CollectiveOptions, bytes_max),
      .min = 1,
      .max = LH_NCCL_TEST_BYTES_MAX,
      .description = "Largest size; default 1G, or the log's." },
    { .name = "stepfactor",
      .category = LH_ABOUT_MEASUREMENT,
      .letter = 'f',
      .type = LH_FIELD_UINT,
      .offset = offsetof(CollectiveOptions, factor),
      .min = 2,
      .max = FACTOR_MAX,
      .description =
          "Factor from each size to the next; default 2. With --log, sizes are the log's." },
    { .name = "ranks",
      .category = LH_ABOUT_CLUSTER,
      .letter = 'g',
      .type = LH_FIELD_UINT,
      .offset = offsetof(CollectiveOptions, ranks),
      .min = 2,
      .max = LH_NCCL_TEST_MEMBERS_MAX,
      .description = "Number of GPUs; default all of the cluster, or those named in the log." },
    { .name = "per_node",
      .category = LH_ABOUT_CLUSTER,
      .type = LH_FIELD_UINT,
      .offset = offsetof(CollectiveOptions, per_node),
      .min = 1,
      .max = LH_NCCL_TEST_MEMBERS_MAX,
      .description =
          "GPUs used per node, the first ones; default: nodes are filled one after another." },
    { .name = "log",
      .category = LH_ABOUT_INPUT,
      .type = LH_FIELD_STRINGS,
      .offset = offsetof(CollectiveOptions, logs),
      .min = 1,
      .max = LOGS_MAX,
      .placeholder = "FILE",
      .names = "files",
      .description = "Complete output of a program of nccl-tests on this cluster. Its out-of-place "
                     "times are compared with the predictions." },
    { .name = "collectives",
      .category = LH_ABOUT_SIMULATION,
      .type = LH_FIELD_CHOICE,
      .offset = offsetof(CollectiveOptions, how),
      .choices = ways_of_collectives,
      .description = "Time model of collectives: NCCL's measured times and time model (nccl, "
                     "default), or one of those of sim and compare, whose default is auto." },
    { .name = "links",
      .category = LH_ABOUT_OUTPUT,
      .type = LH_FIELD_BOOL,
      .offset = offsetof(CollectiveOptions, links),
      .flags = LH_COMMAND_SHOWN,
      .description = "Also print the five most loaded links, and the busbw that each allows." },
    LH_OPTION_FORMAT(CollectiveOptions, to),
    LH_OPTION_OUTPUT(CollectiveOptions, to),
    { .name = NULL },
};

static bool
refuse_line(GError **error, const char *text)
{
    g_set_error(error, LH_ERROR, LH_ERROR_USAGE, "collective: %s", text);
    return false;
}

static bool
check_line(const LhCommandLine *line, LhLogCheckQuery *query, GError **error)
{
    const CollectiveOptions *o = line->options;
    const bool logs = o->logs != NULL && o->logs->len > 0;

    if (line->arguments->len > 0) {
        query->op = lh_nccl_test_op_find(g_ptr_array_index(line->arguments, 0), error);
        if (query->op == NULL)
            return false;
    }
    if (query->op == NULL && !logs)
        return refuse_line(error, "missing operation: give its name, such as all_reduce, or --log "
                                  "FILE; see longhaul list operations");
    if (line->scenario->cluster == NULL)
        return refuse_line(
            error, "missing cluster: give --cluster NAME[:NODES]; see longhaul list topologies");
    if (logs && o->factor > 0)
        return refuse_line(error,
                           "--stepfactor has no effect with --log: sizes are those of the log");
    if (query->bytes_min > query->bytes_max)
        return refuse_line(error, "--minbytes is above --maxbytes");
    return true;
}

static LhLogCheckQuery
query_of(const LhCommandLine *line)
{
    const CollectiveOptions *o = line->options;
    const bool logs = o->logs != NULL && o->logs->len > 0;

    return (LhLogCheckQuery){
        .scenario = line->scenario,
        .logs = logs ? o->logs : NULL,
        .bytes_min = o->bytes_min > 0 ? o->bytes_min
                     : logs           ? 1
                                      : BYTES_MIN,
        .bytes_max = o->bytes_max > 0 ? o->bytes_max
                     : logs           ? LH_NCCL_TEST_BYTES_MAX
                                      : BYTES_MAX,
        .factor = o->factor > 0 ? o->factor : FACTOR,
        .place = { o->ranks, o->per_node },
    };
}

static void
print_held(const LhCommandLine *line, const LhLogCheck *held, GString *out)
{
    const CollectiveOptions *o = line->options;
    const LhFormat format = (LhFormat)o->to.format;
    const LhStamp stamp = lh_command_stamp(line);
    g_autoptr(LhTable) table = NULL;

    if (format == LH_FORMAT_JSON) {
        lh_log_check_json(held, &stamp, out);
    } else if (format == LH_FORMAT_CSV) {
        table = lh_log_check_table(held);
        lh_table_print(table, format, out);
    } else {
        lh_describe_log_check(held, o->links, format, out);
    }
}

static LhAnswer
run_collective(const LhCommandLine *line, GError **error)
{
    const CollectiveOptions *o = line->options;
    LhLogCheckQuery query = query_of(line);
    g_autoptr(GString) out = g_string_new(NULL);
    g_autoptr(LhLogCheck) held = NULL;

    if (!check_line(line, &query, error))
        return LH_ANSWER_FAILED;
    lh_scenario_replace(line->scenario, "collectives", ways_of_collectives[o->how]);
    held = lh_log_check_new(&query, error);
    if (held == NULL)
        return LH_ANSWER_FAILED;
    print_held(line, held, out);
    if (!lh_command_write(&o->to, out, error))
        return LH_ANSWER_FAILED;
    return held->inside < held->logged ? LH_ANSWER_NO : LH_ANSWER_YES;
}

const LhCommand lh_command_collective = {
    .name = "collective",
    .arguments = "[OP] --cluster NAME[:NODES] [OPTIONS]",
    .summary = "Predict the output of nccl-tests on a cluster, and check a log against it.",
    .details = "OP is an operation as named by nccl-tests (longhaul list operations) or\n"
               "longhaul: all_reduce, all_reduce_perf and all-reduce are the same. Prints the\n"
               "time, algbw and busbw columns of nccl-tests, each with an error bar that\n"
               "contains four of five measured values. Times are measured on such links, scaled\n"
               "from other links, or modelled.\n\n"
               "--log compares a log with the prediction; it also supplies the ranks and,\n"
               "without OP, the operation. Exit status 1 if a row is outside its error bar.\n"
               "Possible causes are then tried in turn: each rate and latency of the topology\n"
               "file, NVLS off, and messages through memory. A cause that explains the log is\n"
               "printed.\n\n"
               "  longhaul collective all_reduce --cluster hgx-h100:4\n"
               "  longhaul collective alltoall --cluster hgx-h100:2 -b 1M -e 1G --links\n"
               "  longhaul collective --cluster hgx-h100 --log all_reduce_perf.txt\n"
               "  longhaul collective all_gather --cluster hgx-h100:2 --link-fault nic:0:0.5\n",
    .scenario = true,
    .reads = LH_SCENARIO_OF_CLUSTER,
    .no_file = true,
    .arguments_max = 1,
    .names = "operations",
    .common = { "--cluster", "--ranks", "--log", "--minbytes", "--maxbytes", "--stepfactor",
                "--links", "--format", "--output" },
    .options = collective_options,
    .options_size = sizeof(CollectiveOptions),
    .run = run_collective,
};
