/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Times of recent calls of kernels. Most ops of a run are like an earlier one of some rank, so
 * their time is looked up. A call whose place another one has taken is computed again.
 */
#pragma once

#include "program/op.h"

typedef struct _LhRecentCalls LhRecentCalls;

/* What the time of a call alone on the device depends on besides its arguments. */
typedef struct {
    uint32_t kernel;           /* LhKernelId */
    uint32_t element_bytes;    /* > 0 */
    uint32_t on_cpu;           /* 1: lh_op_on_cpu() */
    uint32_t q_parts, k_parts; /* of attention: parts of the queries and of the keys; else 0 */
} LhCallOperands;

typedef struct {
    LhKernelArgs args; /* compared by bytes: calls that differ in padding are different */
    LhCallOperands operands;
    double seconds, error; /* as in LhOpSeconds */
    double rounding;       /* of thread blocks to waves */
    bool judged;           /* as in LhOpSeconds */
    uint8_t provenance;    /* LhProvenance: the weakest of its constants */
} LhRecentCall;

LhRecentCalls *lh_recent_calls_new(void);
void lh_recent_calls_free(LhRecentCalls *calls);

/*
 * The place of a call. Sets @known to whether it holds the time of this call. If not, the caller
 * sets the members from `seconds` on. Borrowed until the next call of this function.
 */
LhRecentCall *lh_recent_calls_find(LhRecentCalls *calls, const LhKernelArgs *args,
                                   const LhCallOperands *operands, bool *known);
