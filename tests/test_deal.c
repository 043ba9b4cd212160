/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Messages between processes that search together, on a control plane with contents set by the
 * tests.
 */
#include "base/error.h"
#include "planner/distributed_search.h"
#include "run_tests.h"

#include <string.h>

#define TURNS 7
#define PROCESSES 3

/* The messages of the other processes, by process; the entry of the process under test is its
 * own. */
typedef struct {
    const char *said[PROCESSES];
    uint32_t rank;
    char *spoken; /* sent by the process under test; the test frees it */
} Table;

static bool
share(void *control, const GByteArray *bytes, gsize limit, GByteArray *all, GError **error)
{
    Table *table = control;

    (void)error;
    g_free(table->spoken);
    table->spoken = g_strdup((const char *)bytes->data);
    for (uint32_t r = 0; r < PROCESSES; r++) {
        if (r == table->rank)
            g_byte_array_append(all, bytes->data, bytes->len);
        else if (table->said[r] != NULL)
            g_byte_array_append(all, (const guint8 *)table->said[r],
                                (guint)strlen(table->said[r]) + 1);
    }
    ck_assert_uint_le(bytes->len, limit);
    return true;
}

static const LhControl fake = { .name = "fake", .share = share };

static LhProcesses
processes_of(Table *table)
{
    return (LhProcesses){
        .control = { .table = &fake, .state = table, .place = { table->rank, 1 } },
        .count = PROCESSES,
    };
}

static void
clear(LhPlanOutcome *outcomes)
{
    for (guint i = 0; i < TURNS; i++)
        g_free(outcomes[i].reason);
}

static void
count_turns(const LhProcesses *processes, guint turns, guint *seen)
{
    g_autoptr(GArray) mine = lh_distributed_search(processes, turns);

    for (guint i = 0; i < mine->len; i++) {
        ck_assert_uint_lt(g_array_index(mine, guint, i), turns);
        seen[g_array_index(mine, guint, i)]++;
    }
}

START_TEST(every_turn_is_of_one_process)
{
    for (guint turns = 0; turns < 20; turns++) {
        guint seen[20] = { 0 };

        for (uint32_t r = 0; r < PROCESSES; r++) {
            Table table = { .rank = r };
            const LhProcesses p = processes_of(&table);

            count_turns(&p, turns, seen);
        }
        for (guint i = 0; i < turns; i++)
            ck_assert_uint_eq(seen[i], 1);
        count_turns(NULL, turns, seen);
        for (guint i = 0; i < turns; i++)
            ck_assert_uint_eq(seen[i], 2);
    }
}
END_TEST

#define QUIET "{\"interrupted\":false,\"limit_bytes\":0}\n"

static void
fill(LhPlanOutcome *outcomes)
{
    outcomes[1] = (LhPlanOutcome){ .state = LH_POINT_RAN,
                                   .close = true,
                                   .time_ps = INT64_C(1234567890123456),
                                   .peak_bytes = UINT64_C(987654321987654321),
                                   .time_error = { .below = 0.1, .above = 0.3 } };
    for (guint i = 0; i < LH_ERROR_PARTS; i++)
        outcomes[1].parts.part[i] = 1.0 / (i + 3);
    outcomes[4] =
        (LhPlanOutcome){ .state = LH_POINT_REFUSED, .reason = g_strdup("a \"line\"\nand 7") };
    outcomes[6] = (LhPlanOutcome){ .state = LH_POINT_UNFIT, .peak_bytes = 3 };
}

static void
check_equal(const LhPlanOutcome *a, const LhPlanOutcome *b)
{
    ck_assert_int_eq(a->state, b->state);
    ck_assert(a->close == b->close);
    ck_assert_int_eq(a->time_ps, b->time_ps);
    ck_assert_uint_eq(a->peak_bytes, b->peak_bytes);
    ck_assert(a->time_error.below == b->time_error.below);
    ck_assert(a->time_error.above == b->time_error.above);
    for (guint i = 0; i < LH_ERROR_PARTS; i++)
        ck_assert(a->parts.part[i] == b->parts.part[i]);
    ck_assert_pstr_eq(a->reason, b->reason);
}

/* An outcome arrives at another process with every field. */
START_TEST(outcomes_travel_whole)
{
    Table first = { .said = { NULL, QUIET, QUIET }, .rank = 0 }, second = { .rank = 1 };
    const LhProcesses telling = processes_of(&first), hearing = processes_of(&second);
    LhPlanOutcome told[TURNS] = { { .state = LH_POINT_OPEN } };
    LhPlanOutcome heard[TURNS] = { { .state = LH_POINT_OPEN } };
    static const guint turns[] = { 1, 4, 6 };
    g_autoptr(GArray) some = g_array_new(FALSE, FALSE, sizeof(guint));
    g_autoptr(GArray) none = g_array_new(FALSE, FALSE, sizeof(guint));
    LhDistributedSearch deal = { .limit_bytes = 80 };

    g_array_append_vals(some, turns, G_N_ELEMENTS(turns));
    fill(told);
    ck_assert(lh_distributed_search_share(&telling, told, TURNS, some, &deal, NULL));
    ck_assert(!deal.interrupted && deal.limit_bytes == 80);
    second.said[0] = first.spoken;
    second.said[2] = "{\"interrupted\":true,\"limit_bytes\":90}\n";
    deal = (LhDistributedSearch){ .limit_bytes = 5 };
    ck_assert(lh_distributed_search_share(&hearing, heard, TURNS, none, &deal, NULL));
    ck_assert(deal.interrupted && deal.limit_bytes == 90);
    for (guint i = 0; i < TURNS; i++)
        check_equal(&heard[i], &told[i]);
    clear(told);
    clear(heard);
    g_free(first.spoken);
    g_free(second.spoken);
}
END_TEST

#define POINT "\"close\":false,\"time_ps\":1,\"peak_bytes\":2"

/* A message that no process of this program sends ends the search with an error, without leaks. */
START_TEST(what_cannot_be_read_is_named)
{
    static const char *const hostile[] = {
        NULL, /* a process without a message */
        "{",
        "null\n",
        "{\"interrupted\":false}\n",
        "{\"interrupted\":1,\"limit_bytes\":0}\n",
        QUIET "{\"point\":7,\"state\":\"open\"," POINT "}\n",
        QUIET "{\"point\":-1,\"state\":\"open\"," POINT "}\n",
        QUIET "{\"point\":1,\"state\":\"best\"," POINT "}\n",
        QUIET "{\"point\":1,\"state\":\"refused\"," POINT "}\n",
        QUIET "{\"point\":1,\"state\":\"simulated\"," POINT "}\n",
        QUIET "{\"point\":1,\"state\":\"refused\",\"reason\":\"x\"," POINT "}\n{\"point\":9}\n",
        QUIET QUIET,
    };

    for (guint i = 0; i < G_N_ELEMENTS(hostile); i++) {
        Table table = { .said = { NULL, QUIET, hostile[i] }, .rank = 0 };
        const LhProcesses p = processes_of(&table);
        g_autoptr(GArray) none = g_array_new(FALSE, FALSE, sizeof(guint));
        LhPlanOutcome outcomes[TURNS] = { { .state = LH_POINT_OPEN } };
        LhDistributedSearch deal = { .interrupted = false };
        GError *error = NULL;

        ck_assert(!lh_distributed_search_share(&p, outcomes, TURNS, none, &deal, &error));
        ck_assert_int_eq(error->code, LH_ERROR_RUNTIME);
        ck_assert_msg(hostile[i] == NULL || strstr(error->message, "process 2") != NULL, "%s",
                      error->message);
        g_error_free(error);
        clear(outcomes);
        g_free(table.spoken);
    }
}
END_TEST

LH_TEST_MAIN("deal", every_turn_is_of_one_process, outcomes_travel_whole,
             what_cannot_be_read_is_named)
