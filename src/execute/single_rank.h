/*
 * A rank alone: which one, and what the others do, from what the simulator predicted of all of
 * them. How it runs: runtime/api/replay.h; what it shows: docs/validate.md, "One rank alone".
 */
#pragma once

#include "program/pairing.h"
#include "runtime/api/replay.h"

typedef enum {
    LH_ALONE_NONE, /* all ranks run */
    LH_ALONE_SLOWEST,
    LH_ALONE_MEDIAN,
    LH_ALONE_FASTEST, /* these three by the time when their last op was predicted to end */
    LH_ALONE_RANK,
} LhAloneChoice;

typedef struct {
    LhAloneChoice choice;
    uint32_t rank; /* of LH_ALONE_RANK */
} LhAlone;

/* "slowest", "median", "fastest", or a rank. LH_ERROR_USAGE; NULL is none. */
bool lh_alone_parse(const char *text, LhAlone *alone, GError **error);

/* In words: "the slowest rank", "rank 12". Caller frees. */
char *lh_alone_text(const LhAlone *alone);

/* Of @records (of LhTimelineRecord, by rank and op; of every rank) the chosen rank. LH_ERROR_USAGE
 * if there is no such rank. */
bool lh_alone_choose(const LhAlone *alone, const GArray *records, uint32_t *rank, GError **error);

/*
 * What the others do with @rank, whose own records are appended to @own. @records and @meetings are
 * of the whole program. Caller frees.
 */
LhReplay *lh_alone_replay(const GArray *records, const LhMeetings *meetings, uint32_t rank,
                          GArray *own);
