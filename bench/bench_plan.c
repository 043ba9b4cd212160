/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CPU time of plans on one thread: building a space, estimating all of its points, and searching
 * it. Exit status 1 if one exceeds its limit.
 */
#include "planner/estimate_all.h"
#include "planner/search.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

typedef struct {
    const char *text, *members;
    uint64_t sequences;
    bool search;    /* else its points are only estimated */
    double limit_s; /* in total */
} Question;

/* Limits are several times the CPU time of a core of 2020, to tolerate other load. */
static const Question questions[] = {
    { "70B, 1,024 GPUs, estimates",
      "\"model\": \"llama-3-70b\", \"cluster\": \"hgx-h100:128\", \"seq_length\": \"128K\", "
      "\"checkpoint\": \"layer\", \"shard\": \"fsdp\"",
      8, false, 30 },
    { "7B, 16 GPUs, search",
      "\"model\": \"llama-7b\", \"cluster\": \"dfa-2node:2\", \"seq_length\": \"512K\"", 1, true,
      30 },
    { "7B, 16 GPUs, batch 16, search",
      "\"model\": \"llama-7b\", \"cluster\": \"dfa-2node:2\", \"seq_length\": \"32K\"", 16, true,
      40 },
};

static double
now_s(void)
{
    struct timespec t;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void
count(void *data, guint point, const LhPlanEstimate *estimate, const char *reason)
{
    guint *estimated = data;

    (void)point;
    (void)reason;
    *estimated += estimate != NULL;
}

/* Estimates all points, with or without messages. Returns CPU seconds. */
static double
estimate(const LhPlanSpace *space, bool messages)
{
    const double began_s = now_s();
    guint estimated = 0;

    lh_plan_estimate_all(&(LhPlanEstimates){
        .space = space, .task.jobs = 1, .messages = messages, .found = count, .data = &estimated });
    printf("  %-28s %8u points  %7.2f s\n",
           messages ? "estimates with messages" : "quick estimates", estimated, now_s() - began_s);
    return now_s() - began_s;
}

static double
search_all(const LhPlanSpace *space)
{
    const double began_s = now_s();
    g_autoptr(LhPlanSearch) search =
        lh_plan_search(space, &(LhPlanSearchOptions){ .top = 5, .task.jobs = 1 });

    printf("  %-28s %8u points  %7.2f s: %u refused, %u unfit, %u cut, %u simulated\n", "search",
           space->points->len, now_s() - began_s, search->counts[LH_POINT_REFUSED],
           search->counts[LH_POINT_UNFIT], search->counts[LH_POINT_CUT],
           search->counts[LH_POINT_RAN]);
    return now_s() - began_s;
}

static bool
bench(const Question *q)
{
    g_autofree char *text =
        g_strdup_printf("{\"schema\": \"longhaul.scenario/1\", \"step\": true, %s}", q->members);
    const double began_s = now_s();
    g_autoptr(GError) error = NULL;
    LhScenario *scenario = lh_scenario_parse(q->text, text, strlen(text), &error);
    g_autoptr(LhPlanSpace) space =
        scenario != NULL ? lh_plan_space_new(scenario, NULL, q->sequences, 1, &error) : NULL;
    double all_s;

    lh_scenario_free(scenario);
    if (space == NULL) {
        fprintf(stderr, "%s: %s\n", q->text, error->message);
        return false;
    }
    all_s = now_s() - began_s;
    printf("%s\n  %-28s %8u points  %7.2f s\n", q->text, "space", space->points->len, all_s);
    all_s += q->search ? search_all(space) : estimate(space, false) + estimate(space, true);
    if (all_s > q->limit_s)
        printf("  takes %.1f s; the limit is %.0f s\n", all_s, q->limit_s);
    return all_s <= q->limit_s;
}

int
main(void)
{
    bool ok = true;

    printf("CPU seconds\n");
    for (size_t i = 0; i < G_N_ELEMENTS(questions); i++)
        ok = bench(&questions[i]) && ok;
    return ok ? EXIT_SUCCESS : EXIT_FAILURE;
}
