/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Part of a run shown by a Gantt chart: ranks and time window.
 */
#pragma once

#include "scenario/setup.h"

#define LH_TIME_WINDOW_RANKS_DEFAULT 16
#define LH_TIME_WINDOW_RANKS_MAX 256U

typedef struct {
    GArray *ranks; /* of uint32_t, ascending, unique; owned */
    LhTime from_ps, to_ps;
} LhTimeWindow;

/* Numbers of ranks and of pipeline stages of a run; stages are equally large ranges of ranks. */
typedef struct {
    uint32_t count, stages;
} LhTimeWindowRanks;

/* For a case. */
LhTimeWindowRanks lh_time_window_ranks(const LhSetup *setup);
LhTimeWindowRanks lh_time_window_ranks_of(const LhProgram *program);

/* Stage of a rank, from 0. */
static inline uint32_t
lh_time_window_stage(LhTimeWindowRanks of, uint32_t rank)
{
    return rank / (of.count / of.stages);
}

/*
 * Parses the options. @ranks: a list such as "0-3,12"; NULL: LH_TIME_WINDOW_RANKS_DEFAULT ranks of
 * @of, the same number from each stage, or from every n-th stage if there are more stages than
 * that. @window: "FROM:TO", two times, either of which may be missing; NULL: the whole run (to_ps
 * is then LH_TIME_NEVER). LH_ERROR_USAGE names the option. Call lh_time_window_clear() in either
 * case.
 */
bool lh_time_window_init(LhTimeWindow *frame, const char *ranks, const char *window,
                         LhTimeWindowRanks of, GError **error);
void lh_time_window_clear(LhTimeWindow *frame);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(LhTimeWindow, lh_time_window_clear)

bool lh_time_window_has(const LhTimeWindow *frame, uint32_t rank);

/* Adds a rank, unless it is there. */
void lh_time_window_add(LhTimeWindow *frame, uint32_t rank);

/* Limits the window to a run of @makespan_ps; LH_ERROR_INPUT if it starts after the run's end. */
bool lh_time_window_fit(LhTimeWindow *frame, LhTime makespan_ps, GError **error);
