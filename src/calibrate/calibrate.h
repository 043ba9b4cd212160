/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calibration: measures this machine, or a cluster of machines, and fits the constants that the
 * simulator needs. The result is a profile for the cluster "this-machine" or for the cluster found.
 * Method and formulas: docs/manual/validation.md.
 */
#pragma once

#include "calibrate/calibration.h"

/* Calibrates. LH_ERROR_NO if a kernel cannot be called or a fit is impossible; LH_ERROR_RUNTIME if
 * there is no memory to call a kernel, or if processes do not answer or were started with different
 * options. Caller frees. */
LhCalibration *lh_calibrate(const LhCalibrateParams *params, GError **error);
