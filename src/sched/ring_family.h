/*
 * The ring of zhuzilin/ring-flash-attention: k and v travel around the ring, and so do the
 * gradients dk and dv. Ring, zigzag and striped share all of it but the block that a rank computes
 * in a step.
 */
#pragma once

#include "sched/attention_pass.h"

/* What a block works on, and the arguments of the calls that it takes. */
typedef struct {
    uint32_t q_part, q_parts;
    uint32_t kv_part, kv_parts;
    LhKernelArgs forward, backward;
    LhKernelArgs merge, merge_first;
    LhKernelArgs add_dq, add_dq_first;
    LhKernelArgs add_dkv, add_dkv_first;
} LhRingShape;

#define LH_RING_SHAPES_MAX 4

typedef struct _LhRingPlan LhRingPlan;

/* The block of @rank in @step, on the k and v of rank @rank - @step modulo P; NULL: nothing to
 * compute. */
typedef const LhRingShape *(*LhRingBlock)(const LhRingPlan *plan, uint32_t rank, uint32_t step);

struct _LhRingPlan {
    LhRingBlock block;
    LhRingShape shapes[LH_RING_SHAPES_MAX];
    LhPassSizes sizes;
    LhPassSlots io;
    uint32_t ranks, parts;
    bool causal, overlap;
    uint16_t fwd_first, fwd_end, bwd_first, bwd_end; /* the buffers of each pass */
    uint16_t fwd_kv[2], fwd_out, fwd_block;
    uint16_t bwd_kv[2], bwd_dkv[3], bwd_block_dq, bwd_block_dkv, bwd_dq;
    LhKernelId add_dkv, end_dkv;
    LhKernelArgs q_rows, kv_rows;
};

/* Declares everything but the shapes, which the caller adds. NULL when there is one rank and
 * nothing to add. */
LhRingPlan *lh_ring_declare(LhProgram *program, LhRingBlock block);

/* Sets shape @index: parts of q and k+v, and the mask over them laid end to end. */
void lh_ring_set_shape(const LhProgram *program, unsigned index, LhRegion q, LhRegion kv,
                       LhMaskKind mask, int8_t shift);

uint32_t lh_ring_steps(const LhProgram *program, uint32_t rank);
void lh_ring_emit(LhEmitter *e, uint32_t step);

/* Closed forms that do not depend on the block. */
uint64_t lh_ring_bytes_sent(const LhProgramParams *p, uint32_t rank);
uint64_t lh_ring_peak_bytes(const LhProgramParams *p, uint32_t rank);
