/* SPDX-License-Identifier: Apache-2.0 */
#include "verify/posting_order.h"

#include "verify/verify_private.h"

#include <string.h>

#define ROOM_MIN 64

G_STATIC_ASSERT(LH_VERIFY_RANKS_MAX < UINT32_MAX >> 9);

/* Direction, communicator (8 bits) and peer; never 0. */
static uint32_t
key_of_message(const LhOp *op, const LhPart *part)
{
    return (part->peer + 1) << 9 | (uint32_t)op->communicator << 1 | part->send;
}

/* The place of @key, or the free one where it belongs. */
static LhPosted *
place_of(const LhPostingOrder *order, uint32_t key)
{
    uint32_t i = key * UINT32_C(0x9e3779b1);

    for (i = (i ^ i >> 15) & (order->room - 1);
         order->last[i].key != 0 && order->last[i].key != key;)
        i = (i + 1) & (order->room - 1);
    return &order->last[i];
}

static void
grow_table(LhPostingOrder *order)
{
    LhPostingOrder larger = { .room = MAX(2 * order->room, ROOM_MIN), .count = order->count };

    larger.last = g_new0(LhPosted, larger.room);
    for (uint32_t i = 0; i < order->room; i++) {
        if (order->last[i].key != 0)
            *place_of(&larger, order->last[i].key) = order->last[i];
    }
    g_free(order->last);
    *order = larger;
}

void
lh_posting_order_clear(LhPostingOrder *order)
{
    g_free(order->last);
}

void
lh_posting_order_begin(LhPostingOrder *order)
{
    if (order->count > 0)
        memset(order->last, 0, order->room * sizeof(LhPosted));
    order->count = 0;
}

/* Notes that op @g posts a message of @key. False: the order after the one before is not fixed. */
static bool
note_message(LhPostingOrder *order, LhProof *proof, uint32_t g, uint32_t key)
{
    LhPosted *place;
    uint32_t before;

    if (2 * order->count >= order->room)
        grow_table(order);
    place = place_of(order, key);
    if (place->key == 0) {
        *place = (LhPosted){ key, g };
        order->count++;
        return true;
    }
    before = place->op;
    place->op = g;
    return before == g || lh_proof_ordered(proof, before, g);
}

bool
lh_posting_order_add(LhPostingOrder *order, LhProof *proof, LhOpRange ops)
{
    for (uint32_t g = ops.first; g < ops.end; g++) {
        const LhOp *op = &proof->ops[g];

        for (uint32_t i = 0; op->kind == LH_OP_EXCHANGE && i < op->exchange.parts_count; i++) {
            const LhPart *part = &proof->parts[op->exchange.parts_first + i];

            if (!note_message(order, proof, g, key_of_message(op, part)))
                return false;
        }
    }
    return true;
}
