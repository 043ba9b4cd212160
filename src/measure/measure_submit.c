/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Times come from marks on devices, which a run in virtual time has as well. Host time becomes
 * visible on the device by an op on an idle stream: it runs as soon as the host has issued it.
 */
#include "measure/measure_submit.h"

#include "measure/fit.h"
#include "measure/microbenchmarks.h"
#include "program/emit.h"

#define STEPS 6 /* the first one is a warm-up */
/* Ops of a step between two marks of the clock stream; fewer than a host may run ahead. */
#define OPS 48
#define MESSAGE_ROUNDS 5 /* rounds of messages after a warm-up */
#define GROUP_BYTES 4

/* Runs the program with collectives of the links' library if it has them. */
static GArray *
run_probe(const LhProgram *program, const LhBackend *backend, GError **error)
{
    const bool native = backend->links->collectives != NULL;

    return lh_microbenchmark_run(program, backend, native ? LH_WAY_NATIVE : LH_WAY_DIRECT, NULL,
                                 error);
}

static double
seconds_between(LhTime from_ps, LhTime to_ps)
{
    return (double)(to_ps - from_ps) / (double)LH_PS_PER_S;
}

/* ---- calls ---- */

enum { WORK, OTHER, CLOCK }; /* streams */
enum { X, Y, SUM, GROUP };   /* slots */

typedef enum {
    NOTHING,
    COMPUTE,
    WAITING,
    GROUPS,
} CallKind;

static void
emit_call(LhEmitter *e, CallKind kind)
{
    const uint32_t peer = e->rank ^ 1u;
    uint32_t before;

    switch (kind) {
    case COMPUTE:
        lh_emit_compute(e, WORK, LH_KERNEL_ID_residual, &(LhKernelArgs){ .elements.count = 4 });
        lh_emit_operand(e, X, 0, 1);
        lh_emit_operand(e, Y, 0, 1);
        lh_emit_operand(e, SUM, 0, 1);
        break;
    case WAITING:
        before = lh_emit_exchange(e, WORK);
        lh_emit_exchange(e, OTHER);
        lh_emit_after(e, before);
        break;
    case GROUPS:
        lh_emit_exchange(e, WORK);
        if (peer >= lh_program_ranks(e->program))
            break;
        lh_emit_part(e, e->rank < peer, peer, 0, GROUP_BYTES);
        lh_emit_region(e, GROUP, 0, 1);
        break;
    default:
        lh_emit_exchange(e, WORK);
    }
}

static void
emit_calls(LhEmitter *e, uint32_t step)
{
    const CallKind *kind = e->program->plan;

    (void)step;
    lh_emit_exchange(e, CLOCK);
    for (uint32_t i = 0; i < OPS; i++)
        emit_call(e, *kind);
    lh_emit_exchange(e, CLOCK);
    lh_emit_sync(e);
}

static uint32_t
call_steps(const LhProgram *program, uint32_t rank)
{
    (void)program;
    (void)rank;
    return STEPS;
}

static const LhGenerator calls_probe = { .steps = call_steps, .emit = emit_calls };

/* Medians over the steps of a rank whose records begin at @first: the time between the two clock
 * ops of a step, and from the last end of a step to the next step's first clock op. */
static void
look_at_clock(const GArray *records, guint first, guint of_step, double *between_s, double *sync_s)
{
    double between[STEPS - 1], sync[STEPS - 1];

    for (guint s = 1; s < STEPS; s++) {
        const guint at = first + s * of_step;
        LhTime end_ps = 0;

        for (guint i = at - of_step; i < at; i++)
            end_ps = MAX(end_ps, lh_microbenchmark_record(records, i)->end_ps);
        sync[s - 1] = seconds_between(end_ps, lh_microbenchmark_record(records, at)->start_ps);
        between[s - 1] =
            seconds_between(lh_microbenchmark_record(records, at)->start_ps,
                            lh_microbenchmark_record(records, at + of_step - 1)->start_ps);
    }
    *between_s = lh_median(between, STEPS - 1);
    *sync_s = lh_median(sync, STEPS - 1);
}

/* Median over ranks of the time between two clock ops. */
static bool
measure_call(const LhBackend *backend, uint32_t ranks, CallKind kind, double *between_s,
             double *sync_s, GError **error)
{
    static const char *const streams[] = { "work", "other", "clock" };
    g_autoptr(LhProgram) program = lh_microbenchmark_new(&calls_probe, ranks, &kind);
    g_autoptr(GArray) records = NULL;
    g_autofree double *betweens = g_new0(double, ranks);
    g_autofree double *syncs = g_new0(double, ranks);
    const guint of_step = OPS * (kind == WAITING ? 2 : 1) + 2;

    for (unsigned i = 0; i < G_N_ELEMENTS(streams); i++)
        lh_program_add_stream(program, streams[i], i == WORK ? LH_STREAM_COMPUTE : LH_STREAM_COMM);
    lh_microbenchmark_add_slot(program, "x", LH_SLOT_INPUT, 1, 4 * sizeof(float));
    lh_microbenchmark_add_slot(program, "y", LH_SLOT_INPUT, 1, 4 * sizeof(float));
    lh_microbenchmark_add_slot(program, "sum", LH_SLOT_OUTPUT, 1, 4 * sizeof(float));
    lh_microbenchmark_add_slot(program, "group", LH_SLOT_INPUT, 1, GROUP_BYTES);
    records = run_probe(program, backend, error);
    if (records == NULL)
        return false;
    if (records->len == 0)
        return true;
    g_assert(records->len == ranks * STEPS * of_step);
    for (uint32_t r = 0; r < ranks; r++)
        look_at_clock(records, r * STEPS * of_step, of_step, &betweens[r], &syncs[r]);
    *between_s = lh_median(betweens, ranks);
    *sync_s = lh_median(syncs, ranks);
    return true;
}

bool
lh_measure_calls(const LhBackend *backend, uint32_t ranks, LhCallCosts *costs, GError **error)
{
    double between[GROUPS + 1] = { 0 }, sync[GROUPS + 1] = { 0 };

    for (CallKind kind = NOTHING; kind <= GROUPS; kind++) {
        if ((kind < GROUPS || ranks > 1) &&
            !measure_call(backend, ranks, kind, &between[kind], &sync[kind], error))
            return false;
    }
    costs->op = between[NOTHING] / (OPS + 1); /* including one clock op */
    costs->compute = (between[COMPUTE] - costs->op) / OPS;
    costs->wait = (between[WAITING] - costs->op) / OPS - 2 * costs->op;
    costs->group = ranks > 1 ? (between[GROUPS] - costs->op) / OPS : 0;
    costs->sync = sync[NOTHING];
    return true;
}

/* ---- messages ---- */

enum { SENT, RECEIVED }; /* slots */

static void
emit_messages(LhEmitter *e, uint32_t step)
{
    const uint32_t *to = e->program->plan;
    const uint32_t from = lh_microbenchmark_sender(to, lh_program_ranks(e->program), e->rank);

    (void)step;
    lh_emit_exchange(e, 0);
    if (to[e->rank] < LH_RANKS_MAX)
        lh_microbenchmark_emit_message(e, true, to[e->rank], SENT);
    if (from < LH_RANKS_MAX)
        lh_microbenchmark_emit_message(e, false, from, RECEIVED);
}

static uint32_t
message_steps(const LhProgram *program, uint32_t rank)
{
    (void)program;
    (void)rank;
    return MESSAGE_ROUNDS + 1;
}

static const LhGenerator messages_probe = { .steps = message_steps, .emit = emit_messages };

bool
lh_measure_messages(const LhBackend *backend, uint32_t ranks, const uint32_t *to, uint64_t bytes,
                    double *seconds, GError **error)
{
    g_autoptr(LhProgram) program = lh_microbenchmark_new(&messages_probe, ranks, (void *)to);
    g_autoptr(GArray) records = NULL;
    g_autofree double *times = g_new(double, (gsize)ranks *MESSAGE_ROUNDS);
    size_t count = 0;

    *seconds = 0;
    lh_program_add_stream(program, "comm", LH_STREAM_COMM);
    lh_microbenchmark_add_slot(program, "sent", LH_SLOT_INPUT, 1, bytes);
    lh_microbenchmark_add_slot(program, "received", LH_SLOT_INPUT, 1, bytes);
    records = run_probe(program, backend, error);
    if (records == NULL)
        return false;
    if (records->len == 0)
        return true;
    g_assert(records->len == ranks * (MESSAGE_ROUNDS + 1));
    for (uint32_t r = 0; r < ranks; r++) {
        for (guint i = 1; to[r] < LH_RANKS_MAX && i <= MESSAGE_ROUNDS; i++) {
            const LhTimelineRecord *sends =
                lh_microbenchmark_record(records, r * (MESSAGE_ROUNDS + 1) + i);
            const LhTimelineRecord *receives =
                lh_microbenchmark_record(records, to[r] * (MESSAGE_ROUNDS + 1) + i);

            times[count++] =
                seconds_between(MAX(sends->start_ps, receives->start_ps), receives->end_ps);
        }
    }
    *seconds = lh_median(times, count);
    return true;
}
