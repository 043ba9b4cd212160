/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Helpers shared by the calibration of processors (calibrate.c) and of GPUs (calibrate_gpu.c).
 */
#pragma once

#include "calibrate/calibration.h"
#include "measure/fit.h"
#include "runtime/process/processes.h"

/* Reports what is measured next; only the first process does. */
void lh_calibrate_tell(const LhCalibrateParams *params, const LhProcesses *processes,
                       const char *what);

/* Replaces *@seconds by its median over all processes. *@spread, unless NULL, is raised to the
 * relative range of the values if that is larger and the median is above 0. */
bool lh_calibrate_median(const LhProcesses *processes, double *seconds, double *spread,
                         GError **error);

/* Converts @r to the residuals of a profile, with @spread. */
LhFitResiduals lh_calibrate_residuals(const LhResiduals *r, double spread);

/* Measures and predicts collectives of the cluster found. Its ranks are devices like @device, which
 * receives the measured constants of hosts, memory and cores. @device is needed in the first
 * process only. All processes must call this. */
bool lh_calibrate_collectives(const LhCalibrateParams *params, const LhProcesses *processes,
                              LhCalibration *c, LhDevice *device, GError **error);

/* lh_calibrate() for a backend with GPUs. */
LhCalibration *lh_calibrate_gpus(const LhCalibrateParams *params, GError **error);
