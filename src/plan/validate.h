/*
 * Predicted beside measured: a program is played and executed, and the two timelines are joined on
 * rank and op.
 */
#pragma once

#include "plan/setup.h"
#include "runtime/measure.h"

typedef struct {
    uint32_t kernel_set; /* of lh_device_cpu */
    LhStatistic statistic;
    uint64_t repeat; /* runs after one that does not count; at least 1 */
} LhValidateParams;

/* The ops of one kernel, or all exchanges, or all collectives, of a program. */
typedef struct {
    const char *kernel; /* borrowed; "exchange", "collective" */
    uint64_t ops;
    double measured_s, predicted_s; /* sums over the ops */
    double share;                   /* of the measured time of all compute ops; 0 for these two */
    double error_median;            /* of predicted / measured - 1 over ops */
    double error_worst;             /* the one furthest from 0 */
} LhKernelErrors;

typedef struct {
    const char *schedule;           /* borrowed */
    char *refused;                  /* why it was not run; NULL: it was */
    double measured_s, predicted_s; /* makespan */
    double spread;                  /* (largest - least) / least makespan of the runs */
    /* Of that run, until the rank that ends last has an op: threads start, memory is allocated. */
    double start_s;
    double op_error; /* median of |predicted / measured - 1| over all compute ops */
    GArray *kernels; /* of LhKernelErrors, the most time first; exchanges and collectives last */
} LhValidation;

/* A kernel with less of the compute time than this is shown, but not judged. */
#define LH_VALIDATE_SHARE_MIN 0.05

/* Validates every schedule of the setup: LhValidation *. NULL if a run breaks. Caller unrefs. */
GPtrArray *lh_validate(const LhSetup *setup, const LhValidateParams *params, GError **error);

/* predicted / measured - 1 of the makespan. */
double lh_validation_error(const LhValidation *validation);

/* True if the makespan, and the median op of every kernel that is judged, are within @tolerance. */
bool lh_validation_within(const LhValidation *validation, double tolerance);
