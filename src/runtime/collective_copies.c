/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/collective_copies.h"

/* The partner of this member in step @step (from 1 on) of an all-to-all: rank XOR step if the group
 * size is a power of two, else the member @step places further (send) or back (receive). */
static uint32_t
sends_to(const LhCollectiveRun *c, uint32_t step)
{
    const bool paired = (c->call.members & (c->call.members - 1)) == 0;

    return paired ? c->call.position ^ step : lh_collective_further(c, step);
}

static uint32_t
receives_from(const LhCollectiveRun *c, uint32_t step)
{
    const bool paired = (c->call.members & (c->call.members - 1)) == 0;

    return paired ? c->call.position ^ step : lh_collective_before(c, step);
}

/* Copies this member's own block; first copies the whole send region if the receive region may
 * overlap it. */
static bool
copy_own(LhRunTensor *t)
{
    const LhCollectiveCall *call = &t->c->call;
    const LhByteRange own =
        lh_bound_range(t->from, lh_collective_sends(call, t->index, call->position));
    const LhByteRange place =
        lh_bound_range(t->to, lh_collective_receives(call, t->index, call->position));

    if (lh_run_tensor_are_apart(t))
        return lh_run_tensor_lay(t, place, own);
    t->own = lh_run_tensor_copy(t, (LhByteRange){ 0, lh_bound_bytes(t->from) });
    return t->own != NULL && lh_run_tensor_keep(t, place, t->own + own.from);
}

static void
send_to(const LhRunTensor *t, uint32_t member)
{
    const LhByteRange sent =
        lh_bound_range(t->from, lh_collective_sends(&t->c->call, t->index, member));

    if (t->own == NULL)
        lh_run_tensor_move(t, true, member, t->from, sent);
    else
        lh_run_tensor_move_memory(t, true, member, t->own + sent.from, sent.count);
}

static void
receive_from(const LhRunTensor *t, uint32_t member)
{
    lh_run_tensor_move(
        t, false, member, t->to,
        lh_bound_range(t->to, lh_collective_receives(&t->c->call, t->index, member)));
}

bool
lh_make_copies(LhRunTensor *t)
{
    const LhCollectiveRun *c = t->c;

    if (!copy_own(t))
        return false;
    for (uint32_t k = 0; k < c->call.members; k++) {
        if (k == c->call.position)
            continue;
        send_to(t, k);
        receive_from(t, k);
    }
    return true;
}

bool
lh_make_pair(LhRunTensor *t)
{
    const LhCollectiveRun *c = t->c;

    if (c->step == 0 && !copy_own(t))
        return false;
    send_to(t, sends_to(c, c->step + 1));
    receive_from(t, receives_from(c, c->step + 1));
    return true;
}

bool
lh_pass_block(LhRunTensor *t)
{
    const LhCollectiveRun *c = t->c;

    lh_run_tensor_move(t, true, lh_collective_further(c, 1), t->to,
                       lh_run_tensor_block(t, lh_collective_before(c, c->step)));
    lh_run_tensor_move(t, false, lh_collective_before(c, 1), t->to,
                       lh_run_tensor_block(t, lh_collective_before(c, c->step + 1)));
    return true;
}

bool
lh_gather_in_ring(LhRunTensor *t)
{
    return (t->c->step > 0 || copy_own(t)) && lh_pass_block(t);
}

/* ---- broadcast: a chain in the order of the group ---- */

bool
lh_make_from_before(LhRunTensor *t)
{
    const LhByteRange all = { 0, lh_bound_bytes(t->to) };
    unsigned char *own;

    if (t->c->call.position > 0) {
        lh_run_tensor_move(t, false, t->c->call.position - 1, t->to, all);
        return true;
    }
    if (lh_run_tensor_are_apart(t))
        return lh_run_tensor_lay(t, all, all);
    own = lh_run_tensor_copy(t, all);
    return own != NULL && lh_run_tensor_keep(t, all, own);
}

bool
lh_make_to_next(LhRunTensor *t)
{
    if (t->c->call.position + 1 < t->c->call.members)
        lh_run_tensor_move(t, true, t->c->call.position + 1, t->to,
                           (LhByteRange){ 0, lh_bound_bytes(t->to) });
    return true;
}
