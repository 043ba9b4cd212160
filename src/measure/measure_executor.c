/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Measures the executor by programs made for it. Ops without messages do nothing, so their time is
 * the executor's overhead. Messages are timed with nothing else running.
 */
#include "measure/measure_executor.h"

#include "measure/fit.h"
#include "measure/microbenchmarks.h"
#include "program/emit.h"

#include <math.h>

#define SENDER_WAITS_US 300 /* lets the receiver fall asleep */
#define PROBE_STEPS 20
#define PROBE_OPS 32 /* ops per step, fewer than a host may run ahead */

/* A program with one communication stream. */
static LhProgram *
new_probe(const LhGenerator *generator, uint32_t ranks, void *plan)
{
    LhProgram *program = lh_microbenchmark_new(generator, ranks, plan);

    lh_program_add_stream(program, "comm", LH_STREAM_COMM);
    return program;
}

/* ---- the host ---- */

static uint32_t
probe_steps(const LhProgram *program, uint32_t rank)
{
    (void)program;
    (void)rank;
    return PROBE_STEPS;
}

/* Emits empty ops and a synchronise. */
static void
emit_host_probe(LhEmitter *e, uint32_t step)
{
    (void)step;
    for (unsigned i = 0; i < PROBE_OPS; i++)
        lh_emit_exchange(e, 0);
    lh_emit_sync(e);
}

static const LhGenerator host_probe = { .steps = probe_steps, .emit = emit_host_probe };

bool
lh_measure_host(double *issue_s, double *sync_s, GError **error)
{
    g_autoptr(LhProgram) program = new_probe(&host_probe, 1, NULL);
    g_autoptr(GArray) records =
        lh_microbenchmark_run(program, &lh_backend_cpu, LH_WAY_DIRECT, NULL, error);
    double issues[PROBE_STEPS * (PROBE_OPS - 1)];
    double syncs[PROBE_STEPS - 1];
    size_t issues_count = 0, syncs_count = 0;

    if (records == NULL)
        return false;
    g_assert(records->len == PROBE_STEPS * PROBE_OPS);
    for (guint i = 1; i < records->len; i++) {
        const LhTimelineRecord *before = lh_microbenchmark_record(records, i - 1);
        const LhTimelineRecord *now = lh_microbenchmark_record(records, i);

        if (i % PROBE_OPS != 0)
            issues[issues_count++] =
                (double)(now->issued_ps - before->issued_ps) / (double)LH_PS_PER_S;
        else
            syncs[syncs_count++] = (double)(now->issued_ps - before->end_ps) / (double)LH_PS_PER_S;
    }
    *issue_s = lh_median(issues, issues_count);
    *sync_s = lh_median(syncs, syncs_count);
    return true;
}

/* ---- transfers ---- */

/* Emits a message from rank 0 to rank 1. */
static void
emit_transfer_probe(LhEmitter *e, uint32_t step)
{
    (void)step;
    lh_emit_exchange(e, 0);
    lh_emit_part(e, e->rank == 0, 1 - e->rank, 0, e->program->slots[0].part_bytes);
    lh_emit_region(e, 0, 0, 1);
}

static const LhGenerator transfer_probe = { .steps = probe_steps, .emit = emit_transfer_probe };

/* Delays the sender, so that the receiver posts first. */
static void
pause_sender(void *data, uint32_t rank, uint32_t op, uint32_t where)
{
    (void)data;
    (void)op;
    if (rank == 0 && where == 0)
        g_usleep(SENDER_WAITS_US);
}

bool
lh_measure_transfer(uint32_t repeats, const LhBackend *backend, uint64_t bytes, double *seconds,
                    GError **error)
{
    static const LhRunHooks hooks = { .pause = pause_sender };
    g_autoptr(LhProgram) program = new_probe(&transfer_probe, 2, NULL);
    g_autofree double *times = g_new(double, (gsize)repeats *PROBE_STEPS);
    size_t count = 0;

    lh_program_add_slot(program, (LhSlotParams){ .name = "data",
                                                 .kind = LH_TENSOR_Q,
                                                 .role = LH_SLOT_INPUT,
                                                 .dtype = LH_DTYPE_BF16,
                                                 .parts = 1,
                                                 .part_bytes = bytes });
    for (uint32_t repeat = 0; repeat < repeats; repeat++) {
        g_autoptr(GArray) records =
            lh_microbenchmark_run(program, backend, LH_WAY_DIRECT, &hooks, error);

        if (records == NULL)
            return false;
        g_assert(records->len == 2 * PROBE_STEPS);
        for (guint i = 1; i < PROBE_STEPS; i++) {
            const LhTimelineRecord *sends = lh_microbenchmark_record(records, i);
            const LhTimelineRecord *receives = lh_microbenchmark_record(records, PROBE_STEPS + i);

            times[count++] = (double)(receives->end_ps - MAX(sends->start_ps, receives->start_ps)) /
                             (double)LH_PS_PER_S;
        }
    }
    *seconds = lh_median(times, count);
    return true;
}

/* ---- flows ---- */

#define ANSWER_BYTES 2
enum {
    SLOT_SENT,
    SLOT_RECEIVED,
    SLOT_ANSWER_SENT,
    SLOT_ANSWER_RECEIVED,
};

/* A sender waits for an answer before it sends again; a rank may both send and receive. */
static void
emit_answered(LhEmitter *e, uint32_t to, uint32_t from)
{
    if (to < LH_RANKS_MAX) {
        lh_emit_exchange(e, 0);
        lh_microbenchmark_emit_message(e, true, to, SLOT_SENT);
    }
    if (from < LH_RANKS_MAX) {
        lh_emit_exchange(e, 1);
        lh_microbenchmark_emit_message(e, false, from, SLOT_RECEIVED);
    }
    e->communicator = 1;
    if (to < LH_RANKS_MAX) {
        lh_emit_exchange(e, 0);
        lh_microbenchmark_emit_message(e, false, to, SLOT_ANSWER_RECEIVED);
    }
    if (from < LH_RANKS_MAX) {
        lh_emit_exchange(e, 1);
        lh_microbenchmark_emit_message(e, true, from, SLOT_ANSWER_SENT);
    }
}

static void
emit_flows(LhEmitter *e, uint32_t step)
{
    const LhFlowsProbe *probe = e->program->plan;
    const uint32_t to = probe->to[e->rank],
                   from = lh_microbenchmark_sender(probe->to, probe->ranks, e->rank);

    (void)step;
    if (probe->answered) {
        emit_answered(e, to, from);
        return;
    }
    lh_emit_exchange(e, 0);
    if (to < LH_RANKS_MAX)
        lh_microbenchmark_emit_message(e, true, to, SLOT_SENT);
    if (from < LH_RANKS_MAX)
        lh_microbenchmark_emit_message(e, false, from, SLOT_RECEIVED);
}

static uint32_t
flows_steps(const LhProgram *program, uint32_t rank)
{
    (void)rank;
    return ((const LhFlowsProbe *)program->plan)->rounds + 1;
}

static const LhGenerator flows_probe = { .steps = flows_steps, .emit = emit_flows };

static void
add_slot(LhProgram *program, const char *name, uint64_t bytes)
{
    lh_program_add_slot(program, (LhSlotParams){ .name = name,
                                                 .kind = LH_TENSOR_Q,
                                                 .role = LH_SLOT_INPUT,
                                                 .dtype = LH_DTYPE_BF16,
                                                 .parts = 1,
                                                 .part_bytes = bytes });
}

/*
 * Median duration of a round. With answers it lasts from the start of the message to the end of its
 * answer; else from the end of one exchange to the end of the next. The first round is a warm-up.
 */
static double
flow_seconds(const LhFlowsProbe *probe, const GArray *records, uint32_t rank)
{
    g_autofree double *times = g_new(double, probe->rounds);
    LhTime start_ps = 0;
    uint32_t ops = 0, count = 0;

    for (guint i = 0; i < records->len; i++) {
        const LhTimelineRecord *r = lh_microbenchmark_record(records, i);

        if (r->rank != rank || r->stream != 0)
            continue;
        ops++;
        if (probe->answered && ops % 2 == 1)
            start_ps = r->start_ps;
        else if (ops > (probe->answered ? 2U : 1U))
            times[count++] = (double)(r->end_ps - start_ps) / (double)LH_PS_PER_S;
        if (!probe->answered)
            start_ps = r->end_ps;
    }
    g_assert(count == probe->rounds);
    return lh_median(times, count);
}

bool
lh_measure_flows(const LhFlowsProbe *probe, double *seconds, GError **error)
{
    g_autoptr(LhProgram) program = new_probe(&flows_probe, probe->ranks, (void *)probe);
    g_autoptr(GArray) records = NULL;

    lh_program_add_stream(program, "answers", LH_STREAM_COMM);
    add_slot(program, "sent", probe->bytes);
    add_slot(program, "received", probe->bytes);
    add_slot(program, "answer sent", ANSWER_BYTES);
    add_slot(program, "answer received", ANSWER_BYTES);
    records = lh_microbenchmark_run(program, probe->backend, LH_WAY_DIRECT, NULL, error);
    if (records == NULL)
        return false;
    for (uint32_t r = 0; r < probe->ranks; r++)
        seconds[r] =
            records->len == 0 || probe->to[r] >= LH_RANKS_MAX ? 0 : flow_seconds(probe, records, r);
    return true;
}
