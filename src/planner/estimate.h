/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a point of a space takes at least, and needs at least: never more than what a simulation
 * finds. There is a quick answer, from programs of a few layers, and a close one, from the program
 * itself, whose memory is exact.
 */
#pragma once

#include "planner/step_decomposition.h"

typedef struct {
    LhTime time_ps;                      /* of a step: no simulation is faster */
    uint64_t peak_bytes;                 /* of the rank that needs most */
    uint64_t limit_bytes;                /* what a rank may hold; 0: no limit */
    uint64_t by_category[LH_CATEGORIES]; /* of peak_bytes; of the close answer only */
} LhPlanEstimate;

/*
 * The quick one. The sums of a rank's kernels and launches, and its peak of memory, are those of
 * programs of a few layers, continued in a straight line: sums grow by the same for each further
 * layer, and a peak, the highest of many moments each of which grows by the same, by no less than
 * at first. Models whose layers differ are taken as they are. Of a pipeline these are programs of
 * one stage, and what a layer adds there is what it adds to its stage: a stage works on all of its
 * layers after the first micro-batch has passed the stages before it, and before the gradients of
 * the last one do, and holds what is in flight. False, LH_ERROR_NO, for a point that
 * is refused.
 */
bool lh_plan_estimate_quick(const LhPlanCase *c, LhPlanEstimate *estimate, GError **error);

/* The attention of a point, whatever its stages. Refusals are LH_ERROR_NO. Caller clears. */
bool lh_plan_attention(const LhPlanCase *c, bool communication, LhAttentionPart *part,
                       GError **error);

/* What is around attention in a step, of a few layers; or of all, where they differ. */
typedef struct {
    LhAroundPart few, next; /* `next`: of a layer more */
    bool continued;         /* in a straight line through both; else `few` has all layers */
} LhPlanAround;

/* Refusals are LH_ERROR_NO. @hollow stands for the case's attention. */
bool lh_plan_around(const LhPlanCase *c, const LhStepAttention *hollow, bool communication,
                    LhPlanAround *around, GError **error);

/* The time of the quick one, if messages and collectives take what they take at least, and the
 * first stream waits for those of attention: between the quick answer and the close one in what it
 * costs and what it says. 0 for a point that is refused. */
LhTime lh_plan_estimate_messages(const LhPlanCase *c);

/* The quick one from its parts, for a case that is not refused. */
LhPlanEstimate lh_plan_estimate_parts(const LhPlanCase *c, const LhAttentionPart *attention,
                                      const LhPlanAround *around);

/* What a rank may hold of a step; 0: no limit. */
uint64_t lh_plan_limit_bytes(const LhSetup *setup);

/* The close one, of the case's @program: the longest chain of ops of a few ranks, or sums as above
 * where these are more; what every rank holds, exactly. A step that takes at least @enough_ps, or
 * does not fit, is not looked at further: false if its memory is not known therefore. */
bool lh_plan_estimate_close(const LhPlanCase *c, const LhProgram *program, LhTime enough_ps,
                            LhPlanEstimate *estimate);

/* What ranks whose chains the close one follows take at least from each of their ops on, one of
 * each stage: of LhRankTails. Caller unrefs. */
GArray *lh_plan_estimate_tails(const LhPlanCase *c, const LhProgram *program);

/* Of the close one memory alone. */
void lh_plan_estimate_memory(const LhPlanCase *c, const LhProgram *program,
                             LhPlanEstimate *estimate);
