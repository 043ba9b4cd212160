/*
 * Whether a run computed the right thing: inputs by seed, and every output of every rank against
 * the fp64 reference of the whole sequence.
 */
#pragma once

#include "program/holding.h"
#include "runtime/executor.h"
#include "runtime/reference.h"

typedef enum {
    LH_INPUTS_NORMAL,   /* q, k, v and do are standard normal */
    LH_INPUTS_LOGITS4,  /* logits 4 times as large ... */
    LH_INPUTS_LOGITS20, /* ... and 20 times: nearly one key a query */
    LH_INPUTS_KEY60,    /* one key has 60 added to its logits */
    LH_INPUTS_EQUAL,    /* all keys are equal, and so are the logits of a query */
} LhInputKind;

/* "normal", "logits4", "logits20", "key60", "equal"; NULL-terminated. */
extern const char *const lh_input_names[];

typedef struct {
    LhInputKind inputs;
    uint64_t seed;
    LhReference reference; /* inputs rounded to the storage type; outputs not rounded */
} LhNumerics;

/* Makes inputs and reference; costs about 14 B h d N^2 flops. Caller frees. */
LhNumerics *lh_numerics_new(const LhProgramParams *params, uint64_t seed, LhInputKind inputs);
void lh_numerics_free(LhNumerics *numerics);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(LhNumerics, lh_numerics_free)

/* Fills part @part of input slot @slot; with arbitrary numbers where the reference has no such
 * tensor. */
void lh_numerics_load(const LhNumerics *numerics, const LhProgram *program, uint32_t rank,
                      uint16_t slot, uint32_t part, unsigned char *data);

/*
 * Gates (relative L2 norm of the error): o 3e-3 in fp32 and 4e-3 in 16 bits; dq, dk, dv 5e-3; lse
 * 1e-4 absolute. A single row may be LH_ROW_GATE times as far off, relative to the larger of its
 * own norm and the mean of all rows, so that one wrong row cannot hide. With other inputs than
 * normal ones gradients may nearly vanish by cancellation: there errors are measured against the
 * sums of the magnitudes of what is added up.
 */
#define LH_ROW_GATE 4

typedef struct {
    const char *name; /* "o", "lse", "dq", "dk", "dv" */
    double rel_l2, rel_l2_gate;
    double row_max, row_max_gate;
    double abs_max, abs_max_gate; /* gate 0: none */
    bool ok;
} LhErrorRow;

/* All zero is valid and empty. */
typedef struct {
    LhErrorRow *rows; /* owned: of every tensor of every output slot that the reference knows */
    uint32_t rows_count;
    bool ok; /* all within their gates; false for NaN anywhere */
} LhErrorReport;

void lh_error_report_clear(LhErrorReport *report);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(LhErrorReport, lh_error_report_clear)

/* Fills in @report, which is empty. */
void lh_numerics_compare(const LhNumerics *numerics, const LhProgram *program,
                         const LhRunResult *result, LhErrorReport *report);

/*
 * Storage in 16 bits alone can put a single row beyond its gate (dq of a token that sees few keys:
 * delta is taken from a rounded o). FlashAttention's rule for that: a row may be twice as far off
 * as the worst one of @baseline, the same attention by the same kernels on one device. Nothing else
 * is forgiven.
 */
void lh_numerics_allow_rows(LhErrorReport *report, const LhErrorReport *baseline);

/* True if single rows are all that is wrong: the baseline is worth computing. */
bool lh_numerics_only_rows(const LhErrorReport *report);
