/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How far executed training steps are from the reference.
 */
#pragma once

#include "execute/step_numerics.h"
#include "reference/tolerance.h"

/*
 * How far the first step, which was run, is from the reference, which has come one step far;
 * @result is whole. The rows of @report, which is empty:
 *
 *   - loss, and grad norm if gradients are clipped: relative errors, of the worst rank
 *   - X gradient, of the weights X of all layers, from the first moments, which after the first
 *     step are a tenth of it: against the reference's
 *   - X master, fp32 weights of the optimizer: against what the moments found make of the
 *     initial ones; relative to how far these have moved
 *   - X weights, as kernels use them: likewise
 *   - update, fp32 weights of all tensors together: likewise, against the reference's
 *
 * rel_l2 is the error of the worst layer's tensor, of all ranks that hold a part of it; mean (over
 * layers) and row (the worst) count it in units of what rounding may do (step_compare.c), with the
 * gates of tolerance.h. What no rank holds has no row. An element that no rank has the moments of,
 * and a NaN anywhere, are beyond all gates.
 */
void lh_step_compare(const LhStepNumerics *numerics, const LhRunResult *result,
                     LhErrorReport *report);

/* The same of the losses of several steps in a row, as one more row of the report, if there is more
 * than one: "losses", the worst of their errors, relative to the first loss. */
void lh_step_compare_losses(const LhStepNumerics *numerics, const double *losses,
                            const double *reference, uint64_t steps, LhErrorReport *report);
