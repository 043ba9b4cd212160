/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rounding noise of the reference: how far a correct execution may be from it (LhModelNoise).
 */
#pragma once

#include "reference/model_reference.h"

/* Applies the reference's noise to rows as they are stored. */
void lh_model_disturb(LhModelReference *reference, double *rows, uint64_t rows_count,
                      uint64_t width);
/* Returns the noise of a sum; @terms2 is the sum of its squared terms. */
double lh_model_noise_of_sum(LhModelReference *reference, double terms2);
/* lh_math_product_dw() with the noise of its sums over rows. */
void lh_model_product_dw(LhModelReference *reference, const LhMathProduct *p, const double *x,
                         const double *dy, double *dw);
