/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/cost/attention_loads.h"

#include <math.h>
#include <string.h>

#define LOADS_MAX 65536 /* limit of the cache */

/* Cache key: everything that a load depends on, in words without padding. */
typedef struct {
    uint64_t rows, columns, how, prologue, alone; /* of the tiling; the last two in units of 1e-9 */
    guintptr rule;
    uint64_t nq, nk, stride, heads, groups, batch, head_dim, parts, mask, l2;
    int64_t q_start, q_step, k_start, k_step;
} Shape;

static guint
shape_hash(gconstpointer shape)
{
    const uint64_t *words = shape;
    uint64_t hash = UINT64_C(1469598103934665603); /* FNV-1a over words */

    for (gsize i = 0; i < sizeof(Shape) / sizeof(*words); i++)
        hash = (hash ^ words[i]) * UINT64_C(1099511628211);
    return (guint)(hash ^ hash >> 32);
}

static gboolean
shape_equal(gconstpointer a, gconstpointer b)
{
    return memcmp(a, b, sizeof(Shape)) == 0;
}

/* Without documents only differences of positions matter. */
static Shape
shape_of(const LhAttentionRow *row, const LhKernelArgs *args, uint32_t q_parts, uint32_t k_parts)
{
    const LhTiling *t = &row->tiling;
    Shape s = { .rows = t->rows,
                .columns = t->columns,
                .how = t->of_keys * 1u + t->pack_groups * 2u + (uint64_t)t->order * 4u +
                       row->serving.split_keys * 8u + (uint64_t)row->direction * 16u +
                       t->resident * 32u,
                .prologue = (uint64_t)llround(t->prologue * 1e9),
                .alone = (uint64_t)llround(t->alone * 1e9),
                .head_dim = args->head_dim,
                .l2 = row->serving.l2_bytes,
                .nq = args->nq,
                .nk = args->nk,
                .heads = args->heads,
                .groups = args->groups,
                .batch = args->batch,
                .mask = args->mask * UINT64_C(4) + (uint64_t)(args->shift + 2) };

    if (args->mask != LH_MASK_POSITIONS)
        return s;
    s.rule = (guintptr)args->rule;
    s.stride = args->stride;
    s.parts = (uint64_t)q_parts << 32 | k_parts;
    s.q_start = args->q_at.start - (args->rule->documents_count <= 1 ? args->k_at.start : 0);
    s.k_start = args->rule->documents_count <= 1 ? 0 : args->k_at.start;
    s.q_step = args->q_at.part_step;
    s.k_step = args->k_at.part_step;
    return s;
}

void
lh_attention_parts(const LhOp *op, uint32_t *q_parts, uint32_t *k_parts)
{
    const LhOperand *operands = lh_kernels[op->compute.kernel]->operands;

    *q_parts = *k_parts = 1;
    for (uint32_t i = 0; i < op->compute.regions_count; i++) {
        if (operands[i].kind == LH_TENSOR_Q)
            *q_parts = (uint32_t)op->compute.regions[i].count;
        else if (operands[i].kind == LH_TENSOR_KV)
            *k_parts = (uint32_t)op->compute.regions[i].count;
    }
}

const LhAttentionLoad *
lh_attention_cached_load(LhCost *cost, const LhAttentionRow *row, const LhOp *op)
{
    uint32_t q_parts, k_parts;
    LhAttentionLoad *load;
    Shape shape;

    lh_attention_parts(op, &q_parts, &k_parts);
    shape = shape_of(row, &op->compute.args, q_parts, k_parts);
    if (cost->loads == NULL)
        cost->loads = g_hash_table_new_full(shape_hash, shape_equal, g_free, g_free);
    load = g_hash_table_lookup(cost->loads, &shape);
    if (load != NULL)
        return load;
    if (g_hash_table_size(cost->loads) >= LOADS_MAX)
        g_hash_table_remove_all(cost->loads);
    load = g_new(LhAttentionLoad, 1);
    *load = lh_attention_load(row, cost->device->sm_count, &op->compute.args, q_parts, k_parts,
                              cost->serving);
    g_hash_table_insert(cost->loads, g_memdup2(&shape, sizeof(shape)), load);
    return load;
}
