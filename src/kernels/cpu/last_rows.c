/* SPDX-License-Identifier: Apache-2.0 */
/* CPU version of kernels/last_rows.c. */
#include "kernels/cpu/cpu.h"
#include "kernels/cpu/kernels.h"

#define BLOCK 512U

static enum lh_status
last_rows(const LhCall *call)
{
    const LhKernelArgs *a = call->args;
    LhMatrix x, y;
    double numbers[BLOCK];

    /* Several parts would cut every sequence. */
    if (call->operands[0].parts != 1 || a->rows.count == 0 ||
        !lh_matrix_flat(&x, call, 0, a->rows.rows * a->rows.count, a->rows.width) ||
        !lh_matrix_flat(&y, call, 1, a->rows.rows, a->rows.width))
        return LH_STATUS_UNSUPPORTED;
    for (uint64_t row = 0; row < a->rows.rows; row++) {
        for (uint64_t first = 0; first < a->rows.width; first += BLOCK) {
            const uint64_t left = a->rows.width - first, count = left < BLOCK ? left : BLOCK;

            lh_matrix_load64(&x, (row + 1) * a->rows.count - 1, first, count, numbers);
            lh_matrix_store64(&y, row, first, count, numbers);
        }
    }
    return LH_STATUS_OK;
}

const LhCpuKernel lh_cpu_kernel_last_rows = { .reference = last_rows, .fast = last_rows };
