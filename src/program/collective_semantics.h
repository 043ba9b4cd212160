/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a collective means: which parts of its send region a member gives to which other member, and
 * where they land. The verifier moves symbols by it, the runtime bytes, the simulator's algorithms
 * send as much as it says. A region counts as its parts laid end to end, part 0 its first one.
 *
 *   all-gather      member i's send region lands at i times its length, at every member
 *   reduce-scatter  the i-th of equal pieces of every send region is added up at member i
 *   all-reduce      all send regions are added up, at every member
 *   all-to-all      piece k of member i's send region lands as piece i at member k
 *   broadcast       the first member's send region lands at every member
 */
#pragma once

#include "program/op.h"

/* Parts [first, first + count) of a region. */
typedef struct {
    uint32_t first, count;
} LhShare;

/* A call of a collective by the member at @position of its group. */
typedef struct {
    const LhOp *op;
    const uint32_t *counts; /* op->collective.counts_first in the buffer; NULL: pieces are equal */
    uint32_t members, position;
} LhCollectiveCall;

LhCollectiveCall lh_collective_call(const LhOp *op, const uint32_t *counts, uint32_t rank);

/* What of tensor @tensor's send region goes to member @to, possibly the rank itself or nothing. */
LhShare lh_collective_sends(const LhCollectiveCall *call, uint32_t tensor, uint32_t to);

/* Where in the receive region lands what comes from member @from, or is added up. */
LhShare lh_collective_receives(const LhCollectiveCall *call, uint32_t tensor, uint32_t from);

/* How many parts each of the two has. */
uint32_t lh_collective_sent_parts(const LhCollectiveCall *call, uint32_t tensor, uint32_t to);
uint32_t lh_collective_received_parts(const LhCollectiveCall *call, uint32_t tensor, uint32_t from);

/* Whether what lands in one place is added up; otherwise one thing lands there. */
bool lh_collective_reduces(LhCollectiveKind kind);

/* Whether regions of @send and @receive parts can be those of one tensor. Uneven calls: whether the
 * counts add up to them. */
bool lh_collective_fits(const LhCollectiveCall *call, uint32_t tensor);

/*
 * Whether a tensor's regions may overlap: libraries work in place where the rank's own piece lies
 * inside the gathered or scattered buffer, or one buffer is both.
 */
bool lh_collective_is_in_place(const LhCollectiveCall *call, uint32_t tensor);

/*
 * What @rank sends in a collective over @group, by its bandwidth-optimal ring or pairwise
 * algorithm, @shard_bytes being one rank's contribution. A broadcast is a chain in group order, so
 * that the last member sends nothing. Of all-to-all, pieces are equal.
 */
uint64_t lh_collective_bytes_sent(LhCollectiveKind kind, const LhGroup *group, uint32_t rank,
                                  uint64_t shard_bytes);
