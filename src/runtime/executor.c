/*
 * Threads of a run: hosts, streams, and the one that watches over them. What an op does is in
 * run_op.c and run_collective.c. Times are of this machine, with its other load; nothing here
 * models anything.
 */
#include "runtime/executor_private.h"

#include "base/error.h"
#include "runtime/pin.h"

#include <string.h>
#include <time.h>

#define QUEUE_DEPTH 64 /* ops a host may be ahead of its device, as in the simulator */
#define DONE_MIN 256
#define POLL_US 1000
#define US_PER_S 1000000
#define PS_PER_NS 1000
#define NS_PER_S 1000000000

const char *const lh_kernel_set_names[] = { "cpu", "reference", NULL };

static int64_t
now_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * NS_PER_S + t.tv_nsec;
}

LhTime
lh_execution_now(const LhExecution *x)
{
    return (now_ns() - x->epoch_ns) * PS_PER_NS;
}

bool
lh_execution_stopping(LhExecution *x)
{
    return g_atomic_int_get(&x->stopping) != 0;
}

void
lh_execution_fail(LhExecution *x, GError *error)
{
    pthread_mutex_lock(&x->lock);
    if (x->error == NULL)
        x->error = g_steal_pointer(&error);
    pthread_mutex_unlock(&x->lock);
    g_clear_error(&error);
    g_atomic_int_set(&x->stopping, 1);
    for (uint32_t r = 0; r < x->count; r++) {
        pthread_mutex_lock(&x->ranks[r].lock);
        pthread_cond_broadcast(&x->ranks[r].changed);
        pthread_mutex_unlock(&x->ranks[r].lock);
    }
}

static void
pause_at(const LhRunner *rank, uint32_t op, uint32_t where)
{
    const LhRunHooks *hooks = rank->execution->params->hooks;

    if (hooks != NULL && hooks->pause != NULL)
        hooks->pause(hooks->data, rank->index, op, where);
}

/* With the rank's lock. */
static void
mark_done(LhRunner *rank, uint32_t id)
{
    rank->done[id] = 1;
    while (rank->first_open < rank->issued && rank->done[rank->first_open])
        rank->first_open++;
    rank->counted.ops++;
    rank->counted.finish_ps = lh_execution_now(rank->execution);
    g_atomic_int_inc(&rank->execution->moved);
    pthread_cond_broadcast(&rank->changed);
}

static void
record(LhRunner *rank, const LhOp *op, const LhItem *item)
{
    LhExecution *x = rank->execution;
    const LhTime now = lh_execution_now(x);
    LhTimelineRecord r = { .rank = rank->index,
                           .op = op->id,
                           .kind = op->kind,
                           .stream = op->stream,
                           .phase = op->phase,
                           .tier = LH_TIMELINE_NO_TIER,
                           .step = op->step,
                           .kernel = op->kind == LH_OP_COMPUTE ? op->compute.kernel : 0,
                           .issued_ps = item != NULL ? item->issued_ps : now,
                           .start_ps = item != NULL ? item->start_ps : now,
                           .end_ps = now,
                           .bytes = item != NULL ? item->bytes : 0,
                           .flops = item != NULL ? item->flops : 0 };

    /* The simulator records what runs on a stream. */
    if (x->params->timeline == NULL || item == NULL)
        return;
    pthread_mutex_lock(&x->lock);
    g_array_append_val(x->records, r);
    pthread_mutex_unlock(&x->lock);
}

/* ---- streams ---- */

static bool
may_start(const LhRunner *rank, const LhItem *item)
{
    for (unsigned i = 0; i < item->op.after_count; i++) {
        if (!rank->done[item->op.after[i]])
            return false;
    }
    return true;
}

/* The op that is due, once it may start; NULL: there will be none. */
static LhItem *
next_item(LhRunStream *s)
{
    LhRunner *rank = s->rank;
    LhItem *item = NULL;

    pthread_mutex_lock(&rank->lock);
    while (!lh_execution_stopping(rank->execution)) {
        if (s->first != NULL && may_start(rank, s->first)) {
            item = s->first;
            item->start_ps = lh_execution_now(rank->execution);
            s->running = true;
            break;
        }
        if (s->first == NULL && rank->ended)
            break;
        pthread_cond_wait(&rank->changed, &rank->lock);
    }
    pthread_mutex_unlock(&rank->lock);
    return item;
}

static void
fail_canary(LhExecution *x, const LhRunner *rank, const LhOp *op)
{
    g_autofree char *text = lh_execution_op_text(x, op);

    lh_execution_fail(x, g_error_new(LH_ERROR, LH_ERROR_RUNTIME,
                                     "rank %u, %s: something wrote beyond the end of a slot that "
                                     "this op used last",
                                     rank->index, text));
}

static void
finish_item(LhRunStream *s, LhItem *item)
{
    LhRunner *rank = s->rank;
    const LhOp op = item->op;
    bool whole = true;

    record(rank, &op, item);
    pthread_mutex_lock(&rank->lock);
    s->first = item->next;
    if (s->first == NULL)
        s->last = NULL;
    s->running = false;
    rank->counted.bytes_sent += item->bytes;
    rank->counted.flops += item->flops;
    if (op.kind == LH_OP_COMPUTE)
        rank->counted.busy_ps += lh_execution_now(rank->execution) - item->start_ps;
    pthread_mutex_unlock(&rank->lock);
    /* Before the op counts as complete: a finding belongs to this op. */
    lh_item_free(item, &whole);
    if (!whole)
        fail_canary(rank->execution, rank, &op);
    pthread_mutex_lock(&rank->lock);
    mark_done(rank, op.id);
    pthread_mutex_unlock(&rank->lock);
}

static bool
run_item(LhRunStream *s, LhItem *item)
{
    switch (item->op.kind) {
    case LH_OP_COMPUTE:
        return lh_run_compute(s, item);
    case LH_OP_EXCHANGE:
        return lh_run_exchange(s, item);
    default:
        return lh_run_collective(s, item);
    }
}

static void *
stream_main(void *data)
{
    LhRunStream *s = data;
    LhExecution *x = s->rank->execution;
    LhItem *item;

    if (x->params->pin && x->program->streams[s->index].kind == LH_STREAM_COMPUTE)
        lh_pin_thread(s->rank->index);
    while ((item = next_item(s)) != NULL) {
        pause_at(s->rank, item->op.id, 1);
        if (!run_item(s, item) || lh_execution_stopping(x))
            break;
        finish_item(s, item);
    }
    g_atomic_int_add(&x->alive, -1);
    return NULL;
}

/* ---- hosts ---- */

static bool
refuse_slot(LhRunner *rank, const LhOp *op, uint16_t slot, const char *what)
{
    LhExecution *x = rank->execution;
    g_autofree char *text = lh_execution_op_text(x, op);

    lh_execution_fail(x, g_error_new(LH_ERROR, LH_ERROR_RUNTIME, "rank %u, %s: slot %s %s",
                                     rank->index, text, x->program->slots[slot].name, what));
    return false;
}

static bool
hold(LhRunner *rank, LhItem *item, LhRegion region)
{
    LhBuffer *buffer = rank->slots[region.slot];

    if (buffer == NULL)
        return refuse_slot(rank, &item->op, region.slot, "is not allocated");
    item->buffers[item->buffers_count++] = lh_buffer_hold(buffer);
    return true;
}

static bool
hold_parts(LhRunner *rank, LhItem *item)
{
    g_assert(item->parts != NULL);
    item->buffers = g_new0(LhBuffer *, (gsize)item->op.exchange.parts_count * LH_PART_REGIONS_MAX);
    for (uint32_t i = 0; i < item->op.exchange.parts_count; i++) {
        for (uint32_t k = 0; k < item->parts[i].regions_count; k++) {
            if (!hold(rank, item, item->parts[i].regions[k]))
                return false;
        }
    }
    return true;
}

/* Of every tensor, what it sends from, then what it receives into. */
static bool
hold_tensors(LhRunner *rank, LhItem *item)
{
    item->buffers = g_new0(LhBuffer *, 2 * (gsize)item->op.collective.tensors_count);
    for (uint32_t i = 0; i < item->op.collective.tensors_count; i++) {
        if (!hold(rank, item, item->op.collective.send[i]) ||
            !hold(rank, item, item->op.collective.receive[i]))
            return false;
    }
    return true;
}

/* Binds the op to the memory that its slots have now. */
static bool
hold_all(LhRunner *rank, LhItem *item)
{
    if (item->op.kind == LH_OP_EXCHANGE)
        return hold_parts(rank, item);
    if (item->op.kind == LH_OP_COLLECTIVE)
        return hold_tensors(rank, item);
    item->buffers = g_new0(LhBuffer *, LH_KERNEL_OPERANDS_MAX);
    for (uint32_t i = 0; i < item->op.compute.regions_count; i++) {
        if (!hold(rank, item, item->op.compute.regions[i]))
            return false;
    }
    return true;
}

static bool
issue_stream_op(LhRunner *rank, const LhOp *op, const LhOpBuffer *buffer)
{
    LhItem *item = g_new0(LhItem, 1);
    LhRunStream *s = &rank->streams[op->stream];
    bool ignored;

    item->op = *op;
    item->issued_ps = lh_execution_now(rank->execution);
    if (op->kind == LH_OP_EXCHANGE) {
        item->parts = g_new(LhPart, MAX(op->exchange.parts_count, 1));
        for (uint32_t i = 0; i < op->exchange.parts_count; i++)
            item->parts[i] = buffer->parts[op->exchange.parts_first + i];
    }
    if (!hold_all(rank, item)) {
        lh_item_free(item, &ignored);
        return false;
    }
    pthread_mutex_lock(&rank->lock);
    if (s->last != NULL)
        s->last->next = item;
    else
        s->first = item;
    s->last = item;
    pthread_cond_broadcast(&rank->changed);
    pthread_mutex_unlock(&rank->lock);
    return true;
}

static bool
issue_alloc(LhRunner *rank, const LhOp *op)
{
    const LhSlot *slot = &rank->execution->program->slots[op->memory.slot];

    if (rank->slots[op->memory.slot] != NULL)
        return refuse_slot(rank, op, op->memory.slot, "is allocated already");
    rank->slots[op->memory.slot] = lh_buffer_new(slot);
    rank->memory_bytes += slot->parts * slot->part_bytes;
    rank->counted.peak_bytes = MAX(rank->counted.peak_bytes, rank->memory_bytes);
    return true;
}

static bool
issue_free(LhRunner *rank, const LhOp *op)
{
    const LhSlot *slot = &rank->execution->program->slots[op->memory.slot];
    LhBuffer *buffer = rank->slots[op->memory.slot];

    if (buffer == NULL)
        return refuse_slot(rank, op, op->memory.slot, "is not allocated");
    rank->slots[op->memory.slot] = NULL;
    rank->memory_bytes -= slot->parts * slot->part_bytes;
    if (!lh_buffer_release(buffer))
        return refuse_slot(rank, op, op->memory.slot, "was overwritten beyond its end");
    return true;
}

/* Waits until every earlier op of the rank is complete, or all but @ahead of them. */
static bool
wait_for_device(LhRunner *rank, uint32_t id, uint32_t ahead)
{
    LhExecution *x = rank->execution;

    pthread_mutex_lock(&rank->lock);
    rank->host_op = id;
    rank->host_waits = true;
    while (!lh_execution_stopping(x) && id - rank->first_open > ahead)
        pthread_cond_wait(&rank->changed, &rank->lock);
    rank->host_waits = false;
    pthread_mutex_unlock(&rank->lock);
    return !lh_execution_stopping(x);
}

static void
register_op(LhRunner *rank, uint32_t id)
{
    pthread_mutex_lock(&rank->lock);
    if (id >= rank->done_capacity) {
        const uint32_t before = rank->done_capacity;

        rank->done_capacity = MAX(2 * before, DONE_MIN);
        rank->done = g_realloc(rank->done, rank->done_capacity);
        memset(rank->done + before, 0, rank->done_capacity - before);
    }
    rank->issued = id + 1;
    pthread_mutex_unlock(&rank->lock);
}

static bool
issue(LhRunner *rank, const LhOp *op, const LhOpBuffer *buffer)
{
    bool ok;

    pause_at(rank, op->id, 0);
    if (!wait_for_device(rank, op->id, op->kind == LH_OP_SYNC ? 0 : QUEUE_DEPTH - 1))
        return false;
    register_op(rank, op->id);
    switch (op->kind) {
    case LH_OP_COMPUTE:
    case LH_OP_EXCHANGE:
    case LH_OP_COLLECTIVE:
        return issue_stream_op(rank, op, buffer);
    case LH_OP_ALLOC:
        ok = issue_alloc(rank, op);
        break;
    case LH_OP_FREE:
        ok = issue_free(rank, op);
        break;
    default:
        ok = true;
        break;
    }
    pthread_mutex_lock(&rank->lock);
    mark_done(rank, op->id);
    pthread_mutex_unlock(&rank->lock);
    return ok;
}

static void *
host_main(void *data)
{
    LhRunner *rank = data;
    LhExecution *x = rank->execution;
    LhOpBuffer buffer = { 0 };
    LhCursor cursor;
    bool ok = true;

    lh_cursor_init(&cursor, x->program, rank->index);
    while (ok && lh_cursor_step(&cursor, &buffer)) {
        for (uint32_t i = 0; ok && i < buffer.ops_count; i++)
            ok = issue(rank, &buffer.ops[i], &buffer);
    }
    lh_op_buffer_clear(&buffer);
    pthread_mutex_lock(&rank->lock);
    rank->ended = true;
    pthread_cond_broadcast(&rank->changed);
    pthread_mutex_unlock(&rank->lock);
    g_atomic_int_add(&x->alive, -1);
    return NULL;
}

/* ---- the run ---- */

/* What is there before the program: input and output slots. */
static void
prepare_rank(LhRunner *rank)
{
    LhExecution *x = rank->execution;
    const LhProgram *program = x->program;

    rank->slots = g_new0(LhBuffer *, program->slots_count);
    for (uint32_t i = 0; i < program->slots_count; i++) {
        const LhSlot *slot = &program->slots[i];

        if (slot->role == LH_SLOT_TEMP)
            continue;
        rank->slots[i] = lh_buffer_new(slot);
        rank->memory_bytes += slot->parts * slot->part_bytes;
        for (uint32_t part = 0; slot->role == LH_SLOT_INPUT && part < slot->parts; part++)
            x->params->load(x->params->load_data, rank->index, (uint16_t)i, part,
                            lh_buffer_part(rank->slots[i], part));
    }
    rank->counted.peak_bytes = rank->memory_bytes;
}

static void
prepare(LhExecution *x)
{
    x->ranks = g_new0(LhRunner, x->count);
    x->records = g_array_new(FALSE, FALSE, sizeof(LhTimelineRecord));
    pthread_mutex_init(&x->lock, NULL);
    for (uint32_t r = 0; r < x->count; r++) {
        LhRunner *rank = &x->ranks[r];

        rank->execution = x;
        rank->index = x->first + r;
        pthread_mutex_init(&rank->lock, NULL);
        pthread_cond_init(&rank->changed, NULL);
        prepare_rank(rank);
        for (uint32_t s = 0; s < x->program->streams_count; s++) {
            rank->streams[s].rank = rank;
            rank->streams[s].index = s;
        }
    }
}

static void
start(LhExecution *x)
{
    const uint32_t streams = x->program->streams_count;

    (void)lh_cores_count(); /* those of the process, before a thread has fewer */
    x->alive = (gint)(x->count * (streams + 1));
    x->epoch_ns = now_ns();
    for (uint32_t r = 0; r < x->count; r++) {
        for (uint32_t s = 0; s < streams; s++)
            x->ranks[r].streams[s].thread =
                g_thread_new("stream", stream_main, &x->ranks[r].streams[s]);
        x->ranks[r].host = g_thread_new("host", host_main, &x->ranks[r]);
    }
}

static void
give_up(LhExecution *x, double seconds)
{
    g_autofree char *blocked = lh_execution_describe_blocked(x);

    lh_execution_fail(x, g_error_new(LH_ERROR, LH_ERROR_RUNTIME,
                                     "nothing has moved for %.3g s; what the ranks wait for:%s",
                                     seconds, blocked));
}

/* Moves messages, and watches that something moves. */
static void
watch(LhExecution *x)
{
    const LhTransport *transport = x->params->transport;
    gint moved = g_atomic_int_get(&x->moved);
    gint64 since_us = g_get_monotonic_time();

    while (g_atomic_int_get(&x->alive) > 0) {
        const gint now_moved = g_atomic_int_get(&x->moved);
        const gint64 now_us = g_get_monotonic_time();

        if (now_moved != moved) {
            moved = now_moved;
            since_us = now_us;
        } else if (now_us - since_us > x->params->deadline_us && !lh_execution_stopping(x)) {
            give_up(x, (double)(now_us - since_us) / US_PER_S);
        }
        transport->poll(x->transport, POLL_US);
    }
}

static void
join(LhExecution *x)
{
    for (uint32_t r = 0; r < x->count; r++) {
        g_thread_join(x->ranks[r].host);
        for (uint32_t s = 0; s < x->program->streams_count; s++)
            g_thread_join(x->ranks[r].streams[s].thread);
    }
}

/* Releases a slot that is still there; sets the error if something wrote beyond it. */
static void
release_slot(LhExecution *x, const LhRunner *rank, uint32_t slot)
{
    if (lh_buffer_release(rank->slots[slot]) || x->error != NULL)
        return;
    g_set_error(&x->error, LH_ERROR, LH_ERROR_RUNTIME,
                "rank %u: something wrote beyond the end of slot %s", rank->index,
                x->program->slots[slot].name);
}

static void
clear_rank(LhExecution *x, LhRunner *rank)
{
    bool ignored;

    for (uint32_t s = 0; s < x->program->streams_count; s++) {
        LhItem *item = rank->streams[s].first;

        while (item != NULL) {
            LhItem *next = item->next;

            lh_item_free(item, &ignored);
            item = next;
        }
        g_aligned_free(rank->streams[s].scratch);
    }
    for (uint32_t i = 0; i < x->program->slots_count; i++)
        release_slot(x, rank, i);
    g_free(rank->slots);
    g_free(rank->done);
    pthread_mutex_destroy(&rank->lock);
    pthread_cond_destroy(&rank->changed);
}

static void
clear(LhExecution *x)
{
    for (uint32_t r = 0; r < x->count; r++)
        clear_rank(x, &x->ranks[r]);
    g_free(x->ranks);
    g_array_unref(x->records);
    pthread_mutex_destroy(&x->lock);
}

/* ---- results ---- */

static uint64_t
output_bytes(const LhProgram *program)
{
    uint64_t bytes = 0;

    for (uint32_t i = 0; i < program->slots_count; i++) {
        if (program->slots[i].role == LH_SLOT_OUTPUT)
            bytes += program->slots[i].parts * program->slots[i].part_bytes;
    }
    return bytes;
}

static void
append_outputs(const LhExecution *x, const LhRunner *rank, GByteArray *bytes)
{
    for (uint32_t i = 0; i < x->program->slots_count; i++) {
        const LhSlot *slot = &x->program->slots[i];

        for (uint32_t part = 0; slot->role == LH_SLOT_OUTPUT && part < slot->parts; part++)
            g_byte_array_append(bytes, lh_buffer_part(rank->slots[i], part),
                                (guint)slot->part_bytes);
    }
}

/* Counters, outputs and records of this process's ranks: fixed sizes first. */
static GByteArray *
pack(const LhExecution *x)
{
    GByteArray *bytes = g_byte_array_new();
    const uint64_t records = x->records->len;

    for (uint32_t r = 0; r < x->count; r++) {
        g_byte_array_append(bytes, (const guint8 *)&x->ranks[r].counted, sizeof(LhRunRank));
        append_outputs(x, &x->ranks[r], bytes);
    }
    g_byte_array_append(bytes, (const guint8 *)&records, sizeof(records));
    g_byte_array_append(bytes, (const guint8 *)x->records->data,
                        (guint)(records * sizeof(LhTimelineRecord)));
    return bytes;
}

static LhRunResult *
result_new(const LhExecution *x)
{
    LhRunResult *result = g_new0(LhRunResult, 1);

    result->ranks_count = lh_program_ranks(x->program);
    result->ranks = g_new0(LhRunRank, result->ranks_count);
    result->outputs = g_new0(unsigned char *, result->ranks_count);
    result->output_bytes = output_bytes(x->program);
    return result;
}

static void
report_records(const LhRunParams *params, const guint8 *data, uint64_t count)
{
    for (uint64_t i = 0; params->timeline != NULL && i < count; i++) {
        LhTimelineRecord r;

        memcpy(&r, data + i * sizeof(r), sizeof(r));
        params->timeline(params->timeline_data, &r);
    }
}

/* The inverse of pack(), for all processes one after another; each has as many ranks. */
static void
unpack(const LhExecution *x, const GByteArray *all, LhRunResult *result)
{
    const guint8 *at = all->data;

    for (uint32_t r = 0; r < result->ranks_count; r++) {
        uint64_t records;

        memcpy(&result->ranks[r], at, sizeof(LhRunRank));
        at += sizeof(LhRunRank);
        result->outputs[r] = g_memdup2(at, result->output_bytes);
        at += result->output_bytes;
        result->makespan_ps = MAX(result->makespan_ps, result->ranks[r].finish_ps);
        if ((r + 1) % x->count != 0)
            continue;
        memcpy(&records, at, sizeof(records));
        at += sizeof(records);
        report_records(x->params, at, records);
        at += records * sizeof(LhTimelineRecord);
    }
    g_assert(at == all->data + all->len);
    result->whole = true;
}

static LhRunResult *
collect(LhExecution *x, GError **error)
{
    g_autoptr(GByteArray) bytes = pack(x);
    g_autoptr(GByteArray) all = g_byte_array_new();
    g_autoptr(LhRunResult) result = result_new(x);

    if (!x->params->transport->gather(x->transport, bytes, all, error))
        return NULL;
    if (all->len > 0)
        unpack(x, all, result);
    return g_steal_pointer(&result);
}

LhRunResult *
lh_execute(const LhRunParams *params, GError **error)
{
    LhExecution x = { .params = params, .program = params->program };
    g_autoptr(LhRunResult) result = NULL;

    x.transport =
        params->transport->open(lh_program_ranks(params->program), &x.first, &x.count, error);
    if (x.transport == NULL)
        return NULL;
    prepare(&x);
    start(&x);
    watch(&x);
    join(&x);
    if (x.error == NULL)
        result = collect(&x, &x.error);
    clear(&x);
    params->transport->close(x.transport);
    if (x.error != NULL) {
        g_propagate_error(error, x.error);
        return NULL;
    }
    return g_steal_pointer(&result);
}

void
lh_run_result_free(LhRunResult *result)
{
    if (result == NULL)
        return;
    for (uint32_t r = 0; r < result->ranks_count; r++)
        g_free(result->outputs[r]);
    g_free(result->outputs);
    g_free(result->ranks);
    g_free(result);
}

const unsigned char *
lh_run_output(const LhRunResult *result, const LhProgram *program, uint32_t rank, uint16_t slot,
              uint32_t part)
{
    uint64_t at = 0;

    for (uint16_t i = 0; i < slot; i++) {
        if (program->slots[i].role == LH_SLOT_OUTPUT)
            at += program->slots[i].parts * program->slots[i].part_bytes;
    }
    return result->outputs[rank] + at + part * program->slots[slot].part_bytes;
}
