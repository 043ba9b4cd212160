/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The main function of a Check program: one case with the listed tests.
 *
 *     LH_TEST_MAIN("base_units", parses_what_is_allowed, rejects_the_rest)
 */
#pragma once

#include "checking.h"

#include <stdlib.h>

/* Runs the tests of a case named @name. */
static inline int
lh_run_case(const char *name, TCase *cases)
{
    Suite *suite = suite_create(name);
    SRunner *runner;
    int failed;

    suite_add_tcase(suite, cases);
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

static inline int
lh_run_tests(const char *name, void (*before_each)(void), const TTest *const *tests, size_t count)
{
    TCase *cases = tcase_create(name);

    for (size_t i = 0; i < count; i++)
        tcase_add_test(cases, tests[i]);
    tcase_add_checked_fixture(cases, before_each, NULL);
    return lh_run_case(name, cases);
}

/* A test and the number of values of _i it runs for. */
typedef struct {
    const TTest *test;
    size_t times;
} LhTestLoop;

static inline int
lh_run_loops(const char *name, const LhTestLoop *loops, size_t count)
{
    TCase *cases = tcase_create(name);

    for (size_t i = 0; i < count; i++)
        tcase_add_loop_test(cases, loops[i].test, 0, (int)loops[i].times);
    return lh_run_case(name, cases);
}

/* The main function for tests given as { TEST, TIMES }. */
#define LH_TEST_MAIN_OF_LOOPS(name, ...)                                                           \
    int main(void)                                                                                 \
    {                                                                                              \
        const LhTestLoop loops[] = { __VA_ARGS__ };                                                \
                                                                                                   \
        return lh_run_loops(name, loops, sizeof(loops) / sizeof(loops[0]));                        \
    }

#define LH_TEST_MAIN(name, ...) LH_TEST_MAIN_AFTER(NULL, name, __VA_ARGS__)

/* Likewise; calls @before_each before each test. */
#define LH_TEST_MAIN_AFTER(before_each, name, ...)                                                 \
    int main(void)                                                                                 \
    {                                                                                              \
        const TTest *const tests[] = { __VA_ARGS__ };                                              \
                                                                                                   \
        return lh_run_tests(name, before_each, tests, sizeof(tests) / sizeof(tests[0]));           \
    }
