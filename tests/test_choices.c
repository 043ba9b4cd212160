/* SPDX-License-Identifier: Apache-2.0 */
/* Scenario settings that are repeated or have no effect, and lengths that no schedule can split. */
#include "data_files.h"
#include "options.h"
#include "scenario/config_check.h"
#include "scenario/seq_length_rounding.h"
#include "scenario/setting.h"
#include "share.h"

static void
set(LhScenario *scenario, const char *option, const char *text)
{
    const LhField *field = lh_setting_find(lh_scenario_options(), option);
    g_autoptr(GError) error = NULL;

    ck_assert_msg(lh_scenario_set(scenario, field, text, &error), "%s",
                  error != NULL ? error->message : option);
}

/* Sets @option to a value of its type that decodes, whether or not schedules accept it. */
static void
set_something(LhScenario *scenario, const LhOption *option)
{
    static const char *const values[] = {
        [LH_OPTION_FLAG] = NULL,
        [LH_OPTION_COUNT] = "1",
        [LH_OPTION_GRID] = "2x2",
        [LH_OPTION_SIZES] = "2,2",
    };
    g_autofree char *name = g_strdelimit(g_strconcat("--", option->name, NULL), "_", '-');

    set(scenario, name,
        option->type == LH_OPTION_CHOICE ? option->choices[1] : values[option->type]);
}

START_TEST(choices_unread_options_are_refused)
{
    const LhOption *const *options = lh_schedule_options();

    for (guint i = 0; options[i] != NULL; i++) {
        for (guint k = 0; lh_schedules[k] != NULL; k++) {
            const bool linear = !lh_schedule_takes(lh_schedules[k], false);
            const bool reads = lh_schedule_reads(lh_schedules[k], options[i]);
            const LhSchedule *schedule = lh_schedules[k];
            g_autoptr(GPtrArray) one = g_ptr_array_new();
            g_autoptr(LhScenario) scenario = lh_scenario_new();
            g_autoptr(GError) error = NULL;

            g_ptr_array_add(one, (gpointer)schedule);
            set_something(scenario, options[i]);
            ck_assert_int_eq(lh_check_read(scenario, one, linear, &error),
                             reads && (linear || !options[i]->linear_only));
            ck_assert(error == NULL || g_error_matches(error, LH_ERROR, LH_ERROR_INPUT));
        }
    }
}
END_TEST

/* One schedule that reads an option suffices; the error names the schedules that would. */
START_TEST(choices_one_reader_is_enough)
{
    g_autoptr(GPtrArray) schedules = g_ptr_array_new();
    g_autoptr(LhScenario) scenario = lh_scenario_new();
    g_autoptr(GError) error = NULL;

    set(scenario, "--grid", "2x2");
    g_ptr_array_add(schedules, (gpointer)lh_schedule_find("ring", NULL));
    g_ptr_array_add(schedules, (gpointer)lh_schedule_find("zigzag", NULL));
    ck_assert(!lh_check_read(scenario, schedules, false, &error));
    ck_assert_str_eq(error->message,
                     "--grid: none of the 2 schedules considered reads this option; these "
                     "schedules do: attention2d-no, attention2d-o");
    g_ptr_array_add(schedules, (gpointer)lh_schedule_find("attention2d-o", NULL));
    ck_assert(lh_check_read(scenario, schedules, false, NULL));
}
END_TEST

/* A file may be for several schedules; its fields are checked against the schedules it names. */
START_TEST(choices_files_are_for_many_schedules)
{
    static const char *const text = "{\"schema\": \"longhaul.scenario/1\", \"grid\": \"2x2\"}";
    g_autoptr(LhScenario) scenario = lh_scenario_parse("s.json", text, strlen(text), NULL);
    g_autoptr(GPtrArray) schedules = g_ptr_array_new();
    g_autoptr(GError) error = NULL;

    g_ptr_array_add(schedules, (gpointer)lh_schedule_find("ring", NULL));
    ck_assert(!lh_check_read(scenario, schedules, false, &error));
    ck_assert_msg(g_str_has_prefix(error->message, "s.json:1:43: error: \"grid\": ring"), "%s",
                  error->message);
    set(scenario, "--schedule", "ring");
    ck_assert(lh_check_read(scenario, schedules, false, NULL));
}
END_TEST

/* Repeated faults are reported in the order of the file. */
START_TEST(choices_faults_are_named_once)
{
    g_autoptr(LhScenario) scenario = lh_scenario_new();
    g_autoptr(GError) slow = NULL;
    g_autoptr(GError) link = NULL;

    set(scenario, "--straggler", "1:2");
    set(scenario, "--straggler", "2:2");
    set(scenario, "--link-fault", "nic:0:0.5");
    set(scenario, "--link-fault", "nic:1:0.5");
    set(scenario, "--link-fault", "nvlink:1:0.5");
    ck_assert(lh_check_faults(scenario, 2, 16, NULL));
    set(scenario, "--link-fault", "nic:1:0.25");
    ck_assert(!lh_check_faults(scenario, 2, 16, &link));
    ck_assert_str_eq(link->message, "--link-fault: nic of node 1 is named twice, with the factors "
                                    "0.5 and 0.25; leave one out");
    set(scenario, "--straggler", "1:2");
    ck_assert(!lh_check_faults(scenario, 2, 16, &slow));
    ck_assert_str_eq(slow->message,
                     "--straggler: rank 1 is named twice, with the factors 2 and 2; leave one out");
}
END_TEST

/* --- lengths ------------------------------------------------------------------------------------
 */

static LhSetup *
setup_of(const LhScenario *scenario)
{
    g_autoptr(GError) error = NULL;
    LhSetup *setup = lh_setup_new(scenario, &error);

    ck_assert_msg(setup != NULL, "%s", error != NULL ? error->message : "no setup");
    return setup;
}

static bool
takes(const LhSchedule *schedule, const LhSetup *setup, uint64_t length)
{
    LhProgramParams p = setup->params;
    g_autoptr(LhProgram) program = NULL;

    p.attention.seq_length = length;
    program = lh_program_new(schedule, &p, NULL);
    return program != NULL;
}

/* Rounds @length for the schedule and asserts that no nearer length is accepted. */
static void
check_rounded(const LhSchedule *schedule, const char *ranks, uint64_t length)
{
    g_autofree char *text = g_strdup_printf("%" G_GUINT64_FORMAT, length);
    g_autoptr(LhScenario) scenario = lh_scenario_new();
    g_autoptr(LhSetup) setup = NULL;
    uint64_t rounded, distance;

    set(scenario, "--schedule", schedule->name);
    set(scenario, "--ranks", ranks);
    set(scenario, "--seq-length", text);
    set(scenario, "--round-seq-length", NULL);
    setup = setup_of(scenario);
    rounded = setup->params.attention.seq_length;
    if (!takes(schedule, setup, rounded))
        return; /* rejected for another reason */
    ck_assert_uint_eq(setup->asked_length, rounded == length ? 0 : length);
    distance = rounded > length ? rounded - length : length - rounded;
    for (uint64_t nearer = 0; nearer < distance; nearer++) {
        ck_assert(!takes(schedule, setup, length + nearer));
        ck_assert(nearer >= length || !takes(schedule, setup, length - nearer));
    }
}

START_TEST(choices_length_is_the_nearest)
{
    static const char *const ranks[] = { "1", "3", "4", "6", "8", "32" };
    static const uint64_t lengths[] = { 1, 2, 95, 1000, 4096, 1000001 };

    for (guint i = 0; lh_schedules[i] != NULL; i++) {
        for (guint r = 0; r < G_N_ELEMENTS(ranks); r++) {
            for (guint n = 0; n < G_N_ELEMENTS(lengths); n++) {
                if (test_takes_of(i + r + n, 3))
                    check_rounded(lh_schedules[i], ranks[r], lengths[n]);
            }
        }
    }
}
END_TEST

/* One length for all schedules, and one error if none of them can split it. */
START_TEST(choices_length_suits_all)
{
    g_autoptr(LhScenario) scenario = lh_scenario_new();
    g_autoptr(LhSetup) odd = NULL;
    g_autoptr(LhSetup) rounded = NULL;
    g_autoptr(GError) error = NULL;

    set(scenario, "--ranks", "128");
    set(scenario, "--seq-length", "1000000");
    odd = setup_of(scenario);
    ck_assert(!lh_seq_length_check(odd, &error));
    ck_assert(g_error_matches(error, LH_ERROR, LH_ERROR_NO));
    ck_assert_str_eq(
        error->message,
        "none of the schedules considered can split a sequence of 1000000 tokens for 128 ranks; "
        "nearest legal lengths: 999936 and 1000192; --round-seq-length takes the "
        "nearest");
    set(scenario, "--round-seq-length", NULL);
    rounded = setup_of(scenario);
    ck_assert(lh_seq_length_check(rounded, NULL));
    ck_assert_uint_eq(rounded->params.attention.seq_length, 999936);
    ck_assert_uint_eq(rounded->asked_length, 1000000);
}
END_TEST

LH_TEST_MAIN("choices", choices_unread_options_are_refused, choices_one_reader_is_enough,
             choices_files_are_for_many_schedules, choices_faults_are_named_once,
             choices_length_is_the_nearest, choices_length_suits_all)
