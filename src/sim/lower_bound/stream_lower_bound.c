/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/lower_bound/stream_lower_bound.h"

#define NONE ((LhTime)-1)

void
lh_stream_bound_init(LhStreamBound *chains)
{
    *chains = (LhStreamBound){ .to = g_array_new(FALSE, FALSE, sizeof(LhTime)) };
    for (int i = 1; i < LH_STREAMS_MAX; i++)
        chains->stream_ps[i] = NONE;
}

void
lh_stream_bound_clear(LhStreamBound *chains)
{
    g_array_unref(chains->to);
}

/* Starts a new chain if @op is behind a cut: everything before it on the first stream has ended. */
static void
cut(LhStreamBound *chains, const LhOp *op)
{
    if (op->layer == chains->layer && op->phase == chains->phase &&
        op->micro_batch == chains->micro_batch && op->module == chains->module)
        return;
    chains->layer = op->layer;
    chains->phase = op->phase;
    chains->micro_batch = op->micro_batch;
    chains->module = op->module;
    chains->from = op->id;
    g_array_set_size(chains->to, 0);
    chains->stream_ps[0] = 0;
    for (int i = 1; i < LH_STREAMS_MAX; i++)
        chains->stream_ps[i] = NONE;
}

static LhTime
chain_to(const LhStreamBound *chains, uint32_t op)
{
    return op < chains->from || op - chains->from >= chains->to->len
               ? NONE
               : g_array_index(chains->to, LhTime, op - chains->from);
}

/* Ops on no stream, and ops of other streams that are not awaited, are on no chain. */
static void
note_end(LhStreamBound *chains, uint32_t op, LhTime end_ps)
{
    const LhTime none = NONE;

    while (chains->to->len < op - chains->from)
        g_array_append_val(chains->to, none);
    g_array_append_val(chains->to, end_ps);
}

LhTime
lh_stream_bound_add(LhStreamBound *chains, const LhOp *op, LhTime takes_ps, bool awaited)
{
    LhTime *stream_ps = &chains->stream_ps[op->stream], end_ps, before_ps;

    if (op->stream == 0)
        cut(chains, op);
    else if (!awaited)
        return 0;
    before_ps = end_ps = *stream_ps;
    for (uint32_t i = 0; i < op->after_count; i++)
        end_ps = MAX(end_ps, chain_to(chains, op->after[i]));
    if (end_ps == NONE)
        return 0;
    end_ps += takes_ps;
    note_end(chains, op->id, end_ps);
    *stream_ps = end_ps;
    return op->stream == 0 ? end_ps - before_ps : 0;
}
