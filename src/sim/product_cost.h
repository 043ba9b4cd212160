/*
 * How long a product of matrices takes: docs/model.md, "Products outside attention".
 */
#pragma once

#include "sim/device.h"

/*
 * Seconds that the matrix units take for an m x k matrix times a k x n one, alone on the device and
 * without regard to memory. @rounding is set to whole waves over those needed, at least 1.
 */
double lh_product_seconds(const LhDevice *device, uint64_t m, uint64_t n, uint64_t k,
                          double *rounding);
