/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a whole training step comes to: the answer that tables of measurements are held against.
 */
#pragma once

#include "compare/error_bar.h"
#include "compare/step_watch.h"

typedef struct {
    uint32_t ranks;         /* GPUs of the job */
    double iteration_s;     /* of one optimizer step */
    LhTimeError time_error; /* of that time */
    double tokens_per_s;    /* of the whole job */
    double tokens_per_s_per_gpu;
    double mfu;                       /* model flops over the peak of all GPUs */
    double hfu;                       /* flops that are executed, likewise */
    double model_flops_per_s_per_gpu; /* without recomputation */
    /* What shows of communication (step_watch.h); 0 without a watch. */
    double exposed_s[LH_DIMENSIONS];
    uint64_t peak_bytes;  /* of the rank that needs most */
    uint64_t limit_bytes; /* what a GPU has for it */
    bool fits; /* every rank's peak is within its GPU; if not, the times are what they would
                  be with more memory */
} LhStepAnswer;

/*
 * Predicts the step that @scenario describes (its field `step` is set). A scenario that is refused,
 * because of heads that do not divide for example, is LH_ERROR_NO with the reason; one that cannot
 * be read LH_ERROR_INPUT. Safe on several threads at once, with scenarios of their own.
 */
bool lh_step_answer(const LhScenario *scenario, LhStepAnswer *answer, GError **error);

/* Likewise; @peak_bytes (of uint64_t) gets what each rank needs at its peak. Of many micro-batches
 * without a pipeline a few are played, if these take equally long to a picosecond. */
bool lh_step_answer_of_ranks(const LhScenario *scenario, LhStepAnswer *answer, GArray *peak_bytes,
                             GError **error);

/* The same, of the setup's program and what simulating it gave, perhaps watched (@watch may be
 * NULL). */
LhStepAnswer lh_step_answer_of(const LhSetup *setup, const LhProgram *program,
                               const LhSimResult *result, const LhStepWatch *watch);

/* What a step of the setup takes beside what its program does. */
LhTime lh_step_overhead_ps(const LhSetup *setup);

/*
 * Flops of a step by the mathematics, over all ranks: 6 for each token and parameter that a product
 * multiplies (all but the input embedding's), and three times attention's forward pass. Nothing of
 * it is recomputed, and padding is not counted if @model is not padded.
 */
double lh_step_model_flops(const LhStepParams *params, const LhModel *model);
