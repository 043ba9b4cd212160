/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The critical path of executed runs: of handwritten records with a known path; of records of
 * simulated runs, over schedules and steps; and of runs on real data.
 */
#include "built.h"
#include "compare/compare.h"
#include "critical_path/executed_path.h"
#include "execute/execute.h"
#include "path_events.h"
#include "run_tests.h"
#include "setups.h"
#include "share.h"

/* --- invariants of every path ----------------------------------------------------------------- */

static LhTime
sum_of_shares(const LhCritical *c)
{
    LhTime sum_ps = 0;

    for (guint i = 0; i < c->resources->len; i++)
        sum_ps += g_array_index(c->resources, LhPathShare, i).time_ps;
    return sum_ps;
}

static LhTime
sum_of_phases(const LhCritical *c)
{
    LhTime sum_ps = 0;

    for (int phase = 0; phase < LH_PHASES; phase++)
        sum_ps += c->phases_ps[phase];
    return sum_ps;
}

static LhTime
sum_of_ranks(const LhCritical *c)
{
    LhTime sum_ps = 0;

    for (guint r = 0; r < c->ranks_ps->len; r++)
        sum_ps += g_array_index(c->ranks_ps, LhTime, r);
    return sum_ps;
}

/* Asserts that steps are contiguous from 0 to the makespan, their shares add up to it, and ops on
 * the path have no slack. */
static void
check_path(const LhExecutedPath *path, LhTime makespan_ps, const char *what)
{
    RunEvents run = run_events_of(path->precedence);
    LhTime at_ps = 0, slack_ps;

    check_events(&run, what);
    for (guint i = 0; i < path->path->len; i++) {
        const LhPathStep *step = &g_array_index(path->path, LhPathStep, i);

        ck_assert_msg(step->from_ps == at_ps && step->to_ps > at_ps, "%s: step %u", what, i);
        at_ps = step->to_ps;
        if (step->kind == LH_STEP_HOST)
            continue;
        ck_assert(run_events_slack(&run, step->rank, step->op, &slack_ps));
        ck_assert_msg(slack_ps == 0, "%s: op %u of rank %u", what, step->op, step->rank);
    }
    ck_assert_msg(at_ps == makespan_ps, "%s: %" G_GINT64_FORMAT " of %" G_GINT64_FORMAT, what,
                  at_ps, makespan_ps);
    ck_assert_int_eq(sum_of_shares(path->critical), makespan_ps);
    ck_assert_int_eq(sum_of_phases(path->critical), makespan_ps);
    ck_assert_int_eq(sum_of_ranks(path->critical), makespan_ps);
    ck_assert(!path->critical->played);
    run_events_clear(&run);
}

static void
collect(void *data, const LhTimelineRecord *record)
{
    if (record->kind == LH_OP_COMPUTE || record->kind == LH_OP_EXCHANGE ||
        record->kind == LH_OP_COLLECTIVE)
        g_array_append_vals(data, record, 1);
}

static LhExecutedPath *
path_of(const LhSetup *setup, const LhProgram *program, GArray *records, LhTime makespan_ps,
        const char *what)
{
    LhExecutedPath *path;

    g_array_sort(records, lh_timeline_by_rank_and_op);
    path = lh_executed_path_new(setup, program, records, makespan_ps);
    check_path(path, makespan_ps, what);
    return path;
}

/* --- by hand ------------------------------------------------------------------------------------
 */

enum { X, Y, TEMP };

static Built
begin(uint32_t ranks)
{
    const LhProgramParams params = built_params(ranks);
    Built b = built_new("hand", &params);
    const LhSlotParams slots[] = {
        [X] = { "x", LH_TENSOR_HIDDEN, LH_SLOT_INPUT, LH_DTYPE_FP32, .parts = 1, .part_bytes = 64 },
        [Y] = { "y", LH_TENSOR_HIDDEN, LH_SLOT_OUTPUT, LH_DTYPE_FP32, .parts = 1,
                .part_bytes = 64 },
        [TEMP] = { "temp", LH_TENSOR_HIDDEN, LH_SLOT_TEMP, LH_DTYPE_FP32, .parts = 1,
                   .part_bytes = 64 },
    };

    for (unsigned i = 0; i < G_N_ELEMENTS(slots); i++)
        lh_program_add_slot(b.program, slots[i]);
    lh_program_add_stream(b.program, "compute", LH_STREAM_COMPUTE);
    lh_program_add_stream(b.program, "comm", LH_STREAM_COMM);
    return b;
}

static uint32_t
kernel(LhEmitter *e)
{
    const LhKernelArgs args = { .elements.count = 16 };
    const uint32_t id = lh_emit_compute(e, 0, LH_KERNEL_ID_residual, &args);

    lh_emit_operand(e, X, 0, 1);
    lh_emit_operand(e, X, 0, 1);
    lh_emit_operand(e, Y, 0, 1);
    return id;
}

static uint32_t
message(LhEmitter *e, bool send, uint32_t peer, uint16_t slot)
{
    const uint32_t id = lh_emit_exchange(e, 1);

    lh_emit_part(e, send, peer, 0, 64);
    lh_emit_region(e, slot, 0, 1);
    return id;
}

/* Measured times of an op, ps. */
typedef struct {
    uint32_t rank, op;
    uint8_t kind;
    LhTime issued, start, end;
} Seen;

static GArray *
records_of(const Seen *seen, guint count)
{
    GArray *records = g_array_new(FALSE, FALSE, sizeof(LhTimelineRecord));

    for (guint i = 0; i < count; i++) {
        const LhTimelineRecord record = { .rank = seen[i].rank,
                                          .op = seen[i].op,
                                          .kind = seen[i].kind,
                                          .stream = seen[i].kind == LH_OP_COMPUTE ? 0 : 1,
                                          .issued_ps = seen[i].issued,
                                          .start_ps = seen[i].start,
                                          .end_ps = seen[i].end };

        g_array_append_val(records, record);
    }
    return records;
}

/* A path as text, "0-5 host 0:0; 5-105 compute 0:0; ...": rank and op of each step; messages also
 * name the end that began last. */
static char *
text_of(const GArray *path)
{
    GString *text = g_string_new(NULL);

    for (guint i = 0; i < path->len; i++) {
        const LhPathStep *step = &g_array_index(path, LhPathStep, i);
        g_autofree char *name = lh_resource_name(step->kind, step->tiers);

        g_string_append_printf(text, "%s%d-%d %s %u:%u", i > 0 ? "; " : "", (int)step->from_ps,
                               (int)step->to_ps, name, step->rank, step->op);
        if (step->peer != step->rank)
            g_string_append_printf(text, " from %u", step->peer);
    }
    return g_string_free(text, FALSE);
}

static void
check_hand(LhProgram *program, const Seen *seen, guint count, LhTime makespan_ps,
           const char *expected, LhExecutedPath **kept)
{
    Case c = case_of("\"cluster\": \"dgx-a100-80g:1\"");
    g_autoptr(GArray) records = records_of(seen, count);
    LhExecutedPath *path = path_of(c.setup, program, records, makespan_ps, expected);
    g_autofree char *text = text_of(path->path);

    ck_assert_str_eq(text, expected);
    if (kept != NULL)
        *kept = path;
    else
        lh_executed_path_free(path);
    case_clear(&c);
    lh_program_free(program);
}

/* Rank 1 waits for the message of rank 0's kernel, long after its own kernel. */
static LhProgram *
one_message(void)
{
    Built b = begin(2);
    uint32_t before;

    before = kernel(&b.emitters[0]);
    message(&b.emitters[0], true, 1, Y);
    lh_emit_after(&b.emitters[0], before);
    lh_emit_alloc(&b.emitters[1], TEMP);
    kernel(&b.emitters[1]);
    before = message(&b.emitters[1], false, 0, TEMP);
    kernel(&b.emitters[1]);
    lh_emit_after(&b.emitters[1], before);
    return built_end(&b);
}

START_TEST(executed_path_goes_where_the_last_came_from)
{
    static const Seen seen[] = {
        { 0, 0, LH_OP_COMPUTE, 3, 5, 105 },    { 0, 1, LH_OP_EXCHANGE, 4, 110, 150 },
        { 1, 1, LH_OP_COMPUTE, 6, 7, 47 },     { 1, 2, LH_OP_EXCHANGE, 8, 9, 160 },
        { 1, 3, LH_OP_COMPUTE, 10, 162, 200 },
    };
    LhExecutedPath *path;
    RunEvents run;
    LhTime slack_ps;

    check_hand(one_message(), seen, G_N_ELEMENTS(seen), 203,
               "0-3 host 0:0; 3-5 host 0:0; 5-105 compute 0:0; 105-110 host 0:1; "
               "110-160 nvlink 1:2 from 0; 160-162 host 1:3; 162-200 compute 1:3; "
               "200-203 host 1:3",
               &path);
    run = run_events_of(path->precedence);
    /* Slack of rank 1's first kernel: the next op of its stream began 2 ps after the message. */
    ck_assert(run_events_slack(&run, 1, 1, &slack_ps));
    ck_assert_int_eq(slack_ps, 160 - 47);
    ck_assert(run_events_slack(&run, 0, 1, &slack_ps));
    ck_assert_int_eq(slack_ps, 200 - 150);
    run_events_clear(&run);
    ck_assert_int_eq(path->critical->by_op->len, 3);
    ck_assert_int_eq(g_array_index(path->critical->by_op, LhSpeedUp, 0).path_ps, 100);
    lh_executed_path_free(path);
}
END_TEST

/* The message precedes its receiver, which therefore determines the time. */
START_TEST(executed_path_stays_with_a_late_receiver)
{
    static const Seen seen[] = {
        { 0, 0, LH_OP_COMPUTE, 1, 2, 20 },    { 0, 1, LH_OP_EXCHANGE, 1, 20, 95 },
        { 1, 1, LH_OP_COMPUTE, 2, 4, 60 },    { 1, 2, LH_OP_EXCHANGE, 70, 80, 90 },
        { 1, 3, LH_OP_COMPUTE, 71, 90, 100 },
    };

    check_hand(one_message(), seen, G_N_ELEMENTS(seen), 100,
               "0-2 host 1:1; 2-70 host 1:2; 70-80 host 1:2; 80-90 nvlink 1:2; "
               "90-100 compute 1:3",
               NULL);
}
END_TEST

/* On rank 1's clock, rank 0 sends only after the message has arrived, begins before the run, and
 * ends after it. */
START_TEST(executed_path_bears_clocks_that_differ)
{
    static const Seen seen[] = {
        { 0, 0, LH_OP_COMPUTE, -9, -4, 50 }, { 0, 1, LH_OP_EXCHANGE, -8, 70, 250 },
        { 1, 1, LH_OP_COMPUTE, 2, 1, 10 },   { 1, 2, LH_OP_EXCHANGE, 5, 6, 60 },
        { 1, 3, LH_OP_COMPUTE, 6, 60, 90 },
    };

    check_hand(one_message(), seen, G_N_ELEMENTS(seen), 200,
               "0-50 compute 0:0; 50-70 host 0:1; 70-200 nvlink 0:1", NULL);
}
END_TEST

/* The host issues the second kernel after a sync on a message longer than the first kernel; the
 * other rank's message begins last. */
START_TEST(executed_path_goes_through_syncs)
{
    static const Seen seen[] = {
        { 0, 0, LH_OP_COMPUTE, 1, 2, 30 },
        { 0, 1, LH_OP_EXCHANGE, 1, 2, 50 },
        { 0, 3, LH_OP_COMPUTE, 55, 56, 80 },
        { 1, 1, LH_OP_EXCHANGE, 9, 40, 49 },
    };
    Built b = begin(2);

    kernel(&b.emitters[0]);
    message(&b.emitters[0], true, 1, X);
    lh_emit_sync(&b.emitters[0]);
    kernel(&b.emitters[0]);
    lh_emit_alloc(&b.emitters[1], TEMP);
    message(&b.emitters[1], false, 0, TEMP);
    check_hand(built_end(&b), seen, G_N_ELEMENTS(seen), 81,
               "0-9 host 1:1; 9-40 host 1:1; 40-50 nvlink 0:1 from 1; 50-55 host 0:3; "
               "55-56 host 0:3; 56-80 compute 0:3; 80-81 host 0:3",
               NULL);
}
END_TEST

/* All wait for the last member. */
START_TEST(executed_path_goes_to_the_last_member)
{
    Seen seen[8];
    Built b = begin(4);

    for (uint32_t r = 0; r < 4; r++) {
        const LhRegion x = { X, 0, 1 }, y = { Y, 0, 1 };
        const uint32_t before = kernel(&b.emitters[r]);

        lh_emit_collective(&b.emitters[r], 1, LH_COLL_ALL_REDUCE, (LhGroup){ 0, 1, 4, 1, 1 });
        lh_emit_tensor(&b.emitters[r], x, y);
        lh_emit_after(&b.emitters[r], before);
        seen[2 * r] = (Seen){ r, 0, LH_OP_COMPUTE, 1, 2, 10 + 10 * (r ^ 1) };
        seen[2 * r + 1] =
            (Seen){ r, 1, LH_OP_COLLECTIVE, 2, 11 + 10 * (r ^ 1), 70 + (r == 3 ? 5 : 0) };
    }
    check_hand(built_end(&b), seen, G_N_ELEMENTS(seen), 75,
               "0-1 host 2:0; 1-2 host 2:0; 2-40 compute 2:0; 40-41 host 2:1; "
               "41-75 nvlink 3:1 from 2",
               NULL);
}
END_TEST

#define MANY (LH_HOST_WINDOW + 3)

/* The host issues op 1025 when op 0 is complete; the rank's op 0 is the only late one. */
START_TEST(executed_path_goes_through_the_window)
{
    g_autoptr(GArray) seen = g_array_new(FALSE, FALSE, sizeof(Seen));
    Built b = begin(1);

    for (uint32_t i = 0; i < MANY; i++) {
        const bool late = i > LH_HOST_WINDOW;
        const LhTime issued = late ? 5000 + i : 1 + i;
        const Seen one = {
            0, i, LH_OP_COMPUTE, issued, 2000 + i + (late ? 4000 : 0), 2001 + i + (late ? 4000 : 0)
        };

        kernel(&b.emitters[0]);
        g_array_append_val(seen, one);
    }
    g_array_index(seen, Seen, 0).end = 4000; /* on a device that runs several kernels at a time */
    check_hand(built_end(&b), (const Seen *)(const void *)seen->data, seen->len, 7100,
               "0-1 host 0:0; 1-2000 host 0:0; 2000-4000 compute 0:0; 4000-6025 host 0:1025; "
               "6025-7025 host 0:1025; 7025-7026 compute 0:1025; "
               "7026-7027 compute 0:1026; 7027-7100 host 0:1026",
               NULL);
}
END_TEST

/* --- schedules and steps ------------------------------------------------------------------------
 */

/* Simulated records in the form of executed ones. */
static bool
check_simulated(const LhSetup *setup, const LhSchedule *schedule)
{
    g_autoptr(GArray) records = g_array_new(FALSE, FALSE, sizeof(LhTimelineRecord));
    const LhHooks hooks = { .timeline = collect, .timeline_data = records, .path = true };
    g_autoptr(LhCompareRow) row = lh_compare_run(setup, schedule, &hooks);
    LhExecutedPath *path;

    if (row->result == NULL)
        return false;
    path = path_of(setup, row->program, records, row->result->makespan_ps, schedule->name);
    lh_executed_path_free(path);
    return true;
}

static guint
check_schedules(const char *members)
{
    Case c = case_of(members);
    guint ran = 0;

    for (guint k = 0; k < c.setup->schedules->len; k++)
        ran += test_takes(k) && check_simulated(c.setup, g_ptr_array_index(c.setup->schedules, k));
    case_clear(&c);
    return ran;
}

START_TEST(executed_path_fills_the_makespan_of_every_schedule)
{
    guint ran = 0;

    ran += check_schedules("\"cluster\": \"hgx-h100:2\", \"seq_length\": \"32K\", \"ranks\": 8");
    ran += check_schedules("\"cluster\": \"dfa-2node\", \"seq_length\": \"16K\", \"pass\": \"fwd\","
                           " \"network\": \"alpha-beta\"");
    ran += check_schedules("\"cluster\": \"hgx-h100:1\", \"seq_length\": \"16K\", \"ranks\": 4,"
                           " \"model\": \"tnl-1b\", \"data_parallel_size\": 2");
    ck_assert_uint_gt(ran, 30 / test_every());
}
END_TEST

START_TEST(executed_path_fills_the_makespan_of_steps)
{
    ck_assert_uint_gt(check_schedules("\"step\": true, \"cluster\": \"hgx-h100:1\", \"model\": "
                                      "\"llama-3-8b\", \"seq_length\": \"16K\", \"ranks\": 4,"
                                      " \"tensor_model_parallel_size\": \"2\", "
                                      "\"pipeline_model_parallel_size\": \"1\","
                                      " \"schedule\": [\"ring\", \"te-allgather\"]"),
                      0);
}
END_TEST

/* --- real data ----------------------------------------------------------------------------------
 */

static bool
check_executed(const char *schedule)
{
    g_autofree char *members =
        g_strdup_printf("\"schedule\": [\"%s\"], \"ranks\": 4, \"seq_length\": 64, "
                        "\"num_attention_heads\": 8, \"kv_channels\": 32%s",
                        schedule,
                        strncmp(schedule, "lasp", 4) == 0 || strcmp(schedule, "zeco") == 0
                            ? ", \"attention\": \"linear\""
                            : "");
    Case c = case_of(members);
    g_autoptr(GArray) records = g_array_new(FALSE, FALSE, sizeof(LhTimelineRecord));
    const LhExecuteParams params = {
        .backend = &lh_backend_cpu, .repeat = 1, .timeline = collect, .timeline_data = records
    };
    g_autoptr(GError) error = NULL;
    g_autoptr(LhExecuted) executed = lh_execute_setup(c.setup, &params, &error);
    LhExecutedPath *path;

    ck_assert_msg(executed != NULL, "%s: %s", schedule, error != NULL ? error->message : "");
    path = path_of(c.setup, executed->program, records, executed->run->makespan_ps, schedule);
    ck_assert_uint_gt(path->path->len, 0);
    lh_executed_path_free(path);
    case_clear(&c);
    return true;
}

START_TEST(executed_path_fills_the_makespan_that_was_measured)
{
    guint ran = 0;

    for (guint k = 0; lh_schedules[k] != NULL; k++)
        ran += test_takes(k) && check_executed(lh_schedules[k]->name);
    ck_assert_uint_gt(ran, 0);
}
END_TEST

LH_TEST_MAIN("executed_path", executed_path_goes_where_the_last_came_from,
             executed_path_stays_with_a_late_receiver, executed_path_bears_clocks_that_differ,
             executed_path_goes_through_syncs, executed_path_goes_to_the_last_member,
             executed_path_goes_through_the_window,
             executed_path_fills_the_makespan_of_every_schedule,
             executed_path_fills_the_makespan_of_steps,
             executed_path_fills_the_makespan_that_was_measured)
