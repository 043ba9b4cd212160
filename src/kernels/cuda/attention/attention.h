/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Arguments of attention's launchers. Plain C, for nvcc and attention.c.
 */
#pragma once

#include "kernels/cuda/attention/mask.h"
#include "kernels/cuda/rows/rows.h"

#ifdef __cplusplus
extern "C" {
#endif

/* An output tensor, which may accumulate and hence have one of two types. */
typedef struct {
    LhCudaRows rows;
    enum lh_storage storage;
    bool chunks; /* 4 elements at a time: all rows are aligned to that */
} LhCudaResult;

/* Common part of a call. */
typedef struct {
    LhCudaMask mask;
    uint32_t batch, heads, groups, nq, nk, dim;
    float scale; /* > 0 */
    enum lh_storage storage;
    bool chunks; /* inputs are read 16 bytes at a time: all rows are aligned to that */
    bool asks;   /* launches nothing; only checks whether blocks may use enough shared memory */
} LhCudaAttention;

/*
 * Forward: o of a block, and m and l or lse. They are overwritten; with `load` the block is merged
 * into what o, m and l hold of earlier ones. `normalise`: o is divided by l.
 */
typedef struct {
    LhCudaAttention a;
    LhCudaRows q, k, v;
    LhCudaResult o;
    LhCudaRows m, l, lse; /* m with l, or lse */
    bool load, normalise;
} LhCudaForward;

/* Backward: gradients of a block, overwritten or added to. */
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

/* For 16-bit types, and for fp32. LH_STATUS_UNSUPPORTED: too little shared memory per block. */
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
