/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names of the slices of traces.
 */
#pragma once

#include "program/program.h"

/* Names of slices: those of kernels, and these. */
enum {
    LH_TRACE_EXCHANGE = LH_KERNELS_COUNT, /* sends and receives */
    LH_TRACE_SEND,
    LH_TRACE_RECEIVE,
    LH_TRACE_COLLECTIVES, /* one for each LhCollectiveKind */
    LH_TRACE_ARRIVE =
        LH_TRACE_COLLECTIVES + LH_COLL_KINDS, /* the point at which messages are there */
    LH_TRACE_WAIT,                            /* for others, before bytes move */
    LH_TRACE_NAMES,
};

const char *lh_trace_name(uint32_t name);
