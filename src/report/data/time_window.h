/*
 * What a Gantt chart shows of a run: which ranks, and which part of the time.
 */
#pragma once

#include "scenario/setup.h"

#define LH_FRAME_RANKS_DEFAULT 16
#define LH_FRAME_RANKS_MAX 256U

typedef struct {
    GArray *ranks; /* of uint32_t, ascending, each once; owned */
    LhTime from_ps, to_ps;
} LhFrame;

/* How many ranks a run has, and stages of a pipeline: each has as many ranks, which follow one
 * another. */
typedef struct {
    uint32_t count, stages;
} LhFrameRanks;

/* Those of a case; of a program. */
LhFrameRanks lh_frame_ranks(const LhSetup *setup);
LhFrameRanks lh_frame_ranks_of(const LhProgram *program);

/* Of a rank, from 0. */
static inline uint32_t
lh_frame_stage(LhFrameRanks of, uint32_t rank)
{
    return rank / (of.count / of.stages);
}

/*
 * @ranks is a list such as "0-3,12", NULL for LH_FRAME_RANKS_DEFAULT of @of, as many of each stage,
 * or, of more stages than that, one of every so many; @window is "FROM:TO", two times of which
 * either may be missing, NULL for the whole run (to_ps is then LH_TIME_NEVER). LH_ERROR_USAGE names
 * the option. Ends with lh_frame_clear() in either case.
 */
bool lh_frame_init(LhFrame *frame, const char *ranks, const char *window, LhFrameRanks of,
                   GError **error);
void lh_frame_clear(LhFrame *frame);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(LhFrame, lh_frame_clear)

bool lh_frame_has(const LhFrame *frame, uint32_t rank);

/* Adds a rank, if it is not there yet. */
void lh_frame_add(LhFrame *frame, uint32_t rank);

/* Fits the window to a run of @makespan_ps; LH_ERROR_INPUT if it begins after the run's end. */
bool lh_frame_fit(LhFrame *frame, LhTime makespan_ps, GError **error);
