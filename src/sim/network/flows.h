/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Messages on the network: the links and rate of each flow, and its arrival. Rates are max-min
 * fair; a change re-solves only the flows whose share it moves (docs/reference/model.md, "Sharing
 * links").
 */
#pragma once

#include "base/heap.h"
#include "sim/network/link_utilization.h"

typedef struct _LhFlows LhFlows;

/* What the event loop asks in every instant; the beginning of an LhFlows. */
typedef struct {
    LhTime next_arrival_ps;
    bool unsettled; /* lh_flows_settle() has something to do */
} LhFlowsPending;

/*
 * Flow i is heap item @heap_first + i. @heap and @network are borrowed. Caller frees.
 */
LhFlows *lh_flows_new(const LhNetwork *network, LhNetworkModel model, LhHeap *heap,
                      uint32_t heap_first);
void lh_flows_free(LhFlows *flows);

/*
 * Starts a message of @bytes along @route; returns the flow's index, which stays taken until
 * lh_flows_release(). Rates change when lh_flows_settle() is called.
 */
uint32_t lh_flows_start(LhFlows *flows, LhTime now, const LhRoute *route, uint64_t bytes);

/* Re-solves the rates after the starts and ends of this instant; a no-op when nothing changed. */
void lh_flows_settle(LhFlows *flows, LhTime now);

/* An observer of rates. */
typedef struct {
    void *data;
    void (*settling)(void *data); /* rates have changed */
    /* The share of flow @index may have changed. */
    void (*changed)(void *data, uint32_t index, LhTime now);
} LhFlowsWatch;

/* Registers @watch (copied); lh_flows_settle() calls it from now on. */
void lh_flows_watch(LhFlows *flows, const LhFlowsWatch *watch);

/* Registers @load (borrowed), which follows all messages from now on; lh_flows_settle() reports
 * rates to it. */
void lh_flows_load(LhFlows *flows, LhLinkUtilization *load);

/* Handles the heap event of flow @index. Returns true if its last byte has been sent, so that only
 * its latency is left. */
bool lh_flows_event(LhFlows *flows, uint32_t index, LhTime now);

/* Time of the next arrival; LH_TIME_NEVER: no flow has been sent completely. */
static inline LhTime
lh_flows_next_arrival(const LhFlows *flows)
{
    return ((const LhFlowsPending *)flows)->next_arrival_ps;
}

/* Whether a flow has started, ended or been released since lh_flows_settle(), or utilisation is to
 * be reported. */
static inline bool
lh_flows_unsettled(const LhFlows *flows)
{
    return ((const LhFlowsPending *)flows)->unsettled;
}

/* Takes one message that arrives at @now; false when there is none left. */
bool lh_flows_arrive(LhFlows *flows, LhTime now, uint32_t *index);

/* Releases the index of a delivered flow. */
void lh_flows_release(LhFlows *flows, uint32_t index);

/* Counts @bytes that cross the links of @route outside of any flow. */
void lh_flows_count(LhFlows *flows, const LhRoute *route, uint64_t bytes);

/* Counts @bytes that cross link @id. */
void lh_flows_count_link(LhFlows *flows, uint32_t id, LhWide bytes);

/* Bytes of all messages that crossed directed link @id so far. */
LhWide lh_flows_link_bytes(const LhFlows *flows, uint32_t id);

/*
 * Rate of flow @index in bytes/s, as of the last settle; 0 once its last byte has been sent, and in
 * models without shares. For tests and reports.
 */
double lh_flows_rate(const LhFlows *flows, uint32_t index);
