/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Virtual time. An op begins when it is first on its stream and takes the duration set by the test.
 * Concurrent kernels on one device share its SMs equally: each of two runs at half speed; groups of
 * messages hold a share of the SMs. Messages do not slow each other down. Host calls have durations
 * too, and an op begins no earlier than its call. The clock advances when there is nothing to do
 * before, which runtime.c decides.
 */
#include "standin_private.h"

#include <math.h>

#define ROUNDING_S 1e-13 /* of sums of times, which must differ by picoseconds */
#define HELD_MAX 0.9

static StandinTimes times;
static double now_s;

/* Settings of this thread's next launch. */
static __thread struct {
    bool known;
    double seconds;
    uint32_t part;
} next;

void
standin_times(const StandinTimes *wanted)
{
    times = *wanted;
}

void
standin_next_launch(double seconds, uint32_t part)
{
    next.known = true;
    next.seconds = seconds;
    next.part = part;
}

void
standin_clock_launch(StandinOp *op, const char *name, const uint32_t grid[3])
{
    op->part = next.known ? next.part : 0;
    op->work_s = next.known ? next.seconds : times.kernel == NULL ? 0 : times.kernel(name, grid);
    next.known = false;
}

double
standin_message_s(uint64_t bytes)
{
    if (times.message_bytes_per_s <= 0)
        return 0;
    return times.message_s + (double)bytes / times.message_bytes_per_s;
}

double
standin_collective_s(uint64_t bytes)
{
    if (times.collective_bytes_per_s <= 0)
        return standin_message_s(bytes);
    return times.collective_s + (double)bytes / times.collective_bytes_per_s;
}

double
standin_call_s(StandinCallKind call)
{
    return times.call_s[call];
}

double
standin_fill_s(uint64_t bytes)
{
    return times.fill_bytes_per_s <= 0 ? 0 : (double)bytes / times.fill_bytes_per_s;
}

bool
standin_is_idle(void)
{
    return times.idle;
}

void
standin_clock_start(void)
{
    now_s = 0;
}

double
standin_now(void)
{
    return now_s;
}

bool
standin_is_over(const StandinOp *op)
{
    return op->work_s <= ROUNDING_S && op->end_s <= now_s + ROUNDING_S;
}

bool
standin_is_asked(const StandinOp *op)
{
    return op->asked_s <= now_s + ROUNDING_S;
}

/* SMs that communication groups leave of the op's device, as in the simulator
 * (src/sim/sm_sharing.c). */
static double
left_of(const StandinOp *op)
{
    double held = 0;

    for (const StandinStream *s = standin_streams; times.held > 0 && s != NULL; s = s->next) {
        if (s->first != NULL && s->first->started && s->first->kind->call == STANDIN_GROUP &&
            s->device == op->stream->device)
            held += times.held;
    }
    return 1 - MIN(held, HELD_MAX);
}

/* Number of kernels on this one's part of the device. */
static uint32_t
sharers(const StandinOp *op)
{
    uint32_t count = 0;

    for (const StandinStream *s = standin_streams; s != NULL; s = s->next)
        count += s->first != NULL && s->first->through && s->first->work_s > ROUNDING_S &&
                 s->device == op->stream->device && s->first->part == op->part;
    return count;
}

/* When the op ends if nothing else begins or ends. */
static double
end_of(const StandinOp *op)
{
    return op->work_s > ROUNDING_S ? now_s + op->work_s * sharers(op) / left_of(op) : op->end_s;
}

bool
standin_clock_advance(void)
{
    double next_s = INFINITY, passed_s[STANDIN_STREAMS_MAX];

    for (const StandinStream *s = standin_streams; s != NULL; s = s->next) {
        if (s->first != NULL && s->first->through)
            next_s = MIN(next_s, end_of(s->first));
        else if (s->first != NULL && !standin_is_asked(s->first))
            next_s = MIN(next_s, s->first->asked_s);
    }
    if (isinf(next_s))
        return false;
    /* All shares are those of before. */
    for (const StandinStream *s = standin_streams; s != NULL; s = s->next) {
        if (s->first != NULL && s->first->through && s->first->work_s > ROUNDING_S)
            passed_s[s->slot] = (next_s - now_s) * left_of(s->first) / sharers(s->first);
    }
    for (StandinStream *s = standin_streams; s != NULL; s = s->next) {
        if (s->first != NULL && s->first->through && s->first->work_s > ROUNDING_S)
            s->first->work_s -= passed_s[s->slot];
    }
    now_s = MAX(now_s, next_s);
    return true;
}
