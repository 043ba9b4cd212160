/* SPDX-License-Identifier: Apache-2.0 */
/* Saturating sums and products: UINT64_MAX on overflow. */
#pragma once

#include <stdint.h>

static inline uint64_t
lh_plus(uint64_t a, uint64_t b)
{
    uint64_t sum;

    return __builtin_add_overflow(a, b, &sum) ? UINT64_MAX : sum;
}

static inline uint64_t
lh_times(uint64_t a, uint64_t b)
{
    uint64_t product;

    return __builtin_mul_overflow(a, b, &product) ? UINT64_MAX : product;
}
