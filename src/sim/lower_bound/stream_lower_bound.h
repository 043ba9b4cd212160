/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lower bound of the time during which the first stream of a rank is busy or waits for awaited ops
 * of other streams, whatever else the rank and others do. Chains of ops start at a cut, the end of
 * an op of the first stream, and consist of ops of this stream and awaited ops. Everything that the
 * stream does between two cuts comes after the first and before the second, so the longest chains
 * between cuts add up to no more than its time. Cuts are where the layer, the phase, the
 * micro-batch or the embedded program changes, so equal layers add equal amounts.
 */
#pragma once

#include "base/units.h"
#include "program/program.h"

#include <glib.h>

/* Chains from the end of an op of the first stream on. */
typedef struct {
    uint32_t from; /* that op */
    GArray *to;    /* of LhTime, by op from there on: longest chain to its end; negative: none */
    LhTime
        stream_ps[LH_STREAMS_MAX]; /* longest chain to the last op of each stream; negative: none */
} LhStreamChains;

/* Chains from the latest cut on, chains[now], and from the last op of the first stream on, where
 * the next cut may be: awaited ops that follow it may come before the op that shows the cut. */
typedef struct {
    LhStreamChains chains[2];
    bool now;                    /* index */
    uint16_t layer, micro_batch; /* labels of the first stream's ops since the cut */
    uint8_t phase;
    uint16_t module;
} LhStreamBound;

void lh_stream_bound_init(LhStreamBound *bound);
void lh_stream_bound_clear(LhStreamBound *bound);

/*
 * Adds the next op on a stream, with a lower bound of its time. Ops of other streams than the first
 * are on chains only if @awaited. Returns the increase of the first stream's time; 0 for ops of
 * other streams.
 */
LhTime lh_stream_bound_add(LhStreamBound *bound, const LhOp *op, LhTime takes_ps, bool awaited);
