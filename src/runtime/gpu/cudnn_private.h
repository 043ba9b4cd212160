/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An attention call being enqueued with cuDNN: shared by the files cudnn_*.c.
 */
#pragma once

#include "kernels/cpu/rows.h"
#include "kernels/cuda/scratch.h"
#include "runtime/gpu/cudnn_device.h"
#include "runtime/gpu/cudnn_plan.h"

#include <pthread.h>

#define LH_CUDNN_ROWS_MAX (UINT64_C(1) << 31)

struct LhCudnnDevice {
    int ordinal;
    const LhCudnn *cudnn;
    cudnnHandle_t handle;
    pthread_mutex_t lock; /* of the following fields, and of the handle's stream */
    GPtrArray *plans;     /* of LhCudnnPlan, owned */
    char *why;
};

/* A block: consecutive queries, and the keys of a run, from its first on, that they see. */
typedef struct {
    uint64_t first; /* first query */
    uint64_t nq, nk;
    LhCudnnMask mask;
    int32_t shift;
} LhCudnnBlock;

/* A call being enqueued, or only measured if it has no scratch memory yet (counts). After the first
 * failure nothing is enqueued. */
typedef struct {
    LhCudnnDevice *device;
    const LhCall *call;
    const LhKernelArgs *args;
    unsigned kv; /* operand of keys and values */
    void *stream;
    bool counts;
    LhCudaScratch scratch;
    uint64_t scratch_most; /* peak use */
    enum lh_status status;

    /* Number of key runs; the fields below describe the current run. */
    uint32_t runs;
    uint64_t nk;
    GArray *blocks;  /* of LhCudnnBlock */
    bool rows_left;  /* some queries are in no block */
    void *workspace; /* sized for the largest of their plans */
} LhCudnnJob;

/* ---- cudnn_device.c ---- */

/* The device's plan of this shape, created if missing. The caller holds the lock. */
const LhCudnnPlan *lh_cudnn_device_plan(LhCudnnDevice *device, const LhCudnnShape *shape,
                                        GError **error);

/* ---- cudnn_job.c ---- */

/* Records the failure; takes @error, which may be NULL. Nothing more is enqueued. */
void lh_cudnn_fail(LhCudnnJob *j, enum lh_status status, GError *error);

/* Fails with LH_STATUS_UNSUPPORTED and a reason. */
void lh_cudnn_decline(LhCudnnJob *j, const char *format, ...) G_GNUC_PRINTF(2, 3);

/* Takes scratch memory, which is free again when j->scratch.used is reset, since the stream runs in
 * order. */
void *lh_cudnn_take(LhCudnnJob *j, uint64_t bytes);

/* Calls one of longhaul's own kernels. */
void lh_cudnn_call_own(LhCudnnJob *j, LhKernelId kernel, LhCall call);

/* The view of a tensor with @rows rows per sequence over all parts. */
LhView lh_cudnn_view(const LhCudnnJob *j, const LhRows *t, uint64_t rows);

/* Whether cuDNN can read the tensor directly: rows in the order of [batch][rows], aligned. */
bool lh_cudnn_is_whole(const LhCudnnJob *j, const LhRows *t, uint64_t rows);

/* A contiguous tensor like @t, without memory. */
LhRows lh_cudnn_like(const LhCudnnJob *j, const LhRows *t, uint64_t rows, enum lh_storage storage);

/* Likewise, in scratch memory. */
LhRows lh_cudnn_scratch_for(LhCudnnJob *j, const LhRows *t, uint64_t rows, enum lh_storage storage);

/* Copies rows between tensors of any parts, with the kernel take_k on an operand that has only
 * k. */
void lh_cudnn_copy_rows(LhCudnnJob *j, const LhRows *from, const LhRows *to, uint64_t rows);

/* An operand of the call as a contiguous tensor: itself or a copy. */
LhRows lh_cudnn_read_whole(LhCudnnJob *j, LhRows t, uint64_t rows);

/* to += from, or to = from with @first. @from is contiguous and 16-bit. */
void lh_cudnn_add_rows(LhCudnnJob *j, const LhRows *from, const LhRows *to, uint64_t rows,
                       bool first);

/* Zeroes the rows. */
void lh_cudnn_zero_rows(LhCudnnJob *j, const LhRows *t, uint64_t rows);

/* Address of row @row; NULL while memory is only measured. */
void *lh_cudnn_row_at(const LhRows *t, uint64_t row);

/* ---- cudnn_blocks.c ---- */

/* Sets the number of key runs: one, or one per part. */
void lh_cudnn_count_runs(LhCudnnJob *j);

/* Sets the blocks of all queries with a run of keys. */
void lh_cudnn_cut_run(LhCudnnJob *j, uint32_t run);

/* The k or v of a run of keys. */
LhRows lh_cudnn_of_run(const LhCudnnJob *j, LhRows t, uint32_t run);

/* Takes one workspace for all blocks, which run one after another. */
void lh_cudnn_reserve_workspace(LhCudnnJob *j, bool backward);

/* Runs a block's plan. @tensors: memory of the call's tensors; scalars are added. */
void lh_cudnn_run_block(LhCudnnJob *j, const LhCudnnBlock *b, bool backward,
                        void *const tensors[LH_CUDNN_TENSORS]);

/* ---- cudnn_forward.c, cudnn_backward.c ---- */

/* The kernels of longhaul's table that cuDNN computes, by their names there. */
void lh_cudnn_attention(LhCudnnJob *j);
void lh_cudnn_attention_fwd(LhCudnnJob *j);
void lh_cudnn_attention_block(LhCudnnJob *j);
void lh_cudnn_attention_bwd_o(LhCudnnJob *j);
