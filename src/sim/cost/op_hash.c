/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/cost/op_hash.h"

static uint64_t
mix_group(uint64_t hash, const LhGroup *g)
{
    hash = lh_mix(hash, (uint64_t)g->base << 32 | g->count);
    hash = lh_mix(hash, (uint64_t)g->stride << 32 | g->outer_count);
    return lh_mix(hash, g->outer_stride);
}

/* Mixes everything of the region and its slot that a time may depend on. */
static uint64_t
mix_region(uint64_t hash, const LhProgram *program, LhRegion region)
{
    const LhSlot *slot = &program->slots[region.slot];

    hash = lh_mix(hash, lh_region_bytes(program, region));
    return lh_mix(hash, (uint64_t)region.count << 32 | slot->parts) ^
           ((uint64_t)slot->on_host << 8 | (uint64_t)slot->dtype);
}

static uint64_t
mix_compute(uint64_t hash, const LhProgram *program, const LhOp *op)
{
    hash = lh_mix(hash, op->compute.kernel);
    hash = lh_kernel_args_mix(hash, lh_kernels[op->compute.kernel]->args, &op->compute.args);
    for (uint32_t i = 0; i < op->compute.regions_count; i++)
        hash = mix_region(hash, program, op->compute.regions[i]);
    return hash;
}

static uint64_t
mix_exchange(uint64_t hash, const LhOp *op, const LhPart *parts)
{
    for (uint32_t i = 0; i < op->exchange.parts_count; i++) {
        const LhPart *part = &parts[op->exchange.parts_first + i];

        hash = lh_mix(hash, (uint64_t)part->peer << 1 | part->send);
        hash = lh_mix(hash, part->wire_bytes);
    }
    return lh_mix(hash, op->exchange.parts_count);
}

static uint64_t
mix_collective(uint64_t hash, const LhProgram *program, const LhOp *op, const uint32_t *counts)
{
    const uint64_t members = lh_group_size(&op->collective.group);

    hash = mix_group(hash, &op->collective.group);
    hash = lh_mix(hash, (uint64_t)op->collective.kind << 32 | op->collective.tensors_count);
    hash = lh_mix(hash, op->collective.wire_bytes);
    for (uint32_t i = 0; i < op->collective.tensors_count; i++) {
        hash = mix_region(hash, program, op->collective.send[i]);
        hash = mix_region(hash, program, op->collective.receive[i]);
    }
    if (op->collective.uneven)
        hash = lh_mix_bytes(hash, &counts[op->collective.counts_first],
                            2 * members * op->collective.tensors_count * sizeof(*counts));
    return hash;
}

static uint64_t
mix_memory(uint64_t hash, const LhProgram *program, const LhOp *op)
{
    const LhSlot *slot = &program->slots[op->memory.region.slot];

    hash = lh_mix(hash, (uint64_t)slot->on_host << 63 | (uint64_t)slot->category << 32 |
                            (uint64_t)slot->kind);
    return lh_mix(hash, lh_region_bytes(program, op->memory.region));
}

uint64_t
lh_op_hash(const LhProgram *program, const LhOp *op, const LhOpBuffer *buffer, bool first)
{
    uint64_t hash = (uint64_t)first << 40 | (uint64_t)op->kind << 32 | (uint64_t)op->stream << 24 |
                    (uint64_t)op->phase << 16 | (uint64_t)op->communicator << 8 |
                    (op->module & 0xFFU) | (uint64_t)(op->module >> 8) << 48;

    for (uint32_t i = 0; i < op->after_count; i++)
        hash = lh_mix(hash, op->id - op->after[i]);
    switch (op->kind) {
    case LH_OP_COMPUTE:
        return mix_compute(hash, program, op);
    case LH_OP_EXCHANGE:
        return mix_exchange(hash, op, buffer->parts);
    case LH_OP_COLLECTIVE:
        return mix_collective(hash, program, op, buffer->counts);
    case LH_OP_ALLOC:
    case LH_OP_FREE:
        return mix_memory(hash, program, op);
    default:
        return lh_mix(hash, 0);
    }
}
