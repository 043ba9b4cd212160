/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Routing of results to their homes: the contributions that each rank receives for its outputs,
 * from other ranks and itself, and their order.
 */
#pragma once

#include "synth/layout.h"

/* Result buffers are reused: the results that leave or arrive after a stage may use the parts of
 * those this many stages earlier, after waiting for them. */
#define LH_SYNTH_REUSE 2U

typedef enum {
    LH_SYNTH_O, /* results of rows, forward */
    LH_SYNTH_DQ,
    LH_SYNTH_DKV,
    LH_SYNTH_RESULTS
} LhSynthResult;

/* A contribution to an output, for the rank that owns its tokens. */
typedef struct {
    bool remote;     /* from another place */
    uint32_t stage;  /* stage after which it is sent */
    uint32_t output; /* part of the rank's output */
    uint32_t source; /* sending rank; may be the receiver */
    uint32_t from;   /* part of the source's layout */
    uint32_t at;     /* receive part, if it comes from another rank; reused */
} LhSynthArrival;

/* The same from the sender's view. */
typedef struct {
    uint32_t peer;
    guint index; /* index among the arrivals of the peer */
    uint32_t at; /* send part, if it is rounded before sending; reused */
} LhSynthDeparture;

typedef struct {
    uint32_t ranks;
    GArray **arrivals;   /* [ranks]: of LhSynthArrival, in order */
    GArray **departures; /* [ranks]: of LhSynthDeparture; those to one peer in the order of its
                            arrivals */
    uint32_t came, sent; /* parts needed by any rank for receiving and for sending */
    uint32_t sums;       /* largest number, over ranks, of outputs with several contributions */
} LhSynthRouting;

/* Routes one kind of result. Caller frees. */
LhSynthRouting *lh_synth_routing_new(const LhSynthLayout *layout, LhSynthResult kind);
void lh_synth_routing_free(LhSynthRouting *returns);

/* The number of slices of a GPU for a kind of result. */
static inline uint32_t
lh_synth_result_slices(const LhSynthProblem *p, LhSynthResult kind)
{
    return kind == LH_SYNTH_DKV ? p->kv_slices : p->grain.slices;
}

/* The part of a place's result for an entry (slice * chunks + chunk), and the stage after which
 * it is complete. LH_SYNTH_NONE: the place has none. */
uint32_t lh_synth_result_at(const LhSynthSite *site, LhSynthResult kind, uint32_t entry,
                            uint32_t *stage);
