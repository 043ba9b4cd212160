/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Building blocks of the fast kernels: conversion, packing, tile products.
 */
#include "kernels/cpu/simd/simd.h"

#if defined(__F16C__)
#include <immintrin.h>
#endif

void
LH_SIMD(product_panels)(const LhProduct *p)
{
    lh_product(p, (LhStrides){ 1, LH_MR });
}

void
LH_SIMD(product_columns)(const LhProduct *p)
{
    lh_product(p, (LhStrides){ 1, LH_TILE });
}

void
LH_SIMD(product_rows)(const LhProduct *p)
{
    lh_product(p, (LhStrides){ LH_TILE, 1 });
}

static void
from_fp16(float *target, const uint16_t *source, size_t count)
{
    size_t i = 0;

#if defined(__F16C__)
    for (; i + 8 <= count; i += 8)
        _mm256_storeu_ps(target + i,
                         _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(source + i))));
#endif
    for (; i < count; i++)
        target[i] = lh_fp16_to_float(source[i]);
}

static void
to_fp16(uint16_t *target, const float *source, size_t count)
{
    size_t i = 0;

#if defined(__F16C__)
    for (; i + 8 <= count; i += 8)
        _mm_storeu_si128((__m128i *)(target + i),
                         _mm256_cvtps_ph(_mm256_loadu_ps(source + i), _MM_FROUND_TO_NEAREST_INT));
#endif
    for (; i < count; i++)
        target[i] = lh_fp16_from_float(source[i]);
}

void
LH_SIMD(to_fp32)(float *target, const void *source, enum lh_storage storage, uint64_t count)
{
    switch (storage) {
    case LH_STORAGE_FP32:
        memcpy(target, source, count * sizeof(float));
        break;
    case LH_STORAGE_BF16:
        for (size_t i = 0; i < count; i++)
            target[i] = lh_bf16_to_float(((const uint16_t *)source)[i]);
        break;
    case LH_STORAGE_FP16:
        from_fp16(target, source, count);
        break;
    case LH_STORAGE_FP64:
        for (size_t i = 0; i < count; i++)
            target[i] = (float)((const double *)source)[i];
        break;
    case LH_STORAGE_INT8: /* codes are no numbers without their scales (kernels/cpu/quantise.h) */
        break;
    }
}

void
LH_SIMD(from_fp32)(void *target, enum lh_storage storage, const float *source, uint64_t count)
{
    switch (storage) {
    case LH_STORAGE_FP32:
        memcpy(target, source, count * sizeof(float));
        break;
    case LH_STORAGE_BF16:
        for (size_t i = 0; i < count; i++)
            ((uint16_t *)target)[i] = lh_bf16_from_float(source[i]);
        break;
    case LH_STORAGE_FP16:
        to_fp16(target, source, count);
        break;
    case LH_STORAGE_FP64:
        for (size_t i = 0; i < count; i++)
            ((double *)target)[i] = (double)source[i];
        break;
    case LH_STORAGE_INT8:
        break;
    }
}

/* Converts row @index of the pack into its room and returns the factor still to be applied. */
static float
fetch(const LhPack *p, size_t index)
{
    const uint64_t row = p->first + index;
    const LhRows *t = p->tensor;

    lh_expect_row(t, p->sequence, row, p->rows, p->head);
    LH_SIMD(to_fp32)(p->row, lh_rows_at(t, p->sequence, row, p->head), t->storage, t->dim);
    return p->weights == NULL ? p->scale : p->scale * (float)p->weights[row];
}

void
LH_SIMD(pack_lanes)(const LhPack *p, float *target, size_t width)
{
    const size_t dim = p->tensor->dim, rows = lh_round(p->count, LH_VL);

    for (size_t r = 0; r < rows; r++) {
        float *lane = target + r / width * width * dim + r % width;
        const float factor = r < p->count ? fetch(p, r) : 0;

        for (size_t c = 0; c < dim; c++)
            lane[c * width] = r < p->count ? p->row[c] * factor : 0;
    }
}

void
LH_SIMD(pack_rows)(const LhPack *p, float *target, size_t width)
{
    const size_t dim = p->tensor->dim, padded = lh_round(dim, width);

    memset(p->row + dim, 0, (padded - dim) * sizeof(float));
    for (size_t r = 0; r < p->count; r++) {
        const float factor = fetch(p, r);

        for (size_t c = 0; c < padded; c += width) {
            float *panel = target + (c * LH_TILE + r * width);

            for (size_t i = 0; i < width; i++)
                panel[i] = p->row[c + i] * factor;
        }
    }
}

void
LH_SIMD(hide)(float *weights, const LhTileQueries *q, const LhTileKeys *k, size_t rows, size_t keys,
              float hidden)
{
    for (size_t r = 0; r < rows; r += LH_VL) {
        const LhLanes first = lh_load_lanes(q->first + r), last = lh_load_lanes(q->last + r);

        for (size_t j = 0; j < keys; j++) {
            float *at = weights + j * LH_TILE + r;
            const LhLanes position = k->at[j] - (LhLanes){ 0 };
            const LhLanes seen = (position >= first) & (position <= last);

            lh_store(at, lh_select(seen, lh_load(at), lh_splat(hidden)));
        }
    }
}
