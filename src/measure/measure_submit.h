/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Measures the host time of the submitting engine's calls, and messages between devices, each by
 * running a program made for it.
 */
#pragma once

#include "measure/measure.h"

/* Host time per call, in seconds. */
typedef struct {
    double op;      /* an op that does nothing */
    double compute; /* a kernel launch */
    double wait;    /* a wait for an op of another stream, in addition to the op itself */
    double group;   /* a group of messages; 0: one rank */
    double sync;    /* synchronising: from the end of the last op before to the first op after */
} LhCallCosts;

/* Measures the costs, as medians over ranks. In processes other than the first, nothing is set. */
bool lh_measure_calls(const LhBackend *backend, uint32_t ranks, LhCallCosts *costs, GError **error);

/*
 * Measures messages of @bytes from each rank to @to[rank] (LH_RANKS_MAX: none); every rank sends
 * and receives at most once. The duration is from the time when both ends are ready until the
 * receiver has the message; *@seconds is the median over rounds and pairs. 0 in processes other
 * than the first.
 */
bool lh_measure_messages(const LhBackend *backend, uint32_t ranks, const uint32_t *to,
                         uint64_t bytes, double *seconds, GError **error);
