/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Single-rank replay: one rank runs alone while the other ranks' messages are replayed from the
 * simulator's prediction. This file chooses the rank and derives the replay. How it runs:
 * runtime/api/replay.h; what it shows: docs/manual/validation.md, "Single-rank replay".
 */
#pragma once

#include "program/pairing.h"
#include "runtime/api/replay.h"

typedef enum {
    LH_SINGLE_RANK_NONE, /* all ranks run */
    LH_SINGLE_RANK_SLOWEST,
    LH_SINGLE_RANK_MEDIAN,
    LH_SINGLE_RANK_FASTEST, /* these three are ordered by the predicted end of a rank's last op */
    LH_SINGLE_RANK_RANK,
} LhSingleRankChoice;

typedef struct {
    LhSingleRankChoice choice;
    uint32_t rank; /* for LH_SINGLE_RANK_RANK */
} LhSingleRank;

/* Parses "slowest", "median", "fastest", or a rank; NULL is LH_SINGLE_RANK_NONE. LH_ERROR_USAGE. */
bool lh_single_rank_parse(const char *text, LhSingleRank *alone, GError **error);

/* Describes the choice: "the slowest rank", "rank 12". Caller frees. */
char *lh_single_rank_text(const LhSingleRank *alone);

/* Finds the chosen rank in @records (LhTimelineRecord of every rank, by rank and op).
 * LH_ERROR_USAGE if that rank does not exist or has no ops. */
bool lh_single_rank_choose(const LhSingleRank *alone, const GArray *records, uint32_t *rank,
                           GError **error);

/*
 * Derives what the other ranks do with @rank, from @records and @meetings of the whole program.
 * Appends the rank's own records to @own. Caller frees.
 */
LhReplay *lh_single_rank_replay(const GArray *records, const LhPairing *meetings, uint32_t rank,
                                GArray *own);
