/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Seeded, counter-based random numbers: a pure function of (seed, a, b), so values do not depend on
 * the order of draws or on threads.
 */
#pragma once

#include <stdint.h>

/* 64 well-mixed bits (splitmix64 finaliser over the three words). */
static inline uint64_t
lh_rng_bits(uint64_t seed, uint64_t a, uint64_t b)
{
    uint64_t x = seed + a * UINT64_C(0x9E3779B97F4A7C15) + b * UINT64_C(0xBF58476D1CE4E5B9);

    x = (x ^ (x >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94D049BB133111EB);
    return x ^ (x >> 31);
}

/* Uniform in [0, 1), 53 bits. */
static inline double
lh_rng_uniform(uint64_t seed, uint64_t a, uint64_t b)
{
    return (double)(lh_rng_bits(seed, a, b) >> 11) * 0x1p-53;
}
