/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Measures this machine, or a cluster of them, and fits the constants that the simulator needs: a
 * profile for the cluster "this-machine", or for the one that was found. Method and formulas:
 * docs/manual/validation.md.
 */
#pragma once

#include "calibrate/calibration.h"

/* LH_ERROR_NO if a kernel cannot be called or a fit is impossible; LH_ERROR_RUNTIME if there is no
 * memory to call one, or processes do not answer or were not started alike. Caller frees. */
LhCalibration *lh_calibrate(const LhCalibrateParams *params, GError **error);
