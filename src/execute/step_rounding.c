/* SPDX-License-Identifier: Apache-2.0 */
#include "execute/step_rounding.h"

#include "step/step.h"

/* ---- the formula ---- */

double
lh_step_roundoff(LhDtype dtype)
{
    return dtype == LH_DTYPE_FP32 ? LH_FP32_ROUNDOFF : dtype == LH_DTYPE_FP16 ? 0x1p-11 : 0x1p-8;
}

/* Largest number of terms that a product sums. */
static double
longest_sum(const LhStepNumerics *n)
{
    const LhModelShape *s = &n->reference->shape;
    const uint64_t widths =
        MAX(MAX(MAX(s->hidden, s->heads * s->head_dim), MAX(s->ffn, s->vocabulary)),
            MAX(s->expert_ffn, s->shared_ffn));

    return (double)MAX(widths, s->sequences * s->tokens);
}

static LhDtype
dtype_of(const LhStepNumerics *n)
{
    return lh_step_params(n->program)->module.attention.dtype;
}

double
lh_step_rounding(const LhStepNumerics *n, uint32_t roundings)
{
    const double u = lh_step_roundoff(dtype_of(n));
    const double sums = longest_sum(n) / 4 * LH_FP32_ROUNDOFF * LH_FP32_ROUNDOFF;

    return sqrt(roundings * (u * u + sums));
}

/* ---- the measurement ---- */

static double
underflow_of(LhDtype dtype)
{
    return dtype == LH_DTYPE_FP16 ? 0x1p-25 : 0;
}

LhModelNoise
lh_step_rounding_noise(const LhStepNumerics *n, uint64_t seed)
{
    return (LhModelNoise){ .of_number = lh_step_roundoff(dtype_of(n)),
                           .of_row = sqrt(longest_sum(n)) / 2 * LH_FP32_ROUNDOFF,
                           .absolute = underflow_of(dtype_of(n)),
                           .seed = seed };
}

void
lh_step_spread_add(LhSpread *s, double error2)
{
    s->error2 += error2;
    s->error4 += error2 * error2;
}

#define ONE_IN_A_MILLION 4.75 /* z of the normal distribution */

/*
 * The square of an error is a mean of few squares. It varies from step to step like the measured
 * ones: as chi^2 of k degrees of freedom over k, with variance 2 / k. The bound follows by Wilson
 * and Hilferty: mean (1 - a + z sqrt(a))^3 with a = 2 / (9 k).
 */
double
lh_step_spread_bound2(const LhSpread *s)
{
    const double mean = s->error2 / LH_DISTURBED_STEPS;
    const double variance = fmax(s->error4 / LH_DISTURBED_STEPS - mean * mean, 0);
    const double a = mean > 0 ? variance / (9 * mean * mean) : 0;

    return mean * pow(1 - a + ONE_IN_A_MILLION * sqrt(a), 3);
}

/* ---- sums and reports ---- */

double
lh_step_distance2(const double *a, const double *b, uint64_t count)
{
    double sum = 0;

    for (uint64_t i = 0; i < count; i++)
        sum += (a[i] - b[i]) * (a[i] - b[i]);
    return sum;
}

void
lh_step_add_error(LhErrorReport *report, LhErrorRow row)
{
    row.ok = row.mean <= LH_TOLERANCE_MEAN && row.row <= LH_TOLERANCE_ROW;
    report->ok = report->ok && row.ok;
    report->rows = g_renew(LhErrorRow, report->rows, report->rows_count + 1);
    report->rows[report->rows_count++] = row;
}
