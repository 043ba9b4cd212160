/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ops that take memory, the moment of the largest peak and what does not fit, as documents have
 * them.
 */
#pragma once

#include "base/json/field.h"
#include "sim/sim.h"

/* Of an LhMemoryOp: op, layer, micro_batch and phase; null before the first op. */
extern const LhField lh_memory_op_fields[];

/* The moment of a peak. */
typedef struct {
    LhMemoryOp op;
    uint64_t by_category[LH_CATEGORIES];
} LhPeakValues;

extern const LhField lh_peak_fields[];

typedef struct {
    uint64_t rank;
    LhTime time_ps;
    LhMemoryOp op;
    uint64_t held_bytes;
} LhFirstBeyond;

/* What is needed is the peak. */
typedef struct {
    uint64_t rank, needed_bytes, limit_bytes;
    uint64_t by_category[LH_CATEGORIES];
    LhFirstBeyond first;
} LhOutOfMemoryValues;

extern const LhField lh_out_of_memory_fields[];

/* Of the rank with the largest peak. */
LhPeakValues lh_peak_values(const LhSimResult *result);

/* @result is out of memory. */
LhOutOfMemoryValues lh_out_of_memory_values(const LhSimResult *result);
