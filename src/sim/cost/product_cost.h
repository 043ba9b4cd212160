/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How long a product of matrices takes: docs/reference/model.md, "Products outside attention".
 */
#pragma once

#include "kernels/kernel.h"
#include "sim/cost/device.h"

/*
 * Seconds that the matrix units take for the products of @shape in one call, alone on the device
 * and without regard to memory. Tiles of all of them fill waves together. @rounding is set to whole
 * waves over those needed, at least 1.
 */
double lh_product_seconds(const LhDevice *device, const LhProductShape *shape, double *rounding);
