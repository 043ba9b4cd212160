/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Simulations of one program with some of its ops faster, on several threads.
 */
#pragma once

#include "scenario/setup_simulate.h"

typedef struct {
    /* As LhSimParams has them: time_share, time_share_data, time_share_alike. */
    double (*share)(void *data, uint32_t rank, uint32_t id, const LhOp *op,
                    const LhOpBuffer *buffer);
    void *data;
    bool alike;
    /* The largest folding in which it is alike; NULL: any. */
    const LhSymmetryGroups *fold;
    LhTime makespan_ps; /* the result */
} LhFasterRun;

/* Sets the makespans of @runs on the setup's cluster. @task (may be NULL) has the number of
 * threads, which no result depends on, and receives progress. False if a run fails or is
 * interrupted; the error is that of the first of them. */
bool lh_faster_runs_play(const LhSetup *setup, const LhProgram *program, const LhTask *task,
                         LhFasterRun *runs, guint count, GError **error);
