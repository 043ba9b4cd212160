/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Attention within a step: the ops of one call of it, held against those of the program that it
 * embeds.
 */
#pragma once

#include "verify/step/step_values.h"

/* An embedded program, unrolled for one rank of it. */
typedef struct _LhModuleRank {
    const LhProgram *program; /* NULL: not unrolled yet */
    GArray *ops, *parts, *counts;
    uint16_t *touches, *writes; /* [its cells] by how many ops */
} LhModuleRank;

/* One call of attention on one rank. */
typedef struct _LhInstance {
    const LhModuleRank *of;
    uint32_t rank, module; /* index of the program, from 0 */
    uint32_t first;        /* global op */
    uint32_t number;       /* among the rank's instances */
    uint16_t layer, micro_batch;
    bool again; /* computed once more in the backward pass */
    /* What the first op that names them says: the slots that stand for its own, or LH_NONE, and
     * the first of their parts; streams likewise. */
    uint32_t *slots, *parts;
    uint32_t streams[LH_STREAMS_MAX];
    uint8_t communicator;
    bool has_communicator;
    uint16_t *touched, *written; /* [its cells] by how many ops so far */
} LhInstance;

/* Where rank 0 of the embedded program stands of which @rank runs a part, and how far apart its
 * ranks are. */
LhRankMap lh_instance_map(const LhStepValues *v, uint32_t rank);

/*
 * Holds op @g of a step, @op, against @own, the op of the embedded program that it should be. What
 * the first ops name stands from then on for the slots, streams and communicator of the program.
 * What differs, in words; NULL: nothing.
 */
const char *lh_instance_difference(LhStepValues *v, LhInstance *instance, const LhOp *own,
                                   const LhOp *op, uint32_t g);
