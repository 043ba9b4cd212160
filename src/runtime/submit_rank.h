/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The ranks of a submitting thread, and the steps it takes for each.
 */
#pragma once

#include "runtime/execution.h"

/* A rank driven by a submitting thread. */
typedef struct {
    LhRunner *runner;
    LhCursor cursor;
    LhOpBuffer buffer;
    uint32_t next;    /* next op in the buffer */
    GPtrArray *items; /* by op id, from issue until done; NULL: done, or an op of the host */
    void *joined;
} LhSubmitRank;

typedef struct _LhSubmission LhSubmission;

/* A submitting thread and its ranks. */
typedef struct {
    LhSubmission *all;
    LhSubmitRank *ranks;
    uint32_t count;
    uint32_t flying;    /* ops submitted and not done */
    LhDeviceMark epoch; /* origin of times on the device */
    LhTime epoch_ps;    /* and on the host */
    GThread *thread;
} LhSubmitDriver;

struct _LhSubmission {
    LhExecution *x;
    void *links;
    LhSubmitRank *ranks; /* [x->place.count] */
    LhSubmitDriver *drivers;
    uint32_t drivers_count;
    pthread_mutex_t lock; /* of the following fields */
    GString *seen;        /* reports of stalled drivers */
    uint32_t told;        /* drivers that have ended or reported a stall */
    bool stuck;           /* at least one has stalled */
};

/* Takes @error and ends the run. Returns false. */
bool lh_submit_fail(const LhSubmitDriver *d, GError *error);

/* Makes all possible progress for a rank. False if nothing moved. */
bool lh_submit_step(LhSubmitDriver *d, LhSubmitRank *rank);
