/*
 * On a CPU; what it does says the row, kernels/product.c. The fast version takes a few rows of x at
 * a time, so that every row of w is converted and read once for all of them.
 */
#include "kernels/cpu/cpu.h"
#include "kernels/cpu/kernels.h"
#include "kernels/cpu/rows.h"

#include <stdbool.h>

#define ROWS 8U

enum {
    X,
    W,
    Y,
    OPERANDS,
};

/* The @length elements of row @row of an operand that has @rows of them over all parts. */
static void *
row_at(const LhCall *call, unsigned operand, uint64_t rows, uint64_t length, uint64_t row)
{
    const LhView *view = &call->operands[operand];
    const uint64_t part_rows = rows / view->parts;

    return view->data + row / part_rows * view->part_bytes +
           row % part_rows * length * lh_storage_bytes(view->storage);
}

static bool
is_cut_by_rows(const LhCall *call)
{
    const uint64_t rows[OPERANDS] = {
        [X] = call->args->product.m, [W] = call->args->product.k, [Y] = call->args->product.m
    };

    for (unsigned i = 0; i < OPERANDS; i++) {
        if (call->operands[i].parts == 0 || rows[i] % call->operands[i].parts != 0)
            return false;
    }
    return true;
}

static enum lh_status
reference(const LhCall *call)
{
    const uint64_t m = call->args->product.m, n = call->args->product.n, k = call->args->product.k;

    if (!is_cut_by_rows(call))
        return LH_STATUS_UNSUPPORTED;
    for (uint64_t i = 0; i < m; i++) {
        const void *x = row_at(call, X, m, k, i);
        void *y = row_at(call, Y, m, n, i);

        for (uint64_t j = 0; j < n; j++) {
            double sum = 0;

            for (uint64_t l = 0; l < k; l++)
                sum += lh_element_get(x, call->operands[X].storage, l) *
                       lh_element_get(row_at(call, W, k, n, l), call->operands[W].storage, j);
            lh_element_put(y, call->operands[Y].storage, j, sum);
        }
    }
    return LH_STATUS_OK;
}

static uint64_t
scratch_bytes(const LhKernelArgs *a)
{
    return (ROWS * a->product.k + (ROWS + 1) * a->product.n) * sizeof(float);
}

/* Rows [first, first + count) of y. */
static void
multiply_rows(const LhCall *call, uint64_t first, uint64_t count)
{
    const uint64_t m = call->args->product.m, n = call->args->product.n, k = call->args->product.k;
    float *x = call->scratch, *y = x + ROWS * k, *w = y + ROWS * n;

    for (uint64_t i = 0; i < count; i++)
        lh_cpu()->to_fp32(x + i * k, row_at(call, X, m, k, first + i), call->operands[X].storage,
                          k);
    for (uint64_t i = 0; i < count * n; i++)
        y[i] = 0;
    for (uint64_t l = 0; l < k; l++) {
        lh_cpu()->to_fp32(w, row_at(call, W, k, n, l), call->operands[W].storage, n);
        for (uint64_t i = 0; i < count; i++) {
            const float factor = x[i * k + l];

            for (uint64_t j = 0; j < n; j++)
                y[i * n + j] += factor * w[j];
        }
    }
    for (uint64_t i = 0; i < count; i++)
        lh_cpu()->from_fp32(row_at(call, Y, m, n, first + i), call->operands[Y].storage, y + i * n,
                            n);
}

static enum lh_status
fast(const LhCall *call)
{
    const uint64_t m = call->args->product.m;

    if (!is_cut_by_rows(call))
        return LH_STATUS_UNSUPPORTED;
    for (uint64_t first = 0; first < m; first += ROWS)
        multiply_rows(call, first, m - first < ROWS ? m - first : ROWS);
    return LH_STATUS_OK;
}

const LhCpuKernel lh_cpu_kernel_product = {
    .reference = reference,
    .fast = fast,
    .scratch_bytes = scratch_bytes,
};
