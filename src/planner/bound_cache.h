/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What messages and collectives take at least on the network of a space, which all of its points
 * share: threads that look at points take turns with what is known of it.
 */
#pragma once

#include "scenario/setup.h"
#include "sim/lower_bound/lower_bound.h"

typedef struct _LhBoundCache LhBoundCache;

/* On the network of @setup, which is borrowed. Caller frees. */
LhBoundCache *lh_bound_cache_new(const LhSetup *setup);
void lh_bound_cache_free(LhBoundCache *calls);

/* For one thread, until it gives it back. */
LhLowerBoundCalls *lh_bound_cache_take(LhBoundCache *calls);
void lh_bound_cache_give_back(LhBoundCache *calls, LhLowerBoundCalls *taken);
