/*
 * What an op does: calls a kernel, or posts messages and waits for them. And what a rank says when
 * it is stuck.
 */
#include "runtime/executor_private.h"

#include "base/error.h"

#include <string.h>

#define BLOCKED_LINES_MAX 64

enum lh_storage
lh_slot_storage(const LhProgram *program, const LhSlot *slot)
{
    if (slot->element_bytes == lh_dtype_bytes(LH_DTYPE_FP32))
        return LH_STORAGE_FP32;
    return program->params.attention.dtype == LH_DTYPE_FP16 ? LH_STORAGE_FP16 : LH_STORAGE_BF16;
}

/* ---- items ---- */

void *
lh_item_memory(LhItem *item, uint64_t bytes)
{
    void *memory = g_malloc0(MAX(bytes, 1));

    if (item->memory == NULL)
        item->memory = g_ptr_array_new_with_free_func(g_free);
    g_ptr_array_add(item->memory, memory);
    return memory;
}

void
lh_item_range(LhItem *item, const LhBuffer *buffer, LhRegion region, uint64_t from, uint64_t bytes,
              LhMessage *message)
{
    message->pieces = lh_item_memory(item, region.count * sizeof(LhPiece));
    message->pieces_count = 0;
    message->bytes = bytes;
    for (uint32_t i = 0; i < region.count && bytes > 0; i++) {
        const uint64_t here = MIN(bytes, buffer->part_bytes - MIN(from, buffer->part_bytes));

        if (here > 0)
            message->pieces[message->pieces_count++] =
                (LhPiece){ lh_buffer_part(buffer, region.part + i) + from, here };
        from -= MIN(from, buffer->part_bytes);
        bytes -= here;
    }
    g_assert(bytes == 0);
}

void
lh_item_free(LhItem *item, bool *whole)
{
    for (uint32_t i = 0; i < item->buffers_count; i++) {
        if (!lh_buffer_release(item->buffers[i]))
            *whole = false;
    }
    if (item->memory != NULL)
        g_ptr_array_unref(item->memory);
    g_free(item->buffers);
    g_free(item->messages);
    g_free(item->parts);
    g_free(item);
}

/* ---- compute ---- */

static LhView
view_of(const LhProgram *program, const LhBuffer *buffer, LhRegion region)
{
    const LhSlot *slot = &program->slots[region.slot];

    return (LhView){
        .data = lh_buffer_part(buffer, region.part),
        .parts = region.count,
        .part_bytes = buffer->stride_bytes,
        .storage = lh_slot_storage(program, slot),
        .held_bytes = buffer->part_bytes,
    };
}

void *
lh_stream_scratch(LhRunStream *s, uint64_t bytes)
{
    if (bytes > s->scratch_bytes) {
        g_aligned_free(s->scratch);
        s->scratch = g_aligned_alloc(1, bytes, LH_SCRATCH_ALIGN);
        s->scratch_bytes = bytes;
    }
    return bytes == 0 ? NULL : s->scratch;
}

static bool
fail_kernel(LhRunStream *s, const LhOp *op, enum lh_status status)
{
    static const char *const messages[] = {
#define LH_STATUS_MESSAGE(code, name, message) message,
        LH_STATUS_MAP(LH_STATUS_MESSAGE)
#undef LH_STATUS_MESSAGE
    };
    LhExecution *x = s->rank->execution;
    g_autofree char *text = lh_execution_op_text(x, op);

    lh_execution_fail(
        x, g_error_new(LH_ERROR, status == LH_STATUS_UNSUPPORTED ? LH_ERROR_NO : LH_ERROR_RUNTIME,
                       "rank %u, %s, kernels \"%s\": %s", s->rank->index, text,
                       lh_kernel_set_names[x->params->kernels], messages[status]));
    return false;
}

bool
lh_run_compute(LhRunStream *s, LhItem *item)
{
    LhExecution *x = s->rank->execution;
    const LhRunHooks *hooks = x->params->hooks;
    const LhOp *op = &item->op;
    const LhKernel *kernel = lh_kernels[op->compute.kernel];
    const LhKernelRun run =
        x->params->kernels == LH_KERNEL_SET_CPU ? kernel->cpu : kernel->reference;
    LhCall call = { .args = &op->compute.args };
    enum lh_status status;

    if (run == NULL)
        return fail_kernel(s, op, LH_STATUS_UNSUPPORTED);
    for (uint32_t i = 0; i < op->compute.regions_count; i++)
        call.operands[i] = view_of(x->program, item->buffers[i], op->compute.regions[i]);
    call.scratch = lh_stream_scratch(s, lh_kernel_scratch_bytes(kernel, call.args));
    status = hooks != NULL && hooks->call != NULL
                 ? hooks->call(hooks->data, s->rank->index, op, run, &call)
                 : run(&call);
    if (status != LH_STATUS_OK)
        return fail_kernel(s, op, status);
    if (lh_kernel_counts_flops(kernel))
        item->flops = kernel->flops(call.args);
    return true;
}

/* ---- messages ---- */

static void
complete(LhMessage *m)
{
    LhRunStream *s = m->owner;
    LhRunner *rank = s->rank;

    pthread_mutex_lock(&rank->lock);
    m->done = true;
    s->first->pending--;
    if (m->send) {
        s->first->bytes += m->bytes;
        rank->counted.messages++;
    }
    g_atomic_int_inc(&rank->execution->moved);
    pthread_cond_broadcast(&rank->changed);
    pthread_mutex_unlock(&rank->lock);
}

/* What it brings goes nowhere. */
static void
discard(LhItem *item, LhMessage *m)
{
    for (uint32_t i = 0; i < m->pieces_count; i++)
        m->pieces[i].data = lh_item_memory(item, m->pieces[i].bytes);
}

/* Posts a message, unless the run is disturbed there. */
static void
post(LhRunStream *s, LhItem *item, LhMessage *m)
{
    LhExecution *x = s->rank->execution;
    const LhRunHooks *hooks = x->params->hooks;

    m->rank = s->rank->index;
    m->owner = s;
    m->complete = complete;
    if (hooks != NULL && hooks->land != NULL && !m->send &&
        !hooks->land(hooks->data, m->rank, &item->op, m))
        discard(item, m);
    if (hooks == NULL || hooks->post == NULL || hooks->post(hooks->data, m->rank, &item->op, m))
        x->params->transport->post(x->transport, m);
}

bool
lh_run_messages(LhRunStream *s, LhItem *item, LhMessage *messages, uint32_t count)
{
    LhRunner *rank = s->rank;
    LhExecution *x = rank->execution;
    bool ok;

    pthread_mutex_lock(&rank->lock);
    g_free(item->messages);
    item->messages = messages;
    item->messages_count = count;
    item->pending = count;
    pthread_mutex_unlock(&rank->lock);
    for (uint32_t i = 0; i < count; i++)
        post(s, item, &messages[i]);
    pthread_mutex_lock(&rank->lock);
    while (item->pending > 0 && !lh_execution_stopping(x))
        pthread_cond_wait(&rank->changed, &rank->lock);
    ok = item->pending == 0;
    pthread_mutex_unlock(&rank->lock);
    return ok;
}

static uint64_t
regions_bytes(const LhProgram *program, const LhPart *part)
{
    uint64_t bytes = 0;

    for (uint32_t i = 0; i < part->regions_count; i++)
        bytes += lh_region_bytes(program, part->regions[i]);
    return bytes;
}

/* The pieces of a message's regions, one for each part of a slot. @buffers moves on. */
static void
fill_message(const LhProgram *program, LhItem *item, const LhPart *part, LhBuffer **buffers,
             LhMessage *m)
{
    uint32_t pieces = 0;

    for (uint32_t i = 0; i < part->regions_count; i++)
        pieces += part->regions[i].count;
    m->pieces = lh_item_memory(item, pieces * sizeof(LhPiece));
    for (uint32_t i = 0; i < part->regions_count; i++) {
        for (uint32_t k = 0; k < part->regions[i].count; k++)
            m->pieces[m->pieces_count++] = (LhPiece){
                lh_buffer_part(buffers[i], part->regions[i].part + k),
                buffers[i]->part_bytes,
            };
    }
    m->bytes = regions_bytes(program, part);
    m->send = part->send;
    m->peer = part->peer;
    m->tag = part->tag;
    m->slot = part->regions[0].slot;
}

static bool
refuse_conversion(LhRunStream *s, const LhItem *item, const LhPart *part, uint64_t bytes)
{
    LhExecution *x = s->rank->execution;
    g_autofree char *text = lh_execution_op_text(x, &item->op);

    lh_execution_fail(x, g_error_new(LH_ERROR, LH_ERROR_NO,
                                     "rank %u, %s: sends %" G_GUINT64_FORMAT
                                     " bytes of memory as %" G_GUINT64_FORMAT
                                     " bytes on the wire; messages are not converted",
                                     s->rank->index, text, bytes, part->wire_bytes));
    return false;
}

bool
lh_run_exchange(LhRunStream *s, LhItem *item)
{
    LhExecution *x = s->rank->execution;
    const uint32_t count = item->op.exchange.parts_count;
    LhMessage *messages = g_new0(LhMessage, count);
    LhBuffer **buffers = item->buffers;

    for (uint32_t i = 0; i < count; i++) {
        const LhPart *part = &item->parts[i];

        if (regions_bytes(x->program, part) != part->wire_bytes) {
            g_free(messages);
            return refuse_conversion(s, item, part, regions_bytes(x->program, part));
        }
        fill_message(x->program, item, part, buffers, &messages[i]);
        buffers += part->regions_count;
    }
    return lh_run_messages(s, item, messages, count);
}

/* ---- what blocks a rank ---- */

char *
lh_execution_op_text(const LhExecution *x, const LhOp *op)
{
    const char *what = op->kind == LH_OP_COMPUTE      ? lh_kernels[op->compute.kernel]->name
                       : op->kind == LH_OP_COLLECTIVE ? lh_collective_names[op->collective.kind]
                                                      : lh_op_kind_names[op->kind];

    if (op->kind == LH_OP_COMPUTE || op->kind == LH_OP_EXCHANGE || op->kind == LH_OP_COLLECTIVE)
        return g_strdup_printf("op %u (%s, stream %s)", op->id, what,
                               x->program->streams[op->stream].name);
    return g_strdup_printf("op %u (%s)", op->id, what);
}

static void
describe_messages(const LhExecution *x, const LhRunner *rank, const LhItem *item, GString *out)
{
    g_autofree char *text = lh_execution_op_text(x, &item->op);

    for (uint32_t i = 0; i < item->messages_count; i++) {
        const LhMessage *m = &item->messages[i];

        if (m->done)
            continue;
        g_string_append_printf(
            out, "\n  rank %u, %s: %s rank %u, slot %s (tag %u, %" G_GUINT64_FORMAT " bytes)",
            rank->index, text, m->send ? "sends to" : "receives from", m->peer,
            m->slot < 0 ? "?" : x->program->slots[m->slot].name, m->tag, m->bytes);
    }
}

static void
describe_stream(const LhExecution *x, const LhRunner *rank, const LhRunStream *s, GString *out)
{
    const LhItem *item = s->first;
    g_autofree char *text = NULL;

    if (item == NULL)
        return;
    if (s->running && item->pending > 0) {
        describe_messages(x, rank, item, out);
        return;
    }
    text = lh_execution_op_text(x, &item->op);
    if (s->running) {
        g_string_append_printf(out, "\n  rank %u, %s: is running", rank->index, text);
        return;
    }
    for (unsigned i = 0; i < item->op.after_count; i++) {
        if (!rank->done[item->op.after[i]]) {
            g_string_append_printf(out, "\n  rank %u, %s: comes after op %u", rank->index, text,
                                   item->op.after[i]);
            return;
        }
    }
}

static bool
is_blocked(const LhExecution *x, const LhRunner *rank)
{
    if (!rank->ended)
        return true;
    for (uint32_t s = 0; s < x->program->streams_count; s++) {
        if (rank->streams[s].first != NULL)
            return true;
    }
    return false;
}

char *
lh_execution_describe_blocked(LhExecution *x)
{
    GString *out = g_string_new(NULL);
    uint32_t described = 0, left_out = 0;

    for (uint32_t r = 0; r < x->count; r++) {
        LhRunner *rank = &x->ranks[r];

        pthread_mutex_lock(&rank->lock);
        if (is_blocked(x, rank) && described++ >= BLOCKED_LINES_MAX) {
            left_out++;
        } else if (is_blocked(x, rank)) {
            for (uint32_t s = 0; s < x->program->streams_count; s++)
                describe_stream(x, rank, &rank->streams[s], out);
            if (rank->host_waits)
                g_string_append_printf(out, "\n  rank %u, host: waits for its device before op %u",
                                       rank->index, rank->host_op);
        }
        pthread_mutex_unlock(&rank->lock);
    }
    if (left_out > 0)
        g_string_append_printf(out, "\n  and %u more ranks", left_out);
    return g_string_free(out, FALSE);
}
