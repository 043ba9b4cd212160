/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A proof in progress: the whole program unrolled, and the results of the stages. Each stage may
 * assume that the ones before it have found no error.
 */
#pragma once

#include "program/collective_semantics.h"
#include "program/holding.h"
#include "program/op_names.h"
#include "verify/verify.h"

/* Limits beyond which a program is rejected: a proof holds every cell and every different set, and
 * if it finds anything, every op. */
#define LH_VERIFY_RANKS_MAX 4096
#define LH_VERIFY_OPS_MAX (UINT32_C(1) << 24)
#define LH_VERIFY_PARTS_MAX (UINT32_C(1) << 25)
#define LH_VERIFY_CELLS_MAX (UINT32_C(1) << 26)
#define LH_VERIFY_WORDS_MAX (UINT32_C(1) << 27) /* of all sets that differ: 1 GiB */
#define LH_VERIFY_BYTES_MAX (UINT64_C(1) << 60) /* of a rank's slots: sums over an op fit */

#define LH_NONE UINT32_MAX

/* The k-th collective of one communicator: the ops of all its members, in group order. */
typedef struct {
    uint32_t first, count; /* in LhProof.meeting_ops */
} LhMeeting;

typedef struct {
    const LhProgram *program;
    LhVerdict *verdict;
    GArray *blocks; /* of LhAttentionBlock, to append to; NULL: not wanted */
    uint32_t ranks;

    /* All ops, rank after rank. An op's global index is rank_first[rank] + id. */
    LhOp *ops; /* exchange.parts_first and collective.counts_first index parts and counts below */
    uint32_t ops_count;
    uint32_t *op_rank;    /* [ops_count] */
    uint32_t *rank_first; /* [ranks + 1] */
    LhPart *parts;
    uint32_t parts_count;
    uint32_t *part_op;    /* [parts_count] global op of a part */
    uint32_t *part_match; /* [parts_count] the part at the other end, or LH_NONE */

    uint32_t *counts;     /* of uneven collectives */
    uint32_t cells_count; /* of one rank: parts of all slots */

    LhMeeting *meetings;
    uint32_t meetings_count;
    uint32_t *meeting_ops; /* global ops */
    uint32_t *op_meeting;  /* [ops_count] LH_NONE if not a collective; NULL if there are none */

    /* Happens-before within a rank: the number of ops of each stream that are complete before an
     * op starts. */
    uint32_t *clocks;   /* [ops_count * streams_count] */
    uint32_t *position; /* [ops_count] position of an op in its stream */

    /* A topological order of the whole graph. A node below 2 ops_count is the start (even) or
     * end (odd) of op node / 2; then come the collectives, then nodes of the order itself
     * (issues). */
    uint32_t *order;
    uint32_t nodes_count;

    bool projects;       /* some op stands for a projection of the layer outside attention */
    bool computes_layer; /* some op computes that layer */

    uint32_t *alloc_first; /* [ranks * cells_count + 1]: allocs of one cell, by op */
    uint32_t *allocs;
} LhProof;

/* Ops from @first to before @end, as global indices. */
typedef struct {
    uint32_t first, end;
} LhOpRange;

static inline LhOpRange
lh_proof_ops_of(const LhProof *proof, uint32_t rank)
{
    return (LhOpRange){ proof->rank_first[rank], proof->rank_first[rank + 1] };
}

/* Subject of a finding: @op and @other are global indices or LH_NONE; a negative @slot means
 * none. */
typedef struct {
    uint32_t rank, op;
    int32_t slot;
    uint32_t other;
} LhFindingPlace;

/* Records a finding. The rank and op are put in front of the message. */
void lh_proof_find(LhProof *proof, LhFindingKind kind, LhFindingPlace place, const char *format,
                   ...) G_GNUC_PRINTF(4, 5);

/* "rank 3, op 12 (exchange, stream comm)"; caller frees. @op is a global index. */
char *lh_proof_rank_op_text(const LhProof *proof, uint32_t op);

static inline const LhKernel *
lh_proof_kernel(const LhOp *op)
{
    return lh_kernels[op->compute.kernel];
}

/* Whether a compute op overwrites operand @i without reading it. */
static inline bool
lh_proof_overwrites(const LhOp *op, uint32_t i)
{
    return lh_operand_is_overwritten(lh_proof_kernel(op), &op->compute.args, i);
}

/* Slices of query heads that share one slice of key-value heads. */
static inline uint32_t
lh_proof_replicas(const LhProof *proof)
{
    return MAX(proof->program->head_slices, 1) / MAX(proof->program->kv_slices, 1);
}
