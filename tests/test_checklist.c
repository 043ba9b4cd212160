/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Checklists of published numbers: which numbers a line selects, its statistics, invalid lists; and
 * that the shipped list names existing tests.
 */
#include "data_files.h"
#include "papers/checklist.h"
#include "run_tests.h"

#include <stdio.h>
#include <string.h>

/* --- the list that is shipped -------------------------------------------------------------------
 */

static void
check_test_is_there(const char *name)
{
    g_autofree char *file = g_strconcat(name, ".c", NULL);
    g_autofree char *path = g_build_filename(g_getenv("LONGHAUL_SOURCE_DIR"), "tests", file, NULL);

    ck_assert_msg(g_file_test(path, G_FILE_TEST_EXISTS), "%s", path);
}

START_TEST(checklist_of_papers_is_whole)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(LhChecklist) list = lh_checklist_load("papers", &error);
    g_autoptr(GPtrArray) tables = NULL;

    ck_assert_msg(list != NULL, "%s", error != NULL ? error->message : "no message");
    for (guint i = 0; i < list->lines->len; i++) {
        const GPtrArray *held = g_array_index(list->lines, LhChecklistLine, i).held;

        for (guint k = 0; held != NULL && k < held->len; k++)
            check_test_is_there(g_ptr_array_index(held, k));
    }
    tables = lh_checklist_tables(list);
    for (guint i = 0; i < tables->len; i++) {
        g_autoptr(LhPaper) paper = lh_paper_load(g_ptr_array_index(tables, i), &error);

        ck_assert_msg(paper != NULL, "%s", error != NULL ? error->message : "no message");
    }
}
END_TEST

/* --- lines --------------------------------------------------------------------------------------
 */

#define PAPER                                                                                      \
    "{ \"schema\": \"longhaul.paper/1\", \"name\": \"t\", \"description\": \"d\", \"source\": "    \
    "\"s\", \"base\": [\"cluster=dgx-a100-80g:1\", \"schedule=ring\", \"ranks=8\"], "              \
    "\"columns\": [ { \"column\": \"n\", \"values\": [ { \"value\": \"*\", \"set\": "              \
    "[\"seq_length=*\"] } ] } ],\n\"metrics\": [ { \"name\": \"first\", \"column\": \"a\", "       \
    "\"metric\": "                                                                                 \
    "\"attention_s\" }, { \"column\": \"b\", \"metric\": \"iterations_per_s\" } ],\n"              \
    "\"fitted_on\": [ { \"where\": [\"n=64K\"] } ] }"
#define ROWS "n,a,b\n16K,1,1\n32K,1,1\n64K,1,1\n"

typedef struct {
    char *folder;
    GPtrArray *tables;
} Table;

static void
table_init_of(Table *t, const char *paper, const char *rows)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(GPtrArray) names = g_ptr_array_new_with_free_func(g_free);
    const LhReproduceParams params = { .names = names };
    g_autofree char *csv = NULL;

    t->folder = g_dir_make_tmp(NULL, NULL);
    ck_assert_ptr_nonnull(t->folder);
    g_ptr_array_add(names, g_build_filename(t->folder, "t.json", NULL));
    csv = g_build_filename(t->folder, "t.csv", NULL);
    ck_assert(g_file_set_contents(g_ptr_array_index(names, 0), paper, -1, NULL));
    ck_assert(g_file_set_contents(csv, rows, -1, NULL));
    t->tables = lh_reproduce(&params, &error);
    ck_assert_msg(t->tables != NULL, "%s", error != NULL ? error->message : "no message");
}

static void
table_init(Table *t)
{
    table_init_of(t, PAPER, ROWS);
}

static void
table_clear(Table *t)
{
    g_autofree char *json = g_build_filename(t->folder, "t.json", NULL);
    g_autofree char *csv = g_build_filename(t->folder, "t.csv", NULL);

    ck_assert_int_eq(remove(json) + remove(csv) + remove(t->folder), 0);
    g_ptr_array_unref(t->tables);
    g_free(t->folder);
}

#define LIST(lines)                                                                                \
    "{ \"schema\": \"longhaul.checklist/1\", \"description\": \"d\", \"lines\": [\n" lines "\n] }"
#define LINE(rest) "{ \"paper\": \"p\", \"what\": \"w\", " rest " }"

static GArray *
check(const char *text, const GPtrArray *tables, LhChecklist **list, GError **error)
{
    *list = lh_checklist_parse("l.json", text, strlen(text), error);
    return *list == NULL ? NULL : lh_checklist_check(*list, tables, error);
}

/* A line selects numbers by rows and columns; a single number is shown. */
START_TEST(checklist_lines_select_numbers)
{
    static const struct {
        const char *rows;
        guint cases, judged, fitted;
    } lines[] = {
        { "{ \"table\": \"t\" }", 6, 4, 2 },
        { "{ \"table\": \"t\", \"columns\": [\"a\"] }", 3, 2, 1 },
        { "{ \"table\": \"t\", \"metrics\": [\"first\"] }", 3, 2, 1 },
        { "{ \"table\": \"t\", \"where\": [\"n=16K\"] }", 2, 2, 0 },
        { "{ \"table\": \"t\", \"where\": [\"n!=16K\"], \"columns\": [\"b\"] }", 2, 1, 1 },
        { "{ \"table\": \"t\", \"where\": [\"n=32K\"], \"columns\": [\"b\"] }", 1, 1, 0 },
        { "{ \"table\": \"t\", \"where\": [\"n=16K\"] }, { \"table\": \"t\", \"where\": "
          "[\"n=64K\"] }",
          4, 2, 2 },
    };
    Table t;

    table_init(&t);
    for (gsize i = 0; i < G_N_ELEMENTS(lines); i++) {
        g_autoptr(GError) error = NULL;
        g_autoptr(LhChecklist) list = NULL;
        g_autofree char *text = g_strdup_printf(LIST(LINE("\"rows\": [ %s ]")), lines[i].rows);
        g_autoptr(GArray) checked = check(text, t.tables, &list, &error);
        const LhCheckedLine *line;

        ck_assert_msg(checked != NULL, "%s", error != NULL ? error->message : "no message");
        ck_assert_uint_eq(checked->len, 1);
        line = &g_array_index(checked, LhCheckedLine, 0);
        ck_assert_uint_eq(line->summary.cases, lines[i].cases);
        ck_assert_uint_eq(line->summary.judged, lines[i].judged);
        ck_assert_uint_eq(line->summary.fitted, lines[i].fitted);
        ck_assert_int_eq(line->shown != NULL, lines[i].cases == 1);
    }
    table_clear(&t);
}
END_TEST

/* Means cover the selected numbers only. */
START_TEST(checklist_errors_are_of_the_line)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(LhChecklist) list = NULL;
    g_autoptr(GArray) checked = NULL;
    double sum = 0, worst = 0;
    const LhCheckedLine *line;
    Table t;

    table_init(&t);
    checked = check(LIST(LINE("\"rows\": [ { \"table\": \"t\", \"columns\": [\"b\"] } ]")),
                    t.tables, &list, &error);
    ck_assert_ptr_nonnull(checked);
    line = &g_array_index(checked, LhCheckedLine, 0);
    for (guint i = 0; i < 2; i++) {
        const LhReproducedTable *table = g_ptr_array_index(t.tables, 0);
        const LhPaperCase *c = g_ptr_array_index(table->cases, 2 * i + 1);

        sum += ABS(c->error);
        worst = MAX(worst, ABS(c->error));
    }
    ck_assert_double_eq_tol(line->summary.mean_abs_error, sum / 2, 1e-12);
    ck_assert_double_eq(line->summary.worst_abs_error, worst);
    table_clear(&t);
}
END_TEST

#define BOUND_PAPER                                                                                \
    "{ \"schema\": \"longhaul.paper/1\", \"name\": \"t\", \"description\": \"d\", \"source\": "    \
    "\"s\", \"base\": [\"cluster=dgx-a100-80g:1\", \"schedule=ring\", \"ranks=8\"], "              \
    "\"columns\": [ { \"column\": \"n\", \"values\": [ { \"value\": \"*\", \"set\": "              \
    "[\"seq_length=*\"] } ] } ],\n\"metrics\": [ { \"column\": \"a\", \"metric\": "                \
    "\"attention_s\", \"at_least\": true, \"tolerance\": { \"worst\": 0.01 } } ] }"

/* For one bound the smallest of its cases is shown, wherever it stands; for several bounds none. */
START_TEST(checklist_shows_the_least_of_a_bound)
{
    static const struct {
        const char *rows;
        int least; /* index of the case; -1: none is shown */
    } tables[] = { { "n,a\n16K,1e-6\n32K,1e-6\n64K,1e-6\n", 0 },
                   { "n,a\n64K,1e-6\n16K,1e-6\n32K,1e-6\n", 1 },
                   { "n,a\n64K,1e-6\n32K,1e-6\n16K,1e-6\n", 2 },
                   { "n,a\n16K,1e-6\n32K,2e-6\n64K,1e-6\n", -1 } };

    for (gsize i = 0; i < G_N_ELEMENTS(tables); i++) {
        g_autoptr(GError) error = NULL;
        g_autoptr(LhChecklist) list = NULL;
        g_autoptr(GArray) checked = NULL;
        const LhCheckedLine *line;
        Table t;

        table_init_of(&t, BOUND_PAPER, tables[i].rows);
        checked = check(LIST(LINE("\"rows\": [ { \"table\": \"t\" } ]")), t.tables, &list, &error);
        ck_assert_ptr_nonnull(checked);
        line = &g_array_index(checked, LhCheckedLine, 0);
        ck_assert_uint_eq(line->summary.bounds_held, 3);
        if (tables[i].least < 0)
            ck_assert_ptr_null(line->shown);
        else
            ck_assert_ptr_eq(
                line->shown,
                g_ptr_array_index(((LhReproducedTable *)g_ptr_array_index(t.tables, 0))->cases,
                                  (guint)tables[i].least));
        table_clear(&t);
    }
}
END_TEST

START_TEST(checklist_sorts_tables)
{
    g_autoptr(GError) error = NULL;
    const char *text = LIST(LINE("\"rows\": [ { \"table\": \"c\" }, { \"table\": \"a\" } ]"));
    g_autoptr(LhChecklist) list = lh_checklist_parse("l.json", text, strlen(text), &error);
    LhPaper papers[] = { { .name = "a" }, { .name = "b" }, { .name = "c" }, { .name = "d" } };
    LhReproducedTable tables[G_N_ELEMENTS(papers)] = { 0 };
    g_autoptr(GPtrArray) all = g_ptr_array_new();
    g_autoptr(GString) order = g_string_new(NULL);

    for (gsize i = 0; i < G_N_ELEMENTS(papers); i++) {
        papers[i].path = papers[i].name;
        tables[i].paper = &papers[i];
        g_ptr_array_add(all, &tables[i]);
    }
    lh_checklist_sort(list, all);
    for (guint i = 0; i < all->len; i++)
        g_string_append(order, ((const LhReproducedTable *)g_ptr_array_index(all, i))->paper->name);
    ck_assert_str_eq(order->str, "cabd");
}
END_TEST

START_TEST(checklist_names_broken_lines)
{
    static const struct {
        const char *text, *message;
    } broken[] = {
        { LIST("{ \"paper\": \"p\", \"what\": \"w\" }"),
          "l.json:2:1: error: \"lines[0]\" is empty; allowed: \"rows\" of tables, tests that it is "
          "\"held\" by, or the \"reason\" why it is not predicted" },
        { LIST(LINE("\"rows\": [ { \"table\": \"t\", \"where\": [\"n\"] } ]")),
          "l.json:2:66: error: \"lines[0].rows[0].where[0]\" must be COLUMN=VALUE" },
        { LIST(LINE("\"rows\": [ { \"table\": \"t\", \"where\": [\"n=1K\"] } ]")),
          "l.json:2:40: error: \"lines[0].rows[0]\" selects no number of the table t" },
        { LIST(LINE("\"rows\": [ { \"table\": \"t\", \"columns\": [\"n\"] } ]")),
          "l.json:2:40: error: \"lines[0].rows[0]\" selects no number of the table t" },
        { LIST(LINE("\"rows\": [ { \"table\": \"t\", \"metrics\": [\"b\"] } ]")),
          "l.json:2:40: error: \"lines[0].rows[0]\" selects no number of the table t" },
        { LIST(LINE("\"reason\": \"r\"") ", " LINE("\"rows\": [ { \"table\": \"t\", \"where\": "
                                                   "[\"other=1\"] } ]")),
          "l.json:2:86: error: \"lines[1].rows[0]\" selects no number of the table t" },
    };
    Table t;

    table_init(&t);
    for (gsize i = 0; i < G_N_ELEMENTS(broken); i++) {
        g_autoptr(GError) error = NULL;
        g_autoptr(LhChecklist) list = NULL;
        g_autoptr(GArray) checked = check(broken[i].text, t.tables, &list, &error);

        ck_assert_ptr_null(checked);
        ck_assert_str_eq(error->message, broken[i].message);
    }
    table_clear(&t);
}
END_TEST

LH_TEST_MAIN("checklist", checklist_of_papers_is_whole, checklist_lines_select_numbers,
             checklist_shows_the_least_of_a_bound, checklist_errors_are_of_the_line,
             checklist_sorts_tables, checklist_names_broken_lines)
