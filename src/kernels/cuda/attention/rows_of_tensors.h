/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Combines rows of attention's tensors: target = target factor * target + source factor * source.
 */
#pragma once

#include "kernels/cuda/operands.h"
#include "kernels/status.h"

/* Source of the factors. */
enum {
    LH_CUDA_COPY_ROWS,
    LH_CUDA_MERGE,     /* m and l of both; a source without l has l = 1 and m = its lse */
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
    uint32_t heads, share; /* heads of the target; @share of them read one of the source */
    uint32_t lanes;        /* of a team; set by the launcher */
    uint32_t way;
    bool first; /* the target starts here */
} LhCudaCombination;

#ifdef __cplusplus
extern "C" {
#endif

enum lh_status lh_cuda_combine(const LhCudaCombination *c, void *stream);

/*
 * Merges a normalised block (o, lse), as attention_block writes it, into an accumulator (o, m, l),
 * or with args->first initialises it: operands block, acc. It lets library kernels without
 * accumulators add to one.
 */
enum lh_status lh_cuda_merge_block(const LhCall *call, void *stream);

#ifdef __cplusplus
}
#endif
