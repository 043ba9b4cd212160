/* SPDX-License-Identifier: Apache-2.0 */
#include "program/work.h"

#include "program/collective_semantics.h"

LhDtype
lh_op_activation(const LhProgram *program, const LhOp *op)
{
    const LhOperand *operands = lh_kernels[op->compute.kernel]->operands;

    for (uint32_t i = 0; i < op->compute.regions_count; i++) {
        const LhDtype dtype = program->slots[op->compute.regions[i].slot].dtype;

        if (dtype != LH_DTYPE_INT8 &&
            (operands[i].element == LH_ELEMENT_ACTIVATION ||
             (operands[i].element != LH_ELEMENT_FP32 && dtype != LH_DTYPE_FP32)))
            return dtype;
    }
    return program->params.attention.dtype;
}

uint64_t
lh_op_flops(const LhOp *op)
{
    const LhKernel *kernel;

    if (op->kind != LH_OP_COMPUTE)
        return 0;
    kernel = lh_kernels[op->compute.kernel];
    return lh_kernel_counts_flops(kernel) ? kernel->flops(&op->compute.args) : 0;
}

uint64_t
lh_op_dense_flops(const LhOp *op)
{
    const LhKernel *kernel;

    if (op->kind != LH_OP_COMPUTE)
        return 0;
    kernel = lh_kernels[op->compute.kernel];
    return lh_kernel_counts_dense_flops(kernel) ? kernel->flops(&op->compute.args) : 0;
}

uint64_t
lh_part_wire_bytes(const LhProgram *program, const LhPart *part)
{
    uint64_t bytes = 0;

    for (uint32_t i = 0; i < part->regions_count; i++)
        bytes += lh_region_bytes(program, part->regions[i]);
    return bytes;
}

uint64_t
lh_tensor_wire_bytes(const LhProgram *program, const LhOp *op, uint32_t tensor)
{
    const bool scatter = op->collective.kind == LH_COLL_REDUCE_SCATTER;
    const uint64_t bytes = lh_region_bytes(program, scatter ? op->collective.receive[tensor]
                                                            : op->collective.send[tensor]);

    if (op->collective.kind == LH_COLL_ALL_REDUCE)
        return bytes / lh_group_size(&op->collective.group);
    return bytes;
}

static uint64_t
messages_bytes(const LhOp *op, const LhPart *parts)
{
    uint64_t bytes = 0;

    for (uint32_t i = 0; i < op->exchange.parts_count; i++) {
        const LhPart *part = &parts[op->exchange.parts_first + i];

        bytes += part->send ? part->wire_bytes : 0;
    }
    return bytes;
}

/* All but the rank's own piece. */
static uint64_t
uneven_bytes(const LhProgram *program, const LhCollectiveCall *call)
{
    uint64_t bytes = 0;

    for (uint32_t i = 0; i < call->op->collective.tensors_count; i++) {
        const LhRegion *send = &call->op->collective.send[i];

        bytes += (send->count - lh_collective_sent_parts(call, i, call->position)) *
                 lh_region_part_bytes(program, *send);
    }
    return bytes;
}

uint64_t
lh_op_bytes_sent(const LhProgram *program, const LhOp *op, const LhPart *parts,
                 const uint32_t *counts, uint32_t rank)
{
    if (op->kind == LH_OP_EXCHANGE)
        return messages_bytes(op, parts);
    if (op->kind != LH_OP_COLLECTIVE)
        return 0;
    if (op->collective.uneven) {
        const LhCollectiveCall call = lh_collective_call(op, counts, rank);

        return uneven_bytes(program, &call);
    }
    return lh_collective_bytes_sent(op->collective.kind, &op->collective.group, rank,
                                    op->collective.wire_bytes);
}
