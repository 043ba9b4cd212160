/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a Gantt chart shows of a run: which ranks, and which part of the time.
 */
#pragma once

#include "scenario/setup.h"

#define LH_TIME_WINDOW_RANKS_DEFAULT 16
#define LH_TIME_WINDOW_RANKS_MAX 256U

typedef struct {
    GArray *ranks; /* of uint32_t, ascending, each once; owned */
    LhTime from_ps, to_ps;
} LhTimeWindow;

/* How many ranks a run has, and stages of a pipeline: each has as many ranks, which follow one
 * another. */
typedef struct {
    uint32_t count, stages;
} LhTimeWindowRanks;

/* Those of a case; of a program. */
LhTimeWindowRanks lh_time_window_ranks(const LhSetup *setup);
LhTimeWindowRanks lh_time_window_ranks_of(const LhProgram *program);

/* Of a rank, from 0. */
static inline uint32_t
lh_time_window_stage(LhTimeWindowRanks of, uint32_t rank)
{
    return rank / (of.count / of.stages);
}

/*
 * @ranks is a list such as "0-3,12", NULL for LH_TIME_WINDOW_RANKS_DEFAULT of @of, as many of each
 * stage, or, of more stages than that, one of every so many; @window is "FROM:TO", two times of
 * which either may be missing, NULL for the whole run (to_ps is then LH_TIME_NEVER). LH_ERROR_USAGE
 * names the option. Ends with lh_time_window_clear() in either case.
 */
bool lh_time_window_init(LhTimeWindow *frame, const char *ranks, const char *window,
                         LhTimeWindowRanks of, GError **error);
void lh_time_window_clear(LhTimeWindow *frame);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(LhTimeWindow, lh_time_window_clear)

bool lh_time_window_has(const LhTimeWindow *frame, uint32_t rank);

/* Adds a rank, if it is not there yet. */
void lh_time_window_add(LhTimeWindow *frame, uint32_t rank);

/* Fits the window to a run of @makespan_ps; LH_ERROR_INPUT if it begins after the run's end. */
bool lh_time_window_fit(LhTimeWindow *frame, LhTime makespan_ps, GError **error);
