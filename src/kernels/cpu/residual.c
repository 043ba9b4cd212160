/* On a CPU; what it does says the row, kernels/residual.c. */
#include "kernels/cpu/cpu.h"
#include "kernels/cpu/kernels.h"

#include <stdbool.h>

#define OPERANDS 3
#define BLOCK 512U

static bool
is_cut_evenly(const LhCall *call)
{
    const uint32_t parts = call->operands[0].parts;

    for (unsigned i = 1; i < OPERANDS; i++) {
        if (call->operands[i].parts != parts)
            return false;
    }
    return parts > 0 && call->args->elements.count % parts == 0;
}

/* Elements [first, first + count) of a part, by way of fp32. */
static void
add_block(const LhCall *call, uint32_t part, uint64_t first, uint64_t count)
{
    float sums[BLOCK], terms[BLOCK];
    unsigned char *at[OPERANDS];

    for (unsigned i = 0; i < OPERANDS; i++) {
        const LhView *view = &call->operands[i];

        at[i] = view->data + part * view->part_bytes + first * lh_storage_bytes(view->storage);
    }
    lh_cpu()->to_fp32(sums, at[0], call->operands[0].storage, count);
    lh_cpu()->to_fp32(terms, at[1], call->operands[1].storage, count);
    for (uint64_t i = 0; i < count; i++)
        sums[i] += terms[i];
    lh_cpu()->from_fp32(at[2], call->operands[2].storage, sums, count);
}

static enum lh_status
run(const LhCall *call)
{
    uint64_t count;

    if (!is_cut_evenly(call))
        return LH_STATUS_UNSUPPORTED;
    count = call->args->elements.count / call->operands[0].parts;
    for (uint32_t part = 0; part < call->operands[0].parts; part++) {
        for (uint64_t first = 0; first < count; first += BLOCK)
            add_block(call, part, first, count - first < BLOCK ? count - first : BLOCK);
    }
    return LH_STATUS_OK;
}

const LhCpuKernel lh_cpu_kernel_residual = {
    .reference = run,
    .fast = run,
};
