/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is asked of the simulator, and what follows from that alone.
 */
#pragma once

#include "base/task.h"
#include "model/framework.h"
#include "program/program.h"
#include "program/timeline.h"
#include "sim/cost/cost.h"
#include "sim/network/link_utilization.h"

typedef struct {
    uint64_t rank;
    double slowdown; /* compute on this rank takes this many times as long; >= 1 */
} LhStraggler;

/* How long @rank takes at least from the end of each of its ops on: lh_lower_bound_tails(). */
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
    /* The training system, for what it does around calls of attention (sim/cost/call_cost.h);
     * borrowed. NULL: nothing. */
    const LhFramework *framework;
    bool serving;  /* attention kernels are those of serving systems, one at a time: for judging
                      measurements of such (sim/cost/attention_cost.h) */
    double jitter; /* compute times vary by a factor 1 +- jitter, by (seed, rank, op); [0, 1) */
    uint64_t seed;
    const GArray *stragglers; /* of LhStraggler; may be NULL */
    uint32_t steps_max;       /* stop each rank's program after so many steps; 0: all */
    /* Replaces the cost model's time of a compute op (benchmarks); NULL: the cost model's. */
    LhTime (*compute_time)(void *data, uint32_t rank, const LhOp *op);
    void *compute_time_data;
    LhTimelineSink timeline; /* NULL: none */
    void *timeline_data;
    /* The sink is told of ranks that are multiples of this alone, and of these in any order; 0: of
     * all, by time. */
    uint32_t timeline_stride;
    bool unfolded;       /* every rank is simulated, also where one could stand for others */
    bool unskipped;      /* every layer and micro-batch is simulated, also where they repeat */
    LhMemorySink memory; /* NULL: none */
    void *memory_data;
    LhLinkSink links; /* NULL: none */
    void *links_data;
    /* What a rank may hold: the first op that needs more is part of the result, and the run goes
     * on. 0: no limit. */
    uint64_t memory_limit_bytes;
    bool path; /* find the critical path; without it, that costs nothing */
    /* With `path`: also keep what waits for what. Every rank is simulated. */
    bool precedence;
    /* How much of its time an op takes: its kernel; the messages that it sends, with their latency;
     * of a collective's closed form the least of its members' shares. NULL: all of it. */
    double (*time_share)(void *data, uint32_t rank, uint32_t op);
    void *time_share_data;
    /* Told now and then of the program, events and simulated time, on the thread of the run, of
     * which there is one whatever its jobs. */
    LhTask task;
    /* A run that takes longer is abandoned, with an error; other threads may lower it. NULL: none.
     */
    const _Atomic LhTime *limit_ps;
    /* Of LhRankTails, borrowed: of some ranks, with which it may be known earlier that a run will
     * take longer. NULL: none. */
    const GArray *tails;
    /* Set to the simulated time at which the run ended, failed or was abandoned; may be NULL. */
    LhTime *ended_ps;
} LhSimParams;

/* The cost of ops in a run with @params, whose device and framework are borrowed. */
void lh_sim_begin_cost(LhCost *cost, const LhSimParams *params);

/* How many times as long as that its kernels take in such a run: those of @rank, if it is a
 * straggler; and one of them, by jitter. */
double lh_sim_slowdown(const LhSimParams *params, uint32_t rank);
double lh_sim_variation(const LhSimParams *params, uint32_t rank, uint32_t op);
