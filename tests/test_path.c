/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Critical paths: every event of a run happens when all its predecessors are over (schedules,
 * steps, clusters, networks, collectives). Slack: delaying an op by its slack keeps the makespan,
 * and a picosecond more lengthens it, by replaying random programs.
 */
#include "base/rng.h"
#include "critical_path/absorbed.h"
#include "critical_path/collective_calls.h"
#include "critical_path/critical.h"
#include "critical_path/faster_runs.h"
#include "path_events.h"
#include "program/cursor.h"
#include "program/explicit/explicit.h"
#include "random_program.h"
#include "run_tests.h"
#include "scenario/step/setup_step.h"
#include "setups.h"
#include "share.h"
#include "sim_world.h"

#include <math.h>

/* --- events -------------------------------------------------------------------------------------
 */

/* The critical path fills the makespan, its ops have no slack, and no slack is negative. */
static void
check_result(const LhSimResult *r, const char *what)
{
    RunEvents run = run_events_of(r->precedence);
    LhTime at_ps = 0, slack_ps;

    check_events(&run, what);
    for (guint i = 0; i < run.events->len; i++)
        ck_assert_msg(g_array_index(run.slack, LhTime, i) >= 0, "%s: event %u", what, i);
    for (guint i = 0; i < r->path->len; i++) {
        const LhPathStep *step = &g_array_index(r->path, LhPathStep, i);

        ck_assert_int_eq(step->from_ps, at_ps);
        at_ps = step->to_ps;
        if (step->kind != LH_STEP_COMPUTE)
            continue;
        ck_assert(run_events_slack(&run, step->rank, step->op, &slack_ps));
        ck_assert_msg(slack_ps == 0,
                      "%s: op %u of rank %u is on the path and has %" G_GINT64_FORMAT " ps", what,
                      step->op, step->rank, slack_ps);
    }
    run_events_clear(&run);
    ck_assert_msg(at_ps == r->makespan_ps, "%s", what);
    lh_slack_replay(r->precedence, NULL, (void *[]){ NULL }, 1, &slack_ps);
    ck_assert_msg(slack_ps == r->makespan_ps, "%s", what);
}

static const char *const clusters[] = { "hgx-h100:2", "dgx-a100-80g:2", "azure-nc96-a100:4",
                                        "bench-platform:2", "dfa-2node:2" };
static const char *const networks[] = { "fair", "fifo", "alpha-beta" };
static const char *const models[] = { "llama-3-8b", "tnl-1b" };

/* @more: further members of the scenario, beginning with a comma. */
static Case
case_with(const char *cluster, const char *model, const char *more)
{
    g_autofree char *members =
        g_strdup_printf("\"cluster\": \"%s\", \"model\": \"%s\"%s", cluster, model, more);

    return case_of(members);
}

/* Returns how many cases were simulated. */
static guint
check_case(const Case *c, const char *what, uint64_t number)
{
    const LhHooks hooks = { .path = true, .precedence = true };
    guint played = 0;

    for (guint k = 0; k < c->setup->schedules->len; k++) {
        const LhSchedule *schedule = g_ptr_array_index(c->setup->schedules, k);
        g_autofree char *name = g_strdup_printf("%s, %s", schedule->name, what);
        g_autoptr(LhCompareRow) row = NULL;

        if (!test_takes_of(number + k, 23))
            continue;
        row = lh_compare_run(c->setup, schedule, &hooks);
        if (row->result == NULL)
            continue;
        check_result(row->result, name);
        played++;
    }
    return played;
}

START_TEST(path_fills_the_makespan_of_every_schedule)
{
    static const char *const passes[] = { "fwd", "bwd", "both" };
    guint played = 0;

    /* Options of 5, 3, 2, 3 and 8 values: in 40 cases every pair occurs often. */
    for (unsigned i = 0; i < 40; i++) {
        g_autofree char *more = g_strdup_printf(
            ", \"seq_length\": \"32K\", \"ranks\": %s, \"network\": \"%s\", \"pass\": \"%s\","
            " \"collectives\": \"%s\"",
            i % 7 == 0 ? "16" : "8", networks[i % 3], passes[i / 3 % 3],
            lh_collective_model_names[(i + i / 8) % 8]);
        const char *const model = models[i / 2 % 2];
        g_autofree char *what = g_strconcat(clusters[i % 5], ", ", model, more, NULL);
        Case c;

        c = case_with(clusters[i % 5], model, more);
        played += check_case(&c, what, i);
        case_clear(&c);
    }
    ck_assert_uint_gt(played, 400 / test_every());
}
END_TEST

START_TEST(path_fills_the_makespan_of_steps)
{
    static const char *const how[] = {
        ", \"tensor_model_parallel_size\": \"2\"",
        ", \"pipeline_model_parallel_size\": \"2\", \"num_micro_batches\": \"4\"",
        ", \"pipeline_model_parallel_size\": \"2\", \"num_micro_batches\": \"4\","
        " \"tensor_model_parallel_size\": \"2\", \"network\": \"fifo\"",
        ", \"checkpoint\": \"layer\", \"network\": \"alpha-beta\"",
        ", \"pipeline_model_parallel_size\": \"4\", \"num_micro_batches\": \"8\","
        " \"pipeline_schedule\": \"gpipe\"",
    };

    for (unsigned i = 0; i < G_N_ELEMENTS(how); i++) {
        g_autofree char *more = g_strconcat(
            ", \"step\": true, \"seq_length\": \"16K\", \"schedule\": [\"ring\"]", how[i], NULL);
        Case c;

        if (!test_takes(i))
            continue;
        c = case_with("dgx-a100-80g:1", "llama-7b", more);
        ck_assert_msg(check_case(&c, more, 0) == 1, "%s", more);
        case_clear(&c);
    }
}
END_TEST

/* --- slack --------------------------------------------------------------------------------------
 */

/* Delays one op of one rank; every kernel has its own duration. */
typedef struct {
    uint64_t seed;
    uint32_t rank, op;
    LhTime more_ps;
} Late;

static LhTime
late_time(void *data, uint32_t rank, const LhOp *op)
{
    const Late *late = data;
    const double u = lh_rng_uniform(late->seed, rank, op->id);
    const LhTime time_ps = u < 0.2 ? 0 : (LhTime)(u * 20 * (double)US);

    return time_ps + (rank == late->rank && op->id == late->op ? late->more_ps : 0);
}

/* Moves all kernels to one stream, in program order. Kernels of several streams share a device's
 * SMs, so that each changes the duration of the others. */
static LhProgram *
program_of_one_stream(uint64_t seed)
{
    LhProgram *program = random_program(seed);
    LhExplicit *all = program->plan;

    for (uint32_t r = 0; r < all->ranks_count; r++)
        for (uint32_t i = 0; i < all->ranks[r].ops_count; i++)
            if (all->ranks[r].ops[i].kind == LH_OP_COMPUTE)
                all->ranks[r].ops[i].stream = 0;
    return program;
}

static void
late_init(World *w, Late *late, LhCollectiveModel collectives, LhTime launch_ps)
{
    world_init(w, "bench-platform", program_of_one_stream(late->seed));
    w->device.kernel_launch_ps = launch_ps;
    w->device.stream_sync_ps = 2 * launch_ps;
    w->params.network_model = LH_NETWORK_ALPHA_BETA;
    w->params.collectives = collectives;
    w->params.compute_time = late_time;
    w->params.compute_time_data = late;
}

static LhTime
late_makespan(World *w, Late *late, uint32_t rank, uint32_t op, LhTime more_ps)
{
    g_autoptr(LhSimResult) result = NULL;

    late->rank = rank;
    late->op = op;
    late->more_ps = more_ps;
    result = world_run(w);
    late->more_ps = 0;
    return result->makespan_ps;
}

/* Returns how many ops were delayed. */
static uint32_t
check_slack(World *w, Late *late, const LhSimResult *r, bool exact)
{
    RunEvents run = run_events_of(r->precedence);
    uint32_t checked = 0;

    for (uint32_t i = 0; i < run.events->len; i++) {
        const LhEvent e = g_array_index(run.events, LhEvent, i);
        LhTime slack_ps, more_ps;

        if (e.kind != LH_STEP_COMPUTE || lh_rng_uniform(late->seed, i, 7) > 0.1)
            continue;
        ck_assert(run_events_slack(&run, e.rank, e.op, &slack_ps));
        ck_assert_msg(late_makespan(w, late, e.rank, e.op, slack_ps) == r->makespan_ps,
                      "program %u: op %u of rank %u is late by its slack of %" G_GINT64_FORMAT,
                      (unsigned)late->seed, e.op, e.rank, slack_ps);
        more_ps = exact ? late_makespan(w, late, e.rank, e.op, slack_ps + 1) - r->makespan_ps : 1;
        ck_assert_msg(more_ps == 1,
                      "program %u: op %u of rank %u is late by a picosecond more than its slack of "
                      "%" G_GINT64_FORMAT ", and the run takes %" G_GINT64_FORMAT " ps more",
                      (unsigned)late->seed, e.op, e.rank, slack_ps, more_ps);
        checked++;
    }
    run_events_clear(&run);
    return checked;
}

START_TEST(path_slack_is_how_late_an_op_may_be)
{
    const uint64_t programs = test_share(60);
    uint32_t checked = 0, exact = 0;

    for (uint64_t seed = 0; seed < programs; seed++) {
        for (unsigned i = 0; i < 4; i++) {
            const LhCollectiveModel collectives =
                i < 2 ? LH_COLLECTIVES_CLOSED_FORM
                      : (LhCollectiveModel)(seed % LH_COLLECTIVES_CLOSED_FORM);
            Late late = { .seed = seed };
            g_autoptr(LhSimResult) r = NULL;
            g_autofree char *what = g_strdup_printf("program %u", (unsigned)seed);
            uint32_t count;
            World w;

            late_init(&w, &late, collectives, i % 2 == 0 ? 0 : US);
            w.params.path = w.params.precedence = true;
            r = world_run(&w);
            check_result(r, what);
            w.params.path = w.params.precedence = false;
            count = check_slack(&w, &late, r, i < 2);
            checked += count;
            exact += i < 2 ? count : 0;
            world_clear(&w);
        }
    }
    ck_assert_uint_gt(checked, programs);
    ck_assert_uint_gt(exact, programs);
}
END_TEST

/* --- the host's window --------------------------------------------------------------------------
 */

#define LONG_OPS 3500u
#define NEIGHBOURS 300u /* ops at the edge of the window that are checked */

/* Many short kernels beside fewer long ones, which hold up the host; of some, others wait. */
static void
draw_lines(Line *lines, uint64_t seed)
{
    for (uint32_t i = 0; i < LONG_OPS; i++) {
        const bool is_long = lh_rng_bits(seed, i, 0) % 7 == 0;
        const uint32_t back = 1 + (uint32_t)(lh_rng_bits(seed, i, 1) % 1500);

        lines[i] = (Line){ .kind = LH_OP_COMPUTE,
                           .stream = is_long ? COMPUTE2 : COMPUTE,
                           .time_ps = is_long ? 60 * US : US };
        if (back <= i && lh_rng_bits(seed, i, 2) % 40 == seed % 40)
            lines[i].after[0] = 1 + i - back;
    }
}

/* The latest times of events if each op waits for those at the edge of its window. Sets the slack
 * of each event. */
static void
slack_with_windows(const RunEvents *run, LhTime makespan_ps, LhTime *slack)
{
    uint32_t done[LONG_OPS] = { 0 }, window = 0;
    g_autofree uint32_t *windows = g_new0(uint32_t, run->events->len);

    for (guint i = 0; i < run->events->len; i++) {
        const LhEvent *event = &g_array_index(run->events, LhEvent, i);

        slack[i] = event->kind == LH_STEP_HOST ? LH_TIME_LONGEST : makespan_ps - event->time_ps;
        if (event->end == LH_EVENT_DONE)
            done[event->op] = i;
        if (event->end == LH_EVENT_START && event->op > LH_HOST_WINDOW)
            windows[i] = window = MAX(window, event->op - LH_HOST_WINDOW);
    }
    for (guint i = run->events->len; i-- > 0;) {
        const LhEvent *event = &g_array_index(run->events, LhEvent, i);

        run_events_pass_slack(run, i, slack);
        for (uint32_t op = windows[i] - MIN(windows[i], NEIGHBOURS); op < windows[i]; op++) {
            const LhTime early_ps =
                event->time_ps - g_array_index(run->events, LhEvent, done[op]).time_ps;

            ck_assert_int_ge(early_ps, 0);
            slack[done[op]] = MIN(slack[done[op]], slack[i] + early_ps);
        }
    }
}

START_TEST(path_slack_counts_the_window_of_the_host)
{
    g_autofree Line *lines = g_new(Line, LONG_OPS);
    const uint64_t programs = test_share(6);

    for (uint64_t seed = 1; seed <= programs; seed++) {
        Script script = { .lines = lines, .count = LONG_OPS };
        g_autoptr(LhSimResult) result = NULL;
        g_autofree LhTime *slack = NULL;
        RunEvents run;
        World w;

        draw_lines(lines, seed);
        script_init(&w, &script, 1);
        w.device.kernel_launch_ps = seed % 2 == 0 ? 0 : US / 2;
        w.params.path = w.params.precedence = true;
        result = world_run(&w);
        run = run_events_of(result->precedence);
        slack = g_new0(LhTime, run.events->len);
        slack_with_windows(&run, result->makespan_ps, slack);
        ck_assert_mem_eq(run.slack->data, slack, run.slack->len * sizeof(LhTime));
        run_events_clear(&run);
        world_clear(&w);
    }
}
END_TEST

/* --- savings ------------------------------------------------------------------------------------
 */

static LhTime
sum_of(const LhCritical *c)
{
    LhTime sum_ps = 0;

    for (guint i = 0; i < c->groups->len; i++)
        sum_ps += g_array_index(c->groups, LhCallGroup, i).path_ps;
    for (guint i = 0; i < c->resources->len; i++) {
        const LhPathShare *share = &g_array_index(c->resources, LhPathShare, i);

        sum_ps += share->kind == LH_STEP_HOST ? share->time_ps : 0;
    }
    return sum_ps;
}

/* Predicted savings are achieved, or a reason is given; contention is a reason only if something
 * is shared. */
static void
check_speed_ups(const GArray *all, bool shared, const char *what, uint32_t *states)
{
    ck_assert_uint_le(all->len, LH_CRITICAL_TOP);
    for (guint i = 0; i < all->len; i++) {
        const LhSpeedUp *s = &g_array_index(all, LhSpeedUp, i);
        const double off = fabs((double)(s->saved_ps - s->predicted_ps));

        ck_assert_int_eq(s->state == LH_SAVING_AGREES, off <= 0.05 * (double)s->predicted_ps);
        ck_assert_msg(shared || s->state != LH_SAVING_CONTENTION,
                      "%s: group %u, op %u: saved %" G_GINT64_FORMAT " of %" G_GINT64_FORMAT, what,
                      s->group, s->op, s->saved_ps, s->predicted_ps);
        if (!shared) /* bytes and times are rounded by about a picosecond per op */
            ck_assert_msg(s->saved_ps <= s->predicted_ps + 1000,
                          "%s: group %u, op %u: saved %" G_GINT64_FORMAT " of %" G_GINT64_FORMAT,
                          what, s->group, s->op, s->saved_ps, s->predicted_ps);
        states[s->state]++;
    }
}

static void
check_same_speed_ups(const GArray *all, const GArray *others)
{
    ck_assert_uint_eq(all->len, others->len);
    for (guint i = 0; i < all->len; i++) {
        const LhSpeedUp *a = &g_array_index(all, LhSpeedUp, i);
        const LhSpeedUp *b = &g_array_index(others, LhSpeedUp, i);

        ck_assert_uint_eq(a->group, b->group);
        ck_assert_uint_eq(a->rank, b->rank);
        ck_assert_uint_eq(a->op, b->op);
        ck_assert_int_eq(a->saved_ps, b->saved_ps);
        ck_assert_uint_eq(a->state, b->state);
    }
}

/* Returns whether the schedule accepts the case. */
static bool
check_critical(const Case *c, const LhSchedule *schedule, bool shared, uint32_t *states)
{
    const LhTask alone = { .jobs = 1 }, many = { .jobs = 3 };
    g_autoptr(GError) error = NULL;
    g_autoptr(LhCompareRow) row = NULL;
    g_autoptr(LhCritical) critical = NULL;
    g_autoptr(LhCritical) together = NULL;
    LhHooks hooks = { 0 };
    LhTime phases_ps = 0, ranks_ps = 0;
    uint32_t kernels = 0; /* streams with kernels, which share SMs */

    lh_critical_hooks(&hooks);
    row = lh_compare_run(c->setup, schedule, &hooks);
    if (row->result == NULL)
        return false;
    for (uint32_t s = 0; s < row->program->streams_count; s++)
        kernels += row->program->streams[s].kind == LH_STREAM_COMPUTE;
    critical = lh_critical_find(c->setup, row, &alone, &error);
    ck_assert_msg(critical != NULL, "%s", error != NULL ? error->message : "");
    together = lh_critical_find(c->setup, row, &many, &error);
    ck_assert_msg(together != NULL, "%s", error != NULL ? error->message : "");
    check_same_speed_ups(critical->by_group, together->by_group);
    check_same_speed_ups(critical->by_op, together->by_op);
    ck_assert_int_eq(sum_of(critical), row->result->makespan_ps);
    for (int phase = 0; phase < LH_PHASES; phase++)
        phases_ps += critical->phases_ps[phase];
    ck_assert_int_eq(phases_ps, row->result->makespan_ps);
    for (guint r = 0; r < critical->ranks_ps->len; r++)
        ranks_ps += g_array_index(critical->ranks_ps, LhTime, r);
    ck_assert_int_eq(ranks_ps, row->result->makespan_ps);
    check_speed_ups(critical->by_group, shared || kernels > 1, schedule->name, states);
    check_speed_ups(critical->by_op, shared || kernels > 1, schedule->name, states);
    return true;
}

START_TEST(path_savings_are_found_by_playing_again)
{
    uint32_t states[2][3] = { { 0 } };

    for (unsigned i = 0; i < 4; i++) {
        const bool shared = i % 2 == 1;
        g_autofree char *more =
            g_strdup_printf(", \"seq_length\": \"16K\", \"ranks\": 8, \"network\": \"%s\","
                            " \"collectives\": \"%s\"",
                            shared ? "fair" : "alpha-beta", shared ? "auto" : "closed-form");
        Case c;

        c = case_with(shared ? "dfa-2node" : "bench-platform:2", models[i / 2], more);
        for (guint k = 0; k < c.setup->schedules->len; k++)
            if (test_takes(k))
                check_critical(&c, g_ptr_array_index(c.setup->schedules, k), shared,
                               states[shared]);
        case_clear(&c);
    }
    ck_assert_uint_gt(states[0][LH_SAVING_AGREES], 0);
    ck_assert_uint_gt(states[0][LH_SAVING_OTHER_PATH], 0);
    ck_assert_uint_gt(states[1][LH_SAVING_AGREES], 0);
    ck_assert_uint_gt(states[1][LH_SAVING_CONTENTION], 0);
}
END_TEST

/* The calls of a rank's collectives, of LhCallId; their ops, of uint32_t. */
static void
calls_of_rank(const LhProgram *program, uint32_t rank, GArray *ids, GArray *ops)
{
    LhOpBuffer buffer = { 0 };
    LhCallCounter counter;
    LhCursor cursor;

    lh_call_counter_init(&counter);
    lh_cursor_init(&cursor, program, rank);
    while (lh_cursor_step(&cursor, &buffer))
        for (uint32_t i = 0; i < buffer.ops_count; i++)
            if (buffer.ops[i].kind == LH_OP_COLLECTIVE) {
                const LhCallId id = lh_call_counter_next(&counter, &buffer.ops[i]);

                g_array_append_val(ids, id);
                g_array_append_val(ops, buffer.ops[i].id);
            }
    lh_call_counter_clear(&counter);
    lh_op_buffer_clear(&buffer);
}

/* Each call has one op of each member, and each op of a collective belongs to one call. */
START_TEST(path_calls_have_an_op_of_each_member)
{
    Case c = case_with("hgx-h100:1", "gpt3-1.3b",
                       ", \"step\": true, \"seq_length\": \"4K\", \"schedule\": [\"ring\"],"
                       " \"tensor_model_parallel_size\": \"4\", \"data_parallel_size\": 2");
    g_autoptr(LhProgram) program =
        lh_setup_program(c.setup, g_ptr_array_index(c.setup->schedules, 0), NULL);

    for (uint32_t r = 0; r < 8; r += 5) {
        g_autoptr(GArray) ids = g_array_new(FALSE, FALSE, sizeof(LhCallId));
        g_autoptr(GArray) ops = g_array_new(FALSE, FALSE, sizeof(uint32_t));
        const guint some = 40;
        LhCallOps calls[40];
        uint32_t of[40][8];

        calls_of_rank(program, r, ids, ops);
        ck_assert_uint_gt(ids->len, some);
        for (guint i = 0; i < some; i++)
            calls[i] = (LhCallOps){ .id = g_array_index(ids, LhCallId, i * (ids->len / some)),
                                    .fold = lh_symmetry_none(8),
                                    .ops = of[i] };
        lh_collective_calls_find(program, calls, some);
        for (guint i = 0; i < some; i++) {
            const LhGroup *group = &calls[i].id.communicator.group;

            ck_assert_uint_eq(of[i][r], g_array_index(ops, uint32_t, i * (ids->len / some)));
            for (uint32_t rank = 0; rank < 8; rank++)
                ck_assert_int_eq(of[i][rank] != LH_OP_NONE,
                                 lh_group_position(group, rank) != UINT32_MAX);
        }
    }
    case_clear(&c);
}
END_TEST

/* Steps whose ranks fold. */
START_TEST(path_savings_of_steps_are_found_by_playing_again)
{
    static const char *const collectives[] = { "auto", "closed-form", "fluid", "ring" };
    uint32_t states[3] = { 0 };

    for (unsigned i = 0; i < G_N_ELEMENTS(collectives); i++) {
        g_autofree char *more = g_strdup_printf(
            ", \"step\": true, \"seq_length\": \"4K\", \"schedule\": [\"ring\"],"
            " \"num_micro_batches\": 2, \"collectives\": \"%s\", \"shard\": \"%s\","
            " \"tensor_model_parallel_size\": \"%u\", \"data_parallel_size\": %u",
            collectives[i], i % 2 == 0 ? "ddp" : "fsdp", i < 2 ? 8 : 4, i < 2 ? 2 : 4);
        Case c;

        if (!test_takes(i))
            continue;
        c = case_with("hgx-h100:2", "gpt3-1.3b", more);
        ck_assert_msg(check_critical(&c, g_ptr_array_index(c.setup->schedules, 0), true, states),
                      "%s", more);
        case_clear(&c);
    }
    ck_assert_uint_gt(states[LH_SAVING_AGREES], 0);
}
END_TEST

/* One op that is faster. */
static double
share_of_one(void *data, uint32_t rank, uint32_t id, const LhOp *op, const LhOpBuffer *buffer)
{
    const LhAbsorbed *one = data;

    (void)op;
    (void)buffer;
    return rank == one->rank && id == one->op ? 0.4 : 1;
}

/* Ops of kernels, one in @every: of LhAbsorbed. */
static GArray *
some_kernels(const LhSlackGraph *p, uint64_t seed, uint32_t every)
{
    GArray *ops = g_array_new(FALSE, TRUE, sizeof(LhAbsorbed));
    RunEvents run = run_events_of(p);

    for (guint i = 0; i < run.events->len; i++) {
        const LhEvent *event = &g_array_index(run.events, LhEvent, i);
        const LhAbsorbed op = { .rank = event->rank, .op = event->op };

        if (event->end == LH_EVENT_DONE && event->kind == LH_STEP_COMPUTE &&
            lh_rng_bits(seed, i, 5) % every == 0)
            g_array_append_val(ops, op);
    }
    run_events_clear(&run);
    return ops;
}

/* Returns the number of ops that were found absorbed, of @tried. */
static uint32_t
check_absorbed(const Case *c, uint64_t seed, const char *what, uint32_t *tried)
{
    const LhHooks hooks = { .path = true, .precedence = true };
    g_autoptr(LhCompareRow) row =
        lh_compare_run(c->setup, g_ptr_array_index(c->setup->schedules, 0), &hooks);
    g_autoptr(GArray) ops = NULL;
    uint32_t absorbed = 0;

    ck_assert_msg(row->result != NULL, "%s", what);
    ops = some_kernels(row->result->precedence, seed, MAX(1, (uint32_t)(row->result->ops / 400)));
    lh_absorbed_find(row->result->precedence, ops);
    for (guint i = 0; i < ops->len; i++) {
        LhAbsorbed *op = &g_array_index(ops, LhAbsorbed, i);
        const LhHooks faster = { .time_share = share_of_one, .time_share_data = op };
        g_autoptr(LhSimResult) result = NULL;

        *tried += 1;
        if (!op->absorbed)
            continue;
        result = lh_setup_simulate(c->setup, row->program, NULL, NULL, &faster, NULL);
        ck_assert_ptr_nonnull(result);
        for (uint32_t r = 0; r < result->ranks_count; r++)
            ck_assert_msg(result->ranks[r].finish_ps == row->result->ranks[r].finish_ps,
                          "%s: rank %u, if op %u of rank %u is faster", what, r, op->op, op->rank);
        absorbed++;
    }
    return absorbed;
}

START_TEST(path_absorbed_ops_change_nothing)
{
    static const unsigned how[][4] = { /* tensor, pipeline, data, context parallel */
                                       { 4, 2, 1, 1 },
                                       { 2, 1, 4, 1 },
                                       { 8, 1, 1, 1 },
                                       { 2, 1, 2, 2 },
                                       { 1, 4, 2, 1 }
    };
    static const char *const collectives[] = { "auto", "closed-form", "fluid", "ring", "nccl" };
    static const char *const boxes[] = { "hgx-h100:1", "dgx-a100-80g:1", "azure-nc96-a100:2" };
    static const char *const schedules[] = { "ring", "te-a2a", "te-allgather" };
    uint32_t tried = 0, absorbed = 0;

    for (unsigned i = 0; i < 2 * G_N_ELEMENTS(how) * G_N_ELEMENTS(collectives); i++) {
        const unsigned *of = how[i % 5];
        g_autofree char *more = g_strdup_printf(
            ", \"step\": true, \"seq_length\": \"4K\", \"ranks\": 8, \"num_micro_batches\": 2,"
            " \"schedule\": [\"%s\"], \"collectives\": \"%s\","
            " \"tensor_model_parallel_size\": \"%u\", \"pipeline_model_parallel_size\": %u,"
            " \"data_parallel_size\": %u, \"context_parallel_size\": %u, \"shard\": \"%s\"",
            schedules[i % 3], collectives[i / 5 % 5], of[0], of[1], of[2], of[3],
            i % 4 < 2 ? "fsdp" : "ddp");
        Case c;

        if (!test_takes(i))
            continue;
        c = case_with(boxes[(i + i / 5) % 3], i % 2 == 0 ? "gpt3-1.3b" : "llama-3-8b", more);
        absorbed += check_absorbed(&c, i, more, &tried);
        case_clear(&c);
    }
    ck_assert_uint_gt(absorbed, tried / 20);
    ck_assert_uint_lt(absorbed, tried);
    if (test_every() == 1) /* a selection may have many ranks that wait */
        ck_assert_uint_lt(absorbed, tried / 2);
}
END_TEST

/* In a ring over two nodes of eight, the end ranks of each node have a peer in either node. */
START_TEST(path_exchanges_count_by_their_farthest_message)
{
    Case c = case_with("dgx-a100-80g:2", models[0], ", \"seq_length\": \"16K\", \"ranks\": 16");
    g_autoptr(LhCompareRow) row = NULL;
    g_autoptr(LhCritical) critical = NULL;
    LhHooks hooks = { 0 };
    uint32_t inside = 0, between = 0;

    lh_critical_hooks(&hooks);
    row = lh_compare_run(c.setup, lh_schedule_find("ring", NULL), &hooks);
    critical = lh_critical_find(c.setup, row, NULL, NULL);
    ck_assert_ptr_nonnull(critical);
    for (guint i = 0; i < critical->groups->len; i++) {
        const LhCallGroup *group = &g_array_index(critical->groups, LhCallGroup, i);

        if (group->kind == LH_OP_EXCHANGE)
            *(group->tier == LH_TIER_NVLINK ? &inside : &between) += group->calls;
    }
    ck_assert_uint_gt(between, 0);
    ck_assert_uint_eq(inside * 4, between * 12);
    case_clear(&c);
}
END_TEST

static double
share_of_all(void *data, uint32_t rank, uint32_t id, const LhOp *op, const LhOpBuffer *buffer)
{
    (void)rank, (void)id, (void)op, (void)buffer;
    return *(double *)data;
}

/* Runs that are too long for the simulator fail with its error, whether others end or not. */
START_TEST(path_runs_that_fail_give_their_error)
{
    Case c = case_with("dgx-a100-80g:1", models[0], ", \"seq_length\": \"16K\", \"ranks\": 4");
    g_autoptr(LhCompareRow) row =
        lh_compare_run(c.setup, lh_schedule_find("ring", NULL), &(LhHooks){ 0 });
    const LhTime makespan_ps = row->result->makespan_ps;
    double same = 1, longer = 2 * (double)LH_TIME_LONGEST / (double)makespan_ps;
    LhFasterRun runs[] = { { .share = share_of_all, .data = &same, .alike = true },
                           { .share = share_of_all, .data = &longer, .alike = true },
                           { .share = share_of_all, .data = &longer, .alike = true } };

    for (guint jobs = 1; jobs <= 3; jobs++) {
        const LhTask task = { .jobs = jobs };
        g_autoptr(GError) error = NULL;

        runs[0].makespan_ps = 0;
        ck_assert(!lh_faster_runs_play(c.setup, row->program, &task, runs, 3, &error));
        ck_assert(g_error_matches(error, LH_ERROR, LH_ERROR_NO));
        ck_assert_ptr_nonnull(strstr(error->message, "more than 26 days"));
        ck_assert_int_eq(runs[0].makespan_ps, makespan_ps);
        ck_assert(lh_faster_runs_play(c.setup, row->program, &task, runs, 1, NULL));
    }
    case_clear(&c);
}
END_TEST

LH_TEST_MAIN("path", path_fills_the_makespan_of_every_schedule, path_fills_the_makespan_of_steps,
             path_slack_is_how_late_an_op_may_be, path_slack_counts_the_window_of_the_host,
             path_savings_are_found_by_playing_again, path_calls_have_an_op_of_each_member,
             path_savings_of_steps_are_found_by_playing_again, path_absorbed_ops_change_nothing,
             path_exchanges_count_by_their_farthest_message, path_runs_that_fail_give_their_error)
