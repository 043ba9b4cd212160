/* SPDX-License-Identifier: Apache-2.0 */
/* The rank named as the culprit when a run ends, from what is known of each rank. */
#include "runtime/process/first_failure.h"

#include "base/error.h"
#include "run_tests.h"

#include <stdlib.h>
#include <string.h>

#define RANKS 4
#define NOW_US INT64_C(100000000)
#define HEARD_US (NOW_US - 2500000)

typedef struct {
    LhRankState state;
    uint32_t order;
    const char *host;
    bool host_answers;
    int waits_for; /* -1: none */
} Known;

#define ANSWERS(host_, waits_)                                                                     \
    {                                                                                              \
        LH_RANK_ANSWERS, 0, host_, false, waits_                                                   \
    }

/* Ranks on one host each, unless a case differs. */
static const struct {
    uint32_t own, rank;
    const char *text;
    Known of[RANKS];
} verdicts[] = {
    /* The first failure, whatever other ranks suffered from it. */
    { 0,
      2,
      "rank 2 on host c: no memory",
      { ANSWERS("a", 1),
        { LH_RANK_FAILED, 2, "b", false, -1 },
        { LH_RANK_FAILED, 1, "c", false, -1 },
        { LH_RANK_GONE, 0, "d", false, -1 } } },
    { 0,
      3,
      "rank 3 on host d: its process is gone; last heard from 2.5 s ago: at work",
      { ANSWERS("a", 3),
        ANSWERS("b", 3),
        { LH_RANK_SILENT, 0, "c", false, -1 },
        { LH_RANK_GONE, 1, "d", false, -1 } } },
    { 0,
      1,
      "rank 1 on host b: it has ended, and others wait for it; last heard from 2.5 s ago: at work",
      { ANSWERS("a", 1),
        { LH_RANK_ENDED, 0, "b", false, -1 },
        ANSWERS("c", 1),
        ANSWERS("d", -1) } },
    { 0,
      1,
      "rank 1, rank 3 have not connected within 4 s",
      { ANSWERS("a", -1),
        { LH_RANK_MISSING, 0, NULL, false, -1 },
        ANSWERS("c", 0),
        { LH_RANK_MISSING, 0, NULL, false, -1 } } },
    { 0,
      0,
      "rank 0 on host a: no other rank connected within 4 s, or this one started too late",
      { ANSWERS("a", -1),
        { LH_RANK_MISSING, 0, NULL, false, -1 },
        { LH_RANK_MISSING, 0, NULL, false, -1 },
        { LH_RANK_MISSING, 0, NULL, false, -1 } } },
    /* Silent ranks: stopped, cut off, or the observing rank itself is. */
    { 0,
      2,
      "rank 2 on host c does not answer, though the host does; last heard from 2.5 s ago: at work",
      { ANSWERS("a", 1), ANSWERS("b", 2), { LH_RANK_SILENT, 0, "c", true, -1 }, ANSWERS("d", 2) } },
    { 0,
      1,
      "rank 1 on host b, rank 2 on host b do not answer, nor does the host; last heard from 2.5 s "
      "ago: at work",
      { ANSWERS("a", 1),
        { LH_RANK_SILENT, 0, "b", false, -1 },
        { LH_RANK_SILENT, 0, "b", false, -1 },
        ANSWERS("d", 2) } },
    { 0,
      0,
      "rank 0 on host a reaches no other host",
      { ANSWERS("a", 1),
        { LH_RANK_SILENT, 0, "b", false, -1 },
        { LH_RANK_SILENT, 0, "c", false, -1 },
        { LH_RANK_SILENT, 0, "d", false, -1 } } },
    { 0,
      0,
      "rank 0 on host a reaches no other host",
      { ANSWERS("a", 2),
        ANSWERS("a", 2),
        { LH_RANK_SILENT, 0, "c", false, -1 },
        { LH_RANK_SILENT, 0, "d", false, -1 } } },
    { 0,
      1,
      "rank 0 on host a does not reach rank 1 on host b, rank 2 on host b, rank 3 on host b",
      { ANSWERS("a", 1),
        { LH_RANK_SILENT, 0, "b", false, -1 },
        { LH_RANK_SILENT, 0, "b", false, -1 },
        { LH_RANK_SILENT, 0, "b", false, -1 } } },
    /* All answer: the rank they wait for. */
    { 0,
      2,
      "rank 2 on host c: 1 other rank waits for it, and it waits for nobody; last heard from 2.5 s "
      "ago: at work",
      { ANSWERS("a", 1), ANSWERS("b", 2), ANSWERS("c", -1), ANSWERS("d", 1) } },
    { 0,
      1,
      "rank 1 on host b: 2 other ranks wait for it, and it waits for others, too; last heard from "
      "2.5 s ago: at work",
      { ANSWERS("a", 1), ANSWERS("b", 0), ANSWERS("c", 1), ANSWERS("d", 2) } },
    { 0,
      0,
      "rank 0 on host a: nothing has completed, though all ranks answer; last heard from 2.5 s "
      "ago: "
      "at work",
      { ANSWERS("a", -1), ANSWERS("b", -1), ANSWERS("c", -1), ANSWERS("d", -1) } },
};

static void
learn(LhRankNews *news, const Known *known)
{
    *news =
        (LhRankNews){ .state = known->state,
                      .order = known->order,
                      .status = LH_ERROR_NO,
                      .host = g_strdup(known->host),
                      .text = g_strdup(known->state == LH_RANK_FAILED ? "no memory" : "at work"),
                      .heard_us = HEARD_US,
                      .host_answers = known->host_answers };
    if (known->waits_for >= 0) {
        const uint32_t rank = (uint32_t)known->waits_for;

        news->awaited = g_array_new(FALSE, FALSE, sizeof(rank));
        g_array_append_val(news->awaited, rank);
    }
}

static void
clear_news(LhRankNews *news)
{
    g_free(news->host);
    g_free(news->text);
    if (news->awaited != NULL)
        g_array_unref(news->awaited);
}

START_TEST(culprits_are_found)
{
    LhRankNews news[RANKS];
    LhFirstFailure culprit;

    for (uint32_t r = 0; r < RANKS; r++)
        learn(&news[r], &verdicts[_i].of[r]);
    culprit = lh_first_failure_find(news, RANKS, verdicts[_i].own, NOW_US, 4000000);
    ck_assert_str_eq(culprit.text, verdicts[_i].text);
    ck_assert_uint_eq(culprit.rank, verdicts[_i].rank);
    ck_assert_int_eq(culprit.status,
                     news[culprit.rank].state == LH_RANK_FAILED ? LH_ERROR_NO : LH_ERROR_RUNTIME);
    g_free(culprit.text);
    for (uint32_t r = 0; r < RANKS; r++)
        clear_news(&news[r]);
}
END_TEST

/* An error usually names its rank already. */
START_TEST(names_are_not_said_twice)
{
    static const char *const texts[][2] = {
        { "rank 1: no disk", "rank 1 on host b: no disk" },
        { "rank 1, op 3: no disk", "rank 1 on host b, op 3: no disk" },
        { "rank 1 has no disk", "rank 1 on host b: has no disk" },
        { "rank 12 has no disk", "rank 1 on host b: rank 12 has no disk" },
    };

    for (gsize i = 0; i < G_N_ELEMENTS(texts); i++) {
        LhRankNews news[] = {
            { .state = LH_RANK_ANSWERS, .host = (char *)"a" },
            { .state = LH_RANK_FAILED, .host = (char *)"b", .text = (char *)texts[i][0] }
        };
        LhFirstFailure culprit = lh_first_failure_find(news, 2, 0, NOW_US, 0);

        ck_assert_str_eq(culprit.text, texts[i][1]);
        g_free(culprit.text);
    }
}
END_TEST

LH_TEST_MAIN_OF_LOOPS("culprit", { culprits_are_found, G_N_ELEMENTS(verdicts) },
                      { names_are_not_said_twice, 1 })
