/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The simulator plays programs written by hand, to the picosecond: matching of messages, streams,
 * SMs held by communication, hosts, memory, and programs that never end.
 */
#include "run_tests.h"
#include "sim_schedules.h"

__extension__ typedef unsigned __int128 Wide;

/* ---- messages ---- */

START_TEST(sim_two_ranks_take_latency_and_bytes_over_bandwidth)
{
    static const uint64_t sizes[] = { 1, 1000, 12345678, 67108864, 8589934592 };

    for (uint32_t i = 0; i < G_N_ELEMENTS(sizes); i++)
        for (int model = LH_NETWORK_FAIR; model <= LH_NETWORK_FIFO; model++) {
            Script script = SCRIPT(
                { .rank = 0, .kind = LH_OP_EXCHANGE, .notes = { { true, 1, 0, sizes[i] } } },
                { .rank = 1, .kind = LH_OP_EXCHANGE, .notes = { { false, 0, 0, sizes[i] } } });
            const Wide bandwidth = 300000000000;
            const LhTime exact =
                (LhTime)((2 * (Wide)sizes[i] * LH_PS_PER_S + bandwidth) / (2 * bandwidth));
            g_autoptr(LhSimResult) result = NULL;
            World w;

            script_init(&w, &script, 2);
            w.params.network_model = (LhNetworkModel)model;
            result = world_run(&w);
            ck_assert_int_eq(result->makespan_ps, 2 * US + exact);
            for (uint32_t r = 0; r < 2; r++) {
                ck_assert_int_eq(result->ranks[r].idle_ps[LH_IDLE_COMM + LH_TIER_NVLINK],
                                 2 * US + exact);
                ck_assert_int_eq(result->ranks[r].comm_ps, 2 * US + exact);
            }
            ck_assert_uint_eq(result->ranks[0].bytes_sent, sizes[i]);
            ck_assert_uint_eq(result->ranks[1].bytes_sent, 0);
            ck_assert_uint_eq(result->events, 1);
            world_clear(&w);
        }
}
END_TEST

/* 3 MB over NVLink: 10 us plus 2 us latency. */
#define BYTES 3000000
#define MOVE (12 * US)

/* A message starts when both ends have posted it, in either order. */
START_TEST(sim_messages_wait_for_both_ends)
{
    Script late_receiver = SCRIPT(
        { .rank = 0, .kind = LH_OP_EXCHANGE, .notes = { { true, 1, 0, BYTES } } },
        { .rank = 1, .kind = LH_OP_COMPUTE, .time_ps = 7 * US },
        { .rank = 1, .kind = LH_OP_EXCHANGE, .notes = { { false, 0, 0, BYTES } }, .after = { 1 } });
    Script late_sender = SCRIPT(
        { .rank = 0, .kind = LH_OP_COMPUTE, .time_ps = 9 * US },
        { .rank = 0, .kind = LH_OP_EXCHANGE, .notes = { { true, 1, 0, BYTES } }, .after = { 1 } },
        { .rank = 1, .kind = LH_OP_EXCHANGE, .notes = { { false, 0, 0, BYTES } } });
    g_autoptr(LhSimResult) result = NULL;
    World w;

    ck_assert_int_eq(script_makespan(&late_receiver, 2), 7 * US + MOVE);
    script_init(&w, &late_sender, 2);
    result = world_run(&w);
    ck_assert_int_eq(result->makespan_ps, 9 * US + MOVE);
    /* The receiver waited for the late sender, then for data in flight. */
    ck_assert_int_eq(result->ranks[1].idle_ps[LH_IDLE_IMBALANCE], 9 * US);
    ck_assert_int_eq(result->ranks[1].idle_ps[LH_IDLE_COMM], MOVE);
    ck_assert_int_eq(result->ranks[1].comm_ps, 9 * US + MOVE);
    world_clear(&w);
}
END_TEST

/* The timeline record of one op. */
typedef struct {
    uint32_t rank, op;
    LhTimelineRecord record; /* its motions point to: */
    LhMotion motions[4];
} Told;

static void
take_told(void *data, const LhTimelineRecord *record)
{
    Told *told = data;

    if (record->rank != told->rank || record->op != told->op)
        return;
    ck_assert_uint_le(record->motions_count, G_N_ELEMENTS(told->motions));
    told->record = *record;
    if (record->motions != NULL)
        memcpy(told->motions, record->motions, record->motions_count * sizeof(LhMotion));
}

/* Checks the transfers of op @op of rank @rank, in microseconds: from, to, from, to. */
static void
check_motions(Script *script, uint32_t ranks, uint32_t rank, uint32_t op, const int *us)
{
    Told told = { .rank = rank, .op = op };
    g_autoptr(LhSimResult) result = NULL;
    LhTime waited_ps;
    World w;

    script_init(&w, script, ranks);
    w.params.timeline = take_told;
    w.params.timeline_data = &told;
    result = world_run(&w);
    ck_assert_ptr_nonnull(told.record.motions);
    waited_ps = told.record.end_ps - told.record.start_ps;
    ck_assert_uint_le(told.record.motions_count, G_N_ELEMENTS(told.motions));
    for (uint32_t i = 0; i < told.record.motions_count; i++) {
        ck_assert_int_ge(us[2 * i], 0);
        ck_assert_int_eq(told.motions[i].from_ps, us[2 * i] * US);
        ck_assert_int_eq(told.motions[i].to_ps, us[2 * i + 1] * US);
        waited_ps -= told.motions[i].to_ps - told.motions[i].from_ps;
    }
    ck_assert_int_lt(us[2 * told.record.motions_count], 0);
    told.record.motions = told.motions;
    ck_assert_int_eq(lh_timeline_waited(&told.record), waited_ps);
    world_clear(&w);
}

/* A receive posted early waits for its sender; an op that sends at once and receives late waits
 * in between; consecutive messages are a single transfer. */
START_TEST(sim_records_say_when_bytes_move)
{
    Script late_sender = SCRIPT(
        { .rank = 0, .kind = LH_OP_COMPUTE, .time_ps = 9 * US },
        { .rank = 0, .kind = LH_OP_EXCHANGE, .notes = { { true, 1, 0, BYTES } }, .after = { 1 } },
        { .rank = 1, .kind = LH_OP_EXCHANGE, .notes = { { false, 0, 0, BYTES } } });
    Script both = SCRIPT(
        { .rank = 0,
          .kind = LH_OP_EXCHANGE,
          .notes = { { true, 1, 0, BYTES }, { false, 1, 0, BYTES } } },
        { .rank = 1, .kind = LH_OP_EXCHANGE, .notes = { { false, 0, 0, BYTES } } },
        { .rank = 1, .kind = LH_OP_COMPUTE, .time_ps = 40 * US, .after = { 1 } },
        { .rank = 1, .kind = LH_OP_EXCHANGE, .notes = { { true, 0, 0, BYTES } }, .after = { 2 } });

    Script answer = SCRIPT(
        { .rank = 0,
          .kind = LH_OP_EXCHANGE,
          .notes = { { true, 1, 0, BYTES }, { false, 1, 0, BYTES } } },
        { .rank = 1, .kind = LH_OP_EXCHANGE, .notes = { { false, 0, 0, BYTES } } },
        { .rank = 1, .kind = LH_OP_EXCHANGE, .notes = { { true, 0, 0, BYTES } }, .after = { 1 } });

    check_motions(&late_sender, 2, 0, 1, (const int[]){ 9, 21, -1 });
    check_motions(&late_sender, 2, 1, 0, (const int[]){ 9, 21, -1 });
    check_motions(&both, 2, 0, 0, (const int[]){ 0, 12, 52, 64, -1 });
    check_motions(&both, 2, 1, 0, (const int[]){ 0, 12, -1 });
    check_motions(&both, 2, 1, 2, (const int[]){ 52, 64, -1 });
    check_motions(&answer, 2, 0, 0, (const int[]){ 0, 24, -1 });
}
END_TEST

/* Messages between the same peers match in order of posting, on either side. */
START_TEST(sim_messages_match_by_peer_and_order)
{
    Script script =
        SCRIPT({ .rank = 0, .kind = LH_OP_EXCHANGE, .notes = { { true, 1, 5, BYTES } } },
               { .rank = 0, .kind = LH_OP_COMPUTE, .time_ps = 40 * US },
               { .rank = 0,
                 .kind = LH_OP_EXCHANGE,
                 .notes = { { true, 1, 5, 2 * BYTES } },
                 .after = { 2 } },
               { .rank = 1, .kind = LH_OP_EXCHANGE, .notes = { { false, 0, 5, BYTES } } },
               { .rank = 1, .kind = LH_OP_COMPUTE, .time_ps = 1 * US, .after = { 1 } },
               { .rank = 1, .kind = LH_OP_EXCHANGE, .notes = { { false, 0, 5, 2 * BYTES } } });
    g_autoptr(LhSimResult) result = NULL;
    World w;

    script_init(&w, &script, 2);
    result = world_run(&w);
    ck_assert_int_eq(result->makespan_ps, 40 * US + 22 * US);
    ck_assert_uint_eq(result->ranks[0].bytes_sent, 3 * BYTES);
    world_clear(&w);
}
END_TEST

/* Emits the script's ops; messages with tag t use communicator t. */
static void
emit_on_communicators(LhEmitter *e, uint32_t step)
{
    script_emit(e, step);
    for (uint32_t i = 0; i < e->buffer->ops_count; i++) {
        LhOp *op = &e->buffer->ops[i];

        if (op->kind == LH_OP_EXCHANGE)
            op->communicator = (uint8_t)e->buffer->parts[op->exchange.parts_first].tag;
    }
}

static const LhGenerator on_communicators = { .steps = script_steps,
                                              .emit = emit_on_communicators };

/* A long and a short message, posted in one order and received in the other, and an op that
 * waits for the first receive. Tags do not match messages, as in NCCL: the long one is received
 * first all the same. A separate communicator distinguishes the short one. */
START_TEST(sim_communicators_tell_messages_apart)
{
    Script script = SCRIPT(
        { .rank = 0, .kind = LH_OP_EXCHANGE, .notes = { { true, 1, 1, 2 * BYTES } } },
        { .rank = 0, .kind = LH_OP_EXCHANGE, .notes = { { true, 1, 2, BYTES } }, .stream = COMM2 },
        { .rank = 1, .kind = LH_OP_EXCHANGE, .notes = { { false, 0, 2, BYTES } } },
        { .rank = 1, .kind = LH_OP_EXCHANGE, .notes = { { false, 0, 1, 2 * BYTES } } },
        { .rank = 1, .kind = LH_OP_COMPUTE, .time_ps = 99 * US, .after = { 1 } });
    g_autoptr(LhSimResult) result = NULL;
    World w;

    ck_assert_int_eq(script_makespan(&script, 2), 22 * US + 99 * US);
    script_init(&w, &script, 2);
    w.program->generator = &on_communicators;
    result = world_run(&w);
    ck_assert_int_eq(result->makespan_ps, MOVE + 99 * US);
    world_clear(&w);
}
END_TEST

/* Links are full duplex; a group ends with the last of its messages; two messages share a link. */
START_TEST(sim_groups_end_with_their_last_message)
{
    Script both_ways = SCRIPT({ .rank = 0,
                                .kind = LH_OP_EXCHANGE,
                                .notes = { { true, 1, 0, BYTES }, { false, 1, 0, BYTES } } },
                              { .rank = 1,
                                .kind = LH_OP_EXCHANGE,
                                .notes = { { true, 0, 0, BYTES }, { false, 0, 0, BYTES } } });
    Script fan_out =
        SCRIPT({ .rank = 0,
                 .kind = LH_OP_EXCHANGE,
                 .notes = { { true, 1, 0, BYTES }, { true, 2, 0, BYTES } } },
               { .rank = 0, .kind = LH_OP_COMPUTE, .time_ps = 1 * US, .after = { 1 } },
               { .rank = 1, .kind = LH_OP_EXCHANGE, .notes = { { false, 0, 0, BYTES } } },
               { .rank = 2, .kind = LH_OP_EXCHANGE, .notes = { { false, 0, 0, BYTES } } });

    ck_assert_int_eq(script_makespan(&both_ways, 2), MOVE);
    ck_assert_int_eq(script_makespan(&fan_out, 3), 2 * 10 * US + 2 * US + 1 * US);
}
END_TEST

/* Streams are in order; across streams only `after` orders. */
START_TEST(sim_streams_keep_order_and_overlap)
{
    Script script =
        SCRIPT({ .rank = 0, .kind = LH_OP_COMPUTE, .time_ps = 5 * US },
               { .rank = 0, .kind = LH_OP_EXCHANGE, .notes = { { true, 1, 0, BYTES } } },
               { .rank = 0, .kind = LH_OP_COMPUTE, .time_ps = 3 * US },
               { .rank = 0, .kind = LH_OP_COMPUTE, .time_ps = 4 * US, .after = { 2, 1 } },
               { .rank = 1, .kind = LH_OP_EXCHANGE, .notes = { { false, 0, 0, BYTES } } },
               { .rank = 1, .kind = LH_OP_COMPUTE, .time_ps = 100 * US });
    g_autoptr(LhSimResult) result = NULL;
    World w;

    script_init(&w, &script, 2);
    result = world_run(&w);
    ck_assert_int_eq(result->ranks[0].finish_ps, MOVE + 4 * US);
    ck_assert_int_eq(result->ranks[0].busy_ps, 12 * US);
    ck_assert_int_eq(result->ranks[0].idle_ps[LH_IDLE_COMM], 4 * US);
    ck_assert_int_eq(result->ranks[0].idle_ps[LH_IDLE_IMBALANCE], 100 * US - MOVE - 4 * US);
    ck_assert_int_eq(result->makespan_ps, 100 * US);
    world_clear(&w);
}
END_TEST

/* ---- several compute streams ---- */

/* Two concurrent kernels take as long as one after the other; the host gap of the second is
 * hidden, and after `after` one runs alone again. */
START_TEST(sim_compute_streams_share_the_device)
{
    Script equal =
        SCRIPT({ .rank = 0, .kind = LH_OP_COMPUTE, .time_ps = 6 * US },
               { .rank = 0, .kind = LH_OP_COMPUTE, .time_ps = 6 * US, .stream = COMPUTE2 });
    /* 4 + 4 in 8 us, then 6 alone; nothing moves meanwhile. */
    Script longer =
        SCRIPT({ .rank = 0, .kind = LH_OP_COMPUTE, .time_ps = 10 * US },
               { .rank = 0, .kind = LH_OP_COMPUTE, .time_ps = 4 * US, .stream = COMPUTE2 },
               { .rank = 0, .kind = LH_OP_COMPUTE, .time_ps = 1 * US });
    /* The message takes 12 us; one stream computes 12 us beside it, then both share. */
    Script waits = SCRIPT(
        { .rank = 0, .kind = LH_OP_EXCHANGE, .notes = { { true, 1, 0, BYTES } } },
        { .rank = 0, .kind = LH_OP_COMPUTE, .time_ps = 14 * US },
        { .rank = 0, .kind = LH_OP_COMPUTE, .time_ps = 3 * US, .stream = COMPUTE2, .after = { 1 } },
        { .rank = 1, .kind = LH_OP_EXCHANGE, .notes = { { false, 0, 0, BYTES } } });
    Script *const scripts[] = { &equal, &longer, &waits };
    const LhTime ends[] = { 12 * US, 15 * US, 17 * US };

    for (uint32_t i = 0; i < G_N_ELEMENTS(scripts); i++) {
        g_autoptr(LhSimResult) result = NULL;
        World w;

        script_init(&w, scripts[i], 2);
        result = world_run(&w);
        ck_assert_int_eq(result->makespan_ps, ends[i]);
        ck_assert_int_eq(result->ranks[0].busy_ps, ends[i]);
        world_clear(&w);
    }
}
END_TEST

/* ---- SMs held by communication ---- */

/* 27 of 108 SMs: compute beside the message runs at 3/4 while the message is in flight. */
START_TEST(sim_communication_slows_compute_beside_it)
{
    const struct {
        LhTime compute, end;
    } cases[] = {
        { 9 * US, 12 * US },  /* 9 / 0.75: ends with the message */
        { 6 * US, 8 * US },   /* within it */
        { 30 * US, 33 * US }, /* 12 us at 3/4 are 9, and 21 are left */
    };

    for (uint32_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        Script script =
            SCRIPT({ .rank = 0, .kind = LH_OP_EXCHANGE, .notes = { { true, 1, 0, BYTES } } },
                   { .rank = 0, .kind = LH_OP_COMPUTE, .time_ps = cases[i].compute },
                   { .rank = 1, .kind = LH_OP_EXCHANGE, .notes = { { false, 0, 0, BYTES } } });
        g_autoptr(LhSimResult) result = NULL;
        World w;

        script_init(&w, &script, 2);
        w.topology.nvlink.ctas = 27;
        result = world_run(&w);
        ck_assert_int_eq(result->ranks[0].busy_ps, cases[i].end);
        ck_assert_int_eq(result->makespan_ps, MAX(cases[i].end, MOVE));
        world_clear(&w);
    }
}
END_TEST

/* A communication kernel that waits for its peer holds its SMs, too; two kernels hold the sum,
 * at most 9 of 10 SMs. */
START_TEST(sim_waiting_communication_holds_its_sms)
{
    Script script = SCRIPT(
        { .rank = 0, .kind = LH_OP_EXCHANGE, .notes = { { false, 1, 0, BYTES } } },
        { .rank = 0, .kind = LH_OP_EXCHANGE, .notes = { { false, 1, 1, BYTES } }, .stream = COMM2 },
        { .rank = 0, .kind = LH_OP_COMPUTE, .time_ps = 20 * US },
        { .rank = 1, .kind = LH_OP_COMPUTE, .time_ps = 8 * US },
        { .rank = 1, .kind = LH_OP_EXCHANGE, .notes = { { true, 0, 0, BYTES } }, .after = { 1 } },
        { .rank = 1, .kind = LH_OP_EXCHANGE, .notes = { { true, 0, 1, BYTES } }, .after = { 2 } });
    const struct {
        uint64_t ctas;
        double hold; /* share of the device, for all messages together */
        LhTime end;
    } cases[] = {
        /* 1/2 until the first message is over at 20 us, 3/4 until 32 us: 10 + 9 done, 1 left. */
        { 27, 0, 33 * US },
        /* 1/10 and 1/10: 3.2 done, 16.8 left. */
        { 1000, 0, 32 * US + 168 * US / 10 },
        /* 1/2 until 32 us, for any number of messages: 16 done, 4 left. */
        { 0, 0.5, 36 * US },
        { 27, 0.5, 36 * US },
    };

    for (uint32_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autoptr(LhSimResult) result = NULL;
        World w;

        script_init(&w, &script, 2);
        w.topology.nvlink.ctas = cases[i].ctas;
        w.device.messages_hold = cases[i].hold;
        result = world_run(&w);
        ck_assert_int_eq(result->ranks[0].busy_ps, cases[i].end);
        world_clear(&w);
    }
}
END_TEST

/* Ranks of a machine share its cores: two ranks on one core have half of it each while both
 * compute, and messages reduce the share of all. */
START_TEST(sim_ranks_share_the_cores_of_a_machine)
{
    Script compute = SCRIPT({ .rank = 0, .kind = LH_OP_COMPUTE, .time_ps = 20 * US },
                            { .rank = 1, .kind = LH_OP_COMPUTE, .time_ps = 8 * US },
                            { .rank = 2, .kind = LH_OP_COMPUTE, .time_ps = 11 * US });
    Script messages = SCRIPT(
        { .rank = 0, .kind = LH_OP_EXCHANGE, .notes = { { false, 1, 0, BYTES } } },
        { .rank = 0, .kind = LH_OP_COMPUTE, .time_ps = 20 * US },
        { .rank = 1, .kind = LH_OP_COMPUTE, .time_ps = 8 * US },
        { .rank = 1, .kind = LH_OP_EXCHANGE, .notes = { { true, 0, 0, BYTES } }, .after = { 1 } });
    const struct {
        Script *script;
        uint32_t ranks;
        uint64_t machine_ranks, cores;
        double hold;
        LhTime ends[3];
    } cases[] = {
        { &compute, 3, 0, 0, 0, { 20 * US, 8 * US, 11 * US } },
        /* Half until 16 us, 12 us of the longer one left; the third rank has its own machine. */
        { &compute, 3, 2, 1, 0, { 28 * US, 16 * US, 11 * US } },
        /* Two thirds until 12 us: 12 and 3 us left, with one core each. */
        { &compute, 3, 3, 2, 0, { 24 * US, 12 * US, 15 * US } },
        { &compute, 3, 3, 1, 0, { 39 * US, 24 * US, 30 * US } },
        /* One of two has a message: half the core is left, a quarter for each until 32 us. Then
         * both have one: a tenth, for 12 us. */
        { &messages, 2, 2, 1, 1, { 548 * US / 10, 44 * US, 0 } },
    };

    for (uint32_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autoptr(LhSimResult) result = NULL;
        World w;

        script_init(&w, cases[i].script, cases[i].ranks);
        w.device.machine_ranks = cases[i].machine_ranks;
        w.device.machine_cores = cases[i].cores;
        w.device.messages_hold = cases[i].hold;
        result = world_run(&w);
        for (uint32_t r = 0; r < cases[i].ranks; r++)
            ck_assert_int_eq(result->ranks[r].finish_ps, cases[i].ends[r]);
        world_clear(&w);
    }
}
END_TEST

/* ---- the host ---- */

static void
count_record(void *data, const LhTimelineRecord *record)
{
    LhTime *latest = data;

    latest[0] = MAX(latest[0], record->end_ps - record->start_ps);
    ck_assert_int_ge(record->start_ps, record->issued_ps);
    ck_assert_int_ge(record->end_ps, record->start_ps);
}

/* Op k of a rank is issued k launches after the start: slow launches alone determine the time. */
START_TEST(sim_slow_hosts_bound_the_run)
{
    for (uint32_t i = 0; i < G_N_ELEMENTS(schedule_names); i++) {
        const LhProgramParams params = attention(4, 4 * 256, 8, 8, 64);
        g_autoptr(LhSimResult) result = NULL;
        LhTime longest = 0;
        uint32_t most = 0;
        World w;

        world_init(&w, "dgx-a100-80g", schedule(schedule_names[i], &params));
        w.device.kernel_launch_ps = 10 * MS;
        w.params.timeline = count_record;
        w.params.timeline_data = &longest;
        result = world_run(&w);
        for (uint32_t r = 0; r < 4; r++) {
            uint32_t launches;

            kernel_time(&w, r, &launches);
            most = MAX(most, launches);
        }
        ck_assert_int_ge(result->makespan_ps, (most - 1) * w.device.kernel_launch_ps);
        ck_assert_int_le(result->makespan_ps,
                         (most - 1) * w.device.kernel_launch_ps + w.device.kernel_launch_ps / 10);
        for (uint32_t r = 0; r < 4; r++)
            ck_assert_int_gt(10 * result->ranks[r].idle_ps[LH_IDLE_HOST], result->makespan_ps);
        world_clear(&w);
    }
}
END_TEST

/* The public code synchronises host and device in each of P/2 + 1 steps. */
START_TEST(sim_syncs_cost_host_time_each)
{
    for (uint32_t ranks = 2; ranks <= 16; ranks += 2) {
        LhProgramParams params = attention(ranks, ranks * 512, 8, 8, 64);
        LhTime makespans[2];

        set_option(&params, "published_code", 1);
        for (uint32_t i = 0; i < 2; i++) {
            g_autoptr(LhSimResult) result = NULL;
            World w;

            world_init(&w, "bench-platform", schedule("dfa-balanced", &params));
            w.device.stream_sync_ps = i * 10 * MS;
            /* Without link sharing, which syncs reduce by shifting the steps of ranks apart. */
            w.params.network_model = LH_NETWORK_ALPHA_BETA;
            result = world_run(&w);
            makespans[i] = result->makespan_ps;
            world_clear(&w);
        }
        ck_assert_int_eq(makespans[1] - makespans[0], 2 * (ranks / 2 + 1) * 10 * MS);
    }
}
END_TEST

START_TEST(sim_syncs_wait_for_earlier_ops)
{
    Script script = SCRIPT(
        { .rank = 0, .kind = LH_OP_COMPUTE, .time_ps = 50 * US },
        { .rank = 0, .kind = LH_OP_EXCHANGE, .notes = { { true, 1, 0, BYTES } } },
        { .rank = 0, .kind = LH_OP_SYNC }, { .rank = 0, .kind = LH_OP_COMPUTE, .time_ps = 10 * US },
        { .rank = 0, .kind = LH_OP_COMPUTE, .time_ps = 1 * US },
        { .rank = 1, .kind = LH_OP_EXCHANGE, .notes = { { false, 0, 0, BYTES } } });
    g_autoptr(LhSimResult) result = NULL;
    World w;

    script_init(&w, &script, 2);
    w.device.kernel_launch_ps = 3 * US;
    w.device.stream_sync_ps = 8 * US;
    result = world_run(&w);
    ck_assert_int_eq(result->makespan_ps, 50 * US + 8 * US + 10 * US + 1 * US);
    ck_assert_int_eq(result->ranks[0].busy_ps, 61 * US);
    world_clear(&w);
}
END_TEST

/* The division into steps is for labels only and has no effect. */
START_TEST(sim_steps_decide_nothing)
{
    static const LhTime launches[] = { 0, 3 * US, 40 * US };

    for (uint32_t i = 0; i < G_N_ELEMENTS(launches); i++) {
        LhTime makespans[2], busy[2];

        for (uint32_t apart = 0; apart < 2; apart++) {
            Script script =
                SCRIPT({ .rank = 0, .kind = LH_OP_COMPUTE, .time_ps = 50 * US },
                       { .rank = 0, .kind = LH_OP_EXCHANGE, .notes = { { true, 1, 0, BYTES } } },
                       { .rank = 0, .kind = LH_OP_SYNC },
                       { .rank = 0, .kind = LH_OP_COMPUTE, .time_ps = 10 * US },
                       { .rank = 0, .kind = LH_OP_EXCHANGE, .notes = { { false, 1, 0, BYTES } } },
                       { .rank = 0, .kind = LH_OP_COMPUTE, .time_ps = 1 * US },
                       { .rank = 1, .kind = LH_OP_EXCHANGE, .notes = { { false, 0, 0, BYTES } } },
                       { .rank = 1, .kind = LH_OP_COMPUTE, .time_ps = 9 * US, .after = { 1 } },
                       { .rank = 1, .kind = LH_OP_SYNC }, { .rank = 1, .kind = LH_OP_SYNC },
                       { .rank = 1, .kind = LH_OP_EXCHANGE, .notes = { { true, 0, 0, BYTES } } });
            g_autoptr(LhSimResult) result = NULL;
            World w;

            script.apart = apart != 0;
            script_init(&w, &script, 2);
            w.device.kernel_launch_ps = launches[i];
            w.device.stream_sync_ps = 8 * US;
            result = world_run(&w);
            makespans[apart] = result->makespan_ps;
            busy[apart] = result->ranks[0].busy_ps;
            world_clear(&w);
        }
        ck_assert_int_eq(makespans[0], makespans[1]);
        ck_assert_int_eq(busy[0], busy[1]);
    }
}
END_TEST

/* Rank 0 sends, and @ops ops later it receives what rank 1 sends before it receives. */
static void
window_init(World *w, Script *script, Line *lines, uint32_t ops)
{
    script->lines = lines;
    script->count = ops + 3;
    for (uint32_t i = 1; i < ops; i++)
        lines[i] = (Line){ .rank = 0, .kind = LH_OP_COMPUTE, .time_ps = US };
    lines[0] = (Line){ .rank = 0, .kind = LH_OP_EXCHANGE, .notes = { { true, 1, 0, BYTES } } };
    lines[ops] = (Line){
        .rank = 0, .kind = LH_OP_EXCHANGE, .notes = { { false, 1, 0, BYTES } }, .stream = COMM2
    };
    lines[ops + 1] =
        (Line){ .rank = 1, .kind = LH_OP_EXCHANGE, .notes = { { true, 0, 0, BYTES } } };
    lines[ops + 2] =
        (Line){ .rank = 1, .kind = LH_OP_EXCHANGE, .notes = { { false, 0, 0, BYTES } } };
    script_init(w, script, 2);
}

/* A host is at most a window of ops ahead of the oldest incomplete one, however the ops are
 * divided into steps. */
START_TEST(sim_hosts_are_a_window_ahead)
{
    g_autofree Line *lines = g_new0(Line, LH_HOST_WINDOW + 4);

    for (uint32_t apart = 0; apart < 2; apart++) {
        Script script = { .apart = apart != 0 };
        g_autoptr(LhSimResult) result = NULL;
        World w;

        window_init(&w, &script, lines, LH_HOST_WINDOW);
        result = world_run(&w);
        ck_assert_int_eq(result->makespan_ps, (LH_HOST_WINDOW - 1) * US);
        world_clear(&w);
        window_init(&w, &script, lines, LH_HOST_WINDOW + 1);
        check_failure(&w, LH_ERROR_RUNTIME,
                      (const char *[]){ "2 of 2 ranks", "rank 0, op 0",
                                        "its host is 1024 ops ahead", "rank 1, op 0", NULL });
    }
}
END_TEST

/* ---- memory of the program ---- */

START_TEST(sim_memory_peaks_once)
{
    Script script = SCRIPT(
        { .rank = 0, .kind = LH_OP_ALLOC, .slot = SLOT_LARGE },
        { .rank = 0, .kind = LH_OP_COMPUTE, .time_ps = 5 * US },
        { .rank = 0, .kind = LH_OP_FREE, .slot = SLOT_LARGE }, { .rank = 0, .kind = LH_OP_SYNC },
        { .rank = 0, .kind = LH_OP_ALLOC, .slot = SLOT_SMALL },
        { .rank = 0, .kind = LH_OP_COMPUTE, .time_ps = 5 * US },
        { .rank = 1, .kind = LH_OP_ALLOC, .slot = SLOT_SMALL },
        { .rank = 1, .kind = LH_OP_COMPUTE, .time_ps = 5 * US }, { .rank = 1, .kind = LH_OP_SYNC },
        { .rank = 1, .kind = LH_OP_ALLOC, .slot = SLOT_LARGE },
        { .rank = 1, .kind = LH_OP_COMPUTE, .time_ps = 5 * US });
    g_autoptr(LhSimResult) result = NULL;
    World w;

    script.apart = true;
    script_init(&w, &script, 2);
    result = world_run(&w);
    ck_assert_uint_eq(result->ranks[0].peak_bytes, 70 + 1000);
    ck_assert_uint_eq(result->ranks[0].peak->by_tensor[LH_TENSOR_Q], 70);
    ck_assert_uint_eq(result->ranks[0].peak->by_tensor[LH_TENSOR_KV], 1000);
    ck_assert_int_eq(result->ranks[0].peak_at_ps, 0);
    ck_assert_uint_eq(result->ranks[1].peak_bytes, 70 + 300 + 1000);
    ck_assert_uint_eq(result->ranks[1].peak->by_tensor[LH_TENSOR_Q], 70 + 300);
    ck_assert_int_eq(result->ranks[1].peak_at_ps, 5 * US);
    world_clear(&w);
}
END_TEST

/* ---- deadlocks ---- */

START_TEST(sim_deadlock_names_who_waits)
{
    Script missing = SCRIPT(
        { .rank = 0, .kind = LH_OP_COMPUTE, .time_ps = 5 * US },
        { .rank = 0, .kind = LH_OP_EXCHANGE, .notes = { { true, 1, 3, BYTES } }, .after = { 1 } },
        { .rank = 0, .kind = LH_OP_COMPUTE, .time_ps = 5 * US, .after = { 2 } },
        { .rank = 1, .kind = LH_OP_EXCHANGE, .notes = { { false, 0, 4, BYTES } } });
    /* Each waits for the other's next op. */
    Script circle =
        SCRIPT({ .rank = 0, .kind = LH_OP_EXCHANGE, .notes = { { false, 1, 0, BYTES } } },
               { .rank = 0, .kind = LH_OP_EXCHANGE, .notes = { { true, 1, 0, BYTES } } },
               { .rank = 1, .kind = LH_OP_EXCHANGE, .notes = { { false, 0, 0, BYTES } } },
               { .rank = 1, .kind = LH_OP_EXCHANGE, .notes = { { true, 0, 0, BYTES } } });
    Script absent = SCRIPT({ .rank = 0, .kind = LH_OP_COLLECTIVE, .group = 2, .bytes = BYTES },
                           { .rank = 1, .kind = LH_OP_COMPUTE, .time_ps = 5 * US });
    World w;

    script_init(&w, &missing, 2);
    w.program->generator = &on_communicators;
    check_failure(&w, LH_ERROR_RUNTIME,
                  (const char *[]){ "2 of 2 ranks", "rank 0, op 1 (exchange",
                                    "rank 1, op 0 (exchange", "1 message", NULL });
    script_init(&w, &circle, 2);
    check_failure(&w, LH_ERROR_RUNTIME,
                  (const char *[]){ "2 of 2 ranks", "rank 0, op 0", "rank 1, op 0", NULL });
    script_init(&w, &absent, 2);
    check_failure(
        &w, LH_ERROR_RUNTIME,
        (const char *[]){ "1 of 2 ranks", "rank 0, op 0 (collective", "rest of its group", NULL });
}
END_TEST

START_TEST(sim_impossible_ops_are_input_errors)
{
    Script self = SCRIPT({ .rank = 0, .kind = LH_OP_EXCHANGE, .notes = { { true, 0, 0, BYTES } } },
                         { .rank = 1, .kind = LH_OP_COMPUTE, .time_ps = US });
    Script nobody =
        SCRIPT({ .rank = 0, .kind = LH_OP_COMPUTE, .time_ps = US },
               { .rank = 1, .kind = LH_OP_EXCHANGE, .notes = { { true, 7, 0, BYTES } } });
    Script future = SCRIPT({ .rank = 0, .kind = LH_OP_COMPUTE, .time_ps = US, .after = { 2 } },
                           { .rank = 0, .kind = LH_OP_COMPUTE, .time_ps = US });
    World w;

    script_init(&w, &self, 2);
    check_failure(&w, LH_ERROR_INPUT,
                  (const char *[]){ "rank 0, op 0", "another existing rank", NULL });
    script_init(&w, &nobody, 2);
    check_failure(&w, LH_ERROR_INPUT,
                  (const char *[]){ "rank 1, op 0", "another existing rank", NULL });
    script_init(&w, &future, 1);
    check_failure(&w, LH_ERROR_INPUT, (const char *[]){ "rank 0, op 0", "not earlier", NULL });
}
END_TEST

static bool
stop(void *data, const LhProgress *at)
{
    uint32_t *calls = data;

    ck_assert_uint_gt(at->events, 0);
    ck_assert_int_gt(at->now_ps, 0);
    return ++*calls < 1;
}

START_TEST(sim_can_be_interrupted)
{
    const LhProgramParams params = attention(128, 128 * 16, 1, 1, 8);
    uint32_t calls = 0;
    World w;

    world_init(&w, "bench-platform", schedule("ring", &params));
    w.params.task = (LhTask){ .progress = stop, .data = &calls };
    check_failure(&w, LH_ERROR_RUNTIME, (const char *[]){ "interrupted", NULL });
    ck_assert_uint_eq(calls, 1);
}
END_TEST

LH_TEST_MAIN("sim_ops", sim_two_ranks_take_latency_and_bytes_over_bandwidth,
             sim_messages_wait_for_both_ends, sim_records_say_when_bytes_move,
             sim_messages_match_by_peer_and_order, sim_communicators_tell_messages_apart,
             sim_groups_end_with_their_last_message, sim_streams_keep_order_and_overlap,
             sim_compute_streams_share_the_device, sim_communication_slows_compute_beside_it,
             sim_waiting_communication_holds_its_sms, sim_ranks_share_the_cores_of_a_machine,
             sim_slow_hosts_bound_the_run, sim_syncs_cost_host_time_each,
             sim_syncs_wait_for_earlier_ops, sim_steps_decide_nothing, sim_hosts_are_a_window_ahead,
             sim_memory_peaks_once, sim_deadlock_names_who_waits,
             sim_impossible_ops_are_input_errors, sim_can_be_interrupted)
