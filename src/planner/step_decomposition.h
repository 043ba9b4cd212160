/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A step in two parts: attention, and the rest. A rank's time and memory are sums over both, so
 * steps that differ in one part share the other.
 */
#pragma once

#include "planner/plan_point.h"
#include "program/live.h"
#include "sim/lower_bound/lower_bound.h"
#include "step/graph.h"

/* Attention of one layer of each kind, forward and backward, on the last rank of a context-parallel
 * group, which attends to most keys where work is unbalanced. */
typedef struct {
    LhStepAttention hollow; /* stub for attention in a step; owned */
    LhLowerBoundTimes times[LH_STEP_KINDS][2];
    /* From the first stream's arrival at attention to its end, messages included. */
    LhTime passes_ps[LH_STEP_KINDS][2];
    uint64_t peak_bytes[LH_STEP_KINDS][2]; /* in addition to inputs and outputs */
} LhAttentionPart;

/* Calls of one pass of attention. */
typedef struct {
    uint32_t all, first, timely; /* all; in micro-batch 0; of these, not for recomputation */
    /* A call directly follows another: its messages do not wait for the other's end. */
    bool joined;
    uint64_t held_bytes; /* peak of other memory during the calls */
} LhAttentionCalls;

/* The rest of a one-stage step on the same rank. */
typedef struct {
    LhLowerBoundTimes times;
    uint64_t peak_bytes;                /* between calls of attention */
    uint64_t states_bytes, saved_bytes; /* before the first op; peak of saved activations */
    uint64_t gradients_bytes;           /* peak of weight gradients that are not states */
    LhAttentionCalls calls[LH_STEP_KINDS][2];
} LhAroundPart;

/* Estimates attention. Without @communication, here and below, messages and collectives take no
 * time, which is much faster to compute. Rejections are LH_ERROR_NO. Caller clears. */
bool lh_attention_part(const LhPlanCase *c, bool communication, LhAttentionPart *part,
                       GError **error);
void lh_attention_part_clear(LhAttentionPart *part);

/* Estimates the rest of the case, which has one stage, with @layers layers around @hollow.
 * Rejections are LH_ERROR_NO. */
bool lh_around_part(const LhPlanCase *c, uint64_t layers, const LhStepAttention *hollow,
                    bool communication, LhAroundPart *part, GError **error);

/* Rank @index of @count ranks spread over the first context-parallel group of the first stage. */
uint32_t lh_plan_group_rank(const LhStepParams *p, uint32_t index, uint32_t count);
