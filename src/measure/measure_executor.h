/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Measures the overhead of the executor and the time of messages, by running small programs in it.
 */
#pragma once

#include "runtime/executor.h"

/*
 * Measures the executor's host time to issue one op, and to continue after a synchronise once all
 * earlier ops are complete. Both are medians, since the cost of waking a thread belongs to them;
 * the minimum would be the one case where the thread was awake.
 */
bool lh_measure_host(double *issue_s, double *sync_s, GError **error);

/*
 * Measures a message of @bytes (even) from one rank to another on @backend, from the time when both
 * ends are posted until the receiver's op is complete. The receiver sleeps until then, as it does
 * in a schedule. The result is the median, for the reason above.
 */
bool lh_measure_transfer(uint32_t repeats, const LhBackend *backend, uint64_t bytes,
                         double *seconds, GError **error);

/* Messages that ranks send at the same time, round after round. */
typedef struct {
    const LhBackend *backend;
    uint32_t ranks;     /* all ranks of the backend's processes */
    const uint32_t *to; /* [ranks]: destination, each at most once; LH_RANKS_MAX: none */
    /* A rank sends again after an answer of two bytes; else after both of its messages are
     * complete. */
    bool answered;
    uint64_t bytes;  /* of a message, even */
    uint32_t rounds; /* counted rounds, after a warm-up; at least 1 */
} LhFlowsProbe;

/*
 * Stores the median round of each sending rank in seconds[rank], including the answer, and 0 for
 * ranks that do not send. In processes other than the first, all are 0. LH_ERROR_RUNTIME if the run
 * fails.
 */
bool lh_measure_flows(const LhFlowsProbe *probe, double *seconds, GError **error);
