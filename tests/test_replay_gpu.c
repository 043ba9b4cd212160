/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Single-rank replay on a GPU, in virtual time on the stand-in: every op of every rank of every
 * schedule begins and ends when the simulator predicts; a late rank is delayed by its own delay
 * alone.
 */
#include "alone.h"
#include "standin.h"
#include "virtual_time.h"

#include <math.h>

#define OFF_MAX 1e-4 /* relative to the makespan: the GPU's clock counts nanoseconds */
#define FASTER 10000 /* than unit costs: waiting polls the clock every microsecond */

#ifdef INTERPRETED
static const uint32_t ranks_of_runs[] = { 4 };
#else
static const uint32_t ranks_of_runs[] = { 2, 3, 4, 5, 8 };
#endif

static LhTime
short_time(void *data, uint32_t rank, const LhOp *op)
{
    return unit_time(data, rank, op) / FASTER;
}

/* Kernels take the rank's own times multiplied by @late. */
typedef struct {
    double late;
} Delay;

static enum lh_status
call_late(void *data, uint32_t rank, const LhOp *op, const LhPlaceOfWork *at, const LhCall *call)
{
    const Delay *delay = data;

    standin_next_launch(delay->late * (double)short_time(NULL, rank, op) / LH_PS_PER_S, 0);
    return at->device->call(at->state, op->compute.kernel, call, at->stream);
}

static GArray *
run_in_time(const LhProgram *program, const LhReplay *replay, LhCollectiveWay way, double late)
{
    Delay delay = { late };
    const LhRunHooks hooks = { .call = call_late, .data = &delay };
    GArray *records;

    standin_start(&(StandinOptions){ .seed = 3, .devices = 1, .eager = 20 });
    standin_times(&(StandinTimes){ 0 });
    records = run_alone(program, &lh_backend_cuda, way, replay, &hooks);
    standin_end();
    ck_assert_str_eq(standin_findings(), "");
    return records;
}

static LhTime
last_end(const GArray *records)
{
    LhTime last_ps = 0;

    for (guint i = 0; i < records->len; i++)
        last_ps = MAX(last_ps, record_of(records, i)->end_ps);
    return last_ps;
}

static void
check_times(const LhProgram *program, const GArray *ran, const GArray *predicted)
{
    const double most = OFF_MAX * (double)last_end(predicted);

    check_same_ops(program, ran, predicted);
    for (guint i = 0; i < ran->len; i++) {
        const LhTimelineRecord *r = record_of(ran, i), *p = record_of(predicted, i);

        ck_assert_msg(fabs((double)(r->start_ps - p->start_ps)) <= most &&
                          fabs((double)(r->end_ps - p->end_ps)) <= most,
                      "%s, P %u, rank %u, op %u: %g to %g s, predicted %g to %g s", program->name,
                      lh_program_ranks(program), r->rank, r->op, (double)r->start_ps / LH_PS_PER_S,
                      (double)r->end_ps / LH_PS_PER_S, (double)p->start_ps / LH_PS_PER_S,
                      (double)p->end_ps / LH_PS_PER_S);
    }
}

/* Messages to and from a rank are over exactly when @replay predicts. */
static void
check_late(const LhProgram *program, const LhReplay *replay, const GArray *predicted)
{
    g_autoptr(GArray) ran = run_in_time(program, replay, LH_WAY_NATIVE, 3);
    const double most = OFF_MAX * (double)last_end(ran);

    check_same_ops(program, ran, predicted);
    for (guint i = 0; i < ran->len; i++) {
        const LhTimelineRecord *r = record_of(ran, i);
        const LhTime end_ps = lh_replay_end(replay, r->op, r->start_ps);

        ck_assert_int_ge(r->end_ps, record_of(predicted, i)->end_ps - (LhTime)most);
        ck_assert(r->kind == LH_OP_COMPUTE || fabs((double)(r->end_ps - end_ps)) <= most);
    }
}

static void
check_rank(const LhProgram *program, const GArray *all, const LhPairing *meetings, uint32_t rank)
{
    static const LhCollectiveWay ways[] = { LH_WAY_NATIVE, LH_WAY_DIRECT, LH_WAY_RING };
    g_autoptr(GArray) predicted = g_array_new(FALSE, FALSE, sizeof(LhTimelineRecord));
    g_autoptr(LhReplay) replay = lh_single_rank_replay(all, meetings, rank, predicted);

    for (size_t i = 0; i < G_N_ELEMENTS(ways); i++) {
        g_autoptr(GArray) ran = run_in_time(program, replay, ways[i], 1);

        check_times(program, ran, predicted);
    }
    check_late(program, replay, predicted);
}

START_TEST(ranks_alone_keep_the_simulators_time)
{
    const Links links = { .message_s = 0.25 / FASTER,
                          .bytes_per_s = 2048.0 * FASTER,
                          .compute_time = short_time };

    for (size_t i = 0; i < G_N_ELEMENTS(ranks_of_runs); i++)
        for_all_ranks(lh_schedules[_i], ranks_of_runs[i], &links, check_rank);
}
END_TEST

START_TEST(ranks_alone_wait_without_messages)
{
    const LhTime ms_ps = LH_PS_PER_S / 1000;
    g_autoptr(GArray) ran = NULL;

    standin_start(&(StandinOptions){ .seed = 3, .devices = 1, .eager = 20 });
    standin_times(&(StandinTimes){ 0 });
    ran = run_without_messages(&lh_backend_cuda, 2 * ms_ps, 3 * ms_ps);
    standin_end();
    ck_assert_str_eq(standin_findings(), "");
    ck_assert_int_eq(record_of(ran, 0)->end_ps, 5 * ms_ps);
    ck_assert_int_eq(record_of(ran, 1)->end_ps, 5 * ms_ps);
}
END_TEST

int
main(void)
{
    const TTest *const loops[] = { ranks_alone_keep_the_simulators_time };

    const TTest *const tests[] = { ranks_alone_wait_without_messages };

    return run_suite("replay_gpu", loops, G_N_ELEMENTS(loops), tests, G_N_ELEMENTS(tests));
}
