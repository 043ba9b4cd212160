/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reports: numbers that add up as printed, tables in every format, figures.
 */
#include "base/error.h"
#include "base/json/json.h"
#include "base/rng.h"
#include "report/base/text.h"
#include "report/data/constants.h"
#include "report/data/result_json.h"
#include "report/draw/bars.h"
#include "report/draw/figure.h"
#include "report/draw/gantt.h"
#include "report/text/describe.h"
#include "run_tests.h"

#include <glib/gstdio.h>
#include <string.h>

/* Printed parts always add up to the printed sum, and each is off by less than a quantum. */
START_TEST(report_rounded_parts_add_up)
{
    for (uint64_t trial = 0; trial < 2000; trial++) {
        const uint32_t divisor = 1 + (uint32_t)(lh_rng_bits(1, trial, 0) % 64);
        const uint64_t many = trial % 2 == 0 ? 1 : UINT64_C(1) << 20; /* sums beyond 64 bits */
        LhWide parts[9];
        int64_t quanta[9];
        int64_t whole = 0;
        int64_t given = 0;
        LhWide sum = 0;
        LhTimeScale scale;

        for (int i = 0; i < 9; i++) {
            parts[i] = (LhWide)(lh_rng_bits(2, trial, (uint64_t)i) >> (20 + trial % 40)) * many;
            sum += parts[i];
        }
        scale = lh_text_scale((LhTime)(sum / (many * divisor)));
        lh_text_round_parts(scale, parts, 9, divisor * (uint32_t)many, quanta, &whole);
        for (int i = 0; i < 9; i++) {
            const double exact =
                (double)parts[i] / (double)scale.quantum_ps / ((double)divisor * (double)many);

            given += quanta[i];
            ck_assert_double_le((double)quanta[i], exact + 1);
            ck_assert_double_ge((double)quanta[i], exact - 1);
        }
        ck_assert_int_eq(given, whole);
    }
}
END_TEST

START_TEST(report_scale_keeps_digits)
{
    char buffer[LH_TEXT_SIZE];

    ck_assert_str_eq(lh_text_scaled(lh_text_scale(158200000000), 1582, buffer), "158.2");
    ck_assert_str_eq(lh_text_scale(158200000000).unit, "ms");
    ck_assert_str_eq(lh_text_scale(999).unit, "us");
    ck_assert_str_eq(lh_text_scale(60 * LH_PS_PER_S).unit, "s");
    ck_assert_str_eq(lh_text_percent(0.0345, buffer), "3.5 %");
    ck_assert_str_eq(lh_text_percent(0.347, buffer), "35 %");
}
END_TEST

static LhTable *
small_table(void)
{
    LhTable *table = lh_table_new();

    lh_table_column(table, "name", "name", NULL, false);
    lh_table_column(table, "time_s", "time", "ms", true);
    lh_table_row(table);
    lh_table_cell(table, "a, \"b\"", NULL);
    lh_table_cell(table, "12.5", "0.0125");
    lh_table_row(table);
    lh_table_cell(table, "c|d", NULL);
    lh_table_cell(table, "-", "");
    lh_table_note(table, "refused");
    return table;
}

static void
check_table(LhFormat format, const char *expected)
{
    g_autoptr(LhTable) table = small_table();
    g_autoptr(GString) out = g_string_new(NULL);

    lh_table_print(table, format, out);
    ck_assert_str_eq(out->str, expected);
}

START_TEST(report_table_in_every_form)
{
    check_table(LH_FORMAT_TABLE, "name     time\n           ms\na, \"b\"   12.5\nc|d         -   "
                                 "refused\n");
    check_table(LH_FORMAT_CSV, "name,time_s,note\n\"a, \"\"b\"\"\",0.0125,\nc|d,,refused\n");
    check_table(LH_FORMAT_MD, "| name | time ms | note |\n| --- | ---: | --- |\n"
                              "| a, \"b\" | 12.5 |  |\n| c\\|d | - | refused |\n");
}
END_TEST

typedef struct {
    const char *note, *time, *name;
} SmallRow;

static const LhField small_fields[] = {
    LH_FIELD_ROW(STRING, SmallRow, name, "name", ALWAYS, .description = NULL),
    LH_FIELD_ROW(STRING, SmallRow, time, "time_s", IF_ANY, .description = NULL),
    LH_FIELD_ROW(STRING, SmallRow, note, "note", IF_ANY, .description = NULL),
    { .name = NULL },
};

/* Texts of a table by key, for machines; a missing cell is NULL. */
START_TEST(report_table_gives_its_texts)
{
    static const SmallRow expected[] = {
        { NULL, "0.0125", "a, \"b\"" },
        { "refused", "", "c|d" },
        { NULL, NULL, "alone" },
    };
    g_autoptr(LhTable) table = small_table();
    g_autoptr(GPtrArray) rows = NULL;

    lh_table_row(table);
    lh_table_cell(table, "alone", NULL);
    rows = lh_table_texts(table, small_fields);
    ck_assert_uint_eq(rows->len, G_N_ELEMENTS(expected));
    for (guint i = 0; i < rows->len; i++) {
        const SmallRow *row = g_ptr_array_index(rows, i);

        ck_assert_str_eq(row->name, expected[i].name);
        ck_assert_pstr_eq(row->time, expected[i].time);
        ck_assert_pstr_eq(row->note, expected[i].note);
    }
}
END_TEST

/* --- results ------------------------------------------------------------------------------------
 */

typedef struct {
    LhScenario *scenario;
    LhSetup *setup;
    LhTimeline *timeline;
    LhCompareRow *row;
} Run;

static Run
run_of(const char *text)
{
    Run run = { .scenario = lh_scenario_parse("s.json", text, strlen(text), NULL) };
    LhHooks hooks = { .timeline = lh_timeline_collect };

    ck_assert_ptr_nonnull(run.scenario);
    run.setup = lh_setup_new(run.scenario, NULL);
    ck_assert_ptr_nonnull(run.setup);
    run.timeline = lh_timeline_new(NULL);
    hooks.timeline_data = run.timeline;
    run.row = lh_compare_run(run.setup, g_ptr_array_index(run.setup->schedules, 0), &hooks);
    ck_assert_ptr_nonnull(run.row->result);
    lh_timeline_sort(run.timeline);
    return run;
}

static void
run_clear(Run *run)
{
    lh_compare_row_free(run->row);
    lh_timeline_free(run->timeline);
    lh_setup_free(run->setup);
    lh_scenario_free(run->scenario);
}

static const char *const ring_text =
    "{\"schema\": \"longhaul.scenario/1\", \"ranks\": 4, \"schedule\": [\"ring\"]}";

START_TEST(report_json_is_strict_and_complete)
{
    static const char *const members[] = {
        "schema",
        "tool.version",
        "argv[1]",
        "inputs[0].sha256",
        "seed",
        "case.cluster",
        "case.ranks",
        "case.pass",
        "winner",
        "constants[0].source",
        "results[0].schedule",
        "results[0].state",
        "results[0].makespan_s",
        "results[0].bubble_fraction",
        "results[0].span_sum_s",
        "results[0].exposed_nic_sum_s",
        "results[0].sent_nvlink_bytes_sum",
        "results[0].options",
        "results[0].provenance",
        "results[0].per_rank.compute_s[3]",
        "results[0].per_rank.comm_s[3]",
        "results[0].per_rank.exposed_s[3]",
        "results[0].per_rank.sent_bytes[3]",
        "results[0].per_rank.flops[3]",
        "results[0].per_rank.peak_bytes[3]",
        "results[0].peak_bytes_by_tensor.q",
    };
    static const char *const argv[] = { "/some/where/longhaul", "sim", NULL };
    const LhStamp stamp = { argv };
    g_autoptr(GString) once = g_string_new(NULL);
    g_autoptr(GString) twice = g_string_new(NULL);
    g_autoptr(GError) error = NULL;
    g_autoptr(LhJson) json = NULL;
    g_autoptr(LhComparison) comparison = NULL;
    Run run = run_of(ring_text);

    comparison = lh_compare(run.setup, NULL, NULL);
    lh_result_json(run.setup, comparison, &stamp, once);
    lh_result_json(run.setup, comparison, &stamp, twice);
    ck_assert_str_eq(once->str, twice->str);
    ck_assert_ptr_null(strstr(once->str, "/some/where"));
    json = lh_json_parse("result", once->str, once->len, &error);
    ck_assert_msg(json != NULL, "%s", error != NULL ? error->message : "");
    for (guint i = 0; i < G_N_ELEMENTS(members); i++)
        ck_assert_msg(lh_json_has(json, members[i]), "%s is missing", members[i]);
    run_clear(&run);
}
END_TEST

START_TEST(report_timeline_has_a_row_for_each_op)
{
    Run run = run_of(ring_text);
    g_autoptr(GString) csv = g_string_new(NULL);
    g_auto(GStrv) lines = NULL;

    lh_timeline_csv(run.timeline, run.row->program, csv);
    lines = g_strsplit(csv->str, "\n", -1);
    ck_assert_uint_eq(g_strv_length(lines), run.timeline->records->len + 2);
    for (guint i = 1; i < run.timeline->records->len; i++) {
        const LhTimelineRecord *a = &g_array_index(run.timeline->records, LhTimelineRecord, i - 1);
        const LhTimelineRecord *b = a + 1;

        ck_assert(a->rank < b->rank || (a->rank == b->rank && a->op < b->op));
        ck_assert_int_le(b->start_ps, b->end_ps);
    }
    run_clear(&run);
}
END_TEST

START_TEST(report_words_name_what_was_asked)
{
    Run run = run_of("{\"schema\": \"longhaul.scenario/1\", \"ranks\": 8, \"schedule\": [\"ring\"],"
                     " \"no_overlap\": true, \"jitter\": 0.05, \"seed\": 9, \"pass\": \"fwd\"}");
    g_autoptr(GString) out = g_string_new(NULL);

    lh_describe_case(run.setup, out);
    ck_assert_ptr_nonnull(strstr(out->str, "forward: 32,768 tokens, 4,096 a rank"));
    ck_assert_ptr_nonnull(strstr(out->str, "(the default; see --cluster)"));
    ck_assert_ptr_nonnull(strstr(out->str, "with: no-overlap; jitter 5.0 %, seed 9\n"));
    run_clear(&run);
}
END_TEST

START_TEST(report_names_the_limit_of_a_pair)
{
    Run run = run_of("{\"schema\": \"longhaul.scenario/1\", \"cluster\": \"azure-nc96-a100:2\","
                     " \"schedule\": [\"ring\"]}");
    g_autoptr(GString) out = g_string_new(NULL);
    g_autoptr(GString) constants = g_string_new(NULL);
    LhTable *table = lh_describe_constants(run.setup);

    lh_describe_case(run.setup, out);
    ck_assert_ptr_nonnull(strstr(out->str, "; 1 x 5 GB/s to the network, 1.7 GB/s in messages and "
                                           "5 GB/s in collectives from GPU to GPU)"));
    lh_table_print(table, LH_FORMAT_MD, constants);
    ck_assert_ptr_nonnull(strstr(constants->str,
                                 "| nic | 5 GB/s (GPU to GPU 1.7 GB/s in messages and 5 GB/s in "
                                 "collectives) | assumed |"));
    ck_assert_ptr_nonnull(strstr(constants->str, "| nic latency | 40 us | assumed |"));
    ck_assert_ptr_nonnull(strstr(constants->str, "| nvlink SMs | 32 | assumed |"));
    lh_table_free(table);
    run_clear(&run);
}
END_TEST

/* --- figures ------------------------------------------------------------------------------------
 */

static bool
has_gnuplot(void)
{
    g_autofree char *program = g_find_program_in_path("gnuplot");

    return program != NULL;
}

/* The script written beside a figure. Caller frees. */
static char *
script_of(const char *path)
{
    g_autofree char *script_path = lh_figure_script_path(path);
    char *script = NULL;

    ck_assert(g_file_get_contents(script_path, &script, NULL, NULL));
    return script;
}

static void
remove_figure(const char *path)
{
    g_autofree char *script_path = lh_figure_script_path(path);

    g_unlink(script_path);
    g_unlink(path);
}

static void
check_drawn(const char *path, const char *begins)
{
    g_autofree char *drawn = NULL;

    ck_assert_msg(g_file_get_contents(path, &drawn, NULL, NULL), "%s", path);
    ck_assert_msg(g_str_has_prefix(drawn, begins), "%s", path);
    remove_figure(path);
}

/* Draws @run as --figure does: the ranks of the list @ranks, in @window. */
static void
draw_gantt(const Run *run, const char *path, const char *ranks, const char *window)
{
    const LhSimResult *result = run->row->result;
    g_autoptr(GError) error = NULL;
    g_auto(LhTimeWindow) frame = { .ranks = NULL };
    LhGantt gantt = {
        .setup = run->setup,
        .name = run->row->name,
        .program = run->row->program,
        .timeline = run->timeline,
        .frame = &frame,
        .makespan_ps = result->makespan_ps,
        .bubble = lh_sim_bubble_fraction(result),
    };

    ck_assert(lh_time_window_init(&frame, ranks, window, lh_time_window_ranks(run->setup), NULL));
    ck_assert(lh_time_window_fit(&frame, result->makespan_ps, NULL));
    ck_assert_msg(lh_gantt_draw(&gantt, (LhFigureTo){ .path = path }, &error), "%s",
                  error != NULL ? error->message : "");
}

START_TEST(report_figures_are_drawn)
{
    static const struct {
        const char *name, *begins;
    } figures[] = { { "it's.svg", "<?xml" },
                    { "< date;.svg", "<?xml" },
                    { "-e.png", "\x89PNG" },
                    { "a.pdf", "%PDF" } };
    g_autofree char *folder = g_dir_make_tmp("longhaul-XXXXXX", NULL);
    Run run = run_of(ring_text);
    g_autoptr(LhComparison) comparison = lh_compare(run.setup, NULL, NULL);

    for (guint i = 0; has_gnuplot() && i < G_N_ELEMENTS(figures); i++) {
        g_autofree char *path = g_build_filename(folder, figures[i].name, NULL);

        draw_gantt(&run, path, NULL, NULL);
        check_drawn(path, figures[i].begins);
        ck_assert(lh_bars_draw(run.setup, comparison, (LhFigureTo){ .path = path }, NULL));
        check_drawn(path, figures[i].begins);
    }
    ck_assert_int_eq(g_rmdir(folder), 0);
    run_clear(&run);
}
END_TEST

/* Names of all kinds that could break out of a string in a script or in SVG. */
START_TEST(report_names_are_no_code)
{
    g_autofree char *folder = g_dir_make_tmp("longhaul-XXXXXX", NULL);
    g_autofree char *path = g_build_filename(folder, "a.svg", NULL);
    g_autofree char *mark = g_build_filename(folder, "ran", NULL);
    g_autofree char *name = g_strdup_printf(
        "`touch %s`'.system(\"touch %s\").'\n!touch %s\n</text><script>&#60;&lt;{/a}", mark, mark,
        mark);
    Run run = run_of(ring_text);
    g_autoptr(LhComparison) comparison = lh_compare(run.setup, NULL, NULL);

    g_free(run.setup->topology->name);
    run.setup->topology->name = g_strdup(name);
    g_free(run.setup->model->name);
    run.setup->model->name = g_strdup(name);
    if (has_gnuplot()) {
        g_autofree char *svg = NULL;

        draw_gantt(&run, path, NULL, NULL);
        ck_assert(lh_bars_draw(run.setup, comparison, (LhFigureTo){ .path = path }, NULL));
        ck_assert(g_file_get_contents(path, &svg, NULL, NULL));
        ck_assert_ptr_null(strstr(svg, "<script"));
        ck_assert_msg(!g_file_test(mark, G_FILE_TEST_EXISTS), "a name was run");
        remove_figure(path);
    }
    ck_assert_int_eq(g_rmdir(folder), 0);
    run_clear(&run);
}
END_TEST

/* Schedules that cannot run are listed as text, and the axis covers the bars only. */
START_TEST(report_bars_are_of_what_can_run)
{
    static const char *const text =
        "{\"schema\": \"longhaul.scenario/1\", \"cluster\": \"hgx-h100:4\", \"model\": "
        "\"llama-3-8b\", \"seq_length\": \"2M\", \"schedule\": [\"zigzag\", \"rsa\", \"te-a2a\"]}";
    g_autofree char *folder = g_dir_make_tmp("longhaul-XXXXXX", NULL);
    g_autofree char *path = g_build_filename(folder, "a.svg", NULL);
    Run run = run_of(text);
    g_autoptr(LhComparison) comparison = lh_compare(run.setup, NULL, NULL);
    g_autofree char *script = NULL;
    g_auto(GStrv) around_range = NULL;

    lh_bars_draw(run.setup, comparison, (LhFigureTo){ .path = path },
                 NULL); /* the script is written even without gnuplot */
    script = script_of(path);
    ck_assert_ptr_nonnull(
        strstr(script, "'out of memory: rank 0 needs 24 TiB of attention buffers and at least "));
    ck_assert_ptr_nonnull(strstr(script, "'refused: 32 heads in 8 groups are not divisible"));
    ck_assert_ptr_nonnull(strstr(script, "of llama-3-8b on hgx-h100'"));
    around_range = g_strsplit(script, "set xrange [0:", 2);
    ck_assert_uint_eq(g_strv_length(around_range), 2);
    ck_assert_double_lt(g_ascii_strtod(around_range[1], NULL),
                        1.2 * (double)run.row->result->makespan_ps / 1e12);
    remove_figure(path);
    ck_assert_int_eq(g_rmdir(folder), 0);
    run_clear(&run);
}
END_TEST

START_TEST(report_gantt_shows_what_is_asked)
{
    g_autofree char *folder = g_dir_make_tmp("longhaul-XXXXXX", NULL);
    g_autofree char *path = g_build_filename(folder, "a.svg", NULL);
    g_autofree char *script = NULL;
    Run run = run_of(ring_text);
    g_autofree char *end = lh_format_time(run.row->result->makespan_ps / 2);
    g_autofree char *window = g_strconcat("1us:", end, NULL);

    if (has_gnuplot()) {
        draw_gantt(&run, path, "1,3", window);
        script = script_of(path);
        ck_assert_ptr_nonnull(strstr(script, "('rank 1' 0, 'rank 3' 1)"));
        ck_assert_ptr_nonnull(strstr(script, "; 2 of the ranks"));
        ck_assert_ptr_nonnull(strstr(script, "; shown: 1 us to "));
        ck_assert_ptr_nonnull(strstr(script, "attention of llama-7b"));
        ck_assert_ptr_nonnull(strstr(script, "noborder"));
        ck_assert_ptr_null(strstr(script, "PCIe"));
        remove_figure(path);
    }
    ck_assert_int_eq(g_rmdir(folder), 0);
    run_clear(&run);
}
END_TEST

START_TEST(report_nvlink_is_where_there_is_one)
{
    g_autofree char *folder = g_dir_make_tmp("longhaul-XXXXXX", NULL);
    g_autofree char *path = g_build_filename(folder, "a.svg", NULL);
    static const char *const costs[] = { "\"cluster\": \"this-machine\", \"ranks\": 4",
                                         "\"ranks\": 4, \"cost\": \"unit\"" };

    for (guint i = 0; has_gnuplot() && i < G_N_ELEMENTS(costs); i++) {
        g_autofree char *text = g_strdup_printf(
            "{\"schema\": \"longhaul.scenario/1\", %s, \"schedule\": [\"ring\"]}", costs[i]);
        g_autofree char *script = NULL;
        Run run = run_of(text);
        g_autoptr(LhComparison) comparison = lh_compare(run.setup, NULL, NULL);
        g_autofree char *bars = NULL;

        draw_gantt(&run, path, NULL, NULL);
        script = script_of(path);
        ck_assert_ptr_null(strstr(script, "NVLink"));
        ck_assert(lh_bars_draw(run.setup, comparison, (LhFigureTo){ .path = path }, NULL));
        bars = script_of(path);
        ck_assert_ptr_null(strstr(bars, "NVLink"));
        remove_figure(path);
        run_clear(&run);
    }
    ck_assert_int_eq(g_rmdir(folder), 0);
}
END_TEST

START_TEST(report_frames_are_read)
{
    static const struct {
        const char *ranks, *window;
        guint count; /* number of ranks; 0: rejected */
    } rows[] = {
        { NULL, NULL, 16 },   { "0-3,12", NULL, 5 }, { "3,3,3", "1ms:", 1 }, { "31", ":2ms", 1 },
        { "32", NULL, 0 },    { "3-1", NULL, 0 },    { "", NULL, 0 },        { "1,,2", NULL, 0 },
        { "1-", NULL, 0 },    { NULL, "2ms", 0 },    { NULL, "2ms:1ms", 0 }, { NULL, "a:b", 0 },
        { NULL, "1:2:3", 0 }, { "0-31", ":", 32 },   { "-1", NULL, 0 },      { "+1", NULL, 0 },
    };

    for (guint i = 0; i < G_N_ELEMENTS(rows); i++) {
        g_autoptr(GError) error = NULL;
        g_auto(LhTimeWindow) frame = { .ranks = NULL };
        const bool ok = lh_time_window_init(&frame, rows[i].ranks, rows[i].window,
                                            (LhTimeWindowRanks){ 32, 1 }, &error);

        ck_assert_msg(ok == (rows[i].count > 0), "row %u", i);
        if (ok)
            ck_assert_uint_eq(frame.ranks->len, rows[i].count);
        else
            ck_assert(g_error_matches(error, LH_ERROR, LH_ERROR_USAGE));
    }
}
END_TEST

/* Default ranks: some of every stage; of too many, from the first to the last. */
START_TEST(report_frames_show_all_stages)
{
    static const struct {
        LhTimeWindowRanks of;
        uint32_t ranks[LH_TIME_WINDOW_RANKS_DEFAULT + 1], count;
    } rows[] = {
        { { 8, 4 }, { 0, 1, 2, 3, 4, 5, 6, 7 }, 8 },
        { { 32, 8 }, { 0, 1, 4, 5, 8, 9, 12, 13, 16, 17, 20, 21, 24, 25, 28, 29 }, 16 },
        { { 48, 3 }, { 0, 1, 2, 3, 4, 16, 17, 18, 19, 20, 32, 33, 34, 35, 36 }, 15 },
        { { 24, 12 }, { 0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22 }, 12 },
        { { 64, 32 }, { 0, 4, 8, 12, 16, 20, 24, 28, 32, 36, 40, 44, 48, 52, 56, 62 }, 16 },
        { { 64, 1 }, { 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15 }, 16 },
    };

    for (guint i = 0; i < G_N_ELEMENTS(rows); i++) {
        g_auto(LhTimeWindow) frame = { .ranks = NULL };

        ck_assert(lh_time_window_init(&frame, NULL, NULL, rows[i].of, NULL));
        ck_assert_uint_eq(frame.ranks->len, rows[i].count);
        ck_assert_mem_eq(frame.ranks->data, rows[i].ranks, rows[i].count * sizeof(uint32_t));
        ck_assert_uint_eq(lh_time_window_stage(rows[i].of, rows[i].of.count - 1),
                          rows[i].of.stages - 1);
    }
}
END_TEST

/* Logarithmic axes within one decade have several ticks, too. */
START_TEST(report_log_axes_have_marks)
{
    static const double ranges[][2] = { { 4.1, 8 },  { 1.1, 2.2 },   { 9.5, 19 },  { 0.02, 0.9 },
                                        { 3, 3000 }, { 5e-6, 2e-5 }, { 12, 24.1 }, { 1, 10 } };

    for (guint i = 0; i < G_N_ELEMENTS(ranges); i++) {
        g_autoptr(GString) script = g_string_new(NULL);
        const char *at;
        guint within = 0;

        lh_figure_append_log_tics(script, "y", ranges[i][0], ranges[i][1]);
        ck_assert(g_str_has_prefix(script->str, "set ytics ("));
        for (at = strchr(script->str, '(') + 1; *at != ')'; at += strspn(at, " ,")) {
            char *end;
            const double mark = g_ascii_strtod(at, &end);

            within += mark >= ranges[i][0] && mark <= ranges[i][1];
            at = end;
        }
        ck_assert_msg(within >= 2 && within <= 12, "%u of range %u", within, i);
    }
}
END_TEST

static void
check_piece(const LhTimelineRecord *r, LhTimelinePiece *p, bool waits, LhTime from_ps, LhTime to_ps)
{
    ck_assert(lh_timeline_next_piece(r, p));
    ck_assert_int_eq(p->waits, waits);
    ck_assert_int_eq(p->from_ps, from_ps);
    ck_assert_int_eq(p->to_ps, to_ps);
}

START_TEST(report_pieces_are_all_of_an_op)
{
    const LhMotion motions[] = { { 12, 15 }, { 18, 20 } }, none[] = { { 20, 20 } };
    const LhTimelineRecord known = {
        .start_ps = 10, .end_ps = 20, .motions = motions, .motions_count = 2
    };
    const LhTimelineRecord unknown = { .start_ps = 10, .end_ps = 20 };
    const LhTimelineRecord at_once = {
        .start_ps = 10, .end_ps = 20, .motions = none, .motions_count = 1
    };
    const LhTimelineRecord never = { .start_ps = 10, .end_ps = 20, .motions = none };
    LhTimelinePiece p = { .motion = 0 };

    check_piece(&known, &p, true, 10, 12);
    check_piece(&known, &p, false, 12, 15);
    check_piece(&known, &p, true, 15, 18);
    check_piece(&known, &p, false, 18, 20);
    ck_assert(!lh_timeline_next_piece(&known, &p));
    p = (LhTimelinePiece){ .motion = 0 };
    check_piece(&unknown, &p, false, 10, 20);
    ck_assert(!lh_timeline_next_piece(&unknown, &p));
    p = (LhTimelinePiece){ .motion = 0 };
    check_piece(&at_once, &p, true, 10, 20);
    check_piece(&at_once, &p, false, 20, 20);
    ck_assert(!lh_timeline_next_piece(&at_once, &p));
    p = (LhTimelinePiece){ .motion = 0 };
    check_piece(&never, &p, true, 10, 20);
    ck_assert(!lh_timeline_next_piece(&never, &p));
    ck_assert_int_eq(lh_timeline_waited(&known), 5);
    ck_assert_int_eq(lh_timeline_waited(&unknown), 0);
}
END_TEST

/* Transfers derived from the ops' begin and end times contain those of the network: they begin
 * no later and end with the op. */
static void
check_met(const LhTimelineRecord *told, const LhTimelineRecord *exact, guint i)
{
    uint32_t k = 0;

    ck_assert_msg(told->motions_count > 0 && exact->motions_count > 0, "record %u", i);
    ck_assert_int_eq(told->motions[0].from_ps, exact->motions[0].from_ps);
    ck_assert_int_eq(told->motions[told->motions_count - 1].to_ps, exact->end_ps);
    for (uint32_t j = 0; j < exact->motions_count; j++) {
        while (k < told->motions_count && told->motions[k].to_ps < exact->motions[j].to_ps)
            k++;
        ck_assert_msg(k < told->motions_count &&
                          told->motions[k].from_ps <= exact->motions[j].from_ps,
                      "record %u", i);
    }
}

START_TEST(report_runs_wait_as_simulations_do)
{
    static const char *const schedules[] = { "ring", "ulysses", "dfa-unbalanced", "lasp2" };

    for (guint s = 0; s < G_N_ELEMENTS(schedules); s++) {
        g_autofree char *text =
            g_strdup_printf("{\"schema\": \"longhaul.scenario/1\", \"ranks\": 8, \"cluster\": "
                            "\"hgx-h100:1\", \"collectives\": \"closed-form\", \"jitter\": 0.1, "
                            "\"schedule\": [\"%s\"]}",
                            schedules[s]);
        Run run = run_of(text);
        g_autoptr(LhTimeline) again = lh_timeline_new(NULL);
        guint waits = 0;

        for (guint i = 0; i < run.timeline->records->len; i++) {
            LhTimelineRecord r = g_array_index(run.timeline->records, LhTimelineRecord, i);

            r.motions = NULL;
            r.motions_count = 0;
            lh_timeline_collect(again, &r);
        }
        lh_timeline_meet(again, run.row->program);
        for (guint i = 0; i < again->records->len; i++) {
            const LhTimelineRecord *told = &g_array_index(again->records, LhTimelineRecord, i);
            const LhTimelineRecord *exact =
                &g_array_index(run.timeline->records, LhTimelineRecord, i);

            if (told->kind == LH_OP_COMPUTE)
                continue;
            check_met(told, exact, i);
            waits += lh_timeline_waited(exact) > 0;
        }
        ck_assert_uint_gt(waits, 0);
        run_clear(&run);
    }
}
END_TEST

LH_TEST_MAIN("report", report_rounded_parts_add_up, report_scale_keeps_digits,
             report_table_in_every_form, report_table_gives_its_texts,
             report_json_is_strict_and_complete, report_timeline_has_a_row_for_each_op,
             report_words_name_what_was_asked, report_names_the_limit_of_a_pair,
             report_figures_are_drawn, report_names_are_no_code, report_bars_are_of_what_can_run,
             report_gantt_shows_what_is_asked, report_nvlink_is_where_there_is_one,
             report_frames_are_read, report_frames_show_all_stages, report_log_axes_have_marks,
             report_pieces_are_all_of_an_op, report_runs_wait_as_simulations_do)
