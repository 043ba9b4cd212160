/*
 * The ops of a run as they were played: collected in memory, written as CSV.
 */
#pragma once

#include "plan/setup.h"

typedef struct {
    GArray *records;    /* of LhTimelineRecord */
    uint32_t ranks_max; /* only ranks below are kept */
} LhTimeline;

LhTimeline *lh_timeline_new(uint32_t ranks_max);
void lh_timeline_free(LhTimeline *timeline);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(LhTimeline, lh_timeline_free)

/* An LhTimelineSink; @data is the LhTimeline. */
void lh_timeline_collect(void *data, const LhTimelineRecord *record);

/* Puts the records in the order of rank, then op. */
void lh_timeline_sort(LhTimeline *timeline);

/* Appends one CSV row for each op, with a heading. */
void lh_timeline_csv(const LhTimeline *timeline, const LhProgram *program, GString *out);
