/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A tensor of a collective in progress: byte ranges of its send and receive regions, and the
 * messages that carry them. A region is treated as its parts laid end to end.
 */
#pragma once

#include "runtime/execution.h"

/* A tensor of the collective. */
typedef struct {
    LhCollectiveRun *c;
    uint32_t index;
    const LhBoundRegion *from, *to;
    unsigned char *own;     /* copy of the send region; NULL: sent in place */
    unsigned char **blocks; /* reductions: the terms, in order */
    uint32_t blocks_count;
    unsigned char *sum; /* ring: the partial sum; native: the library's result */
} LhRunTensor;

struct _LhCollectiveRun {
    LhRunStream *stream;
    LhItem *item; /* the op whose messages it makes */
    const LhProgram *program;
    LhCollectiveCall call;
    uint32_t channel;
    uint32_t phase, step; /* current phase, and round within it */
    LhRunTensor tensors[LH_COLLECTIVE_TENSORS_MAX];
};

/* Bytes [from, from + count) of a region. */
typedef struct {
    uint64_t from, count;
} LhByteRange;

uint64_t lh_bound_bytes(const LhBoundRegion *bound);

LhByteRange lh_bound_range(const LhBoundRegion *bound, LhShare share);

/* The byte slice of a reduction that member @member owns, of a region or its sum. */
LhByteRange lh_run_tensor_slice(const LhRunTensor *t, const LhBoundRegion *bound, uint32_t member);

/* The block received from member @member in an all-gather or the second half of an all-reduce. */
LhByteRange lh_run_tensor_block(const LhRunTensor *t, uint32_t member);

/* Allocates device memory that lives as long as the op; NULL if the run has failed. */
unsigned char *lh_run_tensor_temporary(const LhRunTensor *t, uint64_t bytes);

/* Copies a range of the send region to @memory. */
bool lh_run_tensor_take(const LhRunTensor *t, LhByteRange range, unsigned char *memory);

/* Whether the receive region cannot overlap the send region. */
bool lh_run_tensor_are_apart(const LhRunTensor *t);

/* The address of a range if it is contiguous, else NULL. */
unsigned char *lh_run_tensor_in_place(const LhRunTensor *t, const LhBoundRegion *bound,
                                      LhByteRange range);

/* Copies a range of the send region, which the receive region may overlap, to temporary memory;
 * NULL if the run has failed. */
unsigned char *lh_run_tensor_copy(const LhRunTensor *t, LhByteRange range);

/* Copies memory to a range of the receive region. */
bool lh_run_tensor_keep(const LhRunTensor *t, LhByteRange range, const unsigned char *memory);

/* Copies a range of the send region to a range of equal size of the receive region. */
bool lh_run_tensor_lay(const LhRunTensor *t, LhByteRange to, LhByteRange from);

/* Adds a message that sends a range of a region to a member or receives it; none if the range is
 * empty. */
void lh_run_tensor_move(const LhRunTensor *t, bool send, uint32_t member,
                        const LhBoundRegion *bound, LhByteRange range);

/* Likewise, for memory outside a region. */
void lh_run_tensor_move_memory(const LhRunTensor *t, bool send, uint32_t member,
                               unsigned char *memory, uint64_t bytes);

/* The member @distance places after this one in group order, cyclically, or before it; @distance <
 * members. */
uint32_t lh_collective_further(const LhCollectiveRun *c, uint32_t distance);
uint32_t lh_collective_before(const LhCollectiveRun *c, uint32_t distance);
