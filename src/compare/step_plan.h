/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Predicted training step: time, throughput and memory, as published tables have them.
 */
#pragma once

#include "compare/error_bar.h"
#include "compare/step_watch.h"

typedef struct {
    uint32_t ranks;         /* GPUs */
    bool forward_only;      /* a prefill, not a training step */
    double iteration_s;     /* one optimizer step, or a prefill: its time to the first token */
    LhTimeError time_error; /* error bar of that time */
    double tokens_per_s;    /* whole job */
    double tokens_per_s_per_gpu;
    double mfu;                       /* model flops / peak flops of all GPUs */
    double hfu;                       /* executed flops, likewise */
    double model_flops_per_s_per_gpu; /* without recomputation */
    /* Exposed communication by dimension of parallelism (step_watch.h); 0: not measured. */
    double exposed_s[LH_STEP_EXPOSED];
    uint64_t peak_bytes;  /* of the rank with the highest peak */
    uint64_t limit_bytes; /* available on its GPU */
    LhHostMemory host_memory;
    uint64_t host_peak_bytes; /* of the rank that offloads most */
    uint64_t cache_bytes;     /* keys and values that a prefill leaves on the rank with most */
    bool fits; /* every rank's peak fits its GPU; if not, the times assume enough memory */
} LhStepAnswer;

/*
 * Predicts the step of @scenario (its field `step` is set). LH_ERROR_NO with the reason if the
 * scenario is refused, because of heads that do not divide for example; LH_ERROR_INPUT if it cannot
 * be read. Thread-safe with separate scenarios.
 */
bool lh_step_answer(const LhScenario *scenario, LhStepAnswer *answer, GError **error);

/* Likewise; @peak_bytes (of uint64_t) receives each rank's peak. With many micro-batches and no
 * pipeline a few are simulated and extrapolated, if they take equally long to the picosecond. */
bool lh_step_answer_of_ranks(const LhScenario *scenario, LhStepAnswer *answer, GArray *peak_bytes,
                             GError **error);

/* The same, from the setup's program and its simulation result; @watch may be NULL. */
LhStepAnswer lh_step_answer_of(const LhSetup *setup, const LhProgram *program,
                               const LhSimResult *result);

/* Time of a step beside its program. */
LhTime lh_step_overhead_ps(const LhSetup *setup);

/*
 * Model flops of a step, over all ranks: 6 per token and parameter that is multiplied (all but the
 * input embedding's), and three times attention's forward pass. Recomputation is not counted, nor
 * is padding if @model is not padded. A forward pass alone has a third of that, with the head for
 * one token of each sequence.
 */
double lh_step_model_flops(const LhStepParams *params, const LhModel *model);
