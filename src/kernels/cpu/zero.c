/* On a CPU; what it does says the row, kernels/zero.c. */
#include "kernels/cpu/elementwise.h"
#include "kernels/cpu/kernels.h"
#include "kernels/sizes.h"

#include <math.h>

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

const LhCpuKernel lh_cpu_kernel_zero = {
    .reference = run,
    .fast = run,
};
