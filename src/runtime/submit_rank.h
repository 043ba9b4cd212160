/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The ranks of a thread that submits, and what it does for each of them.
 */
#pragma once

#include "runtime/execution.h"

/* A rank that is being driven. */
typedef struct {
    LhRunner *runner;
    LhCursor cursor;
    LhOpBuffer buffer;
    uint32_t next;    /* in the buffer */
    GPtrArray *items; /* by op id, from issue until done; NULL: done, or the host's own */
    void *joined;
} LhSubmitRank;

typedef struct _LhSubmission LhSubmission;

/* A thread, and its ranks. */
typedef struct {
    LhSubmission *all;
    LhSubmitRank *ranks;
    uint32_t count;
    uint32_t flying;    /* ops that are submitted and not done */
    LhDeviceMark epoch; /* times are counted from here, on the device ... */
    LhTime epoch_ps;    /* ... and on the host */
    GThread *thread;
} LhSubmitDriver;

struct _LhSubmission {
    LhExecution *x;
    void *links;
    LhSubmitRank *ranks; /* [x->place.count] */
    LhSubmitDriver *drivers;
    uint32_t drivers_count;
    pthread_mutex_t lock; /* of what follows */
    GString *seen;        /* what drivers wait for that nothing moves for */
    uint32_t told;        /* drivers that have ended or said what they wait for */
    bool stuck;           /* one of them waits */
};

/* Takes @error and ends the run. Returns false. */
bool lh_submit_fail(const LhSubmitDriver *d, GError *error);

/* Does what can be done for a rank. False: nothing has moved. */
bool lh_submit_step(LhSubmitDriver *d, LhSubmitRank *rank);
