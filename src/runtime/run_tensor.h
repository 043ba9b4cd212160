/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A tensor of a collective under way: ranges of bytes of what it sends and receives, and the
 * messages that carry them. A region counts as its parts laid end to end.
 */
#pragma once

#include "runtime/execution.h"

/* One of its tensors. */
typedef struct {
    LhCollectiveRun *c;
    uint32_t index;
    const LhBoundRegion *from, *to;
    unsigned char *own;     /* a copy of what is sent; NULL: it is sent from where it lies */
    unsigned char **blocks; /* of reductions: what is added up, in order ... */
    uint32_t blocks_count;
    unsigned char *sum; /* ... into this, in a ring; or what the links' library makes of it */
} LhRunTensor;

struct _LhCollectiveRun {
    LhRunStream *stream;
    LhItem *item; /* it makes the messages of */
    const LhProgram *program;
    LhCollectiveCall call;
    uint32_t channel;
    uint32_t phase, step; /* the round's: which of its phases it belongs to, and the how-manieth */
    LhRunTensor tensors[LH_COLLECTIVE_TENSORS_MAX];
};

/* Bytes [from, from + count) of a region. */
typedef struct {
    uint64_t from, count;
} LhByteRange;

uint64_t lh_bound_bytes(const LhBoundRegion *bound);

LhByteRange lh_bound_range(const LhBoundRegion *bound, LhShare share);

/* The byte slice of a reduction that belongs to member @member, of a region or its sum. */
LhByteRange lh_run_tensor_slice(const LhRunTensor *t, const LhBoundRegion *bound, uint32_t member);

/* What lands of member @member, of an all-gather or of the second half of an all-reduce. */
LhByteRange lh_run_tensor_block(const LhRunTensor *t, uint32_t member);

/* Device memory that lives as long as the op; NULL: the run has failed. */
unsigned char *lh_run_tensor_temporary(const LhRunTensor *t, uint64_t bytes);

/* Copies a range of the send region. */
bool lh_run_tensor_take(const LhRunTensor *t, LhByteRange range, unsigned char *memory);

/* Whether nothing that is received can land on what is sent. */
bool lh_run_tensor_are_apart(const LhRunTensor *t);

/* A range where it lies, if it lies in one piece, else NULL. */
unsigned char *lh_run_tensor_in_place(const LhRunTensor *t, const LhBoundRegion *bound,
                                      LhByteRange range);

/* A copy of a range of the send region, which the receive region may overlap; NULL: failed. */
unsigned char *lh_run_tensor_copy(const LhRunTensor *t, LhByteRange range);

/* Puts memory into a range of the receive region. */
bool lh_run_tensor_keep(const LhRunTensor *t, LhByteRange range, const unsigned char *memory);

/* Puts a range of the send region into one of the receive region that is as long. */
bool lh_run_tensor_lay(const LhRunTensor *t, LhByteRange to, LhByteRange from);

/* Adds the message that carries a range of a region to a member or from it; none if the range is
 * empty. */
void lh_run_tensor_move(const LhRunTensor *t, bool send, uint32_t member,
                        const LhBoundRegion *bound, LhByteRange range);

/* Likewise of memory that is no part of a region. */
void lh_run_tensor_move_memory(const LhRunTensor *t, bool send, uint32_t member,
                               unsigned char *memory, uint64_t bytes);

/* The member @distance behind this one, in the order of the group, or before it; less than all
 * members. */
uint32_t lh_collective_further(const LhCollectiveRun *c, uint32_t distance);
uint32_t lh_collective_before(const LhCollectiveRun *c, uint32_t distance);
