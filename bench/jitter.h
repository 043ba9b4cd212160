/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Jitter of the patterns' compute ops: a hash shared by all programs of this folder, C and C++, so
 * that they simulate the same times.
 */
#pragma once

#include <stdint.h>

/* Deviation of a rank's step, in [-1, 1). */
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
