/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Events. "cudaStreamWaitEvent: ... The call waits for the most recent cudaEventRecord of the event
 * at the time of the call; if cudaEventRecord was not called, it does nothing" (CUDA Runtime API,
 * Stream Management): CUDA accepts that wait, but here it is a finding, since a wait was intended.
 */
#include "standin_private.h"

#define MS_PER_S 1e3
#define ASKING_WORKS_IN 3 /* one query in this many executes something */

/* A record of an event, or a wait for one. */
typedef struct {
    StandinOp op;
    StandinMoment *moment; /* holds a reference */
} EventOp;

static StandinEvent *events;

static void
give_up(StandinMoment *m)
{
    if (m != NULL && --m->holders == 0)
        g_free(m);
}

static bool
run_record(StandinOp *op)
{
    StandinMoment *m = ((EventOp *)op)->moment;

    m->passed = true;
    m->time_s = standin_now();
    m->clock = op->clock;
    m->clock.at[op->stream->slot] = op->index;
    return true;
}

static bool
wait_is_over(StandinOp *op)
{
    return ((EventOp *)op)->moment->passed;
}

static bool
run_wait(StandinOp *op)
{
    const StandinMoment *m = ((EventOp *)op)->moment;

    standin_join(&op->clock, &m->clock);
    return true;
}

static void
describe_wait(const StandinOp *op, GString *text)
{
    g_string_append_printf(text, ", recorded on stream %u",
                           ((const EventOp *)op)->moment->stream->slot);
}

static void
clear(StandinOp *op)
{
    give_up(((EventOp *)op)->moment);
}

static const StandinKind kind_record = {
    .name = "event record",
    .run = run_record,
    .clear = clear,
    .call = STANDIN_RECORD,
};
static const StandinKind kind_wait = {
    .name = "event wait",
    .ready = wait_is_over,
    .run = run_wait,
    .describe = describe_wait,
    .clear = clear,
    .call = STANDIN_WAIT,
};

static cudaError_t
enqueue(const StandinKind *kind, StandinStream *stream, StandinMoment *moment)
{
    EventOp *e = standin_op_new(kind, stream, sizeof(EventOp), g_strdup(kind->name));

    e->moment = moment;
    moment->holders++;
    return standin_enqueue(&e->op);
}

/* ---- the API ---- */

cudaError_t
cudaEventCreateWithFlags(cudaEvent_t *event, unsigned flags)
{
    StandinEvent *e = g_new0(StandinEvent, 1);

    standin_lock();
    e->timed = (flags & cudaEventDisableTiming) == 0;
    e->device = standin_device;
    e->alive = true;
    e->next = events;
    events = e;
    standin_unlock();
    *event = e;
    return standin_result(cudaSuccess);
}

/* "If the event has been recorded but has not yet been completed ... the resources are released
 * once it has" (CUDA Runtime API, cudaEventDestroy): freed at the end of the run. */
cudaError_t
cudaEventDestroy(cudaEvent_t event)
{
    standin_lock();
    if (!event->alive)
        standin_finding("an event is destroyed twice");
    event->alive = false;
    standin_unlock();
    return standin_result(cudaSuccess);
}

cudaError_t
cudaEventRecord(cudaEvent_t event, cudaStream_t stream)
{
    cudaError_t status;

    standin_lock();
    if (!event->alive)
        standin_finding("an event is recorded that is destroyed");
    /* "event and stream must be on the same CUDA context" (cudaEventRecord) */
    if (stream != NULL && event->device != stream->device)
        standin_finding("an event of device %d is recorded on a stream of device %d", event->device,
                        stream->device);
    give_up(event->latest);
    event->latest = g_new0(StandinMoment, 1);
    event->latest->holders = 1;
    event->latest->stream = stream;
    status = enqueue(&kind_record, stream, event->latest);
    standin_unlock();
    return standin_result(status);
}

cudaError_t
cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned flags)
{
    cudaError_t status = cudaSuccess;

    (void)flags;
    standin_lock();
    if (!event->alive || event->latest == NULL)
        standin_finding("stream %u waits for an event that was %s: CUDA would not wait",
                        stream->slot, event->alive ? "never recorded" : "destroyed");
    else
        status = enqueue(&kind_wait, stream, event->latest);
    standin_unlock();
    return standin_result(status);
}

/* An event that was never recorded counts as complete (cudaEventQuery). */
static bool
has_passed(void *data)
{
    const StandinEvent *e = data;

    return e->latest == NULL || e->latest->passed;
}

/* A positive answer orders everything before the event for this host. */
cudaError_t
cudaEventQuery(cudaEvent_t event)
{
    cudaError_t status = cudaErrorNotReady;

    standin_lock();
    if (standin_random() % ASKING_WORKS_IN == 0)
        standin_work();
    if (has_passed(event)) {
        if (event->latest != NULL)
            standin_host_knows(&event->latest->clock);
        standin_learned();
        status = cudaSuccess;
    } else if (standin_sticky != cudaSuccess) {
        status = standin_sticky;
    } else {
        standin_asked_in_vain(event);
    }
    standin_unlock();
    return standin_result(status);
}

cudaError_t
cudaEventSynchronize(cudaEvent_t event)
{
    standin_lock();
    if (standin_host_waits(has_passed, event, "an event") && event->latest != NULL)
        standin_host_knows(&event->latest->clock);
    standin_unlock();
    return standin_result(cudaSuccess);
}

/* "If either event was created with the cudaEventDisableTiming flag, then this function will return
 * cudaErrorInvalidResourceHandle"; "cudaErrorNotReady ... if either has not yet completed". */
cudaError_t
cudaEventElapsedTime(float *ms, cudaEvent_t start, cudaEvent_t end)
{
    cudaError_t status = cudaSuccess;

    standin_lock();
    if (!start->timed || !end->timed || start->latest == NULL || end->latest == NULL)
        status = cudaErrorInvalidResourceHandle;
    else if (!has_passed(start) || !has_passed(end))
        status = cudaErrorNotReady;
    else
        *ms = (float)(MS_PER_S * (end->latest->time_s - start->latest->time_s));
    standin_unlock();
    return standin_result(status);
}

/* ---- a run ---- */

void
standin_events_start(void)
{
    while (events != NULL) {
        StandinEvent *e = events;

        events = e->next;
        give_up(e->latest);
        g_free(e);
    }
}

void
standin_events_end(void)
{
    uint64_t alive = 0;

    for (const StandinEvent *e = events; e != NULL; e = e->next)
        alive += e->alive;
    if (alive > 0)
        standin_finding("%" G_GUINT64_FORMAT " events are not destroyed", alive);
}
