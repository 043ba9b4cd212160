/*
 * What the schedules of one attention module share: sizes, the input and output slots, the two
 * streams, kernel arguments, and how torch.distributed orders a group of messages against the
 * compute stream. An exchange starts after the compute ops that were queued before it was posted;
 * waiting for it holds the compute ops queued after the wait. That is all the order across streams
 * there is.
 */
#pragma once

#include "sched/schedule.h"

/* Options that most schedules read. */
extern const LhOption lh_option_no_overlap;
extern const LhOption lh_option_published_code;
extern const LhOption lh_option_gradient_wire;

/* The choices of --gradient-wire: the type of dk, dv (and of dq, where a schedule sends it). */
typedef enum {
    LH_WIRE_DEFAULT, /* what the published system sends */
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

/* Declares a slot whose elements have @element_bytes, activations or fp32. */
uint16_t lh_pass_add_slot(LhProgram *program, const char *name, LhTensorKind kind, LhSlotRole role,
                          uint32_t parts, uint64_t part_bytes, uint32_t element_bytes);

/* Streams, in the order of lh_pass_declare. */
enum {
    LH_PASS_STREAM_COMPUTE,
    LH_PASS_STREAM_COMM,
};

/* Marks of the cursor that belong to these helpers; schedules use those from LH_MARK_OWN on. */
enum {
    LH_MARK_COMPUTE,  /* the compute op queued last */
    LH_MARK_EXCHANGE, /* the exchange posted last */
    LH_MARK_WAIT,     /* the exchange that the next compute op must wait for */
    LH_MARK_OWN,
};

/* Sizes of one rank in bytes, in the letters of kernels/README.md. */
typedef struct {
    uint64_t n; /* tokens */
    uint64_t q, kv,
        s; /* one q-shaped tensor, k and v, one row statistic: linear attention has none */
    uint64_t dq, dkv; /* gradients as they travel */
    uint32_t e;       /* bytes of an activation element */
    uint32_t w;       /* bytes of a gradient element on the wire */
} LhPassSizes;

/* @wire_default: bytes of a gradient element when the parameters leave it to the schedule; 0: the
 * activation's. */
LhPassSizes lh_pass_sizes(const LhProgramParams *p, uint32_t wire_default);

/* The slots that every program has; those of a pass that is not run are undefined. */
typedef struct {
    uint16_t q, kv, o, lse, dout, dq, dkv;
} LhPassSlots;

/* Declares both streams, and the input and output slots with as many parts as the placement has. */
LhPassSlots lh_pass_declare(LhProgram *program, const LhPassSizes *sizes);

/* Declares a temporary slot of @bytes with as many parts as the placement has. */
uint16_t lh_pass_add_buffer(LhProgram *program, const char *name, LhTensorKind kind, uint64_t bytes,
                            uint32_t element_bytes);

/* Declares the fp32 sums that a rank's dq and dkv are added up in, as temporary slots. */
typedef struct {
    uint16_t dq, dkv;
} LhPassSums;
LhPassSums lh_pass_add_sums(LhProgram *program, const LhPassSizes *sizes);
uint64_t lh_pass_sums_bytes(const LhPassSizes *sizes);

/* Rounds the sums to the outputs dq and dkv. */
void lh_pass_end_sums(LhEmitter *e, const LhPassSums *sums, const LhPassSlots *io,
                      const LhKernelArgs *q_rows, const LhKernelArgs *kv_rows);

/* Bytes of the input and output slots on a rank. */
uint64_t lh_pass_io_bytes(const LhProgramParams *p);

/* The larger of the buffers of the passes that are run. */
uint64_t lh_pass_peak_bytes(const LhProgramParams *p, uint64_t fwd_buffers, uint64_t bwd_buffers);

/* Arguments of an attention block; pairs follow from the mask. */
LhKernelArgs lh_pass_block_args(const LhProgramParams *p, uint64_t nq, uint64_t nk, LhMaskKind mask,
                                int8_t shift);
/* Rows of an operand: @parts parts of the segment @first, each @part_step tokens behind the one
 * before. */
typedef struct {
    LhSegment first;
    int64_t part_step;
    uint32_t parts;
} LhPassRows;

/*
 * Arguments of attention of @q with @k under the program's mask, whatever it is, for one slice of
 * the heads. The mask becomes FULL or EMPTY where it is that; otherwise it goes by positions.
 */
LhKernelArgs lh_pass_position_args(const LhProgram *program, LhPassRows q, LhPassRows k);

/* As @args, for one slice of the heads. */
LhKernelArgs lh_pass_slice_args(const LhProgram *program, LhKernelArgs args);

/* Arguments of an elementwise call on @rows tokens. */
LhKernelArgs lh_pass_q_args(const LhProgramParams *p, uint64_t rows);
LhKernelArgs lh_pass_kv_args(const LhProgramParams *p, uint64_t rows);

/* The flops of @pairs in the passes that are run: 4 B h d forward, 10 B h d backward. */
uint64_t lh_pass_flops(const LhProgramParams *p, uint64_t pairs);

/* The pairs of a rank that computes its own queries with all keys, under whatever mask. */
uint64_t lh_pass_rank_pairs(const LhProgramParams *p, LhPlacementKind placement, uint32_t rank);

/* The pairs of a rank that computes its own keys with all queries; zigzag and contiguous only. */
uint64_t lh_pass_rank_key_pairs(const LhProgramParams *p, LhPlacementKind placement, uint32_t rank);

/* How many ranks have keys that the queries of @rank see; or queries that see its keys. */
uint64_t lh_pass_rank_blocks(const LhProgramParams *p, LhPlacementKind placement, uint32_t rank);
uint64_t lh_pass_rank_key_blocks(const LhProgramParams *p, LhPlacementKind placement,
                                 uint32_t rank);

/*
 * Contiguous tokens: the owners of the keys that the queries of @rank see. What one query sees is
 * an interval with the query in it, so that these are ranks in a row, the rank among them.
 */
typedef struct {
    uint32_t first, last;
} LhRankRange;
LhRankRange lh_pass_owners(const LhProgramParams *p, uint32_t rank);

/* The idle fraction of ranks that all have the same to do at all times. */
double lh_pass_idle_none(const LhProgramParams *p);

/* The idle fraction if nobody waits but for the rank with the most @work: 1 - mean / most. */
double lh_pass_imbalance(const LhProgramParams *p,
                         uint64_t (*work)(const LhProgramParams *p, uint32_t rank));

/*
 * Closed forms of ranks that compute their own contiguous queries with all keys: causal, r full
 * blocks and the diagonal. Idle by flops is 1 - N (N+1) / 2 / (P ((P-1) n^2 + n (n+1) / 2)), which
 * tends to (P-1) / (2P-1).
 */
uint64_t lh_contiguous_flops(const LhProgramParams *p, uint32_t rank);
double lh_contiguous_idle_unit(const LhProgramParams *p);
double lh_contiguous_idle_flops(const LhProgramParams *p);

/* steps() of schedules with one step a pass. */
uint32_t lh_pass_steps(const LhProgram *program, uint32_t rank);

/*
 * Attention among all tokens of the slots in @io, softmax or linear, and its backward; @args has
 * the whole mask. Of each slot it takes @count parts from @first on.
 */
void lh_pass_attend(LhEmitter *e, const LhKernelArgs *args, const LhPassSlots *io, uint32_t first,
                    uint32_t count);
void lh_pass_attend_grad(LhEmitter *e, const LhKernelArgs *args, const LhPassSlots *io,
                         uint32_t first, uint32_t count);

/* Allocates or frees the slots [first, end). */
void lh_pass_alloc(LhEmitter *e, uint16_t first, uint16_t end);
void lh_pass_free(LhEmitter *e, uint16_t first, uint16_t end);

/* Appends a compute op behind what the compute stream was told to wait for. Operands follow. */
static inline void
lh_pass_compute(LhEmitter *e, LhKernelId kernel, const LhKernelArgs *args)
{
    uint32_t *marks = e->marks;

    marks[LH_MARK_COMPUTE] = lh_emit_compute(e, LH_PASS_STREAM_COMPUTE, kernel, args);
    lh_emit_after(e, marks[LH_MARK_WAIT]);
    marks[LH_MARK_WAIT] = LH_OP_NONE;
}

/* Posts an exchange behind the compute ops queued so far. Parts follow. */
static inline void
lh_pass_exchange(LhEmitter *e)
{
    uint32_t *marks = e->marks;

    marks[LH_MARK_EXCHANGE] = lh_emit_exchange(e, LH_PASS_STREAM_COMM);
    lh_emit_after(e, marks[LH_MARK_COMPUTE]);
}

/* The compute stream waits for the exchange @id (and, streams being in order, for all before it).
 */
static inline void
lh_pass_wait(LhEmitter *e, uint32_t id)
{
    uint32_t *wait = &e->marks[LH_MARK_WAIT];

    if (id != LH_OP_NONE && (*wait == LH_OP_NONE || id > *wait))
        *wait = id;
}

/* Sets the emitter to a pass and returns the step of that pass; @fwd_steps is the length of the
 * forward pass. */
static inline uint32_t
lh_pass_enter(LhEmitter *e, uint32_t step, uint32_t fwd_steps)
{
    const uint32_t skipped = lh_pass_has(&e->program->params, LH_PASS_FWD) ? fwd_steps : 0;

    e->phase = step < skipped ? LH_PHASE_FORWARD : LH_PHASE_BACKWARD;
    e->step = step < skipped ? step : step - skipped;
    return e->step;
}

/* A message of the last exchange in one region: the first @count parts of a slot. They travel as
 * they are held. */
static inline void
lh_pass_message(LhEmitter *e, bool send, uint32_t peer, uint16_t tag, uint16_t slot, uint32_t count)
{
    const LhRegion region = { slot, 0, count };

    lh_emit_part(e, send, peer, tag, lh_region_bytes(e->program, region));
    lh_emit_region(e, slot, 0, count);
}
