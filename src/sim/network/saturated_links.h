/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The links that limit a message: the bottleneck of its fair share, and every link of its route
 * that would be full if everything on it were LH_WHAT_IF_FACTOR times as fast, unless other flows
 * are much faster on it, which would then yield.
 */
#pragma once

#include "sim/network/flows.h"

typedef struct _LhSaturatedLinks LhSaturatedLinks;

/* Both are borrowed. @shared: links are shared max-min fairly. Caller frees. */
LhSaturatedLinks *lh_saturated_links_new(const LhNetwork *network, const LhFlows *flows,
                                         bool shared);
void lh_saturated_links_free(LhSaturatedLinks *binding);

/* Call after rates have changed. */
void lh_saturated_links_refresh(LhSaturatedLinks *binding);

/* The tiers of the links that limit flow @index, which is being sent, a bit for each LhTier. 0: it
 * has no rate yet. */
uint8_t lh_saturated_links_of_flow(LhSaturatedLinks *binding, uint32_t index);

/* The same for a message that is alone on @route. */
uint8_t lh_saturated_links_of_route(const LhNetwork *network, const LhRoute *route);
