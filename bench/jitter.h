/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How much longer or shorter than its mean a compute op of the patterns is: a hash that all
 * programs of this folder share, C and C++, so that they play the same times.
 */
#pragma once

#include <stdint.h>

/* In [-1, 1), of a rank and its step. */
static inline double
bench_jitter(uint64_t rank, uint64_t step)
{
    uint64_t x = rank * UINT64_C(0x9E3779B97F4A7C15) + step * UINT64_C(0xBF58476D1CE4E5B9) + 12345;

    x ^= x >> 31;
    x *= UINT64_C(0x94D049BB133111EB);
    x ^= x >> 29;
    x *= UINT64_C(0xBF58476D1CE4E5B9);
    x ^= x >> 32;
    return (double)(x >> 11) / 4503599627370496.0 - 1.0;
}
