/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How many of its cases a long test takes. Sanitizers and coverage make a test some ten times
 * slower, and what they look for is in every case: there a test takes one case in some. A plain
 * build takes all. The variable LONGHAUL_TEST_SHARE=n asks for one case in n anywhere. The share is
 * a prime number, so that cases that are numbered through several loops differ in all of them.
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

/* One case in how many is taken. */
static inline uint64_t
test_every(void)
{
    const char *const asked = g_getenv("LONGHAUL_TEST_SHARE");
    const uint64_t every = asked != NULL ? g_ascii_strtoull(asked, NULL, 10) : TEST_SHARE;

    return MAX(every, 1);
}

/* Whether so few are taken, as where a sanitizer makes them slow, that a case takes smaller
 * numbers, too: of steps, ranks or ways to train. */
static inline bool
test_is_short(void)
{
    return test_every() > 10;
}

/* Whether the case with this number is taken; number 0 always is. */
static inline bool
test_takes(uint64_t number)
{
    return number % test_every() == 0;
}

/* Likewise, but never fewer than one case in @most: where each of few cases has code of its own. */
static inline bool
test_takes_of(uint64_t number, uint64_t most)
{
    return number % MIN(test_every(), most) == 0;
}

/* Whether the next case of this test is taken; the first one has the number @first. Check gives
 * each test a process, and so a count, of its own. */
static inline bool
test_takes_next(uint64_t first)
{
    static uint64_t count;

    return test_takes(first + count++);
}

/* How many of so many random cases are taken. */
static inline uint64_t
test_share(uint64_t cases)
{
    return MAX(cases / test_every(), 1);
}
