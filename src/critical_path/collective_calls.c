/* SPDX-License-Identifier: Apache-2.0 */
#include "critical_path/collective_calls.h"

#include "program/cursor.h"

guint
lh_call_id_hash(gconstpointer id)
{
    const LhCallId *call = id;

    return lh_communicator_hash(&call->communicator) * 31 + call->nth;
}

gboolean
lh_call_id_equal(gconstpointer a, gconstpointer b)
{
    const LhCallId *x = a, *y = b;

    return x->nth == y->nth && lh_communicator_compare(&x->communicator, &y->communicator) == 0;
}

/* ---- calls of a rank ---- */

typedef struct {
    LhCommunicatorKey key;
    uint32_t count;
} Counted;

void
lh_call_counter_init(LhCallCounter *counter)
{
    counter->counts =
        g_hash_table_new_full(lh_communicator_key_hash, lh_communicator_key_equal, NULL, g_free);
}

void
lh_call_counter_clear(LhCallCounter *counter)
{
    g_hash_table_unref(counter->counts);
}

LhCallId
lh_call_counter_next(LhCallCounter *counter, const LhOp *op)
{
    const Counted fresh = { lh_op_communicator(op), 0 };
    Counted *counted = g_hash_table_lookup(counter->counts, &fresh.key);

    if (counted == NULL) {
        counted = g_memdup2(&fresh, sizeof(fresh));
        g_hash_table_insert(counter->counts, &counted->key, counted);
    }
    return (LhCallId){ counted->key, counted->count++ };
}

/* ---- members ---- */

static bool
is_simulated_member(const LhCallOps *call, uint32_t rank)
{
    return lh_symmetry_plays(&call->fold, rank) &&
           lh_group_position(&call->id.communicator.group, rank) != UINT32_MAX;
}

/* Notes the op if it belongs to a call; returns whether it does. */
static bool
note(LhCallOps *calls, guint count, uint32_t rank, const LhOp *op, const LhCallId *id)
{
    for (guint i = 0; i < count; i++) {
        if (!is_simulated_member(&calls[i], rank) || !lh_call_id_equal(&calls[i].id, id))
            continue;
        calls[i].ops[rank] = op->id;
        return true;
    }
    return false;
}

static void
walk(const LhProgram *program, LhCallOps *calls, guint count, uint32_t rank)
{
    LhOpBuffer buffer = { 0 };
    LhCallCounter counter;
    LhCursor cursor;
    guint left = 0;

    for (guint i = 0; i < count; i++)
        left += is_simulated_member(&calls[i], rank);
    if (left == 0)
        return;
    lh_call_counter_init(&counter);
    lh_cursor_init(&cursor, program, rank);
    while (left > 0 && lh_cursor_step(&cursor, &buffer))
        for (uint32_t i = 0; i < buffer.ops_count && left > 0; i++) {
            const LhOp *op = &buffer.ops[i];

            if (op->kind == LH_OP_COLLECTIVE) {
                const LhCallId id = lh_call_counter_next(&counter, op);

                left -= note(calls, count, rank, op, &id);
            }
        }
    lh_call_counter_clear(&counter);
    lh_op_buffer_clear(&buffer);
}

void
lh_collective_calls_find(const LhProgram *program, LhCallOps *calls, guint count)
{
    const uint32_t ranks = lh_program_ranks(program);

    for (guint i = 0; i < count; i++)
        for (uint32_t r = 0; r < ranks; r++)
            calls[i].ops[r] = LH_OP_NONE;
    for (uint32_t r = 0; r < ranks; r++)
        walk(program, calls, count, r);
    for (guint i = 0; i < count; i++)
        for (uint32_t r = 0; r < ranks; r++)
            calls[i].ops[r] = calls[i].ops[lh_symmetry_rank(&calls[i].fold, r)];
}
