/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whether what the search found also wins where the scenario is not quite as it says: with jitter,
 * and under another model of the network.
 */
#pragma once

#include "compare/compare.h"

#define LH_SYNTH_JUDGES 3
#define LH_SYNTH_SEEDS 8U   /* of a judge with jitter */
#define LH_SYNTH_JITTER 0.1 /* or the scenario's, if that is larger */
#define LH_SYNTH_RIVALS 3U  /* published schedules that meet jitter, at least */

/* One judge, and what it says of the program that is chosen. */
typedef struct {
    LhNetworkModel network_model;
    double jitter;         /* more than the scenario's, or just that with one run */
    uint32_t runs, wins;   /* wins: runs in which it is faster than every published schedule */
    const char *published; /* the fastest by median, borrowed; NULL: none ends and fits there */
    /* Over the runs, the median the lower of two; LH_TIME_NEVER: it does not end, or not fit. */
    LhTime published_median_ps, published_worst_ps;
    LhTime median_ps, worst_ps;
} LhSynthTrial;

typedef struct {
    bool asked;       /* the judges were asked, and not interrupted; else nothing below is set */
    bool interrupted; /* they were asked, and stopped before the end */
    LhSynthTrial trials[LH_SYNTH_JUDGES];
    bool holds;         /* the chosen program wins every run of every judge */
    bool fastest_holds; /* the first contender does */
    guint chosen;       /* of the contenders; 0 if none holds */
    guint contenders;
    LhTime fastest_ps; /* of the first contender, in the scenario itself */
} LhSynthRobust;

typedef struct {
    const LhSetup *setup;
    uint64_t seed;               /* the jitter's seeds are this and those that follow */
    uint64_t memory_limit_bytes; /* of a rank; 0: what the GPU has */
    LhTask task;                 /* jobs, 0: one for each core. Asked before each run, by several
                                    threads at once */
    const GPtrArray *published;  /* of LhCompareRow *, played; NULL: not that one */
    const GPtrArray *contenders; /* of LhCompareRow *, played; all fit */
} LhSynthCourt;

/*
 * Asks three judges: the scenario's network with jitter; the other network; that with jitter. The
 * other of `fair` and `alpha-beta` is `fifo`, that of `fifo` is `fair`. Without jitter all
 * published schedules that ran are played, and the fastest LH_SYNTH_RIVALS of a network, and
 * others that are so near that jitter may bring them before the fastest, meet its jitter, with the
 * same seeds as the contenders. Of the contenders that win every run, that is
 * chosen whose time, as a share of the fastest published one's, is least where it is largest, the
 * scenario among the runs. The same court gives the same answer, whatever the threads.
 */
void lh_synth_test_robustness(const LhSynthCourt *court, LhSynthRobust *answer);

/* Whether it was complete with the memory there is, of which @limit_bytes are allowed; 0: all. */
bool lh_synth_result_fits(const LhSimResult *result, uint64_t limit_bytes);
