/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a configuration that does not fit as it is has to turn on, remedy by remedy.
 */
#pragma once

#include "planner/search.h"
#include "remedy/ladder.h"

/* A remedy, in addition to those before it. */
typedef struct {
    LhRemedies adds;
    LhLadderPeak before, after;
    double lost_s; /* that a step takes longer; negative: less */
} LhFitStep;

typedef struct {
    guint point;
    bool fits;         /* in the end */
    LhLadderPeak peak; /* as it is */
    double as_is_s;    /* time of a step as if there were enough memory; 0: not simulated */
    uint64_t limit_bytes;
    GArray *steps; /* of LhFitStep: those that free most bytes for a second lost first */
} LhPlanFit;

/* The remedies @on of point @index; simulates the step after each of them, unless @task ends. With
 * the types of the optimizer's states last. Caller frees. */
LhPlanFit *lh_plan_fit_new(const LhPlanSpace *space, guint index, const LhRemedies *on,
                           const LhTask *task);
void lh_plan_fit_free(LhPlanFit *fit);

/* The same for the fastest point of a search, or, if that is G_MAXUINT, for one that needs least
 * memory, with all that it can turn on. NULL if there is no such point; also, unless @asked, if
 * some point may fit as it is. Caller frees. */
LhPlanFit *lh_plan_fit_of(const LhPlanSearch *search, guint fastest, bool asked,
                          const LhTask *task);

/* The category that is largest at a peak. */
int lh_fit_largest(const LhLadderPeak *peak);
