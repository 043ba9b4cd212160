/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How much more memory the process can have, by everything that limits it: what the machine has
 * left, control groups, and the limits of ulimit.
 */
#pragma once

#include <stdint.h>

typedef struct {
    uint64_t bytes;    /* UINT64_MAX: nothing limits it */
    const char *limit; /* by what: "ulimit -v"; static */
} LhRoom;

typedef struct {
    LhRoom memory;  /* that can be used */
    LhRoom address; /* that can be mapped, used or not: stacks of threads count whole */
} LhAvailableMemory;

/* @root stands before the names below /proc and /sys: "" but for tests. What cannot be read there
 * does not limit. */
LhAvailableMemory lh_available_memory(const char *root);
