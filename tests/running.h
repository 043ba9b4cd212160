/* SPDX-License-Identifier: Apache-2.0 */
/* Runs schedules on real data on this machine, for tests. */
#pragma once

#include "base/error.h"
#include "checking.h"
#include "execute/execute.h"
#include "fitting.h"

#include <stdlib.h>

typedef struct {
    const LhSchedule *schedule;
    LhProgramParams wanted; /* made to fit the schedule */
    bool documents;         /* several documents */
    uint32_t kernel_set;    /* of lh_device_cpu */
    LhInputKind inputs;
    uint64_t seed;
    const char *inject;
    uint64_t repeat;
    uint32_t check_tokens;
    double deadline_s;
} Case;

/* Ends of documents: some within segments, one document of a single token. */
#define DOCUMENTS 5

/* Returns the program of a case; NULL if the schedule does not support it. */
static inline LhProgram *
program_of(const Case *c)
{
    const uint64_t n = c->wanted.attention.seq_length;
    const uint64_t ends[DOCUMENTS] = { n / 7, n / 3, n / 3 + 1, 2 * n / 3, n };
    LhProgramParams wanted = c->wanted;

    if (c->documents) {
        wanted.mask.document_ends = ends;
        wanted.mask.documents_count = DOCUMENTS;
    }
    return fitting_program(c->schedule, &wanted);
}

/* Executes @program; NULL with @error. The results do not need the program. */
static inline LhExecuted *
run_program(const Case *c, LhProgram *program, GError **error)
{
    g_autoptr(LhScenario) scenario = lh_scenario_new();
    g_autoptr(LhSetup) setup = NULL;
    const LhExecuteParams params = {
        .backend = &lh_backend_cpu,
        .kernel_set = c->kernel_set,
        .inputs = c->inputs,
        .inject = c->inject,
        .repeat = c->repeat,
        .check_tokens = c->check_tokens,
        .deadline_ps = (LhTime)(c->deadline_s * 1e12),
    };

    scenario->ranks = lh_program_ranks(program);
    scenario->seed = c->seed;
    setup = lh_setup_new(scenario, error);
    return setup == NULL ? NULL : lh_execute_program(setup, program, &params, error);
}

static inline char *
text_of(const Case *c)
{
    const LhProgramParams *p = &c->wanted;
    const LhAttention *a = &p->attention;

    return g_strdup_printf(
        "%s, P %u, N %u, h %u, g %u, d %u, B %u, %s, %s, window %u, %u documents, pass %s, kernels "
        "%s, %s%s%s",
        c->schedule->name, p->ranks, (unsigned)a->seq_length, a->heads, a->groups, a->head_dim,
        a->batch, lh_dtype_names[a->dtype], p->mask.causal ? "causal" : "full",
        (unsigned)p->mask.window, c->documents ? DOCUMENTS : 1, lh_pass_names[p->pass - 1],
        lh_device_cpu.kernel_sets[c->kernel_set], lh_input_names[c->inputs],
        c->inject != NULL ? ", injected " : "", c->inject != NULL ? c->inject : "");
}

/* A case with two heads per rank on four ranks. */
static inline Case
small_case(const LhSchedule *schedule, uint32_t ranks)
{
    return (Case){ .schedule = schedule,
                   .wanted = { .attention = { .batch = 1,
                                              .seq_length = 8 * (uint64_t)ranks,
                                              .heads = 8,
                                              .groups = 8,
                                              .head_dim = 32,
                                              .dtype = LH_DTYPE_BF16 },
                               .ranks = ranks,
                               .mask.causal = true,
                               .pass = LH_PASS_BOTH },
                   .seed = 7 };
}

static inline LhExecuted *
run_case(const Case *c, GError **error)
{
    g_autoptr(LhProgram) program = program_of(c);

    ck_assert_ptr_nonnull(program);
    return run_program(c, program, error);
}

/* Runs the tests of a program; those of @loops are called with the index of every schedule. */
static inline int
run_suite(const char *name, const TTest *const *loops, size_t loops_count,
          const TTest *const *tests, size_t tests_count)
{
    Suite *suite = suite_create(name);
    TCase *cases = tcase_create(name);
    SRunner *runner = srunner_create(suite);
    int schedules = 0, failed;

    while (lh_schedules[schedules] != NULL)
        schedules++;
    for (size_t i = 0; i < loops_count; i++)
        tcase_add_loop_test(cases, loops[i], 0, schedules);
    for (size_t i = 0; i < tests_count; i++)
        tcase_add_test(cases, tests[i]);
    suite_add_tcase(suite, cases);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
