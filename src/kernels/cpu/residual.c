/* SPDX-License-Identifier: Apache-2.0 */
/* CPU versions of kernels/residual.c. */
#include "kernels/cpu/cpu.h"
#include "kernels/cpu/kernels.h"

#define BLOCK 512U

/*
 * Sums elements [first, first + count) of operands 0 to @last - 1 in fp32 into operand @last; with
 * @again adds to its contents.
 */
static void
add_block(const LhMatrix *operands, unsigned last, bool again, uint64_t first, uint64_t count)
{
    float sums[BLOCK], terms[BLOCK];

    lh_matrix_load(&operands[0], 0, first, count, sums);
    for (unsigned k = 1; k < last + (again ? 1 : 0); k++) {
        lh_matrix_load(&operands[k], 0, first, count, terms);
        for (uint64_t i = 0; i < count; i++)
            sums[i] += terms[i];
    }
    lh_matrix_store(&operands[last], 0, first, count, sums);
}

static enum lh_status
add(const LhCall *call, unsigned last, bool again)
{
    const uint64_t count = call->args->elements.count;
    LhMatrix operands[LH_KERNEL_OPERANDS_MAX];

    for (unsigned i = 0; i <= last; i++) {
        if (!lh_matrix_flat(&operands[i], call, i, 1, count))
            return LH_STATUS_UNSUPPORTED;
    }
    for (uint64_t first = 0; first < count; first += BLOCK)
        add_block(operands, last, again, first, count - first < BLOCK ? count - first : BLOCK);
    return LH_STATUS_OK;
}

static enum lh_status
two_into_third(const LhCall *call)
{
    return add(call, 2, false);
}

static enum lh_status
one_into_second(const LhCall *call)
{
    return add(call, 1, !call->args->first);
}

static enum lh_status
convert(const LhCall *call)
{
    return add(call, 1, false);
}

const LhCpuKernel lh_cpu_kernel_residual = { .reference = two_into_third, .fast = two_into_third };
const LhCpuKernel lh_cpu_kernel_add_hidden = { .reference = one_into_second,
                                               .fast = one_into_second };
const LhCpuKernel lh_cpu_kernel_accumulate = { .reference = one_into_second,
                                               .fast = one_into_second };
const LhCpuKernel lh_cpu_kernel_cast_hidden = { .reference = convert, .fast = convert };
