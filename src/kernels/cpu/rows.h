/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A tensor of an operand, divided into parts along its rows: [B][n][heads][dim]. Kernels address
 * rows by their index over all parts.
 */
#pragma once

#include "kernels/call.h"
#include "kernels/cpu/convert.h"

#include <stddef.h>

typedef struct {
    unsigned char *data; /* NULL: the call has no such tensor */
    uint64_t part_bytes;
    uint64_t part_rows; /* per sequence */
    uint32_t heads;
    uint32_t dim;
    enum lh_storage storage;
    uint64_t first; /* index of the row that counts as row 0 */
} LhRows;

/* Bytes of a tensor of @batch sequences in one part. */
static inline uint64_t
lh_rows_bytes(const LhRows *t, uint32_t batch)
{
    return (uint64_t)batch * t->part_rows * t->heads * t->dim * lh_storage_bytes(t->storage);
}

/* Returns the dim elements of one row and head. */
static inline void *
lh_rows_at(const LhRows *t, uint64_t sequence, uint64_t row, uint32_t head)
{
    const uint64_t part = (t->first + row) / t->part_rows;
    const uint64_t local = (t->first + row) % t->part_rows;
    const uint64_t index = ((sequence * t->part_rows + local) * t->heads + head) * t->dim;

    return t->data + part * t->part_bytes + index * lh_storage_bytes(t->storage);
}

static inline double
lh_element_get(const void *data, enum lh_storage storage, uint64_t index)
{
    switch (storage) {
    case LH_STORAGE_FP64:
        return ((const double *)data)[index];
    case LH_STORAGE_FP32:
        return (double)((const float *)data)[index];
    case LH_STORAGE_BF16:
        return (double)lh_bf16_to_float(((const uint16_t *)data)[index]);
    case LH_STORAGE_FP16:
        return (double)lh_fp16_to_float(((const uint16_t *)data)[index]);
    case LH_STORAGE_INT8:
        return (double)((const int8_t *)data)[index];
    }
    return 0;
}

static inline void
lh_element_put(void *data, enum lh_storage storage, uint64_t index, double x)
{
    switch (storage) {
    case LH_STORAGE_FP64:
        ((double *)data)[index] = x;
        break;
    case LH_STORAGE_FP32:
        ((float *)data)[index] = (float)x;
        break;
    case LH_STORAGE_BF16:
        ((uint16_t *)data)[index] = lh_bf16_from_float((float)x);
        break;
    case LH_STORAGE_FP16:
        ((uint16_t *)data)[index] = lh_fp16_from_float((float)x);
        break;
    case LH_STORAGE_INT8:
        ((int8_t *)data)[index] = (int8_t)x;
        break;
    }
}

/* Returns a row's statistic: fp32, dim 1. */
static inline float *
lh_stat_at(const LhRows *t, uint64_t sequence, uint64_t row, uint32_t head)
{
    return lh_rows_at(t, sequence, row, head);
}

/* Tensors of an operand of one call: lh_rows_q(call, 0) is q, and so on. */
static inline LhRows
lh_rows_of(const LhCall *call, unsigned operand, uint64_t rows, uint32_t heads, uint32_t dim)
{
    const LhView *view = &call->operands[operand];

    return (LhRows){ .data = view->data,
                     .part_bytes = view->part_bytes,
                     .part_rows = rows / view->parts,
                     .heads = heads,
                     .dim = dim,
                     .storage = view->storage };
}

static inline LhRows
lh_rows_q(const LhCall *call, unsigned operand)
{
    const LhKernelArgs *a = call->args;

    return lh_rows_of(call, operand, a->nq, a->heads, a->head_dim);
}

static inline LhRows
lh_rows_stat(const LhCall *call, unsigned operand)
{
    return lh_rows_of(call, operand, call->args->nq, call->args->heads, 1);
}

static inline LhRows
lh_rows_k(const LhCall *call, unsigned operand)
{
    const LhKernelArgs *a = call->args;

    return lh_rows_of(call, operand, a->nk, a->groups, a->head_dim);
}

/* v or dv, stored after k or dk. */
static inline LhRows
lh_rows_v(const LhCall *call, unsigned operand)
{
    LhRows v = lh_rows_k(call, operand);

    v.data += lh_rows_bytes(&v, call->args->batch);
    return v;
}

/* Statistic @index of an accumulator: m and l, or lse alone. */
static inline LhRows
lh_rows_acc_stat(const LhCall *call, unsigned operand, unsigned index)
{
    const LhRows o = lh_rows_q(call, operand);
    LhRows stat = lh_rows_stat(call, operand);

    stat.storage = LH_STORAGE_FP32;
    stat.data += lh_rows_bytes(&o, call->args->batch);
    stat.data += index * lh_rows_bytes(&stat, call->args->batch);
    return stat;
}

/*
 * Whether every operand's parts divide its rows; @key_operands is the bit set of operands with key
 * rows.
 */
static inline bool
lh_parts_divide(const LhCall *call, unsigned operands_count, unsigned key_operands)
{
    for (unsigned i = 0; i < operands_count; i++) {
        const uint64_t rows = (key_operands >> i & 1) != 0 ? call->args->nk : call->args->nq;

        if (call->operands[i].parts == 0 || rows % call->operands[i].parts != 0)
            return false;
    }
    return true;
}

/* Returns the token position of row @row of an operand like @rows, under LH_MASK_POSITIONS. */
static inline uint64_t
lh_row_position(const LhRowsPosition *at, uint64_t stride, const LhRows *rows, uint64_t row)
{
    const int64_t part = (int64_t)(row / rows->part_rows);

    return (uint64_t)(at->start + part * at->part_step) + row % rows->part_rows * stride;
}

/* Whether query row @i sees key row @j under the mask of a call with operands like @q and @k. */
static inline bool
lh_mask_allows(const LhKernelArgs *a, const LhRows *q, const LhRows *k, uint64_t i, uint64_t j)
{
    switch (a->mask) {
    case LH_MASK_POSITIONS:
        return lh_mask_sees(a->rule, lh_row_position(&a->q_at, a->stride, q, i),
                            lh_row_position(&a->k_at, a->stride, k, j));
    case LH_MASK_CAUSAL:
        return (int64_t)j <= (int64_t)i + a->shift;
    default:
        return a->mask == LH_MASK_FULL;
    }
}
