/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The stages that look at one rank by itself: form, the order of its calls, races, memory, and the
 * sums for closed forms. Only the ops of one rank are in memory at a time.
 */
#pragma once

#include "verify/unroll.h"

typedef struct {
    uint64_t ops, parts, counts;                /* of all ranks */
    uint32_t step_ops, step_parts, step_counts; /* the most in one step of a rank */
} LhProgramSize;

/* Checks every rank of @proof, whose declarations are right, and adds up @size. False: something
 * is wrong or too large, and the verdict tells at most a part of it. */
bool lh_proof_check_each_rank(LhProof *proof, LhProgramSize *size);
