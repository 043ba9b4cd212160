/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Result of a validation: predicted and measured times of every schedule and of its kernels, and
 * their overall errors.
 */
#pragma once

#include "validate/constant_attribution.h"
#include "validate/slow_hosts.h"

/* Errors of a program's ops: those of one kernel, all exchanges, all collectives, or the exchanges
 * over one tier. */
typedef struct {
    const char *kernel; /* borrowed: a kernel's name, "exchange", "collective", or a tier's name */
    uint64_t ops;
    double measured_s, predicted_s; /* sums over the ops */
    double share;                   /* of the measured time of all compute ops; else 0 */
    double error_median;            /* of predicted / measured - 1 over ops */
    double error_worst;             /* the value furthest from 0 */
} LhKernelErrors;

typedef struct {
    const char *schedule;           /* borrowed */
    char *refused;                  /* why it was not run; NULL: it was run */
    double measured_s, predicted_s; /* makespan */
    double spread;                  /* (largest - smallest) / smallest makespan over the runs */
    /* Start-up time of that run: until the rank that ends last issues its first op. Threads start
     * and memory is allocated meanwhile. */
    double start_s;
    double op_error; /* median of |predicted / measured - 1| over all compute ops */
    uint64_t runs;   /* runs that count; 0: predicted only */
    uint32_t ranks;  /* ranks that were run */
    int64_t rank;    /* the rank that ran alone, whose makespan this is; -1: all ranks ran */
    GArray *kernels; /* of LhKernelErrors, by descending time; exchanges and collectives last */
    GArray *tiers;   /* of LhKernelErrors: exchanges by the highest tier that they cross */
} LhValidation;

/* Least share of the compute time, and of the makespan, for a kernel to be judged. Kernels below it
 * are reported only. */
#define LH_VALIDATE_SHARE_MIN 0.05

/* Predictions and measurements of all schedules of a setup. */
typedef struct {
    GPtrArray *rows;  /* of LhValidation *: every schedule of the setup */
    uint32_t cores;   /* available to the first process; 0: unknown */
    bool interrupted; /* some runs or some schedules were not run */
    bool first;       /* false in the other processes, whose rows have no measurements */
    /* One line for each schedule that is run: its name, the SHA-256 of its program (digest.h) and
     * its predicted makespan in ps. @prediction_sha256 is the SHA-256 of these lines. */
    char *prediction, *prediction_sha256;
    LhSlowHosts *hosts;           /* NULL: one process, or nothing measured yet */
    uint64_t runs, runs_left_out; /* runs that count, and runs that the budget did not allow */
    /* Over the measured schedules: |predicted / measured - 1| of the makespan, and Spearman's rank
     * correlation of predicted and measured order; NAN if undefined. */
    double error_median, error_worst, rank_correlation;
    LhAttributed *explained; /* which constants are wrong; NULL: no runs, or too many ops */
} LhValidated;

/* Creates a result with no rows. It owns rows added later. Caller frees. */
LhValidated *lh_validated_new(void);
void lh_validated_free(LhValidated *validated);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(LhValidated, lh_validated_free)

/* Relative error of the makespan: predicted / measured - 1. */
double lh_validation_error(const LhValidation *validation);

/* Whether a kernel's share of the time is large enough for it to be judged. */
bool lh_validation_judges(const LhValidation *validation, const LhKernelErrors *row);

/* Whether the makespan, and the median op of every judged kernel, are within @tolerance. True for a
 * schedule that was not run. */
bool lh_validation_within(const LhValidation *validation, double tolerance);
