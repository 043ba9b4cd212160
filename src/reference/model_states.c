/* SPDX-License-Identifier: Apache-2.0 */
#include "reference/model_states.h"

#include <glib.h>
#include <math.h>

/* ---- 16 bits ---- */

/* Precision of a floating-point type, and the exponent of its smallest normal number. */
typedef struct {
    int bits, least;
} Format;

static const Format formats[] = {
    [LH_MODEL_BF16] = { .bits = 8, .least = -126 },
    [LH_MODEL_FP16] = { .bits = 11, .least = -14 },
};

/* The nearest number of the format, of two the one with an even last digit. */
static double
nearest(const Format *f, double x)
{
    const int exponent = x < 0 || x > 0 ? MAX(ilogb(x), f->least) : f->least;
    const double unit = ldexp(1, exponent - f->bits + 1);

    return nearbyint(x / unit) * unit;
}

static void
round_all(LhModelRounding rounding, double *numbers, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++)
        numbers[i] = nearest(&formats[rounding], numbers[i]);
}

/* ---- 8 bits ---- */

/* Replaces numbers by multiples of a @codes-th of the largest magnitude in their block. */
static void
quantise(const LhModelTensor *t, double *numbers, double codes)
{
    g_autofree double *largest = g_new0(double, MAX(t->blocks_count, 1));

    for (uint64_t i = 0; i < t->rows * t->columns; i++)
        largest[t->blocks[i]] = fmax(largest[t->blocks[i]], fabs(numbers[i]));
    for (uint64_t i = 0; i < t->rows * t->columns; i++) {
        const double scale = largest[t->blocks[i]] / codes;

        numbers[i] = scale > 0 ? nearbyint(numbers[i] / scale) * scale : 0;
    }
}

/* ---- all of a tensor ---- */

/* fp16 and 8 bits store roots of second moments. */
static void
round_moments(LhModelRounding moments, const LhModelTensor *t)
{
    const uint64_t count = t->rows * t->columns;
    const bool roots = moments != LH_MODEL_BF16;

    for (uint64_t i = 0; roots && i < count; i++)
        t->second[i] = sqrt(t->second[i]);
    if (moments == LH_MODEL_8BIT) {
        quantise(t, t->first, 127);
        quantise(t, t->second, 255);
    } else {
        round_all(moments, t->first, count);
        round_all(moments, t->second, count);
    }
    for (uint64_t i = 0; roots && i < count; i++)
        t->second[i] *= t->second[i];
}

void
lh_model_round_states(const LhModelStates *states, const LhModelTensor *t)
{
    if (states->weights != LH_MODEL_EXACT)
        round_all(states->weights, t->value, t->rows * t->columns);
    if (states->moments != LH_MODEL_EXACT)
        round_moments(states->moments, t);
}
