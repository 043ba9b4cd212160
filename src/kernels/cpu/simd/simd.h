/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Vectors, their exponential, panels and tile products for the files simd_*.c. These are compiled
 * once per level: LH_LEVEL names it, and the compiler's target decides the width.
 *
 * Products are C[rows][columns] (+)= A B with C in memory and one block of C, LH_MR rows by one or
 * two vectors, in registers. B is stored in panels of LH_NR columns, so that a step of depth reads
 * whole consecutive vectors. Elements of A are broadcast, at two strides that are constants of the
 * call.
 */
#pragma once

#include "kernels/cpu/cpu.h"
#include "kernels/cpu/tile_mask.h"

#include <stddef.h>
#include <string.h>

#define LH_JOIN_(a, b) lh_##a##_##b
#define LH_JOIN(a, b) LH_JOIN_(a, b)
/* A function's or object's name at this level, such as lh_forward_avx512. */
#define LH_SIMD(name) LH_JOIN(name, LH_LEVEL)

#if defined(__AVX512F__)
#define LH_VL 16
#define LH_MR 8
#elif defined(__AVX2__)
#define LH_VL 8
#define LH_MR 4
#else
#define LH_VL 4
#define LH_MR 4
#endif
#define LH_NR (2 * LH_VL)
_Static_assert(LH_TILE % LH_MR == 0 && LH_TILE % LH_NR == 0, "tiles are whole panels");

#define LH_INLINE static inline __attribute__((always_inline))
#if defined(__clang__)
#define LH_UNROLL _Pragma("clang loop unroll(full)")
#else
#define LH_UNROLL _Pragma("GCC unroll 16")
#endif

typedef float LhVector __attribute__((vector_size(4 * LH_VL)));
/* In memory: aligned, and unaligned. */
typedef float LhVectorAligned __attribute__((vector_size(4 * LH_VL), may_alias));
typedef float LhVectorAny __attribute__((vector_size(4 * LH_VL), may_alias, aligned(4)));
typedef int32_t LhLanes __attribute__((vector_size(4 * LH_VL)));
typedef uint32_t LhBits __attribute__((vector_size(4 * LH_VL)));
typedef int32_t LhLanesAny __attribute__((vector_size(4 * LH_VL), may_alias, aligned(4)));

LH_INLINE LhVector
lh_splat(float x)
{
    return x - (LhVector){ 0 };
}

LH_INLINE LhVector
lh_load(const float *p)
{
    return *(const LhVectorAligned *)p;
}

LH_INLINE void
lh_store(float *p, LhVector x)
{
    *(LhVectorAligned *)p = x;
}

LH_INLINE LhVector
lh_load_any(const float *p)
{
    return *(const LhVectorAny *)p;
}

LH_INLINE LhLanes
lh_load_lanes(const int32_t *p)
{
    return *(const LhLanesAny *)p;
}

/* Per lane, a where the mask's bits are set, else b. */
LH_INLINE LhVector
lh_select(LhLanes mask, LhVector a, LhVector b)
{
    return (LhVector)((mask & (LhLanes)a) | (~mask & (LhLanes)b));
}

LH_INLINE LhVector
lh_max(LhVector a, LhVector b)
{
    return lh_select(a > b, a, b);
}

/*
 * e^x to about 1e-7, for x up to 88; 0 below -87.3 (and for -inf). x = n ln 2 + r: adding 1.5 2^23
 * rounds n to an integer in the low bits, which are shifted to the exponent; e^r is the polynomial
 * of Cephes' expf.
 */
LH_INLINE LhVector
lh_exp(LhVector x)
{
    const LhVector top = lh_splat(88.0F), magic = lh_splat(0x1.8p23F);
    const LhVector clamped = lh_select(x > top, top, x);
    const LhVector shifted = clamped * 1.44269504088896341F + magic;
    const LhVector n = shifted - magic;
    const LhVector r = (clamped - n * 0.693359375F) + n * 2.12194440e-4F;
    LhVector p = r * 1.9875691500e-4F + 1.3981999507e-3F;

    p = p * r + 8.3334519073e-3F;
    p = p * r + 4.1665795894e-2F;
    p = p * r + 1.6666665459e-1F;
    p = p * r + 5.0000001201e-1F;
    p = p * (r * r) + r + 1.0F;
    p = (LhVector)((LhBits)p + ((LhBits)shifted << 23));
    return (LhVector)((LhLanes)p & ~(x < -87.3F));
}

LH_INLINE size_t
lh_round(size_t x, size_t multiple)
{
    return (x + multiple - 1) / multiple * multiple;
}

LH_INLINE size_t
lh_least(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* Scratch of a call, allocated in whole cache lines. */
typedef struct {
    float *next;
} LhScratch;

LH_INLINE float *
lh_take(LhScratch *s, size_t floats)
{
    float *taken = s->next;

    s->next += lh_round(floats, 16);
    return taken;
}

#define LH_ROWS_AHEAD 8 /* converting this many rows takes longer than a memory access */

/*
 * Prefetches the row LH_ROWS_AHEAD after row @row of @rows, or, beyond the last, one of the first
 * rows of the next head. Rows of a head are all heads' length apart, too far for the hardware
 * prefetcher. Inline also because gcc considers a function that only prefetches free of effects and
 * removes its calls.
 */
LH_INLINE void
lh_expect_row(const LhRows *t, uint64_t sequence, uint64_t row, uint64_t rows, uint32_t head)
{
    const size_t bytes = t->dim * lh_storage_bytes(t->storage);
    uint64_t ahead = row + LH_ROWS_AHEAD;
    const char *next;

    if (ahead >= rows) {
        ahead -= rows;
        head++;
    }
    if (ahead >= rows || head >= t->heads)
        return;
    next = lh_rows_at(t, sequence, ahead, head);
    for (size_t i = 0; i < bytes; i += LH_SCRATCH_ALIGN)
        __builtin_prefetch(next + i);
}

typedef struct {
    float *c;
    size_t c_stride;      /* distance of rows */
    size_t rows, columns; /* rounded up: LH_MR must divide rows' memory, LH_VL columns' */
    size_t depth;
    const float *a;
    size_t a_panel; /* distance of panels of LH_MR rows */
    const float *b;
    size_t b_panel; /* distance of panels of LH_NR columns */
    bool add;       /* adds to C */
} LhProduct;

/* Distances in A, to the next row and to the next step of depth: constants. */
typedef struct {
    size_t row, depth;
} LhStrides;

/*
 * Computes one block. The sum starts at zero and is added to C at the end: shorter chains round
 * less.
 */
LH_INLINE void
lh_block(const LhProduct *p, float *c, const float *a, const float *b, LhStrides of_a,
         unsigned vectors)
{
    const size_t depth = p->depth, c_stride = p->c_stride; /* local: no store can alias these */
    const bool add = p->add;
    LhVector sum[LH_MR][2];

    LH_UNROLL
    for (unsigned i = 0; i < LH_MR; i++)
        sum[i][0] = sum[i][1] = (LhVector){ 0 };
    for (size_t k = 0; k < depth; k++) {
        const LhVector b0 = lh_load(b + k * LH_NR);
        const LhVector b1 = lh_load(b + k * LH_NR + (vectors - 1) * LH_VL);

        LH_UNROLL
        for (unsigned i = 0; i < LH_MR; i++) {
            const LhVector x = lh_splat(a[i * of_a.row + k * of_a.depth]);

            sum[i][0] += x * b0;
            if (vectors == 2)
                sum[i][1] += x * b1;
        }
    }
    LH_UNROLL
    for (unsigned i = 0; i < LH_MR; i++) {
        LH_UNROLL
        for (unsigned v = 0; v < vectors; v++) {
            float *at = c + i * c_stride + v * LH_VL;

            if (add)
                sum[i][v] += lh_load(at);
            lh_store(at, sum[i][v]);
        }
    }
}

LH_INLINE void
lh_product(const LhProduct *p, LhStrides of_a)
{
    const float *b = p->b;

    for (size_t n = 0; n < p->columns; n += LH_NR, b += p->b_panel) {
        const float *a = p->a;

        for (size_t m = 0; m < p->rows; m += LH_MR, a += p->a_panel) {
            float *c = p->c + m * p->c_stride + n;

            if (p->columns - n > LH_VL)
                lh_block(p, c, a, b, of_a, 2);
            else
                lh_block(p, c, a, b, of_a, 1);
        }
    }
}

/*
 * A in panels of LH_MR rows (a_panel floats each); as a tile [depth][LH_TILE]; as a tile
 * [rows][..].
 */
void LH_SIMD(product_panels)(const LhProduct *p);
void LH_SIMD(product_columns)(const LhProduct *p);
void LH_SIMD(product_rows)(const LhProduct *p);

/*
 * Rows [first, first + count) of @rows of one head, converted, times @scale and, if given,
 * weights[row].
 */
typedef struct {
    const LhRows *tensor;
    uint64_t sequence, first;
    size_t count;
    uint64_t rows;
    uint32_t head;
    float scale;
    const double *weights;
    float *row; /* room for one row, rounded up to LH_NR */
} LhPack;

/*
 * Packs a tile of at most LH_TILE rows and writes only the part that products read: the cost of a
 * short tile is proportional to its rows. Rows are lanes: [LH_TILE / width][dim][width]; zeros
 * beyond count, up to a whole vector.
 */
void LH_SIMD(pack_lanes)(const LhPack *p, float *target, size_t width);

/* Packs a tile in panels of columns: [dim / width][LH_TILE][width]; zeros beyond dim. */
void LH_SIMD(pack_rows)(const LhPack *p, float *target, size_t width);

/*
 * Sets the weights [key][query] of a pair of tiles to @hidden where the query does not see the key.
 */
void LH_SIMD(hide)(float *weights, const LhTileQueries *q, const LhTileKeys *k, size_t rows,
                   size_t keys, float hidden);

void LH_SIMD(to_fp32)(float *target, const void *source, enum lh_storage storage, uint64_t count);
void LH_SIMD(from_fp32)(void *target, enum lh_storage storage, const float *source, uint64_t count);
void LH_SIMD(forward)(const LhForward *f);
void LH_SIMD(backward)(const LhBackward *w);
void LH_SIMD(state_apply)(const LhStateApply *s);
void LH_SIMD(state_sum)(const LhStateSum *s);
void LH_SIMD(gemm)(const LhGemm *g);
extern const LhCpuLevel LH_SIMD(cpu);
