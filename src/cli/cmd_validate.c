/*
 * longhaul validate: compares predicted with measured times.
 */
#include "base/error.h"
#include "cli/command.h"
#include "plan/prove.h"
#include "report/describe.h"
#include "report/describe_machine.h"
#include "report/describe_options.h"
#include "runtime/pin.h"

#include <stddef.h>
#include <string.h>

#define CLUSTER "this-machine"
#define RANKS_DEFAULT 2
#define REPEAT_DEFAULT 5
#define REPEAT_MAX 10000
#define TOLERANCE_DEFAULT 0.1

typedef struct {
    LhOutputOptions to;
    char *tolerance;
    uint64_t repeat;
    int statistic; /* LhStatistic */
    char *kernels;
} Options;

static const LhField options[] = {
    LH_OPTION_FORMAT(Options, to),
    LH_OPTION_OUTPUT(Options, to),
    { .name = "tolerance",
      .type = LH_FIELD_STRING,
      .offset = offsetof(Options, tolerance),
      .placeholder = "SHARE",
      .description = "Largest error of makespans and kernels, such as 10% or 0.1; default 10%." },
    { .name = "repeat",
      .type = LH_FIELD_UINT,
      .offset = offsetof(Options, repeat),
      .min = 1,
      .max = REPEAT_MAX,
      .description =
          "Number of runs of each schedule, after a first one that does not count; default "
          "5." },
    { .name = "statistic",
      .type = LH_FIELD_CHOICE,
      .offset = offsetof(Options, statistic),
      .choices = lh_statistic_names,
      .description = "Which of the runs counts, as in longhaul calibrate; default median." },
    LH_OPTION_KERNELS(Options, kernels),
    { .name = NULL },
};

/* Refuses to compare what this machine does with what another one is predicted to do. */
static bool
check_machine(const LhSetup *setup, GError **error)
{
    if (strcmp(setup->topology->name, CLUSTER) == 0)
        return true;
    return lh_scenario_error(setup->scenario, "cluster", error,
                             "%s is another machine than this one, which runs the schedules; "
                             "allowed: " CLUSTER,
                             setup->topology->name);
}

static bool
check_module(const LhSetup *setup, GError **error)
{
    return setup->step == NULL ||
           lh_scenario_error(setup->scenario, "step", error,
                             "validate compares attention modules, not training steps");
}

/* "10%" or "0.1" as a share. */
static bool
parse_tolerance(const char *text, double *tolerance, GError **error)
{
    char *end = NULL;
    double value;

    *tolerance = TOLERANCE_DEFAULT;
    if (text == NULL)
        return true;
    value = g_ascii_strtod(text, &end);
    if (end != text && *end == '%') {
        value /= 100;
        end++;
    }
    if (end == text || *end != '\0' || !(value > 0) || value > 1) {
        g_set_error(
            error, LH_ERROR, LH_ERROR_USAGE,
            "--tolerance: \"%s\" is not a share; allowed: more than 0%% up to 100%%, such as "
            "10%% or 0.1",
            text);
        return false;
    }
    *tolerance = value;
    return true;
}

static bool
prepare(const LhCommandLine *line, double *tolerance, GError **error)
{
    const Options *o = line->options;
    LhScenario *s = line->scenario;

    if (!parse_tolerance(o->tolerance, tolerance, error))
        return false;
    if (s->profile == NULL) {
        g_set_error(
            error, LH_ERROR, LH_ERROR_USAGE,
            "validate: no profile: give --profile FILE; longhaul calibrate -o FILE makes one");
        return false;
    }
    if (s->cluster == NULL)
        s->cluster = g_strdup(CLUSTER);
    if (s->ranks == 0 && s->schedule_file == NULL)
        s->ranks = RANKS_DEFAULT;
    /* What is predicted is what is run. */
    if (s->collectives < 0 || s->collectives == LH_COLLECTIVES_AUTO)
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

static void
print_text(const LhSetup *setup, const GPtrArray *validations, double tolerance, LhFormat format,
           GString *out)
{
    g_autoptr(LhTable) makespans = lh_describe_makespans(validations, tolerance);
    g_autoptr(LhTable) kernels = lh_describe_kernel_errors(validations, tolerance);
    const LhProgramParams *p = &setup->params;
    const LhAttention *a = &p->attention;
    const LhProgramParams plain = { .attention = *a };
    g_autofree char *mask = lh_describe_mask(&p->mask);
    g_autofree char *with = lh_describe_options(p, &plain);
    g_autofree char *groups = lh_describe_groups(p);
    const gsize from = out->len;

    if (lh_params_ranks(p) > lh_cores_count())
        g_string_append_printf(
            out,
            "%u ranks share %u cores, which the simulator does not model: it will "
            "predict times that are too short.\n\n",
            lh_params_ranks(p), lh_cores_count());
    g_string_append_printf(
        out, "%s, %" G_GUINT64_FORMAT " tokens, %u heads, d %u, %s, %s%s, %s%s%s\n", groups,
        a->seq_length, a->heads, a->head_dim, lh_dtype_names[a->dtype], a->linear ? "linear, " : "",
        mask, lh_pass_names[p->pass - 1], with[0] != '\0' ? "; " : "", with);
    lh_describe_left_out(setup, out);
    lh_table_words(format, out, from);
    g_string_append_c(out, '\n');
    lh_table_print(makespans, format, out);
    g_string_append_c(out, '\n');
    lh_table_print(kernels, format, out);
    g_string_append_printf(
        out,
        "\nerror = predicted / measured - 1. start: the time until the rank that ends last has "
        "issued its first op.\nKernels with less than %.0f %% of the compute time are not "
        "judged.\n%s %.3g %%.\n",
        100 * LH_VALIDATE_SHARE_MIN,
        all_within(validations, tolerance) ? "All within" : "NOT all within", 100 * tolerance);
}

static void
print(const LhCommandLine *line, const LhSetup *setup, const GPtrArray *validations,
      double tolerance, GString *out)
{
    const Options *o = line->options;
    const LhStamp stamp = lh_command_stamp(line);

    if (o->to.format == LH_FORMAT_JSON) {
        lh_validate_json(setup, validations, tolerance, &stamp, out);
    } else if (o->to.format == LH_FORMAT_CSV) {
        g_autoptr(LhTable) makespans = lh_describe_makespans(validations, tolerance);

        lh_table_print(makespans, LH_FORMAT_CSV, out);
    } else {
        print_text(setup, validations, tolerance, (LhFormat)o->to.format, out);
    }
}

static int
run(const LhCommandLine *line, GError **error)
{
    const Options *o = line->options;
    LhValidateParams params = {
        .statistic = (LhStatistic)o->statistic,
        .repeat = o->repeat != 0 ? o->repeat : REPEAT_DEFAULT,
    };
    g_autoptr(LhSetup) setup = NULL;
    g_autoptr(GPtrArray) validations = NULL;
    g_autoptr(GString) out = g_string_new(NULL);
    double tolerance;

    if (!prepare(line, &tolerance, error) ||
        !lh_command_kernels(o->kernels, &lh_device_cpu, &params.kernel_set, error))
        return LH_ERROR_USAGE;
    setup = lh_setup_new(line->scenario, error);
    if (setup == NULL || !check_machine(setup, error) || !check_module(setup, error) ||
        !lh_prove_setup(setup, LH_PROVE_TO_RUN, error))
        return LH_ERROR_INPUT;
    validations = lh_validate(setup, &params, error);
    if (validations == NULL)
        return LH_ERROR_RUNTIME;
    print(line, setup, validations, tolerance, out);
    if (!lh_command_write(&o->to, out, error))
        return LH_ERROR_RUNTIME;
    return all_within(validations, tolerance) ? 0 : LH_ERROR_NO;
}

const LhCommand lh_command_validate = {
    .name = "validate",
    .arguments = "[SCENARIO] [OPTIONS] --profile FILE",
    .summary = "Compare predicted with measured times on this machine, op by op.",
    .details = "Simulates each schedule on the cluster this-machine, with the constants of the\n"
               "profile, and executes the same program. Joins the two timelines on rank and op,\n"
               "and prints how far the predicted times of kernels and makespans are off. The\n"
               "compute threads of rank r stay on core r. Use no more ranks than cores, since\n"
               "the simulator does not model ranks that share one. Exit status 1 if a makespan\n"
               "is off by more than the tolerance, or the median op of a kernel that takes at\n"
               "least 5 % of the compute time. The results are not checked: longhaul run does\n"
               "that.\n\n"
               "  longhaul calibrate -o here.json\n"
               "  longhaul validate --profile here.json --schedule ring --schedule zigzag \\\n"
               "      --ranks 2 --seq-length 2K --num-attention-heads 4 --kv-channels 64\n",
    .scenario = true,
    .ignores = LH_SCENARIO_OF_STEP,
    .options = options,
    .options_size = sizeof(Options),
    .run = run,
};
