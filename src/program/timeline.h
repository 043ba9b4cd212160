/*
 * What simulator and runtime tell about an op: the same record, so that every report works on both.
 */
#pragma once

#include "base/units.h"
#include "program/op.h"

/* Of an op that crosses no network, or a network without tiers. */
#define LH_TIMELINE_NO_TIER UINT8_MAX

typedef struct {
    uint32_t rank;
    uint32_t op;
    uint8_t kind; /* LhOpKind */
    uint8_t stream;
    uint8_t phase;
    uint8_t
        tier; /* exchange: highest tier crossed by any of its messages; LH_TIERS or above: none */
    uint32_t step;
    uint16_t layer, micro_batch;
    uint8_t module;
    LhKernelId kernel; /* compute */
    LhTime issued_ps, start_ps, end_ps;
    uint64_t bytes; /* sent */
    uint64_t flops;
} LhTimelineRecord;

/* Called when an op completes, in completion order. */
typedef void (*LhTimelineSink)(void *data, const LhTimelineRecord *record);
