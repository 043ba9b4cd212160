/*
 * What every fast kernel is made of: conversion, packing, tile products; and the level's row.
 */
#include "kernels/cpu/simd/simd.h"

#if defined(__F16C__)
#include <immintrin.h>
#endif

#define SUMS 12U

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
    }
}

/* Converts row @index of the pack into its room and returns the factor that is still to come. */
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
        const LhNcclComms first = lh_load_lanes(q->first + r), last = lh_load_lanes(q->last + r);

        for (size_t j = 0; j < keys; j++) {
            float *at = weights + j * LH_TILE + r;
            const LhNcclComms position = k->at[j] - (LhNcclComms){ 0 };
            const LhNcclComms seen = (position >= first) & (position <= last);

            lh_store(at, lh_select(seen, lh_load(at), lh_splat(hidden)));
        }
    }
}

/* Every processor with AVX2 converts fp16 too (F16C); not all compilers can ask for that. */
static bool
has(void)
{
#if defined(__AVX512F__)
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
           __builtin_cpu_supports("fma");
#elif defined(__AVX2__)
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
#else
    return true;
#endif
}

/* As many chains as hide the latency of an addition at two per cycle. */
static uint64_t
multiply_adds(uint64_t rounds, float *result)
{
    LhVector sum[SUMS], x = lh_splat(*result), y = x;

    LH_UNROLL
    for (unsigned i = 0; i < SUMS; i++)
        sum[i] = lh_splat((float)i);
    for (uint64_t r = 0; r < rounds; r++) {
        /* Keeps the compiler from working the loop out. */
        __asm__ volatile("" : : "m"(x), "m"(y));
        LH_UNROLL
        for (unsigned i = 0; i < SUMS; i++)
            sum[i] = sum[i] * x + y;
    }
    LH_UNROLL
    for (unsigned i = 1; i < SUMS; i++)
        sum[0] += sum[i];
    *result = sum[0][0];
    return rounds * SUMS * LH_VL * 2;
}

#define LH_STRING_(x) #x
#define LH_STRING(x) LH_STRING_(x)

const LhCpuLevel LH_SIMD(cpu) = {
    .name = LH_STRING(LH_LEVEL),
    .lanes = LH_VL,
    .has = has,
    .to_fp32 = LH_SIMD(to_fp32),
    .from_fp32 = LH_SIMD(from_fp32),
    .forward = LH_SIMD(forward),
    .backward = LH_SIMD(backward),
    .state_apply = LH_SIMD(state_apply),
    .state_sum = LH_SIMD(state_sum),
    .gemm = LH_SIMD(gemm),
    .multiply_adds = multiply_adds,
};
