/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/state_hash.h"

#include "sim/cost/op_hash.h"

uint64_t
lh_state_hash_rank(uint64_t hash, const LhEngine *e, const LhSimRank *rank, LhTime since_ps)
{
    const LhIdleAccounting *a = &rank->account;

    hash = lh_mix(hash, rank->nodes.issued - rank->nodes.first);
    hash = lh_mix(hash, rank->gate == LH_NO_NODE ? 0 : 1 + rank->nodes.issued - rank->gate);
    for (uint32_t s = 0; s < e->streams_count; s++) {
        const LhQueue *queue = lh_queue(rank, s);

        hash = lh_mix(hash, queue->head == LH_NO_NODE ? 0 : rank->nodes.issued - queue->head);
    }
    hash = lh_mix(hash, (uint64_t)rank->ended << 48 | (uint64_t)rank->ctas << 16 |
                            (uint64_t)rank->computing << 8 | rank->communicating);
    hash = lh_mix_bytes(hash, &rank->speed, sizeof(rank->speed));
    for (uint32_t tier = 0; tier < LH_TIERS; tier++)
        hash = lh_mix(hash, rank->moving[tier]);
    hash = lh_mix(hash, a->why);
    if (a->why != LH_BUSY)
        hash = lh_mix(hash, (uint64_t)(e->now - a->accounted_ps));
    for (uint32_t i = a->spans_count; i-- > lh_idle_accounting_oldest(a);) {
        const LhPastSpan span = lh_idle_accounting_span(a, i);

        if (span.to_ps <= since_ps)
            break;
        hash = lh_mix(hash, span.why);
        hash = lh_mix(hash, (uint64_t)(e->now - span.to_ps));
        hash = lh_mix(hash, (uint64_t)(e->now - MAX(span.from_ps, since_ps)));
    }
    return hash;
}

/* Hashes an op that is not done: its content and how much of it is left. Messages are covered by
 * what has happened since they started. */
static uint64_t
mix_node(uint64_t hash, const LhEngine *e, const LhNode *node)
{
    hash = lh_mix(hash, node->alike);
    hash = lh_mix(hash, (uint64_t)node->state << 48 | (uint64_t)node->timed << 40 |
                            (uint64_t)node->after_count << 32 |
                            (node->kind == LH_OP_COMPUTE ? 0 : node->pending));
    hash = lh_mix(hash, (uint64_t)MAX(node->issued_ps - e->now, 0));
    if (node->kind != LH_OP_COMPUTE)
        return hash;
    hash = lh_mix_bytes(hash, &node->work_ps, sizeof(node->work_ps));
    if (node->state == LH_NODE_RUNNING) {
        hash = lh_mix(hash, (uint64_t)(e->now - node->updated_ps));
        hash = lh_mix_bytes(hash, &node->rate, sizeof(node->rate));
    }
    return hash;
}

uint64_t
lh_state_hash(const LhEngine *e)
{
    uint64_t hash = 0;

    for (uint32_t r = 0; r < e->ranks_count; r++) {
        const LhNodes *nodes = &e->ranks[r].nodes;
        const LhExposed *exposed = lh_engine_exposed(e, &e->ranks[r]);

        for (uint32_t id = nodes->first; lh_engine_plays(e, r) && id < nodes->issued; id++) {
            const LhNode *node = lh_node(nodes, id);

            hash = node->state == LH_NODE_DONE ? lh_mix(hash, 0) : mix_node(hash, e, node);
        }
        if (exposed != NULL)
            hash = lh_exposed_mix(hash, exposed, nodes->issued, e->now);
    }
    return hash;
}
