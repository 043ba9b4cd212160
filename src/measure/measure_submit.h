/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the engine that submits takes for its calls, and messages between devices, each measured by
 * running a program that is made for it.
 */
#pragma once

#include "measure/measure.h"

/* What a host takes, in seconds, to have its device do something. */
typedef struct {
    double op;      /* with nothing to do */
    double compute; /* a kernel */
    double wait;    /* for an op of another stream, beside the op itself */
    double group;   /* of messages; 0: there is one rank */
    double sync;    /* from the end of the last op before it to the first one behind it */
} LhCallCosts;

/* Medians over the ranks; in processes other than the first, nothing is set. */
bool lh_measure_calls(const LhBackend *backend, uint32_t ranks, LhCallCosts *costs, GError **error);

/*
 * Messages of @bytes of each rank to @to[rank] (LH_RANKS_MAX: nobody), every rank at most once at
 * each end: from when both ends are there until the receiver has it, the median over rounds and
 * pairs. In processes other than the first, 0.
 */
bool lh_measure_messages(const LhBackend *backend, uint32_t ranks, const uint32_t *to,
                         uint64_t bytes, double *seconds, GError **error);
