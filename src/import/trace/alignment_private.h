/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Traces and a program that are being laid over each other: what the files share that do it.
 */
#pragma once

#include "import/trace/trace_alignment.h"
#include "program/cursor.h"
#include "program/timeline.h"

/* Kinds of calls that are counted on their own: attention, and what is moved. */
enum {
    LH_KEY_ATTEND,
    LH_KEY_ATTEND_GRAD,
    LH_KEY_TRANSFERS,
    LH_KEYS = LH_KEY_TRANSFERS + LH_GPU_TRACE_UNKNOWN
};

/* A communicating op's place among those that meet. */
typedef struct {
    LhCommunicatorKey key; /* of messages: source, destination in base, stride */
    bool message;
    uint32_t turn;
} LhTraceMeeting;

typedef struct {
    const LhGpuTraceRun *run;
    const LhSetup *setup;
    const LhProgram *program;
    LhTraceAlignment *match;
    GPtrArray *durations; /* by record: of double, a GArray; NULL: not seen */
    uint32_t *first;      /* [ranks + 1]: of a rank's records */
    GHashTable *meetings; /* of LhTraceMeeting: of members, a GArray of guint */
    GHashTable *turns;    /* of LhTraceMeeting with turn 0: how many there were, by end */
    GPtrArray *order;     /* of LhTraceMeeting *, borrowed: as they came */
} LhTraceMatch;

/* Of the ops of a rank, those of each key. */
typedef struct {
    GArray *of[LH_KEYS];           /* of guint: indices of records, in the program's order */
    GArray *started[LH_KEYS];      /* the same in the order in which they start, simulated */
    uint64_t group_sizes[LH_KEYS]; /* of collectives, the largest */
} LhTraceOps;

/* The one at @index of @records, of LhTimelineRecord. */
static inline LhTimelineRecord *
lh_match_record(const GArray *records, guint index)
{
    return &g_array_index(records, LhTimelineRecord, index);
}

/* ---- program_ops.c ---- */

/* Walks the program of a rank: which of its ops are of each key, and whom they meet. The caller
 * clears @ops. */
void lh_match_program(LhTraceMatch *job, uint32_t rank, LhTraceOps *ops);
void lh_match_clear_ops(LhTraceOps *ops);

/* Of meetings as keys of a hash table. */
guint lh_meeting_hash(gconstpointer data);
gboolean lh_meeting_equal(gconstpointer a, gconstpointer b);

/* ---- rank_kernels.c ---- */

/* Gives the kernels that were seen of a rank to its ops. */
bool lh_match_rank(LhTraceMatch *job, uint32_t rank, GError **error);

/* The file that is of @rank; else the first one. */
const char *lh_match_path(const LhGpuTraceRun *run, uint32_t rank);

/* ---- trace_samples.c ---- */

/* Makes a sample of every call of attention, message and collective that was seen. */
void lh_match_samples(LhTraceMatch *job);
