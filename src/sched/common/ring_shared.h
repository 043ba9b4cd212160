/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The ring of zhuzilin/ring-flash-attention. ring, zigzag and striped differ only in the block that
 * a rank computes in a step. A program may have several rings side by side, like usp: then the
 * members of a ring are `stride` ranks apart, and the ring works on slots filled by the surrounding
 * schedule.
 */
#pragma once

#include "sched/common/pass.h"

/* The parts that a block reads and writes, and the arguments of its kernel calls. */
typedef struct {
    uint32_t q_part, q_parts;
    uint32_t kv_part, kv_parts;
    LhKernelArgs forward, backward;
    LhKernelArgs merge, merge_first;
    LhKernelArgs add_dq, add_dq_first;
    LhKernelArgs add_dkv, add_dkv_first;
} LhRingShape;

#define LH_RING_SHAPES_MAX 4

/* Marks of the cursor used by the ring. Schedules with a ring use those from LH_RING_MARK_END
 * on. */
enum {
    LH_RING_MARK_DKV = LH_MARK_OWN, /* the exchange of dk, dv posted last */
    LH_RING_MARK_END,
};

typedef struct _LhRingPlan LhRingPlan;

/*
 * Returns the block of the queries of ring position @q with the keys of position @kv under a causal
 * or full mask; NULL if it is empty.
 */
typedef const LhRingShape *(*LhRingBlock)(const LhRingPlan *plan, uint32_t q, uint32_t kv);

struct _LhRingPlan {
    LhRingBlock block;
    LhRingShape shapes[LH_RING_SHAPES_MAX];
    LhPassSizes sizes;
    LhPassSlots io;  /* the tensors that the ring reads and writes */
    uint32_t ranks;  /* in a ring; at least 2 */
    uint32_t stride; /* distance between members of a ring */
    uint32_t parts;  /* parts of each slot */
    uint64_t part_rows;
    bool causal, overlap;
    uint16_t fwd_first, fwd_end, bwd_first, bwd_end; /* buffers of each pass */
    uint16_t fwd_kv[2], fwd_out, fwd_block;
    uint16_t bwd_kv[2], bwd_dkv[3], bwd_block_dq, bwd_block_dkv, bwd_dq;
    LhKernelId add_dkv, end_dkv;
    LhKernelArgs q_rows, kv_rows;
};

/* Declares everything but the shapes, which the caller adds. */
LhRingPlan *lh_ring_declare(LhProgram *program, LhRingBlock block);

/*
 * For rings inside other schedules. lh_ring_init initialises a plan over slots of @parts parts
 * (with the rows of one slice of the heads, if the program has slices); the others declare the
 * buffers of each pass. Gradients are sent in fp32 unless --gradient-wire is set.
 */
void lh_ring_init(LhRingPlan *plan, const LhProgram *program, const LhPassSlots *io,
                  uint32_t stride, uint32_t parts);
void lh_ring_declare_forward(LhProgram *program, LhRingPlan *plan);
void lh_ring_declare_backward(LhProgram *program, LhRingPlan *plan);

/* Declares a buffer of @bytes with as many parts as the ring's slots. */
uint16_t lh_ring_add_buffer(LhProgram *program, const LhRingPlan *plan, const char *name,
                            LhTensorKind kind, uint64_t bytes, uint32_t element_bytes);

typedef enum {
    LH_RING_FULL,
    LH_RING_CAUSAL,
    LH_RING_BELOW_DIAGONAL, /* causal without the diagonal */
} LhRingMask;

/* Sets shape @index: the parts of q and of k, v, and the mask over them in local indices. */
void lh_ring_set_shape(const LhProgram *program, LhRingPlan *plan, unsigned index, LhRegion q,
                       LhRegion kv, LhRingMask mask);

/* Sets the shapes and the block function of zigzag half-chunks, over as many parts as the slots
 * have. */
void lh_ring_set_zigzag(const LhProgram *program, LhRingPlan *plan);

/* Returns the shape of the parts @q and @kv, with @forward as arguments of the attention call. */
LhRingShape lh_ring_shape(const LhProgram *program, const LhRingPlan *plan, LhRegion q, LhRegion kv,
                          LhKernelArgs forward);

/*
 * Returns the block of positions @q and @kv under the program's mask: one of the plan's shapes or,
 * with windows or documents, the smallest range of parts that has all pairs, stored in @room. NULL
 * if there are no pairs.
 */
const LhRingShape *lh_ring_block(const LhProgram *program, const LhRingPlan *plan, uint32_t q,
                                 uint32_t kv, LhRingShape *room);

/* The ring position of a rank; the position, and the rank, @steps before the given one in the
 * ring. */
uint32_t lh_ring_position(const LhRingPlan *plan, uint32_t rank);
uint32_t lh_ring_behind(const LhRingPlan *plan, uint32_t position, uint32_t steps);
uint32_t lh_ring_rank_behind(const LhRingPlan *plan, uint32_t rank, uint32_t steps);

/* Appends attention of one block and its merge into the sum; step @s < ranks of a pass; the end
 * of the forward pass, which is part of its last step. */
void lh_ring_forward_block(LhEmitter *e, const LhRingPlan *plan, const LhRingShape *shape,
                           uint16_t kv, bool first);
void lh_ring_forward(LhEmitter *e, const LhRingPlan *plan, uint32_t s);
void lh_ring_end_forward(LhEmitter *e, const LhRingPlan *plan);
void lh_ring_backward(LhEmitter *e, const LhRingPlan *plan, uint32_t s);

uint32_t lh_ring_steps(const LhProgram *program, uint32_t rank);
void lh_ring_emit(LhEmitter *e, uint32_t step);

/* Closed forms that do not depend on the blocks. */
uint64_t lh_ring_bytes_sent(const LhProgramParams *p, uint32_t rank);
uint64_t lh_ring_peak_bytes(const LhProgramParams *p, uint32_t rank);

/* Closed forms of zigzag half-chunks, for any mask. */
uint64_t lh_zigzag_flops(const LhProgramParams *p, uint32_t rank);
double lh_zigzag_idle_unit(const LhProgramParams *p);
double lh_zigzag_idle_flops(const LhProgramParams *p);
