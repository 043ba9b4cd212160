/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Single-rank replay, for tests: a program simulated over links of one latency and bandwidth, and
 * one of its ranks executed against that prediction.
 */
#pragma once

#include "execute/single_rank.h"
#include "measure/microbenchmarks.h"
#include "over_links.h"
#include "program/emit.h"
#include "running.h"

static inline void
collect_on_streams(void *data, const LhTimelineRecord *record)
{
    if (record->kind == LH_OP_COMPUTE || record->kind == LH_OP_EXCHANGE ||
        record->kind == LH_OP_COLLECTIVE)
        g_array_append_vals(data, record, 1);
}

static inline const LhTimelineRecord *
record_of(const GArray *records, guint index)
{
    return &g_array_index(records, LhTimelineRecord, index);
}

/* The simulated timeline: LhTimelineRecord, sorted by rank and op; caller frees. */
static inline GArray *
predicted_over(const LhProgram *program, const Links *links)
{
    GArray *records = g_array_new(FALSE, FALSE, sizeof(LhTimelineRecord));

    lh_sim_result_free(
        simulate_over(program, links, LH_COLLECTIVES_DIRECT, collect_on_streams, records));
    g_array_sort(records, lh_timeline_by_rank_and_op);
    return records;
}

/* Fills a part with bytes that are valid in every tensor. */
static inline void
load_small(void *data, uint32_t rank, uint16_t slot, uint32_t part, unsigned char *bytes)
{
    const LhProgram *program = data;

    (void)rank;
    (void)part;
    memset(bytes, LH_REPLAY_BYTE, program->slots[slot].part_bytes);
}

/* Executes @replay's rank; returns its timeline sorted by op, caller frees. @hooks may be NULL. */
static inline GArray *
run_alone(const LhProgram *program, const LhBackend *on, LhCollectiveWay way,
          const LhReplay *replay, const LhRunHooks *hooks)
{
    GArray *records = g_array_new(FALSE, FALSE, sizeof(LhTimelineRecord));
    g_autoptr(GError) error = NULL;
    g_autoptr(LhRunResult) result = NULL;
    LhBackend backend;
    const LhRunParams params = { .program = program,
                                 .backend = &backend,
                                 .collectives = way,
                                 .deadline_us = 60 * G_USEC_PER_SEC,
                                 .replay = replay,
                                 .hooks = hooks,
                                 .load = load_small,
                                 .load_data = (void *)program,
                                 .timeline = collect_on_streams,
                                 .timeline_data = records };

    ck_assert(lh_backend_replaying(on, &backend, &error));
    result = lh_execute(&params, &error);
    ck_assert_msg(result != NULL, "%s, rank %u: %s", program->name, replay->rank,
                  error != NULL ? error->message : "");
    ck_assert_int_eq(result->makespan_ps, result->ranks[replay->rank].finish_ps);
    g_array_sort(records, lh_timeline_by_rank_and_op);
    return records;
}

/* A test's check of one rank against the prediction of all ranks. */
typedef void (*RankCheck)(const LhProgram *program, const GArray *all, const LhPairing *meetings,
                          uint32_t rank);

/* Runs @check on every rank of a schedule on @ranks ranks, if the schedule supports that number. */
static inline void
for_all_ranks(const LhSchedule *schedule, uint32_t ranks, const Links *links, RankCheck check)
{
    const Case c = small_case(schedule, ranks);
    g_autoptr(LhProgram) program = program_of(&c);
    g_autoptr(GArray) all = NULL;
    g_autoptr(LhPairing) meetings = NULL;

    if (program == NULL)
        return;
    all = predicted_over(program, links);
    meetings = lh_pairing_new(program, all);
    for (uint32_t rank = 0; rank < lh_program_ranks(program); rank++)
        check(program, all, meetings, rank);
}

static inline uint32_t
one_step(const LhProgram *program, uint32_t rank)
{
    (void)program;
    (void)rank;
    return 1;
}

static inline void
emit_nothing(LhEmitter *e, uint32_t step)
{
    (void)step;
    lh_emit_exchange(e, 0);
    lh_emit_exchange(e, 0);
}

/* Replays a rank with two exchanges without messages; the prediction has it wait for others in the
 * first only. Returns the timeline of both; caller frees. */
static inline GArray *
run_without_messages(const LhBackend *on, LhTime others_ps, LhTime took_ps)
{
    static const LhGenerator generator = { .steps = one_step, .emit = emit_nothing };
    g_autoptr(LhProgram) program = lh_microbenchmark_new(&generator, 1, NULL);
    g_autoptr(LhReplay) replay = lh_replay_new(0);
    GArray *ran;

    lh_program_add_stream(program, "comm", LH_STREAM_COMM);
    lh_replay_set(replay, 0, (LhReplayOp){ .others_ps = others_ps, .took_ps = took_ps });
    ran = run_alone(program, on, LH_WAY_DIRECT, replay, NULL);
    ck_assert_uint_eq(ran->len, 2);
    return ran;
}

/* Asserts that both timelines hold the same ops. */
static inline void
check_same_ops(const LhProgram *program, const GArray *ran, const GArray *predicted)
{
    ck_assert_msg(ran->len == predicted->len, "%s: %u ops ran, %u were predicted", program->name,
                  ran->len, predicted->len);
    for (guint i = 0; i < ran->len; i++) {
        ck_assert_uint_eq(record_of(ran, i)->rank, record_of(predicted, i)->rank);
        ck_assert_uint_eq(record_of(ran, i)->op, record_of(predicted, i)->op);
        ck_assert_int_eq(record_of(ran, i)->kernel, record_of(predicted, i)->kernel);
    }
}
