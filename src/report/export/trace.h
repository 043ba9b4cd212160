/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Trace of a run for trace viewers: a row per stream of each rank with its ops as slices, an arrow
 * from the op that sends a message to the one that receives it, the memory of each rank over time
 * and, optionally, the load of links. Ops are written as they end, so memory does not grow with the
 * run.
 *
 * Formats (see docs/manual/traces.md): Perfetto's protobuf and Chrome's JSON. Viewers count in
 * nanoseconds: the start and the end of every op are rounded down to one, and its picoseconds stand
 * beside them.
 */
#pragma once

#include "report/data/result_json.h"
#include "report/data/time_window.h"

typedef struct _LhTrace LhTrace;

/* Run of a trace. */
typedef struct {
    const LhSetup *setup;
    const char *name; /* of the schedule */
    const LhProgram *program;
    const LhStamp *stamp;
    const GArray *ranks;   /* of uint32_t: shown ranks; NULL: all */
    LhTime from_ps, to_ps; /* ops that overlap this window are shown */
} LhTraceOf;

/* False (LH_ERROR_USAGE) unless @path has the ending of a format or is a pipe or a device, which
 * get JSON. */
bool lh_trace_check_path(const char *path, GError **error);

/* Starts a trace in the file @path, which lh_trace_check_path() accepts. All that @of points to
 * must stay until lh_trace_free(), except its ranks. */
LhTrace *lh_trace_new(const char *path, const LhTraceOf *of, GError **error);

/* An LhTimelineSink and an LhMemorySink; @data is the LhTrace. Ops of one stream of a rank must
 * come in order. */
void lh_trace_add(void *data, const LhTimelineRecord *record);
void lh_trace_add_memory(void *data, const LhMemoryRecord *record);

/* Likewise an LhLinkSink, for all links of the setup's cluster. */
void lh_trace_add_link(void *data, uint32_t link, LhTime time_ps, double bytes_per_s);

/* Completes the file, which appears now. Only lh_trace_free() may follow. */
bool lh_trace_finish(LhTrace *trace, GError **error);

/* Frees the trace; without lh_trace_finish() there is no file. NULL is allowed. */
void lh_trace_free(LhTrace *trace);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(LhTrace, lh_trace_free)
