/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rows of attention's tensors, combined: target = its own factor times what it held, plus the
 * source's times that.
 */
#pragma once

#include "kernels/cuda/operands.h"
#include "kernels/status.h"

/* What the factors come from. */
enum {
    LH_CUDA_COPY_ROWS,
    LH_CUDA_MERGE,     /* m and l of both; a source without l has 1, and its lse for m */
    LH_CUDA_MERGE_LSE, /* lse of both */
    LH_CUDA_MERGE_STAT,
    LH_CUDA_WEIGH,     /* lse of the source, and a final one */
    LH_CUDA_NORMALISE, /* m and l of the source; lse of the result */
    LH_CUDA_ROUND,     /* lse of the source; lse of the result */
};

typedef struct {
    LhCudaTensor source, target;
    LhCudaTensor source_stat[2], target_stat[2];
    uint64_t batch, rows;
    uint32_t heads, share; /* heads of the target, of which so many have one of the source */
    uint32_t lanes;        /* of a team; the launcher's */
    uint32_t way;
    bool first; /* the target starts here */
} LhCudaCombination;

#ifdef __cplusplus
extern "C" {
#endif

enum lh_status lh_cuda_combine(const LhCudaCombination *c, void *stream);

/*
 * Merges a normalised block (o, lse), as attention_block writes it, into an accumulator (o, m, l),
 * or begins that one with it (args->first): operands block, acc. So the kernels of others, which
 * know no accumulators, add to one.
 */
enum lh_status lh_cuda_merge_block(const LhCall *call, void *stream);

#ifdef __cplusplus
}
#endif
