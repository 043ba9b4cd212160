/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An op is followed by the next op of its stream, the ops that name it in `after`, and everything
 * issued after the next sync.
 */
#include "sim/remaining_path.h"

typedef struct {
    LhTime takes_ps;
    uint32_t befores, befores_count; /* in LhRemainingPath.befores: the ops that it waits for */
    bool sync;
} ChainLink;

struct _LhRemainingPath {
    GArray *links;   /* of ChainLink, by op */
    GArray *befores; /* of uint32_t: ops */
    uint32_t last[LH_STREAMS_MAX];
};

LhRemainingPath *
lh_remaining_path_new(void)
{
    LhRemainingPath *maker = g_new(LhRemainingPath, 1);

    maker->links = g_array_new(FALSE, FALSE, sizeof(ChainLink));
    maker->befores = g_array_new(FALSE, FALSE, sizeof(uint32_t));
    for (unsigned i = 0; i < LH_STREAMS_MAX; i++)
        maker->last[i] = LH_OP_NONE;
    return maker;
}

static void
add_before(LhRemainingPath *maker, uint32_t op)
{
    if (op != LH_OP_NONE)
        g_array_append_val(maker->befores, op);
}

void
lh_remaining_path_add(LhRemainingPath *maker, const LhOp *op, LhTime takes_ps)
{
    ChainLink link = { .takes_ps = takes_ps,
                       .befores = maker->befores->len,
                       .sync = op->kind == LH_OP_SYNC };

    g_assert(op->id == maker->links->len);
    for (unsigned i = 0; i < LH_STREAMS_MAX && link.sync; i++)
        add_before(maker, maker->last[i]);
    if (lh_op_on_stream(op)) {
        for (uint32_t i = 0; i < op->after_count; i++)
            add_before(maker, op->after[i]);
        add_before(maker, maker->last[op->stream]);
        maker->last[op->stream] = op->id;
    }
    link.befores_count = maker->befores->len - link.befores;
    g_array_append_val(maker->links, link);
}

GArray *
lh_remaining_path_end(LhRemainingPath *maker)
{
    const guint ops = maker->links->len;
    GArray *tails = g_array_sized_new(FALSE, TRUE, sizeof(LhTime), ops);
    LhTime longest_ps = 0; /* of the ops so far, each with its tail */

    g_array_set_size(tails, ops);
    for (guint i = ops; i-- > 0;) {
        const ChainLink *link = &g_array_index(maker->links, ChainLink, i);
        LhTime *tail_ps = &g_array_index(tails, LhTime, i), with_ps;

        if (link->sync)
            *tail_ps = longest_ps;
        with_ps = *tail_ps + link->takes_ps;
        longest_ps = MAX(longest_ps, with_ps);
        for (uint32_t k = 0; k < link->befores_count; k++) {
            LhTime *before_ps = &g_array_index(
                tails, LhTime, g_array_index(maker->befores, uint32_t, link->befores + k));

            *before_ps = MAX(*before_ps, with_ps);
        }
    }
    g_array_unref(maker->links);
    g_array_unref(maker->befores);
    g_free(maker);
    return tails;
}
