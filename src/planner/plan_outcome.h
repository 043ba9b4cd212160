/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Outcome of a point in a search.
 */
#pragma once

#include "compare/error_bar.h"
#include "remedy/remedies.h"

typedef enum {
    LH_POINT_OPEN, /* undecided; remains only in an interrupted search */
    LH_POINT_RAN,  /* simulated */
    /* Pruned: its lower bound, or the time simulated so far, exceeds the cutoff. */
    LH_POINT_CUT,
    LH_POINT_UNFIT,   /* does not fit in memory */
    LH_POINT_REFUSED, /* rejected: there is no such step */
    LH_POINT_FAILED,  /* its simulation could not finish: a failed link on a route */
    LH_POINT_STATES
} LhPointState;

/* "open", "simulated", ...; NULL-terminated. */
extern const char *const lh_point_state_names[];

/* Outcome of a point. */
typedef struct {
    int state;              /* LhPointState */
    bool close;             /* the close estimate is known: `peak_bytes` is exact */
    LhTime time_ps;         /* of a step; a lower bound if it was not simulated */
    uint64_t peak_bytes;    /* of the rank with the highest peak; may be a lower bound */
    LhTimeError time_error; /* of simulated points */
    LhErrorParts parts;     /* likewise */
    LhRemedies remedies;    /* of a point that does not fit without them */
    char *reason;           /* owned: of rejected and failed points */
} LhPlanOutcome;
