/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who caused what, while a run is under way: for every op and message that is not through, the
 * chain of steps (path.h) that led to its start. A step is kept for as long as something that is
 * not through came from it; chains merge, so that this is far less than the whole run. If it is
 * asked for, all that things waited for is kept beside it (slack.h), to the end of the run.
 */
#pragma once

#include "sim/inflight_ops.h"
#include "sim/network/saturated_links.h"
#include "sim/slack.h"

/* No cause: the start of the run. */
#define LH_NO_STEP UINT32_MAX

typedef struct _LhPathRecorder LhPathRecorder;

/* @network and @flows are borrowed; @flows is watched from now on. @precedence: keep that, too.
 * Caller frees. */
LhPathRecorder *lh_path_recorder_new(const LhNetwork *network, LhFlows *flows, bool shared,
                                     bool precedence);
void lh_path_recorder_free(LhPathRecorder *causes);

/* Op @id of @rank starts now: because of an op of its rank that ended now, or else its host. What
 * happens next happens because of that. */
void lh_path_recorder_op_starts(LhPathRecorder *causes, uint32_t rank, uint32_t id, LhNode *node,
                                LhTime now);

/* The op ends now: a kernel because it has run, everything else because of what happens now. */
void lh_path_recorder_op_ends(LhPathRecorder *causes, uint32_t rank, uint32_t id, LhNode *node,
                              LhTime now);

/* What happens next happens because @node started, or, of a closed form, is through. */
void lh_path_recorder_because(LhPathRecorder *causes, const LhNode *node);

/* The host of @rank goes on after @sync at @end_ps. */
void lh_path_recorder_sync_ends(LhPathRecorder *causes, uint32_t rank, uint32_t id,
                                const LhNode *sync, LhTime now, LhTime end_ps);

/* @flow starts on @route because of what happens now, from the op of its sender to the op of its
 * receiver. @hop: of a collective. */
void lh_path_recorder_flow_starts(LhPathRecorder *causes, uint32_t flow, const LhRoute *route,
                                  const uint32_t ops[2], bool hop, LhTime now);

/* Its last byte is out; what it brings is there: what happens next happens because of that. */
void lh_path_recorder_flow_left(LhPathRecorder *causes, uint32_t flow, LhTime now);
void lh_path_recorder_flow_arrived(LhPathRecorder *causes, uint32_t flow, LhTime now);

/* What happens now brings something to op @id of @rank: a message, the end of a closed form. */
void lh_path_recorder_delivered(LhPathRecorder *causes, uint32_t rank, uint32_t id);

/* What happens next happens because op @id of @rank is where it is, and those told before it back
 * to the @first: all members of a collective, or both ends of a message that takes no time. */
void lh_path_recorder_gather(LhPathRecorder *causes, uint32_t rank, uint32_t id, bool first);

/* A closed form that the last of a group completes: everybody is through at @end_ps, @latency_ps of
 * it independent of the bytes, the rest on @route. Then it is told to each member's node. */
void lh_path_recorder_meet(LhPathRecorder *causes, const LhRoute *route, uint32_t op, LhTime now,
                           LhTime latency_ps, LhTime end_ps);
void lh_path_recorder_join(LhPathRecorder *causes, uint32_t rank, uint32_t id, LhNode *node);

/* The chain up to the latest end, from the first step on: of LhPathStep. Caller unrefs. */
GArray *lh_path_recorder_path(const LhPathRecorder *causes);

/* All that waited for something; NULL unless it is kept. Caller frees. */
LhSlackGraph *lh_path_recorder_take_slack(LhPathRecorder *causes);
