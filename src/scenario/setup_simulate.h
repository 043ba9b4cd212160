/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Simulates a program on the cluster of a setup.
 */
#pragma once

#include "scenario/setup.h"

typedef struct {
    LhTask task;             /* as LhSimParams has it */
    LhTimelineSink timeline; /* may be NULL */
    void *timeline_data;
    uint32_t exposed_stride;                      /* see LhSimParams */
    uint8_t (*exposed_dimension)(const LhOp *op); /* likewise */
    LhMemorySink memory;                          /* may be NULL */
    void *memory_data;
    LhLinkSink links; /* may be NULL */
    void *links_data;
    bool path;       /* find the critical path */
    bool precedence; /* keep the dependency graph; see LhSimParams */
    bool unfolded;   /* simulate every rank */
    /* See LhSimParams; may be NULL. */
    double (*time_share)(void *data, uint32_t rank, uint32_t id, const LhOp *op,
                         const LhOpBuffer *buffer);
    void *time_share_data;
    bool time_share_alike;
    LhSymmetryGroups *fold;         /* see LhSimParams; may be NULL */
    const _Atomic LhTime *limit_ps; /* cutoff of simulated time; see LhSimParams; may be NULL */
    const GArray *tails;            /* likewise */
    LhTime *ended_ps;               /* likewise */
} LhHooks;

/* Simulation parameters of @program on the setup's cluster, without hooks; all borrowed. */
LhSimParams lh_setup_sim_params(const LhSetup *setup, const LhProgram *program);

/* Simulates @program on the setup's cluster, or on @network and @device where they are not NULL.
 * Caller frees. */
LhSimResult *lh_setup_simulate(const LhSetup *setup, const LhProgram *program,
                               const LhNetwork *network, const LhDevice *device,
                               const LhHooks *hooks, GError **error);
