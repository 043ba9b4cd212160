/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What ranks hold over time, as CSV or JSON: a row for each alloc and each free, written while the
 * simulation runs, so that no more than a piece of it is ever in memory.
 */
#pragma once

#include "program/timeline.h"
#include "report/data/result_json.h"

/* What a memory timeline is one of. */
typedef struct {
    const LhSetup *setup;
    const char *schedule; /* the program's name */
    const LhStamp *stamp;
} LhMemoryTimelineOf;

/* Of longhaul.memory-timeline/1. */
extern const LhField lh_memory_timeline_fields[];

typedef struct _LhMemoryTimeline LhMemoryTimeline;

/* False (LH_ERROR_USAGE) if @path ends neither in .csv or .json nor as a figure does. */
bool lh_memory_timeline_check_path(const char *path, GError **error);

/* Begins the file @path, which is no figure, in the format that its ending says: CSV, or
 * longhaul.memory-timeline/1 with the same columns. What @of points to must stay. */
LhMemoryTimeline *lh_memory_timeline_new(const char *path, const LhMemoryTimelineOf *of,
                                         GError **error);

/* An LhMemorySink; @data is the LhMemoryTimeline. */
void lh_memory_timeline_add(void *data, const LhMemoryRecord *record);

/* Whether all of the file was written; else it is as it was before. To be called at most once. */
bool lh_memory_timeline_finish(LhMemoryTimeline *timeline, GError **error);

/* Without lh_memory_timeline_finish(), the file is as it was before. NULL is allowed. */
void lh_memory_timeline_free(LhMemoryTimeline *timeline);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(LhMemoryTimeline, lh_memory_timeline_free)
