/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A test that this machine or build cannot run prints the reason, which tools/count-tests.py
 * repeats.
 */
#pragma once

#include <stdio.h>

/* Prints the reason in one line; returns the exit status by which Meson recognises a skipped
 * test. */
static inline int
skip_test(const char *reason)
{
    printf("skipped: %s\n", reason);
    return 77;
}
