/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Operations, the elements of a program. A rank's host issues them in order. Each runs on one of
 * the rank's in-order streams or on the host itself, and starts when the ops listed in `after` are
 * complete.
 */
#pragma once

#include "kernels/kernel.h"
#include "program/group.h"

#include <stdbool.h>
#include <stdint.h>

#define LH_OP_AFTER_MAX 8
#define LH_PART_REGIONS_MAX 4
#define LH_COLLECTIVE_TENSORS_MAX 9 /* the weights of a layer */
#define LH_OP_NONE UINT32_MAX

/*
 * How far a host runs ahead of its device: it issues op i only when ops 0 to i - LH_HOST_WINDOW - 1
 * of its rank are complete (CUDA blocks a launch when about a thousand are queued). A program that
 * needs more lookahead deadlocks: the verifier rejects it, and the simulator and the runtime report
 * the deadlock.
 */
#define LH_HOST_WINDOW 1024

/* Selects one of the two tensors stored one after the other in each part of a slot: k and v
 * (kind kv), or dk and dv (kind dkv). Each takes half of a part's bytes. */
typedef enum {
    LH_HALF_BOTH,
    LH_HALF_K,
    LH_HALF_V,
    LH_HALVES,
} LhHalf;

/*
 * Parts [part, part + count) of slot `slot`. Exchanges and collectives without a reduction may move
 * one half of these parts; all other ops name both.
 */
typedef struct {
    uint16_t slot;
    uint32_t part;
    uint32_t count;
    uint8_t half; /* LhHalf */
} LhRegion;

/* Whether two regions of one rank share a part. */
static inline bool
lh_regions_overlap(const LhRegion *a, const LhRegion *b)
{
    return a->slot == b->slot && a->part < b->part + b->count && b->part < a->part + a->count;
}

typedef enum {
    LH_OP_COMPUTE,
    LH_OP_EXCHANGE,
    LH_OP_COLLECTIVE,
    LH_OP_SYNC,  /* the host waits until every earlier op of its rank is complete */
    LH_OP_ALLOC, /* in host order, takes no device time */
    LH_OP_FREE,
    LH_OP_KINDS
} LhOpKind;

/* The part of a training step an op belongs to, for reports. */
typedef enum {
    LH_PHASE_FORWARD,
    LH_PHASE_BACKWARD,
    LH_PHASE_RECOMPUTE, /* the forward pass repeated during the backward pass */
    LH_PHASE_OPTIMIZER,
    LH_PHASES
} LhPhase;

/*
 * One message of an exchange. On one communicator, the k-th message that a rank sends to another
 * one matches the k-th message that the other receives from it, in order of posting. The tag is a
 * label, the same at both ends. It does not affect matching, since NCCL has no tags.
 */
typedef struct {
    uint32_t peer;
    uint16_t tag;
    bool send; /* else receive */
    uint8_t regions_count;
    uint64_t wire_bytes; /* bytes sent over the network; memory bytes are those of the regions */
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

typedef enum {
    LH_REDUCE_SUM,
    LH_REDUCE_ATTENTION, /* merge of (o, m, l) */
} LhReduction;

typedef struct {
    uint32_t id;    /* 0, 1, 2, ... in program order of the rank */
    uint8_t kind;   /* LhOpKind */
    uint8_t stream; /* index into the program's streams; ignored for sync, alloc, free */
    uint8_t phase;  /* LhPhase */
    uint8_t after_count;
    uint32_t step;                   /* the schedule's step; a label, like the next three */
    uint16_t layer, micro_batch;     /* from 0 */
    uint16_t module;                 /* the embedded program it comes from, from 1; 0: none */
    uint8_t communicator;            /* number, for exchanges and collectives */
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
            /* One collective over several tensors, as one group call: tensor i goes from send[i]
             * to receive[i]. */
            uint8_t tensors_count;
            /*
             * Uneven all-to-all: from counts_first on, the buffer's counts[] hold for each tensor
             * the parts sent to each member in group order, then the parts received from each.
             */
            bool uneven;
            uint32_t counts_first;
            LhRegion send[LH_COLLECTIVE_TENSORS_MAX], receive[LH_COLLECTIVE_TENSORS_MAX];
            uint64_t wire_bytes; /* of this rank's contribution (the per-rank shard), all tensors */
        } collective;
        struct {
            LhRegion region;
        } memory; /* alloc, free */
    };
} LhOp;

/* Ops of one step, refilled by lh_cursor_step. Reuse one buffer for many cursors. */
typedef struct {
    LhOp *ops;
    uint32_t ops_count, ops_capacity;
    LhPart *parts;
    uint32_t parts_count, parts_capacity;
    uint32_t *counts;
    uint32_t counts_count, counts_capacity;
} LhOpBuffer;

void lh_op_buffer_clear(LhOpBuffer *buffer); /* frees; a zeroed buffer is empty and valid */

/* Reserves room for this many more of each. */
void lh_op_buffer_reserve(LhOpBuffer *buffer, uint32_t ops, uint32_t parts, uint32_t counts);

/* Indexed by their enums, NULL-terminated. */
extern const char *const lh_op_kind_names[];
extern const char *const lh_phase_names[];
extern const char *const lh_collective_names[];
extern const char *const lh_reduction_names[];
extern const char *const lh_mask_names[];

/* Whether an op runs on a stream; the others happen on the host. */
static inline bool
lh_op_on_stream(const LhOp *op)
{
    return op->kind == LH_OP_COMPUTE || op->kind == LH_OP_EXCHANGE || op->kind == LH_OP_COLLECTIVE;
}

/* The communicator of a collective op. */
static inline LhCommunicatorKey
lh_op_communicator(const LhOp *op)
{
    return (LhCommunicatorKey){ op->communicator, lh_group_canonical(op->collective.group) };
}
