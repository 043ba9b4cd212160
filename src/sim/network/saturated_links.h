/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which links hold a message back. The bottleneck of its fair share does; so does every link of its
 * route that would be full if everything on it were LH_WHAT_IF_FACTOR times as fast, unless others
 * go much faster on it, which would then yield.
 */
#pragma once

#include "sim/network/flows.h"

typedef struct _LhSaturatedLinks LhSaturatedLinks;

/* Both are borrowed. @shared: links are shared fairly. Caller frees. */
LhSaturatedLinks *lh_saturated_links_new(const LhNetwork *network, const LhFlows *flows,
                                         bool shared);
void lh_saturated_links_free(LhSaturatedLinks *binding);

/* Rates have changed since the last question. */
void lh_saturated_links_refresh(LhSaturatedLinks *binding);

/* Of flow @index, which moves: a bit for each LhTier. 0: it has no rate yet. */
uint8_t lh_saturated_links_of_flow(LhSaturatedLinks *binding, uint32_t index);

/* Of a message that is alone on @route. */
uint8_t lh_saturated_links_of_route(const LhNetwork *network, const LhRoute *route);
