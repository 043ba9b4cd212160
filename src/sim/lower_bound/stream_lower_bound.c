/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/lower_bound/stream_lower_bound.h"

#define NONE ((LhTime)-1)

/* Chains that start before op @from. */
static void
start_before(LhStreamChains *chains, uint32_t from)
{
    chains->from = from;
    g_array_set_size(chains->to, 0);
    chains->stream_ps[0] = 0;
    for (int i = 1; i < LH_STREAMS_MAX; i++)
        chains->stream_ps[i] = NONE;
}

/* Chains that start at the end of @op of the first stream, which has ended after all earlier ones
 * of the stream. */
static void
start_behind(LhStreamChains *chains, uint32_t op)
{
    const LhTime end_ps = 0;

    start_before(chains, op);
    g_array_append_val(chains->to, end_ps);
}

static LhTime
chain_to(const LhStreamChains *chains, uint32_t op)
{
    return op < chains->from || op - chains->from >= chains->to->len
               ? NONE
               : g_array_index(chains->to, LhTime, op - chains->from);
}

/* Ops on no stream, and ops of other streams that are not awaited, are on no chain. */
static void
note_end(LhStreamChains *chains, uint32_t op, LhTime end_ps)
{
    const LhTime none = NONE;

    while (chains->to->len < op - chains->from)
        g_array_append_val(chains->to, none);
    g_array_append_val(chains->to, end_ps);
}

/* Adds an op behind the start; returns the increase of its stream's longest chain. */
static LhTime
extend(LhStreamChains *chains, const LhOp *op, LhTime takes_ps)
{
    LhTime *stream_ps = &chains->stream_ps[op->stream], end_ps = *stream_ps, before_ps = end_ps;

    for (uint32_t i = 0; i < op->after_count; i++)
        end_ps = MAX(end_ps, chain_to(chains, op->after[i]));
    if (end_ps == NONE)
        return 0;
    end_ps += takes_ps;
    note_end(chains, op->id, end_ps);
    *stream_ps = end_ps;
    return end_ps - before_ps;
}

void
lh_stream_bound_init(LhStreamBound *bound)
{
    *bound = (LhStreamBound){ 0 };
    for (int i = 0; i < 2; i++) {
        bound->chains[i].to = g_array_new(FALSE, FALSE, sizeof(LhTime));
        start_before(&bound->chains[i], 0);
    }
}

void
lh_stream_bound_clear(LhStreamBound *bound)
{
    for (int i = 0; i < 2; i++)
        g_array_unref(bound->chains[i].to);
}

/* Whether there is a cut before @op, on the first stream. */
static bool
is_behind_cut(const LhStreamBound *bound, const LhOp *op)
{
    return op->layer != bound->layer || op->phase != bound->phase ||
           op->micro_batch != bound->micro_batch || op->module != bound->module;
}

static void
take_labels(LhStreamBound *bound, const LhOp *op)
{
    bound->layer = op->layer;
    bound->phase = op->phase;
    bound->micro_batch = op->micro_batch;
    bound->module = op->module;
}

LhTime
lh_stream_bound_add(LhStreamBound *bound, const LhOp *op, LhTime takes_ps, bool awaited)
{
    LhTime grown_ps;

    if (op->stream != 0) {
        if (awaited) {
            extend(&bound->chains[bound->now], op, takes_ps);
            extend(&bound->chains[!bound->now], op, takes_ps);
        }
        return 0;
    }
    if (is_behind_cut(bound, op)) {
        bound->now = !bound->now;
        take_labels(bound, op);
    }
    grown_ps = extend(&bound->chains[bound->now], op, takes_ps);
    start_behind(&bound->chains[!bound->now], op->id);
    return grown_ps;
}
