/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fast-forward: when the simulation has become periodic, to the picosecond, whole periods of layers
 * or micro-batches that the program repeats exactly are skipped.
 *
 * Time is cut into windows, at the instants when an op of another layer or micro-batch ends on the
 * first stream of the first rank that is simulated. What happens in a window is hashed: every op
 * that is issued, with what it is, every start and end of an op and of a message, when, and in
 * which order; and at its end how far ahead hosts and streams are. Three periods of windows that
 * are equal in all of that end in a state that differs from the one before in nothing that could
 * ever show, if the ops under way are the same at the beginning and at the end of the last period,
 * and if every message and collective under way began in it. Then the cursors of all ranks are
 * looked ahead along: as many periods as all of them go on to repeat are left out. Their ops are
 * read and compared, their allocs and frees are counted one by one, and what else has been counted
 * in the last period is counted once more for each. The engine's clock and its numbers of ops go on
 * as if the periods were not in the program; LhEngine.skipped_ps and LhSimRank.skipped_ops are what
 * was left out (docs/reference/model.md, "Layers that repeat").
 */
#pragma once

#include "base/units.h"
#include "program/op.h"

#include <glib.h>

typedef struct _LhFastForward LhFastForward;

/* Kinds of hashed events, other than the issue of an op. */
typedef enum {
    LH_EVENT_OP_STARTS,
    LH_EVENT_OP_ENDS,
    LH_EVENT_FLOW_STARTS,
    LH_EVENT_FLOW_LEAVES,
    LH_EVENT_FLOW_ARRIVES,
} LhFastForwardEvent;
