/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Semantics of collectives: which parts of its send region a member contributes to each other
 * member, and where they land. The verifier moves symbols by these rules and the runtime bytes; the
 * simulator's algorithms send the amounts they give. A region is treated as its parts laid end to
 * end, numbered from 0.
 *
 *   all-gather      member i's send region lands at i times its length, at every member
 *   reduce-scatter  the i-th of equal pieces of every send region is reduced at member i
 *   all-reduce      all send regions are reduced, at every member
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

/* The share of tensor @tensor's send region that goes to member @to. @to may be the caller
 * itself; the share may be empty. */
LhShare lh_collective_sends(const LhCollectiveCall *call, uint32_t tensor, uint32_t to);

/* The share of the receive region that member @from's data is written or reduced into. */
LhShare lh_collective_receives(const LhCollectiveCall *call, uint32_t tensor, uint32_t from);

/* The number of parts in each of these two shares. */
uint32_t lh_collective_sent_parts(const LhCollectiveCall *call, uint32_t tensor, uint32_t to);
uint32_t lh_collective_received_parts(const LhCollectiveCall *call, uint32_t tensor, uint32_t from);

/* Whether the pieces received for one place are reduced; otherwise one piece is received there. */
bool lh_collective_reduces(LhCollectiveKind kind);

/* Whether the sizes of the @send and @receive regions of a tensor match the collective. For
 * uneven calls: whether the counts add up to these sizes. */
bool lh_collective_fits(const LhCollectiveCall *call, uint32_t tensor);

/*
 * Whether a tensor is processed in place, so that its regions may overlap: the rank's own piece
 * lies inside the gathered or scattered buffer, or both regions are one buffer.
 */
bool lh_collective_is_in_place(const LhCollectiveCall *call, uint32_t tensor);

/*
 * Bytes @rank sends in a collective over @group by its bandwidth-optimal ring or pairwise
 * algorithm. @shard_bytes is one rank's contribution. A broadcast is a chain in group order: the
 * last member sends nothing. All-to-all is assumed to have equal pieces.
 */
uint64_t lh_collective_bytes_sent(LhCollectiveKind kind, const LhGroup *group, uint32_t rank,
                                  uint64_t shard_bytes);
