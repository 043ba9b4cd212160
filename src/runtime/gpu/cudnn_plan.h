/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Scaled dot product attention in cuDNN: a graph of operations for a shape, and the execution plan
 * that one of its engines makes of it. Tensors are token-major, [batch][rows][heads][dim].
 *
 * Forward: o = softmax(scale q k^T) v and lse. Backward: dq, dk and dv, given o, do and an lse that
 * may include further keys. These are the graphs that cuDNN documents for its flash attention
 * (Graph API, "Fused Flash Attention fprop" and "bprop") and that cudnn-frontend builds; its
 * engines support no others.
 */
#pragma once

#include "kernels/call.h"
#include "runtime/gpu/cudnn_api.h"

#define LH_CUDNN_ALIGN 16 /* bytes, for tensors of 16-bit elements */

typedef enum {
    LH_CUDNN_FULL,
    LH_CUDNN_CAUSAL,  /* key j <= query i */
    LH_CUDNN_SHIFTED, /* j <= i + shift, where shift is given when the plan is run */
} LhCudnnMask;

/* The problem that a plan solves. Row counts are per sequence. */
typedef struct {
    bool backward;
    LhCudnnMask mask;
    enum lh_storage storage; /* of q, k, v, o, do and the gradients: bf16 or fp16 */
    uint32_t batch, heads, groups, dim;
    uint64_t nq, nk;         /* > 0 */
    uint64_t q_rows, k_rows; /* rows from one sequence to the next: at least nq, nk */
} LhCudnnShape;

/* Tensors of a plan that need memory; their unique ids within it. */
typedef enum {
    LH_CUDNN_Q = 1,
    LH_CUDNN_K,
    LH_CUDNN_V,
    LH_CUDNN_O,
    LH_CUDNN_LSE, /* fp32 [batch][rows][heads]: written forward, read backward */
    LH_CUDNN_DO,
    LH_CUDNN_DQ,
    LH_CUDNN_DK,
    LH_CUDNN_DV,
    LH_CUDNN_DELTA,     /* fp32 [batch][heads][nq]: backward, internal */
    LH_CUDNN_DQ_SUM,    /* fp32 [batch][heads][nq][dim]: likewise */
    LH_CUDNN_SCALE,     /* from here on scalars in host memory: float */
    LH_CUDNN_ONE,       /* float */
    LH_CUDNN_MINUS_INF, /* float */
    LH_CUDNN_SHIFT,     /* int32_t */
    LH_CUDNN_TENSORS
} LhCudnnTensor;

/* The target of plans: a device of this machine, by its handle, or a described device
 * (CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION), for which plans are made and never run. */
typedef struct {
    const LhCudnn *cudnn;
    cudnnHandle_t handle;
    cudnnBackendDescriptor_t properties;
} LhCudnnTarget;

typedef struct {
    LhCudnnShape shape;
    uint64_t workspace_bytes;
    cudnnBackendDescriptor_t plan;
    const LhCudnn *cudnn;
    GPtrArray *descriptors; /* all descriptors it was built from */
} LhCudnnPlan;

/* LH_ERROR_NO: no engine of cuDNN supports the graph on this device; the error names the shape. */
LhCudnnPlan *lh_cudnn_plan_new(const LhCudnnTarget *target, const LhCudnnShape *shape,
                               GError **error);
void lh_cudnn_plan_free(LhCudnnPlan *plan);

/*
 * Enqueues a plan on the handle's stream. @memory: the address of each tensor by LhCudnnTensor,
 * NULL for those that the plan lacks; q, k, v, o, do and gradients are aligned to 16 bytes. Scalars
 * are read before it returns.
 */
bool lh_cudnn_plan_run(const LhCudnnPlan *plan, cudnnHandle_t handle,
                       void *const memory[LH_CUDNN_TENSORS], void *workspace, GError **error);

/* "forward, causal, bf16, B 1, nq 8192, ..."; caller frees. */
char *lh_cudnn_shape_text(const LhCudnnShape *shape);
