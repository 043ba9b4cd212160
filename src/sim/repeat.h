/*
 * Layers and micro-batches that repeat: where the engine does the same again, to the picosecond, as
 * often as the program says the same again, it need not.
 *
 * Time is cut into windows, at the instants when the first rank gets to another layer or
 * micro-batch. What happens in a window is hashed: every op that is issued, with what it is, every
 * start and end of an op and of a message, when, and in which order; and at its end how far ahead
 * hosts and streams are. Three periods of windows that are equal in all of that end in states that
 * differ in nothing that could ever show, if every op that is under way was issued in the last of
 * them. Then the cursors of all ranks are looked ahead along: as many periods as all of them go on
 * to repeat are left out. Of these the ops are issued, so that memory, costs and hosts are as they
 * would be, but nothing happens; what has been counted in the last period is counted once more for
 * each. The engine's clock and its numbers of ops go on as if the periods were not in the program;
 * LhEngine.skipped_ps and LhSimRank.skipped_ops are what was left out (docs/model.md, "Layers that
 * repeat").
 */
#pragma once

#include "base/units.h"
#include "program/op.h"

#include <glib.h>

typedef struct _LhRepeat LhRepeat;

/* What happens that is not an op's issue. */
typedef enum {
    LH_EVENT_OP_STARTS,
    LH_EVENT_OP_ENDS,
    LH_EVENT_FLOW_STARTS,
    LH_EVENT_FLOW_LEAVES,
    LH_EVENT_FLOW_ARRIVES,
} LhRepeatEvent;
