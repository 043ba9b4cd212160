/* SPDX-License-Identifier: Apache-2.0 */
#include "program/op_names.h"

const char *const lh_half_suffixes[] = {
    [LH_HALF_BOTH] = "",
    [LH_HALF_K] = ":k",
    [LH_HALF_V] = ":v",
    NULL,
};

const char *
lh_op_name(const LhOp *op)
{
    if (op->kind == LH_OP_COMPUTE && (uint32_t)op->compute.kernel < (uint32_t)LH_KERNELS_COUNT)
        return lh_kernels[op->compute.kernel]->name;
    if (op->kind == LH_OP_COLLECTIVE && (uint32_t)op->collective.kind < (uint32_t)LH_COLL_KINDS)
        return lh_collective_names[op->collective.kind];
    return op->kind < LH_OP_KINDS ? lh_op_kind_names[op->kind] : "op";
}

char *
lh_op_text(const LhProgram *program, const LhOp *op)
{
    if (!lh_op_on_stream(op) || op->stream >= program->streams_count)
        return g_strdup_printf("op %u (%s)", op->id, lh_op_name(op));
    return g_strdup_printf("op %u (%s, stream %s)", op->id, lh_op_name(op),
                           program->streams[op->stream].name);
}

char *
lh_cell_text(const LhProgram *program, uint32_t slot, uint32_t part)
{
    const LhSlot *s = &program->slots[slot];

    if (s->parts == 1)
        return g_strdup(s->name);
    return g_strdup_printf("%s[%u]", s->name, part);
}

char *
lh_region_text(const LhProgram *program, const LhRegion *region)
{
    const LhSlot *slot = &program->slots[region->slot];
    const char *half = lh_half_suffixes[region->half];

    if (region->part == 0 && region->count == slot->parts)
        return g_strconcat(slot->name, half, NULL);
    if (region->count == 1)
        return g_strdup_printf("%s[%u]%s", slot->name, region->part, half);
    return g_strdup_printf("%s[%u..%u]%s", slot->name, region->part,
                           region->part + region->count - 1, half);
}
