/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Records all that ops and messages wait for, as the dependence graph of a run (slack.h).
 * critical_path_recorder.h calls it for the same events, in the same order.
 */
#pragma once

#include "program/program.h"
#include "sim/causes/critical_path_recorder.h"
#include "sim/inflight_ops.h"
#include "sim/network/network.h"

typedef struct _LhWaitRecorder LhWaitRecorder;

/* @network is borrowed. @fold: that of the run; NULL: every rank is simulated. Caller frees. */
LhWaitRecorder *lh_wait_recorder_new(const LhNetwork *network, const LhSymmetryGroups *fold);
void lh_wait_recorder_free(LhWaitRecorder *w);

/* @rank has issued @op, with the lists of @buffer. All of its ops, by id. */
void lh_wait_recorder_issued(LhWaitRecorder *w, uint32_t rank, const LhOp *op,
                             const LhOpBuffer *buffer);

void lh_wait_recorder_op_starts(LhWaitRecorder *w, uint32_t r, uint32_t id, const LhNode *node,
                                LhTime now);
/* The op that started last is a collective that moves data only when all members are there. */
void lh_wait_recorder_joins(LhWaitRecorder *w);

void lh_wait_recorder_op_ends(LhWaitRecorder *w, uint32_t r, uint32_t id, const LhNode *node,
                              LhTime now);
void lh_wait_recorder_sync_ends(LhWaitRecorder *w, uint32_t r, uint32_t id, const LhNode *sync,
                                LhTime now, LhTime end_ps);
void lh_wait_recorder_delivered(LhWaitRecorder *w, uint32_t rank, uint32_t id);
void lh_wait_recorder_gather(LhWaitRecorder *w, uint32_t rank, uint32_t id, bool first);
void lh_wait_recorder_flow_starts(LhWaitRecorder *w, uint32_t flow, const LhFlowEnds *ends,
                                  LhTime now);
void lh_wait_recorder_flow_left(LhWaitRecorder *w, uint32_t flow, LhTime now);
void lh_wait_recorder_flow_arrived(LhWaitRecorder *w, uint32_t flow, LhTime now);
void lh_wait_recorder_meet(LhWaitRecorder *w, uint32_t rank, uint32_t op, LhTime now,
                           LhTime end_ps);

/* The graph of the run, which has ended. Caller frees. */
LhSlackGraph *lh_wait_recorder_take(LhWaitRecorder *w);
