/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The ring of TransformerEngine's cp_comm_type p2p; `longhaul show te-p2p` describes it. Like the
 * ring of ring_shared.h it may be one of several side by side, between the all-to-alls of
 * te-a2a-p2p.
 */
#pragma once

#include "sched/common/ring_shared.h"

/* Marks of the cursor used by the ring. Schedules with this ring use those from LH_TE_MARK_END
 * on. */
enum {
    LH_TE_MARK_SECOND = LH_RING_MARK_END, /* the op queued last on the second compute stream */
    LH_TE_MARK_SEND,                      /* the messages posted last */
    LH_TE_MARK_RECEIVE,
    LH_TE_MARK_MERGE, /* the lse merged last */
    LH_TE_MARK_END,
};

typedef struct {
    LhRingPlan ring; /* neighbours, shapes, and the tensors that it reads and writes */
    bool published;
    uint8_t second, receive; /* streams besides those of lh_pass_declare */
    uint16_t fwd_first, fwd_end, fwd_kv, fwd_sum;
    uint16_t out, half; /* outputs of the steps: whole ones, and of the second half-chunk */
    uint16_t saved_kv;  /* k, v of the last forward step; the backward pass starts with them */
    uint16_t bwd_first, bwd_end, bwd_kv, bwd_dkv[2], bwd_block_dq, bwd_block_dkv, bwd_dq;
    LhKernelId add_dq, add_dkv, end_dkv;
} LhTeRing;

/* Declares streams and buffers over slots of @parts parts, for rings of at least two members
 * that are @stride ranks apart. */
void lh_te_ring_declare(LhProgram *program, LhTeRing *te, const LhPassSlots *io, uint32_t stride,
                        uint32_t parts);

/* The number of steps of a pass; one step of it. */
uint32_t lh_te_ring_forward_steps(const LhTeRing *te);
uint32_t lh_te_ring_backward_steps(const LhTeRing *te);
void lh_te_ring_forward(LhEmitter *e, const LhTeRing *te, uint32_t s);
void lh_te_ring_backward(LhEmitter *e, const LhTeRing *te, uint32_t s);

/* Closed forms of a ring of @ranks ranks with sizes @z: bytes sent, and the buffers of each pass
 * (of the rank at @position). */
uint64_t lh_te_ring_bytes_sent(const LhProgramParams *p, const LhPassSizes *z, uint32_t ranks);
uint64_t lh_te_ring_forward_buffers(const LhProgramParams *p, const LhPassSizes *z, uint32_t ranks,
                                    uint32_t position);
uint64_t lh_te_ring_backward_buffers(const LhProgramParams *p, const LhPassSizes *z);
