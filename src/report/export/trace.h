/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A run as a file for trace viewers: a row for each stream of each rank with its ops as slices, an
 * arrow from the op that sends a message to the one that receives it, what each rank holds over
 * time, and, if it is told of them, what the links carry. Ops go to the file as they end, so that a
 * run of any length needs no memory for them.
 *
 * Formats (see docs/manual/using.md): Perfetto's protobuf and Chrome's JSON. Viewers count in
 * nanoseconds: the start and the end of every op are rounded down to one, and its picoseconds stand
 * beside them.
 */
#pragma once

#include "report/data/result_json.h"
#include "report/data/time_window.h"

typedef struct _LhTrace LhTrace;

/* What a trace is a trace of. */
typedef struct {
    const LhSetup *setup;
    const char *name; /* of the schedule */
    const LhProgram *program;
    const LhStamp *stamp;
    const GArray *ranks;   /* of uint32_t: those that are shown; NULL: all */
    LhTime from_ps, to_ps; /* ops that are at work at some time in between are shown */
} LhTraceOf;

/* False (LH_ERROR_USAGE) if @path does not end as one of the formats does and is no pipe or device,
 * which get JSON. */
bool lh_trace_check_path(const char *path, GError **error);

/* Begins the file @path, one that lh_trace_check_path() allows. What @of points to must stay until
 * lh_trace_free(), but for its ranks. */
LhTrace *lh_trace_new(const char *path, const LhTraceOf *of, GError **error);

/* An LhTimelineSink and an LhMemorySink; @data is the LhTrace. Ops of one stream of a rank come in
 * their order. */
void lh_trace_add(void *data, const LhTimelineRecord *record);
void lh_trace_add_memory(void *data, const LhMemoryRecord *record);

/* An LhLinkSink, likewise, of all links of the setup's cluster. */
void lh_trace_add_link(void *data, uint32_t link, LhTime time_ps, double bytes_per_s);

/* Ends the file, which appears now. Further calls but lh_trace_free() are not allowed. */
bool lh_trace_finish(LhTrace *trace, GError **error);

/* Without lh_trace_finish(), leaves no file. NULL is allowed. */
void lh_trace_free(LhTrace *trace);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(LhTrace, lh_trace_free)
