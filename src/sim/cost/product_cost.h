/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Time of a product of matrices: docs/reference/model.md, "Products outside attention".
 */
#pragma once

#include "kernels/kernel.h"
#include "sim/cost/device.h"

/*
 * Seconds of the matrix units for the products of @shape in one call, alone on the device and
 * without memory limits. Tiles of all products share waves. Sets @rounding to whole waves over
 * waves needed, at least 1.
 */
double lh_product_seconds(const LhDevice *device, const LhProductShape *shape, double rate,
                          double *rounding);
