/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Single-rank replay on a CPU: the choice of the rank, the completion of messages, and that every
 * rank of every schedule runs alone with no message completing early. test_replay_gpu.c tests in
 * virtual time that none completes late.
 */
#include "alone.h"
#include "measure/measure_collective.h"

#include <string.h>

/* ---- which rank ---- */

/* Records of two ops per rank; the first of them ends last. */
static GArray *
records_of_ends(const LhTime *ends, uint32_t ranks)
{
    GArray *records = g_array_new(FALSE, FALSE, sizeof(LhTimelineRecord));

    for (uint32_t r = 0; r < ranks; r++) {
        for (uint32_t op = 0; op < 2; op++) {
            const LhTimelineRecord record = { .rank = r,
                                              .op = op,
                                              .end_ps = op == 0 ? ends[r] : 5 };

            g_array_append_val(records, record);
        }
    }
    return records;
}

START_TEST(replay_chooses_a_rank)
{
    static const LhTime ends[] = { 50, 90, 10, 90, 70 };
    static const struct {
        const char *word, *text;
        uint32_t rank;
    } cases[] = { { "slowest", "the slowest rank", 3 },
                  { "median", "the median rank", 4 },
                  { "fastest", "the fastest rank", 2 },
                  { "0", "rank 0", 0 },
                  { "4", "rank 4", 4 } };
    g_autoptr(GArray) records = records_of_ends(ends, G_N_ELEMENTS(ends));
    g_autoptr(GError) error = NULL;
    LhSingleRank alone;
    uint32_t rank;

    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autofree char *text = NULL;

        ck_assert(lh_single_rank_parse(cases[i].word, &alone, NULL));
        text = lh_single_rank_text(&alone);
        ck_assert_str_eq(text, cases[i].text);
        ck_assert(lh_single_rank_choose(&alone, records, &rank, NULL));
        ck_assert_uint_eq(rank, cases[i].rank);
    }
    ck_assert(lh_single_rank_parse("5", &alone, NULL));
    ck_assert(!lh_single_rank_choose(&alone, records, &rank, &error));
    g_array_set_size(records, 2 * 4); /* the median of four is the second */
    ck_assert(lh_single_rank_parse("median", &alone, NULL));
    ck_assert(lh_single_rank_choose(&alone, records, &rank, NULL));
    ck_assert_uint_eq(rank, 0);
    ck_assert_str_eq(error->message, "--replay-rank: rank 5 has no ops; 5 ranks have some");
}
END_TEST

START_TEST(replay_refuses_other_words)
{
    static const char *const words[] = { "",   "slow",        "Slowest",
                                         "-1", "+1",          "1.5",
                                         "1 ", "99999999999", "18446744073709551616" };
    LhSingleRank alone;

    for (size_t i = 0; i < G_N_ELEMENTS(words); i++) {
        g_autoptr(GError) error = NULL;

        ck_assert_msg(!lh_single_rank_parse(words[i], &alone, &error), "%s", words[i]);
        ck_assert(g_error_matches(error, LH_ERROR, LH_ERROR_USAGE));
    }
    ck_assert(lh_single_rank_parse(NULL, &alone, NULL));
    ck_assert_int_eq(alone.choice, LH_SINGLE_RANK_NONE);
}
END_TEST

START_TEST(replay_is_of_one_process)
{
    g_autoptr(GError) error = NULL;
    LhBackend chosen;

    ck_assert(lh_backend_replaying(&lh_backend_cpu, &chosen, NULL));
    ck_assert_ptr_eq(chosen.transport, &lh_transport_replay);
    ck_assert(!lh_backend_replaying(&lh_backend_tcp, &chosen, &error));
    ck_assert(g_error_matches(error, LH_ERROR, LH_ERROR_USAGE));
}
END_TEST

/* ---- when messages are over ---- */

START_TEST(replay_ends_of_ops)
{
    g_autoptr(LhReplay) replay = lh_replay_new(3);

    lh_replay_set(replay, 7, (LhReplayOp){ .others_ps = 100, .took_ps = 20 });
    ck_assert_int_eq(lh_replay_end(replay, 7, 40), 120);
    ck_assert_int_eq(lh_replay_end(replay, 7, 100), 120);
    ck_assert_int_eq(lh_replay_end(replay, 7, 130), 150);
    ck_assert_int_eq(lh_replay_end(replay, 6, 40), 40);
    ck_assert_int_eq(lh_replay_end(replay, 1000, 40), 40);
}
END_TEST

static LhTime clock_ps;

static LhTime
now(const void *run)
{
    (void)run;
    return clock_ps;
}

static void
note_end(LhMessage *message, GError *error)
{
    ck_assert_ptr_null(error);
    ck_assert(!message->done);
    message->done = true;
}

static void
poll_until_still(void *transport)
{
    while (lh_transport_replay.poll(transport, 0))
        ;
}

/* Two ops are in flight at a time; the messages of one are posted in two rounds. */
START_TEST(replay_transport_keeps_time)
{
    g_autoptr(LhReplay) replay = lh_replay_new(0);
    const LhTransportParams params = {
        .ranks = 2, .channels = 1, .device = &lh_device_cpu, .replay = replay, .now = now
    };
    unsigned char bytes[] = { 1, 2, 3, 4, 5 };
    LhPiece pieces[] = { { bytes, 2 }, { bytes + 3, 1 } };
    const LhDeviceParams device_params = { .rank = 0 };
    LhDeviceState *device = lh_device_cpu.open(&device_params, NULL);
    LhDeviceStream stream = lh_device_cpu.stream(device, false, NULL);
    LhMessage sent = { .send = true, .peer = 1, .op = 4 };
    LhMessage received = { .peer = 1, .op = 4, .pieces_count = 2, .pieces = pieces, .bytes = 3 };
    LhMessage other = { .send = true, .peer = 1, .op = 9 };
    LhMessage later = { .send = true, .peer = 1, .op = 4 };
    LhMessage *const all[] = { &sent, &received, &other, &later };
    void *transport = lh_transport_replay.open(&params, NULL);

    for (size_t i = 0; i < G_N_ELEMENTS(all); i++) {
        all[i]->complete = note_end;
        all[i]->device = device;
        all[i]->stream = stream;
    }
    lh_replay_set(replay, 4, (LhReplayOp){ .others_ps = 500000, .took_ps = 70000 });
    lh_replay_set(replay, 9, (LhReplayOp){ .others_ps = 0, .took_ps = 1000000 });
    clock_ps = 100000;
    lh_transport_replay.post(transport, &sent);
    clock_ps = 200000;
    lh_transport_replay.post(transport, &received);
    lh_transport_replay.post(transport, &other);
    ck_assert_mem_eq(bytes, ((unsigned char[]){ 0x3c, 0x3c, 3, 0x3c, 5 }), 5);
    clock_ps = 569999;
    poll_until_still(transport);
    ck_assert(!sent.done && !received.done && !other.done);
    clock_ps = 570000;
    poll_until_still(transport);
    ck_assert(sent.done && received.done && !other.done);
    lh_transport_replay.post(transport, &later); /* the op has already taken its time */
    poll_until_still(transport);
    ck_assert(later.done);
    clock_ps = 1199999;
    poll_until_still(transport);
    ck_assert(!other.done);
    clock_ps = 1200000;
    poll_until_still(transport);
    ck_assert(other.done);
    lh_transport_replay.close(transport);
    lh_device_cpu.end_stream(device, stream);
    lh_device_cpu.close(device);
}
END_TEST

/* ---- every rank of every schedule ---- */

static LhTime
short_time(void *data, uint32_t rank, const LhOp *op)
{
    (void)data;
    (void)rank;
    (void)op;
    return LH_PS_PER_S / 10000;
}

static void
check_rank(const LhProgram *program, const GArray *all, const LhPairing *meetings, uint32_t rank)
{
    g_autoptr(GArray) predicted = g_array_new(FALSE, FALSE, sizeof(LhTimelineRecord));
    g_autoptr(LhReplay) replay = lh_single_rank_replay(all, meetings, rank, predicted);
    g_autoptr(GArray) ran = run_alone(program, &lh_backend_cpu, LH_WAY_DIRECT, replay, NULL);
    guint first = 0; /* first record of this rank among all */

    while (record_of(all, first)->rank != rank)
        first++;
    check_same_ops(program, ran, predicted);
    for (guint i = 0; i < ran->len; i++) {
        const LhTimelineRecord *r = record_of(ran, i), *p = record_of(predicted, i);
        const LhTime took_ps = lh_replay_op(replay, p->op).took_ps;

        ck_assert_int_eq(took_ps,
                         p->kind == LH_OP_COMPUTE ? 0 : lh_pairing_took(meetings, all, first + i));

        ck_assert_int_eq(p->end_ps, p->kind == LH_OP_COMPUTE
                                        ? p->end_ps
                                        : lh_replay_end(replay, p->op, p->start_ps));
        ck_assert_int_ge(r->end_ps, lh_replay_end(replay, r->op, r->start_ps));
    }
}

START_TEST(replay_runs_every_rank)
{
    const Links links = { .message_s = 1e-3, .bytes_per_s = 1e7, .compute_time = short_time };

    for_all_ranks(lh_schedules[_i], 4, &links, check_rank);
}
END_TEST

START_TEST(replay_waits_without_messages)
{
    const LhTime ms_ps = LH_PS_PER_S / 1000;
    g_autoptr(GArray) ran = run_without_messages(&lh_backend_cpu, 2 * ms_ps, 3 * ms_ps);

    ck_assert_int_ge(record_of(ran, 0)->end_ps, 5 * ms_ps);
}
END_TEST

/* A broadcast is a chain: the first rank does not wait for the last one, which is late here. */
START_TEST(replay_is_not_held_up_by_who_comes_later)
{
    const Links links = { .message_s = 1e-3, .bytes_per_s = 1e7, .compute_time = short_time };
    const LhCollectiveProbe probe = {
        .ranks = 3, .kind = LH_COLL_BROADCAST, .members = 3, .shard_bytes = 4096
    };
    g_autoptr(LhProgram) program = lh_collective_program(&probe);
    g_autoptr(GArray) all = predicted_over(program, &links);
    g_autoptr(LhPairing) meetings = lh_pairing_new(program, all);
    g_autoptr(GArray) own = g_array_new(FALSE, FALSE, sizeof(LhTimelineRecord));
    g_autoptr(LhReplay) replay = NULL;

    for (guint i = 0; i < all->len; i++) {
        LhTimelineRecord *r = &g_array_index(all, LhTimelineRecord, i);

        if (r->rank == 2) {
            r->start_ps += LH_PS_PER_S;
            r->end_ps += LH_PS_PER_S;
        }
    }
    replay = lh_single_rank_replay(all, meetings, 0, own);
    ck_assert_uint_gt(own->len, 0);
    for (guint i = 0; i < own->len; i++) {
        const LhTimelineRecord *r = record_of(own, i);

        ck_assert_int_eq(lh_replay_end(replay, r->op, r->start_ps), r->end_ps);
        ck_assert_int_ge(lh_replay_op(replay, r->op).took_ps, 0);
    }
}
END_TEST

int
main(void)
{
    const TTest *const tests[] = { replay_chooses_a_rank,
                                   replay_refuses_other_words,
                                   replay_is_of_one_process,
                                   replay_ends_of_ops,
                                   replay_transport_keeps_time,
                                   replay_waits_without_messages,
                                   replay_is_not_held_up_by_who_comes_later };
    const TTest *const loops[] = { replay_runs_every_rank };

    return run_suite("replay", loops, G_N_ELEMENTS(loops), tests, G_N_ELEMENTS(tests));
}
