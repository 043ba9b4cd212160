/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Published tables: descriptions, the meaning of rows, predictions, and errors for broken ones.
 */
#include "data_files.h"
#include "papers/reproduce.h"
#include "report/text/reproduction.h"
#include "scenario/setup.h"

#include <stdio.h>

/* Options that tables of pipelines name but scenarios do not have yet. */
static const char *const awaited[] = { "pipeline_model_parallel_size", NULL };

/* Options of tables of a single collective. */
static const char *const collective_options[] = { "collective", "bytes", "nccl", "edited_from",
                                                  NULL };

static bool
is_option(const char *name)
{
    if (g_strv_contains(collective_options, name))
        return true;
    for (const LhField *field = lh_scenario_options(); field->name != NULL; field++) {
        if (strcmp(field->name, name) == 0)
            return true;
    }
    return g_strv_contains(awaited, name);
}

/* Whether a metric has a tolerance, so that a regression is noticed, or a note that its error is
 * not explained. */
static bool
is_bounded(const LhPaper *paper, guint metric)
{
    const LhPaperMetric *m = &g_array_index(paper->metrics, LhPaperMetric, metric);
    const LhPaperTolerance *own = &m->tolerance;

    return m->not_explained != NULL || paper->not_explained != NULL || own->mean > 0 ||
           own->worst > 0 || paper->tolerance.mean > 0 || paper->tolerance.worst > 0 ||
           paper->group_tolerance.mean > 0;
}

/* Shipped descriptions can be read, match their rows, and name existing options only. */
START_TEST(papers_fit_their_rows)
{
    g_auto(GStrv) names = lh_paper_list();

    ck_assert_uint_ge(g_strv_length(names), 18);
    for (char **name = names; *name != NULL; name++) {
        g_autoptr(GError) error = NULL;
        g_autoptr(LhPaper) paper = lh_paper_load(*name, &error);
        g_autoptr(LhCsv) rows = paper == NULL ? NULL : lh_paper_rows(paper, NULL, &error);
        g_autoptr(GPtrArray) cases = rows == NULL ? NULL : lh_paper_cases(paper, rows, &error);

        ck_assert_msg(cases != NULL, "%s", error != NULL ? error->message : *name);
        ck_assert_str_eq(paper->name, *name);
        ck_assert_uint_gt(cases->len, 0);
        for (guint i = 0; i < cases->len; i++) {
            const LhPaperCase *c = g_ptr_array_index(cases, i);

            for (guint j = 0; j < c->options->names->len; j++)
                ck_assert_msg(is_option(g_ptr_array_index(c->options->names, j)), "%s: %s", *name,
                              (const char *)g_ptr_array_index(c->options->names, j));
            ck_assert_msg(c->state != LH_CASE_JUDGED || is_bounded(paper, c->metric),
                          "%s has no bounds (\"tolerance\")", *name);
            ck_assert((c->reason != NULL) ==
                      (c->state == LH_CASE_LEFT_OUT || c->state == LH_CASE_UNPREDICTED));
        }
    }
}
END_TEST

/* --- rows ---------------------------------------------------------------------------------------
 */

static const char paper_text[] =
    "{\n"
    "  \"schema\": \"longhaul.paper/1\", \"name\": \"t\", \"description\": \"d\", \"source\": "
    "\"s\",\n"
    "  \"base\": [\"cluster=dgx-a100-80g:1\", \"dtype=fp16\", \"mask=causal\"],\n"
    "  \"columns\": [\n"
    "    { \"column\": \"gpus\", \"values\": [ { \"value\": \"*\", \"set\": [\"ranks=*\", "
    "\"seq_length={gpus*per_gpu*2/2}\"] } ] },\n"
    "    { \"column\": \"how\", \"values\": [\n"
    "      { \"value\": \"no-*\", \"skip\": \"it is not known\" },\n"
    "      { \"value\": \"x\", \"where\": [\"gpus=2\"], \"set\": [\"schedule=zigzag\", \"dtype=\"] "
    "},\n"
    "      { \"value\": \"x\", \"set\": [\"schedule=ring\"] },\n"
    "      { \"value\": \"pre-*-post\", \"set\": [\"schedule=*\"] } ] }\n"
    "  ],\n"
    "  \"metrics\": [ { \"column\": \"ms\", \"metric\": \"attention_s\", \"scale\": 0.001 },\n"
    "    { \"column\": \"claim\", \"cell\": \"at least *x\", \"metric\": \"attention_s\",\n"
    "      \"at_least\": true, \"against\": [\"schedule=ring\"] } ],\n"
    "  \"fitted_on\": [ { \"where\": [\"how=x\", \"gpus=4\"], \"columns\": [\"ms\"] } ],\n"
    "  \"tolerance\": { \"mean\": 0.2 }\n"
    "}\n";

static LhPaper *
parse_paper(const char *text)
{
    g_autoptr(GError) error = NULL;
    LhPaper *paper = lh_paper_parse("dir/p.json", text, strlen(text), &error);

    ck_assert_msg(paper != NULL, "%s", error != NULL ? error->message : "no message");
    return paper;
}

static LhCsv *
parse_rows(const char *text)
{
    g_autoptr(GError) error = NULL;
    LhCsv *rows = lh_csv_parse("dir/t.csv", text, strlen(text), &error);

    ck_assert_msg(rows != NULL, "%s", error != NULL ? error->message : "no message");
    return rows;
}

static GPtrArray *
cases_of(const LhPaper *paper, const char *text)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(LhCsv) rows = parse_rows(text);
    GPtrArray *cases = lh_paper_cases(paper, rows, &error);

    ck_assert_msg(cases != NULL, "%s", error != NULL ? error->message : "no message");
    return cases;
}

static void
check_case(const GPtrArray *cases, guint index, LhCaseState state, const char *options,
           const char *reason)
{
    const LhPaperCase *c = g_ptr_array_index(cases, index);
    g_autofree char *found = lh_paper_options_text(c->options);

    ck_assert_int_eq(c->state, state);
    if (options != NULL)
        ck_assert_str_eq(found, options);
    ck_assert_msg(g_strcmp0(c->reason, reason) == 0, "%s", c->reason);
}

START_TEST(paper_rows_become_options)
{
    g_autoptr(LhPaper) paper = parse_paper(paper_text);
    g_autoptr(GPtrArray) cases = cases_of(paper, "gpus,per_gpu,how,ms,claim\n"
                                                 "2,1024,x,1.5,\n"
                                                 "4,1024,x,2,at least 1.25x\n"
                                                 "8,2048,pre-striped-post,OOM,more\n"
                                                 "8,2048,no-one,a lot,at least ?x\n"
                                                 "8,2048,other,4,\n"
                                                 "8,2048,x,,\n");
    const LhPaperCase *c;

    ck_assert_uint_eq(cases->len, 7);
    check_case(cases, 0, LH_CASE_JUDGED,
               "cluster=dgx-a100-80g:1, mask=causal, ranks=2, seq_length=2048, schedule=zigzag",
               NULL);
    check_case(cases, 1, LH_CASE_FITTED,
               "cluster=dgx-a100-80g:1, dtype=fp16, mask=causal, ranks=4, seq_length=4096, "
               "schedule=ring",
               NULL);
    check_case(cases, 2, LH_CASE_JUDGED, NULL, NULL); /* the claim of the same row */
    check_case(cases, 3, LH_CASE_JUDGED,
               "cluster=dgx-a100-80g:1, dtype=fp16, mask=causal, ranks=8, seq_length=16384, "
               "schedule=striped",
               NULL);
    check_case(cases, 4, LH_CASE_LEFT_OUT, NULL, "it is not known");
    check_case(cases, 5, LH_CASE_LEFT_OUT, NULL, "it is not known");
    check_case(cases, 6, LH_CASE_LEFT_OUT, NULL,
               "the meaning of \"other\" in column \"how\" is unknown");
    c = g_ptr_array_index(cases, 0);
    ck_assert_double_eq(c->published, 1.5e-3);
    ck_assert(c->published_fits && c->line == 2 && c->against == NULL);
    c = g_ptr_array_index(cases, 2);
    ck_assert_double_eq(c->published, 1.25);
    ck_assert_str_eq(lh_paper_option(c->against, "schedule"), "ring");
    c = g_ptr_array_index(cases, 3);
    ck_assert(!c->published_fits);
}
END_TEST

/* Other numbers of the source belong to specific rows and columns. */
START_TEST(contradictions_are_of_rows)
{
    static const BrokenInput with = {
        "\"fitted_on\"",
        "\"contradictions\": [ { \"where\": [\"how=x\"], \"columns\": [\"ms\"], \"value\": \"2 "
        "ms\", \"at\": \"text\" }, { \"where\": [\"gpus=4\"], \"value\": \"3\", \"at\": "
        "\"figure\" } ], \"fitted_on\"",
        NULL,
    };
    static const char *const expected[] = { "2 ms: text", NULL, "2 ms: text; 3: figure",
                                            "3: figure", "3: figure" };
    g_autofree char *text = break_text(paper_text, &with);
    g_autoptr(LhPaper) paper = parse_paper(text);
    g_autoptr(GPtrArray) cases = cases_of(paper, "gpus,per_gpu,how,ms,claim\n"
                                                 "2,1024,x,1.5,at least 2x\n"
                                                 "4,1024,x,1.5,at least 2x\n"
                                                 "4,1024,no-x,1.5,\n");

    ck_assert_uint_eq(cases->len, 5);
    for (guint i = 0; i < cases->len; i++) {
        const LhPaperCase *c = g_ptr_array_index(cases, i);

        ck_assert_msg(g_strcmp0(c->contradicted, expected[i]) == 0, "%u: %s", i, c->contradicted);
    }
}
END_TEST

/* A row with cells of several values is one case for every combination of them. */
START_TEST(paper_rows_stand_for_several_cases)
{
    static const BrokenInput several[] = {
        { "\"where\": [\"gpus=2\"], \"set\"",
          "\"each\": [ { \"set\": [\"mask=full\", \"schedule=ulysses\"] }, { "
          "\"set\": [\"mask=causal\"] } ], \"set\"",
          NULL },
        { "\"value\": \"*\", \"set\"",
          "\"value\": \"*\", \"each\": [ { \"set\": [\"micro_batch_size=1\"] }, { \"set\": "
          "[\"micro_batch_size=2\"] }, { \"set\": [\"micro_batch_size=3\"] } ], \"set\"",
          NULL },
    };
    g_autofree char *text = g_strdup(paper_text);
    g_autoptr(LhPaper) paper = NULL;
    g_autoptr(GPtrArray) cases = NULL;

    for (gsize i = 0; i < G_N_ELEMENTS(several); i++) {
        char *next = break_text(text, &several[i]);

        g_free(text);
        text = next;
    }
    paper = parse_paper(text);
    cases = cases_of(paper, "gpus,per_gpu,how,ms,claim\n2,1024,x,1.5,at least 2x\n"
                            "2,1024,no-x,1.5,\n2,1024,pre-ring-post,1.5,\n");
    ck_assert_uint_eq(cases->len, 12 + 1 + 3);
    for (guint i = 0; i < 12; i++) {
        g_autofree char *options = g_strdup_printf(
            "cluster=dgx-a100-80g:1, mask=%s, ranks=2, seq_length=2048, micro_batch_size=%u, "
            "schedule=%s",
            i < 6 ? "full" : "causal", i / 2 % 3 + 1, i < 6 ? "ulysses" : "zigzag");

        ck_assert_uint_eq(((const LhPaperCase *)g_ptr_array_index(cases, i))->metric, i % 2);
        check_case(cases, i, LH_CASE_JUDGED, options, NULL);
    }
    check_case(cases, 12, LH_CASE_LEFT_OUT, NULL, "it is not known");
    check_case(cases, 15, LH_CASE_JUDGED,
               "cluster=dgx-a100-80g:1, dtype=fp16, mask=causal, ranks=2, seq_length=2048, "
               "micro_batch_size=3, schedule=ring",
               NULL);
}
END_TEST

START_TEST(paper_patterns_match)
{
    static const struct {
        const char *pattern, *text, *found;
    } known[] = {
        { "*", "", "" },        { "*", "abc", "abc" },    { "abc", "abc", "" },
        { "abc", "abd", NULL }, { "a*", "abc", "bc" },    { "a*c", "abc", "b" },
        { "a*c", "ac", "" },    { "ab*bc", "abc", NULL }, { "*c", "abc", "ab" },
        { "*x", "abc", NULL },  { "", "", "" },           { "", "a", NULL },
    };

    for (gsize i = 0; i < G_N_ELEMENTS(known); i++) {
        g_autofree char *found = lh_paper_match(known[i].pattern, known[i].text);

        ck_assert_msg(g_strcmp0(found, known[i].found) == 0, "\"%s\" on \"%s\": %s",
                      known[i].pattern, known[i].text, found);
    }
}
END_TEST

/* Errors name file and line, in rows and in descriptions. */
START_TEST(paper_rows_that_are_broken_are_named)
{
    static const struct {
        const char *row, *message;
    } broken[] = {
        { "2,1024,x,1.5x,", "\"1.5x\" in column \"ms\" is not a published value; allowed: a number "
                            "above 0, OOM, or nothing" },
        { "2,1024,x,-1,", "\"-1\" in column \"ms\" is not a published value; allowed: a number "
                          "above 0, OOM, or nothing" },
        { "2,1024,x,nan,", "\"nan\" in column \"ms\" is not a published value; allowed: a number "
                           "above 0, OOM, or nothing" },
        { "2,many,x,1,", "\"many\" in column \"per_gpu\" is not a number" },
        { "2,0.25,x,1,", "{gpus*per_gpu*2/2} is 0.5; allowed: a whole number of at least 1" },
        { "2,-1,x,1,", "{gpus*per_gpu*2/2} is -2; allowed: a whole number of at least 1" },
        { "1e9,1,x,1,", "--ranks: \"1e9\" is not allowed; allowed: a count such as 4096" },
        { "2,1e30,x,1,", "{gpus*per_gpu*2/2} is 2e+30; allowed: a whole number of at least 1" },
    };
    g_autoptr(LhPaper) paper = parse_paper(paper_text);

    for (gsize i = 0; i < G_N_ELEMENTS(broken); i++) {
        g_autofree char *text =
            g_strconcat("# r\ngpus,per_gpu,how,ms,claim\n", broken[i].row, "\n", NULL);
        g_autofree char *start = g_strconcat("dir/t.csv:3: error: ", broken[i].message, NULL);
        g_autoptr(LhCsv) rows = parse_rows(text);
        g_autoptr(GError) error = NULL;

        ck_assert_msg(lh_paper_cases(paper, rows, &error) == NULL, "case %zu", i);
        ck_assert(g_error_matches(error, LH_ERROR, LH_ERROR_INPUT));
        ck_assert_msg(g_str_has_prefix(error->message, start), "%s", error->message);
    }
}
END_TEST

START_TEST(paper_rejects_broken_files)
{
    static const BrokenInput broken[] = {
        { "\"value\": \"no-*\"", "\"value\": \"*no-*\"",
          "dir/p.json:7:18: error: \"columns[1].values[0].value\" has more than one *; allowed: "
          "one" },
        { "\"skip\": \"it is not known\"", "\"skip\": \"it is not known\", \"set\": [\"ranks=1\"]",
          "dir/p.json:7:7: error: \"columns[1].values[0]\" is left out (\"skip\") but has options "
          "(\"set\")" },
        { "\"ranks=*\"", "\"=*\"",
          "dir/p.json:5:61: error: \"columns[0].values[0].set[0]\" names no option; allowed: "
          "OPTION, OPTION=VALUE, OPTION=" },
        { "\"where\": [\"gpus=2\"]", "\"where\": [\"gpus\"]",
          "dir/p.json:8:33: error: \"columns[1].values[1].where[0]\" must be COLUMN=VALUE" },
        { "\"where\": [\"how=x\"", "\"where\": [\"=x\"",
          "dir/p.json:15:30: error: \"fitted_on[0].where[0]\" must be COLUMN=VALUE" },
        { "\"at least *x\"", "\"at least x\"",
          "dir/p.json:13:34: error: \"metrics[1].cell\" has no * for the number" },
        { "\"at least *x\"", "\"at least *x\", \"number\": 2",
          "dir/p.json:13:5: error: \"metrics[1]\" has \"number\" and a cell with a number; "
          "allowed: \"number\" with a \"cell\" without *" },
        { "\"scale\": 0.001", "\"number\": 2",
          "dir/p.json:12:16: error: \"metrics[0]\" has \"number\" and a cell with a number; "
          "allowed: \"number\" with a \"cell\" without *" },
        { "\"scale\": 0.001", "\"number\": -2",
          "dir/p.json:12:69: error: \"metrics[0].number\" is out of range: found the number -2; "
          "allowed: 1e-12 to 1000000000000" },
        { "\"at_least\": true", "\"at_least\": true, \"up_to\": true",
          "dir/p.json:13:5: error: \"metrics[1]\" is \"at_least\" and \"up_to\"; allowed: one of "
          "them" },
        { "\"skip\": \"it is not known\"",
          "\"skip\": \"it is not known\", \"each\": [{ \"set\": [\"ranks=1\"] }]",
          "dir/p.json:7:7: error: \"columns[1].values[0]\" is left out (\"skip\") but has options "
          "(\"each\")" },
        { "\"skip\": \"it is not known\"", "\"each\": [{ \"set\": [\"ranks=1\", \"=1\"] }]",
          "dir/p.json:7:56: error: \"columns[1].values[0].each[0].set[1]\" names no option; "
          "allowed: "
          "OPTION, OPTION=VALUE, OPTION=" },
        { "\"skip\": \"it is not known\"", "\"each\": []",
          "dir/p.json:7:34: error: \"columns[1].values[0].each\" has 0 elements; allowed: 1 to "
          "1000" },
        { "\"scale\": 0.001", "\"granularity\": 4096",
          "dir/p.json:12:16: error: \"metrics[0]\": \"granularity\" applies only to "
          "longest_tokens" },
        { "\"scale\": 0.001", "\"gpu\": \"1\"",
          "dir/p.json:12:16: error: \"metrics[0]\": \"gpu\" applies only to peak_gib" },
        { "\"metric\": \"attention_s\"", "\"metric\": \"attention\"",
          "dir/p.json:12:44: error: \"metrics[0].metric\" must be one of iteration_s, "
          "tokens_per_s, tokens_per_s_per_gpu, model_tflops_per_gpu, peak_gib, longest_tokens, "
          "tensor_context_bytes, heads_ratio, attention_s, iterations_per_s, compute_s, "
          "communication_s, time_over_compute, idle_share, tflops_per_gpu, collective_us, "
          "collective_left_out_us, collective_links_edited_us (did you mean \"attention_s\"?); "
          "found "
          "the string \"attention\"" },
        { "\"tolerance\"", "\"constants\": [\"speed\"], \"tolerance\"",
          "dir/p.json:16:17: error: \"constants[0]\" must be one of attention_slowdown, "
          "product_slowdown, linear_efficiency, matrix_efficiency, memory_efficiency, "
          "nvlink_bandwidth, nic_bandwidth, collective_bandwidth, fsdp_overhead_s" },
        { "\"scale\": 0.001", "\"scale\": 0",
          "dir/p.json:12:68: error: \"metrics[0].scale\" is out of range: found the number 0; "
          "allowed: 1e-12 to 1000000000000" },
        { "\"base\"", "\"bases\"",
          "dir/p.json:3:3: error: unknown field \"bases\" at the top level; did you mean \"base\"? "
          "allowed: schema, name, description, source, caveat, serving, base, columns, metrics, "
          "fitted_on, contradictions, groups, group_tolerance, constants, tolerance, "
          "not_explained" },
        { "\"mean\": 0.2", "\"mean\": 0.21",
          "dir/p.json:16:26: error: \"tolerance.mean\" is out of range: found the number 0.21; "
          "allowed: 0 to 0.2" },
        { "\"mean\": 0.2 }", "\"mean\": 0.2 }, \"not_explained\": \"n\"",
          "dir/p.json:16:50: error: \"not_explained\" has bounds (\"tolerance\") but is "
          "\"not_explained\"" },
        { "\"scale\": 0.001",
          "\"scale\": 0.001, \"not_explained\": \"n\", \"tolerance\": { \"worst\": 0.1 }",
          "dir/p.json:12:16: error: \"metrics[0]\" has bounds (\"tolerance\") but is "
          "\"not_explained\"" },
        { "\"fitted_on\"",
          "\"contradictions\": [ { \"where\": [\"how\"], \"value\": \"2\", \"at\": \"a\" } "
          "], \"fitted_on\"",
          "dir/p.json:15:35: error: \"contradictions[0].where[0]\" must be COLUMN=VALUE" },
        { "\"fitted_on\"",
          "\"contradictions\": [ { \"where\": [\"how=x\"], \"value\": \"2\" } ], "
          "\"fitted_on\"",
          "dir/p.json:15:23: error: missing field \"at\" in \"contradictions[0]\"; it must be a "
          "string" },
    };

    for (gsize i = 0; i < G_N_ELEMENTS(broken); i++) {
        g_autoptr(GError) error = NULL;
        g_autofree char *bad = break_text(paper_text, &broken[i]);

        ck_assert_msg(lh_paper_parse("dir/p.json", bad, strlen(bad), &error) == NULL, "case %zu",
                      i);
        check_message(error, broken[i].message);
    }
}
END_TEST

/* --- predictions --------------------------------------------------------------------------------
 */

static void
run(const LhPaper *paper, const GPtrArray *cases, const LhConstants *constants)
{
    g_autoptr(GError) error = NULL;

    ck_assert_msg(lh_paper_run(paper, cases, constants, 0, &error), "%s",
                  error != NULL ? error->message : "no message");
}

static const char collective_text[] =
    "{ \"schema\": \"longhaul.paper/1\", \"name\": \"t\", \"description\": \"d\", \"source\": "
    "\"s\",\n"
    "\"columns\": [ { \"column\": \"on\", \"values\": [ { \"value\": \"*\", \"set\": "
    "[\"cluster=*\"] } ] }, { \"column\": \"op\", \"values\": [ { \"value\": \"*\", \"set\": "
    "[\"collective=*\"] } ] }, { \"column\": \"n\", \"values\": [ { \"value\": \"\" }, { "
    "\"value\": "
    "\"*\", \"set\": [\"ranks=*\"] } ] }, { \"column\": \"b\", \"values\": [ { \"value\": \"*\", "
    "\"set\": [\"bytes=*\"] } ] } ],\n"
    "\"metrics\": [ { \"name\": \"long\", \"where\": [\"b>=65536\", \"op!=all-to-*\"], \"column\": "
    "\"us\", \"metric\": \"collective_us\" }, { \"where\": [\"b<=65535\"], \"column\": \"us\", "
    "\"metric\": \"collective_us\" }, { \"where\": [\"b>=65536\"], \"column\": \"us\", \"metric\": "
    "\"collective_left_out_us\" } ],\n"
    "\"fitted_on\": [ { \"where\": [\"b=65536\"], \"metrics\": [\"collective_us\"] } ] }";

static void
check_predicted(const GPtrArray *cases, guint index, guint metric, LhCaseState state, double us)
{
    const LhPaperCase *c = g_ptr_array_index(cases, index);

    ck_assert_uint_eq(c->metric, metric);
    ck_assert_msg(c->state == state, "case %u: %s", index, c->reason);
    ck_assert_double_eq_tol(c->predicted, us, 1e-9 * us);
}

/* With another cluster's file edited to this one's NVLink rate, the links' part of a time scales
 * with the rate, and so does half of the rest above the first size. */
START_TEST(collectives_are_predicted_by_edited_files)
{
    const BrokenInput edits[] = {
        { "collective_left_out_us", "collective_links_edited_us", NULL },
        { "\"cluster=*\"", "\"cluster=*\", \"edited_from=dgx-a100-80g\"", NULL },
    };
    g_autofree char *text = break_text(collective_text, &edits[0]);
    g_autofree char *with_other = break_text(text, &edits[1]);
    const char *const rows = "on,op,n,b,us\nhgx-h100,all-gather,8,268435456,13\n"
                             "dgx-a100-80g,all-gather,8,268435456,13\n";
    g_autoptr(LhPaper) paper = parse_paper(with_other), alone = parse_paper(text);
    g_autoptr(GPtrArray) cases = cases_of(paper, rows), without = cases_of(alone, rows);
    double edited_us, same_us, as_is_us;

    run(paper, cases, NULL);
    run(alone, without, NULL);
    check_case(without, 1, LH_CASE_UNPREDICTED, NULL,
               "the option edited_from is missing: a cluster like hgx-h100 with other links");
    edited_us = ((const LhPaperCase *)g_ptr_array_index(cases, 1))->predicted;
    as_is_us = ((const LhPaperCase *)g_ptr_array_index(cases, 2))->predicted;
    same_us = ((const LhPaperCase *)g_ptr_array_index(cases, 3))->predicted;
    ck_assert(same_us == as_is_us); /* the links are the same */
    ck_assert_double_gt(edited_us, as_is_us * 240 / 371);
    ck_assert_double_lt(edited_us, as_is_us * 240 / 371 * 1.05);
}
END_TEST

/* Measured sizes, interpolation between them, a size that is skipped, and what has no
 * prediction; metrics have rows of their own. */
START_TEST(collectives_are_predicted)
{
    g_autoptr(LhPaper) paper = parse_paper(collective_text);
    g_autoptr(GPtrArray) cases = cases_of(paper, "on,op,n,b,us\n"
                                                 "hgx-h100,all-gather,8,65536,13\n"
                                                 "hgx-h100:2,all-gather,8,163840,13\n"
                                                 "hgx-h100:1,all-to-all,8,1024,13\n"
                                                 "dfa-2node,all-to-all,16,1024,13\n"
                                                 "hgx-h100,all-gather,3,1024,OOM\n"
                                                 "single-gpu,all-gather,2,1024,1\n");

    /* Of 64 KiB: interpolated from 16 and 256 KiB, and from those and 1 MiB. */
    const double straight = 11.19 + (13.55 - 11.19) * 49152 / 245760;
    const double after = 13.55 - (17.08 - 13.55) * 196608 / 786432;

    ck_assert_uint_eq(cases->len, 8);
    run(paper, cases, NULL);
    check_predicted(cases, 0, 0, LH_CASE_FITTED, 13.14);
    check_predicted(cases, 1, 2, LH_CASE_JUDGED, straight + (after - straight) * 2 / 3);
    check_predicted(cases, 2, 0, LH_CASE_JUDGED, (13.14 + 13.55) / 2);
    check_case(cases, 3, LH_CASE_UNPREDICTED, NULL,
               "hgx-h100 has no measured time of this size to leave out");
    ck_assert_int_eq(((const LhPaperCase *)g_ptr_array_index(cases, 4))->state, LH_CASE_JUDGED);
    check_case(cases, 5, LH_CASE_UNPREDICTED, NULL,
               "dfa-2node has neither measured times nor fitted lines for all-to-all on 16 ranks");
    check_case(cases, 6, LH_CASE_UNPREDICTED, NULL,
               "one collective does not tell whether a run fits in memory");
    ck_assert_int_eq(((const LhPaperCase *)g_ptr_array_index(cases, 7))->state,
                     LH_CASE_UNPREDICTED);
}
END_TEST

START_TEST(collectives_that_are_broken_are_named)
{
    static const struct {
        const char *row, *message;
    } broken[] = {
        { "hgx-h100,gather,8,1,1", "\"collective\" is \"gather\"; allowed: all-gather, "
                                   "reduce-scatter, all-reduce, all-to-all, broadcast" },
        { "hgx-h100,all-gather,1,1,1", "\"ranks\" is \"1\"; allowed: 2 to 2147483647" },
        { "hgx-h100,all-gather,8,0,1", "\"bytes\" is \"0\"; allowed: 1 to 1125899906842624" },
        { "hgx-h100,all-gather,8,1.5,1", "\"bytes\" is \"1.5\"; allowed: 1 to 1125899906842624" },
        { "hgx-h100,all-gather,,4,1", "a collective needs the option \"ranks\"" },
    };
    g_autofree char *more = NULL;
    g_auto(GStrv) parts = g_strsplit(collective_text, "bytes=*", 2);

    more = g_strjoinv("bytes=*\", \"pass=fwd", parts);
    for (gsize i = 0; i <= G_N_ELEMENTS(broken); i++) {
        const bool last = i == G_N_ELEMENTS(broken);
        g_autoptr(LhPaper) paper = parse_paper(last ? more : collective_text);
        g_autofree char *text = g_strconcat(
            "on,op,n,b,us\n", last ? "hgx-h100,all-gather,8,4,1" : broken[i].row, "\n", NULL);
        g_autofree char *start = g_strconcat("dir/t.csv:2: error: ",
                                             last ? "a collective has no option \"pass\"; allowed: "
                                                    "cluster, ranks, collective, bytes, nccl"
                                                  : broken[i].message,
                                             NULL);
        g_autoptr(LhCsv) rows = parse_rows(text);
        g_autoptr(GError) error = NULL;

        ck_assert_msg(lh_paper_cases(paper, rows, &error) == NULL, "case %zu", i);
        ck_assert_msg(g_str_has_prefix(error->message, start), "%s", error->message);
    }
}
END_TEST

/* Predictions use the times of the given NCCL version if the cluster has them, else the default
 * ones. */
START_TEST(collectives_have_versions)
{
    g_auto(GStrv) parts = g_strsplit(collective_text, "[\"bytes=*\"] } ] }", 2);
    g_autofree char *text =
        g_strjoinv("[\"bytes=*\"] } ] }, { \"column\": \"nccl\", \"values\": [ { "
                   "\"value\": \"*\", \"set\": [\"nccl=*\"] } ] }",
                   parts);
    g_autoptr(LhPaper) paper = parse_paper(text);
    g_autoptr(GPtrArray) cases = cases_of(paper, "on,op,n,b,us,nccl\n"
                                                 "hgx-h100,all-gather,8,16384,13,2.23\n"
                                                 "hgx-h100,all-gather,8,16384,13,2.29.2\n"
                                                 "hgx-h100,all-gather,8,16384,13,2.30\n"
                                                 "hgx-h100,all-reduce,8,16384,13,2.23\n"
                                                 "hgx-h100,all-gather,8,65536,13,2.23\n"
                                                 "dfa-2node,all-gather,8,16384,13,2.23\n");

    run(paper, cases, NULL);
    check_predicted(cases, 0, 1, LH_CASE_JUDGED, 13.67);
    check_predicted(cases, 1, 1, LH_CASE_JUDGED, 11.19);
    check_predicted(cases, 2, 1, LH_CASE_JUDGED, 11.19);
    check_predicted(cases, 3, 1, LH_CASE_JUDGED, 16.69); /* of 2.27.3: 2.23 has no such row */
    check_predicted(cases, 4, 0, LH_CASE_FITTED, 16.73);
    ck_assert_int_eq(((const LhPaperCase *)g_ptr_array_index(cases, 6))->state, LH_CASE_JUDGED);
}
END_TEST

/* A module's time is that of its simulation; its rate is the flops of the mask over the time. */
START_TEST(modules_are_predicted)
{
    static const char text[] =
        "{ \"schema\": \"longhaul.paper/1\", \"name\": \"t\", \"description\": \"d\", \"source\": "
        "\"s\", \"base\": [\"cluster=hgx-h100:1\", \"ranks=4\", \"seq_length=16384\", "
        "\"num_attention_heads=8\", \"kv_channels=64\", \"mask=full\", \"micro_batch_size=2\"],\n"
        "\"columns\": [ { \"column\": \"s\", \"values\": [ { \"value\": \"*\", \"set\": "
        "[\"schedule=*\"] } ] } ],\n"
        "\"metrics\": [ { \"column\": \"a\", \"metric\": \"attention_s\" }, { \"column\": \"b\", "
        "\"metric\": \"iterations_per_s\" }, { \"column\": \"c\", \"metric\": \"tflops_per_gpu\" "
        "}, { \"column\": \"c\", \"metric\": \"tflops_per_gpu\", \"set\": [\"pass=fwd\"] }, { "
        "\"column\": \"b\", \"metric\": \"attention_s\", \"against\": [\"schedule=ulysses\"] }, { "
        "\"column\": \"d\", \"metric\": \"attention_s\" } ] }";
    g_autoptr(LhPaper) paper = parse_paper(text);
    g_autoptr(GPtrArray) cases =
        cases_of(paper, "s,a,b,c,d\nzigzag,1,1,1,OOM\nlasp,1,,,\nulysses,1,,,\n");
    double value[8];

    ck_assert_uint_eq(cases->len, 8);
    run(paper, cases, NULL);
    for (guint i = 0; i < 8; i++) {
        const LhPaperCase *c = g_ptr_array_index(cases, i);

        value[i] = c->predicted;
        ck_assert_int_eq(c->state, i == 5 || i == 6 ? LH_CASE_UNPREDICTED : LH_CASE_JUDGED);
        if (c->state == LH_CASE_JUDGED)
            ck_assert_double_eq(c->error, c->predicted - 1);
    }
    ck_assert_double_eq(value[1], 1 / value[0]);
    ck_assert_double_eq_tol(value[2], 14.0 * 16384 * 16384 * 2 * 8 * 64 / value[0] / 4 / 1e12,
                            1e-9 * value[2]);
    ck_assert_double_gt(value[3], value[2] / 3);
    ck_assert_double_lt(value[3], value[2] * 3);
    ck_assert_double_eq(value[4], value[7] / value[0]);
    check_case(cases, 5, LH_CASE_UNPREDICTED, NULL,
               "one module does not tell whether a run fits in memory");
}
END_TEST

/* Eight workers at one second a block, without communication: 36 blocks take 5 steps of 8
 * places. */
START_TEST(modules_are_taken_apart)
{
    static const char text[] =
        "{ \"schema\": \"longhaul.paper/1\", \"name\": \"t\", \"description\": \"d\", \"source\": "
        "\"s\", \"base\": [\"ranks=8\", \"pass=fwd\", \"schedule=dfa-balanced\"], "
        "\"columns\": [ { \"column\": \"cost\", \"values\": [ { \"value\": \"unit\", \"set\": "
        "[\"cost=unit\"] }, { \"value\": \"*\", \"set\": [\"cluster=*\", \"no_overlap\"] } ] } ], "
        "\"metrics\": [ { \"column\": \"a\", \"metric\": \"attention_s\" }, { \"column\": \"a\", "
        "\"metric\": \"compute_s\" }, { \"column\": \"a\", \"metric\": \"communication_s\" }, "
        "{ \"column\": \"a\", \"metric\": \"time_over_compute\" }, { \"column\": \"a\", "
        "\"metric\": \"idle_share\" } ] }";
    static const double unit[] = { 5, 5, 0, 1, 0.1 };
    g_autoptr(LhPaper) paper = parse_paper(text);
    g_autoptr(GPtrArray) cases = cases_of(paper, "cost,a\nunit,1\ndgx-a100-80g:1,1\n");
    double value[10];

    ck_assert_uint_eq(cases->len, 10);
    run(paper, cases, NULL);
    for (guint i = 0; i < 10; i++) {
        const LhPaperCase *c = g_ptr_array_index(cases, i);

        ck_assert_int_eq(c->state, LH_CASE_JUDGED);
        value[i] = c->predicted;
    }
    for (guint i = 0; i < 5; i++)
        ck_assert_double_eq_tol(value[i], unit[i], 1e-12);
    ck_assert_double_gt(value[7], 0);
    ck_assert_double_eq_tol(value[6] + value[7], value[5], 1e-12);
    ck_assert_double_eq_tol(value[8], value[5] / value[6], 1e-12);
    ck_assert(value[9] > value[7] / value[5] && value[9] < 1);
}
END_TEST

/* With recomputation a layer gathers and scatters activations 14 times; embedding, head and
 * their gradients four times in total. The model: twelve layers of width 768, 12 heads padded to
 * 16. */
START_TEST(steps_are_counted)
{
    static const char text[] =
        "{ \"schema\": \"longhaul.paper/1\", \"name\": \"t\", \"description\": \"d\", \"source\": "
        "\"s\", \"base\": [\"cluster=dgx-a100-80g:1\", \"model=gpt3-125m\", \"seq_length=8K\", "
        "\"tensor_model_parallel_size=all\", \"checkpoint=layer\", \"pad=heads\"], "
        "\"metrics\": [ { \"column\": \"a\", \"metric\": \"tensor_context_bytes\" }, "
        "{ \"column\": \"a\", \"metric\": \"heads_ratio\" }, { \"column\": \"b\", \"metric\": "
        "\"heads_ratio\" } ] }";
    const double tensor_bytes = 8192.0 * 768 * 2 * 7 / 8;
    g_autoptr(LhPaper) paper = parse_paper(text);
    g_autoptr(GPtrArray) cases = cases_of(paper, "a,b\n1,OOM\n");
    const LhPaperCase *bytes, *heads;

    run(paper, cases, NULL);
    bytes = g_ptr_array_index(cases, 0);
    heads = g_ptr_array_index(cases, 1);
    ck_assert_double_eq_tol(bytes->predicted, (12 * 14 + 4) * tensor_bytes,
                            0.01 * bytes->predicted);
    ck_assert_double_eq_tol(heads->predicted, 16.0 / 12, 1e-12);
    ck_assert_double_gt(heads->error_bar, 0);
    check_case(cases, 2, LH_CASE_UNPREDICTED, NULL,
               "the number of bytes sent does not tell whether a run fits in memory");
}
END_TEST

/* Setting a constant to the value in the case's files changes nothing; a slower value lengthens
 * the prediction. Together a module and a step of linear attention depend on every constant. */
START_TEST(constants_are_laid_over_files)
{
    static const struct {
        const char *base, *metric;
        double faster[LH_CONSTANTS]; /* a faster value / the value of the files; 0: the constant
                                      * is not used */
    } of[] = {
        { "\"cluster=dfa-2node:2\", \"seq_length=64K\", \"schedule=zigzag\"",
          "attention_s",
          { [LH_CONSTANT_ATTENTION_SLOWDOWN] = 0.98, [LH_CONSTANT_NIC_BANDWIDTH] = 1.5 } },
        { "\"cluster=lasp-dgx:2\", \"model=tnl-1b-pile\", \"framework=fairscale\", "
          "\"schedule=lasp\", \"seq_length=64K\", \"shard=fsdp\"",
          "iteration_s",
          { [LH_CONSTANT_PRODUCT_SLOWDOWN] = 1 / 1.2,
            [LH_CONSTANT_LINEAR_EFFICIENCY] = 1.2,
            [LH_CONSTANT_MATRIX_EFFICIENCY] = 1.1,
            [LH_CONSTANT_MEMORY_EFFICIENCY] = 1.1,
            [LH_CONSTANT_NVLINK_BANDWIDTH] = 1.5,
            [LH_CONSTANT_NIC_BANDWIDTH] = 1.5,
            [LH_CONSTANT_COLLECTIVE_BANDWIDTH] = 1.5,
            [LH_CONSTANT_FSDP_OVERHEAD] = 0.5 } },
    };

    for (gsize k = 0; k < G_N_ELEMENTS(of); k++) {
        g_autofree char *text = g_strdup_printf(
            "{ \"schema\": \"longhaul.paper/1\", \"name\": \"t\", \"description\": \"d\", "
            "\"source\": \"s\", \"base\": [%s],\n\"metrics\": [ { \"column\": \"a\", "
            "\"metric\": \"%s\" } ] }",
            of[k].base, of[k].metric);
        g_autoptr(LhPaper) paper = parse_paper(text);
        g_autoptr(GPtrArray) cases = cases_of(paper, "a\n1\n");
        const LhPaperCase *c = g_ptr_array_index(cases, 0);
        g_autoptr(LhScenario) scenario = lh_paper_options_scenario(c->options, NULL);
        g_autoptr(LhSetup) setup = lh_setup_new(scenario, NULL);
        g_autoptr(LhFramework) framework = lh_framework_load("fairscale", NULL);
        double plain;

        ck_assert_ptr_nonnull(setup);
        run(paper, cases, NULL);
        plain = c->predicted;
        ck_assert_double_gt(plain, 0);
        for (int i = 0; i < LH_CONSTANTS; i++) {
            const double of_files =
                lh_constant_value((LhConstant)i, setup->device, setup->topology, framework);
            const double by = of[k].faster[i];
            LhConstants constants = { 0 };

            constants.value[i] = of_files;
            run(paper, cases, &constants);
            ck_assert_msg(c->predicted == plain, "%s: %.17g is not %.17g", lh_constant_names[i],
                          c->predicted, plain);
            constants.value[i] = of_files * (by > 0 ? 1 / by : 1);
            run(paper, cases, &constants);
            ck_assert_msg(by == 0 || c->predicted > plain, "%s", lh_constant_names[i]);
        }
    }
}
END_TEST

/* The longest sequence fits; the next longer one, by granularity or by doubling, does not. */
START_TEST(longest_sequences_are_found)
{
    static const char text[] =
        "{ \"schema\": \"longhaul.paper/1\", \"name\": \"t\", \"description\": \"d\", \"source\": "
        "\"s\", \"base\": [\"cluster=hgx-h100:1\", \"ranks=2\", \"model=tnl-1b-pile\", "
        "\"schedule=lasp\", \"shard=fsdp\"],\n"
        "\"columns\": [ { \"column\": \"n\", \"values\": [ { \"value\": \"*\", \"set\": "
        "[\"seq_length=*\"] } ] } ],\n"
        "\"metrics\": [ { \"column\": \"a\", \"metric\": \"longest_tokens\" }, { \"column\": "
        "\"b\", "
        "\"metric\": \"longest_tokens\", \"granularity\": 4096 }, { \"column\": \"c\", "
        "\"metric\": \"peak_gib\" } ] }";
    g_autoptr(LhPaper) paper = parse_paper(text);
    g_autoptr(GPtrArray) cases = cases_of(paper, "n,a,b,c\n4K,1,1,1\n");
    const LhPaperCase *power = g_ptr_array_index(cases, 0);
    const LhPaperCase *fine = g_ptr_array_index(cases, 1);
    double found[2];

    run(paper, cases, NULL);
    found[0] = power->predicted;
    found[1] = fine->predicted;
    ck_assert_double_ge(found[0], 4096);
    ck_assert_double_ge(found[1], found[0]);
    ck_assert_double_lt(found[1], 2 * found[0]);
    for (int i = 0; i < 4; i++) {
        const double n = i == 0   ? found[0]
                         : i == 1 ? 2 * found[0]
                         : i == 2 ? found[1]
                                  : found[1] + 4096;
        g_autofree char *rows = g_strdup_printf("n,a,b,c\n%.0f,,,1\n", n);
        g_autoptr(GPtrArray) one = cases_of(paper, rows);
        const LhPaperCase *c = g_ptr_array_index(one, 0);

        run(paper, one, NULL);
        ck_assert_msg(c->predicted_fits == (i % 2 == 0), "%.0f tokens", n);
    }
}
END_TEST

/* Each pipeline stage has its own peak memory; the step's peak is the largest of them. */
START_TEST(memory_is_of_one_gpu_or_of_the_fullest)
{
    static const char text[] =
        "{ \"schema\": \"longhaul.paper/1\", \"name\": \"t\", \"description\": \"d\", "
        "\"source\": \"s\", \"base\": [\"cluster=dgx-a100-80g:1\", \"ranks=4\", "
        "\"model=gpt3-125m\", \"schedule=ring\", \"seq_length=1K\", "
        "\"context_parallel_size=1\", \"data_parallel_size=2\", "
        "\"pipeline_model_parallel_size=2\", \"num_micro_batches=2\"], \"metrics\": [ "
        "{ \"column\": \"one\", \"metric\": \"peak_gib\", \"gpu\": \"{2*stage+place-2}\" }, "
        "{ \"column\": \"all\", \"metric\": \"peak_gib\" } ] }";
    static const char rows[] = "stage,place,one,all\n1,1,1,1\n1,2,1,\n2,1,1,\n2,2,1,\n2,3,1,\n";
    g_autoptr(LhPaper) paper = parse_paper(text);
    g_autoptr(GPtrArray) cases = cases_of(paper, rows);
    const LhPaperCase *c[6];

    ck_assert_uint_eq(cases->len, 6);
    run(paper, cases, NULL);
    for (guint i = 0; i < 6; i++)
        c[i] = g_ptr_array_index(cases, i);
    ck_assert_double_eq(c[0]->predicted, c[2]->predicted); /* of one stage */
    ck_assert_double_eq(c[3]->predicted, c[4]->predicted);
    ck_assert_double_ne(c[0]->predicted, c[3]->predicted);
    ck_assert_double_eq(c[1]->predicted, fmax(c[0]->predicted, c[3]->predicted));
    ck_assert_int_eq(c[5]->state, LH_CASE_UNPREDICTED);
    ck_assert_str_eq(c[5]->reason, "the step has no such GPU");
}
END_TEST

/* --- summaries ----------------------------------------------------------------------------------
 */

/* Writes a table and its description into a new folder. Caller frees the returned path. */
static char *
write_table(const char *paper, const char *rows)
{
    g_autoptr(GError) error = NULL;
    char *folder = g_dir_make_tmp("longhaul-paper-XXXXXX", &error);
    g_autofree char *json = g_build_filename(folder, "t.json", NULL);
    g_autofree char *csv = g_build_filename(folder, "t.csv", NULL);

    ck_assert_ptr_nonnull(folder);
    ck_assert(g_file_set_contents(json, paper, -1, NULL));
    ck_assert(g_file_set_contents(csv, rows, -1, NULL));
    return folder;
}

static void
remove_table(const char *folder)
{
    g_autofree char *json = g_build_filename(folder, "t.json", NULL);
    g_autofree char *csv = g_build_filename(folder, "t.csv", NULL);

    ck_assert_int_eq(remove(json) + remove(csv) + remove(folder), 0);
}

static GPtrArray *
reproduce_with(const char *folder, LhReproduceParams params)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(GPtrArray) names = g_ptr_array_new_with_free_func(g_free);
    GPtrArray *tables;

    g_ptr_array_add(names, g_build_filename(folder, "t.json", NULL));
    params.names = names;
    tables = lh_reproduce(&params, &error);
    ck_assert_msg(tables != NULL, "%s", error != NULL ? error->message : "no message");
    return tables;
}

static GPtrArray *
reproduce(const char *folder, bool fit)
{
    return reproduce_with(folder, (LhReproduceParams){ .fit = fit });
}

static GPtrArray *
cross_fit(const char *folder)
{
    return reproduce_with(folder, (LhReproduceParams){ .cross_fit = true });
}

/* --- a user's own rows in tables that longhaul knows
 * -------------------------------------------- */

/* A table: its columns, and rows whose last cell is the published value. */
typedef struct {
    const char *name, *header;
    const char *rows[2];
    const char *after; /* cells after the published one */
    guint pairs;
} OwnRows;

static const OwnRows own_rows[] = {
    /* Modules; two of them are a pair. */
    { .name = "usp_attention",
      .header = "gpu,gpus,pass,batch,seq_total,q_heads,kv_heads,head_dim,dtype,mask,ulysses_degree,"
                "ring_degree,ring_type,qkv,published_it_per_s",
      .rows = { "a100-sxm-80g nvlink,8,fwd,1,24576,16,16,128,bf16,causal,8,1,basic,x,",
                "a100-sxm-80g nvlink,8,fwd,1,24576,16,16,128,bf16,causal,1,8,zigzag,x," },
      .after = "",
      .pairs = 1 },
    /* Steps. */
    { .name = "lightseq_table3_checkpointing",
      .header = "cluster,gpus,model,seq_per_gpu,hf_checkpointing_s,remat_aware_s",
      .rows = { "1x8,8,llama-7b,5120,,", "1x8,8,llama-7b,6144,," },
      .after = "" },
    /* Kernels. */
    { .name = "attention_kernels",
      .header = "gpu,framework,kernel,batch,seq,q_heads,kv_heads,head_dim,dtype,time_ms,tflops",
      .rows = { "NVIDIA H100 80GB HBM3,sglang,fa3,3,5000,24,8,128,bf16,",
                "NVIDIA H100 80GB HBM3,sglang,fa3,3,7000,24,8,128,bf16," },
      .after = ",1" },
    /* Collectives: sizes between the measured ones, and a GPU for which no other file is edited. */
    { .name = "nccl_tests",
      .header = "gpu,op,num_gpus,nccl_version,size_bytes_nccl_tests,time_us,algbw_gb_s",
      .rows = { "NVIDIA GB200,all_gather,4,2.23,2097152,",
                "NVIDIA GB200,alltoall,2,2.23,8388608," },
      .after = ",1" },
};

/* Reproduces the table with these published values of its two rows, from the file or its folder. */
static GPtrArray *
reproduce_own(const OwnRows *own, double first, double second, bool by_folder)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(GPtrArray) names = g_ptr_array_new();
    g_autofree char *folder = g_dir_make_tmp("longhaul-rows-XXXXXX", NULL);
    g_autofree char *file = g_strconcat(own->name, ".csv", NULL);
    g_autofree char *path = g_build_filename(folder, by_folder ? file : "own.csv", NULL);
    g_autofree char *text = g_strdup_printf("%s\n%s%.17g%s\n%s%.17g%s\n", own->header, own->rows[0],
                                            first, own->after, own->rows[1], second, own->after);
    const LhReproduceParams params = { .names = by_folder ? NULL : names,
                                       .folder = by_folder ? folder : path };
    GPtrArray *tables;

    g_ptr_array_add(names, (char *)own->name);
    ck_assert(g_file_set_contents(path, text, -1, NULL));
    tables = lh_reproduce(&params, &error);
    ck_assert_msg(tables != NULL, "%s", error != NULL ? error->message : "no message");
    ck_assert_uint_eq(tables->len, 1);
    ck_assert_int_eq(remove(path) + remove(folder), 0);
    return tables;
}

/* The predictions of both rows, in the unit of their column. */
static void
predictions(const GPtrArray *tables, double predicted[2])
{
    const LhReproducedTable *table = g_ptr_array_index(tables, 0);

    predicted[0] = predicted[1] = 0;
    for (guint i = 0; i < table->cases->len; i++) {
        const LhPaperCase *c = g_ptr_array_index(table->cases, i);

        if (c->state == LH_CASE_JUDGED)
            predicted[c->line - 2] =
                c->predicted / g_array_index(table->paper->metrics, LhPaperMetric, c->metric).scale;
    }
}

/* For every kind of table: the published value is read, and the relative error is that of the
 * prediction to it. */
START_TEST(rows_of_ones_own_are_judged)
{
    for (gsize i = 0; i < G_N_ELEMENTS(own_rows); i++) {
        const OwnRows *own = &own_rows[i];
        g_autoptr(GPtrArray) guess = reproduce_own(own, 1, 1, true);
        g_autoptr(GPtrArray) tables = NULL, swapped = NULL;
        const LhPaperSummary *all;
        double predicted[2];

        predictions(guess, predicted);
        ck_assert_msg(predicted[0] > 0 && predicted[1] > 0 && predicted[0] != predicted[1],
                      "%s: %g, %g", own->name, predicted[0], predicted[1]);
        tables = reproduce_own(own, predicted[0] * 1.25, predicted[1] * 2, false);
        all = &((const LhReproducedTable *)g_ptr_array_index(tables, 0))->all;
        ck_assert_msg(all->judged == 2, "%s: %u", own->name, all->judged);
        ck_assert_double_eq_tol(all->mean_abs_error, (0.2 + 0.5) / 2, 1e-9);
        ck_assert_double_eq_tol(all->worst_abs_error, 0.5, 1e-9);
        ck_assert_double_eq_tol(all->bias, -(0.2 + 0.5) / 2, 1e-9);
        swapped = reproduce_own(own, predicted[1], predicted[0], true);
        all = &((const LhReproducedTable *)g_ptr_array_index(swapped, 0))->all;
        ck_assert_uint_eq(all->pairs, own->pairs);
        ck_assert_uint_eq(all->pairs_in_order, 0);
    }
}
END_TEST

/* Errors name file, line and column of a broken row, for every kind of table. */
START_TEST(broken_rows_of_ones_own_are_named)
{
    static const char *const columns[] = { "published_it_per_s", "remat_aware_s", "time_ms",
                                           "time_us" };

    for (gsize i = 0; i < G_N_ELEMENTS(own_rows); i++) {
        const OwnRows *own = &own_rows[i];
        g_autoptr(GError) error = NULL, missing = NULL;
        g_autoptr(GPtrArray) names = g_ptr_array_new();
        g_autofree char *folder = g_dir_make_tmp("longhaul-rows-XXXXXX", NULL);
        g_autofree char *path = g_build_filename(folder, "own.csv", NULL);
        g_autofree char *text = g_strdup_printf("%s\n%s1%s\n%sfast%s\n", own->header, own->rows[0],
                                                own->after, own->rows[1], own->after);
        g_autofree char *message =
            g_strdup_printf("%s:3: error: \"fast\" in column \"%s\" is not a published value; "
                            "allowed: a number above 0, OOM, or nothing",
                            path, columns[i]);
        g_autofree char *absent = g_strdup_printf("%s: error: no column \"", path);
        const LhReproduceParams params = { .names = names, .folder = path };

        g_ptr_array_add(names, (char *)own->name);
        ck_assert(g_file_set_contents(path, text, -1, NULL));
        ck_assert_ptr_null(lh_reproduce(&params, &error));
        ck_assert_str_eq(error->message, message);
        ck_assert(g_file_set_contents(path, "gpu\nx\n", -1, NULL));
        ck_assert_ptr_null(lh_reproduce(&params, &missing));
        ck_assert_msg(g_str_has_prefix(missing->message, absent), "%s", missing->message);
        ck_assert_int_eq(remove(path) + remove(folder), 0);
    }
}
END_TEST

#define FITTED_PAPER                                                                               \
    "{ \"schema\": \"longhaul.paper/1\", \"name\": \"t\", \"description\": \"d\", \"source\": "    \
    "\"s\", \"base\": [\"cluster=dfa-2node:2\", \"schedule=ring\", \"ranks=1\"],\n"                \
    "\"columns\": [ { \"column\": \"n\", \"values\": [ { \"value\": \"*\", \"set\": "              \
    "[\"seq_length=*\"] } ] } ],\n"                                                                \
    "\"metrics\": [ { \"column\": \"a\", \"metric\": \"attention_s\" } ],\n"                       \
    "\"fitted_on\": [ { \"where\": [\"n=16K\"] } ], \"constants\": [\"attention_slowdown\"],\n"    \
    "\"tolerance\": { \"mean\": 0.1, \"worst\": 0.2 } }"

/* Errors of 10 % and -30 %, and a fitted case: mean 20, worst 30, bias -10, outside the bounds. */
START_TEST(summaries_are_right)
{
    g_autofree char *folder = write_table(FITTED_PAPER, "n,a\n8K,1\n32K,1\n16K,1\n");
    g_autoptr(GPtrArray) first = reproduce(folder, false);
    const LhReproducedTable *table = g_ptr_array_index(first, 0);
    const double at[] = { ((const LhPaperCase *)table->cases->pdata[0])->predicted,
                          ((const LhPaperCase *)table->cases->pdata[1])->predicted };
    g_autofree char *rows =
        g_strdup_printf("n,a\n8K,%.17g\n32K,%.17g\n16K,1\n", at[0] / 1.1, at[1] / 0.7);
    g_autofree char *second_folder = write_table(FITTED_PAPER, rows);
    g_autoptr(GPtrArray) second = reproduce(second_folder, false);
    g_autoptr(GString) bars = g_string_new(NULL);

    table = g_ptr_array_index(second, 0);
    ck_assert_uint_eq(lh_csv_rows(table->csv), 3);
    ck_assert_uint_eq(table->all.cases, 3);
    ck_assert_uint_eq(table->all.judged, 2);
    ck_assert_uint_eq(table->all.fitted, 1);
    ck_assert_double_eq_tol(table->all.mean_abs_error, 0.2, 1e-9);
    ck_assert_double_eq_tol(table->all.worst_abs_error, 0.3, 1e-9);
    ck_assert_double_eq_tol(table->all.bias, -0.1, 1e-9);
    ck_assert(table->all.beyond);
    ck_assert(!lh_reproduced_within(second));
    ck_assert_uint_eq(table->all.within_bars, 1);
    lh_describe_error_bars(second, bars);
    ck_assert_str_eq(bars->str, "1 of 2 judged values are within the error bars of their "
                                "predictions (50 %; expected 70 to 90 %).\n");
    ck_assert(!lh_reproduced_bars_hold(1, 2) && lh_reproduced_bars_hold(7, 10));
    ck_assert(lh_reproduced_bars_hold(9, 10) && !lh_reproduced_bars_hold(91, 100));
    remove_table(folder);
    remove_table(second_folder);
}
END_TEST

#define CLAIMS_PAPER                                                                               \
    "{ \"schema\": \"longhaul.paper/1\", \"name\": \"t\", \"description\": \"d\", \"source\": "    \
    "\"s\", \"base\": [\"cluster=dgx-a100-80g:1\", \"schedule=zigzag\"],\n"                        \
    "\"columns\": [ { \"column\": \"n\", \"values\": [ { \"value\": \"*\", \"set\": "              \
    "[\"seq_length=*\"] }, { \"value\": \"\" } ] }, { \"column\": \"s\", \"values\": [ { "         \
    "\"value\": \"all\", \"each\": [ { \"set\": [\"seq_length=32K\"] }, { \"set\": "               \
    "[\"seq_length=128K\"] }, { \"set\": [\"seq_length=64K\"] } ] } ] } ],\n"                      \
    "\"metrics\": [ { \"column\": \"c\", \"cell\": \"at least *\", \"metric\": \"attention_s\", "  \
    "\"at_least\": true, \"against\": [\"schedule=ring\"], \"tolerance\": { \"worst\": 0.1 } }, "  \
    "{ \"column\": \"c\", \"cell\": \"up to *\", \"metric\": \"attention_s\", \"up_to\": true }, " \
    "{ \"column\": \"c\", \"cell\": \"faster\", \"metric\": \"attention_s\", \"number\": 1, "      \
    "\"at_least\": true, \"against\": [\"schedule=ring\"] } ]%s }"

/* A table of claims. Caller frees it and removes its folder. */
static GPtrArray *
reproduce_claim(const char *claim, const char *more, bool fit)
{
    g_autofree char *paper = g_strdup_printf(CLAIMS_PAPER, more);
    g_autofree char *rows = g_strdup_printf("n,s,c\n1K,all,%s\n", claim);
    g_autofree char *folder = write_table(paper, rows);
    GPtrArray *tables = reproduce(folder, fit);

    remove_table(folder);
    return tables;
}

static const LhReproducedTable *
only_table(const GPtrArray *tables)
{
    return g_ptr_array_index(tables, 0);
}

/* Each case meets a bound or not; summaries have no error of bounds. A bound may be missed by
 * the tolerance. */
START_TEST(bounds_hold_or_do_not)
{
    g_autoptr(GPtrArray) words = reproduce_claim("faster", "", false);
    const LhPaperSummary *all = &only_table(words)->all;
    double least = INFINITY, most = 0;

    ck_assert_uint_eq(all->cases, 3);
    ck_assert(all->judged == 0 && all->bounds == 3 && all->bounds_held == 3 && !all->beyond);
    ck_assert_double_eq(all->worst_missed, 0);
    ck_assert_double_eq(all->worst_abs_error, 0);
    for (guint i = 0; i < 3; i++) {
        const LhPaperCase *c = g_ptr_array_index(only_table(words)->cases, i);

        ck_assert_double_eq(c->published, 1);
        ck_assert_double_eq(c->error, c->predicted - 1);
        least = fmin(least, c->predicted);
        most = fmax(most, c->predicted);
    }
    ck_assert_double_gt(least, 1);
    ck_assert_double_lt(least, most);
    for (int i = 0; i < 4; i++) {
        const double claimed[] = { least, nextafter(least, 2 * least), least * 1.09, most * 1.2 };
        const guint held[] = { 3, 2, most < least * 1.09 ? 0 : 1, 0 };
        g_autofree char *claim = g_strdup_printf("at least %.17g", claimed[i]);
        g_autoptr(GPtrArray) tables = reproduce_claim(claim, "", false);

        all = &only_table(tables)->all;
        ck_assert_uint_eq(all->bounds, 3);
        ck_assert_msg(i == 2 ? all->bounds_held < 3 : all->bounds_held == held[i], "%d: %u", i,
                      all->bounds_held);
        ck_assert_double_eq_tol(all->worst_missed, fmax(0, 1 - least / claimed[i]), 1e-12);
        ck_assert(all->judged == 0 && all->within_bars == 0 && all->pairs == 0);
        ck_assert(all->beyond == (i == 3));
    }
}
END_TEST

/* Of the cases of "up to" the greatest is judged, regardless of order and repetition; the output
 * distinguishes bounds from numbers. */
START_TEST(up_to_is_the_greatest)
{
    static const char fitted[] =
        ", \"fitted_on\": [ { \"where\": [\"s=all\"] } ], \"constants\": [\"attention_slowdown\"]";
    g_autoptr(GPtrArray) tables = reproduce_claim("up to 0.5", "", false);
    g_autoptr(GPtrArray) fit = reproduce_claim("up to 0.5", fitted, true);
    const LhReproducedTable *table = only_table(tables);
    const LhPaperCase *greatest = g_ptr_array_index(table->cases, 1);
    g_autoptr(GString) csv = g_string_new(NULL);
    g_autoptr(LhTable) text = lh_reproduced_cases(table);

    ck_assert_uint_eq(table->all.cases, 3);
    ck_assert(table->all.judged == 1 && table->all.bounds == 0);
    ck_assert_double_eq(table->all.worst_abs_error, fabs(greatest->predicted / 0.5 - 1));
    ck_assert(lh_paper_run(table->paper, table->cases, NULL, 1, NULL));
    for (guint i = 0; i < 3; i++) {
        const LhPaperCase *c = g_ptr_array_index(table->cases, i);

        ck_assert_double_gt(c->predicted, 0);
        ck_assert_int_eq(c->state, i == 1 ? LH_CASE_JUDGED : LH_CASE_LESS);
        c = g_ptr_array_index(only_table(fit)->cases, i);
        ck_assert_int_eq(c->state, i == 1 ? LH_CASE_FITTED : LH_CASE_LESS);
    }
    greatest = g_ptr_array_index(only_table(fit)->cases, 1);
    ck_assert_double_eq_tol(greatest->predicted, 0.5, 0.02);
    lh_table_print(text, LH_FORMAT_CSV, csv);
    ck_assert_ptr_nonnull(strstr(csv->str, "not the greatest"));
}
END_TEST

/* The fit ignores a bound that holds; one that does not pulls the constants. */
START_TEST(bounds_are_fitted_until_they_hold)
{
    static const char fitted[] =
        ", \"fitted_on\": [ { \"where\": [\"s=all\"] } ], \"constants\": [\"attention_slowdown\"]";
    g_autoptr(GPtrArray) held = reproduce_claim("at least 0.01", fitted, true);
    const LhFittedConstant *c = &g_array_index(only_table(held)->constants, LhFittedConstant, 0);

    ck_assert_double_eq(c->fitted, c->value);
}
END_TEST

#define PAIRS_PAPER                                                                                \
    "{ \"schema\": \"longhaul.paper/1\", \"name\": \"t\", \"description\": \"d\", \"source\": "    \
    "\"s\", \"base\": [\"cluster=dgx-a100-80g:1\"],\n"                                             \
    "\"columns\": [ { \"column\": \"n\", \"values\": [ { \"value\": \"*\", \"set\": "              \
    "[\"seq_length=*\"] } ] }, { \"column\": \"s\", \"values\": [ { \"value\": \"*\", \"set\": "   \
    "[\"schedule=*\"] } ] } ],\n"                                                                  \
    "\"metrics\": [ { \"column\": \"a\", \"metric\": \"attention_s\", \"tolerance\": "             \
    "{ \"pairs\": 0.6 } }, { \"column\": \"b\", \"metric\": \"attention_s\" } ] }"

/*
 * Pairs have the same length and column, and published values more than 2 % apart. At the same
 * length a zigzag ring is faster than a plain one; a schedule is no pair with itself.
 */
START_TEST(pairs_are_of_one_question)
{
    static const struct {
        const char *rows;
        guint pairs, in_order;
        bool beyond; /* less than 0.6 times those of a */
    } known[] = {
        { "n,s,a,b\n32K,ring,2,\n32K,zigzag,1,\n", 1, 1, false },
        { "n,s,a,b\n32K,ring,1,\n32K,zigzag,2,\n", 1, 0, true },
        { "n,s,a,b\n32K,ring,1.019,\n32K,zigzag,1,\n", 0, 0, false },
        { "n,s,a,b\n32K,ring,1.03,\n32K,zigzag,1,\n", 1, 1, false },
        { "n,s,a,b\n32K,ring,2,\n64K,zigzag,1,\n", 0, 0, false },
        { "n,s,a,b\n32K,ring,2,\n32K,ring,1,\n", 0, 0, false },
        { "n,s,a,b\n32K,ring,2,\n32K,zigzag,,1\n", 0, 0, false },
        { "n,s,a,b\n32K,ring,2,2\n32K,zigzag,1,3\n", 2, 1, false },
        { "n,s,a,b\n32K,ring,2,\n32K,zigzag,1,\n32K,ring,3,\n64K,ring,9,\n64K,zigzag,8,\n", 3, 3,
          false },
    };

    for (gsize i = 0; i < G_N_ELEMENTS(known); i++) {
        g_autofree char *folder = write_table(PAIRS_PAPER, known[i].rows);
        g_autoptr(GPtrArray) tables = reproduce(folder, false);
        const LhReproducedTable *table = g_ptr_array_index(tables, 0);
        const LhPaperSummary *a = &g_array_index(table->metrics, LhPaperSummary, 0),
                             *b = &g_array_index(table->metrics, LhPaperSummary, 1);

        ck_assert_msg(table->all.pairs == known[i].pairs &&
                          table->all.pairs_in_order == known[i].in_order,
                      "case %zu: %u of %u", i, table->all.pairs_in_order, table->all.pairs);
        ck_assert_uint_eq(a->pairs + b->pairs, known[i].pairs);
        ck_assert_uint_eq(a->pairs_in_order + b->pairs_in_order, known[i].in_order);
        ck_assert(a->beyond == known[i].beyond && !b->beyond);
        ck_assert(table->all.beyond == known[i].beyond);
        remove_table(folder);
    }
}
END_TEST

#define GROUPED_PAPER                                                                              \
    "{ \"schema\": \"longhaul.paper/1\", \"name\": \"t\", \"description\": \"d\", \"source\": "    \
    "\"s\", \"base\": [\"cluster=dfa-2node:2\", \"schedule=ring\", \"ranks=1\", "                  \
    "\"seq_length=8K\"],\n"                                                                        \
    "\"metrics\": [ { \"column\": \"a\", \"metric\": \"attention_s\" } ],\n"                       \
    "\"groups\": [\"g\", \"h\"], \"group_tolerance\": { \"mean\": 0.2 } }"

/* One group is right; the other is predicted twice too fast. It is outside its tolerance, and so
 * is the table. */
START_TEST(groups_are_summed_up)
{
    g_autofree char *folder = write_table(GROUPED_PAPER, "g,h,a\nx,1,1\n");
    g_autoptr(GPtrArray) first = reproduce(folder, false);
    const LhReproducedTable *table = g_ptr_array_index(first, 0);
    const double predicted = ((const LhPaperCase *)table->cases->pdata[0])->predicted;
    g_autofree char *rows = g_strdup_printf("g,h,a\nx,1,%.17g\ny,1,%.17g\nx,1,%.17g\ny,1,%.17g\n",
                                            predicted, 2 * predicted, predicted, 2 * predicted);
    g_autofree char *second_folder = write_table(GROUPED_PAPER, rows);
    g_autoptr(GPtrArray) second = reproduce(second_folder, false);
    const LhPaperGroup *groups;

    table = g_ptr_array_index(second, 0);
    ck_assert_uint_eq(table->groups->len, 2);
    groups = (const LhPaperGroup *)(const void *)table->groups->data;
    ck_assert_str_eq(groups[0].name, "x, 1");
    ck_assert_str_eq(groups[1].name, "y, 1");
    ck_assert_uint_eq(groups[0].summary.judged, 2);
    ck_assert_double_eq_tol(groups[0].summary.mean_abs_error, 0, 1e-9);
    ck_assert_double_eq_tol(groups[1].summary.mean_abs_error, 0.5, 1e-9);
    ck_assert(!groups[0].summary.beyond && groups[1].summary.beyond);
    ck_assert(table->all.beyond);
    remove_table(folder);
    remove_table(second_folder);
}
END_TEST

/* Rows of FITTED_PAPER, of which the first is used for the fit: the predicted times multiplied
 * by @first and @second. Caller frees. */
static char *
slower_rows(double first, double second)
{
    g_autofree char *folder = write_table(FITTED_PAPER, "n,a\n16K,1\n64K,1\n");
    g_autoptr(GPtrArray) tables = reproduce(folder, false);
    const LhReproducedTable *table = g_ptr_array_index(tables, 0);
    const LhPaperCase *cases[] = { g_ptr_array_index(table->cases, 0),
                                   g_ptr_array_index(table->cases, 1) };

    ck_assert_int_eq(cases[0]->state, LH_CASE_FITTED);
    ck_assert_int_eq(cases[1]->state, LH_CASE_JUDGED);
    remove_table(folder);
    return g_strdup_printf("n,a\n16K,%.17g\n64K,%.17g\n", cases[0]->predicted * first,
                           cases[1]->predicted * second);
}

/* The fit recovers a slowdown of 1.25. */
START_TEST(constants_are_fitted)
{
    g_autofree char *rows = slower_rows(1.25, 1.25);
    g_autofree char *folder = write_table(FITTED_PAPER, rows);
    g_autoptr(GPtrArray) tables = reproduce(folder, true);
    const LhReproducedTable *table = g_ptr_array_index(tables, 0);
    const LhFittedConstant *constant;

    ck_assert_uint_eq(table->constants->len, 1);
    constant = &g_array_index(table->constants, LhFittedConstant, 0);
    ck_assert_int_eq(constant->constant, LH_CONSTANT_ATTENTION_SLOWDOWN);
    ck_assert_double_eq(constant->value, 1.043);
    ck_assert_double_eq_tol(constant->fitted, 1.043 * 1.25, 0.005);
    ck_assert_double_lt(table->all.worst_abs_error, 0.005);
    remove_table(folder);
}
END_TEST

#define TWO_FITTED_PAPER                                                                           \
    "{ \"schema\": \"longhaul.paper/1\", \"name\": \"t\", \"description\": \"d\", \"source\": "    \
    "\"s\", \"base\": [\"cluster=dfa-2node:1\", \"model=gpt3-125m\", \"step\", "                   \
    "\"schedule=ring\", "                                                                          \
    "\"ranks=8\"], \"columns\": [ { \"column\": \"n\", \"values\": [ { \"value\": \"*\", "         \
    "\"set\": "                                                                                    \
    "[\"seq_length=*\"] } ] } ],\n"                                                                \
    "\"metrics\": [ { \"column\": \"a\", \"metric\": \"iteration_s\" } ],\n"                       \
    "\"fitted_on\": [ { \"where\": [\"n=*\"] } ], "                                                \
    "\"constants\": [\"attention_slowdown\", \"product_slowdown\"] }"

/* Fits two constants at once: short sequences determine one, long ones the other. */
START_TEST(constants_are_fitted_together)
{
    static const char *const lengths[] = { "16K", "64K", "256K" };
    LhConstants slower = { 0 };
    g_autofree char *folder = write_table(TWO_FITTED_PAPER, "n,a\n16K,1\n64K,1\n256K,1\n");
    g_autoptr(GPtrArray) first = reproduce(folder, false);
    const LhReproducedTable *table = g_ptr_array_index(first, 0);
    g_autoptr(GString) rows = g_string_new("n,a\n");
    g_autoptr(GPtrArray) fitted = NULL;
    g_autofree char *second_folder = NULL;

    slower.value[LH_CONSTANT_ATTENTION_SLOWDOWN] = 2.5;
    slower.value[LH_CONSTANT_PRODUCT_SLOWDOWN] = 1.4;
    ck_assert(lh_paper_run(table->paper, table->cases, &slower, 1, NULL));
    for (guint i = 0; i < G_N_ELEMENTS(lengths); i++) {
        const LhPaperCase *c = g_ptr_array_index(table->cases, i);

        ck_assert_msg(c->predicted > 0, "%s", c->reason != NULL ? c->reason : "");
        g_string_append_printf(rows, "%s,%.17g\n", lengths[i], c->predicted);
    }
    second_folder = write_table(TWO_FITTED_PAPER, rows->str);
    fitted = reproduce(second_folder, true);
    table = g_ptr_array_index(fitted, 0);
    for (guint i = 0; i < table->constants->len; i++) {
        const LhFittedConstant *c = &g_array_index(table->constants, LhFittedConstant, i);

        ck_assert_double_eq_tol(c->fitted, slower.value[c->constant], 0.02);
    }
    ck_assert_uint_eq(table->constants->len, 2);
    remove_table(folder);
    remove_table(second_folder);
}
END_TEST

/* A constant whose optimum is outside its range ends at the limit, and the other is still
 * fitted. Here kernels are faster than the device's, whose slowdown is 1, the least that files
 * allow. */
START_TEST(constants_stay_in_their_range)
{
    g_autofree char *folder = write_table(TWO_FITTED_PAPER, "n,a\n16K,1\n64K,1\n256K,1\n");
    g_autoptr(GPtrArray) first = reproduce(folder, false);
    const LhReproducedTable *table = g_ptr_array_index(first, 0);
    g_autoptr(GString) rows = g_string_new("n,a\n");
    static const char *const lengths[] = { "16K", "64K", "256K" };
    LhConstants least = { 0 };
    g_autoptr(GPtrArray) fitted = NULL;
    g_autofree char *second_folder = NULL;

    least.value[LH_CONSTANT_ATTENTION_SLOWDOWN] = 1;
    least.value[LH_CONSTANT_PRODUCT_SLOWDOWN] = 1;
    ck_assert(lh_paper_run(table->paper, table->cases, &least, 1, NULL));
    for (guint i = 0; i < G_N_ELEMENTS(lengths); i++) {
        const LhPaperCase *c = g_ptr_array_index(table->cases, i);

        g_string_append_printf(rows, "%s,%.17g\n", lengths[i], c->predicted * 0.7);
    }
    second_folder = write_table(TWO_FITTED_PAPER, rows->str);
    fitted = reproduce(second_folder, true);
    table = g_ptr_array_index(fitted, 0);
    ck_assert_uint_eq(table->constants->len, 2);
    for (guint i = 0; i < table->constants->len; i++)
        ck_assert_double_eq(g_array_index(table->constants, LhFittedConstant, i).fitted, 1);
    remove_table(folder);
    remove_table(second_folder);
}
END_TEST

/* Cross fit: constants are fitted to the judged rows, and their error on the other rows is
 * reported. Kernels of the judged rows are 1.25 times as slow, those of the rows behind the
 * files' constants 1.1 times. */
START_TEST(constants_are_fitted_the_other_way)
{
    g_autofree char *rows = slower_rows(1.1, 1.25);
    g_autofree char *folder = write_table(FITTED_PAPER, rows);
    g_autoptr(GPtrArray) tables = cross_fit(folder);
    const LhReproducedTable *table = g_ptr_array_index(tables, 0);
    const LhFittedConstant *constant;

    ck_assert_ptr_null(table->constants);
    ck_assert_uint_eq(table->cross_constants->len, 1);
    constant = &g_array_index(table->cross_constants, LhFittedConstant, 0);
    ck_assert_double_eq_tol(constant->fitted, 1.043 * 1.25, 0.005);
    ck_assert_uint_eq(table->cross.judged, 1);
    ck_assert_double_eq_tol(table->cross.mean_abs_error, 1.25 / 1.1 - 1, 0.01);
    ck_assert_uint_eq(table->own.judged, 1);
    ck_assert_double_eq_tol(table->own.mean_abs_error, 1 - 1 / 1.1, 0.001);
    /* The normal summary of the table is unchanged. */
    ck_assert_uint_eq(table->all.judged, 1);
    ck_assert_double_eq_tol(table->all.mean_abs_error, 1 - 1 / 1.25, 0.01);
    remove_table(folder);
}
END_TEST

LH_TEST_MAIN("paper", memory_is_of_one_gpu_or_of_the_fullest, papers_fit_their_rows,
             paper_rows_become_options, contradictions_are_of_rows, paper_patterns_match,
             paper_rows_that_are_broken_are_named, paper_rejects_broken_files,
             paper_rows_stand_for_several_cases, bounds_hold_or_do_not, up_to_is_the_greatest,
             bounds_are_fitted_until_they_hold, modules_are_predicted, modules_are_taken_apart,
             steps_are_counted, collectives_are_predicted,
             collectives_are_predicted_by_edited_files, collectives_have_versions,
             rows_of_ones_own_are_judged, broken_rows_of_ones_own_are_named,
             collectives_that_are_broken_are_named, constants_are_laid_over_files,
             longest_sequences_are_found, summaries_are_right, groups_are_summed_up,
             pairs_are_of_one_question, constants_are_fitted, constants_are_fitted_together,
             constants_stay_in_their_range, constants_are_fitted_the_other_way)
