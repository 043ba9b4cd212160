/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A call of attention by cuDNN, as it is being enqueued: what the files cudnn_*.c share.
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
    pthread_mutex_t lock; /* of what follows, and of the handle's stream */
    GPtrArray *plans;     /* of LhCudnnPlan, owned */
    char *why;
};

/* Queries that stand one behind the other, with the keys of a run, from its first one on, that
 * they see. */
typedef struct {
    uint64_t first; /* of the queries */
    uint64_t nq, nk;
    LhCudnnMask mask;
    int32_t shift;
} LhCudnnBlock;

/* A call, as it is being enqueued; or only counted, if there is no scratch memory yet. After the
 * first failure nothing is enqueued any more. */
typedef struct {
    LhCudnnDevice *device;
    const LhCall *call;
    const LhKernelArgs *args;
    unsigned kv; /* its operand */
    void *stream;
    bool counts;
    LhCudaScratch scratch;
    uint64_t scratch_most; /* that was in use at a time */
    enum lh_status status;

    /* The runs of keys; then those of the one that is being enqueued. */
    uint32_t runs;
    uint64_t nk;
    GArray *blocks;  /* of LhCudnnBlock */
    bool rows_left;  /* some queries are in none of them */
    void *workspace; /* of the largest need of their plans */
} LhCudnnJob;

/* ---- cudnn_device.c ---- */

/* The device's plan of this shape, which is made if there is none yet. The caller has the lock. */
const LhCudnnPlan *lh_cudnn_device_plan(LhCudnnDevice *device, const LhCudnnShape *shape,
                                        GError **error);

/* ---- cudnn_job.c ---- */

/* Takes @error, which may be NULL; nothing is enqueued any more. */
void lh_cudnn_fail(LhCudnnJob *j, enum lh_status status, GError *error);

/* LH_STATUS_UNSUPPORTED, and why. */
void lh_cudnn_decline(LhCudnnJob *j, const char *format, ...) G_GNUC_PRINTF(2, 3);

/* Scratch memory; its use ends when j->scratch.used is set back, as the stream goes on in order. */
void *lh_cudnn_take(LhCudnnJob *j, uint64_t bytes);

/* Calls one of longhaul's own kernels. */
void lh_cudnn_call_own(LhCudnnJob *j, LhKernelId kernel, LhCall call);

/* Of @rows a sequence in all parts. */
LhView lh_cudnn_view(const LhCudnnJob *j, const LhRows *t, uint64_t rows);

/* Whether a tensor is one to cuDNN: rows lie in the order of [batch][rows], aligned. */
bool lh_cudnn_is_whole(const LhCudnnJob *j, const LhRows *t, uint64_t rows);

/* A whole tensor like @t, without memory. */
LhRows lh_cudnn_like(const LhCudnnJob *j, const LhRows *t, uint64_t rows, enum lh_storage storage);

/* The same in scratch memory. */
LhRows lh_cudnn_scratch_for(LhCudnnJob *j, const LhRows *t, uint64_t rows, enum lh_storage storage);

/* to = from, row by row, whatever parts either has: k taken out of an operand that is k alone. */
void lh_cudnn_copy_rows(LhCudnnJob *j, const LhRows *from, const LhRows *to, uint64_t rows);

/* An operand of the call as cuDNN reads it. */
LhRows lh_cudnn_read_whole(LhCudnnJob *j, LhRows t, uint64_t rows);

/* to += from, or with @first = from: from is whole, of 16 bits. */
void lh_cudnn_add_rows(LhCudnnJob *j, const LhRows *from, const LhRows *to, uint64_t rows,
                       bool first);

/* Rows of zeros. */
void lh_cudnn_zero_rows(LhCudnnJob *j, const LhRows *t, uint64_t rows);

/* Where row @row is; NULL: memory is only counted. */
void *lh_cudnn_row_at(const LhRows *t, uint64_t row);

/* ---- cudnn_blocks.c ---- */

/* How many runs the keys have: one, or as many as parts. */
void lh_cudnn_count_runs(LhCudnnJob *j);

/* The blocks of all queries with a run of keys. */
void lh_cudnn_cut_run(LhCudnnJob *j, uint32_t run);

/* k, or v, of a run of keys, as cuDNN reads it or as it is written. */
LhRows lh_cudnn_of_run(const LhCudnnJob *j, LhRows t, uint32_t run);

/* Blocks of a call come one after the other, and may use the same workspace. */
void lh_cudnn_reserve_workspace(LhCudnnJob *j, bool backward);

/* @tensors: those of the call; the numbers are added to them. */
void lh_cudnn_run_block(LhCudnnJob *j, const LhCudnnBlock *b, bool backward,
                        void *const tensors[LH_CUDNN_TENSORS]);

/* ---- cudnn_forward.c, cudnn_backward.c ---- */

/* The kernels of longhaul's table that cuDNN computes, by their names there. */
void lh_cudnn_attention(LhCudnnJob *j);
void lh_cudnn_attention_fwd(LhCudnnJob *j);
void lh_cudnn_attention_block(LhCudnnJob *j);
void lh_cudnn_attention_bwd_o(LhCudnnJob *j);
