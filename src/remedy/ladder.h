/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The ladder of remedies: the cheapest set with which a step fits in memory. Memory is exact, from
 * the step's program. Sets are tried in the order of what they cost in time (remedy_costs.h), taken
 * as the sum of their parts; types of the optimizer's states come last, since they change what is
 * computed. Two assumptions make it short, and so a heuristic: costs add up, and a set needs no
 * less memory than a larger one.
 */
#pragma once

#include "program/program.h"
#include "remedy/remedies.h"

/* A step that may not fit, as its scenario says; its program belongs to `schedule`. */
typedef struct {
    const LhSetup *setup;
    const LhSchedule *schedule;
    uint64_t limit_bytes; /* of a rank */
} LhLadder;

typedef struct {
    uint64_t bytes;
    uint64_t by_category[LH_CATEGORIES];
    bool fits; /* on the device, and what is offloaded in the host */
} LhLadderPeak;

/* The peak with what is turned on; false if there is no such step. */
bool lh_ladder_peak(const LhLadder *ladder, const LhRemedies *r, LhLadderPeak *peak);

/* The cheapest set of remedies with which it fits; with @types, also types of the optimizer's
 * states. False if none is found. */
bool lh_ladder_climb(const LhLadder *ladder, bool types, LhRemedies *found);

/* Sets with which nothing more can be turned on: of LhRemedies; with @types as above. Caller
 * unrefs. */
GArray *lh_ladder_tops(const LhLadder *ladder, bool types);

/* All sets, for tests: of LhRemedies. Caller unrefs. */
GArray *lh_ladder_sets(const LhLadder *ladder, bool types);
