/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls of kernels with data in memory. Plain C: shared with device code.
 *
 * A slot lies in memory as `parts` blocks, part_bytes apart. A part holds the tensors of its kind
 * in a fixed order, each contiguous, token-major within a sequence (B sequences, n tokens of the
 * part): q, o, do, dq   [B][n][h][d] kv, dkv        k [B][n][g][d], then v likewise acc o
 * [B][n][h][d] of the slot's element, then fp32 statistics [B][n][h]: m and l, or lse alone lse,
 * delta     [B][n][h] fp32 k, v, dk, dv   [B][n][g][d] scores, probs, dscores   [B][nq][h][keys of
 * the part]: a part has all query rows of the call state, dstate  [B][h][d][d] fp32, row k, column
 * v; one part Row indices continue from part to part; masks use these local indices.
 */
#pragma once

#include "kernels/kernel.h"
#include "kernels/status.h"
#include "model/attention.h"

#include <stdint.h>

/* Element type of an operand's main tensor; statistics and states are always fp32. */
enum lh_storage {
    LH_STORAGE_FP32,
    LH_STORAGE_BF16,
    LH_STORAGE_FP16,
    LH_STORAGE_FP64, /* for tests of the references */
    LH_STORAGE_INT8, /* codes of a quantised tensor; its scales are another operand */
};

static inline uint32_t
lh_storage_bytes(enum lh_storage storage)
{
    return storage == LH_STORAGE_FP64   ? 8
           : storage == LH_STORAGE_FP32 ? 4
           : storage == LH_STORAGE_INT8 ? 1
                                        : 2;
}

static inline enum lh_storage
lh_dtype_storage(LhDtype dtype)
{
    return dtype == LH_DTYPE_FP32   ? LH_STORAGE_FP32
           : dtype == LH_DTYPE_FP16 ? LH_STORAGE_FP16
           : dtype == LH_DTYPE_INT8 ? LH_STORAGE_INT8
                                    : LH_STORAGE_BF16;
}

/* Parts [0, parts) of an operand. */
typedef struct {
    unsigned char *data; /* first part */
    uint32_t parts;
    uint64_t part_bytes; /* from one part to the next */
    enum lh_storage storage;
    uint64_t held_bytes; /* of a part; 0: part_bytes, without gaps between parts */
} LhView;

/*
 * One call: operands in the kernel's order. An operand of queries has args->nq / parts rows a part,
 * one of keys args->nk / parts; both must divide. Operands are aligned to their elements. The
 * kernel may use @scratch and no other memory. Scratch is aligned to LH_SCRATCH_ALIGN, has
 * undefined contents and the size that the machine's row states. Concurrent calls need separate
 * scratch.
 */
typedef struct {
    const LhKernelArgs *args;
    LhView operands[LH_KERNEL_OPERANDS_MAX];
    void *scratch; /* NULL if no bytes are needed */
} LhCall;

#define LH_SCRATCH_ALIGN 64

/* Outputs are unchanged unless the status is OK. */
typedef enum lh_status (*LhKernelRun)(const LhCall *call);
