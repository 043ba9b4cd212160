/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A calibration: what it is asked for, and the constants that it finds.
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
    /* Ranks are threads of this process (lh_backend_cpu), or a process each: then all of these call
     * lh_calibrate(), and measure.threads is 1. */
    const LhBackend *backend;
    LhMeasureParams measure;
    bool quick; /* fewer lengths, one head dimension */
    LhDtype dtype;
    /* Told before each number what it will be, in the first process. Jobs are not read, and nothing
     * ends what others take part in. */
    LhTask task;
    /* Of backends with GPUs: the cluster that they are said to be, whose device the kernels are
     * fitted for, and how many ranks (0: one a process); borrowed. */
    const LhTopology *topology;
    const LhDevice *device;
    uint32_t ranks;
    int64_t deadline_us; /* nothing has completed for so long: give up; 0: 60 s, with GPUs 120 s */
} LhCalibrateParams;

/* A collective made of messages, beside what the constants of messages say of it. */
typedef struct {
    LhCollectiveKind kind;
    uint32_t members;
    uint64_t vector_bytes; /* of all members */
    double measured_s, predicted_s;
} LhCollectiveCheck;

typedef struct {
    char *machine; /* processor, cores and instruction set */
    char *method;  /* kernels, types, statistic */
    /* What was measured of a rank, as a profile has it; strings of kernels are owned. Its
     * messages_hold is of processes; not above 0: none, or not measured. */
    LhDevice device;
    LhCoreSharing cores; /* of processes */
    LhLinkClass link;    /* between threads, or between GPUs of a node; bandwidth 0: not measured */
    LhFitResiduals link_residuals;
    /* Of GPUs; bandwidth 0: not measured. */
    LhLinkClass pcie, nic;
    LhFitResiduals pcie_residuals, nic_residuals;
    LhCallCosts calls;
    GArray *collectives; /* of LhCollectiveTimes, of a node; NULL: ranks are not GPUs */
    bool gpus;
    LhCluster *cluster; /* of processes, in place of the link; NULL: ranks are threads */
    GArray *checks;     /* of LhCollectiveCheck; NULL: ranks are not processes */
    bool first;         /* false in processes other than the first: nobody needs their copy */
} LhCalibration;

void lh_calibration_free(LhCalibration *calibration);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(LhCalibration, lh_calibration_free)
