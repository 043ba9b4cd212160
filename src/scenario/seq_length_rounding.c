/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Searches the nearest lengths by applying the schedules' own checks to one multiple of the ranks
 * after the other.
 */
#include "scenario/seq_length_rounding.h"

#include "base/error.h"

#include <inttypes.h>

#define STEPS_MAX 256 /* multiples of the ranks that are tried in each direction */

/* Checks both sides of a pair. The linear side has as many key-value heads as heads, and a causal
 * mask. */
static bool
takes(const LhSchedule *schedule, const LhProgramParams *params)
{
    LhProgramParams p = *params;

    if (schedule->pair == NULL)
        return lh_schedule_check(schedule, params, NULL);
    p.attention.linear = true;
    p.attention.groups = p.attention.heads;
    p.mask = (LhMaskRule){ .causal = true };
    return lh_schedule_check(schedule->pair[0], params, NULL) &&
           lh_schedule_check(schedule->pair[1], &p, NULL);
}

/* Packed documents stay several documents, with other lengths. */
static bool
takes_length(const LhSchedule *schedule, const LhProgramParams *params, uint64_t length)
{
    const uint64_t ends[] = { length - 1, length };
    LhProgramParams p = *params;

    p.attention.seq_length = length;
    if (p.mask.documents_count > 1 && length > 1) {
        p.mask.document_ends = ends;
        p.mask.documents_count = G_N_ELEMENTS(ends);
    } else {
        p.mask.documents_count = 0;
    }
    return length > 0 && takes(schedule, &p);
}

static bool
all_take(const GPtrArray *schedules, const LhProgramParams *params, uint64_t length)
{
    for (guint i = 0; i < schedules->len; i++) {
        if (!takes_length(g_ptr_array_index(schedules, i), params, length))
            return false;
    }
    return true;
}

/* The nearest lengths below and above the requested one that all of @schedules accept; 0: none
 * nearby. */
static void
find_near(const GPtrArray *schedules, const LhProgramParams *params, uint64_t *below,
          uint64_t *above)
{
    const uint64_t asked = params->attention.seq_length;
    const uint64_t first = asked / params->ranks;

    *below = *above = 0;
    for (uint64_t step = 0; *below == 0 && step < MIN(STEPS_MAX, first); step++) {
        if (all_take(schedules, params, (first - step) * params->ranks))
            *below = (first - step) * params->ranks;
    }
    for (uint64_t step = 1; *above == 0 && step <= STEPS_MAX; step++) {
        if (all_take(schedules, params, (first + step) * params->ranks))
            *above = (first + step) * params->ranks;
    }
}

/* The setup's schedules that accept the length, or another one nearby. Caller unrefs. */
static GPtrArray *
able(const LhSetup *setup)
{
    GPtrArray *schedules = g_ptr_array_new();

    for (guint i = 0; i < setup->schedules->len; i++) {
        gpointer schedule = g_ptr_array_index(setup->schedules, i);
        g_autoptr(GPtrArray) one = g_ptr_array_new();
        uint64_t below, above;

        g_ptr_array_add(one, schedule);
        find_near(one, &setup->params, &below, &above);
        if (below != 0 || above != 0)
            g_ptr_array_add(schedules, schedule);
    }
    return schedules;
}

bool
lh_seq_length_round(LhSetup *setup, GError **error)
{
    const uint64_t asked = setup->params.attention.seq_length;
    g_autoptr(GPtrArray) schedules = NULL;
    uint64_t below, above;

    if (!setup->scenario->round_seq_length)
        return true;
    if (setup->documents != NULL || setup->scenario->document_distribution != NULL)
        return lh_scenario_error(setup->scenario, "round_seq_length", error,
                                 "the document lengths determine the sequence length");
    schedules = able(setup);
    if (schedules->len == 0 || all_take(schedules, &setup->params, asked))
        return true;
    find_near(schedules, &setup->params, &below, &above);
    if (below == 0 && above == 0) {
        g_set_error(error, LH_ERROR, LH_ERROR_NO,
                    "--round-seq-length: no length near %" PRIu64
                    " suits all %u schedules; name fewer",
                    asked, schedules->len);
        return false;
    }
    setup->asked_length = asked;
    setup->params.attention.seq_length =
        below != 0 && (above == 0 || asked - below <= above - asked) ? below : above;
    return true;
}

bool
lh_seq_length_check(const LhSetup *setup, GError **error)
{
    const uint64_t asked = setup->params.attention.seq_length;
    g_autoptr(GPtrArray) schedules = NULL;
    g_autoptr(GString) near = g_string_new(NULL);
    uint64_t below, above;

    for (guint i = 0; i < setup->schedules->len; i++) {
        if (takes_length(g_ptr_array_index(setup->schedules, i), &setup->params, asked))
            return true;
    }
    schedules = able(setup);
    if (setup->program != NULL || schedules->len == 0)
        return true;
    find_near(schedules, &setup->params, &below, &above);
    if (below != 0)
        g_string_append_printf(near, "%" PRIu64, below);
    if (above != 0)
        g_string_append_printf(near, "%s%" PRIu64, below != 0 ? " and " : "", above);
    g_set_error(error, LH_ERROR, LH_ERROR_NO,
                "none of the schedules considered can split a sequence of %" PRIu64
                " tokens for %u ranks; nearest legal lengths: %s%s",
                asked, setup->params.ranks,
                near->len > 0 ? near->str : "none that suits all of them",
                setup->documents == NULL ? "; --round-seq-length takes the nearest" : "");
    return false;
}
