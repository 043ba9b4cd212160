/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The reference judge of tests that damage programs: finds races by comparing all pairs of ops.
 * Shares no code with the verifier.
 */
#pragma once

#include "accesses.h"
#include "recording.h"

/* reach[a][b]: op a of a rank is complete before op b starts. Computed in quadratic time. */
typedef struct {
    uint32_t count;
    bool *reach;
} Reach;

static inline Reach
reach_of(const Recording *recording, uint32_t rank)
{
    const uint32_t n = recording_count(recording, rank);
    Reach reach = { n, g_new0(bool, (size_t)n *n + 1) };

    for (uint32_t b = 0; b < n; b++) {
        const LhOp *op_b = recording_op(recording, rank, b);

        for (uint32_t a = 0; a < b; a++) {
            const LhOp *op_a = recording_op(recording, rank, a);

            if (op_a->kind == LH_OP_SYNC || op_b->kind == LH_OP_SYNC ||
                (lh_op_on_stream(op_a) && lh_op_on_stream(op_b) && op_a->stream == op_b->stream))
                reach.reach[a * n + b] = true;
        }
        for (uint32_t i = 0; i < op_b->after_count; i++)
            reach.reach[op_b->after[i] * n + b] = true;
    }
    for (uint32_t k = 0; k < n; k++) {
        for (uint32_t a = 0; a < k; a++) {
            for (uint32_t b = k + 1; reach.reach[a * n + k] && b < n; b++)
                reach.reach[a * n + b] |= reach.reach[k * n + b];
        }
    }
    return reach;
}

static inline bool
groups_equal(const LhGroup *a, const LhGroup *b)
{
    const uint64_t size = lh_group_size(a);
    bool equal = size == lh_group_size(b);

    for (uint64_t i = 0; equal && i < size; i++)
        equal = lh_group_member(a, i) == lh_group_member(b, i);
    return equal;
}

/* Whether two ops have messages matched by order (same peer, direction and communicator), or are
 * collectives of one communicator. */
static inline bool
keys_repeat(const Recording *recording, uint32_t rank, const LhOp *a, const LhOp *b)
{
    if (a->communicator != b->communicator)
        return false;
    if (a->kind == LH_OP_COLLECTIVE && b->kind == LH_OP_COLLECTIVE)
        return groups_equal(&a->collective.group, &b->collective.group);
    if (a->kind != LH_OP_EXCHANGE || b->kind != LH_OP_EXCHANGE)
        return false;
    for (uint32_t i = 0; i < a->exchange.parts_count; i++) {
        const LhPart *x = recording_part(recording, rank, a, i);

        for (uint32_t k = 0; k < b->exchange.parts_count; k++) {
            const LhPart *y = recording_part(recording, rank, b, k);

            if (x->send == y->send && x->peer == y->peer)
                return true;
        }
    }
    return false;
}

static inline bool
judge_finds_race(const Recording *recording, uint32_t rank)
{
    const LhPart *parts = recording_parts(recording, rank);
    Reach reach = reach_of(recording, rank);
    Access of_a[ACCESSES_MAX], of_b[ACCESSES_MAX];
    bool race = false;

    for (uint32_t b = 0; b < reach.count && !race; b++) {
        const LhOp *op_b = recording_op(recording, rank, b);
        const uint32_t count_b = accesses_of(op_b, parts, of_b);

        for (uint32_t a = 0; a < b && !race; a++) {
            const LhOp *op_a = recording_op(recording, rank, a);

            if (!reach.reach[a * reach.count + b])
                race = accesses_conflict(of_a, accesses_of(op_a, parts, of_a), of_b, count_b) ||
                       keys_repeat(recording, rank, op_a, op_b);
        }
    }
    g_free(reach.reach);
    return race;
}
