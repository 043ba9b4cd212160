/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What calibrating processors (calibrate.c) and GPUs (calibrate_gpu.c) share.
 */
#pragma once

#include "calibrate/calibration.h"
#include "measure/fit.h"
#include "runtime/process/processes.h"

/* Says what is measured next, in the first process. */
void lh_calibrate_tell(const LhCalibrateParams *params, const LhProcesses *processes,
                       const char *what);

/* The median of all processes' *@seconds, in place of this one's; *@spread, unless NULL, grows with
 * how far they are apart, if they are not 0. */
bool lh_calibrate_median(const LhProcesses *processes, double *seconds, double *spread,
                         GError **error);

/* @r as a profile has them, with @spread. */
LhFitResiduals lh_calibrate_residuals(const LhResiduals *r, double spread);

/* Collectives of the cluster that has been found, whose ranks are such devices: @device, which the
 * first process has and others need not, gets what was measured of hosts, memory and cores. All
 * processes call it. */
bool lh_calibrate_collectives(const LhCalibrateParams *params, const LhProcesses *processes,
                              LhCalibration *c, LhDevice *device, GError **error);

/* As lh_calibrate(), of a backend with GPUs. */
LhCalibration *lh_calibrate_gpus(const LhCalibrateParams *params, GError **error);
