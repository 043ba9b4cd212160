/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Results on their way home: what each rank gets of its outputs from the ranks that computed a part
 * of them, itself among these, and in which order.
 */
#pragma once

#include "synth/layout.h"

/* Buffers of results on their way are used again: what leaves or comes behind a stage may have the
 * parts of what did so this many stages before, and waits for that. */
#define LH_SYNTH_REUSE 2U

typedef enum {
    LH_SYNTH_O, /* results of rows, forward */
    LH_SYNTH_DQ,
    LH_SYNTH_DKV,
    LH_SYNTH_RESULTS
} LhSynthResult;

/* A part of an output that comes to the rank that has its tokens. */
typedef struct {
    bool remote;     /* from another place */
    uint32_t stage;  /* behind which it is sent */
    uint32_t output; /* of the rank's parts of that output */
    uint32_t source; /* the rank that sends it; may be the receiver */
    uint32_t from;   /* part of the source's layout */
    uint32_t at;     /* part where it arrives, if it comes from another rank; used again */
} LhSynthArrival;

/* The same, as its source sees it. */
typedef struct {
    uint32_t peer;
    guint index; /* among the arrivals of the peer */
    uint32_t at; /* part from which it leaves, if it is rounded before; used again */
} LhSynthDeparture;

typedef struct {
    uint32_t ranks;
    GArray **arrivals;   /* [ranks]: of LhSynthArrival, in their order */
    GArray **departures; /* [ranks]: of LhSynthDeparture; those to one peer in the order of its
                            arrivals */
    uint32_t came, sent; /* parts that any rank needs for what comes and for what leaves */
    uint32_t sums;       /* outputs of a rank that come in several parts: the most of any rank */
} LhSynthRouting;

/* The returns of one kind of result. Caller frees. */
LhSynthRouting *lh_synth_routing_new(const LhSynthLayout *layout, LhSynthResult kind);
void lh_synth_routing_free(LhSynthRouting *returns);

/* Slices of a GPU that results of a kind have, and chunks x slices of all. */
static inline uint32_t
lh_synth_result_slices(const LhSynthProblem *p, LhSynthResult kind)
{
    return kind == LH_SYNTH_DKV ? p->kv_slices : p->grain.slices;
}

/* Where a place has its result for an entry (slice * chunks + chunk), and the stage behind which
 * that is complete. LH_SYNTH_NONE: it has none. */
uint32_t lh_synth_result_at(const LhSynthSite *site, LhSynthResult kind, uint32_t entry,
                            uint32_t *stage);
