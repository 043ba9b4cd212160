/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The discrete-event simulator: simulates a program on a network of devices in integer picoseconds.
 * The same input gives the same bytes: the event order is total (time, then insertion).
 */
#pragma once

#include "program/timeline.h"
#include "sim/causes/slack.h"
#include "sim/exposed.h"
#include "sim/sim_params.h"

/* Why a rank was not computing; see docs/reference/model.md. The parts add up to the idle time
 * exactly. */
typedef enum {
    LH_IDLE_IMBALANCE, /* none of its data was in flight: it waited for another rank, or finished
                          before the others */
    LH_IDLE_COMM, /* LH_TIERS consecutive entries: exposed communication, by the highest tier of the
                     route */
    LH_IDLE_HOST = LH_IDLE_COMM + LH_TIERS, /* its host had not issued the next op */
    LH_IDLE_PARTS
} LhIdlePart;

/* "imbalance", "nvlink", "pcie", "nic", "fabric", "host"; NULL-terminated. */
extern const char *const lh_idle_names[];

/* Bytes in memory at the moment of a peak. */
typedef struct {
    uint64_t by_tensor[LH_TENSOR_KINDS];
    uint64_t by_category[LH_CATEGORIES];
} LhMemoryPeak;

typedef struct {
    LhTime finish_ps;              /* completion time of its last op */
    LhTime busy_ps;                /* at least one compute stream had an op running */
    LhTime idle_ps[LH_IDLE_PARTS]; /* busy + sum(idle) = makespan */
    LhTime comm_ps; /* at least one communication stream had an op running, including its waiting */
    uint64_t bytes_sent;
    uint64_t bytes_by_tier[LH_TIERS]; /* sent bytes by the highest tier of their route */
    uint64_t flops;                   /* of attention */
    uint64_t dense_flops;             /* of products with weights (GEMMs) */
    uint64_t peak_bytes;
    uint64_t host_peak_bytes; /* of slots in host memory */
    const LhMemoryPeak *peak; /* an element of LhSimResult.peaks */
    LhTime peak_at_ps;
    LhMemoryOp peak_op; /* the alloc that makes the peak */
} LhRankResult;

/* The first op that exceeds the memory limit: over all ranks the earliest, then the lowest rank. */
typedef struct {
    uint32_t rank;
    LhTime time_ps;
    LhMemoryOp op;
    uint64_t needed_bytes; /* including the op's own */
    uint64_t limit_bytes;
    uint64_t by_category[LH_CATEGORIES]; /* of needed_bytes */
} LhOutOfMemory;

/* Host memory of the node whose ranks need most: the sum of their peaks, since buffers for copies
 * are pinned and kept. */
typedef struct {
    uint32_t node;
    uint64_t needed_bytes; /* 0: nothing is offloaded */
    uint64_t limit_bytes;  /* of the topology; 0: not known */
} LhHostMemory;

static inline bool
lh_host_memory_fits(const LhHostMemory *host)
{
    return host->limit_bytes == 0 || host->needed_bytes <= host->limit_bytes;
}

#define LH_BUSY_LINKS 10

/* Utilisation of a link: bytes carried / (bandwidth x makespan). */
typedef struct {
    uint32_t link;
    double used;
} LhLinkUse;

/* Utilisation of the links of a tier. */
typedef struct {
    uint32_t links;
    double used_sum;
    LhLinkUse busiest; /* `used` 0: no link carried anything */
} LhTierUse;

typedef struct {
    LhTime makespan_ps;
    /* Error bar of the makespan, from the assumed ranges of the links (compare/time_range.h); 0:
     * not estimated. */
    LhTime fastest_ps, slowest_ps;
    uint32_t ranks_count;
    LhRankResult *ranks; /* owned */
    LhMemoryPeak *peaks; /* owned */
    uint32_t
        simulated_ranks; /* each other rank is represented by one of these (network/symmetry.h) */
    uint64_t events;     /* compute completions + message completions */
    uint64_t ops;
    uint64_t skipped_ops; /* of these, those in layers and micro-batches skipped by fast-forward */
    /* The busiest link: bytes carried over capacity x makespan. */
    uint32_t busiest_link; /* UINT32_MAX: no link carried anything */
    double busiest_link_utilisation;
    LhLinkUse
        busy_links[LH_BUSY_LINKS]; /* the busiest links that carried anything, in falling order */
    uint32_t busy_links_count;
    LhTierUse tier_use[LH_TIERS]; /* without links that represent others */
    LhWide link_bytes[LH_TIERS];  /* bytes carried by the links of each tier, counted once per link
                                     crossed; PCIe: the GPUs' own links only */
    /* Exposed communication by dimension, sum over exposed_ranks ranks (LhSimParams). */
    LhTime exposed_ps[LH_EXPOSED_DIMENSIONS];
    uint32_t exposed_ranks;
    LhOutOfMemory *out_of_memory; /* owned; NULL: everything fits, or no limit was set */
    LhHostMemory host_memory;
    GArray
        *path; /* the critical path, of LhPathStep, from 0 to the makespan; NULL unless requested */
    LhSlackGraph *precedence; /* dependence graph; owned; NULL unless requested */
    LhProvenance provenance;  /* the weakest of the constants used */
    double
        compute_error; /* relative error of kernel times, weighted by time: sim/cost/provenance.h */
    double compute_judged; /* share of kernel time for which compute_error includes the model's
                              error */
    LhExtrapolation beyond;
} LhSimResult;

/*
 * Simulates the program. LH_ERROR_RUNTIME if it cannot end: messages that never match, a dependence
 * cycle, a failed link on a route; the message names the waiting ranks and ops. Caller frees.
 */
LhSimResult *lh_simulate(const LhSimParams *params, GError **error);
void lh_sim_result_free(LhSimResult *result);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(LhSimResult, lh_sim_result_free)

/* sum(makespan - busy) / (ranks x makespan); 0 for an empty run. */
double lh_sim_bubble_fraction(const LhSimResult *result);
