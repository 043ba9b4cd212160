/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Cost of the result check of `longhaul run` relative to the run, in CPU seconds: the smallest
 * ratio of several tries, to reduce the effect of other load. Exit status 1 if a check costs more
 * than 3 times its run.
 */
#include "reference/tolerance.h"
#include "sched/schedule.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define LIMIT 3
#define TRIES 5 /* for a shape whose ratio exceeds the limit */
#define DEADLINE_US 600000000

typedef struct {
    const char *schedule;
    uint32_t ranks, tokens, heads, groups, head_dim;
    LhPass pass;
    uint64_t window; /* 0: none */
} Shape;

static const Shape shapes[] = {
    { "zigzag", 4, 4096, 4, 4, 128, LH_PASS_BOTH },
    { "dfa-balanced", 4, 2048, 8, 2, 128, LH_PASS_BOTH },
    { "ulysses", 4, 2048, 8, 8, 64, LH_PASS_BOTH },
    { "attention2d-o", 8, 2048, 8, 8, 32, LH_PASS_BOTH },
    { "ring", 4, 512, 4, 4, 64, LH_PASS_BOTH },
    { "ring", 4, 64, 4, 4, 64, LH_PASS_BOTH },
    { "zigzag", 4, 4096, 4, 4, 128, LH_PASS_FWD },
    { "zigzag", 4, 2048, 8, 8, 64, LH_PASS_FWD },
    { "zigzag", 4, 4096, 4, 4, 128, LH_PASS_BWD },
    { "zigzag", 4, 2048, 8, 8, 32, LH_PASS_BWD },
    { "ring", 4, 65536, 1, 1, 32, LH_PASS_BOTH, .window = 256 },
};

static double
now_s(void)
{
    struct timespec t;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* CPU seconds of the run and of its check. */
typedef struct {
    double run_s, reference_s, compare_s;
} Cost;

static Cost
measure(const LhProgram *program)
{
    const LhReferenceWork work = { .forward = program->params.pass == LH_PASS_FWD };
    g_autoptr(LhNumerics) n = lh_numerics_new(&program->params, 1, LH_INPUTS_NORMAL);
    g_auto(LhErrorReport) report = { 0 };
    LhNumericsLoad load = { n, program };
    const LhRunParams run = { .program = program,
                              .backend = &lh_backend_cpu,
                              .deadline_us = DEADLINE_US,
                              .load = lh_numerics_load_part,
                              .load_data = &load };
    g_autoptr(LhRunResult) result = NULL;
    const double at_s = now_s();
    double referred_s, ran_s;

    lh_reference_run(&n->reference, &work);
    referred_s = now_s();
    result = lh_execute(&run, NULL);
    g_assert_nonnull(result);
    ran_s = now_s();
    lh_tolerance_compare(n, program, result, &report);
    g_assert(report.ok);
    return (Cost){ ran_s - referred_s, referred_s - at_s, now_s() - ran_s };
}

static double
ratio_of(const Cost *c)
{
    return (c->reference_s + c->compare_s) / c->run_s;
}

/* Whether the check is within the limit. */
static bool
bench(const Shape *s)
{
    const LhProgramParams params = { .attention = { .batch = 1,
                                                    .seq_length = s->tokens,
                                                    .heads = s->heads,
                                                    .groups = s->groups,
                                                    .head_dim = s->head_dim,
                                                    .dtype = LH_DTYPE_BF16 },
                                     .ranks = s->ranks,
                                     .mask = { .causal = true, .window = s->window },
                                     .pass = s->pass };
    g_autoptr(LhProgram) program =
        lh_program_new(lh_schedule_find(s->schedule, NULL), &params, NULL);
    Cost c = measure(program);

    for (int tries = 1; tries < TRIES && ratio_of(&c) > LIMIT; tries++) {
        const Cost again = measure(program);

        if (ratio_of(&again) < ratio_of(&c))
            c = again;
    }
    printf("%-14s %3u %6u %3u %3u %4u  %-4s  %8.4f  %8.4f  %8.4f  %6.2f\n", s->schedule, s->ranks,
           s->tokens, s->heads, s->groups, s->head_dim, lh_pass_names[s->pass - 1], c.run_s,
           c.reference_s, c.compare_s, ratio_of(&c));
    return ratio_of(&c) <= LIMIT;
}

int
main(void)
{
    bool ok = true;

    printf("CPU seconds of the run, and of its check: reference and comparison\n"
           "%-14s %3s %6s %3s %3s %4s  %-4s  %8s  %8s  %8s  %6s\n",
           "schedule", "P", "N", "h", "g", "d", "pass", "run", "refer", "compare", "ratio");
    for (size_t i = 0; i < G_N_ELEMENTS(shapes); i++)
        ok = bench(&shapes[i]) && ok;
    return ok ? EXIT_SUCCESS : EXIT_FAILURE;
}
