/* SPDX-License-Identifier: Apache-2.0 */
/*
 * State of the alignment of traces with a program, shared by the files that compute it.
 */
#pragma once

#include "import/trace/trace_alignment.h"
#include "program/cursor.h"
#include "program/timeline.h"

/* Keys: kinds of calls that are counted separately, attention and transfers. */
enum {
    LH_KEY_ATTEND,
    LH_KEY_ATTEND_GRAD,
    LH_KEY_TRANSFERS,
    LH_KEYS = LH_KEY_TRANSFERS + LH_GPU_TRACE_UNKNOWN
};

/* Identity of a collective or message: the ops that meet in it share it. */
typedef struct {
    LhCommunicatorKey key; /* of messages: source in base, destination in stride */
    bool message;
    uint32_t turn;
} LhTraceMeeting;

typedef struct {
    const LhGpuTraceRun *run;
    const LhSetup *setup;
    const LhProgram *program;
    LhTraceAlignment *match;
    GPtrArray *durations; /* by record: array of double; NULL: not in the traces */
    uint32_t *first;      /* [ranks + 1]: first record of each rank */
    GHashTable *meetings; /* LhTraceMeeting to its members, an array of guint */
    GHashTable *turns;    /* LhTraceMeeting with turn = rank or end, to the number so far */
    GPtrArray *order;     /* of LhTraceMeeting *, borrowed: in order of appearance */
} LhTraceMatch;

/* Ops of a rank, by key. */
typedef struct {
    GArray *of[LH_KEYS];           /* of guint: indices of records, in program order */
    GArray *started[LH_KEYS];      /* likewise, in order of simulated start */
    uint64_t group_sizes[LH_KEYS]; /* of collectives: the largest group */
} LhTraceOps;

/* Record @index of @records (LhTimelineRecord). */
static inline LhTimelineRecord *
lh_match_record(const GArray *records, guint index)
{
    return &g_array_index(records, LhTimelineRecord, index);
}

/* ---- program_ops.c ---- */

/* Walks the program of a rank and finds the ops of each key, and the meetings they belong to. The
 * caller clears @ops. */
void lh_match_program(LhTraceMatch *job, uint32_t rank, LhTraceOps *ops);
void lh_match_clear_ops(LhTraceOps *ops);

/* Hash table functions for LhTraceMeeting. */
guint lh_meeting_hash(gconstpointer data);
gboolean lh_meeting_equal(gconstpointer a, gconstpointer b);

/* ---- rank_kernels.c ---- */

/* Assigns the kernels traced on a rank to its ops. */
bool lh_match_rank(LhTraceMatch *job, uint32_t rank, GError **error);

/* Path of the file with @rank's trace; else of the first file. */
const char *lh_match_path(const LhGpuTraceRun *run, uint32_t rank);

/* ---- trace_samples.c ---- */

/* Makes a sample of every traced call of attention, message and collective. */
void lh_match_samples(LhTraceMatch *job);
