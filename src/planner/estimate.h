/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lower bounds of a point's time and memory, never above what a simulation finds. The quick
 * estimate is computed from programs with few layers; the close estimate from the program itself,
 * with exact memory.
 */
#pragma once

#include "planner/step_decomposition.h"

typedef struct {
    LhTime time_ps;                      /* of a step: a lower bound */
    uint64_t peak_bytes;                 /* of the rank with the highest peak */
    uint64_t limit_bytes;                /* memory limit of a rank; 0: no limit */
    uint64_t states_bytes;               /* part of peak_bytes that no activation takes; quick */
    uint64_t by_category[LH_CATEGORIES]; /* of peak_bytes; close estimate only */
} LhPlanEstimate;

/*
 * The quick estimate. Computes the sums of a rank's kernels and launches, and its peak memory, for
 * programs with few layers, and extrapolates them linearly. Sums grow by the same amount per layer.
 * A peak is the maximum over many moments, each of which grows linearly, so it grows by no less
 * than at first. Models whose layers differ are computed in full. For a pipeline, programs of one
 * stage are used, and what a layer adds there is added to its stage: a stage works on all its
 * layers after the first micro-batch has passed the earlier stages, and before the last one's
 * gradients do; it holds the micro-batches in flight. False, LH_ERROR_NO, for a rejected point.
 */
bool lh_plan_estimate_quick(const LhPlanCase *c, LhPlanEstimate *estimate, GError **error);

/* The attention part of a point; independent of its pipeline stages. Rejections are LH_ERROR_NO.
 * Caller clears. */
bool lh_plan_attention(const LhPlanCase *c, bool communication, LhAttentionPart *part,
                       GError **error);

/* The part around attention in a step with few layers, or with all where layers differ. */
typedef struct {
    LhAroundPart few, next; /* `next`: with one more layer */
    bool continued;         /* extrapolate linearly from both; false: `few` has all layers */
} LhPlanAround;

/* Rejections are LH_ERROR_NO. @hollow is a stub of the case's attention. */
bool lh_plan_around(const LhPlanCase *c, const LhStepAttention *hollow, bool communication,
                    LhPlanAround *around, GError **error);

/* Time of the quick estimate with lower bounds of messages and collectives included, and with the
 * first stream waiting for those of attention. In cost and tightness it is between the quick and
 * the close estimate. 0 for a rejected point. */
LhTime lh_plan_estimate_messages(const LhPlanCase *c);

/* The quick estimate from its parts, for a case that is not rejected. */
LhPlanEstimate lh_plan_estimate_parts(const LhPlanCase *c, const LhAttentionPart *attention,
                                      const LhPlanAround *around);

/* Lower bound of the time of a pipeline whose stages wait for each other's rows and gradients, from
 * the parts of the estimate with messages, for a case that is not rejected. It takes time in
 * proportion to the exchanges. 0 where it adds nothing: one stage, or layers that differ. */
LhTime lh_plan_estimate_exchanges(const LhPlanCase *c, const LhAttentionPart *attention,
                                  const LhPlanAround *around);

/* The same for a case alone; 0 for a rejected point. */
LhTime lh_plan_estimate_refined(const LhPlanCase *c);

/* Memory limit of a rank in a step; 0: no limit. */
uint64_t lh_plan_limit_bytes(const LhSetup *setup);

/* The longest chain of ops of a few ranks of @program, or the sums of their times if these are
 * longer; stops at one of @enough_ps. */
LhTime lh_plan_estimate_chain(const LhPlanCase *c, const LhProgram *program, LhTime enough_ps);

/* The close estimate, of the case's @program: exact peak memory of every rank; if it fits, the
 * longest chain of ops of a few ranks, or the sums above if these are longer, else no time. Stops
 * for a step that takes at least @enough_ps, and returns false. */
bool lh_plan_estimate_close(const LhPlanCase *c, const LhProgram *program, LhTime enough_ps,
                            LhPlanEstimate *estimate);

/* Lower bound of the remaining time after each op, for the ranks that the close estimate follows,
 * one per stage: of LhRankTails. Caller unrefs. */
GArray *lh_plan_estimate_tails(const LhPlanCase *c, const LhProgram *program);

/* The memory of the close estimate alone. */
void lh_plan_estimate_memory(const LhPlanCase *c, const LhProgram *program,
                             LhPlanEstimate *estimate);
