/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fields of device files, and of the rows of their list "kernels".
 */
#pragma once

#include "sim/cost/device.h"

extern const LhField lh_device_fields[];       /* of an LhDevice */
extern const LhField lh_device_curve_fields[]; /* of an LhKernelRate */
