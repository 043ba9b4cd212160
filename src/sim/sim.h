/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The discrete-event simulator: plays a program on a network of devices in integer picoseconds.
 * Same input, same bytes out: the event order is total (time, then insertion).
 */
#pragma once

#include "program/timeline.h"
#include "sim/sim_params.h"
#include "sim/slack.h"

/* Why a rank was not computing; see docs/reference/model.md. The parts add up to the idle time
 * exactly. */
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
    uint32_t simulated_ranks; /* the others do what one of these does (network/symmetry.h) */
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
