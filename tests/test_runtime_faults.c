/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Faults that runs must detect, and delays that must not change results.
 */
#include "running.h"
#include "share.h"

#include <string.h>

/* Runs a fault, which must be detected; returns false if it had no target. */
static bool
is_caught(const Case *c)
{
    g_autoptr(LhProgram) program = program_of(c);
    g_autoptr(GError) error = NULL;
    g_autoptr(LhExecuted) executed = NULL;
    g_autofree char *text = text_of(c);

    if (program == NULL)
        return false;
    executed = run_program(c, program, &error);
    if (executed == NULL) {
        ck_assert_msg(g_error_matches(error, LH_ERROR, LH_ERROR_NO), "%s: %s", text,
                      error->message);
        return false;
    }
    ck_assert_msg(!executed->errors.ok, "%s: not found", text);
    return true;
}

/* Runs one mutant in both passes; returns in how many of them it had a target. The backward pass
 * alone takes o and lse from the reference, so that an earlier fault does not hide one in it. */
static unsigned
catch_mutant(const LhSchedule *schedule, uint32_t ranks, int kind)
{
    /* The last rank gathers states behind all its tokens and does not use them. */
    const bool useless = kind == LH_INJECT_STALE_BUFFER && strcmp(schedule->name, "lasp2") == 0;
    unsigned caught = 0;

    for (unsigned pass = LH_PASS_FWD; pass <= (useless ? LH_PASS_FWD : LH_PASS_BWD); pass++) {
        Case c = small_case(schedule, ranks);

        c.wanted.pass = (LhPass)pass;
        c.inject = lh_inject_names[kind];
        caught += is_caught(&c);
    }
    return caught;
}

/* In how many passes the fault must have a target. The rest have special conditions: several
 * calls for the keys of a query, or several key-value heads in one call. */
static unsigned
least_hits(const LhSchedule *schedule, int kind)
{
    if (kind == LH_INJECT_DROP_PAIR || kind == LH_INJECT_MASK_SHIFT)
        return 2;
    if (kind == LH_INJECT_STALE_BUFFER) /* schedules by heads send no message within attention */
        return schedule->placement == LH_PLACE_HEADS  ? 0
               : strcmp(schedule->name, "lasp2") == 0 ? 1
                                                      : 2;
    return kind == LH_INJECT_DUPLICATE_PAIR || strcmp(schedule->name, "ring") == 0 ? 1 : 0;
}

START_TEST(runtime_mutants_fail)
{
    static const uint32_t others[] = { 2, 5, 6, 3, 8, 7 };
    const LhSchedule *schedule = lh_schedules[_i];

    for (int kind = 0; kind < LH_INJECT_MUTANTS; kind++) {
        const unsigned hits = test_takes_of((uint64_t)_i + (uint64_t)kind, 11)
                                  ? catch_mutant(schedule, 4, kind)
                                  : least_hits(schedule, kind);

        ck_assert_msg(hits >= least_hits(schedule, kind), "%s: %s has a target in %u passes",
                      schedule->name, lh_inject_names[kind], hits);
        if (test_takes_of((uint64_t)_i + (uint64_t)kind, 13))
            catch_mutant(schedule, others[(_i + kind) % (int)G_N_ELEMENTS(others)], kind);
    }
}
END_TEST

#define DELAYS 5

START_TEST(runtime_delays_change_nothing)
{
    Case c = small_case(lh_schedules[_i], 4);
    g_autoptr(LhExecuted) first = NULL;

    first = run_case(&c, NULL);
    ck_assert_ptr_nonnull(first);
    for (unsigned seed = 0; seed < test_share(DELAYS); seed++) {
        g_autofree char *inject = g_strdup_printf("delay:%u", (unsigned)_i * DELAYS + seed);
        g_autoptr(LhExecuted) later = NULL;

        c.inject = inject;
        later = run_case(&c, NULL);
        ck_assert_ptr_nonnull(later);
        ck_assert_str_eq(later->digest, first->digest);
    }
}
END_TEST

static Case
case_named(const char *schedule, uint32_t ranks)
{
    return small_case(lh_schedule_find(schedule, NULL), ranks);
}

START_TEST(runtime_repeats_are_equal)
{
    Case c = case_named("dfa-balanced", 4);
    g_autoptr(LhExecuted) executed = NULL;

    c.repeat = 20;
    executed = run_case(&c, NULL);
    ck_assert_ptr_nonnull(executed);
    ck_assert_uint_eq(executed->repeats, 20);
    ck_assert(executed->same_bits);
}
END_TEST

/* Rank 1 never sends: the message reports that rank 2 waits for it. */
START_TEST(runtime_stall_names_rank_op_peer_slot)
{
    Case c = case_named("ring", 3);
    g_autoptr(GError) error = NULL;
    g_autoptr(LhExecuted) executed = NULL;

    c.inject = "stall:1";
    c.deadline_s = 5; /* the first steps take milliseconds */
    executed = run_case(&c, &error);
    ck_assert_ptr_null(executed);
    ck_assert(g_error_matches(error, LH_WAITED, LH_ERROR_RUNTIME));
    ck_assert_msg(strstr(error->message, "rank 2, op 4 (exchange, stream comm): receives from rank "
                                         "1, slot fwd_kv0") != NULL,
                  "%s", error->message);
    ck_assert_msg(strstr(error->message, "rank 1, op 4 (exchange, stream comm): sends to rank 2, "
                                         "slot kv") != NULL,
                  "%s", error->message);
}
END_TEST

/* A fault has its effect beside any other faults, in any order. */
START_TEST(runtime_faults_add_up)
{
    static const char *const faults[] = {
        "drop-pair",       "drop-pair,delay:1",    "delay:1,drop-pair",
        "delay:1,delay:2", "mask-shift,drop-pair", "drop-pair,mask-shift",
    };
    LhExecuted *executed[G_N_ELEMENTS(faults)] = { NULL };
    Case c = case_named("ring", 3);

    for (guint i = 0; i < G_N_ELEMENTS(faults); i++) {
        c.inject = faults[i];
        executed[i] = run_case(&c, NULL);
        ck_assert_ptr_nonnull(executed[i]);
        ck_assert_int_eq(executed[i]->errors.ok, i == 3);
    }
    ck_assert_str_eq(executed[1]->digest, executed[0]->digest);
    ck_assert_str_eq(executed[2]->digest, executed[0]->digest);
    ck_assert_str_eq(executed[4]->digest, executed[5]->digest);
    ck_assert_str_ne(executed[4]->digest, executed[0]->digest);
    for (guint i = 0; i < G_N_ELEMENTS(faults); i++)
        lh_executed_free(executed[i]);
}
END_TEST

START_TEST(runtime_injections_are_checked)
{
    Case c = case_named("ring", 3);
    static const char *const bad[] = {
        "drop",         "stall",      "stall:3",         "stall:x",   "delay",
        "mask-shift:1", "drop-pair,", "stall:1,stall:1", "delay:1,x",
    };

    for (unsigned i = 0; i < G_N_ELEMENTS(bad); i++) {
        g_autoptr(GError) error = NULL;

        c.inject = bad[i];
        ck_assert_ptr_null(run_case(&c, &error));
        ck_assert_msg(g_error_matches(error, LH_ERROR, LH_ERROR_USAGE), "%s", error->message);
    }
}
END_TEST

int
main(void)
{
    const TTest *const loops[] = { runtime_mutants_fail, runtime_delays_change_nothing };
    const TTest *const tests[] = {
        runtime_repeats_are_equal,
        runtime_faults_add_up,
        runtime_stall_names_rank_op_peer_slot,
        runtime_injections_are_checked,
    };

    return run_suite("runtime_faults", loops, G_N_ELEMENTS(loops), tests, G_N_ELEMENTS(tests));
}
