/*
 * The ring of TransformerEngine (cp_comm_type p2p), on zigzag halves: two compute streams, messages
 * of their own for each direction, every k, v and every block's output kept until the end of the
 * forward pass; backward the ring turns the other way. As the ring of ring_family.h it may be one
 * of several side by side, inside the all-to-alls of "a2a+p2p".
 */
#pragma once

#include "sched/common/ring.h"

/* Marks of the cursor that belong to the ring; schedules around it use those from the end on. */
enum {
    LH_TE_MARK_SECOND = LH_RING_MARK_END, /* the op queued last on the second compute stream */
    LH_TE_MARK_SEND,                      /* the messages posted last */
    LH_TE_MARK_RECEIVE,
    LH_TE_MARK_MERGE, /* the lse merged last */
    LH_TE_MARK_END,
};

typedef struct {
    LhRingPlan ring; /* its geometry, its shapes, and what it works on */
    bool published;
    uint8_t second, receive; /* streams beside those of the pass */
    uint16_t fwd_first, fwd_end, fwd_kv, fwd_sum;
    uint16_t out, half; /* the outputs of steps: of all parts, or of the second half */
    uint16_t saved_kv;  /* the last one of the forward pass, the backward's first */
    uint16_t bwd_first, bwd_end, bwd_kv, bwd_dkv[2], bwd_block_dq, bwd_block_dkv, bwd_dq;
    LhKernelId add_dq, add_dkv, end_dkv;
} LhTeRing;

/* Declares streams and buffers over slots of @parts parts, of rings with @stride between
 * neighbours. At least two ranks in a ring. */
void lh_te_ring_declare(LhProgram *program, LhTeRing *te, const LhPassSlots *io, uint32_t stride,
                        uint32_t parts);

/* Steps of a pass, and one step of it. */
uint32_t lh_te_ring_forward_steps(const LhTeRing *te);
uint32_t lh_te_ring_backward_steps(const LhTeRing *te);
void lh_te_ring_forward(LhEmitter *e, const LhTeRing *te, uint32_t s);
void lh_te_ring_backward(LhEmitter *e, const LhTeRing *te, uint32_t s);

/* Closed forms of the ring at @position of @ranks, of sizes @z: bytes sent, buffers of a pass. */
uint64_t lh_te_ring_bytes_sent(const LhProgramParams *p, const LhPassSizes *z, uint32_t ranks);
uint64_t lh_te_ring_forward_buffers(const LhProgramParams *p, const LhPassSizes *z, uint32_t ranks,
                                    uint32_t position);
uint64_t lh_te_ring_backward_buffers(const LhProgramParams *p, const LhPassSizes *z);
