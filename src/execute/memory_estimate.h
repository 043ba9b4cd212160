/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Estimate of the memory that a run takes in this process, before any of it is allocated.
 */
#pragma once

#include "execute/execute.h"
#include "verify/verify.h"

typedef struct {
    /* Slots of this process's ranks at their peaks, or the largest rank if each process has one. */
    uint64_t ranks_bytes;
    uint64_t results_bytes;   /* outputs while they are gathered */
    uint64_t reference_bytes; /* fp64 reference of attention or of the whole step */
    uint64_t stacks_bytes;    /* thread stacks; address space, most of it never touched */
} LhMemoryEstimate;

/* Estimates the memory of @program on @backend; @verdict is its proof. */
LhMemoryEstimate lh_memory_estimate(const LhProgram *program, const LhVerdict *verdict,
                                    const LhBackend *backend);

/* LH_ERROR_NO, with both numbers, if less memory is available than the run needs; see
 * base/available_memory.h. */
bool lh_memory_estimate_check(const LhMemoryEstimate *need, GError **error);
