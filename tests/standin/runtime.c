/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Streams, ops, and hosts that wait. The seed decides when an op is executed: when a host must wait
 * for something, occasionally when it queries, or at once; and which of the streams advances.
 *
 * Modelled behaviour (CUDA C++ Programming Guide, 13.0; "the guide" below):
 * - "A stream is a sequence of commands that execute in order. Different streams, on the other
 *   hand, may execute their commands out of order with respect to one another or concurrently;
 *   this behavior is not guaranteed and should therefore not be relied upon for correctness"
 *   (Asynchronous Concurrent Execution, Streams): any order that FIFOs and events allow.
 * - Streams may share a hardware queue (CUDA_DEVICE_MAX_CONNECTIONS): an op waits for everything
 *   enqueued earlier in its queue, on any stream.
 */
#include "standin_private.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdarg.h>
#include <string.h>
#include <time.h>

#define STILL_S 2 /* time without any activity of other threads before a wait is given up */
#define FINDINGS_BYTES_MAX 20000
#define PERCENT 100

StandinOptions standin_options;
StandinCounts standin_counted;
StandinStream *standin_streams;
cudaError_t standin_sticky;
__thread int standin_device;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t moved = PTHREAD_COND_INITIALIZER;
static uint64_t random_state, asked, era;
static uint32_t slots;
static GString *findings, *stuck;
static StandinClock all_hosts; /* union of all threads' clocks */

/* Running threads that have called the stand-in; those that cannot proceed until something happens;
 * and the number of events so far. */
static uint32_t hosts, idle_hosts;
static uint64_t happenings;

/* This thread's host. */
static __thread struct {
    uint64_t era;                     /* the run that this state belongs to */
    StandinClock clock;               /* what it knows to be complete */
    double time_s;                    /* virtual; the host is busy with its calls until then */
    uint64_t idle_since, asked_since; /* values of `happenings`; 0: not idle */
    const void *asked;                /* its first query since then */
} host;

static pthread_key_t host_key;

/* Ends a thread. */
static void
host_ends(void *data)
{
    (void)data;
    pthread_mutex_lock(&lock);
    if (host.era == era)
        hosts--;
    standin_moved();
    pthread_mutex_unlock(&lock);
}

static void
make_host_key(void)
{
    g_assert(pthread_key_create(&host_key, host_ends) == 0);
}

/* Registers this thread in the run. */
static void
register_host(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    if (host.era == era)
        return;
    memset(&host, 0, sizeof(host));
    host.era = era;
    hosts++;
    pthread_once(&once, make_host_key);
    pthread_setspecific(host_key, &host);
}

void
standin_lock(void)
{
    pthread_mutex_lock(&lock);
    register_host();
}

void
standin_unlock(void)
{
    pthread_mutex_unlock(&lock);
}

void
standin_moved(void)
{
    happenings++;
    idle_hosts = 0;
    pthread_cond_broadcast(&moved);
}

/* xorshift64 */
uint64_t
standin_random(void)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return random_state;
}

void
standin_finding(const char *format, ...)
{
    g_autofree char *line = NULL;
    va_list args;

    va_start(args, format);
    line = g_strdup_vprintf(format, args);
    va_end(args);
    if (findings->len > FINDINGS_BYTES_MAX || strstr(findings->str, line) != NULL)
        return;
    g_string_append_printf(findings, "%s\n", line);
}

/* ---- clocks ---- */

void
standin_join(StandinClock *to, const StandinClock *from)
{
    for (uint32_t i = 0; i < slots; i++)
        to->at[i] = MAX(to->at[i], from->at[i]);
}

void
standin_join_start(StandinOp *op, const StandinOp *other)
{
    uint32_t *before = &op->clock.at[other->stream->slot];

    standin_join(&op->clock, &other->clock);
    if (other->stream != op->stream)
        *before = MAX(*before, other->index - 1);
}

void
standin_host_knows(const StandinClock *clock)
{
    standin_join(&host.clock, clock);
    standin_join(&all_hosts, clock);
}

/* Joining a thread passes its knowledge to the joining one. Threads end together here, so the union
 * of all threads' clocks is used. Meanwhile time passes without this thread. */
int
pthread_join(pthread_t thread, void **result)
{
    static int (*join_thread)(pthread_t, void **);
    void *function = dlsym(RTLD_NEXT, "pthread_join");
    int status;

    memcpy(&join_thread, &function, sizeof(function));
    standin_lock();
    hosts--;
    standin_moved();
    standin_unlock();
    status = join_thread(thread, result);
    standin_lock();
    hosts++;
    standin_moved();
    standin_join(&host.clock, &all_hosts);
    standin_unlock();
    return status;
}

const StandinClock *
standin_host_clock(void)
{
    return &host.clock;
}

/* ---- ops ---- */

void *
standin_op_new(const StandinKind *kind, StandinStream *stream, size_t bytes, char *label)
{
    StandinOp *op = g_malloc0(bytes);

    op->kind = kind;
    op->stream = stream;
    op->label = label;
    return op;
}

static void
op_free(StandinOp *op)
{
    if (op->kind->clear != NULL)
        op->kind->clear(op);
    g_free(op->label);
    g_free(op);
}

cudaError_t
standin_enqueue(StandinOp *op)
{
    StandinStream *s = op->stream;

    if (s == NULL || !s->alive) {
        standin_finding("%s on the default stream, or on one that is gone", op->label);
        op_free(op);
        return cudaErrorInvalidResourceHandle;
    }
    op->index = ++s->issued;
    op->order = ++asked;
    host.time_s = MAX(host.time_s, standin_now()) + standin_call_s(op->kind->call);
    op->asked_s = host.time_s;
    op->clock = host.clock;
    op->clock.at[s->slot] = op->index - 1;
    if (s->last != NULL)
        s->last->next = op;
    else
        s->first = op;
    s->last = op;
    if (standin_random() % PERCENT < standin_options.eager)
        standin_work();
    standin_moved();
    return standin_sticky;
}

static void
finish(StandinOp *op)
{
    StandinStream *s = op->stream;

    if (op->kind->end != NULL)
        op->kind->end(op);
    s->first = op->next;
    if (s->first == NULL)
        s->last = NULL;
    s->done = op->clock;
    s->done.at[s->slot] = op->index;
    op_free(op);
    standin_moved();
}

/* Whether an earlier op is still in the op's hardware queue. */
static bool
is_behind_others(const StandinOp *op)
{
    const uint32_t queues = standin_options.queues;

    for (const StandinStream *s = standin_streams; queues > 0 && s != NULL; s = s->next) {
        if (s != op->stream && s->device == op->stream->device && s->first != NULL &&
            s->slot % queues == op->stream->slot % queues && s->first->order < op->order)
            return true;
    }
    return false;
}

/* Starts the op if it may start; true if it did. */
static bool
start(StandinOp *op)
{
    if (op->started)
        return true;
    if (!standin_is_asked(op) || is_behind_others(op) ||
        (op->kind->start != NULL && !op->kind->start(op)))
        return false;
    op->started = true;
    op->begin_s = op->end_s = standin_now();
    standin_join(&op->clock, &op->stream->done);
    return true;
}

/* Whether a started op has anything to do. */
static bool
is_ready(StandinOp *op)
{
    return op->through ? standin_is_over(op) : op->kind->ready == NULL || op->kind->ready(op);
}

bool
standin_work(void)
{
    StandinOp *ready[STANDIN_STREAMS_MAX];
    bool started = false;
    uint32_t count = 0;
    StandinOp *op;

    for (StandinStream *s = standin_streams; s != NULL; s = s->next) {
        const bool before = s->first != NULL && s->first->started;

        if (s->first == NULL || !start(s->first))
            continue;
        started = started || !before;
        if (is_ready(s->first))
            ready[count++] = s->first;
    }
    if (started || count > 0)
        standin_moved();
    if (count == 0)
        return started;
    op = ready[standin_random() % count];
    op->through = op->through || op->kind->run(op);
    if (op->through && standin_is_over(op))
        finish(op);
    return true;
}

/* Advances time if there is nothing else to do. */
static bool
work_or_time(void)
{
    return standin_work() || standin_clock_advance();
}

/* ---- hosts that wait ---- */

/* Declares this host idle until something happens. If all hosts are idle and there is no work now,
 * time advances; false if it cannot. */
static bool
host_is_idle(void)
{
    if (host.idle_since != happenings) {
        host.idle_since = happenings;
        idle_hosts++;
    }
    if (idle_hosts < hosts || !standin_clock_advance())
        return false;
    standin_moved();
    return true;
}

/* A host that repeats a query while nothing has happened is idle. */
void
standin_asked_in_vain(const void *what)
{
    if (host.asked_since != happenings) {
        host.asked_since = happenings;
        host.asked = what;
    } else if (host.asked == what && !standin_work()) {
        (void)host_is_idle();
    }
}

void
standin_learned(void)
{
    host.asked_since = 0;
}

bool
standin_host_waits(bool (*until)(void *data), void *data, const char *what)
{
    struct timespec give_up;

    standin_counted.host_waits++;
    while (!until(data)) {
        if (standin_work() || host_is_idle())
            continue;
        clock_gettime(CLOCK_REALTIME, &give_up);
        give_up.tv_sec += STILL_S;
        if (pthread_cond_timedwait(&moved, &lock, &give_up) != 0 && !standin_clock_advance()) {
            standin_finding("a host waits for ever for %s", what);
            return false;
        }
    }
    return true;
}

/* ---- streams ---- */

/* A destroyed stream without remaining ops, which may be reused if the order of accesses is not
 * watched; NULL if there is none. */
static StandinStream *
gone_stream(void)
{
    StandinStream *s = standin_is_idle() ? standin_streams : NULL;

    while (s != NULL && (s->alive || s->first != NULL))
        s = s->next;
    return s;
}

static uint32_t
next_number(void)
{
    uint32_t number = 0;

    for (const StandinStream *s = standin_streams; s != NULL; s = s->next)
        number = s->alive && s->number >= number ? s->number + 1 : number;
    return number;
}

StandinStream *
standin_stream_new(unsigned flags, int priority)
{
    const uint32_t number = next_number();
    StandinStream *s = gone_stream();

    if (s != NULL) {
        s->device = standin_device;
        s->priority = priority;
        s->number = number;
        s->kernels = 0;
        s->alive = true;
        return s;
    }
    s = g_new0(StandinStream, 1);
    if ((flags & cudaStreamNonBlocking) == 0)
        standin_finding("a stream that waits for the default stream");
    g_assert(slots < STANDIN_STREAMS_MAX);
    s->device = standin_device;
    s->slot = slots++;
    s->number = number;
    s->priority = priority;
    s->alive = true;
    s->next = standin_streams;
    standin_streams = s;
    return s;
}

static void
free_streams(void)
{
    while (standin_streams != NULL) {
        StandinStream *s = standin_streams;

        while (s->first != NULL) {
            StandinOp *op = s->first;

            s->first = op->next;
            op_free(op);
        }
        standin_streams = s->next;
        g_free(s);
    }
    slots = 0;
}

/* ---- a run ---- */

void
standin_start(const StandinOptions *options)
{
    standin_lock();
    era++;
    hosts = idle_hosts = 0;
    happenings = 1;
    register_host();
    memset(&all_hosts, 0, sizeof(all_hosts));
    standin_options = *options;
    random_state = (options->seed + 1) * UINT64_C(0x9E3779B97F4A7C15);
    standin_sticky = cudaSuccess;
    memset(&standin_counted, 0, sizeof(standin_counted));
    if (findings == NULL) {
        findings = g_string_new(NULL);
        stuck = g_string_new(NULL);
    }
    g_string_truncate(findings, 0);
    asked = 0;
    free_streams();
    standin_clock_start();
    standin_events_start();
    standin_races_start();
    standin_kernels_start();
    standin_unlock();
}

void
standin_end(void)
{
    standin_lock();
    while (work_or_time())
        continue;
    for (const StandinStream *s = standin_streams; s != NULL; s = s->next) {
        if (s->first != NULL)
            standin_finding("stream %u still has %s", s->slot, s->first->label);
        if (s->alive)
            standin_finding("stream %u is not destroyed", s->slot);
    }
    standin_events_end();
    standin_races_end();
    standin_unlock();
}

const char *
standin_findings(void)
{
    return findings->str;
}

StandinCounts
standin_counts(void)
{
    return standin_counted;
}

const char *
standin_stuck(void)
{
    standin_lock();
    while (work_or_time())
        continue;
    g_string_truncate(stuck, 0);
    for (const StandinStream *s = standin_streams; s != NULL; s = s->next) {
        if (s->first == NULL)
            continue;
        g_string_append_printf(stuck, "device %d, stream %u: %s%s", s->device, s->slot,
                               s->first->label, s->first->started ? "" : " (has not started)");
        if (s->first->kind->describe != NULL)
            s->first->kind->describe(s->first, stuck);
        g_string_append_c(stuck, '\n');
    }
    standin_unlock();
    return stuck->len > 0 ? stuck->str : NULL;
}
