/*
 * The main function of a Check program: one case with the listed tests.
 *
 *     LH_TEST_MAIN("base_units", parses_what_is_allowed, rejects_the_rest)
 */
#pragma once

#include "checking.h"

#include <stdlib.h>

static inline int
lh_run_tests(const char *name, void (*before_each)(void), const TTest *const *tests, size_t count)
{
    Suite *suite = suite_create(name);
    TCase *cases = tcase_create(name);
    SRunner *runner;
    int failed;

    for (size_t i = 0; i < count; i++)
        tcase_add_test(cases, tests[i]);
    tcase_add_checked_fixture(cases, before_each, NULL);
    suite_add_tcase(suite, cases);
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

#define LH_TEST_MAIN(name, ...) LH_TEST_MAIN_AFTER(NULL, name, __VA_ARGS__)

/* Likewise, and each of them begins with a call of @before_each. */
#define LH_TEST_MAIN_AFTER(before_each, name, ...)                                                 \
    int main(void)                                                                                 \
    {                                                                                              \
        const TTest *const tests[] = { __VA_ARGS__ };                                              \
                                                                                                   \
        return lh_run_tests(name, before_each, tests, sizeof(tests) / sizeof(tests[0]));           \
    }
