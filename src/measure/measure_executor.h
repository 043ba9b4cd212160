/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the executor itself costs, and messages, measured by running small programs in it.
 */
#pragma once

#include "runtime/executor.h"

/*
 * What the executor's host takes to issue one op, and to go on after all earlier ones are complete.
 * Medians: that a thread has to be woken is part of it, and the best would be the one time that it
 * was awake.
 */
bool lh_measure_host(double *issue_s, double *sync_s, GError **error);

/*
 * A message of @bytes (even) from one rank to another on @backend, from the time both ends are
 * posted until the receiver's op is complete. The receiver sleeps until then, as it does in a
 * schedule; the median, as above.
 */
bool lh_measure_transfer(uint32_t repeats, const LhBackend *backend, uint64_t bytes,
                         double *seconds, GError **error);

/* Messages that ranks send each other, all at the same time, round after round. */
typedef struct {
    const LhBackend *backend;
    uint32_t ranks; /* all of the backend's processes have */
    const uint32_t
        *to;        /* [ranks]: whom each sends to, every rank at most once; LH_RANKS_MAX: nobody */
    bool answered;  /* a rank sends again when it has an answer of two bytes; else when its message
                       has gone and the one to it has come */
    uint64_t bytes; /* of a message, even */
    uint32_t rounds; /* that count, behind a first one; at least 1 */
} LhFlowsProbe;

/*
 * The median round of each rank that sends, in seconds[rank], of others 0; answers are part of it.
 * In processes other than the first, all are 0. LH_ERROR_RUNTIME if the run broke.
 */
bool lh_measure_flows(const LhFlowsProbe *probe, double *seconds, GError **error);
