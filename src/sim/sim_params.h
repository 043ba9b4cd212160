/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parameters of a simulation, and what follows from them alone.
 */
#pragma once

#include "base/rng.h"
#include "base/task.h"
#include "model/framework.h"
#include "program/program.h"
#include "program/timeline.h"
#include "sim/cost/cost.h"
#include "sim/network/link_utilization.h"
#include "sim/network/symmetry.h"

typedef struct {
    uint64_t rank;
    double slowdown; /* factor on compute times of this rank; >= 1 */
} LhStraggler;

/* Lower bound of the remaining time of @rank after each of its ops: lh_lower_bound_tails(). */
typedef struct {
    uint32_t rank;
    GArray *tails_ps; /* of LhTime, by op */
} LhRankTails;

typedef struct {
    const LhProgram *program; /* borrowed */
    const LhNetwork *network; /* borrowed; its ranks equal the program's */
    const LhDevice *device;   /* borrowed */
    LhNetworkModel network_model;
    LhCollectiveModel collectives;
    LhCostMode cost;
    /* The training framework, for its own work around attention calls (sim/cost/call_cost.h);
     * borrowed. NULL: none. */
    const LhFramework *framework;
    bool serving;  /* use attention kernels of serving systems, one at a time, to compare against
                      measurements of such (sim/cost/attention_cost.h) */
    double jitter; /* compute times vary by a factor of 1 +- jitter, by (seed, rank, op); [0, 1) */
    uint64_t seed;
    const GArray *stragglers; /* of LhStraggler; may be NULL */
    uint32_t steps_max;       /* stop each rank's program after this many steps; 0: all */
    /* Replaces the cost model's time of a compute op (benchmarks); NULL: the cost model's. */
    LhTime (*compute_time)(void *data, uint32_t rank, const LhOp *op);
    void *compute_time_data;
    LhTimelineSink timeline; /* NULL: none */
    void *timeline_data;
    /* Measure the exposed communication of ranks that are multiples of this; 0: of none. */
    uint32_t exposed_stride;
    /* The dimension of parallelism that an op communicates for; LH_EXPOSED_DIMENSIONS: none. Not
     * NULL with exposed_stride. */
    uint8_t (*exposed_dimension)(const LhOp *op);
    bool unfolded;       /* simulate every rank, without folding */
    bool unskipped;      /* simulate every layer and micro-batch, without fast-forward */
    bool at_once;        /* issue every op when its host could, without reading ahead */
    LhMemorySink memory; /* NULL: none */
    void *memory_data;
    LhLinkSink links; /* NULL: none */
    void *links_data;
    /* Memory limit of a rank. The first op that exceeds it is part of the result, and the run goes
     * on. 0: no limit. */
    uint64_t memory_limit_bytes;
    bool path; /* record the critical path; without it, this costs nothing */
    /* With `path`: also keep the dependence graph. Every rank is simulated. */
    bool precedence;
    /* Fraction of its time that op @id of the program takes: of its kernel, of the messages it
     * sends including their latency; of a closed form of a collective, the smallest fraction of its
     * members. NULL: 1. */
    double (*time_share)(void *data, uint32_t rank, uint32_t id, const LhOp *op,
                         const LhOpBuffer *buffer);
    void *time_share_data;
    bool time_share_alike; /* it is the same for ops that folding takes for the same */
    /* The folding to try first: that which an earlier run of the program on the network ended with,
     * or all zeros. Set to that of this run, which has none if it may not fold. No result depends
     * on it. NULL: the largest. */
    LhSymmetryGroups *fold;
    /* Receives progress now and then: program, events and simulated time. A run uses one thread,
     * whatever the task's jobs, and reports on it. */
    LhTask task;
    /* A run that takes longer than this is abandoned with an error; other threads may lower it.
     * NULL: no limit. */
    const _Atomic LhTime *limit_ps;
    /* Of LhRankTails, borrowed, for some of the ranks: lets a run that exceeds the limit be
     * abandoned earlier. NULL: none. */
    const GArray *tails;
    /* Set to the simulated time at which the run ended, failed or was abandoned; may be NULL. */
    LhTime *ended_ps;
} LhSimParams;

/* Initialises the cost model of ops for a run with @params, whose device and framework are
 * borrowed. */
void lh_sim_begin_cost(LhCost *cost, const LhSimParams *params);

/* Factors on kernel times in such a run: of @rank, if it is a straggler; of a single op, by
 * jitter. */
double lh_sim_slowdown(const LhSimParams *params, uint32_t rank);

static inline double
lh_sim_variation(const LhSimParams *params, uint32_t rank, uint32_t op)
{
    return params->jitter > 0
               ? 1 + params->jitter * (2 * lh_rng_uniform(params->seed, rank, op) - 1)
               : 1;
}
