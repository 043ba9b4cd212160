/*
 * Collectives made of messages, the same over every transport: everything goes straight to its
 * destination, so that a rank sends as many bytes as by the bandwidth-optimal algorithms, and
 * reductions are done by the receiver in the order of the group, so that bits do not depend on
 * timing. A region counts as its parts laid end to end. Tensors of one collective travel together.
 */
#include "runtime/executor_private.h"

#include "base/error.h"
#include "kernels/rows.h"

#include <string.h>

/* A collective under way. */
typedef struct {
    LhRunStream *stream;
    LhItem *item;
    const LhProgram *program;
    const LhGroup *group;
    uint32_t members, position;
    uint32_t tag;
    LhMessage *messages; /* of the round that is being posted */
    uint32_t count;
} Collective;

/* One of its tensors. */
typedef struct {
    Collective *c;
    LhRegion send, receive;
    const LhBuffer *from, *to;
    uint64_t send_bytes, receive_bytes;
    unsigned char **blocks; /* of reductions: every member's, this rank's own too */
} Tensor;

/*
 * A kind is rounds of messages. Every tensor posts its messages of a round; when all of them have
 * come, every tensor finishes.
 */
typedef struct {
    void (*post)(Tensor *);
    bool (*finish)(Tensor *); /* NULL: nothing is left to do */
} Round;

#define ROUNDS_MAX 2

static bool
fail(const Collective *c, LhErrorCode code, const char *what)
{
    LhExecution *x = c->stream->rank->execution;
    g_autofree char *text = lh_execution_op_text(x, &c->item->op);

    lh_execution_fail(x, g_error_new(LH_ERROR, (gint)code, "rank %u, %s: %s",
                                     c->stream->rank->index, text, what));
    return false;
}

/*
 * Collectives over one group match in the order of posting. A group is known by its ranks: strides
 * that are never taken do not count.
 */
static uint32_t
tag_of(const LhGroup *g)
{
    const uint32_t stride = g->count > 1 ? g->stride : 0;
    const uint32_t outer_stride = g->outer_count > 1 ? g->outer_stride : 0;
    const uint32_t mixed = g->base * UINT32_C(0x9E3779B1) ^ stride * UINT32_C(0x85EBCA6B) ^
                           g->count * UINT32_C(0xC2B2AE35) ^ outer_stride * UINT32_C(0x27D4EB2F) ^
                           g->outer_count * UINT32_C(0x165667B1);

    return LH_TAG_COLLECTIVES | (mixed ^ mixed >> 16) % LH_TAG_COLLECTIVES;
}

/* ---- messages ---- */

static LhMessage *
add_message(const Tensor *t, bool send, uint32_t member)
{
    Collective *c = t->c;
    LhMessage *m = &c->messages[c->count++];

    m->send = send;
    m->peer = (uint32_t)lh_group_member(c->group, member);
    m->tag = c->tag;
    m->slot = send ? t->send.slot : t->receive.slot;
    return m;
}

static void
send_range(const Tensor *t, uint32_t member, uint64_t from, uint64_t bytes)
{
    lh_item_range(t->c->item, t->from, t->send, from, bytes, add_message(t, true, member));
}

/* Of what this rank has received or reduced. */
static void
pass_on(const Tensor *t, uint32_t member, uint64_t from, uint64_t bytes)
{
    lh_item_range(t->c->item, t->to, t->receive, from, bytes, add_message(t, true, member));
}

static void
receive_range(const Tensor *t, uint32_t member, uint64_t from, uint64_t bytes)
{
    lh_item_range(t->c->item, t->to, t->receive, from, bytes, add_message(t, false, member));
}

static void
add_memory(const Tensor *t, bool send, uint32_t member, unsigned char *memory, uint64_t bytes)
{
    LhMessage *m = add_message(t, send, member);

    m->pieces = lh_item_memory(t->c->item, sizeof(LhPiece));
    m->pieces[0] = (LhPiece){ memory, bytes };
    m->pieces_count = 1;
    m->bytes = bytes;
}

/* A copy of a range of the send region. */
static unsigned char *
own_copy(const Tensor *t, uint64_t from, uint64_t bytes)
{
    unsigned char *memory = lh_item_memory(t->c->item, bytes);
    unsigned char *to = memory;
    LhMessage m = { 0 };

    lh_item_range(t->c->item, t->from, t->send, from, bytes, &m);
    for (uint32_t i = 0; i < m.pieces_count; i++) {
        memcpy(to, m.pieces[i].data, m.pieces[i].bytes);
        to += m.pieces[i].bytes;
    }
    return memory;
}

/* Puts memory into a range of the receive region. */
static void
keep(const Tensor *t, uint64_t from, uint64_t bytes, const unsigned char *memory)
{
    LhMessage m = { 0 };

    lh_item_range(t->c->item, t->to, t->receive, from, bytes, &m);
    for (uint32_t i = 0; i < m.pieces_count; i++) {
        memcpy(m.pieces[i].data, memory, m.pieces[i].bytes);
        memory += m.pieces[i].bytes;
    }
}

/* ---- reductions ---- */

/* Sums in fp32, in the order of the group, rounded once. */
static void
sum(const Tensor *t, uint64_t bytes, unsigned char *into)
{
    const LhProgram *program = t->c->program;
    const enum lh_storage storage = lh_slot_storage(program, &program->slots[t->send.slot]);
    const uint64_t elements = bytes / lh_storage_bytes(storage);

    for (uint64_t i = 0; i < elements; i++) {
        float total = (float)lh_element_get(t->blocks[0], storage, i);

        for (uint32_t k = 1; k < t->c->members; k++)
            total += (float)lh_element_get(t->blocks[k], storage, i);
        lh_element_put(into, storage, i, (double)total);
    }
}

/* The rows of @parts parts of a slot of accumulators: a segment's, of a slice of the heads, each.
 */
static LhKernelArgs
merge_args(const LhProgram *program, const LhSlot *slot, uint64_t parts)
{
    const LhAttention *a = &program->params.attention;
    const uint64_t rows = a->seq_length / lh_placement_segments(&program->placement);

    return (LhKernelArgs){ .nq = rows * parts,
                           .batch = a->batch,
                           .heads = a->heads / lh_program_slices(program, slot->kind),
                           .groups = 1,
                           .head_dim = a->head_dim };
}

/* With m and l, or with lse alone. */
static const LhKernel *
merge_kernel(const LhSlot *slot, const LhKernelArgs *part)
{
    const uint64_t rows = part->batch * part->nq * part->heads;
    const uint64_t one_stat = rows * (part->head_dim * slot->element_bytes + sizeof(float));

    return lh_kernels[slot->part_bytes == one_stat ? LH_KERNEL_ID_merge_lse : LH_KERNEL_ID_merge];
}

/* Merges attention of the same rows, part by part: in fp32, in the order of the group, rounded
 * once.
 */
static bool
merge(const Tensor *t, uint64_t bytes, unsigned char *into)
{
    const Collective *c = t->c;
    const LhSlot *slot = &c->program->slots[t->send.slot];
    const uint32_t parts = (uint32_t)(bytes / slot->part_bytes);
    const LhKernelArgs one = merge_args(c->program, slot, 1);
    const LhKernel *kernel = merge_kernel(slot, &one);
    const LhKernelRun run = c->stream->rank->execution->params->kernels == LH_KERNEL_SET_CPU
                                ? kernel->cpu
                                : kernel->reference;
    const uint64_t elements = one.batch * one.nq * one.heads * one.head_dim;
    const LhView view = { .parts = parts,
                          .part_bytes = slot->part_bytes,
                          .storage = lh_slot_storage(c->program, slot) };
    LhView sum = { .parts = parts,
                   .part_bytes = slot->part_bytes + elements * (4 - slot->element_bytes),
                   .storage = LH_STORAGE_FP32 };
    LhKernelArgs args = merge_args(c->program, slot, parts);
    LhCall call = { .args = &args };

    if (bytes % slot->part_bytes != 0)
        return fail(c, LH_ERROR_NO, "attention is merged by whole parts, and it has too few");
    if (run == NULL)
        return fail(c, LH_ERROR_NO, "there is no kernel that merges attention");
    call.scratch = lh_stream_scratch(c->stream, lh_kernel_scratch_bytes(kernel, &args));
    sum.data = lh_item_memory(c->item, parts * sum.part_bytes);
    for (uint32_t k = 0; k <= c->members; k++) {
        const bool rounds = k == c->members;

        args.first = k == 0 || rounds;
        call.operands[0] = rounds ? sum : view;
        call.operands[1] = rounds ? view : sum;
        if (rounds)
            call.operands[1].data = into;
        else
            call.operands[0].data = t->blocks[k];
        if (run(&call) != LH_STATUS_OK)
            return fail(c, LH_ERROR_RUNTIME, "merging attention failed");
    }
    return true;
}

/* Everyone's slice @position of the send region comes to this rank, slices of @bytes. */
static void
post_slices(Tensor *t, uint64_t bytes)
{
    const Collective *c = t->c;

    t->blocks = lh_item_memory(c->item, c->members * sizeof(*t->blocks));
    for (uint32_t k = 0; k < c->members; k++) {
        if (k == c->position) {
            t->blocks[k] = own_copy(t, k * bytes, bytes);
            continue;
        }
        send_range(t, k, k * bytes, bytes);
        t->blocks[k] = lh_item_memory(c->item, bytes);
        add_memory(t, false, k, t->blocks[k], bytes);
    }
}

/* Reduces the slices to @into of the receive region. */
static bool
reduce_slices(Tensor *t, uint64_t bytes, uint64_t into)
{
    unsigned char *result = lh_item_memory(t->c->item, bytes);

    if (t->c->item->op.collective.reduction == LH_REDUCE_SUM)
        sum(t, bytes, result);
    else if (!merge(t, bytes, result))
        return false;
    keep(t, into, bytes, result);
    return true;
}

/* ---- the kinds ---- */

static void
post_gather(Tensor *t)
{
    const uint64_t bytes = t->send_bytes;
    unsigned char *own = own_copy(t, 0, bytes); /* the send region may be part of the other */

    keep(t, t->c->position * bytes, bytes, own);
    for (uint32_t k = 0; k < t->c->members; k++) {
        if (k == t->c->position)
            continue;
        add_memory(t, true, k, own, bytes);
        receive_range(t, k, k * bytes, bytes);
    }
}

static void
post_scatter(Tensor *t)
{
    post_slices(t, t->receive_bytes);
}

static bool
finish_scatter(Tensor *t)
{
    return reduce_slices(t, t->receive_bytes, 0);
}

/* All-reduce: slices are reduced where they belong ... */
static void
post_reduce(Tensor *t)
{
    post_slices(t, t->send_bytes / t->c->members);
}

static bool
finish_reduce(Tensor *t)
{
    const Collective *c = t->c;
    const uint64_t bytes = t->send_bytes / c->members;
    const uint32_t element = c->program->slots[t->send.slot].element_bytes;

    if (t->send_bytes % ((uint64_t)c->members * element) != 0)
        return fail(c, LH_ERROR_NO, "its elements cannot be cut into one slice for each rank");
    return reduce_slices(t, bytes, c->position * bytes);
}

/* ... then gathered. */
static void
post_reduced(Tensor *t)
{
    const Collective *c = t->c;
    const uint64_t bytes = t->send_bytes / c->members;

    for (uint32_t k = 0; k < c->members; k++) {
        if (k == c->position)
            continue;
        pass_on(t, k, c->position * bytes, bytes);
        receive_range(t, k, k * bytes, bytes);
    }
}

static void
post_all_to_all(Tensor *t)
{
    const Collective *c = t->c;
    const uint64_t bytes = t->send_bytes / c->members;
    unsigned char *from = own_copy(t, 0, t->send_bytes); /* both regions may be one */

    keep(t, c->position * bytes, bytes, from + c->position * bytes);
    for (uint32_t k = 0; k < c->members; k++) {
        if (k == c->position)
            continue;
        add_memory(t, true, k, from + k * bytes, bytes);
        receive_range(t, k, k * bytes, bytes);
    }
}

/* Broadcast: a chain in the order of the group. */
static void
post_from_before(Tensor *t)
{
    if (t->c->position == 0)
        keep(t, 0, t->receive_bytes, own_copy(t, 0, t->receive_bytes));
    else
        receive_range(t, t->c->position - 1, 0, t->receive_bytes);
}

static void
post_to_next(Tensor *t)
{
    if (t->c->position + 1 < t->c->members)
        pass_on(t, t->c->position + 1, 0, t->receive_bytes);
}

static const Round kinds[LH_COLL_KINDS][ROUNDS_MAX] = {
    [LH_COLL_ALL_GATHER] = { { post_gather, NULL } },
    [LH_COLL_REDUCE_SCATTER] = { { post_scatter, finish_scatter } },
    [LH_COLL_ALL_REDUCE] = { { post_reduce, finish_reduce }, { post_reduced, NULL } },
    [LH_COLL_ALL_TO_ALL] = { { post_all_to_all, NULL } },
    [LH_COLL_BROADCAST] = { { post_from_before, NULL }, { post_to_next, NULL } },
};

static bool
run_round(Collective *c, const Round *round, Tensor *tensors, uint32_t count)
{
    c->messages = g_new0(LhMessage, 2 * (gsize)c->members * count);
    c->count = 0;
    for (uint32_t i = 0; i < count; i++)
        round->post(&tensors[i]);
    if (!lh_run_messages(c->stream, c->item, c->messages, c->count))
        return false;
    for (uint32_t i = 0; i < count && round->finish != NULL; i++) {
        if (!round->finish(&tensors[i]))
            return false;
    }
    return true;
}

bool
lh_run_collective(LhRunStream *s, LhItem *item)
{
    const LhProgram *program = s->rank->execution->program;
    const LhOp *op = &item->op;
    const uint32_t count = op->collective.tensors_count;
    Tensor tensors[LH_COLLECTIVE_TENSORS_MAX];
    Collective c = {
        .stream = s,
        .item = item,
        .program = program,
        .group = &op->collective.group,
        .members = (uint32_t)lh_group_size(&op->collective.group),
        .position = lh_group_position(&op->collective.group, s->rank->index),
        .tag = tag_of(&op->collective.group),
    };

    for (uint32_t i = 0; i < count; i++)
        tensors[i] = (Tensor){
            .c = &c,
            .send = op->collective.send[i],
            .receive = op->collective.receive[i],
            .from = item->buffers[2 * i],
            .to = item->buffers[2 * i + 1],
            .send_bytes = lh_region_bytes(program, op->collective.send[i]),
            .receive_bytes = lh_region_bytes(program, op->collective.receive[i]),
        };
    for (unsigned r = 0; r < ROUNDS_MAX && kinds[op->collective.kind][r].post != NULL; r++) {
        if (!run_round(&c, &kinds[op->collective.kind][r], tensors, count))
            return false;
    }
    return true;
}
