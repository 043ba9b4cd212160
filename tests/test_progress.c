/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Progress where standard error is no terminal: one line a minute, and the results of a plan as
 * they are finished.
 */
#include "base/error.h"
#include "cli/plan_live.h"
#include "run_tests.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define MINUTE_US INT64_C(60000000)

/* Standard error, redirected to a file. */
typedef struct {
    char *path;
    int kept;
} Caught;

static Caught
catch_errors(void)
{
    Caught c = { .path = g_strdup_printf("%s/lh-progress-XXXXXX", g_get_tmp_dir()) };
    const int file = g_mkstemp(c.path);

    ck_assert_int_ge(file, 0);
    fflush(stderr);
    c.kept = dup(STDERR_FILENO);
    ck_assert_int_ge(dup2(file, STDERR_FILENO), 0);
    close(file);
    return c;
}

/* Caller frees. */
static char *
caught(Caught *c)
{
    char *text = NULL;

    fflush(stderr);
    ck_assert_int_ge(dup2(c->kept, STDERR_FILENO), 0);
    close(c->kept);
    ck_assert(g_file_get_contents(c->path, &text, NULL, NULL));
    ck_assert_int_eq(unlink(c->path), 0);
    g_free(c->path);
    return text;
}

static void
pass_time(LhProgressLine *line, gint64 by_us)
{
    line->started_us -= by_us;
    line->drawn_us -= by_us;
}

START_TEST(a_log_has_a_line_a_minute)
{
    Caught c = catch_errors();
    g_autofree char *text = NULL;
    const LhProgress soon = { .what = "ring", .events = 1, .now_ps = LH_PS_PER_S };
    const LhProgress later = { .what = "ring", .events = 1234, .now_ps = LH_PS_PER_S };
    LhProgressLine line;

    lh_progress_start(&line, 500);
    ck_assert(!lh_progress_is_long(&line));
    for (int i = 0; i < 3; i++) /* too early for another line */
        lh_progress_draw(&line, &soon);
    pass_time(&line, MINUTE_US);
    ck_assert(lh_progress_is_long(&line));
    for (int i = 0; i < 3; i++)
        lh_progress_draw(&line, &later);
    pass_time(&line, MINUTE_US / 2);
    lh_progress_draw_proof(&line, &(LhProgress){ .what = "ring", .done = 7 });
    pass_time(&line, MINUTE_US / 2);
    lh_progress_draw_proof(&line, &(LhProgress){ .what = "ring", .done = 8 });
    lh_progress_say(&line, "zigzag is through");
    lh_progress_end(&line);
    text = caught(&c);
    ck_assert_msg(g_str_has_prefix(text, "longhaul: ring: 1,234 events, 1 s simulated; "), "%s",
                  text);
    ck_assert_msg(strstr(text, "\nlonghaul: ring: 8 programs; ") != NULL, "%s", text);
    ck_assert_msg(g_str_has_suffix(text, "\nlonghaul: zigzag is through\n"), "%s", text);
    ck_assert_ptr_null(strchr(text, '\r'));
    ck_assert_ptr_null(strstr(text, "7 programs"));
}
END_TEST

/* ---- plans ---- */

/* Reports progress after a minute, and the end of the cluster after another one. */
static void
finish_late(void *data, const LhPlanAnswer *answer, guint index)
{
    LhPlanLive *live = data;
    const LhPlanCluster *cluster = g_ptr_array_index(answer->clusters, index);
    const LhPlanWay *best = lh_plan_best_way(cluster);
    const LhPlanProgress more = { .space = cluster->space,
                                  .best = best != NULL ? best->point : G_MAXUINT };
    const LhProgress at = { .what = cluster->space->cluster,
                            .best_ps = LH_PS_PER_S,
                            .more = &more };

    pass_time(&live->line, MINUTE_US);
    ck_assert(lh_plan_live_progress(live, &at));
    ck_assert(lh_plan_live_progress(live, &at));
    pass_time(&live->line, MINUTE_US);
    lh_plan_live_finished(live, answer, index);
}

START_TEST(a_log_has_the_clusters_of_a_plan)
{
    static const char text_of[] = "{\"schema\": \"longhaul.scenario/1\", \"model\": \"gpt3-13b\","
                                  " \"seq_length\": \"16K\", \"shard\": \"fsdp\","
                                  " \"schedule\": [\"ulysses\"], \"checkpoint\": \"layer\"}";
    g_autoptr(GPtrArray) clusters = g_ptr_array_new();
    g_autoptr(LhScenario) scenario = lh_scenario_parse("s.json", text_of, strlen(text_of), NULL);
    const LhOutputOptions to = { .format = LH_FORMAT_JSON };
    LhPlanPrice prices[2] = { 0 };
    const LhPlanWeights weights = { .prices = prices };
    LhPlanLive live;
    const LhPlanQuery query = { .scenario = scenario,
                                .clusters = clusters,
                                .sequences = 1,
                                .top = 1,
                                .task = { .progress = lh_plan_live_progress, .data = &live },
                                .finished = finish_late,
                                .finished_data = &live };
    g_autoptr(GError) error = NULL;
    g_autoptr(LhPlanAnswer) answer = NULL;
    g_autofree char *text = NULL;
    Caught c;

    g_ptr_array_add(clusters, (char *)"single-gpu:1");
    g_ptr_array_add(clusters, (char *)"hgx-h100:1");
    c = catch_errors();
    lh_plan_live_start(&live, &query, &weights, &to);
    answer = lh_plan(&query, &error);
    ck_assert(lh_plan_live_end(&live, &error));
    text = caught(&c);
    ck_assert_msg(answer != NULL, "%s", error != NULL ? error->message : "");
    ck_assert_msg(strstr(text, "longhaul: single-gpu:1: nothing fits or runs\n") != NULL, "%s",
                  text);
    ck_assert_msg(strstr(text, "longhaul: hgx-h100:1: ") != NULL, "%s", text);
    ck_assert_msg(strstr(text, " s per step: tp ") != NULL, "%s", text);
    ck_assert_msg(strstr(text, " simulated; best so far 1 s per step: tp ") != NULL, "%s", text);
}
END_TEST

LH_TEST_MAIN("progress", a_log_has_a_line_a_minute, a_log_has_the_clusters_of_a_plan)
