/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Comparisons by several threads: the result does not depend on their number, even if schedules
 * fail, are skipped by a factor, or are interrupted.
 */
#include "cli/compare_live.h"
#include "cli/interrupt.h"
#include "compare/compare.h"
#include "report/text/describe_comparison.h"
#include "run_tests.h"
#include "setups.h"
#include "sim_world.h"

#include <math.h>
#include <signal.h>

/* Some schedules are rejected, and one needs more memory than available. */
#define CASE "\"cluster\": \"dfa-2node\", \"seq_length\": \"192K\""
/* Whatever sends over the failed NIC fails at the time of its first message there. */
#define FAULTY                                                                                     \
    "\"cluster\": \"dfa-2node\", \"seq_length\": \"64K\","                                         \
    " \"ranks\": 16, \"link_fault\": [{\"tier\": \"nic\", \"node\": 1, \"factor\": 0}]"

static LhComparison *
compare(const Case *c, guint jobs, double within)
{
    const LhCompareOptions options = { .task.jobs = jobs, .within = within };
    LhComparison *comparison = lh_compare(c->setup, &options, NULL);

    ck_assert_ptr_nonnull(comparison);
    ck_assert(!comparison->interrupted);
    return comparison;
}

static char *
printed(const Case *c, const LhComparison *comparison)
{
    g_autoptr(LhTable) table = lh_describe_comparison(c->setup, comparison);
    GString *out = g_string_new(NULL);

    lh_table_print(table, LH_FORMAT_CSV, out);
    lh_table_print(table, LH_FORMAT_TABLE, out);
    lh_describe_winner(c->setup, comparison, out);
    return g_string_free(out, FALSE);
}

static LhCompareRow *
row_named(const LhComparison *c, const char *name)
{
    for (guint i = 0; i < c->rows->len; i++) {
        LhCompareRow *row = g_ptr_array_index(c->rows, i);

        if (g_str_equal(row->name, name))
            return row;
    }
    g_assert_not_reached();
}

static guint
count(const LhComparison *c, LhRowState state)
{
    guint n = 0;

    for (guint i = 0; i < c->rows->len; i++)
        n += ((LhCompareRow *)g_ptr_array_index(c->rows, i))->state == state;
    return n;
}

/* ---- the number of threads ---- */

static void
check_same(const char *text, double within)
{
    Case c = case_of(text);
    g_autoptr(LhComparison) one = compare(&c, 1, within);
    g_autofree char *expected = printed(&c, one);

    for (guint jobs = 0; jobs <= 8; jobs++) {
        g_autoptr(LhComparison) several = compare(&c, jobs, within);
        g_autofree char *found = printed(&c, several);

        ck_assert_str_eq(found, expected);
    }
    case_clear(&c);
}

START_TEST(comparisons_do_not_depend_on_threads)
{
    check_same(CASE, 0);
    check_same(CASE, 1.3);
    check_same(FAULTY, 0);
    check_same(FAULTY, 1);
}
END_TEST

START_TEST(comparisons_have_rows_of_all_kinds)
{
    Case c = case_of(CASE), faulty = case_of(FAULTY);
    g_autoptr(LhComparison) comparison = compare(&c, 3, 1.3), failing = compare(&faulty, 3, 0);

    ck_assert_uint_ge(count(comparison, LH_ROW_RAN), 2);
    ck_assert_uint_ge(count(comparison, LH_ROW_LEFT_OUT), 2);
    ck_assert_uint_ge(count(failing, LH_ROW_FAILED), 2);
    case_clear(&c);
    case_clear(&faulty);
}
END_TEST

/* ---- skipped schedules ---- */

/* Exactly the schedules slower than the factor are skipped; the others' results do not depend on
 * it. */
START_TEST(slow_schedules_are_left_out)
{
    static const double factors[] = { 1, 1.2, 1.5, 2, 3, 5, 100 };
    Case c = case_of(CASE);
    g_autoptr(LhComparison) all = compare(&c, 2, 0);
    const LhTime best = ((LhCompareRow *)g_ptr_array_index(all->rows, 0))->result->makespan_ps;

    for (guint f = 0; f < G_N_ELEMENTS(factors); f++) {
        g_autoptr(LhComparison) some = compare(&c, 2, factors[f]);

        for (guint i = 0; i < all->rows->len; i++) {
            const LhCompareRow *row = g_ptr_array_index(all->rows, i);
            const LhCompareRow *same = row_named(some, row->name);
            const bool slow =
                row->result != NULL && (double)row->result->makespan_ps > factors[f] * (double)best;

            ck_assert_int_eq(same->state, slow ? LH_ROW_LEFT_OUT : row->state);
            ck_assert((same->result == NULL) == (slow || row->result == NULL));
            ck_assert(same->result == NULL ||
                      same->result->makespan_ps == row->result->makespan_ps);
            ck_assert((same->reason != NULL) == (same->result == NULL));
        }
    }
    case_clear(&c);
}
END_TEST

/* A limit ends a run as soon as its clock exceeds it, and no run within it. */
START_TEST(runs_keep_to_their_limit)
{
    Script script = SCRIPT({ .rank = 0, .kind = LH_OP_COMPUTE, .time_ps = 10 * US },
                           { .rank = 0, .kind = LH_OP_COMPUTE, .time_ps = 20 * US },
                           { .rank = 0, .kind = LH_OP_COMPUTE, .time_ps = 50 * US });
    const LhTime ends[] = { 10 * US, 10 * US, 30 * US, 80 * US, 80 * US };
    const LhTime limits[] = { 0, 10 * US - 1, 29 * US, 79 * US, 80 * US };

    for (guint i = 0; i < G_N_ELEMENTS(limits); i++) {
        const _Atomic LhTime limit_ps = limits[i];
        g_autoptr(LhSimResult) result = NULL;
        LhTime ended_ps = -1;
        World w;

        script_init(&w, &script, 1);
        w.params.limit_ps = &limit_ps;
        w.params.ended_ps = &ended_ps;
        result = world_try(&w, NULL);
        ck_assert((result != NULL) == (limits[i] >= 80 * US));
        ck_assert_int_eq(ended_ps, ends[i]);
        world_clear(&w);
    }
}
END_TEST

/* ---- interruptions ---- */

typedef struct {
    guint calls, calls_max, came;
} Stop;

static bool
stop_after(void *data, const LhProgress *at)
{
    Stop *stop = data;

    (void)at;
    return stop->calls++ < stop->calls_max;
}

static void
count_came(void *data, const LhCompareRow *row)
{
    Stop *stop = data;

    ck_assert_ptr_nonnull(row->result);
    stop->came++;
}

/* Completed rows are as without the interruption; the winner has no bottleneck. */
START_TEST(interruptions_keep_what_is_done)
{
    Case c = case_of(CASE);
    g_autoptr(LhComparison) all = compare(&c, 1, 0);

    for (guint calls = 0; calls < 8; calls++) {
        Stop stop = { .calls_max = calls };
        const LhTask task = { .jobs = 1 + calls % 3, .progress = stop_after, .data = &stop };
        const LhCompareOptions options = { .task = task, .came = count_came, .came_data = &stop };
        g_autoptr(LhComparison) some = lh_compare(c.setup, &options, NULL);
        guint done = 0;

        ck_assert(some->interrupted);
        ck_assert_ptr_null(some->bound);
        ck_assert_uint_ge(count(some, LH_ROW_INTERRUPTED), 1);
        for (guint i = 0; i < all->rows->len; i++) {
            const LhCompareRow *row = g_ptr_array_index(all->rows, i);
            const LhCompareRow *same = row_named(some, row->name);

            if (same->state == LH_ROW_INTERRUPTED)
                continue;
            ck_assert_int_eq(same->state, row->state);
            done += same->result != NULL;
            if (same->result != NULL)
                ck_assert_int_eq(same->result->makespan_ps, row->result->makespan_ps);
        }
        ck_assert_uint_eq(done, stop.came);
        if (calls == 0)
            ck_assert_uint_eq(done, 0);
    }
    case_clear(&c);
}
END_TEST

/* Every schedule is complete, but not the winner's bottleneck. */
START_TEST(interruptions_say_what_is_missing)
{
    Case c = case_of(CASE);
    Stop count_calls = { .calls_max = UINT32_MAX }, stop = { 0 };
    const LhCompareOptions counting = { .task = { .progress = stop_after, .data = &count_calls } };
    const LhCompareOptions stopping = { .task = { .progress = stop_after, .data = &stop } };
    g_autoptr(LhComparison) all = lh_compare(c.setup, &counting, NULL), most = NULL;
    g_autofree char *text = NULL;

    ck_assert(!all->interrupted);
    stop.calls_max = count_calls.calls - 1; /* the last call is for the winner's bottleneck */
    most = lh_compare(c.setup, &stopping, NULL);
    ck_assert(most->interrupted);
    ck_assert_uint_eq(count(most, LH_ROW_INTERRUPTED), 0);
    text = printed(&c, most);
    ck_assert_ptr_nonnull(strstr(text, "Interrupted: all schedules are done"));
    ck_assert_ptr_null(strstr(text, "bound by"));
    case_clear(&c);
}
END_TEST

static volatile sig_atomic_t ended;

static void
end_process(int number)
{
    ended = number;
}

/* Either signal requests a stop; the next one of either kind gets its previous handler. */
START_TEST(signals_ask_to_stop)
{
    static const int numbers[] = { SIGINT, SIGTERM };

    for (int first = 0; first < 2; first++)
        for (int second = 0; second < 2; second++) {
            const LhProgress at = { .what = "ring", .events = 1, .now_ps = 1 };
            LhCompareLive live;

            for (int i = 0; i < 2; i++)
                signal(numbers[i], end_process);
            ended = 0;
            lh_compare_live_start(&live, 0);
            ck_assert(lh_compare_live_progress(&live, &at));
            raise(numbers[first]);
            ck_assert(!lh_compare_live_progress(&live, &at));
            lh_interrupt_listen(); /* as a command's next stage may */
            ck_assert(lh_interrupted());
            ck_assert_int_eq(ended, 0);
            raise(numbers[second]);
            ck_assert_int_eq(ended, numbers[second]);
            lh_compare_live_end(&live);
            lh_interrupt_end();
            ck_assert(!lh_interrupted());
            for (int i = 0; i < 2; i++)
                ck_assert(signal(numbers[i], SIG_DFL) == end_process);
        }
}
END_TEST

/* Signals ignored at startup, as for a shell's background jobs. */
START_TEST(ignored_signals_stay_ignored)
{
    signal(SIGINT, SIG_IGN);
    lh_interrupt_listen();
    raise(SIGINT);
    ck_assert(!lh_interrupted());
    raise(SIGTERM);
    ck_assert(lh_interrupted());
    lh_interrupt_end();
    ck_assert(signal(SIGINT, SIG_DFL) == SIG_IGN);
}
END_TEST

LH_TEST_MAIN("compare_pool", comparisons_do_not_depend_on_threads,
             comparisons_have_rows_of_all_kinds, slow_schedules_are_left_out,
             runs_keep_to_their_limit, interruptions_keep_what_is_done,
             interruptions_say_what_is_missing, signals_ask_to_stop, ignored_signals_stay_ignored)
