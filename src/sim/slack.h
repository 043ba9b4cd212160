/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What waits for what in a run: its events (an op starts, a message has left, an op ends, ...) with
 * all that each of them had to wait for, not only what came last. From it follow the slack of
 * everything and what the run would take if some of it took less, as long as whatever shares links
 * and SMs takes as long as it did: docs/reference/model.md, "Slack".
 *
 * An event happens as soon as all is over that it waits for: its time is the latest of (time of
 * an earlier event + what it takes from there). Memory is two events and about five waits an op,
 * and four more events a message.
 */
#pragma once

#include "sim/network/path.h"

#include <stdbool.h>

#define LH_NO_EVENT UINT32_MAX

typedef struct {
    LhTime time_ps;
    uint32_t waits_first; /* up to those of the next event; none: at the start of the run */
    uint32_t rank, op;    /* whose; of a message the sender's */
    uint8_t kind;         /* LhPathStepKind: what the time of its waits goes to */
    uint8_t tiers;        /* LINKS: of which tiers, as of a step; 0: not kept */
} LhEvent;

typedef struct {
    LhTime takes_ps; /* >= 0 */
    uint32_t event;  /* an earlier one */
} LhWait;

/* Where an op is: its events so far, or LH_NO_EVENT. */
typedef struct {
    uint32_t start;
    uint32_t done; /* all that has come of it: a message, its end */
    uint32_t left; /* the last message that it has sent */
} LhOpEvents;

typedef struct {
    GArray *events; /* of LhEvent; each waits for earlier ones only */
    GArray *waits;  /* of LhWait */
    GArray **ops;   /* by rank: of LhOpEvents, by op */
    uint32_t ranks_count;
} LhSlackGraph;

LhSlackGraph *lh_slack_new(uint32_t ranks);
void lh_slack_free(LhSlackGraph *precedence);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(LhSlackGraph, lh_slack_free)

/* A new event of @rank's @op; returns its index. Its waits follow. */
uint32_t lh_slack_event(LhSlackGraph *p, LhTime time_ps, uint32_t rank, uint32_t op,
                        LhPathStepKind kind);

/* The latest event waits for @event (LH_NO_EVENT: nothing), @takes_ps before it. */
void lh_slack_wait(LhSlackGraph *p, uint32_t event, LhTime takes_ps);

/* The time of the latest event's waits goes to links of @tiers. */
void lh_slack_over(LhSlackGraph *p, uint8_t tiers);

/* Of an op that is known or not; to change. Valid until the next call. */
LhOpEvents *lh_slack_op(LhSlackGraph *p, uint32_t rank, uint32_t op);

/*
 * The slack of every event, by index: how much later it may be without making the run longer, if
 * all that comes after takes as long as it did. 0 for all events of the critical path. Caller
 * frees.
 */
LhTime *lh_slack_of(const LhSlackGraph *p);

/* The slack of an op, which may take so much longer; of @slack. False if it never ended. */
bool lh_slack_of_op(const LhSlackGraph *p, const LhTime *slack, uint32_t rank, uint32_t op,
                    LhTime *slack_ps);

/* The makespan if the times that lead to an event were @share(data, event) of what they were.
 * NULL: all of it. */
LhTime lh_slack_replay(const LhSlackGraph *p, double (*share)(void *, const LhEvent *), void *data);

/*
 * The chain of what came last before @event, from the start of the run on: of LhPathStep, without
 * those that take no time. Its steps lie end to end up to the event's time. A step is of the event
 * that it leads to; its peer is the rank of the one that it comes from. Caller unrefs.
 */
GArray *lh_slack_chain(const LhSlackGraph *p, uint32_t event);
