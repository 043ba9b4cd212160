/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The dependence graph of a run: its events (an op starts, a message has left, an op ends, ...)
 * with everything that each had to wait for, not only the last. It gives the slack of every event,
 * and the makespan if some delays were shorter, as long as flows and kernels that share links and
 * SMs keep their times: docs/reference/model.md, "Slack".
 *
 * An event happens as soon as all its waits are over: its time is the maximum of (time of an
 * earlier event + delay from it). Memory: two events and about four waits per op, and four more
 * events per message, in event_blocks.h.
 */
#pragma once

#include "base/wide.h"
#include "sim/causes/event_blocks.h"
#include "sim/network/path.h"
#include "sim/network/symmetry.h"

#include <stdbool.h>

/* A group of equal ops: what they are, and those that have ended so far. */
typedef struct {
    uint8_t kind;      /* LhOpKind: compute, exchange or collective */
    uint8_t phase;     /* LhPhase */
    uint8_t kernel;    /* compute: LhKernelId; collective: LhCollectiveKind; exchange: 0 */
    uint8_t tier;      /* exchange: the highest tier of its messages; else LH_TIERS */
    uint32_t rank, op; /* the first one, by rank and then by op */
    uint32_t calls;
    LhWide time_ps; /* sum of their durations */
} LhSlackCalls;

/* An event of the graph under construction. */
typedef struct {
    LhTime time_ps;
    uint32_t rank, index;
} LhEventRef;

#define LH_NO_INDEX UINT32_MAX
#define LH_NO_EVENT ((LhEventRef){ .index = LH_NO_INDEX })

typedef struct {
    LhEventBlocks *blocks;
    LhSymmetryGroups fold; /* of a folded run: events stand for those of equivalent ranks, too */
    GArray *calls;         /* of LhSlackCalls */
    GHashTable *known;     /* what they are -> index + 1 */
    LhTime makespan_ps;
    uint32_t ranks_count;
    /* The latest event, until the next one begins. */
    bool begun;
    LhEvent event;
    GArray *waits; /* of LhWait */
} LhSlackGraph;

/* @fold: that of the run; NULL: every rank is simulated. Caller frees. */
LhSlackGraph *lh_slack_new(uint32_t ranks, const LhSymmetryGroups *fold);
void lh_slack_free(LhSlackGraph *p);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(LhSlackGraph, lh_slack_free)

/* The number of ranks that a rank with events stands for, including itself. */
static inline uint32_t
lh_slack_weight(const LhSlackGraph *p, uint32_t rank)
{
    return lh_symmetry_weight(&p->fold, rank);
}

/* The number of the calls that equal these, added if there are none. */
uint16_t lh_slack_calls(LhSlackGraph *p, LhSlackCalls like);

/* Appends an event of @rank's @op, which belongs to @call. Its waits follow. */
LhEventRef lh_slack_event(LhSlackGraph *p, LhTime time_ps, uint32_t rank, uint32_t op,
                          uint16_t call, LhPathStepKind kind);

/* The latest event waits for @event, @takes_ps after it. LH_NO_EVENT: ignored. */
void lh_slack_wait(LhSlackGraph *p, LhEventRef event, LhTime takes_ps);

/* The same for the event after which the host of the rank last went on. */
void lh_slack_wait_host(LhSlackGraph *p, LhEventRef event, LhTime takes_ps);

/* The waits of the latest event are spent on links of @tiers. */
void lh_slack_over(LhSlackGraph *p, uint8_t tiers);

/* The latest event is the start of its op; of a collective that moves data only when all members
 * are there. */
void lh_slack_starts(LhSlackGraph *p);
void lh_slack_joins(LhSlackGraph *p);

/* The latest event is the end of its op, which began at @start_ps. */
void lh_slack_ends(LhSlackGraph *p, LhTime start_ps);

/* No event follows. */
void lh_slack_close(LhSlackGraph *p);

/* ---- of a closed graph ---- */

typedef void (*LhEventVisit)(void *data, const LhEvent *event, const LhWait *waits);

/* Reports all events in order. @waits are those of the event. */
void lh_slack_each(const LhSlackGraph *p, LhEventVisit visit, void *data);

/*
 * Reports the slack of every event, the last event first: how much later it may happen without
 * increasing the makespan, if all later delays are unchanged. 0 for all events of the critical
 * path. The slack of an op is that of its end: how much longer it may take.
 */
void lh_slack_of(const LhSlackGraph *p,
                 void (*visit)(void *data, const LhEvent *event, LhTime slack_ps), void *data);

/* Sets @makespans_ps to the makespans of @count replays, each with its @data: those if the delays
 * that lead to each event were multiplied by @share(data, event). NULL: 1. */
void lh_slack_replay(const LhSlackGraph *p, double (*share)(void *, const LhEvent *),
                     void *const *data, uint32_t count, LhTime *makespans_ps);

/*
 * The chain of latest waits that leads to @event, from the start of the run: of LhPathStep, without
 * those that take no time. Its steps lie end to end up to the event's time. A step belongs to the
 * event that it leads to; its peer is the rank of the event that it comes from. Takes 8 bytes per
 * event. Caller unrefs.
 */
GArray *lh_slack_chain(const LhSlackGraph *p, LhEventRef event);
