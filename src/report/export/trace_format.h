/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Interface of the trace formats; trace.c does the rest. All functions append to @out.
 */
#pragma once

#include "report/export/trace.h"
#include "report/export/trace_names.h"

/* A row of slices: a stream of a rank. */
typedef struct {
    uint32_t rank;
    uint32_t number; /* of the stream */
    const char *name;
    bool begun;                                       /* has slices */
    uint64_t names_known[(LH_TRACE_NAMES + 63) / 64]; /* bits: names that it used so far */
} LhTraceTrack;

/* Message numbers: each message has the same number, above 0 and below 2^52, at both ends. */
typedef struct {
    const uint64_t *numbers;
    guint count;
} LhTraceMessages;

typedef struct {
    const LhTimelineRecord *record;
    uint32_t name;
    LhTraceMessages sent, received;
    bool of_step; /* layer and micro-batch are valid */
} LhTraceSlice;

/* A link of the network. */
typedef struct {
    uint32_t process; /* as above */
    uint32_t number;
    const char *name;
} LhTraceLink;

typedef struct {
    const char *ending; /* of the names of its files */
    void (*begin)(const LhTraceOf *of, GString *out);
    /* Begins a rank, before anything else of it. @label: its name. */
    void (*rank)(const LhProgram *program, uint32_t rank, const char *label, GString *out);
    void (*slice)(LhTraceTrack *track, const LhTraceSlice *slice, GString *out);
    /* Memory of the rank from this time on. @first: its first value. */
    void (*memory)(uint32_t rank, uint64_t time_ns, uint64_t bytes, bool first, GString *out);
    /* Begins the links, before anything else of them: they are tracks of process @number, after
     * those of ranks. */
    void (*network)(uint32_t number, GString *out);
    /* Load of the link from this time on. @first: its first value. */
    void (*link)(const LhTraceLink *link, uint64_t time_ns, double gb_per_s, bool first,
                 GString *out);
    void (*end)(GString *out);
} LhTraceFormat;

extern const LhTraceFormat lh_trace_chrome, lh_trace_perfetto;

/* Time rounded down to a nanosecond. */
static inline uint64_t
lh_trace_ns(LhTime time_ps)
{
    return (uint64_t)time_ps / 1000;
}

/* Arrival time shown for the messages that a slice receives: within it, at its end. */
static inline uint64_t
lh_trace_arrival_ns(const LhTimelineRecord *r)
{
    const uint64_t start = lh_trace_ns(r->start_ps), end = lh_trace_ns(r->end_ps);

    return end > start ? end - 1 : start;
}
