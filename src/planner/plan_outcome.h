/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is known of a point of a search.
 */
#pragma once

#include "compare/error_bar.h"

typedef enum {
    LH_POINT_OPEN,    /* nothing is decided: only in a search that was interrupted */
    LH_POINT_RAN,     /* simulated */
    LH_POINT_CUT,     /* takes longer than those that are wanted: by its bound, or by as much as was
                         simulated of it */
    LH_POINT_UNFIT,   /* needs more memory than there is */
    LH_POINT_REFUSED, /* there is no such step */
    LH_POINT_FAILED,  /* its simulation could not end: a failed link on a route */
    LH_POINT_STATES
} LhPointState;

/* "open", "simulated", ...; NULL-terminated. */
extern const char *const lh_point_state_names[];

/* What is known of a point. */
typedef struct {
    int state;              /* LhPointState */
    bool close;             /* the estimate is the close one: `peak_bytes` is exact */
    LhTime time_ps;         /* of a step: what it takes, or, where it was not simulated, at least */
    uint64_t peak_bytes;    /* of the rank that needs most, or at least so much */
    LhTimeError time_error; /* of those that ran */
    LhErrorParts parts;     /* likewise */
    char *reason;           /* owned: of those refused and failed */
} LhPlanOutcome;
