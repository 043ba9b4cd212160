/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What was predicted beside what was measured: of every schedule, of its kernels, and of all.
 */
#pragma once

#include "validate/constant_attribution.h"
#include "validate/slow_hosts.h"

/* The ops of one kernel, or all exchanges, or all collectives, of a program; or of one tier. */
typedef struct {
    const char *kernel; /* borrowed; "exchange", "collective"; a tier's name */
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
    uint64_t runs;   /* that count; 0: it was predicted only */
    uint32_t ranks;  /* that were run */
    int64_t rank;    /* the one that ran alone, and whose makespan it is; -1: all ran */
    GArray *kernels; /* of LhKernelErrors, the most time first; exchanges and collectives last */
    GArray *tiers;   /* of LhKernelErrors, too: exchanges by the highest tier that they cross */
} LhValidation;

/* A kernel with less than this of the compute time, or of the makespan, is shown, but not judged.
 */
#define LH_VALIDATE_SHARE_MIN 0.05

/* What was predicted, and how it came out. */
typedef struct {
    GPtrArray *rows;  /* of LhValidation *: every schedule of the setup */
    uint32_t cores;   /* that the first process may use; 0: unknown */
    bool interrupted; /* some runs were not begun, or some schedules not run */
    bool first;       /* false in processes other than the first, whose rows have no measurements */
    /* A line for each schedule that is run: its name, the SHA-256 of its program (digest.h) and the
     * makespan predicted, in ps; and the SHA-256 of these lines. */
    char *prediction, *prediction_sha256;
    LhSlowHosts *hosts;           /* NULL: one process, or nothing has been measured yet */
    uint64_t runs, runs_left_out; /* that count; and those that the budget did not suffice for */
    /* Over the schedules that were measured: |predicted / measured - 1| of the makespan, and
     * Spearman's correlation of the two orders; NAN if it has no meaning. */
    double error_median, error_worst, rank_correlation;
    LhAttributed *explained; /* which constants are off; NULL: nothing was measured, or it would
                               take too long */
} LhValidated;

/* Without rows, which it owns. Caller frees. */
LhValidated *lh_validated_new(void);
void lh_validated_free(LhValidated *validated);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(LhValidated, lh_validated_free)

/* predicted / measured - 1 of the makespan. */
double lh_validation_error(const LhValidation *validation);

/* Whether a kernel takes enough of the time to be judged. */
bool lh_validation_judges(const LhValidation *validation, const LhKernelErrors *row);

/* True if the makespan, and the median op of every kernel that is judged, are within @tolerance. */
bool lh_validation_within(const LhValidation *validation, double tolerance);
