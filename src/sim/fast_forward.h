/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fast-forward: when the simulation has become periodic, to the picosecond, whole periods of layers
 * or micro-batches that the program repeats exactly are skipped.
 *
 * Windows: time is divided where an op of another layer or micro-batch ends on the first stream of
 * the first simulated rank. Each window is hashed: every issue of an op with its content; every
 * start and end of an op and of a message with its time and order; and, at its end, how far ahead
 * hosts and streams are. Three equal periods of windows end in a state equivalent to that at the
 * end of the period before, if the ops in flight are the same at both ends of the last period, and
 * if every message and collective in flight began in it.
 *
 * Then the programs of all ranks are read ahead: as many periods as all of them repeat are skipped.
 * Their ops are read and compared, their allocs and frees are counted one by one, and all other
 * counts of the last period are added once per skipped period. The engine's clock and op numbers
 * continue as if the periods were not in the program; LhEngine.skipped_ps and LhSimRank.skipped_ops
 * hold what was skipped (docs/internals/engine.md, "Fast-forward").
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
