/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Errors of executed training steps against the reference.
 */
#pragma once

#include "execute/step_numerics.h"
#include "reference/tolerance.h"

/*
 * Compares the first executed step with the reference, which must be one step ahead of its initial
 * state. @result must be whole, and @report empty. Rows of the report:
 *
 *   - loss, and grad norm if gradients are clipped: relative errors of the worst rank
 *   - X gradient, of the weights X of all layers: from the first moments, which after the first
 * step are a tenth of the gradient, against the reference's
 *   - X master, the optimizer's fp32 weights: against the initial ones after an Adam step with the
 *     moments found; relative to the size of that update
 *   - X weights, as kernels use them: likewise
 *   - update, fp32 weights of all tensors together: likewise, against the reference's
 *
 * rel_l2 is the error of the worst layer's tensor, over all ranks that hold a part of it. mean
 * (over layers) and row (the worst) are in units of the expected rounding error (step_compare.c),
 * with the gates of tolerance.h. A quantity that no rank holds has no row. Elements whose moments
 * no rank holds, and NaNs, exceed all gates.
 */
void lh_step_compare(const LhStepNumerics *numerics, const LhRunResult *result,
                     LhErrorReport *report);

/* Compares the losses of several consecutive steps and adds the row "losses" if there is more than
 * one: the worst error, relative to the first loss. */
void lh_step_compare_losses(const LhStepNumerics *numerics, const double *losses,
                            const double *reference, uint64_t steps, LhErrorReport *report);
