/*
 * The discrete-event simulator: plays a program on a network of devices in integer picoseconds.
 * Same input, same bytes out: the event order is total (time, then insertion).
 */
#pragma once

#include "model/framework.h"
#include "program/program.h"
#include "program/timeline.h"
#include "sim/cost/cost.h"
#include "sim/network/link_utilization.h"
#include "sim/slack.h"

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
    /* Called now and then with events so far and simulated time; false aborts the run. NULL: none.
     */
    bool (*progress)(void *data, uint64_t events, LhTime now_ps);
    void *progress_data;
    /* A run that takes longer is abandoned, with an error; other threads may lower it. NULL: none.
     */
    const _Atomic LhTime *limit_ps;
    /* Of LhRankTails, borrowed: of some ranks, with which it may be known earlier that a run will
     * take longer. NULL: none. */
    const GArray *tails;
    /* Set to the simulated time at which the run ended, failed or was abandoned; may be NULL. */
    LhTime *ended_ps;
} LhSimParams;

/* Why a rank was not computing; see docs/model.md. The parts add up to the idle time exactly. */
typedef enum {
    LH_IDLE_IMBALANCE, /* nothing moved for it: waiting for another rank to get there, or done
                          before the others */
    LH_IDLE_COMM, /* LH_TIERS consecutive entries: its data was on the way, by highest tier of the
                     route */
    LH_IDLE_HOST = LH_IDLE_COMM + LH_TIERS, /* its host had not issued the next op */
    LH_IDLE_PARTS
} LhIdlePart;

/* "imbalance", "nvlink", "pcie", "nic", "fabric", "host"; NULL-terminated. */
extern const char *const lh_idle_names[];

typedef struct {
    LhTime finish_ps;              /* when its last op was complete */
    LhTime busy_ps;                /* some compute stream was running */
    LhTime idle_ps[LH_IDLE_PARTS]; /* busy + sum(idle) = makespan */
    LhTime comm_ps; /* some communication stream had an op running (waiting included) */
    uint64_t bytes_sent;
    uint64_t bytes_by_tier[LH_TIERS]; /* sent bytes by the highest tier of their route */
    uint64_t flops;                   /* of attention */
    uint64_t dense_flops;             /* of products with weights */
    uint64_t peak_bytes;
    uint64_t peak_by_tensor[LH_TENSOR_KINDS]; /* at the moment of the peak */
    uint64_t peak_by_category[LH_CATEGORIES]; /* likewise */
    LhTime peak_at_ps;
    LhMemoryOp peak_op; /* whose alloc makes the peak */
} LhRankResult;

/* The first op whose memory is not there: of all ranks, that of the lowest time, then rank. */
typedef struct {
    uint32_t rank;
    LhTime time_ps;
    LhMemoryOp op;
    uint64_t needed_bytes; /* with the op's own */
    uint64_t limit_bytes;
    uint64_t by_category[LH_CATEGORIES]; /* of needed_bytes */
} LhOutOfMemory;

#define LH_BUSY_LINKS 10

/* How much of what a link could carry in the makespan it has carried. */
typedef struct {
    uint32_t link;
    double used;
} LhLinkUse;

/* The same over the links of a tier. */
typedef struct {
    uint32_t links;
    double used_sum;
    LhLinkUse busiest; /* `used` 0: none carried anything */
} LhTierUse;

typedef struct {
    LhTime makespan_ps;
    /* At both ends of what is assumed of the links (compare/time_range.h); 0: not asked. */
    LhTime fastest_ps, slowest_ps;
    uint32_t ranks_count;
    LhRankResult *ranks;      /* owned */
    uint32_t simulated_ranks; /* the others do what one of these does (network/fold.h) */
    uint64_t events;          /* compute completions + message completions */
    uint64_t ops;
    uint64_t skipped_ops; /* of these, in layers and micro-batches that were found to repeat what
                             was simulated, to the picosecond */
    /* The busiest link: bytes carried over capacity x makespan. */
    uint32_t busiest_link; /* UINT32_MAX: none carried anything */
    double busiest_link_utilisation;
    LhLinkUse busy_links[LH_BUSY_LINKS]; /* the busiest ones that carried anything, falling */
    uint32_t busy_links_count;
    LhTierUse tier_use[LH_TIERS]; /* links that stand for others are left out */
    LhWide link_bytes[LH_TIERS];  /* bytes carried by the links of each tier, each link crossed
                                     counted; of PCIe those of the GPUs' own links */
    LhOutOfMemory *out_of_memory; /* owned; NULL: everything fits, or there was no limit */
    GArray *path;                 /* of LhPathStep, from 0 to the makespan; NULL unless asked for */
    LhSlackGraph *precedence;     /* owned; NULL unless asked for */
    LhProvenance provenance;      /* the weakest of the constants that were used */
    double compute_error; /* what kernel times are good to, a mean by time: sim/cost/provenance.h */
    double compute_judged; /* share of their time for which that holds the model's error, too */
    LhExtrapolation beyond;
} LhSimResult;

/*
 * Plays the program. LH_ERROR_RUNTIME if it cannot end: messages that never match, a dependence
 * cycle, a failed link on a route (the message names ranks and ops that wait). Caller frees.
 */
LhSimResult *lh_simulate(const LhSimParams *params, GError **error);
void lh_sim_result_free(LhSimResult *result);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(LhSimResult, lh_sim_result_free)

/* sum(makespan - busy) / (ranks x makespan); 0 for an empty run. */
double lh_sim_bubble_fraction(const LhSimResult *result);

/* The cost of ops in a run with @params, whose device and framework are borrowed. */
void lh_sim_begin_cost(LhCost *cost, const LhSimParams *params);

/* How many times as long as that its kernels take in such a run: those of @rank, if it is a
 * straggler; and one of them, by jitter. */
double lh_sim_slowdown(const LhSimParams *params, uint32_t rank);
double lh_sim_variation(const LhSimParams *params, uint32_t rank, uint32_t op);
