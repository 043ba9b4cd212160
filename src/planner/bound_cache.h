/*
 * What messages and collectives take at least on the network of a space, which all of its points
 * share: threads that look at points take turns with what is known of it.
 */
#pragma once

#include "scenario/setup.h"
#include "sim/lower_bound/lower_bound.h"

typedef struct _LhPlanCalls LhPlanCalls;

/* On the network of @setup, which is borrowed. Caller frees. */
LhPlanCalls *lh_plan_calls_new(const LhSetup *setup);
void lh_plan_calls_free(LhPlanCalls *calls);

/* For one thread, until it gives it back. */
LhLeastCalls *lh_plan_calls_take(LhPlanCalls *calls);
void lh_plan_calls_give_back(LhPlanCalls *calls, LhLeastCalls *taken);
