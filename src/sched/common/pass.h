/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Common part of all schedules: sizes, the input and output slots, the two streams, kernel
 * arguments, and the ordering of message groups and compute in torch.distributed. An exchange
 * starts after the compute queued before it was posted; a wait makes compute queued later wait for
 * the exchange. The two streams are not ordered otherwise.
 */
#pragma once

#include "program/emit.h"

/* Options that most schedules read. */
extern const LhOption lh_option_no_overlap;
extern const LhOption lh_option_published_code;
extern const LhOption lh_option_gradient_wire;

/* Choices of --gradient-wire: the type in which dk, dv (and dq, if sent) are sent. */
typedef enum {
    LH_WIRE_DEFAULT, /* the type that the published system sends */
    LH_WIRE_FP32,
    LH_WIRE_16BIT,
} LhWireDtype;

static inline bool
lh_pass_overlaps(const LhProgramParams *p)
{
    return lh_option_first(p, &lh_option_no_overlap) == 0;
}

static inline bool
lh_pass_published(const LhProgramParams *p)
{
    return lh_option_first(p, &lh_option_published_code) != 0;
}

static inline LhWireDtype
lh_pass_wire(const LhProgramParams *p)
{
    return (LhWireDtype)lh_option_first(p, &lh_option_gradient_wire);
}

/* Declares a slot with elements of @element_bytes: activations or fp32. */
uint16_t lh_pass_add_slot(LhProgram *program, const char *name, LhTensorKind kind, LhSlotRole role,
                          uint32_t parts, uint64_t part_bytes, uint32_t element_bytes);

/* The streams that lh_pass_declare declares. */
enum {
    LH_PASS_STREAM_COMPUTE,
    LH_PASS_STREAM_COMM,
};

/* Marks of the cursor that belong to these helpers. Schedules use those from LH_MARK_OWN on. */
enum {
    LH_MARK_COMPUTE,  /* the compute op queued last */
    LH_MARK_EXCHANGE, /* the exchange posted last */
    LH_MARK_WAIT,     /* the exchange that the next compute op must wait for */
    LH_MARK_OWN,
};

/* Sizes of one rank's tensors in bytes, named as in kernels/README.md. */
typedef struct {
    uint64_t n;        /* tokens */
    uint64_t q, kv, s; /* q or o; k and v; one row statistic (0 for linear attention) */
    uint64_t dq, dkv;  /* gradients as sent */
    uint32_t e;        /* bytes of an activation element */
    uint32_t w;        /* bytes of a gradient element on the wire */
} LhPassSizes;

/* @wire_default is the size of a gradient element if --gradient-wire is not set; 0 means that of
 * activations. */
LhPassSizes lh_pass_sizes(const LhProgramParams *p, uint32_t wire_default);

/* The input and output slots. Those of a pass that does not run are undefined. */
typedef struct {
    uint16_t q, kv, o, lse, dout, dq, dkv;
} LhPassSlots;

/* Declares both streams, and input and output slots with as many parts as the placement has. */
LhPassSlots lh_pass_declare(LhProgram *program, const LhPassSizes *sizes);

/* Declares a temporary slot of @bytes with as many parts as the placement has. */
uint16_t lh_pass_add_buffer(LhProgram *program, const char *name, LhTensorKind kind, uint64_t bytes,
                            uint32_t element_bytes);

/* Declares, as temporary slots, the fp32 sums of a rank's dq and dkv. */
typedef struct {
    uint16_t dq, dkv;
} LhPassSums;
LhPassSums lh_pass_add_sums(LhProgram *program, const LhPassSizes *sizes);
uint64_t lh_pass_sums_bytes(const LhPassSizes *sizes);

/* Rounds the sums into the outputs dq and dkv. */
void lh_pass_end_sums(LhEmitter *e, const LhPassSums *sums, const LhPassSlots *io,
                      const LhKernelArgs *q_rows, const LhKernelArgs *kv_rows);

/* Bytes of the input and output slots on a rank. */
uint64_t lh_pass_io_bytes(const LhProgramParams *p);

/* Inputs and outputs, and the larger of the buffers of the passes that run. */
uint64_t lh_pass_peak_bytes(const LhProgramParams *p, uint64_t fwd_buffers, uint64_t bwd_buffers);

/* Arguments of an attention block; the number of pairs follows from the mask. */
LhKernelArgs lh_pass_block_args(const LhProgramParams *p, uint64_t nq, uint64_t nk, LhMaskKind mask,
                                int8_t shift);
/* Rows of an operand: @parts segments like @first, each @part_step tokens after the one before. */
typedef struct {
    LhSegment first;
    int64_t part_step;
    uint32_t parts;
} LhPassRows;

/*
 * Arguments of attention of @q with @k under the program's mask, for one slice of the heads. The
 * mask is FULL or EMPTY if it allows all or no pairs, otherwise POSITIONS.
 */
LhKernelArgs lh_pass_position_args(const LhProgram *program, LhPassRows q, LhPassRows k);

/* Returns @args for one slice of the heads. */
LhKernelArgs lh_pass_slice_args(const LhProgram *program, LhKernelArgs args);

/* Arguments of an elementwise call on @rows tokens of q, or of k and v. */
LhKernelArgs lh_pass_q_args(const LhProgramParams *p, uint64_t rows);
LhKernelArgs lh_pass_kv_args(const LhProgramParams *p, uint64_t rows);

/* Flops of @pairs pairs in the passes that run: 4 B h d forward, 10 B h d backward. */
uint64_t lh_pass_flops(const LhProgramParams *p, uint64_t pairs);

/* Pairs of a rank that computes its own queries with all keys, under any mask. */
uint64_t lh_pass_rank_pairs(const LhProgramParams *p, LhPlacementKind placement, uint32_t rank);

/* Pairs of a rank that computes its own keys with all queries; for zigzag and contiguous
 * placements. */
uint64_t lh_pass_rank_key_pairs(const LhProgramParams *p, LhPlacementKind placement, uint32_t rank);

/* The number of ranks with keys that the queries of @rank see, and of ranks with queries that
 * see its keys. */
uint64_t lh_pass_rank_blocks(const LhProgramParams *p, LhPlacementKind placement, uint32_t rank);
uint64_t lh_pass_rank_key_blocks(const LhProgramParams *p, LhPlacementKind placement,
                                 uint32_t rank);

/*
 * The ranks, in a contiguous placement, whose keys the queries of @rank see. A query sees an
 * interval of keys that contains its own token, so these are consecutive ranks, including @rank.
 */
typedef struct {
    uint32_t first, last;
} LhRankRange;
LhRankRange lh_pass_owners(const LhProgramParams *p, uint32_t rank);

/* The greatest common divisor of two numbers, not both 0. */
uint32_t lh_pass_common_divisor(uint32_t a, uint32_t b);

/* The idle fraction, 0, of schedules in which all ranks always have equal work. */
double lh_pass_idle_none(const LhProgramParams *p);

/* The idle fraction if ranks wait only for the one with the most @work: 1 - mean / maximum. */
double lh_pass_imbalance(const LhProgramParams *p,
                         uint64_t (*work)(const LhProgramParams *p, uint32_t rank));

/*
 * Closed forms of ranks that compute their own contiguous queries with all keys: under a causal
 * mask r full blocks and the diagonal. The idle fraction by flops is 1 - N (N+1) / 2 / (P ((P-1)
 * n^2 + n (n+1) / 2)), which tends to (P-1) / (2P-1).
 */
uint64_t lh_contiguous_flops(const LhProgramParams *p, uint32_t rank);
double lh_contiguous_idle_unit(const LhProgramParams *p);
double lh_contiguous_idle_flops(const LhProgramParams *p);

/* steps() of schedules with one step per pass. */
uint32_t lh_pass_steps(const LhProgram *program, uint32_t rank);

/*
 * Appends attention, softmax or linear, among all tokens of the slots in @io, and its backward.
 * @args has the whole mask. Each operand has @count parts, from part @first on.
 */
void lh_pass_attend(LhEmitter *e, const LhKernelArgs *args, const LhPassSlots *io, uint32_t first,
                    uint32_t count);
void lh_pass_attend_grad(LhEmitter *e, const LhKernelArgs *args, const LhPassSlots *io,
                         uint32_t first, uint32_t count);

/* Allocate and free the slots [@first, @end). */
void lh_pass_alloc(LhEmitter *e, uint16_t first, uint16_t end);
void lh_pass_free(LhEmitter *e, uint16_t first, uint16_t end);

/* Appends a compute op that waits for the exchanges given to lh_pass_wait. Operands follow. */
static inline void
lh_pass_compute(LhEmitter *e, LhKernelId kernel, const LhKernelArgs *args)
{
    uint32_t *marks = e->marks;

    marks[LH_MARK_COMPUTE] = lh_emit_compute(e, LH_PASS_STREAM_COMPUTE, kernel, args);
    lh_emit_after(e, marks[LH_MARK_WAIT]);
    marks[LH_MARK_WAIT] = LH_OP_NONE;
}

/* Posts an exchange after the queued compute. Messages follow. */
static inline void
lh_pass_exchange(LhEmitter *e)
{
    uint32_t *marks = e->marks;

    marks[LH_MARK_EXCHANGE] = lh_emit_exchange(e, LH_PASS_STREAM_COMM);
    lh_emit_after(e, marks[LH_MARK_COMPUTE]);
}

/* Makes the next compute op wait for exchange @id and, since streams are in order, for all
 * before it. */
static inline void
lh_pass_wait(LhEmitter *e, uint32_t id)
{
    uint32_t *wait = &e->marks[LH_MARK_WAIT];

    if (id != LH_OP_NONE && (*wait == LH_OP_NONE || id > *wait))
        *wait = id;
}

/* Sets the emitter's phase, and returns the step within it; the forward pass has @fwd_steps
 * steps. */
static inline uint32_t
lh_pass_enter(LhEmitter *e, uint32_t step, uint32_t fwd_steps)
{
    const uint32_t skipped = lh_pass_has(&e->program->params, LH_PASS_FWD) ? fwd_steps : 0;

    e->phase = step < skipped ? LH_PHASE_FORWARD : LH_PHASE_BACKWARD;
    e->step = step < skipped ? step : step - skipped;
    return e->step;
}

/* Adds a message to the exchange posted last: the first @count parts of a slot, in their own
 * type. */
static inline void
lh_pass_message(LhEmitter *e, bool send, uint32_t peer, uint16_t tag, uint16_t slot, uint32_t count)
{
    const LhRegion region = { slot, 0, count };

    lh_emit_part(e, send, peer, tag, lh_region_bytes(e->program, region));
    lh_emit_region(e, slot, 0, count);
}
