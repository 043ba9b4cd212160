/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A rank alone: which one, and what the others do, from what the simulator predicted of all of
 * them. How it runs: runtime/api/replay.h; what it shows: docs/manual/validation.md, "One rank
 * alone".
 */
#pragma once

#include "program/pairing.h"
#include "runtime/api/replay.h"

typedef enum {
    LH_SINGLE_RANK_NONE, /* all ranks run */
    LH_SINGLE_RANK_SLOWEST,
    LH_SINGLE_RANK_MEDIAN,
    LH_SINGLE_RANK_FASTEST, /* these three by the time when their last op was predicted to end */
    LH_SINGLE_RANK_RANK,
} LhSingleRankChoice;

typedef struct {
    LhSingleRankChoice choice;
    uint32_t rank; /* of LH_SINGLE_RANK_RANK */
} LhSingleRank;

/* "slowest", "median", "fastest", or a rank. LH_ERROR_USAGE; NULL is none. */
bool lh_single_rank_parse(const char *text, LhSingleRank *alone, GError **error);

/* In words: "the slowest rank", "rank 12". Caller frees. */
char *lh_single_rank_text(const LhSingleRank *alone);

/* Of @records (of LhTimelineRecord, by rank and op; of every rank) the chosen rank. LH_ERROR_USAGE
 * if there is no such rank. */
bool lh_single_rank_choose(const LhSingleRank *alone, const GArray *records, uint32_t *rank,
                           GError **error);

/*
 * What the others do with @rank, whose own records are appended to @own. @records and @meetings are
 * of the whole program. Caller frees.
 */
LhReplay *lh_single_rank_replay(const GArray *records, const LhPairing *meetings, uint32_t rank,
                                GArray *own);
