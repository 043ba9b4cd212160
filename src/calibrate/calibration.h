/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A calibration: its parameters and the fitted constants.
 */
#pragma once

#include "calibrate/cluster_shape.h"
#include "measure/core_sharing.h"
#include "measure/measure.h"
#include "measure/measure_collective.h"
#include "measure/measure_submit.h"
#include "scenario/profile.h"
#include "sim/network/collectives/collective_table.h"

typedef struct {
    /* Ranks are threads of this process (lh_backend_cpu), or one process each. In the second case
     * every process calls lh_calibrate(), and measure.threads is 1. */
    const LhBackend *backend;
    LhMeasureParams measure;
    bool quick; /* fewer lengths, one head dimension */
    LhDtype dtype;
    /* Progress, reported by the first process before each measurement. Its job count is ignored,
     * and it cannot end the calibration, since other processes take part. */
    LhTask task;
    /* For backends with GPUs; borrowed: the cluster the GPUs belong to, the device that kernels are
     * fitted for, and the number of ranks (0: one per process). */
    const LhTopology *topology;
    const LhDevice *device;
    uint32_t ranks;
    int64_t deadline_us; /* abort after so long without progress; 0: 60 s, with GPUs 120 s */
} LhCalibrateParams;

/* A collective made of messages: its measured time, and the time predicted from the constants of
 * messages. */
typedef struct {
    LhCollectiveKind kind;
    uint32_t members;
    uint64_t vector_bytes; /* summed over all members */
    double measured_s, predicted_s;
} LhCollectiveCheck;

typedef struct {
    char *machine; /* processor, cores and instruction set */
    char *method;  /* kernels, types, statistic */
    /* Measured constants of a rank, in the form of a profile; strings of kernels are owned.
     * messages_hold is set for ranks that are processes; not above 0: none, or not measured. */
    LhDevice device;
    LhCoreSharing cores; /* ranks that are processes */
    LhLinkClass link;    /* between threads, or between GPUs of a node; bandwidth 0: not measured */
    LhFitResiduals link_residuals;
    /* GPUs only; bandwidth 0: not measured. */
    LhLinkClass pcie, nic;
    LhFitResiduals pcie_residuals, nic_residuals;
    LhCallCosts calls;
    GArray *collectives; /* of LhCollectiveTimes, within a node; NULL: ranks are not GPUs */
    bool gpus;
    LhCluster *cluster; /* replaces the link where ranks are processes; NULL: ranks are threads */
    GArray *checks;     /* of LhCollectiveCheck; NULL: ranks are not processes */
    bool first;         /* false in the other processes, whose copy is not used */
} LhCalibration;

void lh_calibration_free(LhCalibration *calibration);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(LhCalibration, lh_calibration_free)
