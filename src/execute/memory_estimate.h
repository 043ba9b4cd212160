/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The memory that a run takes in this process, worked out before anything of it is allocated.
 */
#pragma once

#include "execute/execute.h"
#include "verify/verify.h"

typedef struct {
    uint64_t ranks_bytes;     /* slots of this process's ranks at their peaks, or of one device that
                                 computes everything, whichever is more */
    uint64_t results_bytes;   /* outputs while they are collected */
    uint64_t reference_bytes; /* attention, or the whole step, in fp64 */
    uint64_t stacks_bytes;    /* of threads; address space, most of it never used */
} LhMemoryEstimate;

/* @program on @backend, proven with @verdict. */
LhMemoryEstimate lh_memory_estimate(const LhProgram *program, const LhVerdict *verdict,
                                    const LhBackend *backend);

/* LH_ERROR_NO, with both numbers, if there is less room for the run than it needs; see
 * base/available_memory.h. */
bool lh_memory_estimate_check(const LhMemoryEstimate *need, GError **error);
