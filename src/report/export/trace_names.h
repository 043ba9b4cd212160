/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names of the slices of traces.
 */
#pragma once

#include "program/program.h"

/* Slice names: kernels, followed by these. */
enum {
    LH_TRACE_EXCHANGE = LH_KERNELS_COUNT, /* sends and receives */
    LH_TRACE_SEND,
    LH_TRACE_RECEIVE,
    LH_TRACE_COLLECTIVES,                                   /* one per LhCollectiveKind */
    LH_TRACE_ARRIVE = LH_TRACE_COLLECTIVES + LH_COLL_KINDS, /* arrival of messages */
    LH_TRACE_WAIT, /* waiting for others, before bytes move */
    LH_TRACE_NAMES,
};

const char *lh_trace_name(uint32_t name);
