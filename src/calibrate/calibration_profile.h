/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A calibration as files: a longhaul.profile/2 document of its constants, and a topology of its
 * cluster.
 */
#pragma once

#include "calibrate/calibration.h"

/* Appends the longhaul.profile/2 document called @name. @date: of the measurement, "2026-01-31". */
void lh_calibration_write(const LhCalibration *calibration, const char *name, const char *date,
                          GString *out);

/* Appends the longhaul.topology/2 document of its cluster, called @name. */
void lh_calibration_write_topology(const LhCalibration *calibration, const char *name,
                                   const char *date, GString *out);
