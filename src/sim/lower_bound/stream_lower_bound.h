/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How long the first stream of a rank is busy or waits for awaited ops of other streams, whatever
 * the rank and others do beside that. Chains of ops start at a cut, the end of an op of the first
 * stream, and go through ops of this stream and awaited ones. All that the stream does between two
 * cuts comes after the first and before the second, so the longest chains between cuts add up to no
 * more than its time. Cuts are where the layer, the phase, the micro-batch or what is embedded
 * changes: so each layer adds the same to the sum as another one that does the same.
 */
#pragma once

#include "base/units.h"
#include "program/program.h"

#include <glib.h>

typedef struct {
    uint32_t from;                    /* first op behind the cut */
    GArray *to;                       /* of LhTime, by op from there on: the longest chain to its
                                         end; negative: none leads there */
    LhTime stream_ps[LH_STREAMS_MAX]; /* likewise to the last op of each stream */
    uint16_t layer, micro_batch;      /* since the cut */
    uint8_t phase, module;
} LhStreamBound;

void lh_stream_bound_init(LhStreamBound *chains);
void lh_stream_bound_clear(LhStreamBound *chains);

/*
 * The next op on a stream, which takes so long at least. Chains go through ops of other streams
 * than the first one if they are @awaited. Returns by how much the first stream's time has grown: 0
 * for ops of other streams.
 */
LhTime lh_stream_bound_add(LhStreamBound *chains, const LhOp *op, LhTime takes_ps, bool awaited);
