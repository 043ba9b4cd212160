/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Correctness of a run's results: the distance of every output row from the fp64 reference, in
 * units of its expected rounding error, and the limits of that distance.
 *
 * A row is one token and head. With u the unit roundoff of the storage type (2^-8 for bf16, 2^-11
 * for fp16, 2^-24 for fp32), R the number of successive roundings of partial results to it, and s
 * the size of the row (reference.h), the unit, the expected rounding error of the row, is
 *
 *     sqrt((R u^2 + w^2) s^2 + (R_o u^2 + w^2) t^2 + N R a^2 x^2),  w = 2^-23 (1 + logits + ln N)
 *
 * w is the relative error of a weight in fp32: its exponent is off by an ulp of the largest logit
 * and of lse. t is the error of gradients through delta, the sum of o do, when o has been rounded
 * (R_o times); 0 for other tensors. a is half the distance of the smallest numbers of the type, and
 * x the largest norm of a row of the inputs. The unit of lse is w.
 *
 * The gates limit the error in these units: its root mean square over all rows, and the worst row.
 * They lie between the distributions in docs/internals/runtime.md, which bench_errors measures.
 */
#pragma once

#include "reference/numerics.h"

#define LH_TOLERANCE_MEAN 1.0
#define LH_TOLERANCE_ROW 3.0

typedef struct {
    const char *name; /* "o", "lse", "dq", "dk", "dv" */
    double rel_l2;    /* error of the whole tensor relative to the sizes of its rows */
    double mean, row; /* in units: root mean square over all rows; the worst row */
    uint32_t rounded; /* R */
    bool ok;          /* mean and row are within their gates; false for any NaN */
} LhErrorRow;

/* All zero is valid and empty. */
typedef struct {
    LhErrorRow *rows; /* owned: one for every tensor of the reference in every output slot */
    uint32_t rows_count;
    bool ok; /* all of them */
} LhErrorReport;

void lh_error_report_clear(LhErrorReport *report);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(LhErrorReport, lh_error_report_clear)

/* Fills in @report, which must be empty, from the outputs of all ranks. */
void lh_tolerance_compare(const LhNumerics *numerics, const LhProgram *program,
                          const LhRunResult *result, LhErrorReport *report);

/*
 * The same if each process compares the rows of its ranks; only the first process's @report is
 * filled in. Returns false with @error (LH_ERROR_RUNTIME) if the exchange between processes fails.
 */
bool lh_tolerance_compare_shared(const LhNumerics *numerics, const LhProgram *program,
                                 const LhRunResult *result, const LhOpenControl *control,
                                 LhErrorReport *report, GError **error);
