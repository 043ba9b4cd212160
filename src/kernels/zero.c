/*
 * Makes an empty accumulator.
 */
#include "kernels/elementwise.h"
#include "kernels/sizes.h"

#include <math.h>
#include <stddef.h>

static uint64_t
flops(const LhKernelArgs *a)
{
    (void)a;
    return 0;
}

static uint64_t
memory_bytes(const LhKernelArgs *a, uint32_t element_bytes)
{
    return lh_elements(a) * element_bytes;
}

/* Statistics behind the elements become those of no key: m or lse -inf, l 0. */
static void
clear_stats(unsigned char *stats, uint64_t bytes, uint64_t rows)
{
    const float nothing = -INFINITY;

    memset(stats, 0, bytes);
    for (uint64_t i = 0; i < rows && bytes > 0; i++)
        memcpy(stats + i * LH_STAT_BYTES, &nothing, LH_STAT_BYTES);
}

static enum lh_status
run(const LhCall *call)
{
    const LhView *target = &call->operands[0];
    uint64_t bytes;

    if (target->parts == 0 || (call->args->nq + call->args->nk) % target->parts != 0)
        return LH_STATUS_UNSUPPORTED;
    bytes = lh_elements(call->args) / target->parts * lh_storage_bytes(target->storage);
    for (uint32_t part = 0; part < target->parts; part++) {
        unsigned char *data = target->data + part * target->part_bytes;

        memset(data, 0, bytes);
        clear_stats(data + bytes, lh_stats_bytes(call, 0), lh_rows(call->args) / target->parts);
    }
    return LH_STATUS_OK;
}

const LhKernel lh_kernel_zero = {
    .name = "zero",
    .summary = "clears an accumulator",
    .effect = LH_EFFECT_ZERO,
    .cost = LH_COST_MEMORY,
    .operands = {
        { "target", LH_OPERAND_WRITE, LH_TENSOR_ANY, LH_ELEMENT_EITHER },
        { .access = LH_OPERAND_END },
    },
    .flops = flops,
    .memory_bytes = memory_bytes,
    .reference = run,
    .cpu = run,
};
