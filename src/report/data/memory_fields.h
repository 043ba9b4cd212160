/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory in documents: ops that allocate, the moment of the highest peak, and what does not fit.
 */
#pragma once

#include "base/json/field.h"
#include "sim/sim.h"

/* Fields of an LhMemoryOp: op, layer, micro_batch and phase; null before the first op. */
extern const LhField lh_memory_op_fields[];

/* Composition of memory at a peak. */
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

/* needed_bytes: the peak. */
typedef struct {
    uint64_t rank, needed_bytes, limit_bytes;
    uint64_t by_category[LH_CATEGORIES];
    LhFirstBeyond first;
} LhOutOfMemoryValues;

extern const LhField lh_out_of_memory_fields[];

/* What offload takes. */
typedef struct {
    uint64_t rank_bytes;
    LhHostMemory node;
    double exposed_s;
} LhOffloadValues;

extern const LhField lh_offload_fields[];

/* Peak of the rank with the highest one. */
LhPeakValues lh_peak_values(const LhSimResult *result);

/* For a @result that is out of memory. */
LhOutOfMemoryValues lh_out_of_memory_values(const LhSimResult *result);
