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
} LhRunNeed;

/* @program on @backend, proven with @verdict. */
LhRunNeed lh_run_need(const LhProgram *program, const LhVerdict *verdict, const LhBackend *backend);

/* LH_ERROR_NO, with both numbers, if there is less room for the run than it needs; see
 * base/available_memory.h. */
bool lh_run_need_check(const LhRunNeed *need, GError **error);
