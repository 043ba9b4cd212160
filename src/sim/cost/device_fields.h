/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Device files: their fields, and those of the rows of their list "kernels".
 */
#pragma once

#include "sim/cost/device.h"

extern const LhField lh_device_fields[];       /* of an LhDevice */
extern const LhField lh_device_curve_fields[]; /* of an LhKernelRate */
