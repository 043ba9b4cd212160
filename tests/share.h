/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The share of its cases that a long test runs. Sanitizers and coverage make a test about ten times
 * slower, and any case shows them what they look for, so there a test runs one case in n. A plain
 * build runs all. LONGHAUL_TEST_SHARE=n selects one case in n in any build. n is prime so that the
 * selected cases of nested loops vary in every loop.
 */
#pragma once

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

#if defined(__SANITIZE_ADDRESS__)
#define TEST_SHARE 61U
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define TEST_SHARE 61U
#endif
#endif
#ifndef TEST_SHARE
#define TEST_SHARE 1U
#endif

/* n, of one case in n. */
static inline uint64_t
test_every(void)
{
    const char *const asked = g_getenv("LONGHAUL_TEST_SHARE");
    const uint64_t every = asked != NULL ? g_ascii_strtoull(asked, NULL, 10) : TEST_SHARE;

    return MAX(every, 1);
}

/* Whether n is so large, as under slow sanitizers, that a case should also use smaller numbers of
 * steps, ranks or ways to train. */
static inline bool
test_is_short(void)
{
    return test_every() > 10;
}

/* Whether this case runs; case 0 always does. */
static inline bool
test_takes(uint64_t number)
{
    return number % test_every() == 0;
}

/* Likewise with n at most @most: for few cases, each with code of its own. */
static inline bool
test_takes_of(uint64_t number, uint64_t most)
{
    return number % MIN(test_every(), most) == 0;
}

/* Whether the next case of this test runs; cases are numbered from @first. Check gives each test
 * its own process, hence its own counter. */
static inline bool
test_takes_next(uint64_t first)
{
    static uint64_t count;

    return test_takes(first + count++);
}

/* Number of random cases to run, of @count. */
static inline uint64_t
test_share(uint64_t cases)
{
    return MAX(cases / test_every(), 1);
}
