/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rounding noise of the reference: how far a correct execution may be from it (LhModelNoise).
 */
#pragma once

#include "reference/model_reference.h"
#include "reference/reference.h"

/* Applies the reference's noise to rows as they are stored. */
void lh_model_disturb(LhModelReference *reference, double *rows, uint64_t rows_count,
                      uint64_t width);
/*
 * Likewise of a result of attention by heads. Its terms may be larger than the result: @size2 are
 * the squared sizes per row, @more2 (or NULL) is added to them.
 */
void lh_model_disturb_heads(LhModelReference *reference, const LhReference *attention,
                            double *tensor, uint64_t rows, const double *size2,
                            const double *more2);
/* Returns the noise of a sum; @terms2 is the sum of its squared terms. */
double lh_model_noise_of_sum(LhModelReference *reference, double terms2);
/* lh_math_product_dw() with the noise of its sums over rows. */
void lh_model_product_dw(LhModelReference *reference, const LhMathProduct *p, const double *x,
                         const double *dy, double *dw);
