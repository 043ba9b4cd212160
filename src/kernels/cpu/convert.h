/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Conversions of one element between its storage type and arithmetic. bf16 and fp16 are rounded to
 * nearest even, from fp32.
 */
#pragma once

#include <stdint.h>
#include <string.h>

static inline uint32_t
lh_float_bits(float x)
{
    uint32_t bits;

    memcpy(&bits, &x, sizeof(bits));
    return bits;
}

static inline float
lh_bits_float(uint32_t bits)
{
    float x;

    memcpy(&x, &bits, sizeof(x));
    return x;
}

static inline float
lh_bf16_to_float(uint16_t h)
{
    return lh_bits_float((uint32_t)h << 16);
}

static inline uint16_t
lh_bf16_from_float(float x)
{
    const uint32_t bits = lh_float_bits(x);
    const uint32_t rounded = bits + 0x7fff + ((bits >> 16) & 1);
    const uint32_t quiet = bits | 0x400000;

    return (uint16_t)((x != x ? quiet : rounded) >> 16);
}

static inline float
lh_fp16_to_float(uint16_t h)
{
    const uint32_t sign = (uint32_t)(h & 0x8000) << 16;
    const uint32_t magnitude = (uint32_t)(h & 0x7fff);

    if (magnitude >= 0x7c00) /* infinities and NaNs */
        return lh_bits_float(sign | 0x7f800000 | (magnitude & 0x3ff) << 13);
    /* The exponent bias is 15 in fp16 and 127 in fp32; the product also normalises subnormals. */
    return lh_bits_float(sign | lh_float_bits(lh_bits_float(magnitude << 13) * 0x1p112f));
}

static inline uint16_t
lh_fp16_from_float(float x)
{
    const uint32_t sign = lh_float_bits(x) >> 16 & 0x8000;
    uint32_t bits = lh_float_bits(x) & 0x7fffffff;

    if (bits > 0x7f800000)
        return (uint16_t)(sign | 0x7e00);
    if (bits >= 0x477ff000) /* 65520 and more round to infinity */
        return (uint16_t)(sign | 0x7c00);
    if (bits < 0x38800000) /* below 2^-14: adding 0.5 leaves multiples of 2^-24, rounded */
        return (uint16_t)(sign | (lh_float_bits(lh_bits_float(bits) + 0.5F) - 0x3f000000));
    bits += 0xfff + (bits >> 13 & 1);
    return (uint16_t)(sign | (bits - 0x38000000) >> 13);
}
