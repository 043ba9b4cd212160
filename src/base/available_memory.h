/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory that the process can still allocate under all limits: free memory of the machine, control
 * groups, and ulimit.
 */
#pragma once

#include <stdint.h>

typedef struct {
    uint64_t bytes;    /* UINT64_MAX: unlimited */
    const char *limit; /* which limit it is: "ulimit -v"; static */
} LhRoom;

typedef struct {
    LhRoom memory;  /* usable memory */
    LhRoom address; /* address space, used or not: thread stacks count in full */
} LhAvailableMemory;

/* @root is prepended to the names in /proc and /sys: "" except in tests. Unreadable files impose no
 * limit. */
LhAvailableMemory lh_available_memory(const char *root);
