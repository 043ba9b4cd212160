/* SPDX-License-Identifier: Apache-2.0 */
/* Classifies the ops of a program by key, and finds which of them meet. */
#include "import/trace/alignment_private.h"

#include "sim/cost/cost.h"

static int
key_of_compute(LhKernelId kernel)
{
    switch (lh_kernels[kernel]->effect) {
    case LH_EFFECT_ATTEND:
        return LH_KEY_ATTEND;
    case LH_EFFECT_ATTEND_GRAD:
        return LH_KEY_ATTEND_GRAD;
    default:
        return -1;
    }
}

void
lh_match_clear_ops(LhTraceOps *ops)
{
    for (int k = 0; k < LH_KEYS; k++) {
        g_array_unref(ops->of[k]);
        g_array_unref(ops->started[k]);
    }
}

static gint
meetings_by_start(gconstpointer a, gconstpointer b, gpointer data)
{
    const LhTimelineRecord *x = lh_match_record(data, *(const guint *)a);
    const LhTimelineRecord *y = lh_match_record(data, *(const guint *)b);

    if (x->start_ps != y->start_ps)
        return x->start_ps < y->start_ps ? -1 : 1;
    return x->op < y->op ? -1 : x->op > y->op;
}

static guint
find_record(const LhTraceMatch *job, uint32_t rank, uint32_t op)
{
    guint low = job->first[rank], high = job->first[rank + 1];

    while (low < high) {
        const guint middle = low + (high - low) / 2;

        if (lh_match_record(job->match->records, middle)->op < op)
            low = middle + 1;
        else
            high = middle;
    }
    g_assert(low < job->first[rank + 1] && lh_match_record(job->match->records, low)->op == op);
    return low;
}

guint
lh_meeting_hash(gconstpointer data)
{
    const LhTraceMeeting *m = data;

    return lh_communicator_hash(&m->key) * 31u + m->turn * 2u + m->message;
}

gboolean
lh_meeting_equal(gconstpointer a, gconstpointer b)
{
    const LhTraceMeeting *x = a, *y = b;

    return x->turn == y->turn && x->message == y->message &&
           lh_communicator_compare(&x->key, &y->key) == 0;
}

/* Number of earlier meetings of this kind for the rank, or this end of messages; counts one
 * more. */
static uint32_t
next_turn(LhTraceMatch *job, LhTraceMeeting kind, uint32_t end)
{
    LhTraceMeeting counted = kind;
    gpointer had;

    counted.turn = end;
    had = g_hash_table_lookup(job->turns, &counted);
    g_hash_table_insert(job->turns, g_memdup2(&counted, sizeof(counted)),
                        GUINT_TO_POINTER(GPOINTER_TO_UINT(had) + 1));
    return GPOINTER_TO_UINT(had);
}

static void
join_meeting(LhTraceMatch *job, LhTraceMeeting kind, uint32_t end, guint record)
{
    GArray *members;

    kind.turn = next_turn(job, kind, end);
    members = g_hash_table_lookup(job->meetings, &kind);
    if (members == NULL) {
        LhTraceMeeting *key = g_memdup2(&kind, sizeof(kind));

        members = g_array_new(FALSE, FALSE, sizeof(guint));
        g_hash_table_insert(job->meetings, key, members);
        g_ptr_array_add(job->order, key);
    }
    g_array_append_val(members, record);
}

static void
read_exchange(LhTraceMatch *job, uint32_t rank, const LhOp *op, const LhOpBuffer *buffer,
              guint record)
{
    for (uint32_t i = 0; i < op->exchange.parts_count; i++) {
        const LhPart *part = &buffer->parts[op->exchange.parts_first + i];
        const LhTraceMeeting kind = { .key = { .number = op->communicator,
                                               .group = { .base = part->send ? rank : part->peer,
                                                          .stride = part->send ? part->peer : rank,
                                                          .count = 2,
                                                          .outer_count = 1 } },
                                      .message = true };

        join_meeting(job, kind, part->send ? 1 : 0, record);
    }
}

static void
read_op(LhTraceMatch *job, uint32_t rank, const LhOp *op, const LhOpBuffer *buffer, LhTraceOps *ops)
{
    const int kind = op->kind;
    int key = -1;
    guint record;

    if (kind == LH_OP_COMPUTE)
        key = key_of_compute(op->compute.kernel);
    else if (kind == LH_OP_EXCHANGE)
        key = LH_KEY_TRANSFERS + LH_GPU_TRACE_MESSAGES;
    else if (kind == LH_OP_COLLECTIVE)
        key = LH_KEY_TRANSFERS + (int)op->collective.kind;
    if (key < 0)
        return;
    record = find_record(job, rank, op->id);
    g_array_append_val(ops->of[key], record);
    if (kind == LH_OP_COMPUTE) {
        LhTraceBlock *block = &g_array_index(job->match->blocks, LhTraceBlock, record);

        block->triangle = lh_cost_is_triangle(&op->compute.args, &block->keys);
    }
    if (kind == LH_OP_EXCHANGE)
        read_exchange(job, rank, op, buffer, record);
    if (kind == LH_OP_COLLECTIVE) {
        ops->group_sizes[key] = MAX(ops->group_sizes[key], lh_group_size(&op->collective.group));
        join_meeting(job, (LhTraceMeeting){ .key = lh_op_communicator(op) }, rank, record);
    }
}

void
lh_match_program(LhTraceMatch *job, uint32_t rank, LhTraceOps *ops)
{
    LhCursor cursor;
    LhOpBuffer buffer = { 0 };

    for (int k = 0; k < LH_KEYS; k++) {
        ops->of[k] = g_array_new(FALSE, FALSE, sizeof(guint));
        ops->group_sizes[k] = 0;
    }
    lh_cursor_init(&cursor, job->program, rank);
    while (lh_cursor_step(&cursor, &buffer)) {
        for (uint32_t i = 0; i < buffer.ops_count; i++)
            read_op(job, rank, &buffer.ops[i], &buffer, ops);
    }
    lh_op_buffer_clear(&buffer);
    for (int k = 0; k < LH_KEYS; k++) {
        ops->started[k] = g_array_copy(ops->of[k]);
        g_array_sort_with_data(ops->started[k], meetings_by_start, job->match->records);
    }
}
