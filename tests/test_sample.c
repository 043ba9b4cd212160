/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Results checked at sampled tokens of each rank (reference/row_sampling.h): correct runs pass,
 * faulty ones fail, and rows have the errors that the check of all tokens reports.
 */
#include "running.h"
#include "share.h"

#include <math.h>
#include <string.h>

#define RANKS 4

/* Grouped heads where the schedule supports them, and enough tokens that some are not sampled. */
static Case
sampled_case(const LhSchedule *schedule, uint32_t tokens)
{
    Case c = small_case(schedule, RANKS);

    c.wanted.attention.seq_length = 32 * RANKS;
    c.wanted.attention.groups = 4;
    c.check_tokens = tokens;
    return c;
}

static const LhErrorRow *
row_named(const LhExecuted *executed, const char *name)
{
    for (uint32_t i = 0; i < executed->errors.rows_count; i++)
        if (strcmp(executed->errors.rows[i].name, name) == 0)
            return &executed->errors.rows[i];
    return NULL;
}

START_TEST(sample_passes_what_is_right)
{
    for (unsigned pass = LH_PASS_FWD; pass <= LH_PASS_BOTH; pass++) {
        Case c = sampled_case(lh_schedules[_i], 5);
        g_autoptr(GError) error = NULL;
        g_autoptr(LhExecuted) executed = NULL;

        if (pass == LH_PASS_BWD || !test_takes_of((unsigned)_i + pass, 11))
            continue;
        c.wanted.pass = (LhPass)pass;
        executed = run_case(&c, &error);
        ck_assert_msg(executed != NULL, "%s", error != NULL ? error->message : "");
        ck_assert(lh_executed_ok(executed));
        ck_assert_ptr_nonnull(row_named(executed, "o"));
        ck_assert((row_named(executed, "dv") != NULL) == (pass == LH_PASS_BOTH));
        for (uint32_t i = 0; i < executed->errors.rows_count; i++)
            ck_assert_msg(executed->errors.rows[i].row > 0, "%s: nothing of %s was compared",
                          c.schedule->name, executed->errors.rows[i].name);
    }
}
END_TEST

/* With all tokens sampled: results that depend on the inputs alone are bit-identical; dk and dv
 * use the run's lse and delta. With one head their means may differ more. */
START_TEST(sample_of_all_is_the_whole)
{
    Case c = sampled_case(lh_schedules[_i], 1 << 20);
    g_autoptr(LhExecuted) sampled = run_case(&c, NULL);
    g_autoptr(LhExecuted) whole = NULL;

    c.check_tokens = 0;
    whole = run_case(&c, NULL);
    ck_assert(sampled != NULL && whole != NULL);
    ck_assert_uint_eq(sampled->errors.rows_count, whole->errors.rows_count);
    for (uint32_t i = 0; i < whole->errors.rows_count; i++) {
        const LhErrorRow *a = &sampled->errors.rows[i], *b = &whole->errors.rows[i];
        const bool of_keys = a->name[1] == 'k' || a->name[1] == 'v';
        const bool one_head = row_named(whole, "lse") == NULL && !c.wanted.attention.linear;

        ck_assert_str_eq(a->name, b->name);
        ck_assert_uint_eq(a->rounded, b->rounded);
        ck_assert_msg(of_keys ? fabs(a->mean - b->mean) < (one_head ? 0.1 : 0.02)
                              : a->mean == b->mean && a->row == b->row,
                      "%s, %s: %g and %g", c.schedule->name, a->name, a->mean, b->mean);
    }
}
END_TEST

/* Wrong attention is detected at the four sampled tokens of a rank, which include its first and
 * last. */
START_TEST(sample_finds_mutants)
{
    unsigned hits = 0;

    if (!test_takes_of((uint64_t)_i, 3))
        return;
    for (int kind = 0; kind < LH_INJECT_MUTANTS; kind++) {
        Case c = sampled_case(lh_schedules[_i], 4);
        g_autoptr(GError) error = NULL;
        g_autoptr(LhExecuted) executed = NULL;
        g_autoptr(LhExecuted) whole = NULL;

        if (kind > 0 && !test_takes_of((unsigned)_i + (unsigned)kind, 11))
            continue;
        c.inject = lh_inject_names[kind];
        executed = run_case(&c, &error);
        if (executed == NULL) { /* the fault has no target */
            ck_assert_msg(g_error_matches(error, LH_ERROR, LH_ERROR_NO), "%s", error->message);
            continue;
        }
        c.check_tokens = 0;
        whole = run_case(&c, NULL);
        ck_assert_ptr_nonnull(whole);
        ck_assert_msg(executed->errors.ok == whole->errors.ok, "%s: %s", c.schedule->name,
                      c.inject);
        hits += !executed->errors.ok;
    }
    ck_assert_uint_gt(hits, 0);
}
END_TEST

START_TEST(sample_is_drawn_by_the_seed)
{
    Case c = sampled_case(lh_schedule_find("ring", NULL), 3);
    double means[4];

    for (unsigned i = 0; i < G_N_ELEMENTS(means); i++) {
        g_autoptr(LhExecuted) executed = NULL;

        c.seed = i / 2;
        executed = run_case(&c, NULL);
        ck_assert_ptr_nonnull(executed);
        means[i] = row_named(executed, "dq")->mean;
    }
    ck_assert(means[0] == means[1] && means[2] == means[3]);
    ck_assert(means[0] != means[2]);
}
END_TEST

int
main(void)
{
    const TTest *const loops[] = { sample_passes_what_is_right, sample_of_all_is_the_whole,
                                   sample_finds_mutants };
    const TTest *const tests[] = { sample_is_drawn_by_the_seed };

    return run_suite("sample", loops, G_N_ELEMENTS(loops), tests, G_N_ELEMENTS(tests));
}
