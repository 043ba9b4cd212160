/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory of ranks over time, as CSV or JSON: a row per alloc and free, written while the simulation
 * runs, so that only a piece of it is in memory.
 */
#pragma once

#include "program/timeline.h"
#include "report/data/result_json.h"

/* Run of a memory timeline. */
typedef struct {
    const LhSetup *setup;
    const char *schedule; /* name of the program */
    const LhStamp *stamp;
} LhMemoryTimelineOf;

/* Fields of longhaul.memory-timeline/1. */
extern const LhField lh_memory_timeline_fields[];

typedef struct _LhMemoryTimeline LhMemoryTimeline;

/* False (LH_ERROR_USAGE) unless @path ends in .csv, .json or as a figure. */
bool lh_memory_timeline_check_path(const char *path, GError **error);

/* Starts the file @path, not a figure, in the format of its ending: CSV, or
 * longhaul.memory-timeline/1 with the same columns. Everything @of points to must stay. */
LhMemoryTimeline *lh_memory_timeline_new(const char *path, const LhMemoryTimelineOf *of,
                                         GError **error);

/* An LhMemorySink; @data is the LhMemoryTimeline. */
void lh_memory_timeline_add(void *data, const LhMemoryRecord *record);

/* Completes the file; on failure it is left as before. Call at most once. */
bool lh_memory_timeline_finish(LhMemoryTimeline *timeline, GError **error);

/* Frees the timeline. Without lh_memory_timeline_finish(), the file is left as before. NULL is
 * allowed. */
void lh_memory_timeline_free(LhMemoryTimeline *timeline);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(LhMemoryTimeline, lh_memory_timeline_free)
