/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Attention within a step: checks the ops of one call of it against those of the embedded program.
 */
#pragma once

#include "verify/step/step_values.h"

/* An embedded program, unrolled for one of its ranks. */
typedef struct _LhModuleRank {
    const LhProgram *program; /* NULL: not unrolled yet */
    GArray *ops, *parts, *counts;
    uint16_t *touches, *writes; /* [its cells] number of ops */
} LhModuleRank;

/* One call of attention on one rank. */
typedef struct _LhInstance {
    const LhModuleRank *of;
    uint32_t rank, module; /* index of the program, from 0 */
    uint32_t first;        /* global op */
    uint32_t number;       /* index among the rank's instances */
    uint16_t layer, micro_batch;
    bool again; /* recomputed in the backward pass */
    /* Set by the first op that names them: the enclosing slots of the program's slots (or
     * LH_NONE) and their first parts; streams likewise. */
    uint32_t *slots, *parts;
    uint32_t streams[LH_STREAMS_MAX];
    uint8_t communicator;
    bool has_communicator;
    uint16_t *touched, *written; /* [its cells] number of ops so far */
} LhInstance;

/* The kind of attention of module @module; modules are numbered by pack, kind and pass. */
static inline LhStepKind
lh_instance_kind(uint32_t module)
{
    return (LhStepKind)(module / 2 % LH_STEP_KINDS);
}

/* The mask of attention of @kind in a micro-batch of a data-parallel rank. */
LhMaskRule lh_instance_mask(const LhStepValues *v, LhStepKind kind, uint32_t data,
                            uint32_t micro_batch);

/* Maps the ranks of the embedded program that @rank takes part in: its rank 0 and the stride of
 * its ranks. */
LhRankMap lh_instance_map(const LhStepValues *v, uint32_t rank);

/*
 * Compares op @op of a step, with global index @g, with the corresponding op @own of the embedded
 * program. The first ops fix the mapping of the program's slots, streams and communicator. Returns
 * the first difference in words; NULL: none.
 */
const char *lh_instance_difference(LhStepValues *v, LhInstance *instance, const LhOp *own,
                                   const LhOp *op, uint32_t g);
