/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CPU versions of kernels/loss.c, in fp64, by blocks of a row.
 */
#include "kernels/cpu/cpu.h"
#include "kernels/cpu/kernels.h"
#include "kernels/layer.h"

#include <math.h>

#define BLOCK 512U

enum { MAXIMUM, SUM, TARGET };

/* Columns of a rank that are tokens; the last rank may have fewer. */
static uint64_t
columns_of(const LhKernelArgs *a)
{
    const uint64_t left = a->rows.vocabulary - a->rows.first;

    return a->rows.first >= a->rows.vocabulary ? 0 : left < a->rows.width ? left : a->rows.width;
}

static uint64_t
block(uint64_t columns, uint64_t first)
{
    const uint64_t left = columns - first;

    return left < BLOCK ? left : BLOCK;
}

static double
maximum_of(const LhMatrix *logits, uint64_t columns, uint64_t row)
{
    double x[BLOCK], maximum = -INFINITY;

    for (uint64_t first = 0; first < columns; first += BLOCK) {
        lh_matrix_load64(logits, row, first, block(columns, first), x);
        for (uint64_t i = 0; i < block(columns, first); i++)
            maximum = x[i] > maximum ? x[i] : maximum;
    }
    return maximum;
}

static double
sum_of(const LhMatrix *logits, uint64_t columns, uint64_t row, double maximum)
{
    double x[BLOCK], sum = 0;

    for (uint64_t first = 0; first < columns; first += BLOCK) {
        lh_matrix_load64(logits, row, first, block(columns, first), x);
        for (uint64_t i = 0; i < block(columns, first); i++)
            sum += exp(x[i] - maximum);
    }
    return sum;
}

/* Finds the column of a row's target. Returns false if this rank does not have it. */
static bool
find_target(const LhKernelArgs *a, const LhMatrix *tokens, uint64_t row, uint64_t *column)
{
    const uint64_t token = lh_matrix_token(tokens, row);

    *column = token - a->rows.first;
    return token >= a->rows.first && token < a->rows.vocabulary && *column < a->rows.width;
}

static enum lh_status
loss_stats(const LhCall *call)
{
    const LhKernelArgs *a = call->args;
    LhMatrix logits, tokens, numbers;

    if (!lh_matrix_flat(&logits, call, 0, a->rows.rows, a->rows.width) ||
        !lh_matrix_flat(&tokens, call, 1, a->rows.rows, 1) ||
        !lh_matrix_flat(&numbers, call, 2, a->rows.rows, LH_LOSS_STATS))
        return LH_STATUS_UNSUPPORTED;
    for (uint64_t row = 0; row < a->rows.rows; row++) {
        double stats[LH_LOSS_STATS];
        uint64_t column;

        stats[MAXIMUM] = maximum_of(&logits, columns_of(a), row);
        stats[SUM] = sum_of(&logits, columns_of(a), row, stats[MAXIMUM]);
        stats[TARGET] = -INFINITY;
        if (find_target(a, &tokens, row, &column))
            stats[TARGET] = lh_matrix_get(&logits, row, column);
        lh_matrix_store64(&numbers, row, 0, LH_LOSS_STATS, stats);
    }
    return LH_STATUS_OK;
}

typedef struct {
    const LhKernelArgs *a;
    LhMatrix logits, tokens, numbers, dlogits, value;
} Loss;

static bool
prepare(const LhCall *call, Loss *l)
{
    const LhKernelArgs *a = call->args;

    l->a = a;
    return a->rows.tokens > 0 && lh_loss_members(a) > 0 &&
           lh_matrix_flat(&l->logits, call, 0, a->rows.rows, a->rows.width) &&
           lh_matrix_flat(&l->tokens, call, 1, a->rows.rows, 1) &&
           lh_matrix_flat(&l->numbers, call, 2, lh_loss_members(a) * a->rows.rows, LH_LOSS_STATS) &&
           lh_matrix_flat(&l->dlogits, call, 3, a->rows.rows, a->rows.width) &&
           lh_matrix_flat(&l->value, call, 4, 1, 1);
}

/* Merges the numbers of a row from all ranks. */
static void
join_stats(const Loss *l, uint64_t row, double all[LH_LOSS_STATS])
{
    const uint64_t members = lh_loss_members(l->a), rows = l->a->rows.rows;
    double of[LH_LOSS_STATS];

    all[MAXIMUM] = all[TARGET] = -INFINITY;
    all[SUM] = 0;
    for (uint64_t i = 0; i < members; i++) {
        lh_matrix_load64(&l->numbers, i * rows + row, 0, LH_LOSS_STATS, of);
        all[MAXIMUM] = of[MAXIMUM] > all[MAXIMUM] ? of[MAXIMUM] : all[MAXIMUM];
        all[TARGET] = of[TARGET] > all[TARGET] ? of[TARGET] : all[TARGET];
    }
    for (uint64_t i = 0; i < members; i++) {
        lh_matrix_load64(&l->numbers, i * rows + row, 0, LH_LOSS_STATS, of);
        all[SUM] += of[SUM] * exp(of[MAXIMUM] - all[MAXIMUM]);
    }
}

/* @weight: factor of the row in the mean; 0 without a target. */
static void
write_gradient(const Loss *l, uint64_t row, const double stats[LH_LOSS_STATS], double weight)
{
    double x[BLOCK];
    uint64_t column;
    const bool here = find_target(l->a, &l->tokens, row, &column);
    const uint64_t columns = columns_of(l->a);

    for (uint64_t first = 0; first < l->logits.width; first += BLOCK) {
        const uint64_t count = block(l->logits.width, first);

        lh_matrix_load64(&l->logits, row, first, count, x);
        for (uint64_t i = 0; i < count; i++)
            x[i] = weight > 0 && first + i < columns
                       ? weight * exp(x[i] - stats[MAXIMUM]) / stats[SUM]
                       : 0;
        if (here && column >= first && column < first + count)
            x[column - first] -= weight;
        lh_matrix_store64(&l->dlogits, row, first, count, x);
    }
}

static enum lh_status
loss(const LhCall *call)
{
    Loss l;
    double sum = 0;

    if (!prepare(call, &l))
        return LH_STATUS_UNSUPPORTED;
    for (uint64_t row = 0; row < l.a->rows.rows; row++) {
        const bool counts = lh_matrix_token(&l.tokens, row) < l.a->rows.vocabulary;
        const double weight = counts ? 1 / (double)l.a->rows.tokens : 0;
        double stats[LH_LOSS_STATS];

        join_stats(&l, row, stats);
        write_gradient(&l, row, stats, weight);
        if (counts)
            sum += weight * (stats[MAXIMUM] + log(stats[SUM]) - stats[TARGET]);
    }
    lh_matrix_put(&l.value, 0, 0, (l.a->first ? 0 : lh_matrix_get(&l.value, 0, 0)) + sum);
    return LH_STATUS_OK;
}

const LhCpuKernel lh_cpu_kernel_loss_stats = { .reference = loss_stats, .fast = loss_stats };
const LhCpuKernel lh_cpu_kernel_loss = { .reference = loss, .fast = loss };
