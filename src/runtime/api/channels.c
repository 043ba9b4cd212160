/* SPDX-License-Identifier: Apache-2.0 */
/* Channels are numbered in order of first use, by rank and then by op. */
#include "runtime/api/channels.h"

#include "program/cursor.h"

struct _LhChannels {
    GHashTable *numbers; /* LhCommunicatorKey *, owned -> number + 1 */
};

/* The key of an op's channel. An exchange's key is its communicator number with an empty group,
 * which no collective has. */
static LhCommunicatorKey
channel_key(const LhOp *op)
{
    if (op->kind == LH_OP_COLLECTIVE)
        return lh_op_communicator(op);
    return (LhCommunicatorKey){ .number = op->communicator };
}

static void
add(LhChannels *channels, const LhOp *op)
{
    const LhCommunicatorKey key = channel_key(op);

    if (!g_hash_table_contains(channels->numbers, &key))
        g_hash_table_insert(channels->numbers, g_memdup2(&key, sizeof(key)),
                            GUINT_TO_POINTER(g_hash_table_size(channels->numbers) + 1));
}

LhChannels *
lh_channels_new(const LhProgram *program)
{
    LhChannels *channels = g_new0(LhChannels, 1);
    LhOpBuffer buffer = { 0 };

    channels->numbers =
        g_hash_table_new_full(lh_communicator_key_hash, lh_communicator_key_equal, g_free, NULL);
    for (uint32_t rank = 0; rank < lh_program_ranks(program); rank++) {
        LhCursor cursor;

        lh_cursor_init(&cursor, program, rank);
        while (lh_cursor_step(&cursor, &buffer)) {
            for (uint32_t i = 0; i < buffer.ops_count; i++) {
                if (buffer.ops[i].kind == LH_OP_EXCHANGE || buffer.ops[i].kind == LH_OP_COLLECTIVE)
                    add(channels, &buffer.ops[i]);
            }
        }
    }
    lh_op_buffer_clear(&buffer);
    return channels;
}

void
lh_channels_free(LhChannels *channels)
{
    if (channels == NULL)
        return;
    g_hash_table_unref(channels->numbers);
    g_free(channels);
}

uint32_t
lh_channels_count(const LhChannels *channels)
{
    return g_hash_table_size(channels->numbers);
}

uint32_t
lh_channel_of(const LhChannels *channels, const LhOp *op)
{
    const LhCommunicatorKey key = channel_key(op);
    const guint number = GPOINTER_TO_UINT(g_hash_table_lookup(channels->numbers, &key));

    g_assert(number > 0);
    return number - 1;
}
