/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A step in two parts: attention, and what is around it. What a rank takes and holds is the sum of
 * both, so that steps which differ in one part alone have the other in common.
 */
#pragma once

#include "planner/plan_point.h"
#include "program/live.h"
#include "sim/lower_bound/lower_bound.h"
#include "step/graph.h"

/* Attention of one layer of each kind, forward and backward, on the last rank of a context-parallel
 * group, which sees most keys where work is not balanced. */
typedef struct {
    LhStepAttention hollow; /* stands for it in a step; owned */
    LhLowerBoundTimes times[LH_STEP_KINDS][2];
    LhTime passes_ps[LH_STEP_KINDS][2]; /* from when the first stream comes to attention until it is
                                           through with it, messages and all */
    uint64_t peak_bytes[LH_STEP_KINDS][2]; /* beyond what it is given and gives back */
} LhAttentionPart;

/* How often one pass of attention is called. */
typedef struct {
    uint32_t all, first, timely; /* in all; by micro-batch 0; of these, not to recompute it */
    bool joined;         /* one follows another at once: its messages do not wait for that to end */
    uint64_t held_bytes; /* the most that is there meanwhile, but for its own */
} LhAttentionCalls;

/* All else that a step of one stage does, on the same rank. */
typedef struct {
    LhLowerBoundTimes times;
    uint64_t peak_bytes;                /* between calls of attention */
    uint64_t states_bytes, saved_bytes; /* there before the first op; the most that is saved */
    LhAttentionCalls calls[LH_STEP_KINDS][2];
} LhAroundPart;

/* Without @communication, messages and collectives take no time, here and below, which is much
 * quicker to find. Refusals are LH_ERROR_NO. Caller clears. */
bool lh_attention_part(const LhPlanCase *c, bool communication, LhAttentionPart *part,
                       GError **error);
void lh_attention_part_clear(LhAttentionPart *part);

/* Of the case, which has one stage, with so many layers, around @hollow. Refusals are LH_ERROR_NO.
 */
bool lh_around_part(const LhPlanCase *c, uint64_t layers, const LhStepAttention *hollow,
                    bool communication, LhAroundPart *part, GError **error);

/* The rank at place @index of @count, spread over the first context-parallel group of the first
 * stage. */
uint32_t lh_plan_group_rank(const LhStepParams *p, uint32_t index, uint32_t count);
