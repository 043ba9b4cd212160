/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Kinds of ops that timelines distinguish by colour: kernels in a rank's upper lane, transfers in
 * its lower one.
 */
#pragma once

#include "program/timeline.h"
#include "scenario/setup.h"

typedef enum {
    LH_LANE_WAITING,
    LH_LANE_FORWARD,
    LH_LANE_BACKWARD,
    LH_LANE_OTHER_FORWARD,
    LH_LANE_OTHER_BACKWARD,
    LH_LANE_OPTIMIZER,
    LH_LANE_HELD,     /* messages or a collective waiting for other ranks */
    LH_LANE_TRANSFER, /* not over links: between threads of an executed run, or with free
                         communication */
    LH_LANE_TIERS,    /* LH_TIERS consecutive kinds */
    LH_LANE_KINDS = LH_LANE_TIERS + LH_TIERS
} LhLaneKind;

/* "attention forward", "NVLink transfer"; caller frees. */
char *lh_lane_title(const LhSetup *setup, int kind);

/* "#0072B2" */
const char *lh_lane_colour(int kind);

/* Whether it is in the lower lane. */
static inline bool
lh_lane_is_transfer(int kind)
{
    return kind >= LH_LANE_HELD;
}

/* Kind of @record, which lh_lane_has() accepts, while it does not wait for others. */
int lh_lane_kind(const LhTimelineRecord *record, const LhSetup *setup);

/* Whether the op is drawn in a lane: a kernel or a transfer. */
bool lh_lane_has(const LhTimelineRecord *record);
