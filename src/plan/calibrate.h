/*
 * Measures this machine and fits the constants that the simulator needs: a profile for the cluster
 * "this-machine". Method and formulas: docs/validate.md.
 */
#pragma once

#include "plan/profile.h"
#include "runtime/measure.h"

typedef struct {
    LhMeasureParams measure;
    bool quick; /* fewer lengths, one head dimension */
    LhDtype dtype;
    /* Called before each number with what it will be; may be NULL. */
    void (*progress)(void *data, const char *what);
    void *progress_data;
} LhCalibrateParams;

typedef struct {
    char *machine;           /* processor, cores and instruction set */
    char *method;            /* kernels, types, statistic */
    GArray *rates;           /* of LhKernelRate; kernel and source owned */
    GArray *traffic;         /* of LhKernelTraffic; likewise */
    double memory_bandwidth; /* median over the elementwise kernels; nocheck:unit: named as in the
                                file */
    LhTime kernel_launch_ps, stream_sync_ps;
    LhLinkClass link;
    LhFitResiduals link_residuals;
} LhCalibration;

/* LH_ERROR_NO if a kernel cannot be called or a fit is impossible. Caller frees. */
LhCalibration *lh_calibrate(const LhCalibrateParams *params, GError **error);
void lh_calibration_free(LhCalibration *calibration);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(LhCalibration, lh_calibration_free)

/* Appends the longhaul.profile/1 document called @name. @date: of the measurement, "2026-01-31". */
void lh_calibration_write(const LhCalibration *calibration, const char *name, const char *date,
                          GString *out);
