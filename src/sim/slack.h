/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The dependence graph of a run: its events (an op starts, a message has left, an op ends, ...)
 * with everything that each had to wait for, not only the last. It gives the slack of every event,
 * and the makespan if some delays were shorter, as long as flows and kernels that share links and
 * SMs keep their times: docs/reference/model.md, "Slack".
 *
 * An event happens as soon as all its waits are over: its time is the maximum of (time of an
 * earlier event + delay from it). Memory: two events and about five waits per op, and four more
 * events per message.
 */
#pragma once

#include "sim/network/path.h"

#include <stdbool.h>

#define LH_NO_EVENT UINT32_MAX

typedef struct {
    LhTime time_ps;
    uint32_t waits_first; /* first wait; they end where those of the next event begin; none: start
                             of the run */
    uint32_t rank, op;    /* owner; for a message the sender's op */
    uint8_t kind;         /* LhPathStepKind: what the time of its waits is spent on */
    uint8_t tiers;        /* LINKS: tiers, as of a step; 0: not recorded */
} LhEvent;

typedef struct {
    LhTime takes_ps; /* >= 0 */
    uint32_t event;  /* an earlier one */
} LhWait;

/* The events of an op so far, or LH_NO_EVENT. */
typedef struct {
    uint32_t start;
    uint32_t done; /* the latest arrival at the op, or its end */
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

/* Appends an event of @rank's @op; returns its index. Its waits follow. */
uint32_t lh_slack_event(LhSlackGraph *p, LhTime time_ps, uint32_t rank, uint32_t op,
                        LhPathStepKind kind);

/* The latest event waits for @event, @takes_ps after it. LH_NO_EVENT: ignored. */
void lh_slack_wait(LhSlackGraph *p, uint32_t event, LhTime takes_ps);

/* The waits of the latest event are spent on links of @tiers. */
void lh_slack_over(LhSlackGraph *p, uint8_t tiers);

/* The events of an op, created if needed, for the caller to change. Valid until the next call. */
LhOpEvents *lh_slack_op(LhSlackGraph *p, uint32_t rank, uint32_t op);

/*
 * The slack of every event, by index: how much later it may happen without increasing the makespan,
 * if all later delays are unchanged. 0 for all events of the critical path. Caller frees.
 */
LhTime *lh_slack_of(const LhSlackGraph *p);

/* The slack of an op: how much longer it may take. @slack is from lh_slack_of(). False if the op
 * never ended. */
bool lh_slack_of_op(const LhSlackGraph *p, const LhTime *slack, uint32_t rank, uint32_t op,
                    LhTime *slack_ps);

/* The makespan if the delays that lead to each event were multiplied by @share(data, event).
 * NULL: 1. */
LhTime lh_slack_replay(const LhSlackGraph *p, double (*share)(void *, const LhEvent *), void *data);

/*
 * The chain of latest waits that leads to @event, from the start of the run: of LhPathStep, without
 * those that take no time. Its steps lie end to end up to the event's time. A step belongs to the
 * event that it leads to; its peer is the rank of the event that it comes from. Caller unrefs.
 */
GArray *lh_slack_chain(const LhSlackGraph *p, uint32_t event);
