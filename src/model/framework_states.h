/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bytes of a framework's optimizer: what it holds of a parameter, and what it moves.
 */
#pragma once

#include "model/framework.h"

/* Bytes per parameter of master copy and moments, and of its stored gradient; with 16-bit
 * activations. */
double lh_framework_optimizer_bytes(const LhFramework *framework);
double lh_framework_gradient_bytes(const LhFramework *framework);

/* Bytes per parameter that one pass of the optimizer reads and writes: the gradient, what it
 * updates, the moments, and 16-bit weights rounded from a master copy. */
double lh_framework_touched_bytes(const LhFramework *framework);

/* Memory traffic of the optimizer per parameter that the rank updates, with the states as they are
 * set: kernels_optimizer if they are those of the file, and else in proportion to the touched
 * bytes. */
double lh_framework_optimizer_traffic(const LhFramework *framework);
