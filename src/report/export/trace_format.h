/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a format of traces has to do; trace.c does the rest. All of it appends to @out.
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
    uint64_t names_known[(LH_TRACE_NAMES + 63) / 64]; /* bits: names that it has used */
} LhTraceTrack;

/* Numbers of messages: each has one number, above 0 and below 2^52, at both of its ends. */
typedef struct {
    const uint64_t *numbers;
    guint count;
} LhTraceMessages;

typedef struct {
    const LhTimelineRecord *record;
    uint32_t name;
    LhTraceMessages sent, received;
    bool of_step; /* layer and micro-batch mean something */
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
    /* Before all else of a rank. @label: what it is called. */
    void (*rank)(const LhProgram *program, uint32_t rank, const char *label, GString *out);
    void (*slice)(LhTraceTrack *track, const LhTraceSlice *slice, GString *out);
    /* What the rank holds from then on. @first: for the first time. */
    void (*memory)(uint32_t rank, uint64_t time_ns, uint64_t bytes, bool first, GString *out);
    /* Before all else of links: they are the tracks of process @number, behind those of ranks. */
    void (*network)(uint32_t number, GString *out);
    /* What the link carries from then on. @first: for the first time. */
    void (*link)(const LhTraceLink *link, uint64_t time_ns, double gb_per_s, bool first,
                 GString *out);
    void (*end)(GString *out);
} LhTraceFormat;

extern const LhTraceFormat lh_trace_chrome, lh_trace_perfetto;

/* The nanosecond that a time lies in. */
static inline uint64_t
lh_trace_ns(LhTime time_ps)
{
    return (uint64_t)time_ps / 1000;
}

/* When the messages that a slice receives are shown to be there: within it, at its end. */
static inline uint64_t
lh_trace_arrival_ns(const LhTimelineRecord *r)
{
    const uint64_t start = lh_trace_ns(r->start_ps), end = lh_trace_ns(r->end_ps);

    return end > start ? end - 1 : start;
}
