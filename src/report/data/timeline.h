/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Timeline of a run: its ops, collected in memory and written as CSV or JSON.
 */
#pragma once

#include "report/data/result_json.h"

typedef struct {
    GArray *records;   /* of LhTimelineRecord */
    GByteArray *ranks; /* by rank: whether its ops are kept; false beyond its end. NULL: all are */
    GPtrArray *blocks; /* of LhMotion: motions of the records */
    LhMotion *room;    /* free entries of the last block, room_count of them */
    uint32_t room_count;
} LhTimeline;

/* Makes a timeline that keeps the ops of @ranks (of uint32_t; NULL: all). Caller frees. */
LhTimeline *lh_timeline_new(const GArray *ranks);
void lh_timeline_free(LhTimeline *timeline);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(LhTimeline, lh_timeline_free)

/* Whether the timeline keeps the ops of @rank. */
bool lh_timeline_keeps(const LhTimeline *timeline, uint32_t rank);

/* An LhTimelineSink; @data is the LhTimeline. */
void lh_timeline_collect(void *data, const LhTimelineRecord *record);

/* For an executed run with all ranks, sorted: adds when bytes of its ops can have moved
 * (lh_pairing_motions), which its records lack. */
void lh_timeline_meet(LhTimeline *timeline, const LhProgram *program);

/* A piece of an op's time, in which it either works or waits for others
 * (LhTimelineRecord.motions). */
typedef struct {
    bool waits;
    LhTime from_ps, to_ps;
    uint32_t motion; /* index of the next one */
} LhTimelinePiece;

/* Advances to the next piece of @record; { 0 } is before the first one. False: no more pieces.
 * Pieces are contiguous; an op of zero duration is one piece. */
bool lh_timeline_next_piece(const LhTimelineRecord *record, LhTimelinePiece *piece);

/* Sorts the records by rank, then op. */
void lh_timeline_sort(LhTimeline *timeline);

/* Appends a CSV heading and a row per op. */
void lh_timeline_csv(const LhTimeline *timeline, const LhProgram *program, GString *out);

/* False (LH_ERROR_USAGE) unless @path ends in .csv or .json or is a pipe or a device. */
bool lh_timeline_check_path(const char *path, GError **error);

/* Fields of longhaul.timeline/1. */
extern const LhField lh_timeline_fields[];

/* The run of a timeline. */
typedef struct {
    const LhSetup *setup;
    const char *name; /* of the schedule */
    const LhProgram *program;
    const LhStamp *stamp;
} LhTimelineOf;

/* Writes the file @path in the format of its ending: CSV (also for other endings), or
 * longhaul.timeline/1 with the same columns. */
bool lh_timeline_write(const LhTimeline *timeline, const LhTimelineOf *of, const char *path,
                       GError **error);
