/* SPDX-License-Identifier: Apache-2.0 */
#include "reference/model_noise.h"

#include "base/rng.h"

#include <math.h>
#include <stddef.h>

void
lh_model_disturb(LhModelReference *r, double *rows, uint64_t rows_count, uint64_t width)
{
    const LhModelNoise *noise = &r->noise;

    for (uint64_t row = 0; noise->seed != 0 && row < rows_count; row++) {
        double *x = rows + row * width, squares = 0, of_row;

        for (uint64_t i = 0; i < width; i++)
            squares += x[i] * x[i];
        of_row = noise->of_row * sqrt(squares / (double)width);
        for (uint64_t i = 0; i < width; i++) {
            const double by = fabs(x[i]) * noise->of_number + of_row + noise->absolute;
            const uint64_t bits = lh_rng_bits(noise->seed, r->disturbed, row * width + i);

            if (x[i] < 0 || x[i] > 0) /* zeros are exact */
                x[i] += bits >> 63 != 0 ? by : -by;
        }
    }
    r->disturbed++;
}

static double
up_or_down(const LhModelReference *r, uint64_t index)
{
    return (lh_rng_bits(r->noise.seed, r->disturbed, index) >> 63) != 0 ? 1 : -1;
}

void
lh_model_disturb_heads(LhModelReference *r, const LhReference *a, double *tensor, uint64_t rows,
                       const double *size2, const double *more2)
{
    const LhModelNoise *noise = &r->noise;
    const uint64_t d = a->attention.head_dim;
    const double of_terms = hypot(noise->of_number, noise->of_row);

    for (uint64_t row = 0; noise->seed != 0 && row < rows; row++) {
        const double all2 = size2[row] + (more2 != NULL ? more2[row] : 0);
        const double by = of_terms * sqrt(all2 / (double)d) + noise->absolute;

        for (uint64_t i = 0; i < d; i++)
            tensor[row * a->stride + i] += up_or_down(r, row * d + i) * by;
    }
    r->disturbed++;
}

double
lh_model_noise_of_sum(LhModelReference *r, double terms2)
{
    const double by = r->noise.of_row * sqrt(terms2);

    return lh_rng_bits(r->noise.seed, r->disturbed++, 0) >> 63 != 0 ? by : -by;
}

void
lh_model_product_dw(LhModelReference *r, const LhMathProduct *p, const double *x, const double *dy,
                    double *dw)
{
    lh_math_product_dw(p, x, dy, dw);
    for (uint64_t i = 0; r->noise.seed != 0 && i < p->k * p->n; i++) {
        double terms2 = 0;

        for (uint64_t row = 0; row < p->rows; row++) {
            const double term = x[row * p->k + i / p->n] * dy[row * p->n + i % p->n];

            terms2 += term * term;
        }
        dw[i] += lh_model_noise_of_sum(r, terms2);
    }
}
