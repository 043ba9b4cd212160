/*
 * Collectives made of messages, the same over every transport: everything goes straight to its
 * destination, so that a rank sends as many bytes as by the bandwidth-optimal algorithms, and
 * reductions are done by the receiver in the order of the group, so that bits do not depend on
 * timing. A region counts as its parts laid end to end.
 */
#include "runtime/executor_private.h"

#include "base/error.h"
#include "kernels/rows.h"

#include <string.h>

typedef struct {
    LhRunStream *stream;
    LhItem *item;
    const LhProgram *program;
    const LhGroup *group;
    uint32_t members, position;
    uint32_t tag;
    LhRegion send, receive;
    uint64_t send_bytes, receive_bytes;
    LhMessage *messages;
    uint32_t count;
} Collective;

static bool
fail(const Collective *c, LhErrorCode code, const char *what)
{
    LhExecution *x = c->stream->rank->execution;
    g_autofree char *text = lh_execution_op_text(x, &c->item->op);

    lh_execution_fail(x, g_error_new(LH_ERROR, (gint)code, "rank %u, %s: %s",
                                     c->stream->rank->index, text, what));
    return false;
}

/* Collectives over one group and of one kind match in the order of posting. */
static uint32_t
tag_of(const LhOp *op)
{
    const LhGroup *g = &op->collective.group;
    uint32_t mixed = g->base * UINT32_C(0x9E3779B1) + g->stride * UINT32_C(0x85EBCA6B) +
                     g->count * UINT32_C(0xC2B2AE35) + g->outer_stride * UINT32_C(0x27D4EB2F) +
                     (uint32_t)op->collective.kind;

    return LH_TAG_COLLECTIVES | (mixed ^ mixed >> 16) % LH_TAG_COLLECTIVES;
}

static LhMessage *
add_message(Collective *c, bool send, uint32_t member)
{
    LhMessage *m = &c->messages[c->count++];

    m->send = send;
    m->peer = (uint32_t)lh_group_member(c->group, member);
    m->tag = c->tag;
    m->slot = send ? c->send.slot : c->receive.slot;
    return m;
}

static void
send_range(Collective *c, uint32_t member, uint64_t from, uint64_t bytes)
{
    lh_item_range(c->item, c->item->buffers[0], c->send, from, bytes, add_message(c, true, member));
}

static void
receive_range(Collective *c, uint32_t member, uint64_t from, uint64_t bytes)
{
    LhMessage *m = add_message(c, false, member);

    lh_item_range(c->item, c->item->buffers[1], c->receive, from, bytes, m);
}

static unsigned char *
receive_apart(Collective *c, uint32_t member, uint64_t bytes)
{
    LhMessage *m = add_message(c, false, member);

    m->pieces = lh_item_memory(c->item, sizeof(LhPiece));
    m->pieces[0] = (LhPiece){ lh_item_memory(c->item, bytes), bytes };
    m->pieces_count = 1;
    m->bytes = bytes;
    return m->pieces[0].data;
}

static void
begin(Collective *c)
{
    c->messages = g_new0(LhMessage, 2 * (gsize)c->members);
    c->count = 0;
}

static bool
end(Collective *c)
{
    return lh_run_messages(c->stream, c->item, c->messages, c->count, NULL);
}

/* A copy of a range of the send region. */
static unsigned char *
own_copy(Collective *c, uint64_t from, uint64_t bytes)
{
    unsigned char *memory = lh_item_memory(c->item, bytes);
    unsigned char *to = memory;
    LhMessage m = { 0 };

    lh_item_range(c->item, c->item->buffers[0], c->send, from, bytes, &m);
    for (uint32_t i = 0; i < m.pieces_count; i++) {
        memcpy(to, m.pieces[i].data, m.pieces[i].bytes);
        to += m.pieces[i].bytes;
    }
    return memory;
}

/* Puts memory into a range of the receive region. */
static void
keep(Collective *c, uint64_t from, uint64_t bytes, const unsigned char *memory)
{
    LhMessage m = { 0 };

    lh_item_range(c->item, c->item->buffers[1], c->receive, from, bytes, &m);
    for (uint32_t i = 0; i < m.pieces_count; i++) {
        memcpy(m.pieces[i].data, memory, m.pieces[i].bytes);
        memory += m.pieces[i].bytes;
    }
}

/* ---- reductions ---- */

/* Sums in fp32, in the order of the group, rounded once. */
static void
sum(const Collective *c, unsigned char *const *blocks, uint64_t bytes, unsigned char *into)
{
    const enum lh_storage storage = lh_slot_storage(c->program, &c->program->slots[c->send.slot]);
    const uint64_t elements = bytes / lh_storage_bytes(storage);

    for (uint64_t i = 0; i < elements; i++) {
        float total = (float)lh_element_get(blocks[0], storage, i);

        for (uint32_t k = 1; k < c->members; k++)
            total += (float)lh_element_get(blocks[k], storage, i);
        lh_element_put(into, storage, i, (double)total);
    }
}

/* Merges attention of the same rows, part by part, with the kernel that the statistics ask for. */
static bool
merge(const Collective *c, unsigned char *const *blocks, uint64_t bytes, unsigned char *into)
{
    LhExecution *x = c->stream->rank->execution;
    const LhAttention *a = &c->program->params.attention;
    const LhSlot *slot = &c->program->slots[c->send.slot];
    const uint64_t rows = a->seq_length / lh_placement_segments(&c->program->placement);
    const uint64_t o_bytes = a->batch * rows * a->heads * a->head_dim * slot->element_bytes;
    const bool lse = slot->part_bytes == o_bytes + lh_attention_stat_bytes(a, rows);
    const LhKernel *kernel = lh_kernels[lse ? LH_KERNEL_ID_merge_lse : LH_KERNEL_ID_merge];
    const LhKernelRun run =
        x->params->kernels == LH_KERNEL_SET_CPU ? kernel->cpu : kernel->reference;
    const LhKernelArgs args = { .nq = rows * (bytes / slot->part_bytes),
                                .batch = a->batch,
                                .heads = a->heads,
                                .groups = a->groups,
                                .head_dim = a->head_dim };
    LhView view = { .parts = (uint32_t)(bytes / slot->part_bytes),
                    .part_bytes = slot->part_bytes,
                    .storage = lh_slot_storage(c->program, slot) };
    LhCall call = { .args = &args, .operands = { view, view } };

    if (run == NULL)
        return fail(c, LH_ERROR_NO, "there is no kernel that merges attention");
    call.scratch = lh_stream_scratch(c->stream, lh_kernel_scratch_bytes(kernel, &args));
    call.operands[1].data = into;
    memcpy(into, blocks[0], bytes);
    for (uint32_t k = 1; k < c->members; k++) {
        call.operands[0].data = blocks[k];
        if (run(&call) != LH_STATUS_OK)
            return fail(c, LH_ERROR_RUNTIME, "merging attention failed");
    }
    return true;
}

/* Everyone's slice @position of the send region, reduced, to @into of the receive region. */
static bool
reduce_slice(Collective *c, uint64_t bytes, uint64_t into)
{
    g_autofree unsigned char **blocks = g_new0(unsigned char *, c->members);
    unsigned char *result = lh_item_memory(c->item, bytes);

    begin(c);
    for (uint32_t k = 0; k < c->members; k++) {
        if (k == c->position) {
            blocks[k] = own_copy(c, k * bytes, bytes);
            continue;
        }
        send_range(c, k, k * bytes, bytes);
        blocks[k] = receive_apart(c, k, bytes);
    }
    if (!end(c))
        return false;
    if (c->item->op.collective.reduction == LH_REDUCE_SUM)
        sum(c, blocks, bytes, result);
    else if (!merge(c, blocks, bytes, result))
        return false;
    keep(c, into, bytes, result);
    return true;
}

/* ---- the kinds ---- */

static bool
all_gather(Collective *c)
{
    const uint64_t bytes = c->send_bytes;

    keep(c, c->position * bytes, bytes, own_copy(c, 0, bytes));
    begin(c);
    for (uint32_t k = 0; k < c->members; k++) {
        if (k == c->position)
            continue;
        send_range(c, k, 0, bytes);
        receive_range(c, k, k * bytes, bytes);
    }
    return end(c);
}

static bool
reduce_scatter(Collective *c)
{
    return reduce_slice(c, c->receive_bytes, 0);
}

/* Slices are reduced where they belong, then gathered. */
static bool
all_reduce(Collective *c)
{
    const uint64_t bytes = c->send_bytes / c->members;
    const uint32_t element = c->program->slots[c->send.slot].element_bytes;

    if (c->item->op.collective.reduction != LH_REDUCE_SUM)
        return fail(c, LH_ERROR_NO, "an all-reduce that merges attention is not supported");
    if (c->send_bytes % ((uint64_t)c->members * element) != 0)
        return fail(c, LH_ERROR_NO, "its elements cannot be cut into one slice for each rank");
    if (!reduce_slice(c, bytes, c->position * bytes))
        return false;
    begin(c);
    for (uint32_t k = 0; k < c->members; k++) {
        LhMessage *m;

        if (k == c->position)
            continue;
        m = add_message(c, true, k);
        lh_item_range(c->item, c->item->buffers[1], c->receive, c->position * bytes, bytes, m);
        receive_range(c, k, k * bytes, bytes);
    }
    return end(c);
}

static bool
all_to_all(Collective *c)
{
    const uint64_t bytes = c->send_bytes / c->members;
    unsigned char *from = own_copy(c, 0, c->send_bytes); /* both regions may be one */

    keep(c, c->position * bytes, bytes, from + c->position * bytes);
    begin(c);
    for (uint32_t k = 0; k < c->members; k++) {
        LhMessage *m;

        if (k == c->position)
            continue;
        m = add_message(c, true, k);
        m->pieces = lh_item_memory(c->item, sizeof(LhPiece));
        m->pieces[0] = (LhPiece){ from + k * bytes, bytes };
        m->pieces_count = 1;
        m->bytes = bytes;
        receive_range(c, k, k * bytes, bytes);
    }
    return end(c);
}

/* A chain in the order of the group. */
static bool
broadcast(Collective *c)
{
    const uint64_t bytes = c->receive_bytes;

    if (c->position == 0) {
        keep(c, 0, bytes, own_copy(c, 0, bytes));
    } else {
        begin(c);
        receive_range(c, c->position - 1, 0, bytes);
        if (!end(c))
            return false;
    }
    if (c->position + 1 == c->members)
        return true;
    begin(c);
    lh_item_range(c->item, c->item->buffers[1], c->receive, 0, bytes,
                  add_message(c, true, c->position + 1));
    return end(c);
}

bool
lh_run_collective(LhRunStream *s, LhItem *item)
{
    static bool (*const kinds[LH_COLL_KINDS])(Collective *) = {
        [LH_COLL_ALL_GATHER] = all_gather, [LH_COLL_REDUCE_SCATTER] = reduce_scatter,
        [LH_COLL_ALL_REDUCE] = all_reduce, [LH_COLL_ALL_TO_ALL] = all_to_all,
        [LH_COLL_BROADCAST] = broadcast,
    };
    const LhProgram *program = s->rank->execution->program;
    Collective c = {
        .stream = s,
        .item = item,
        .program = program,
        .group = &item->op.collective.group,
        .members = (uint32_t)lh_group_size(&item->op.collective.group),
        .position = lh_group_position(&item->op.collective.group, s->rank->index),
        .tag = tag_of(&item->op),
        .send = item->op.collective.send[0],
        .receive = item->op.collective.receive[0],
        .send_bytes = lh_region_bytes(program, item->op.collective.send[0]),
        .receive_bytes = lh_region_bytes(program, item->op.collective.receive[0]),
    };

    return kinds[item->op.collective.kind](&c);
}
