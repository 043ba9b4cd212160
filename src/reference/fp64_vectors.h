/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Vectors of fp64 and their exponential, at the width of the processor level. reference_tiles.c and
 * fp64_*.h are compiled once per level; nothing else includes these headers.
 */
#pragma once

#include "reference/reference_tiles.h"

#include <stddef.h>
#include <stdint.h>

#if defined(__AVX512F__)
#define LH_FP64_LANES 8
#define LH_FP64_ROWS 8
#define LH_FP64_VECTORS 2
#elif defined(__AVX2__)
#define LH_FP64_LANES 4
#define LH_FP64_ROWS 4
#define LH_FP64_VECTORS 3
#else
#define LH_FP64_LANES 2
#define LH_FP64_ROWS 4
#define LH_FP64_VECTORS 2
#endif
#define LH_FP64_LINE 8 /* numbers per cache line */
_Static_assert(LH_REFERENCE_TILE % LH_FP64_ROWS == 0 && LH_REFERENCE_PAD % LH_FP64_LANES == 0,
               "tiles are whole blocks");
_Static_assert(LH_FP64_VECTORS *LH_FP64_LANES <= LH_REFERENCE_PANEL,
               "a panel has room for the columns of a block");

#define LH_FP64_INLINE static inline __attribute__((always_inline))
#if defined(__clang__)
#define LH_FP64_UNROLL _Pragma("clang loop unroll(full)")
#else
#define LH_FP64_UNROLL _Pragma("GCC unroll 16")
#endif
/*
 * Not inline, so that the compiler's inlining and contraction to fused multiply-adds are as in a
 * single file.
 */
#define LH_FP64_STATIC static __attribute__((unused))

typedef double LhFp64Vector __attribute__((vector_size(8 * LH_FP64_LANES)));
typedef double LhFp64VectorAny
    __attribute__((vector_size(8 * LH_FP64_LANES), may_alias, aligned(8)));
typedef int64_t LhFp64Bits __attribute__((vector_size(8 * LH_FP64_LANES)));

LH_FP64_INLINE LhFp64Vector
lh_fp64_load(const double *p)
{
    return *(const LhFp64VectorAny *)p;
}

LH_FP64_INLINE void
lh_fp64_store(double *p, LhFp64Vector x)
{
    *(LhFp64VectorAny *)p = x;
}

LH_FP64_INLINE LhFp64Vector
lh_fp64_splat(double x)
{
    return x - (LhFp64Vector){ 0 };
}

LH_FP64_INLINE LhFp64Vector
lh_fp64_choose(LhFp64Bits mask, LhFp64Vector a, LhFp64Vector b)
{
    return (LhFp64Vector)((mask & (LhFp64Bits)a) | (~mask & (LhFp64Bits)b));
}

/*
 * e^x to a few units in the last place for x <= 0; 0 below -708. x = n ln 2 + r: adding 1.5 2^52
 * rounds n to an integer in the low bits; e^r is its series up to r^13 / 13!.
 */
LH_FP64_INLINE LhFp64Vector
lh_fp64_exp(LhFp64Vector x)
{
    static const double series[] = { 1.0 / 479001600,
                                     1.0 / 39916800,
                                     1.0 / 3628800,
                                     1.0 / 362880,
                                     1.0 / 40320,
                                     1.0 / 5040,
                                     1.0 / 720,
                                     1.0 / 120,
                                     1.0 / 24,
                                     1.0 / 6,
                                     1.0 / 2,
                                     1,
                                     1 };
    const LhFp64Bits small = x < -708.0;
    const LhFp64Vector clamped = lh_fp64_choose(small, lh_fp64_splat(-708), x);
    const LhFp64Vector shifted = clamped * 0x1.71547652b82fep0 + 0x1.8p52;
    const LhFp64Vector n = shifted - 0x1.8p52;
    const LhFp64Vector r = (clamped - n * 0x1.62e42fee00000p-1) - n * 0x1.a39ef35793c76p-33;
    LhFp64Vector p = lh_fp64_splat(1.0 / 6227020800);

    LH_FP64_UNROLL
    for (unsigned i = 0; i < sizeof(series) / sizeof(series[0]); i++)
        p = p * r + series[i];
    p = (LhFp64Vector)((LhFp64Bits)p + ((LhFp64Bits)shifted << 52));
    return lh_fp64_choose(small, lh_fp64_splat(0), p);
}
