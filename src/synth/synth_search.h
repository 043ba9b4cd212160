/* SPDX-License-Identifier: Apache-2.0 */
/*
 * State of a search, shared by its parts.
 */
#pragma once

#include "synth/synth.h"

#include <pthread.h>
#include <stdatomic.h>

#define LH_SYNTH_BATCH 16U

#define LH_SYNTH_KEPT 16U /* candidates kept for the judges; one without them */

/* An annealed candidate. */
typedef struct {
    LhSynthRecipe recipe;
    const LhSynthProblem *problem;
    bool warm;                        /* starts from the best candidate */
    LhTime times_ps[LH_SYNTH_STYLES]; /* LH_TIME_NEVER: not simulated to the end, or too large */
    LhTime time_ps;                   /* the smallest of them */
    uint32_t simulated, too_large;
    uint64_t moves;
    LhSynthAssignment *state; /* owned */
} LhSynthCandidate;

typedef struct {
    const LhSetup *setup;
    const LhSynthOptions *options;
    LhSynthesis *found;
    GPtrArray *problems; /* of LhSynthProblem * */
    GArray *portfolio;   /* of LhSynthPortfolioEntry */
    LhSynthCandidate
        kept[LH_SYNTH_KEPT]; /* by time, all different; the first `kept_count` of `kept_most` */
    uint32_t kept_count, kept_most;
    LhSynthCandidate batch[LH_SYNTH_BATCH];
    _Atomic LhTime limit_ps; /* slower programs are aborted */
    uint32_t budget, done;
    pthread_mutex_t lock; /* of the progress */
    bool interrupted;
} LhSynthSearch;

/* An entry of the portfolio. */
typedef struct {
    const LhSynthProblem *problem;
    uint32_t rounds;
    double mean_weight;
} LhSynthPortfolioEntry;

/* The number of threads for @work simulations. */
guint lh_synth_threads(const LhSynthSearch *s, guint work);

/* Reports progress; false ends the search. */
bool lh_synth_goes_on(LhSynthSearch *s);

/* Whether a result fits in the memory that the search allows. */
bool lh_synth_result_is_within(const LhSynthSearch *s, const LhSimResult *result);
