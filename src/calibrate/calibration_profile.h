/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Output of a calibration: its constants as a longhaul.profile/2 document, its cluster as a
 * topology.
 */
#pragma once

#include "calibrate/calibration.h"

/* Appends the longhaul.profile/2 document called @name. @date: day of the measurement,
 * "2026-01-31". */
void lh_calibration_write(const LhCalibration *calibration, const char *name, const char *date,
                          GString *out);

/* Appends the longhaul.topology/2 document of the cluster, called @name. */
void lh_calibration_write_topology(const LhCalibration *calibration, const char *name,
                                   const char *date, GString *out);
