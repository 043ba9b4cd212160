/* SPDX-License-Identifier: Apache-2.0 */
/* Floating point formats of 16 bits and fewer, and other questions of bits. */
#pragma once

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

static inline uint32_t
ptx_bits_of(float x)
{
    uint32_t bits;

    memcpy(&bits, &x, sizeof(bits));
    return bits;
}

static inline float
ptx_float_of(uint32_t bits)
{
    float x;

    memcpy(&x, &bits, sizeof(x));
    return x;
}

static inline uint64_t
ptx_bits_of_double(double x)
{
    uint64_t bits;

    memcpy(&bits, &x, sizeof(bits));
    return bits;
}

static inline double
ptx_double_of(uint64_t bits)
{
    double x;

    memcpy(&x, &bits, sizeof(x));
    return x;
}

/* NaNs that the device makes have this pattern, whatever went in. */
#define PTX_NAN_F32 0x7fffffffu
#define PTX_NAN_F64 0x7fffffffffffffffu /* of min and max; others keep the quiet bit alone */
#define PTX_NAN_16 0x7fffu

static inline float
ptx_flush(float x)
{
    const uint32_t bits = ptx_bits_of(x);

    return ptx_float_of((bits & 0x7f800000u) == 0 ? bits & 0x80000000u : bits);
}

static inline float
ptx_from_bf16(uint16_t x)
{
    return ptx_float_of((uint32_t)x << 16);
}

static inline float
ptx_from_f16(uint16_t x)
{
    const uint32_t sign = (uint32_t)(x & 0x8000u) << 16, magnitude = x & 0x7fffu;

    if (magnitude >= 0x7c00u) /* Inf and NaN */
        return ptx_float_of(sign | 0x7f800000u | (magnitude & 0x3ffu) << 13);
    /* Half's subnormals are normal here: 2^-24 times an integer. */
    if (magnitude < 0x400u)
        return ptx_float_of(sign | ptx_bits_of((float)magnitude * 0x1p-24f));
    return ptx_float_of(sign | ((magnitude << 13) + ((127u - 15u) << 23)));
}

/*
 * The integer nearest to x * 2^-shift, ties to even (rounding 0), or toward zero (1), down (2),
 * up (3); sticky bits below are all in @x.
 */
static inline uint64_t
ptx_round_shift(uint64_t x, uint32_t shift, int rounding, bool negative)
{
    uint64_t kept, rest, half;

    if (shift == 0)
        return x;
    if (shift > 63) {
        kept = 0;
        rest = x != 0;
        half = 2;
    } else {
        kept = x >> shift;
        rest = x & ((UINT64_C(1) << shift) - 1);
        half = UINT64_C(1) << (shift - 1);
    }
    if (rounding == 0)
        return kept + (rest > half || (rest == half && (kept & 1) != 0));
    if (rest != 0 && ((rounding == 2 && negative) || (rounding == 3 && !negative)))
        return kept + 1;
    return kept;
}

/* A format of 16 bits at most: bits of the exponent and of the fraction. */
typedef struct {
    int exponent, fraction;
} ptx_format;

#define PTX_FORMAT_F16 ((ptx_format){ 5, 10 })
#define PTX_FORMAT_BF16 ((ptx_format){ 8, 7 })

/* A finite double in a narrower IEEE format, rounded once. */
static inline uint32_t
ptx_narrow(double x, ptx_format format, int rounding)
{
    const uint64_t bits = ptx_bits_of_double(x);
    const bool negative = bits >> 63 != 0;
    const int bias = (1 << (format.exponent - 1)) - 1;
    const uint32_t infinity = ((1u << format.exponent) - 1) << format.fraction;
    const uint32_t sign = (uint32_t)negative << (format.exponent + format.fraction);
    int exponent = (int)(bits >> 52 & 0x7ff) - 1023;
    uint64_t fraction = (bits & ((UINT64_C(1) << 52) - 1)) | UINT64_C(1) << 52;
    uint32_t shift = (uint32_t)(52 - format.fraction);
    uint64_t kept;

    if (exponent == 1024)
        return (bits & ((UINT64_C(1) << 52) - 1)) != 0 ? PTX_NAN_16 : sign | infinity;
    if (exponent == -1023)
        return sign | (uint32_t)ptx_round_shift(bits << 1 >> 1 != 0, 64, rounding, negative);
    if (exponent < 1 - bias) { /* subnormal there */
        shift += (uint32_t)(1 - bias - exponent);
        exponent = 1 - bias;
        kept = ptx_round_shift(fraction, shift, rounding, negative);
        return sign | (uint32_t)kept;
    }
    kept = ptx_round_shift(fraction, shift, rounding, negative);
    kept += (uint64_t)(exponent + bias - 1) << format.fraction; /* the carry goes into it */
    if (kept >= infinity) {
        const bool away =
            rounding == 0 || (rounding == 2 && negative) || (rounding == 3 && !negative);

        kept = away ? infinity : infinity - 1;
    }
    return sign | (uint32_t)kept;
}

static inline uint16_t
ptx_to_bf16(float x)
{
    const uint32_t bits = ptx_bits_of(x);

    if (x != x)
        return PTX_NAN_16;
    return (uint16_t)((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16);
}

static inline uint16_t
ptx_to_f16(float x)
{
    return (uint16_t)ptx_narrow((double)x, PTX_FORMAT_F16, 0);
}

/* x + y as a double whose last bit says that bits were lost, so that a second rounding is right. */
static inline double
ptx_add_odd(double x, double y)
{
    const double sum = x + y;
    const double back = sum - x;
    const double error = (x - (sum - back)) + (y - back);
    uint64_t bits = ptx_bits_of_double(sum);

    if (!(fabs(sum) < (double)INFINITY) || error == 0 || (bits & 1) != 0)
        return sum;
    bits += (error > 0) == (sum > 0) ? 1 : UINT64_MAX;
    return ptx_double_of(bits);
}
