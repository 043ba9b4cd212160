/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Weights and references of linear attention's products with the state, in fp64, directly from the
 * formulas.
 */
#include "kernels/cpu/linear_run.h"

#include "kernels/cpu/attention_run.h"

#include <math.h>

double
lh_decay_power(const LhKernelArgs *args, uint64_t exponent)
{
    if (args->decay <= 0 || args->decay >= 1)
        return 1;
    return exp((double)exponent * log(args->decay));
}

void
lh_decay_queries(const LhKernelArgs *args, double *weights, uint64_t rows)
{
    for (uint64_t i = 0; i < rows; i++)
        weights[i] = lh_decay_power(args, i + 1);
}

void
lh_decay_keys(const LhKernelArgs *args, double *weights, uint64_t rows)
{
    for (uint64_t i = 0; i < rows; i++)
        weights[i] = lh_decay_power(args, rows - 1 - i);
}

const float *
lh_decay_table(const LhKernelArgs *args, float *table)
{
    if (args->decay <= 0 || args->decay >= 1)
        return NULL;
    for (unsigned i = 0; i < LH_DECAY_BEFORE; i++)
        table[i] = 0;
    for (uint64_t i = 0; i < args->nq; i++)
        table[LH_DECAY_BEFORE + i] = (float)lh_decay_power(args, i);
    return table;
}

/* Room for a tile of 64 rows (in and out), the state as panels, one row, and its sum. */
uint64_t
lh_state_scratch(const LhKernelArgs *args)
{
    const uint64_t d = ((uint64_t)args->head_dim + 31) / 32 * 32;

    return 4 * (d * (2 * d + 2 * 64 + 2) + 16 * 16);
}

/* Rounds up to whole cache lines, so that what follows is aligned. */
uint64_t
lh_weights_scratch(uint64_t rows)
{
    return (rows + LH_DECAY_BEFORE + 7) / 8 * 8 * sizeof(double);
}

static double
state_element(const LhStateApply *s, uint64_t matrix, uint32_t from, uint32_t to)
{
    const uint64_t d = s->args->head_dim;
    const uint64_t row = s->transpose ? to : from, column = s->transpose ? from : to;

    return (double)s->state[(matrix * d + row) * d + column];
}

static void
apply_row(const LhStateApply *s, uint64_t b, uint64_t i, uint32_t out_head)
{
    const uint32_t heads = s->args->heads, share = heads / s->out.heads, d = s->args->head_dim;
    void *out = lh_rows_at(&s->out, b, i, out_head);

    for (uint32_t to = 0; to < d; to++) {
        double sum = s->load ? lh_element_get(out, s->out.storage, to) : 0;

        for (uint32_t head = out_head * share; head < (out_head + 1) * share; head++) {
            const void *in = lh_rows_at(&s->in, b, i, head / (heads / s->in.heads));

            for (uint32_t from = 0; from < d; from++)
                sum += s->weights[i] * lh_element_get(in, s->in.storage, from) *
                       state_element(s, b * heads + head, from, to);
        }
        lh_element_put(out, s->out.storage, to, sum);
    }
}

void
lh_state_apply_reference(const LhStateApply *s)
{
    for (uint64_t b = 0; b < s->args->batch; b++) {
        for (uint64_t i = 0; i < s->rows; i++) {
            for (uint32_t head = 0; head < s->out.heads; head++)
                apply_row(s, b, i, head);
        }
    }
}

static void
sum_matrix(const LhStateSum *s, uint64_t b, uint32_t head)
{
    const uint32_t d = s->args->head_dim, heads = s->args->heads;
    float *state = s->state + (b * heads + head) * d * d;

    for (uint64_t k = 0; k < (uint64_t)d * d; k++) {
        double sum = s->keep == 0 ? 0 : s->keep * (double)state[k];

        for (uint64_t i = 0; i < s->rows; i++) {
            const void *x = lh_rows_at(&s->x, b, i, head / (heads / s->x.heads));
            const void *y = lh_rows_at(&s->y, b, i, head / (heads / s->y.heads));

            sum += s->weights[i] * lh_element_get(x, s->x.storage, k / d) *
                   lh_element_get(y, s->y.storage, k % d);
        }
        state[k] = (float)sum;
    }
}

void
lh_state_sum_reference(const LhStateSum *s)
{
    for (uint64_t b = 0; b < s->args->batch; b++) {
        for (uint32_t head = 0; head < s->args->heads; head++)
            sum_matrix(s, b, head);
    }
}
