/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sweeps: every row equals a comparison of that case alone, built from its own scenario; errors;
 * files of points; flags and options; figures.
 */
#include "base/error.h"
#include "report/base/field_cells.h"
#include "report/data/result_values.h"
#include "report/draw/sweep_figure.h"
#include "report/text/describe_sweep.h"
#include "run_tests.h"
#include "scenario/setting.h"

#include <glib/gstdio.h>
#include <string.h>

#define SCHEMA "\"schema\": \"longhaul.scenario/1\", "
/* Two clusters, three lengths (ulysses and related schedules refuse one of them), and a flag. */
#define SMALL                                                                                      \
    "{" SCHEMA "\"model\": \"gpt3-125m\", \"schedule\": [\"zigzag\", \"ulysses\", \"ring\"], "     \
    "\"sweep\": {\"seq_length\": [\"8K\", 16384, 100], \"cluster\": [\"dgx-a100-80g:1\", "         \
    "\"dfa-2node:1\"], \"no_overlap\": [true, false], \"ranks\": [4]}}"

static LhScenario *
scenario_of(const char *text)
{
    g_autoptr(GError) error = NULL;
    LhScenario *scenario = lh_scenario_parse("sweep.json", text, strlen(text), &error);

    ck_assert_msg(scenario != NULL, "%s", error != NULL ? error->message : text);
    return scenario;
}

static LhSweep *
sweep_try(const LhScenario *scenario, guint jobs, const char *file, GError **error)
{
    const LhSweepQuery query = {
        .scenario = scenario, .cells = &lh_sweep_cells, .task.jobs = jobs, .points_file = file
    };

    return lh_sweep(&query, error);
}

static LhSweep *
sweep_of(const LhScenario *scenario, guint jobs, const char *file)
{
    g_autoptr(GError) error = NULL;
    LhSweep *sweep = sweep_try(scenario, jobs, file, &error);

    ck_assert_msg(sweep != NULL, "%s", error != NULL ? error->message : "no sweep");
    return sweep;
}

static char *
csv_of(const LhSweep *sweep)
{
    g_autoptr(LhTable) table = lh_sweep_table(sweep);
    GString *out = g_string_new(NULL);

    lh_table_print(table, LH_FORMAT_CSV, out);
    return g_string_free(out, FALSE);
}

/* ---- rows ---- */

/* A case of SMALL without lists. */
static char *
plain_case(const char *length, const char *cluster, bool flag)
{
    return g_strdup_printf("{" SCHEMA "\"model\": \"gpt3-125m\", \"schedule\": [\"zigzag\", "
                           "\"ulysses\", \"ring\"], \"seq_length\": \"%s\", \"cluster\": \"%s\", "
                           "\"ranks\": 4%s}",
                           length, cluster, flag ? ", \"no_overlap\": true" : "");
}

/* A point equals the comparison of its case, with the times of single runs. */
static void
check_point(const LhSweep *sweep, guint index, const char *text)
{
    const LhSweepPoint *point = g_ptr_array_index(sweep->points, index);
    g_autoptr(LhScenario) scenario = scenario_of(text);
    g_autoptr(LhSetup) setup = lh_setup_new(scenario, NULL);
    g_autoptr(LhComparison) comparison = lh_compare(setup, NULL, NULL);

    ck_assert_uint_eq(point->rows->len, comparison->rows->len);
    for (guint i = 0; i < comparison->rows->len; i++) {
        const LhCompareRow *expected = g_ptr_array_index(comparison->rows, i);
        char **row = g_ptr_array_index(point->rows, i);
        g_autoptr(LhCompareRow) single =
            lh_compare_run(setup, lh_schedule_find(expected->name, NULL), NULL);
        g_auto(LhCaseValues) of_case = lh_case_values(setup);
        g_auto(LhRowValues) of_row = lh_row_values(setup, expected, lh_best_ps(comparison));
        g_autoptr(GPtrArray) texts = g_ptr_array_new_with_free_func(g_free);
        char seconds[LH_WIDE_TEXT_SIZE];

        ck_assert_str_eq(lh_sweep_cell(sweep, row, "schedule"), expected->name);
        lh_field_texts(lh_case_fields, &of_case, texts);
        lh_field_texts(lh_row_fields, &of_row, texts);
        for (guint k = 0; k < texts->len; k++)
            ck_assert_str_eq(row[k], texts->pdata[k]);
        ck_assert_str_eq(
            lh_sweep_cell(sweep, row, "makespan_s"),
            single->result == NULL ? "" : lh_wide_seconds(single->result->makespan_ps, seconds));
        if (i > 0 && expected->state == LH_ROW_RAN)
            ck_assert_str_eq(
                lh_sweep_cell(sweep, row, "told_apart_from_best"),
                expected->tied || expected->result->makespan_ps == lh_best_ps(comparison) ? "no"
                                                                                          : "yes");
        else
            ck_assert_str_eq(lh_sweep_cell(sweep, row, "told_apart_from_best"), "");
    }
}

/* Fields are in the order of the table: cluster, ranks, length, then options of schedules. */
START_TEST(rows_are_those_of_single_comparisons)
{
    static const char *const clusters[] = { "dgx-a100-80g:1", "dfa-2node:1" };
    static const char *const lengths[] = { "8192", "16384", "100" };
    g_autoptr(LhScenario) scenario = scenario_of(SMALL);
    g_autoptr(LhSweep) sweep = sweep_of(scenario, 2, NULL);
    guint index = 0;

    ck_assert_uint_eq(sweep->axes->len, 4);
    ck_assert_uint_eq(sweep->points->len, 2 * 3 * 2);
    for (guint c = 0; c < 2; c++)
        for (guint l = 0; l < 3; l++)
            for (guint flag = 0; flag < 2; flag++) {
                const LhSweepPoint *point = g_ptr_array_index(sweep->points, index);
                g_autofree char *text = plain_case(lengths[l], clusters[c], flag == 0);

                ck_assert_str_eq(point->values[0], clusters[c]);
                ck_assert_str_eq(point->values[1], "4");
                ck_assert_str_eq(point->values[2], lengths[l]);
                ck_assert_str_eq(point->values[3], flag == 0 ? "true" : "false");
                check_point(sweep, index++, text);
            }
}
END_TEST

/* A case that cannot be set up is a row with its parameters and the reason. */
START_TEST(refused_points_are_rows)
{
    g_autoptr(LhScenario) scenario =
        scenario_of("{" SCHEMA "\"schedule\": [\"ring\"], \"seq_length\": \"8K\", "
                    "\"cluster\": \"dgx-a100-80g:1\", \"sweep\": {\"ranks\": [2, 9], "
                    "\"gather_groups\": [1]}}");
    g_autoptr(GError) error = NULL;
    g_autoptr(LhSweep) sweep = NULL;

    /* ring does not read gather_groups: no case can be set up. */
    ck_assert_ptr_null(sweep_try(scenario, 1, NULL, &error));
    ck_assert_ptr_nonnull(strstr(error->message, "every point of the sweep is refused"));
    lh_scenario_free(g_steal_pointer(&scenario));
    scenario = scenario_of("{" SCHEMA "\"schedule\": [\"ring\"], \"seq_length\": \"8K\", "
                           "\"cluster\": \"dgx-a100-80g:1\", \"sweep\": {\"ranks\": [9, 2]}}");
    sweep = sweep_of(scenario, 1, NULL);
    ck_assert_uint_eq(sweep->refused, 1);
    {
        const LhSweepPoint *point = g_ptr_array_index(sweep->points, 0);
        char **row = g_ptr_array_index(point->rows, 0);
        g_autofree char *csv = csv_of(sweep);

        ck_assert_uint_eq(point->rows->len, 1);
        ck_assert_str_eq(lh_sweep_cell(sweep, row, "state"), "refused");
        ck_assert_ptr_nonnull(strstr(lh_sweep_cell(sweep, row, "reason"), "8"));
        ck_assert_ptr_null(lh_sweep_place(sweep, point, 0));
        ck_assert_ptr_nonnull(strstr(csv, "\n0,,,,,,,,,9,"));
    }
}
END_TEST

/* A rate contains a slash but is no path: it is not resolved against the file's folder. */
START_TEST(rates_of_links_are_swept)
{
    static const char text[] = "{" SCHEMA "\"schedule\": [\"ring\"], \"seq_length\": \"16K\", "
                               "\"cluster\": \"hgx-h100:2\", \"sweep\": {\"nic_rate\": [\"100G\", "
                               "\"400Gb/s\"], \"nvlink_rate\": [\"200GB/s\"], \"nics\": [4]}}";
    static const double rates[] = { 12e9, 48e9 };
    g_autoptr(GError) error = NULL;
    g_autoptr(LhScenario) scenario = lh_scenario_parse("folder/s.json", text, strlen(text), &error);
    LhSweep *sweep;

    ck_assert_msg(scenario != NULL, "%s", error != NULL ? error->message : "");
    sweep = sweep_of(scenario, 1, NULL);
    for (guint i = 0; i < G_N_ELEMENTS(rates); i++) {
        const LhSweepPoint *point = g_ptr_array_index(sweep->points, i);
        char **row = g_ptr_array_index(point->rows, 0);

        ck_assert_double_eq(lh_sweep_number(sweep, row, "nic_bytes_per_s"), rates[i]);
        ck_assert_double_eq(lh_sweep_number(sweep, row, "nvlink_bytes_per_s"), 200e9);
        ck_assert_double_eq(lh_sweep_number(sweep, row, "nics"), 4);
    }
    lh_sweep_free(sweep);
}
END_TEST

/* Parameters common to all points are printed above the table, swept ones in columns. */
START_TEST(links_of_all_points_are_said)
{
    g_autoptr(LhScenario) scenario =
        scenario_of("{" SCHEMA "\"schedule\": [\"ring\"], \"seq_length\": \"16K\", "
                    "\"cluster\": \"hgx-h100:2\", \"nics\": 2, \"nvlink_rate\": \"200GB/s\", "
                    "\"sweep\": {\"nic_rate\": [\"100G\", \"200G\"]}}");
    g_autoptr(LhSweep) sweep = sweep_of(scenario, 1, NULL);
    g_autoptr(GString) question = g_string_new(NULL);

    lh_describe_sweep_question(sweep, question);
    ck_assert_msg(g_str_has_suffix(question->str, "2 points: 2 of nic_rate; overriding the file: "
                                                  "nics 2, nvlink_rate 200 GB/s\n"),
                  "%s", question->str);
}
END_TEST

/* An option replaces a list by a single value. */
START_TEST(options_replace_lists)
{
    g_autoptr(LhScenario) scenario = scenario_of(SMALL);
    const LhField *length = lh_setting_find(lh_scenario_options(), "--seq-length");
    g_autoptr(LhSweep) sweep = NULL;

    ck_assert(lh_scenario_set(scenario, length, "16K", NULL));
    sweep = sweep_of(scenario, 1, NULL);
    ck_assert_uint_eq(sweep->points->len, 4);
    for (guint i = 0; i < 4; i++) {
        g_autofree char *text =
            plain_case("16384", i < 2 ? "dgx-a100-80g:1" : "dfa-2node:1", i % 2 == 0);

        check_point(sweep, i, text);
    }
}
END_TEST

/* ---- errors ---- */

START_TEST(bad_sweeps_are_refused_with_their_place)
{
    static const struct {
        const char *sweep, *message;
    } cases[] = {
        { "{}", "sweep.json:1:44: error: \"sweep\" names no field" },
        { "[]", "\"sweep\" must be an object; found an array" },
        { "{\"seq_length\": []}", "\"sweep.seq_length\" has 0 elements; allowed: 1 to 1000" },
        { "{\"seq_length\": \"8K\"}",
          "\"sweep.seq_length\" must be an array of values; found the string \"8K\"" },
        { "{\"seq_lenght\": [1]}", "unknown field \"seq_lenght\" in \"sweep\"; did you mean "
                                   "\"seq_length\"?" },
        { "{\"schedule\": [\"ring\"]}", "unknown field \"schedule\" in \"sweep\"" },
        { "{\"seq_length\": [\"64K\", 65536]}",
          "error: \"sweep.seq_length\" has the value 65536 twice" },
        { "{\"seq_length\": [\"64Q\"]}", "\"sweep.seq_length[0]\"" },
        { "{\"ranks\": [0]}", "\"sweep.ranks[0]\" is out of range" },
        { "{\"ranks\": [null]}", "\"sweep.ranks[0]\"" },
        { "{\"ranks\": [[2]]}", "\"sweep.ranks[0]\"" },
        { "{\"step\": [1]}", "\"sweep.step[0]\"" },
        { "{\"model\": [\"a\", \"b\"]}",
          "\"model\" has a list of values here and a value outside" },
    };

    for (guint i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autofree char *text =
            g_strdup_printf("{" SCHEMA "\"sweep\": %s, \"model\": \"llama-7b\"}", cases[i].sweep);
        g_autoptr(GError) error = NULL;

        ck_assert_ptr_null(lh_scenario_parse("sweep.json", text, strlen(text), &error));
        ck_assert_int_eq(error->code, LH_ERROR_INPUT);
        ck_assert_msg(strstr(error->message, cases[i].message) != NULL, "%s\nnot\n%s",
                      error->message, cases[i].message);
    }
}
END_TEST

/* The list "1, 2, ... count". Caller frees. */
static char *
numbers(guint count)
{
    GString *text = g_string_new("1");

    for (guint i = 2; i <= count; i++)
        g_string_append_printf(text, ", %u", i);
    return g_string_free(text, FALSE);
}

START_TEST(too_many_combinations_are_counted)
{
    g_autofree char *thousand = numbers(1000);
    g_autofree char *text = g_strdup_printf(
        "{" SCHEMA "\"sweep\": {\"ranks\": [%s], \"seq_length\": [%s]}}", thousand, thousand);
    g_autoptr(LhScenario) scenario = scenario_of(text);
    g_autoptr(GError) error = NULL;

    ck_assert_ptr_null(sweep_try(scenario, 1, NULL, &error));
    ck_assert_int_eq(error->code, LH_ERROR_INPUT);
    ck_assert_ptr_nonnull(strstr(error->message, "there are 1000000 combinations (1000 of ranks x "
                                                 "1000 of seq_length); allowed: at most 4096"));
}
END_TEST

/* ---- files of points ---- */

static void
check_file(const LhScenario *scenario, const char *file, guint jobs, const char *csv,
           const char *points)
{
    g_autoptr(LhSweep) sweep = sweep_of(scenario, jobs, file);
    g_autofree char *again = csv_of(sweep);
    g_autofree char *written = NULL;

    ck_assert(g_file_get_contents(file, &written, NULL, NULL));
    ck_assert_str_eq(again, csv);
    ck_assert_str_eq(written, points);
}

/* A file cut at any byte is continued, to the same bytes. */
START_TEST(files_of_points_are_gone_on_from)
{
    g_autofree char *folder = g_dir_make_tmp("longhaul-sweep-XXXXXX", NULL);
    g_autofree char *file = g_build_filename(folder, "points.jsonl", NULL);
    g_autoptr(LhScenario) scenario = scenario_of(SMALL);
    g_autoptr(LhScenario) other = scenario_of(SMALL);
    g_autoptr(LhSweep) whole = sweep_of(scenario, 1, file);
    g_autofree char *csv = csv_of(whole);
    g_autofree char *points = NULL;
    g_autoptr(GError) error = NULL;
    gsize length;

    ck_assert(g_file_get_contents(file, &points, &length, NULL));
    for (gsize cut = 0; cut <= length; cut += length / 7) {
        ck_assert(g_file_set_contents(file, points, (gssize)cut, NULL));
        check_file(scenario, file, 1 + (guint)(cut % 3), csv, points);
    }
    lh_scenario_replace(other, "seq_length", "32K");
    ck_assert_ptr_null(sweep_try(other, 1, file, &error));
    ck_assert_msg(strstr(error->message, "written for another query") != NULL, "%s",
                  error->message);
    g_clear_error(&error);
    /* Rejects a line of another point, and one with a cell less. */
    {
        g_auto(GStrv) lines = g_strsplit(points, "\n", 3);
        g_autofree char *skipped = g_strdup_printf("%s\n%s", lines[0], lines[2]);
        g_autofree char *short_row =
            g_strdup_printf("%s\n{\"point\": 0, \"rows\": [{\"cells\": [\"a\"]}]}\n", lines[0]);

        ck_assert(g_file_set_contents(file, skipped, -1, NULL));
        ck_assert_ptr_null(sweep_try(scenario, 1, file, &error));
        ck_assert_ptr_nonnull(strstr(error->message, "line 2 was not written by this sweep"));
        g_clear_error(&error);
        ck_assert(g_file_set_contents(file, short_row, -1, NULL));
        ck_assert_ptr_null(sweep_try(scenario, 1, file, &error));
    }
    g_unlink(file);
    g_rmdir(folder);
}
END_TEST

/* ---- figures ---- */

static bool
can_draw(const char *sweep, GError **error)
{
    g_autofree char *text = g_strdup_printf("{" SCHEMA "\"sweep\": %s}", sweep);
    g_autoptr(LhScenario) scenario = scenario_of(text);

    return lh_sweep_figure_check(scenario, error);
}

START_TEST(figures_need_one_field_or_two)
{
    static const char *const bad[] = {
        "{\"ranks\": [4]}",
        "{\"dtype\": [\"bf16\", \"fp16\"]}",
        "{\"cluster\": [\"hgx-h100:1\", \"hgx-b200:1\"]}",
        "{\"jitter\": [0, 0.1]}",
        "{\"ranks\": [1, 2], \"seq_length\": [1, 2], \"kv_channels\": [1, 2]}",
    };
    static const char *const good[] = {
        "{\"ranks\": [4, 8], \"dtype\": [\"bf16\"]}",
        "{\"cluster\": [\"hgx-h100:1\", \"hgx-h100:2\"]}",
        "{\"cluster\": [\"hgx-h100:1\", \"hgx-b200:1\"], \"dtype\": [\"bf16\", \"fp16\"]}",
    };

    for (guint i = 0; i < G_N_ELEMENTS(bad); i++) {
        g_autoptr(GError) error = NULL;

        ck_assert_msg(!can_draw(bad[i], &error), "%s", bad[i]);
        ck_assert_int_eq(error->code, LH_ERROR_USAGE);
    }
    for (guint i = 0; i < G_N_ELEMENTS(good); i++)
        ck_assert_msg(can_draw(good[i], NULL), "%s", good[i]);
}
END_TEST

/* The script of the figure, whose image gnuplot draws. Caller frees. */
static char *
script_of(const LhSweep *sweep)
{
    g_autofree char *folder = g_dir_make_tmp("longhaul-sweep-XXXXXX", NULL);
    g_autofree char *picture = g_build_filename(folder, "s.svg", NULL);
    g_autofree char *path = g_build_filename(folder, "s.gp", NULL);
    char *script = NULL;

    lh_sweep_figure(sweep, (LhFigureTo){ .path = picture }, NULL);
    ck_assert(g_file_get_contents(path, &script, NULL, NULL));
    g_unlink(picture);
    g_unlink(path);
    g_rmdir(folder);
    return script;
}

START_TEST(figures_show_what_rows_say)
{
    g_autoptr(LhScenario) one = scenario_of(
        "{" SCHEMA "\"cost\": \"unit\", \"pass\": \"fwd\", \"schedule\": [\"ring\", \"zigzag\"], "
        "\"seq_length\": \"64K\", \"sweep\": {\"ranks\": [2, 4]}}");
    g_autoptr(LhScenario) two = scenario_of(
        "{" SCHEMA "\"schedule\": [\"ring\", \"zigzag\"], \"cluster\": \"dgx-a100-80g:1\", "
        "\"sweep\": {\"ranks\": [2, 4], \"seq_length\": [100, \"64K\", \"128K\"]}}");
    g_autoptr(LhSweep) curves = sweep_of(one, 1, NULL);
    g_autoptr(LhSweep) map = sweep_of(two, 1, NULL);
    g_autofree char *script = script_of(curves);
    g_autofree char *map_script = script_of(map);
    guint boxes = 0;

    /* Unit costs: a ring of P ranks takes P seconds. */
    ck_assert_ptr_nonnull(strstr(script, "\n2 2000\n4 4000\n"));
    ck_assert_ptr_nonnull(strstr(script, "set logscale x 2"));
    /* Every point is in one box. */
    for (guint x = 0; x < 3; x++)
        for (guint y = 0; y < 2; y++) {
            g_autofree char *box = g_strdup_printf("\n%u %u\n", x, y);

            boxes += strstr(map_script, box) != NULL;
        }
    ck_assert_uint_eq(boxes, 6);
    ck_assert_ptr_nonnull(strstr(map_script, "'64K' 1"));
}
END_TEST

LH_TEST_MAIN("sweep", rows_are_those_of_single_comparisons, refused_points_are_rows,
             rates_of_links_are_swept, links_of_all_points_are_said, options_replace_lists,
             bad_sweeps_are_refused_with_their_place, too_many_combinations_are_counted,
             files_of_points_are_gone_on_from, figures_need_one_field_or_two,
             figures_show_what_rows_say)
