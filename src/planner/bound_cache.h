/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lower bounds of messages and collectives on the network of a space, shared by all its points.
 * Each thread takes one cache at a time and gives it back.
 */
#pragma once

#include "scenario/setup.h"
#include "sim/lower_bound/lower_bound.h"

typedef struct _LhBoundCache LhBoundCache;

/* For the network of @setup, which is borrowed. Caller frees. */
LhBoundCache *lh_bound_cache_new(const LhSetup *setup);
void lh_bound_cache_free(LhBoundCache *calls);

/* Takes a cache for one thread, until it gives it back. */
LhLowerBoundCalls *lh_bound_cache_take(LhBoundCache *calls);
void lh_bound_cache_give_back(LhBoundCache *calls, LhLowerBoundCalls *taken);
