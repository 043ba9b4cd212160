/* SPDX-License-Identifier: Apache-2.0 */
#include "report/draw/lane_kinds.h"

#include "report/draw/figure.h"

char *
lh_lane_title(const LhSetup *setup, int kind)
{
    static const char *const titles[] = {
        [LH_LANE_WAITING] = "not computing",
        [LH_LANE_FORWARD] = "attention forward",
        [LH_LANE_BACKWARD] = "attention backward",
        [LH_LANE_OTHER_FORWARD] = "other kernels forward",
        [LH_LANE_OTHER_BACKWARD] = "other kernels backward",
        [LH_LANE_OPTIMIZER] = "optimizer",
        [LH_LANE_HELD] = "waiting for others",
        [LH_LANE_TRANSFER] = "transfer",
    };

    if (kind < LH_LANE_TIERS)
        return g_strdup(titles[kind]);
    return g_strdup_printf("%s transfer",
                           lh_topology_link_name(setup->topology, (LhTier)(kind - LH_LANE_TIERS)));
}

const char *
lh_lane_colour(int kind)
{
    static const char *const colours[] = {
        [LH_LANE_WAITING] = LH_COLOUR_WAITING,
        [LH_LANE_FORWARD] = LH_COLOUR_FORWARD,
        [LH_LANE_BACKWARD] = LH_COLOUR_BACKWARD,
        [LH_LANE_OTHER_FORWARD] = LH_COLOUR_OTHER,
        [LH_LANE_OTHER_BACKWARD] = LH_COLOUR_OTHER_BACKWARD,
        [LH_LANE_OPTIMIZER] = LH_COLOUR_OPTIMIZER,
        [LH_LANE_HELD] = LH_COLOUR_HELD,
        [LH_LANE_TRANSFER] = LH_COLOUR_HOST,
    };

    return kind < LH_LANE_TIERS ? colours[kind] : lh_tier_colours[kind - LH_LANE_TIERS];
}

static int
other_kind(int phase)
{
    return phase == LH_PHASE_OPTIMIZER  ? LH_LANE_OPTIMIZER
           : phase == LH_PHASE_BACKWARD ? LH_LANE_OTHER_BACKWARD
                                        : LH_LANE_OTHER_FORWARD;
}

int
lh_lane_kind(const LhTimelineRecord *r, const LhSetup *setup)
{
    LhEffect effect;

    if (r->kind == LH_OP_COMPUTE && lh_kernels[r->kernel]->cost == LH_COST_HOST_LINK)
        return setup->cost == LH_COST_DEVICE ? LH_LANE_TIERS + LH_TIER_PCIE : LH_LANE_TRANSFER;
    if (r->kind != LH_OP_COMPUTE)
        return r->tier < LH_TIERS && setup->cost == LH_COST_DEVICE ? LH_LANE_TIERS + r->tier
                                                                   : LH_LANE_TRANSFER;
    effect = lh_kernels[r->kernel]->effect;
    if (lh_kernels[r->kernel]->linear || effect == LH_EFFECT_SCORES ||
        effect == LH_EFFECT_SCORES_APPLY)
        return r->phase == LH_PHASE_BACKWARD ? LH_LANE_BACKWARD : LH_LANE_FORWARD;
    switch (effect) {
    case LH_EFFECT_ATTEND:
        return LH_LANE_FORWARD;
    case LH_EFFECT_ATTEND_GRAD:
        return LH_LANE_BACKWARD;
    default:
        return other_kind(r->phase);
    }
}

bool
lh_lane_has(const LhTimelineRecord *r)
{
    return (r->kind == LH_OP_COMPUTE || r->kind == LH_OP_EXCHANGE || r->kind == LH_OP_COLLECTIVE) &&
           r->end_ps > r->start_ps;
}
