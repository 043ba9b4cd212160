/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a rank takes at least: its program alone, as though every other rank were always ready, no
 * link carried anything else and no kernel shared the device. No simulation of the program ends
 * sooner, whatever the other ranks do, and this costs one walk over the ops of one rank. Several
 * ranks may be walked side by side, each of which waits for the others' messages. What is left out
 * of the bound: waiting for others, links that others use, SMs that communication holds.
 */
#pragma once

#include "sim/sim.h"

typedef struct _LhLowerBound LhLowerBound;

/* What collectives and messages take at least on one network, whatever the program: those that were
 * looked at once are known. For one thread at a time. */
typedef struct _LhLowerBoundCalls LhLowerBoundCalls;

/* Sums by stream, and of two more: the host, and all kernels together, each as if it left the SMs
 * that it does not fill to others. Messages that several walks wait for are in none. That of the
 * first stream has what it waits for, too, as far as lh_lower_bound_await() says. */
enum { LH_LEAST_HOST = LH_STREAMS_MAX, LH_LEAST_SMS, LH_LEAST_SUMS };

typedef struct {
    LhTime path_ps; /* the rank is not through before: its longest chain of ops */
    /* What each takes for its ops, one after another, and of this what micro-batch 0 takes, without
     * the optimizer and without what no later one takes: sums that grow by the same for each layer
     * that is like the one before. */
    LhTime sums_ps[LH_LEAST_SUMS], first_ps[LH_LEAST_SUMS];
    /* Of first_ps of stream 0: the forward pass, and the backward pass without recomputation. */
    LhTime forward_ps, backward_ps;
    LhTime accumulate_ps; /* of backward_ps: adding up gradients that were reduced */
} LhLowerBoundTimes;

/* On the network of @params, with its models and its device, which are borrowed. Caller frees. */
LhLowerBoundCalls *lh_lower_bound_calls_new(const LhSimParams *params);
void lh_lower_bound_calls_free(LhLowerBoundCalls *calls);

/* @params as lh_simulate() takes them, and borrowed; sinks and limits are not looked at. @calls:
 * what is known of such a network, borrowed, and added to; NULL: nothing is. Caller frees. */
LhLowerBound *lh_lower_bound_new(const LhSimParams *params, LhLowerBoundCalls *calls);
void lh_lower_bound_free(LhLowerBound *least);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(LhLowerBound, lh_lower_bound_free)

/* From now on the first stream's sums have what it waits for of the ops that are @awaited
 * (sim/lower_bound/stream_lower_bound.h). */
void lh_lower_bound_await(LhLowerBound *least, bool (*awaited)(const LhOp *op));

/* The times of @rank. Without @communication, messages and collectives take none. */
LhLowerBoundTimes lh_lower_bound_of(LhLowerBound *least, uint32_t rank, bool communication);

/* How long @rank takes at least from the end of each of its ops on (sim/remaining_path.h): an
 * LhTime for each op. Caller unrefs. */
GArray *lh_lower_bound_tails(LhLowerBound *least, uint32_t rank);

/*
 * The times of @rank of a program that is embedded in another one (program/subprogram.h), whose
 * ranks stand where @map says. Its ops may have been issued long before; all of them come after
 * what the first stream did before it, and *@passes_ps later at least what follows on this stream
 * may begin: that comes after all ops that touch inputs or outputs.
 */
LhLowerBoundTimes lh_lower_bound_embedded(LhLowerBound *least, uint32_t rank, LhRankMap map,
                                          bool communication, LhTime *passes_ps);

/* The times of @count ranks that wait for the messages of one another, such as one rank of each
 * stage of a pipeline: of each sum the largest, of their paths the longest. */
LhLowerBoundTimes lh_lower_bound_of_all(LhLowerBound *least, const uint32_t *ranks, uint32_t count);
