/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The ops of a run as they were played: collected in memory, written as CSV or JSON.
 */
#pragma once

#include "report/data/result_json.h"

typedef struct {
    GArray *records;   /* of LhTimelineRecord */
    GByteArray *ranks; /* by rank: whether its ops are kept; ranks beyond are not. NULL: all are */
    GPtrArray *blocks; /* of LhMotion: those of the records */
    LhMotion *room;    /* in the last block, for so many more */
    uint32_t room_count;
} LhTimeline;

/* Keeps the ops of @ranks (of uint32_t), which may be NULL for all. Caller frees. */
LhTimeline *lh_timeline_new(const GArray *ranks);
void lh_timeline_free(LhTimeline *timeline);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(LhTimeline, lh_timeline_free)

/* Whether the timeline keeps the ops of @rank. */
bool lh_timeline_keeps(const LhTimeline *timeline, uint32_t rank);

/* An LhTimelineSink; @data is the LhTimeline. */
void lh_timeline_collect(void *data, const LhTimelineRecord *record);

/* Of a run that took place, of all ranks, sorted: when bytes of its ops can have moved
 * (lh_pairing_motions), which their records do not say. */
void lh_timeline_meet(LhTimeline *timeline, const LhProgram *program);

/* A piece of an op's time, in which it works, or waits for others (LhTimelineRecord.motions). */
typedef struct {
    bool waits;
    LhTime from_ps, to_ps;
    uint32_t motion; /* that comes next */
} LhTimelinePiece;

/* Goes to the next piece of @record, from none = { 0 } to the first one; false: there is none left.
 * Each begins where the one before ends; an op that takes no time is one piece. */
bool lh_timeline_next_piece(const LhTimelineRecord *record, LhTimelinePiece *piece);

/* Puts the records in the order of rank, then op. */
void lh_timeline_sort(LhTimeline *timeline);

/* Appends one CSV row for each op, with a heading. */
void lh_timeline_csv(const LhTimeline *timeline, const LhProgram *program, GString *out);

/* False (LH_ERROR_USAGE) if @path ends neither in .csv nor in .json and is no pipe or device. */
bool lh_timeline_check_path(const char *path, GError **error);

/* Of longhaul.timeline/1. */
extern const LhField lh_timeline_fields[];

/* What a timeline is a timeline of. */
typedef struct {
    const LhSetup *setup;
    const char *name; /* of the schedule */
    const LhProgram *program;
    const LhStamp *stamp;
} LhTimelineOf;

/* Writes the file @path, in the format that its ending says: CSV (which is that of other endings,
 * too), or longhaul.timeline/1 with the same columns. */
bool lh_timeline_write(const LhTimeline *timeline, const LhTimelineOf *of, const char *path,
                       GError **error);
