/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Search for schedules: simulates the published ones; then anneals, generates and simulates
 * candidate assignments from a portfolio of grains, rounds and starts; and proves the fastest
 * program.
 */
#pragma once

#include "compare/compare.h"
#include "synth/generator.h"
#include "synth/robustness.h"
#include "synth/schedule_bound.h"

#define LH_SYNTH_BUDGET 64 /* candidates */

/* How a candidate was generated. */
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
    uint64_t moves;              /* per candidate; 0: by the number of its blocks */
    uint64_t memory_limit_bytes; /* per rank; 0: the GPU's memory */
    LhTask task; /* jobs, 0: one per core. Reports the candidates done out of the budget, and the
                    fastest so far; returning false ends the search with what has been found */
    bool alone;  /* simulate no published schedule: the fastest candidate is the answer */
    bool robust; /* test the fastest programs for robustness, and choose by that */
    const LhProgram *from; /* a proven program of the scenario to start from; NULL: none */
} LhSynthOptions;

/* Origin of a program. */
typedef enum {
    LH_SYNTH_PUBLISHED, /* a published schedule */
    LH_SYNTH_FROM,      /* the program given in the options */
    LH_SYNTH_FOUND,     /* a candidate */
} LhSynthOrigin;

/* An assigned block of attention. */
typedef struct {
    uint32_t row, column; /* chunks of queries and keys, in token order */
    uint32_t slice;       /* of the heads of a GPU */
    uint32_t place;       /* that computes it */
    uint32_t round;       /* round by which its inputs arrive, from 1; 0: all inputs are local */
    uint64_t pairs;       /* query-key pairs, per head and sequence */
} LhSynthCell;

typedef struct {
    LhSynthBound bound;
    GPtrArray *rows;               /* of LhCompareRow *: the published schedules */
    const LhCompareRow *published; /* the fastest published one that fits; NULL: none */
    /* The fastest program of all, or the one that wins under all judges; proven. Its name tells
     * its origin. */
    LhCompareRow *best;
    LhSynthOrigin origin; /* of best */
    LhSynthRecipe recipe; /* if LH_SYNTH_FOUND */
    LhTime candidate_ps;  /* of the fastest candidate; LH_TIME_NEVER: none fits */
    uint32_t candidates, simulated,
        too_large;        /* simulated programs; programs that need too much memory */
    LhSynthRobust robust; /* with options.robust; all zero otherwise, or if no judge ran */
    GArray *cells; /* of LhSynthCell: of the candidate that is the answer, otherwise of the fastest;
                      NULL: none */
    GArray *homes; /* of uint32_t, by chunk: the home of its tokens; NULL: likewise */
    uint32_t grains;
    uint64_t moves; /* total */
    bool interrupted;
} LhSynthesis;

/*
 * Runs the search. The setup has passed lh_synth_check(). The same setup, options and seed give the
 * same result, whatever the number of threads. Fails with LH_ERROR_NO if no program fits, and with
 * LH_ERROR_RUNTIME if the best one is not proven. Caller frees.
 */
LhSynthesis *lh_synth(const LhSetup *setup, const LhSynthOptions *options, GError **error);
void lh_synthesis_free(LhSynthesis *synthesis);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(LhSynthesis, lh_synthesis_free)

/* Checks that @program computes the setup's attention; LH_ERROR_INPUT names what differs. */
bool lh_synth_fits(const LhSetup *setup, const LhProgram *program, GError **error);

/* Whether the best program is faster than every published schedule. */
static inline bool
lh_synthesis_wins(const LhSynthesis *s)
{
    return s->published == NULL || s->best->result->makespan_ps < s->published->result->makespan_ps;
}
