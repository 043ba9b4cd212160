/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Errors of an executed forward pass alone against the reference.
 */
#pragma once

#include "execute/step_numerics.h"
#include "reference/tolerance.h"

/*
 * Compares what an executed forward pass leaves with the reference's. @result must be whole, and
 * @report empty. Rows of the report:
 *
 *   - k cache, v cache: keys and values of all tokens. rel_l2 is the error of the worst layer,
 *     relative to the layer's size
 *   - logits: of the last token of each sequence on every rank that holds one. rel_l2 is the error
 *     of the worst such row
 *
 * mean (over layers, or rows of logits) and row (the worst) are in units of the expected rounding
 * error (step_rounding.h), with the gates of tolerance.h. What no rank leaves exceeds all gates.
 */
void lh_prefill_compare(const LhStepNumerics *numerics, const LhRunResult *result, unsigned threads,
                        LhErrorReport *report);
