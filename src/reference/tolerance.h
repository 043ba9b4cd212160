/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whether the results of a run are right: the distance of every output row from the fp64 reference,
 * in units of what rounding may do to it, and how far that may be.
 *
 * A row is one token and head. With u the unit roundoff of the storage type (2^-8 of bf16, 2^-11 of
 * fp16, 2^-24 of fp32), R the partial results that were rounded to it one after another, and s the
 * size of the row (reference.h), rounding is expected to move the row by the unit
 *
 *     sqrt((R u^2 + w^2) s^2 + (R_o u^2 + w^2) t^2 + N R a^2 x^2),  w = 2^-23 (1 + logits + ln N)
 *
 * w is what fp32 does to a weight: it moves an exponent by an ulp of the largest logit and of lse.
 * t is what delta, the sum of o do, does to gradients when o has been rounded (R_o times); 0 for
 * others. a is half the distance of the smallest numbers of the type, and x the largest norm of a
 * row of the inputs. The unit of lse is w.
 *
 * The gates are limits of the error in these units: of the root mean square over all rows, and of
 * the worst row. docs/internals/runtime.md has the distributions that they lie between;
 * bench_errors measures them.
 */
#pragma once

#include "reference/numerics.h"

#define LH_TOLERANCE_MEAN 1.0
#define LH_TOLERANCE_ROW 3.0

typedef struct {
    const char *name; /* "o", "lse", "dq", "dk", "dv" */
    double rel_l2;    /* of the whole tensor, to the sizes of its rows */
    double mean, row; /* in units of rounding: root mean square of all rows; the worst row */
    uint32_t rounded; /* R */
    bool ok;          /* mean and row are within their gates; false for NaN anywhere */
} LhErrorRow;

/* All zero is valid and empty. */
typedef struct {
    LhErrorRow *rows; /* owned: of every tensor of every output slot that the reference knows */
    uint32_t rows_count;
    bool ok; /* all of them */
} LhErrorReport;

void lh_error_report_clear(LhErrorReport *report);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(LhErrorReport, lh_error_report_clear)

/* Fills in @report, which is empty, from the outputs of all ranks. */
void lh_tolerance_compare(const LhNumerics *numerics, const LhProgram *program,
                          const LhRunResult *result, LhErrorReport *report);

/*
 * The same, where each process compares the rows of its ranks; @report is filled in the first one
 * only. False with @error (LH_ERROR_RUNTIME) if the processes cannot tell each other.
 */
bool lh_tolerance_compare_shared(const LhNumerics *numerics, const LhProgram *program,
                                 const LhRunResult *result, const LhOpenControl *control,
                                 LhErrorReport *report, GError **error);
