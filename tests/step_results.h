/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Compares steps of scenarios simulated in two ways, in short form and op by op: the results must
 * be equal.
 */
#pragma once

#include "base/rng.h"
#include "run_tests.h"
#include "scenario/setup_simulate.h"
#include "scenario/step/setup_step.h"

#include <math.h>
#include <string.h>

/* Returns the setup of a scenario with these members; NULL if it is rejected. The caller frees
 * both. */
static inline LhSetup *
setup_of(const char *members, LhScenario **scenario)
{
    g_autofree char *text =
        g_strdup_printf("{\"schema\": \"longhaul.scenario/1\", \"step\": true, %s}", members);
    g_autoptr(GError) error = NULL;
    LhSetup *setup;

    *scenario = lh_scenario_parse("s.json", text, strlen(text), &error);
    ck_assert_msg(*scenario != NULL, "%s: %s", members, error != NULL ? error->message : "");
    setup = lh_setup_new(*scenario, &error);
    return setup;
}

static inline LhSimParams
params_of(const LhSetup *setup, const LhProgram *program, bool path)
{
    LhSimParams params = lh_setup_sim_params(setup, program);

    params.path = path;
    return params;
}

static inline void
check_rank(const char *text, uint32_t rank, const LhRankResult *a, const LhRankResult *b)
{
    LhTime idle_ps[2] = { 0 };

    ck_assert_msg(
        a->finish_ps == b->finish_ps && a->busy_ps == b->busy_ps && a->comm_ps == b->comm_ps,
        "%s: rank %u ends at %" G_GINT64_FORMAT " ps, computes for %" G_GINT64_FORMAT
        ", communicates for %" G_GINT64_FORMAT "; in short %" G_GINT64_FORMAT ", %" G_GINT64_FORMAT
        ", %" G_GINT64_FORMAT,
        text, rank, b->finish_ps, b->busy_ps, b->comm_ps, a->finish_ps, a->busy_ps, a->comm_ps);
    /* Of several arrivals at the same instant either may be charged with the wait, so only sums are
     * compared. */
    for (int i = 0; i < LH_IDLE_PARTS; i++) {
        idle_ps[0] += a->idle_ps[i];
        idle_ps[1] += b->idle_ps[i];
    }
    ck_assert_msg(idle_ps[0] == idle_ps[1], "%s: idle time of rank %u", text, rank);
    for (int tier = 0; tier < LH_TIERS; tier++)
        ck_assert_msg(a->bytes_by_tier[tier] == b->bytes_by_tier[tier], "%s: bytes of rank %u",
                      text, rank);
    ck_assert_msg(a->flops == b->flops && a->dense_flops == b->dense_flops, "%s: flops", text);
    ck_assert_msg(a->peak_bytes == b->peak_bytes && a->peak_at_ps == b->peak_at_ps,
                  "%s: peak of rank %u", text, rank);
    ck_assert_msg(
        a->peak_op.op == b->peak_op.op && a->peak_op.layer == b->peak_op.layer &&
            a->peak_op.micro_batch == b->peak_op.micro_batch,
        "%s: peak of rank %u is op %u of layer %u, micro-batch %u; in short op %u, %u, %u", text,
        rank, b->peak_op.op, b->peak_op.layer, b->peak_op.micro_batch, a->peak_op.op,
        a->peak_op.layer, a->peak_op.micro_batch);
    ck_assert_mem_eq(a->peak->by_category, b->peak->by_category, sizeof(a->peak->by_category));
}

static inline void
check_same(const char *text, const LhSimResult *shorter, const LhSimResult *whole)
{
    ck_assert_msg(shorter->makespan_ps == whole->makespan_ps,
                  "%s: %" G_GINT64_FORMAT " ps, in short %" G_GINT64_FORMAT, text,
                  whole->makespan_ps, shorter->makespan_ps);
    for (uint32_t r = 0; r < whole->ranks_count; r++)
        check_rank(text, r, &shorter->ranks[r], &whole->ranks[r]);
    ck_assert_msg(shorter->ops == whole->ops && shorter->events == whole->events,
                  "%s: %" G_GUINT64_FORMAT " ops, %" G_GUINT64_FORMAT
                  " events; in short %" G_GUINT64_FORMAT ", %" G_GUINT64_FORMAT,
                  text, whole->ops, whole->events, shorter->ops, shorter->events);
    for (int tier = 0; tier < LH_TIERS; tier++)
        ck_assert_msg(shorter->link_bytes[tier] == whole->link_bytes[tier], "%s: bytes over %s",
                      text, lh_tier_names[tier]);
    for (int tier = 0; tier < LH_TIERS; tier++) {
        const LhTierUse *use = &shorter->tier_use[tier], *all = &whole->tier_use[tier];

        ck_assert_uint_eq(use->links, all->links);
        ck_assert_msg(use->busiest.link == all->busiest.link,
                      "%s: busiest link of %s: %u, in short form %u", text, lh_tier_names[tier],
                      all->busiest.link, use->busiest.link);
        ck_assert_msg(fabs(use->used_sum - all->used_sum) <= 1e-9 * all->used_sum,
                      "%s: utilisation of %s %g, in short form %g", text, lh_tier_names[tier],
                      all->used_sum, use->used_sum);
    }
    ck_assert_uint_eq(shorter->busiest_link, whole->busiest_link);
    ck_assert_double_eq(shorter->busiest_link_utilisation, whole->busiest_link_utilisation);
    ck_assert_int_eq(shorter->out_of_memory == NULL, whole->out_of_memory == NULL);
    if (whole->out_of_memory != NULL) {
        ck_assert_uint_eq(shorter->out_of_memory->rank, whole->out_of_memory->rank);
        ck_assert_int_eq(shorter->out_of_memory->time_ps, whole->out_of_memory->time_ps);
        ck_assert_uint_eq(shorter->out_of_memory->op.op, whole->out_of_memory->op.op);
        ck_assert_uint_eq(shorter->out_of_memory->op.layer, whole->out_of_memory->op.layer);
    }
    ck_assert_double_eq_tol(shorter->compute_error, whole->compute_error, 1e-6);
    ck_assert_int_eq((int)shorter->provenance, (int)whole->provenance);
}

/* ---- random steps ---- */

static inline const char *
pick(const char *const *words, uint64_t seed, uint32_t what)
{
    return words[lh_rng_bits(seed, what, 0) % g_strv_length((char **)words)];
}

static inline uint32_t
number(const uint32_t *numbers, uint32_t count, uint64_t seed, uint32_t what)
{
    return numbers[lh_rng_bits(seed, what, 0) % count];
}
