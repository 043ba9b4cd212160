/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Errors of correct and of faulty runs, in the units of the gates of `longhaul run`: random cases
 * of every schedule over seeds, shapes, element types, masks, options and inputs. The gates are
 * derived from this output (docs/internals/runtime.md).
 *
 * A faulty run is a correct one with an injected fault: in the executor (inject.h), in every call
 * of a kernel, or in a result before it is compared.
 */
#include "bench_faults.h"

#include "base/rng.h"
#include "sched/schedule.h"
#include "verify/verify.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DEADLINE_US 60000000
#define ALARMS 1e-6 /* highest rate of false alarms of correct runs */
#define TAIL 0.02   /* share of runs that ALARMS is extrapolated from */

static gint runs_count = 200;
static gint64 first_seed = 1;
static gdouble above = LH_TOLERANCE_ROW;
static gboolean wrong = FALSE;
static char *only = NULL;

static const GOptionEntry entries[] = {
    { "runs", 0, 0, G_OPTION_ARG_INT, &runs_count, "Cases of every schedule; default 200.", "N" },
    { "seed", 0, 0, G_OPTION_ARG_INT64, &first_seed, "Seed of the first case; default 1.", "N" },
    { "schedule", 0, 0, G_OPTION_ARG_STRING, &only, "Run this schedule only.", "NAME" },
    { "above", 0, 0, G_OPTION_ARG_DOUBLE, &above,
      "Describe correct runs with a row above this; default: the gate.", "UNITS" },
    { "wrong", 0, 0, G_OPTION_ARG_NONE, &wrong, "Measure faulty runs instead of correct ones.",
      NULL },
    { NULL },
};

/* ---- cases ---- */

#define DOCUMENTS_MAX 3

typedef struct {
    const LhSchedule *schedule;
    LhProgramParams params;
    LhInputKind inputs;
    uint64_t seed, ends[DOCUMENTS_MAX];
    unsigned drawn; /* random numbers so far */
} Case;

static uint32_t
draw(Case *c, uint32_t values)
{
    return (uint32_t)(lh_rng_bits(c->seed, 97, c->drawn++) % values);
}

#define PICK(c, ...)                                                                               \
    ((const uint32_t[]){                                                                           \
        __VA_ARGS__ }[draw(c, sizeof((const uint32_t[]){ __VA_ARGS__ }) / sizeof(uint32_t))])

static void
draw_options(Case *c)
{
    const LhOption *const *option = c->schedule->options;

    for (; option != NULL && *option != NULL; option++) {
        LhOptionValue value;
        uint32_t values = 0;

        while (lh_option_value(*option, &c->params, values, &value))
            values++;
        if (values > 0 && draw(c, 3) == 0 &&
            lh_option_value(*option, &c->params, draw(c, values), &value))
            lh_option_set(&c->params, *option, value);
    }
}

static void
draw_mask(Case *c)
{
    LhMaskRule *mask = &c->params.mask;
    const uint64_t n = c->params.attention.seq_length;

    mask->causal = draw(c, 4) != 0;
    if (draw(c, 5) == 0)
        mask->window = 1 + draw(c, (uint32_t)n);
    if (draw(c, 5) == 0 && n >= DOCUMENTS_MAX) {
        c->ends[0] = 1 + draw(c, (uint32_t)n - 2);
        c->ends[1] = c->ends[0] + 1;
        c->ends[2] = n;
        mask->document_ends = c->ends;
        mask->documents_count = c->ends[1] == n ? 2 : DOCUMENTS_MAX;
        mask->window = 0;
    }
}

/* Correct runs have any size, mostly tiny; faulty ones have realistic sizes. */
static void
draw_case(Case *c)
{
    LhAttention *a = &c->params.attention;
    const uint32_t groups = PICK(c, 1, 1, 2, 4);

    c->params.ranks = PICK(c, 1, 2, 3, 4, 4, 5, 6, 8);
    a->batch = PICK(c, 1, 1, 2);
    a->groups = groups;
    a->heads = groups * PICK(c, 1, 1, 2, 3);
    a->head_dim = wrong ? PICK(c, 16, 32, 64) : PICK(c, 1, 2, 4, 8, 16, 32, 33, 64, 128);
    a->seq_length = (uint64_t)c->params.ranks *
                    (wrong ? PICK(c, 8, 16, 32) : PICK(c, 1, 2, 2, 4, 4, 6, 8, 16, 32, 64, 128));
    a->dtype = (LhDtype)draw(c, 3);
    a->linear = (c->schedule->attention & LH_ATTENTION_LINEAR) != 0 &&
                ((c->schedule->attention & LH_ATTENTION_SOFTMAX) == 0 || draw(c, 2) == 0);
    a->decay = a->linear && draw(c, 2) == 0 ? 0.95 : 0;
    c->params.pass = (LhPass)PICK(c, LH_PASS_FWD, LH_PASS_BWD, LH_PASS_BOTH, LH_PASS_BOTH);
    c->inputs = wrong ? LH_INPUTS_NORMAL : (LhInputKind)PICK(c, 0, 0, 0, 1, 2, 3, 4);
    draw_mask(c);
    draw_options(c);
}

/* NULL if the schedule refuses the case, or computes something else (published code). */
static LhProgram *
proven(const Case *c)
{
    g_autoptr(LhProgram) program = lh_program_new(c->schedule, &c->params, NULL);
    g_autoptr(LhVerdict) verdict = program == NULL ? NULL : lh_verify(program);

    return verdict == NULL || verdict->findings->len > 0 ? NULL : g_steal_pointer(&program);
}

/* Retries with heads for every rank, a causal mask, and no options. */
static LhProgram *
program_of(Case *c)
{
    LhProgram *program = proven(c);

    if (program == NULL) {
        c->params.attention.heads *= c->params.ranks;
        c->params.attention.groups *= c->params.ranks;
        program = proven(c);
    }
    if (program == NULL) {
        c->params.mask = (LhMaskRule){ .causal = true };
        program = proven(c);
    }
    if (program == NULL) {
        c->params.options_count = 0;
        program = proven(c);
    }
    return program;
}

static void
describe(const Case *c)
{
    const LhAttention *a = &c->params.attention;

    printf("# %s, P %u, N %u, B %u, h %u, g %u, d %u, %s, %s%s, window %u, %u documents, pass %s, "
           "%s, seed %" G_GUINT64_FORMAT,
           c->schedule->name, c->params.ranks, (unsigned)a->seq_length, a->batch, a->heads,
           a->groups, a->head_dim, lh_dtype_names[a->dtype], a->linear ? "linear, " : "",
           c->params.mask.causal ? "causal" : "full", (unsigned)c->params.mask.window,
           c->params.mask.documents_count, lh_pass_names[c->params.pass - 1],
           lh_input_names[c->inputs], c->seed);
    for (uint32_t i = 0; i < c->params.options_count; i++) {
        g_autofree char *text =
            lh_option_text(c->params.options[i].option, c->params.options[i].value);

        printf(", %s", text);
    }
    printf("\n");
}

/* ---- runs ---- */

/* The largest error over all tensors. */
typedef struct {
    double mean, row;
    const char *name; /* the tensor with the worst row */
} Distance;

static LhRunResult *
run(const Case *c, const LhNumerics *n, const LhProgram *program, const LhRunHooks *hooks)
{
    LhNumericsLoad load = { n, program };
    const LhRunParams params = { .program = program,
                                 .backend = &lh_backend_cpu,
                                 .deadline_us = DEADLINE_US,
                                 .hooks = hooks,
                                 .load = lh_numerics_load_part,
                                 .load_data = &load };
    g_autoptr(GError) error = NULL;
    LhRunResult *result = lh_execute(&params, &error);

    if (result == NULL) {
        describe(c);
        printf("# failed: %s\n", error->message);
        exit(EXIT_FAILURE);
    }
    return result;
}

/* Bit-identical outputs: a fault without effect, e.g. in an unneeded message, does not count. */
static bool
are_same(const LhRunResult *a, const LhRunResult *b)
{
    for (uint32_t rank = 0; rank < a->ranks_count; rank++) {
        if (memcmp(a->outputs[rank], b->outputs[rank], a->output_bytes) != 0)
            return false;
    }
    return true;
}

/* Returns false if the fault has no target. @fault may be NULL. */
static bool
measure(const Case *c, const LhProgram *program, Fault *fault, Distance *distance)
{
    g_autoptr(LhNumerics) n = lh_numerics_new(&program->params, c->seed, c->inputs);
    g_auto(LhErrorReport) report = { 0 };
    g_autoptr(LhRunResult) result = run(c, n, program, fault == NULL ? NULL : fault_hooks(fault));
    g_autoptr(LhRunResult) right = fault == NULL ? NULL : run(c, n, program, NULL);

    if (fault != NULL)
        fault_in_result(fault, &n->reference, program, result);
    if (fault != NULL && are_same(result, right))
        return false;
    lh_tolerance_compare(n, program, result, &report);
    *distance = (Distance){ 0 };
    for (uint32_t i = 0; i < report.rows_count; i++) {
        const LhErrorRow *row = &report.rows[i];

        distance->mean = isnan(row->mean) ? INFINITY : fmax(distance->mean, row->mean);
        if (distance->name == NULL || !(row->row <= distance->row))
            distance->name = row->name;
        distance->row = isnan(row->row) ? INFINITY : fmax(distance->row, row->row);
    }
    return true;
}

/* ---- correct runs ---- */

static int
ascending(gconstpointer a, gconstpointer b)
{
    const double x = *(const double *)a, y = *(const double *)b;

    return x < y ? -1 : x > y;
}

static double
quantile(const GArray *sorted, double share)
{
    return g_array_index(sorted, double, (guint)(share * (sorted->len - 1)));
}

/*
 * The value exceeded by a share of ALARMS of all runs: a generalised Pareto distribution of the
 * values above the 98 % quantile, fitted by mean and variance (Hosking and Wallis 1987). Its shape
 * is at most 0 (exponential), since rounding errors are bounded.
 */
static double
tail(const GArray *sorted)
{
    const guint first = (guint)((1 - TAIL) * sorted->len);
    const double from = g_array_index(sorted, double, first);
    const double count = sorted->len - first;
    double mean = 0, variance = 0, ratio, shape, scale;

    for (guint i = first; i < sorted->len; i++)
        mean += (g_array_index(sorted, double, i) - from) / count;
    for (guint i = first; i < sorted->len; i++)
        variance += pow(g_array_index(sorted, double, i) - from - mean, 2) / count;
    ratio = variance > 0 ? mean * mean / variance : 1;
    shape = fmin((1 - ratio) / 2, 0);
    scale = shape < 0 ? mean * (1 + ratio) / 2 : mean;
    return from + (shape < 0 ? scale / shape * (pow(ALARMS / TAIL, -shape) - 1)
                             : scale * log(TAIL / ALARMS));
}

static void
print_right(const char *what, const char *of, GArray *values, double gate)
{
    if (values->len == 0)
        return;
    g_array_sort(values, ascending);
    printf("%-10s %-10s %7u  %6.3f  %6.3f  %6.3f  %6.3f  %6.3f  %6.3f\n", what, of, values->len,
           quantile(values, 0.5), quantile(values, 0.99), quantile(values, 0.999),
           quantile(values, 1), tail(values), gate);
}

typedef struct {
    GArray *mean[4], *row[4]; /* of double; by type, and for linear attention */
} Right;

static void
add_right(Right *right, const Case *c)
{
    const unsigned kind = c->params.attention.linear ? 3 : c->params.attention.dtype;
    Case fitted = *c;
    g_autoptr(LhProgram) program = program_of(&fitted);
    Distance d;

    if (program == NULL || !measure(&fitted, program, NULL, &d))
        return;
    if (d.mean > LH_TOLERANCE_MEAN || d.row > above) {
        describe(&fitted);
        printf("#   mean %g, worst row %g (%s)\n", d.mean, d.row, d.name);
    }
    g_array_append_val(right->mean[kind], d.mean);
    g_array_append_val(right->row[kind], d.row);
}

/* Different cases for every schedule. */
static uint64_t
seed_of(unsigned schedule, gint run)
{
    return ((uint64_t)(first_seed + run) << 8) + schedule;
}

static void
measure_right(const LhSchedule *const *schedules)
{
    static const char *const names[] = { "bf16", "fp16", "fp32", "linear" };
    Right right;

    for (unsigned i = 0; i < G_N_ELEMENTS(names); i++) {
        right.mean[i] = g_array_new(FALSE, FALSE, sizeof(double));
        right.row[i] = g_array_new(FALSE, FALSE, sizeof(double));
    }
    for (unsigned s = 0; schedules[s] != NULL; s++) {
        for (gint i = 0; i < runs_count; i++) {
            Case c = { .schedule = schedules[s], .seed = seed_of(s, i) };

            if (only != NULL && strcmp(only, schedules[s]->name) != 0)
                continue;
            draw_case(&c);
            add_right(&right, &c);
        }
    }
    printf("correct runs: worst tensor of a run, in units of rounding\n"
           "%-10s %-10s %7s  %6s  %6s  %6s  %6s  %6s  %6s\n",
           "type", "measure", "runs", "50 %", "99 %", "99.9 %", "most", "1e-6", "gate");
    for (unsigned i = 0; i < G_N_ELEMENTS(names); i++) {
        print_right(names[i], "mean", right.mean[i], LH_TOLERANCE_MEAN);
        print_right(names[i], "worst row", right.row[i], LH_TOLERANCE_ROW);
        g_array_unref(right.mean[i]);
        g_array_unref(right.row[i]);
    }
}

/* ---- faulty runs ---- */

/* Prints the error of a faulty run relative to the gates: below 1 it passes undetected. */
static void
add_wrong(unsigned kind, const Case *c, GArray *distances)
{
    Case fitted = *c;
    g_autoptr(LhProgram) program = program_of(&fitted);
    g_autoptr(Fault) fault = program == NULL ? NULL : fault_new(kind, program, c->seed);
    Distance d;
    double gates;

    if (fault == NULL || !measure(&fitted, program, fault, &d))
        return;
    gates = fmax(d.mean / LH_TOLERANCE_MEAN, d.row / LH_TOLERANCE_ROW);
    if (gates <= 1) {
        printf("# %s: %.2f of the gates: ", fault_names[kind], gates);
        describe(&fitted);
    }
    g_array_append_val(distances, gates);
}

static void
measure_wrong(const LhSchedule *const *schedules)
{
    printf("faulty runs: error of the worst tensor of a run relative to the gates; below 1: not "
           "detected\n%-22s %7s  %8s  %8s  %8s  %8s\n",
           "fault", "runs", "least", "1 %", "50 %", "found %");
    for (unsigned kind = 0; fault_names[kind] != NULL; kind++) {
        g_autoptr(GArray) distances = g_array_new(FALSE, FALSE, sizeof(double));
        guint found = 0;

        for (unsigned s = 0; schedules[s] != NULL; s++) {
            for (gint i = 0; i < runs_count; i++) {
                Case c = { .schedule = schedules[s], .seed = seed_of(s, i) };

                if (only != NULL && strcmp(only, schedules[s]->name) != 0)
                    continue;
                draw_case(&c);
                add_wrong(kind, &c, distances);
            }
        }
        if (distances->len == 0)
            continue;
        g_array_sort(distances, ascending);
        for (guint i = 0; i < distances->len; i++)
            found += g_array_index(distances, double, i) > 1;
        printf("%-22s %7u  %8.2f  %8.2f  %8.2f  %8.2f\n", fault_names[kind], distances->len,
               quantile(distances, 0), quantile(distances, 0.01), quantile(distances, 0.5),
               100.0 * found / distances->len);
    }
}

int
main(int argc, char **argv)
{
    g_autoptr(GOptionContext) context = g_option_context_new(NULL);
    g_autoptr(GError) error = NULL;

    g_option_context_add_main_entries(context, entries, NULL);
    if (!g_option_context_parse(context, &argc, &argv, &error)) {
        fprintf(stderr, "bench_errors: %s\n", error->message);
        return EXIT_FAILURE;
    }
    if (wrong)
        measure_wrong(lh_schedules);
    else
        measure_right(lh_schedules);
    return EXIT_SUCCESS;
}
