/* SPDX-License-Identifier: Apache-2.0 */
/*
 * 8-bit moments as kernels/sizes.h defines them: codes of a block of parameters and its scale. A
 * scale is rounded to fp32 before codes are computed with it.
 */
#pragma once

#include <math.h>
#include <stdint.h>

#define LH_CODE_FIRST 127.0  /* largest code of a first moment */
#define LH_CODE_SECOND 255.0 /* and of the root of a second one */

static inline void
lh_codes_load_first(const int8_t *codes, float scale, uint64_t count, double *m)
{
    for (uint64_t i = 0; i < count; i++)
        m[i] = codes[i] * (double)scale;
}

static inline void
lh_codes_load_second(const uint8_t *codes, float scale, uint64_t count, double *v)
{
    for (uint64_t i = 0; i < count; i++) {
        const double root = codes[i] * (double)scale;

        v[i] = root * root;
    }
}

/* The nearest code, of which there are none beyond @largest. */
static inline double
lh_code_of(double value, float scale, double largest)
{
    return scale > 0 ? fmax(fmin(nearbyint(value / (double)scale), largest), -largest) : 0;
}

/* Both return the scale of the block. */
static inline float
lh_codes_store_first(const double *m, uint64_t count, int8_t *codes)
{
    double largest = 0;
    float scale;

    for (uint64_t i = 0; i < count; i++)
        largest = fmax(largest, fabs(m[i]));
    scale = (float)(largest / LH_CODE_FIRST);
    for (uint64_t i = 0; i < count; i++)
        codes[i] = (int8_t)lh_code_of(m[i], scale, LH_CODE_FIRST);
    return scale;
}

static inline float
lh_codes_store_second(const double *v, uint64_t count, uint8_t *codes)
{
    double largest = 0;
    float scale;

    for (uint64_t i = 0; i < count; i++)
        largest = fmax(largest, v[i]);
    scale = (float)(sqrt(largest) / LH_CODE_SECOND);
    for (uint64_t i = 0; i < count; i++)
        codes[i] = (uint8_t)lh_code_of(sqrt(v[i]), scale, LH_CODE_SECOND);
    return scale;
}
