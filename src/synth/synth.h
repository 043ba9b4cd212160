/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The search for a schedule: the published ones are simulated, then assignments from a portfolio of
 * grains, rounds and starts are annealed, emitted and simulated, and the fastest program is proven.
 */
#pragma once

#include "compare/compare.h"
#include "synth/generator.h"
#include "synth/robustness.h"
#include "synth/schedule_bound.h"

#define LH_SYNTH_BUDGET 64 /* candidates */

/* A candidate: what was annealed, and how. */
typedef struct {
    LhSynthGrain grain;
    uint32_t rounds;
    double mean_weight;
    LhSynthStart start; /* LH_SYNTH_STARTS: the best candidate before it */
    uint64_t seed;
    LhSynthStyle style;
} LhSynthRecipe;

typedef struct {
    uint32_t budget; /* candidates; 0: LH_SYNTH_BUDGET */
    uint64_t seed;
    uint64_t moves;              /* of a candidate's annealing; 0: as many as its blocks need */
    uint64_t memory_limit_bytes; /* of a rank; 0: what the GPU has */
    LhTask task;                 /* jobs, 0: one for each core. Told of the candidates that are done
                                    of the budget, and of the fastest so
                                    far; false ends it with what is found */
    bool alone;                  /* no published schedule is simulated: the fastest candidate is
                                    the answer */
    bool robust;                 /* judge the fastest programs again, and choose by that */
    const LhProgram *from;       /* a proven program of the scenario to go on from; NULL: none */
} LhSynthOptions;

/* Where a program comes from. */
typedef enum {
    LH_SYNTH_PUBLISHED, /* one of the schedules */
    LH_SYNTH_FROM,      /* the one that the options name */
    LH_SYNTH_FOUND,     /* a candidate */
} LhSynthOrigin;

/* A block of attention, as it was dealt out. */
typedef struct {
    uint32_t row, column; /* chunks of queries and keys, in the order of tokens */
    uint32_t slice;       /* of the heads of a GPU */
    uint32_t place;       /* that computes it */
    uint32_t round;       /* before which what it needs arrives, from 1; 0: all of it lives there */
    uint64_t pairs;       /* of a query with a key, of one head and sequence */
} LhSynthCell;

typedef struct {
    LhSynthBound bound;
    GPtrArray *rows;               /* of LhCompareRow *: the published schedules */
    const LhCompareRow *published; /* the fastest of them that fits; NULL: none */
    /* The fastest program of all, or what holds under all judges; proven. Its name says where it
     * comes from. */
    LhCompareRow *best;
    LhSynthOrigin origin;                      /* of that */
    LhSynthRecipe recipe;                      /* of LH_SYNTH_FOUND */
    LhTime candidate_ps;                       /* the fastest candidate; LH_TIME_NEVER: none fits */
    uint32_t candidates, simulated, too_large; /* programs that were; that need too much memory */
    LhSynthRobust robust; /* with that option; else, and where no judge was asked, all zero */
    GArray *cells; /* of LhSynthCell: the candidate that is the answer, or else the fastest; NULL:
                      none */
    GArray *homes; /* of uint32_t, by chunk: the place where its tokens live; NULL: likewise */
    uint32_t grains;
    uint64_t moves; /* in all */
    bool interrupted;
} LhSynthesis;

/*
 * The setup passes lh_synth_check(). The same setup, options and seed give the same synthesis,
 * whatever the threads. LH_ERROR_NO if no program fits, LH_ERROR_RUNTIME if the best one
 * is not proven: then there is none. Caller frees.
 */
LhSynthesis *lh_synth(const LhSetup *setup, const LhSynthOptions *options, GError **error);
void lh_synthesis_free(LhSynthesis *synthesis);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(LhSynthesis, lh_synthesis_free)

/* Whether @program is one of the setup's attention: LH_ERROR_INPUT, with what differs. */
bool lh_synth_fits(const LhSetup *setup, const LhProgram *program, GError **error);

/* Whether it is faster than every published schedule. */
static inline bool
lh_synthesis_wins(const LhSynthesis *s)
{
    return s->published == NULL || s->best->result->makespan_ps < s->published->result->makespan_ps;
}
