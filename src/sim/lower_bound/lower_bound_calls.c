/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/lower_bound/lower_bound_calls.h"

#include "sim/network/collectives/collective_least.h"

struct _LhLowerBoundCalls {
    LhCollectives *collectives;
    LhLinkLoads *loads;
    GHashTable *known; /* set of Call: memoised collectives */
};

/* A collective as called by one rank, and the lower bound of its time. */
typedef struct {
    uint32_t rank;
    LhCollectiveKind kind;
    LhGroup group;
    uint64_t wire_bytes;
    LhTime least_ps;
} Call;

static guint
call_hash(gconstpointer key)
{
    const Call *c = key;
    const uint64_t bits = c->wire_bytes * UINT64_C(0x9E3779B97F4A7C15);

    return (guint)(bits >> 32) ^ (c->rank * UINT32_C(0x85EBCA6B)) ^
           (c->group.count * UINT32_C(0xC2B2AE35)) ^ (c->group.stride << 8) ^ (guint)c->kind;
}

static gboolean
call_equal(gconstpointer a, gconstpointer b)
{
    const Call *x = a, *y = b;

    return x->rank == y->rank && x->kind == y->kind && x->wire_bytes == y->wire_bytes &&
           x->group.base == y->group.base && x->group.stride == y->group.stride &&
           x->group.count == y->group.count && x->group.outer_stride == y->group.outer_stride &&
           x->group.outer_count == y->group.outer_count;
}

LhLowerBoundCalls *
lh_lower_bound_calls_new(const LhSimParams *params)
{
    LhLowerBoundCalls *calls = g_new(LhLowerBoundCalls, 1);

    calls->collectives = lh_collectives_new(params->network, params->device, params->collectives,
                                            params->network_model == LH_NETWORK_FAIR, NULL);
    calls->loads = lh_link_loads_new(params->network, params->network_model);
    calls->known = g_hash_table_new_full(call_hash, call_equal, g_free, NULL);
    return calls;
}

void
lh_lower_bound_calls_free(LhLowerBoundCalls *calls)
{
    if (calls == NULL)
        return;
    lh_collectives_free(calls->collectives);
    lh_link_loads_free(calls->loads);
    g_hash_table_unref(calls->known);
    g_free(calls);
}

LhTime
lh_lower_bound_calls_exchange(LhLowerBoundCalls *calls, uint32_t rank, const LhPart *parts,
                              uint32_t parts_count)
{
    return lh_exchange_least(calls->loads, rank, parts, parts_count);
}

LhTime
lh_lower_bound_calls_collective(LhLowerBoundCalls *calls, const LhProgram *program, uint32_t rank,
                                const LhOp *op, const uint32_t *counts)
{
    const Call key = { .rank = rank,
                       .kind = op->collective.kind,
                       .group = op->collective.group,
                       .wire_bytes = op->collective.wire_bytes };
    Call *known = op->collective.uneven ? NULL : g_hash_table_lookup(calls->known, &key);
    LhTime least_ps;

    if (known != NULL)
        return known->least_ps;
    least_ps = lh_collective_least(calls->collectives, calls->loads, program, rank, op, counts);
    if (!op->collective.uneven) {
        known = g_memdup2(&key, sizeof(key));
        known->least_ps = least_ps;
        g_hash_table_add(calls->known, known);
    }
    return least_ps;
}
