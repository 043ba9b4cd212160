/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the launchers of attention take. Plain C: seen by nvcc and by attention.c.
 */
#pragma once

#include "kernels/cuda/attention/mask.h"
#include "kernels/cuda/rows/rows.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A tensor that is added to, and hence may be of two types. */
typedef struct {
    LhCudaRows rows;
    enum lh_storage storage;
    bool chunks; /* 16 bytes at a time: all rows are aligned to that */
} LhCudaResult;

/* What a call's tensors have in common. */
typedef struct {
    LhCudaMask mask;
    uint32_t batch, heads, groups, nq, nk, dim;
    float scale; /* > 0 */
    enum lh_storage storage;
    bool chunks; /* of all that is read by 16 bytes at a time, as above */
    bool asks;   /* launches nothing: only whether the GPU's blocks have the shared memory for it */
} LhCudaAttention;

/* o of a block, and with it m and l or lse: overwritten, or `load`: the block comes to what o, m
 * and l hold of earlier ones. `normalise`: o is divided by l. */
typedef struct {
    LhCudaAttention a;
    LhCudaRows q, k, v;
    LhCudaResult o;
    LhCudaRows m, l, lse; /* m with l, or lse */
    bool load, normalise;
} LhCudaForward;

/* Gradients of a block, overwritten or added to. */
typedef struct {
    LhCudaAttention a;
    LhCudaRows q, dout, k, v;
    LhCudaRows lse, delta;
    LhCudaResult dq, dk, dv;
    bool load;
} LhCudaBackward;

/* delta = rowsum(do * o) of every query row. */
typedef struct {
    LhCudaRows dout, o, delta;
    uint32_t batch, heads, nq, dim;
    enum lh_storage storage; /* of do and o */
} LhCudaDelta;

/* Of 16 bits, and of fp32. LH_STATUS_UNSUPPORTED: blocks have too little shared memory. */
enum lh_status lh_cuda_forward(const LhCudaForward *f, void *stream);
enum lh_status lh_cuda_backward_keys(const LhCudaBackward *w, void *stream);
enum lh_status lh_cuda_backward_queries(const LhCudaBackward *w, void *stream);
enum lh_status lh_cuda_forward_fp32(const LhCudaForward *f, void *stream);
enum lh_status lh_cuda_backward_keys_fp32(const LhCudaBackward *w, void *stream);
enum lh_status lh_cuda_backward_queries_fp32(const LhCudaBackward *w, void *stream);

enum lh_status lh_cuda_delta(const LhCudaDelta *d, void *stream);

#ifdef __cplusplus
}
#endif
