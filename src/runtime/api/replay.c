/* SPDX-License-Identifier: Apache-2.0 */
/* Predicted ends of messages (replay.h). */
#include "runtime/api/replay.h"

LhReplay *
lh_replay_new(uint32_t rank)
{
    LhReplay *replay = g_new0(LhReplay, 1);

    replay->rank = rank;
    replay->ops = g_array_new(FALSE, TRUE, sizeof(LhReplayOp));
    return replay;
}

void
lh_replay_free(LhReplay *replay)
{
    if (replay == NULL)
        return;
    g_array_unref(replay->ops);
    g_free(replay);
}

LhReplayOp
lh_replay_op(const LhReplay *replay, uint32_t op)
{
    return op < replay->ops->len ? g_array_index(replay->ops, LhReplayOp, op) : (LhReplayOp){ 0 };
}

void
lh_replay_set(LhReplay *replay, uint32_t op, LhReplayOp predicted)
{
    if (op >= replay->ops->len)
        g_array_set_size(replay->ops, op + 1);
    g_array_index(replay->ops, LhReplayOp, op) = predicted;
}

LhTime
lh_replay_end(const LhReplay *replay, uint32_t op, LhTime begun_ps)
{
    const LhReplayOp predicted = lh_replay_op(replay, op);

    return MAX(begun_ps, predicted.others_ps) + predicted.took_ps;
}
