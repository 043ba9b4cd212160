/*
 * The schedule IR: per-rank programs of ops over declared slots, produced lazily by cursors.
 * Verifier, simulator and runtime all read programs through lh_cursor_step() and nothing else.
 */
#pragma once

#include "base/units.h"
#include "kernels/kernel.h"
#include "kernels/tensor.h"
#include "model/attention.h"
#include "sched/placement.h"

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

#define LH_OP_AFTER_MAX 8
#define LH_PART_REGIONS_MAX 4
#define LH_COLLECTIVE_TENSORS_MAX 6
#define LH_STREAMS_MAX 8
#define LH_CURSOR_MARKS 24
#define LH_OP_NONE UINT32_MAX

typedef enum {
    LH_SLOT_TEMP,   /* exists from its alloc op to its free op */
    LH_SLOT_INPUT,  /* there before the program, holding the rank's own segments; stays */
    LH_SLOT_OUTPUT, /* there before the program, empty; must hold the rank's complete result at its
                       end */
} LhSlotRole;

/*
 * A buffer of every rank. A slot has one or more parts of equal size; ops name ranges of parts. A
 * part holds the rows of one segment for one slice of the heads; what it is in input and output
 * slots says lh_program_holding().
 */
typedef struct {
    char name[16];
    LhTensorKind kind;
    LhSlotRole role;
    uint32_t parts;
    uint64_t part_bytes;    /* in device memory */
    uint32_t element_bytes; /* of its principal tensor (acc: of o); statistics are always fp32 */
} LhSlot;

/* Parts [part, part + count) of slot `slot`. */
typedef struct {
    uint16_t slot;
    uint32_t part;
    uint32_t count;
} LhRegion;

typedef enum {
    LH_STREAM_COMPUTE,
    LH_STREAM_COMM,
} LhStreamKind;

typedef struct {
    char name[12];
    LhStreamKind kind;
} LhStream;

typedef enum {
    LH_OP_COMPUTE,
    LH_OP_EXCHANGE,
    LH_OP_COLLECTIVE,
    LH_OP_SYNC,  /* the host waits until every earlier op of its rank is complete */
    LH_OP_ALLOC, /* in host order, takes no device time */
    LH_OP_FREE,
    LH_OP_KINDS
} LhOpKind;

extern const char *const lh_op_kind_names[];

/* What part of a step an op belongs to, for reports. */
typedef enum { LH_PHASE_FORWARD, LH_PHASE_BACKWARD, LH_PHASES } LhPhase;

extern const char *const lh_phase_names[];

/* One message of an exchange. Send and receive match by (source, destination, tag, order of
 * posting). */
typedef struct {
    uint32_t peer;
    uint16_t tag;
    bool send; /* else receive */
    uint8_t regions_count;
    uint64_t wire_bytes; /* what crosses the network; memory bytes are the regions' */
    LhRegion regions[LH_PART_REGIONS_MAX];
} LhPart;

typedef enum {
    LH_COLL_ALL_GATHER,
    LH_COLL_REDUCE_SCATTER,
    LH_COLL_ALL_REDUCE,
    LH_COLL_ALL_TO_ALL,
    LH_COLL_BROADCAST,
    LH_COLL_KINDS
} LhCollectiveKind;

extern const char *const lh_collective_names[];

typedef enum {
    LH_REDUCE_SUM,
    LH_REDUCE_ATTENTION, /* merge of (o, m, l) */
} LhReduction;

/* Ranks base + i * stride + j * outer_stride, i < count, j < outer_count (inner index fastest). */
typedef struct {
    uint32_t base, stride, count;
    uint32_t outer_stride, outer_count; /* outer_count >= 1 */
} LhGroup;

/* How many ranks a group has; its member at @position; the position of @rank, or UINT32_MAX. */
uint64_t lh_group_size(const LhGroup *group);
uint64_t lh_group_member(const LhGroup *group, uint64_t position);
uint32_t lh_group_position(const LhGroup *group, uint32_t rank);

/*
 * What @rank sends in a collective over @group, by its bandwidth-optimal ring or pairwise
 * algorithm, @shard_bytes being one rank's contribution. A broadcast is a chain in group order, so
 * that the last member sends nothing.
 */
uint64_t lh_collective_bytes_sent(LhCollectiveKind kind, const LhGroup *group, uint32_t rank,
                                  uint64_t shard_bytes);

typedef struct {
    uint32_t id;    /* 0, 1, 2, ... in program order of the rank */
    uint8_t kind;   /* LhOpKind */
    uint8_t stream; /* index into the program's streams; ignored for sync, alloc, free */
    uint8_t phase;  /* LhPhase */
    uint8_t after_count;
    uint32_t step;                   /* the schedule's step, for labels */
    uint32_t after[LH_OP_AFTER_MAX]; /* ids of earlier ops of this rank */
    union {
        struct {
            LhKernelId kernel;
            LhKernelArgs args;
            uint8_t regions_count;
            LhRegion regions[LH_KERNEL_OPERANDS_MAX]; /* in the kernel's operand order */
        } compute;
        struct {
            uint32_t parts_first; /* in the buffer's parts[] */
            uint32_t parts_count;
        } exchange;
        struct {
            LhCollectiveKind kind;
            LhReduction reduction;
            LhGroup group;
            /* The same collective of several tensors, as one group call: tensor i goes from send[i]
             * to receive[i]. */
            uint8_t tensors_count;
            LhRegion send[LH_COLLECTIVE_TENSORS_MAX], receive[LH_COLLECTIVE_TENSORS_MAX];
            uint64_t wire_bytes; /* of this rank's contribution (the per-rank shard), all tensors */
        } collective;
        struct {
            uint16_t slot;
        } memory; /* alloc, free */
    };
} LhOp;

/* Ops of one step, refilled by lh_cursor_step. Reuse one buffer for many cursors. */
typedef struct {
    LhOp *ops;
    uint32_t ops_count, ops_capacity;
    LhPart *parts;
    uint32_t parts_count, parts_capacity;
} LhOpBuffer;

void lh_op_buffer_clear(LhOpBuffer *buffer); /* frees; a zeroed buffer is empty and valid */

typedef struct _LhSchedule LhSchedule;
typedef struct _LhProgram LhProgram;

typedef enum {
    LH_PASS_FWD = 1,
    LH_PASS_BWD = 2,
    LH_PASS_BOTH = 3,
} LhPass;

typedef enum {
    LH_WIRE_DEFAULT, /* what the published system sends */
    LH_WIRE_FP32,
    LH_WIRE_16BIT,
} LhWireDtype;

/* Indexed by LhPass - 1 and by LhWireDtype, NULL-terminated: "fwd", "bwd", "both"; "default",
 * "fp32", "16bit". */
extern const char *const lh_pass_names[];
extern const char *const lh_wire_names[];

/* What a backward pass computes again (--recompute-granularity). */
typedef enum {
    LH_RECOMPUTE_NONE,
    LH_RECOMPUTE_SELECTIVE, /* attention itself, not the collectives around it */
    LH_RECOMPUTE_FULL,      /* all of the module, collectives too */
} LhRecompute;

/* "none", "selective", "full"; NULL-terminated. */
extern const char *const lh_recompute_names[];

/* Everything that decides a program, and hence what crosses which link. */
typedef struct {
    LhAttention attention;
    uint32_t ranks;
    LhMaskRule mask; /* its documents are borrowed; a program has a copy of its own */
    LhPass pass;
    bool overlap;        /* false: communication before compute, the papers' ablation */
    bool published_code; /* reproduce the public code's extra traffic and host syncs */
    LhWireDtype
        gradient_wire; /* dtype of dk, dv (and of dq, where a schedule sends it) on the wire */
    /*
     * What only some schedules ask for; 0 or false is each one's default, and a schedule ignores
     * what it does not know.
     */
    uint32_t grid_rows, grid_columns; /* attention2d: Pr x Pc; default the best for the shape */
    uint32_t ulysses_size;  /* ranks that exchange heads (usp, te-a2a-p2p); divides ranks */
    uint32_t inner_ring;    /* double-ring: ranks of the inner ring; divides ranks */
    uint32_t gather_groups; /* allgather-kv: key-value heads gathered at a time; divides groups */
    uint32_t scan_blocks;   /* zeco: pieces that a state travels in */
    uint32_t gpus_per_node; /* of the cluster, for defaults that depend on it; 0: unknown */
    bool local_kv;          /* attention2d: no transpose of k and v */
    bool gather_delta;      /* attention2d: backward gathers delta instead of o */
    bool state_recompute;   /* linear attention: backward recomputes states instead of keeping */
    bool unfused;           /* linear attention: intra and inter write apart and are added */
    bool pad_heads;         /* heads padded to a multiple of the ranks that share them */
    uint8_t recompute;      /* LhRecompute */
    /*
     * Groups of `ranks` consecutive ranks, each of which runs the schedule on a batch of its own
     * and exchanges nothing with the others; 0 and 1: one. Schedules and closed forms see one
     * group.
     */
    uint32_t data_parallel_size;
} LhProgramParams;

/* The ranks of all groups. */
static inline uint32_t
lh_params_ranks(const LhProgramParams *params)
{
    return (uint32_t)MIN((uint64_t)params->ranks * MAX(params->data_parallel_size, 1), UINT32_MAX);
}

/* Closed forms that an explicit program states about itself, one number per rank; NULL: not stated.
 */
typedef struct {
    uint64_t *bytes_sent, *flops, *peak_bytes; /* owned */
} LhStatedForms;

/* A program for all ranks: declarations, and the generator that cursors call. Immutable once made.
 */
struct _LhProgram {
    const LhSchedule *schedule; /* NULL for an explicit program */
    LhProgramParams params;
    LhPlacement placement;
    /* Slices of equal size that all tensors are cut into by heads; 0 and 1: none. Each of the
     * kv_slices belongs to head_slices / kv_slices consecutive slices of query heads. */
    uint32_t head_slices, kv_slices;
    LhSlot *slots; /* owned */
    uint32_t slots_count;
    LhStream streams[LH_STREAMS_MAX];
    uint32_t streams_count;
    void *explicit_ops;      /* owned by sched/explicit.c; NULL for generated programs */
    LhStatedForms stated;    /* explicit programs only; all NULL for generated ones */
    uint64_t *document_ends; /* owned; params.mask names them */
    void *plan;              /* what declare() worked out for emit(); owned, freed by g_free */
    const void *user;        /* for the generator; borrowed */
    /*
     * Where ranks exchange heads for tokens, the forward pass saves tensors by heads: of all
     * segments of a group of saved_group ranks in a row, the slices that the rank works on. A
     * backward pass alone is given these kinds (bits 1 << LhTensorKind) in that form. 0: none.
     */
    uint32_t saved_group, saved_kinds;
    bool single; /* one rank alone: made and emitted by lh_single, not by the schedule */
};

/* Where one rank's program stands. Plain data of constant size: copy it to fork, keep one per rank.
 */
typedef struct {
    const LhProgram *program;
    uint32_t rank;                   /* of all */
    uint32_t group_first;            /* the first rank of its group */
    uint32_t step;                   /* the step that lh_cursor_step yields next */
    uint32_t next_id;                /* op id that comes next */
    uint32_t marks[LH_CURSOR_MARKS]; /* op ids the generator remembers; LH_OP_NONE at the start */
} LhCursor;

void lh_cursor_init(LhCursor *cursor, const LhProgram *program, uint32_t rank);

/*
 * Replaces @buffer's contents by the ops of the next step (possibly none) and advances; false at
 * the end of the program, with an empty buffer. Costs O(ops of the step) and, once the buffer has
 * grown, no allocation.
 */
bool lh_cursor_step(LhCursor *cursor, LhOpBuffer *buffer);

void lh_program_free(LhProgram *program);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(LhProgram, lh_program_free)

/* The ranks of all groups; the place of @rank in its own. */
uint32_t lh_program_ranks(const LhProgram *program);
uint32_t lh_program_group_rank(const LhProgram *program, uint32_t rank);

/* Device bytes of a region. */
uint64_t lh_region_bytes(const LhProgram *program, LhRegion region);

/* Whether a tensor has the key-value heads (kv, dkv, and either half alone), not the query heads.
 */
bool lh_tensor_is_kv(LhTensorKind kind);

/* Slices that tensors of @kind are cut into. */
uint32_t lh_program_slices(const LhProgram *program, LhTensorKind kind);

typedef struct {
    uint32_t segment, slice;
} LhHolding;

/* How many of @slices slices one of @ranks ranks has that share them, at most; and the first one of
 * rank @index. Earlier ranks have one more where they do not divide; several ranks have the same
 * where there are more ranks. */
uint32_t lh_slices_share(uint32_t slices, uint32_t ranks);
uint32_t lh_slices_first(uint32_t slices, uint32_t ranks, uint32_t index);

/* How many parts an input or output slot of @kind has. */
uint32_t lh_program_parts(const LhProgram *program, LhTensorKind kind);

/*
 * What part @part of an input or output slot of @kind holds on @rank, of its group's batch: with S
 * slices, part s * S + i is slice i of the rank's segment s. In the placement by heads a rank has
 * one slice. Saved by heads, with G segments in the group, part i * G + s is the rank's slice i of
 * segment s in the order of tokens (what a rank with fewer slices than others has beyond its own is
 * nobody's claim).
 */
LhHolding lh_program_holding(const LhProgram *program, LhTensorKind kind, uint32_t rank,
                             uint32_t part);
