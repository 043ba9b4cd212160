/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Robustness of the search result: whether it also wins with jitter and under another network
 * model.
 */
#pragma once

#include "compare/compare.h"

#define LH_SYNTH_JUDGES 3
#define LH_SYNTH_SEEDS 8U   /* of a judge with jitter */
#define LH_SYNTH_JITTER 0.1 /* or the scenario's, if larger */
#define LH_SYNTH_RIVALS 3U  /* minimum number of published schedules simulated with jitter */

/* One judge, and its results for the chosen program. */
typedef struct {
    LhNetworkModel network_model;
    double jitter;         /* larger than the scenario's; equal for a judge with a single run */
    uint32_t runs, wins;   /* wins: runs in which it is faster than every published schedule */
    const char *published; /* fastest by median, borrowed; NULL: none ends and fits there */
    /* Over the runs; the median is the lower of two. LH_TIME_NEVER: it does not end or does not
     * fit. */
    LhTime published_median_ps, published_worst_ps;
    LhTime median_ps, worst_ps;
} LhSynthTrial;

typedef struct {
    bool asked;       /* the judges ran to completion; otherwise nothing below is set */
    bool interrupted; /* the judges started but were interrupted */
    LhSynthTrial trials[LH_SYNTH_JUDGES];
    bool holds;         /* the chosen program wins every run of every judge */
    bool fastest_holds; /* the first contender does */
    guint chosen;       /* index of the contender; 0 if none holds */
    guint contenders;
    LhTime fastest_ps; /* of the first contender, in the scenario itself */
} LhSynthRobust;

typedef struct {
    const LhSetup *setup;
    uint64_t seed;               /* first jitter seed; the others follow it */
    uint64_t memory_limit_bytes; /* per rank; 0: the GPU's memory */
    LhTask task; /* jobs, 0: one per core. Called before each run, from several threads at once */
    const GPtrArray *published;  /* of LhCompareRow *, simulated; entries may be NULL */
    const GPtrArray *contenders; /* of LhCompareRow *, simulated; all fit */
} LhSynthCourt;

/*
 * Tests robustness with three judges: the scenario's network model with jitter; another network
 * model; and that with jitter. The other model of `fair` and `alpha-beta` is `fifo`, that of `fifo`
 * is `fair`.
 *
 * Without jitter all published schedules that ran are simulated. With jitter only the fastest
 * LH_SYNTH_RIVALS of a network model are, and those so close that jitter may make them the fastest,
 * with the same seeds as the contenders. Among the contenders that win every run, the one with the
 * smallest worst-case ratio to the fastest published schedule is chosen; the scenario counts as a
 * run. Deterministic, whatever the number of threads.
 */
void lh_synth_test_robustness(const LhSynthCourt *court, LhSynthRobust *answer);

/* Whether a simulated program fits in memory, of which @limit_bytes per rank are allowed; 0:
 * all. */
bool lh_synth_result_fits(const LhSimResult *result, uint64_t limit_bytes);
