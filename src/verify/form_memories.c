/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Form of what lies in host memory: copies between device and host, each of whole parts, and
 * kernels of the optimizer whose operands are all there, which the host's CPU runs.
 */
#include "verify/verify_private.h"

static const LhSlot *
slot_of(const LhProof *proof, const LhRegion *region)
{
    return &proof->program->slots[region->slot];
}

static const char *
memory_name(bool host)
{
    return host ? "host" : "device";
}

/* Checks that a region lies in device memory, or in host memory (@host). */
static bool
check_memory(LhProof *proof, uint32_t g, const LhRegion *region, bool host)
{
    const LhSlot *slot = slot_of(proof, region);

    if (slot->on_host == host)
        return true;
    return MALFORMED(g, region->slot,
                     "takes slot %s, which is in %s memory, where it needs %s memory", slot->name,
                     memory_name(slot->on_host), memory_name(host));
}

/* Whether the CPU has the kernel. */
static bool
is_of_cpu(LhKernelId kernel)
{
    return lh_kernels[kernel]->args == LH_ARGS_OPTIMIZER || kernel == LH_KERNEL_ID_accumulate;
}

bool
lh_form_check_memories(LhProof *proof, uint32_t g)
{
    const LhOp *op = &proof->ops[g];
    const bool on_cpu = lh_op_on_cpu(proof->program, op);

    if (on_cpu && !is_of_cpu((LhKernelId)op->compute.kernel))
        return MALFORMED(g, op->compute.regions[0].slot,
                         "takes slot %s, which is in host memory, where only kernels of the "
                         "optimizer run",
                         slot_of(proof, &op->compute.regions[0])->name);
    for (uint32_t i = 0; i < op->compute.regions_count; i++) {
        const bool host = (op->compute.kernel == LH_KERNEL_ID_to_host && i == 1) ||
                          (op->compute.kernel == LH_KERNEL_ID_from_host && i == 0) || on_cpu;

        if (!check_memory(proof, g, &op->compute.regions[i], host))
            return false;
    }
    return true;
}

bool
lh_form_check_on_device(LhProof *proof, uint32_t g, const LhRegion *region)
{
    return check_memory(proof, g, region, false);
}

bool
lh_form_check_copy(LhProof *proof, uint32_t g)
{
    const LhOp *op = &proof->ops[g];
    const LhRegion *from = &op->compute.regions[0], *to = &op->compute.regions[1];
    const LhSlot *source = slot_of(proof, from), *target = slot_of(proof, to);
    const uint64_t bytes = lh_region_bytes(proof->program, *from);

    if (source->kind != target->kind || source->dtype != target->dtype ||
        source->head_dim != target->head_dim || from->count != to->count ||
        source->part_bytes != target->part_bytes)
        return MALFORMED(g, to->slot,
                         "copies %u parts of slot %s to %u of slot %s, of another form",
                         from->count, source->name, to->count, target->name);
    if (op->compute.args.copy.bytes != bytes)
        return MALFORMED(g, from->slot,
                         "copies %" G_GUINT64_FORMAT " bytes, but %u parts of slot %s have "
                         "%" G_GUINT64_FORMAT,
                         op->compute.args.copy.bytes, from->count, source->name, bytes);
    return true;
}
