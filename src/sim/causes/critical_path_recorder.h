/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Records causes while a run is under way: for every op and message in flight, the chain of steps
 * (path.h) that led to its start. A step is kept while an op or message in flight descends from it.
 * Chains merge, so this is far less than the whole run. On request the whole dependence graph of
 * the run (slack.h) is kept as well, to the end of the run.
 */
#pragma once

#include "sim/causes/slack.h"
#include "sim/inflight_ops.h"
#include "sim/network/saturated_links.h"

/* No cause: the step starts at time 0. */
#define LH_NO_STEP UINT32_MAX

typedef struct _LhPathRecorder LhPathRecorder;

/* Sender and receiver of a message, and their ops. */
typedef struct {
    uint32_t ranks[2], ops[2];
    bool hop; /* it belongs to a collective */
} LhFlowEnds;

/* @network and @flows are borrowed; @flows is watched from now on. @shared: flows share link
 * capacity. @fold: that of the run; NULL: every rank is simulated. @precedence: also keep the
 * dependence graph. Caller frees. */
LhPathRecorder *lh_path_recorder_new(const LhNetwork *network, LhFlows *flows, bool shared,
                                     const LhSymmetryGroups *fold, bool precedence);
void lh_path_recorder_free(LhPathRecorder *causes);

/* @rank has issued @op, with the lists of @buffer. */
void lh_path_recorder_issued(LhPathRecorder *causes, uint32_t rank, const LhOp *op,
                             const LhOpBuffer *buffer);

/* Op @id of @rank starts now, caused by an op of its rank that ended now, or else by its host. It
 * becomes the current cause, that of the next records. */
void lh_path_recorder_op_starts(LhPathRecorder *causes, uint32_t rank, uint32_t id, LhNode *node,
                                LhTime now);

/* The op that started last is a collective that moves data only when all members are there. */
void lh_path_recorder_joins(LhPathRecorder *causes);

/* The op ends now. A kernel ends because its time is over, any other op because of the current
 * cause. */
void lh_path_recorder_op_ends(LhPathRecorder *causes, uint32_t rank, uint32_t id, LhNode *node,
                              LhTime now);

/* Makes the cause of @node the current cause: that of its start, or of the end of a closed form. */
void lh_path_recorder_because(LhPathRecorder *causes, const LhNode *node);

/* The host of @rank continues after @sync at @end_ps. */
void lh_path_recorder_sync_ends(LhPathRecorder *causes, uint32_t rank, uint32_t id,
                                const LhNode *sync, LhTime now, LhTime end_ps);

/* @flow starts on @route because of the current cause. */
void lh_path_recorder_flow_starts(LhPathRecorder *causes, uint32_t flow, const LhRoute *route,
                                  const LhFlowEnds *ends, LhTime now);

/* The last byte of @flow has left; @flow has arrived. Each becomes the current cause. */
void lh_path_recorder_flow_left(LhPathRecorder *causes, uint32_t flow, LhTime now);
void lh_path_recorder_flow_arrived(LhPathRecorder *causes, uint32_t flow, LhTime now);

/* The current cause delivers something to op @id of @rank: a message, or the end of a closed
 * form. */
void lh_path_recorder_delivered(LhPathRecorder *causes, uint32_t rank, uint32_t id);

/* The next cause is a join: op @id of @rank has started and received what it has so far, and so
 * have the ops gathered before it, back to the one with @first. Used for all members of a
 * collective, and for both ends of a message that takes no time. */
void lh_path_recorder_gather(LhPathRecorder *causes, uint32_t rank, uint32_t id, bool first);

/* The last member of a collective with a closed form has arrived: all members end at @end_ps.
 * @latency_ps of that does not depend on the bytes; the rest is spent on @route. Follow with
 * lh_path_recorder_join() for the node of each member. */
void lh_path_recorder_meet(LhPathRecorder *causes, const LhRoute *route, uint32_t op, LhTime now,
                           LhTime latency_ps, LhTime end_ps);
void lh_path_recorder_join(LhPathRecorder *causes, uint32_t rank, uint32_t id, LhNode *node);

/* The critical path: the chain that leads to the latest end, first step first, of LhPathStep.
 * Caller unrefs. */
GArray *lh_path_recorder_path(const LhPathRecorder *causes);

/* The dependence graph of the run; NULL unless it was kept. Caller frees. */
LhSlackGraph *lh_path_recorder_take_slack(LhPathRecorder *causes);
