/* SPDX-License-Identifier: Apache-2.0 */
/*
 * State shared by flows.c (start and end of messages) and max_min.c (their shares of links).
 */
#pragma once

#include "sim/network/flows.h"
#include "sim/network/latency_queues.h"

#define LH_NO_LINK UINT32_MAX
#define LH_OWN_LIMIT (UINT32_MAX - 1) /* in place of a link: the flow's own rate limit */
#define LH_HOP_BITS 4                 /* a link's list holds flow << LH_HOP_BITS | hop */

G_STATIC_ASSERT(LH_ROUTE_MAX <= 1 << LH_HOP_BITS);

/* A link of a flow's route, and the flow's index in the list of the link. */
typedef struct {
    uint32_t link, position;
} LhFlowHop;

/* Its routes are short, so an element of LhFlows.flows ends behind the hops of the longest route so
 * far: lh_flow(). What every change of shares reads comes first, in one cache line. */
typedef struct {
    double rate;           /* bytes/s */
    double next_rate;      /* while in the set; negative: not fixed yet */
    double narrowest_rate; /* minimum of the capacity of its narrowest link and its own limit; upper
                              bound of its rate */
    uint32_t narrowest;
    uint32_t bottleneck; /* link that limits its rate */
    uint32_t next_bottleneck;
    uint32_t epoch;         /* in the set if equal to LhFlows.epoch */
    double remaining_bytes; /* as of updated_ps */
    LhTime updated_ps;
    LhTime finish_ps; /* may be later than the key in the heap: see schedule() */
    LhTime latency_ps;
    double own_rate;     /* own limit; INFINITY: none */
    uint8_t links_count; /* 0: not on the network (sent, or free) */
    uint8_t own_tiers;   /* see LhRoute */
    LhFlowHop hops[LH_ROUTE_MAX];
} LhFlow;

#define LH_FLOW_LINE_BYTES 64

#define LH_SETTINGS_INLINE 2

/* One cache line: a large network has more links than anything else. */
typedef struct {
    double capacity; /* bytes/s */
    union {
        double demand; /* sum of narrowest_rate over its flows; if at most the capacity, the link is
                          slack */
        LhTime free_ps; /* FIFO model: when the link has sent everything posted so far */
    };
    double residual; /* while solving: capacity left for unfixed flows of the set */
    union {
        uint64_t bytes; /* carried so far, modulo 2^64 */
        struct {
            uint32_t source, destination;
        } pair; /* link of a pair: source, and twice the destination, plus one for collectives */
    };
    uint32_t *entries; /* `in_place` up to LH_SETTINGS_INLINE entries */
    uint32_t entries_count, entries_capacity;
    uint32_t in_place[LH_SETTINGS_INLINE];
    uint32_t open;  /* while solving: unfixed flows of the set */
    uint32_t epoch; /* touched if equal to LhFlows.epoch */
} LhFlowLink;

G_STATIC_ASSERT(sizeof(LhFlowLink) == 64);

/*
 * What is known of the flows of a link that are not in the set, so that many starts and ends of one
 * instant do not look at all flows each. Known in the epoch that is noted: rates and bottlenecks
 * change at its end only. A flow that starts outside the set may have the link as bottleneck, but
 * then has all of its capacity, more than an equal share: it joins when another one makes the link
 * tight.
 */
typedef struct {
    double fastest;   /* upper bound of their rates ... */
    uint32_t claimed; /* ... in this epoch */
    uint32_t held;    /* in this epoch the link is the bottleneck of none of them */
} LhLinkOutside;

#define LH_OF_FLOW (1u << 31)

/* A link's fair share, or a flow's own limit, in the solver's heap. */
typedef struct {
    double share;
    uint32_t link; /* or flow | LH_OF_FLOW */
    uint32_t
        open; /* number of unfixed flows when computed; the share is valid while it is unchanged */
} LhMaxMinShare;

typedef struct {
    uint32_t *items;
    uint32_t count, capacity;
} LhIndices;

struct _LhFlows {
    LhFlowsPending pending; /* first: flows.h casts to it */
    LhNetworkModel model;
    LhHeap *heap;
    uint32_t heap_first;
    char *flows;                    /* elements of flow_bytes: lh_flow() */
    uint32_t flow_bytes, flow_hops; /* the number of hops that an element has */
    uint32_t flows_count, flows_capacity;
    LhFlowLink *links;
    LhLinkOutside *outside; /* by link */
    uint32_t links_count, links_capacity;
    uint32_t pairs_first; /* links from here on are limits of pairs */
    uint32_t *carries; /* network links: carry of the byte counters, in units of 2^64; NULL: none */
    LhIndices pairs_free;
    uint32_t epoch;
    LhIndices set;     /* flows being solved */
    LhIndices touched; /* links that these cross */
    LhIndices free;    /* flow indices to reuse ... */
    LhIndices retired; /* ... after the next settle */
    LhMaxMinShare *shares;
    uint32_t shares_count, shares_capacity;
    LhLatencyQueues delays;  /* of flows that have been sent completely */
    LhFlowsWatch watch;      /* all NULL: none */
    LhLinkUtilization *load; /* NULL: not requested */
};

static inline void
lh_indices_push(LhIndices *a, uint32_t item)
{
    if (a->count == a->capacity) {
        a->capacity = MAX(16, a->capacity * 2);
        a->items = g_renew(uint32_t, a->items, a->capacity);
    }
    a->items[a->count++] = item;
}

/* Flow @index. Valid until the next lh_flows_start(). */
static inline LhFlow *
lh_flow(const LhFlows *f, uint32_t index)
{
    return (LhFlow *)(void *)(f->flows + (gsize)index * f->flow_bytes);
}

/* The last link of a flow on the network: the limit of its pair, if there is one. */
static inline uint32_t
lh_flow_last_link(const LhFlow *flow)
{
    return flow->hops[flow->links_count - 1].link;
}
