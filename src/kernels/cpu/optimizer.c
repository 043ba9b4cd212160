/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CPU versions of kernels/optimizer.c, in fp64, by blocks of the shard.
 */
#include "kernels/cpu/cpu.h"
#include "kernels/cpu/kernels.h"

#include <math.h>

#define BLOCK 512U

enum { GRADIENT, NORM, CLOCK };

static uint64_t
block(uint64_t count, uint64_t first)
{
    return count - first < BLOCK ? count - first : BLOCK;
}

static enum lh_status
grad_norm(const LhCall *call)
{
    const uint64_t count = call->args->optimizer.count;
    LhMatrix gradient, norm;
    double g[BLOCK], sum;

    if (!lh_matrix_flat(&gradient, call, GRADIENT, 1, count) ||
        !lh_matrix_flat(&norm, call, NORM, 1, 1))
        return LH_STATUS_UNSUPPORTED;
    sum = call->args->first ? 0 : lh_matrix_get(&norm, 0, 0);
    for (uint64_t first = 0; first < count; first += BLOCK) {
        lh_matrix_load64(&gradient, 0, first, block(count, first), g);
        for (uint64_t i = 0; i < block(count, first); i++)
            sum += g[i] * g[i];
    }
    lh_matrix_put(&norm, 0, 0, sum);
    return LH_STATUS_OK;
}

/* Operands of a step; master is the weights themselves if they are fp32. */
typedef struct {
    const LhKernelArgs *a;
    LhMatrix gradient, norm, clock, master, first, second, rounded;
    double scale;                               /* of the gradient */
    double first_correction, second_correction; /* of the moments' bias */
} Step;

/* Finds the first or the second moments, which each part stores one after the other. */
static bool
find_moments(const LhCall *call, unsigned operand, unsigned index, LhMatrix *moments)
{
    const uint64_t count = call->args->optimizer.count;

    if (!lh_matrix_flat(moments, call, operand, 2, count) ||
        count % call->operands[operand].parts != 0)
        return false;
    moments->part_elements = count / call->operands[operand].parts;
    moments->data += index * moments->part_elements * lh_storage_bytes(moments->storage);
    return true;
}

static bool
prepare(const LhCall *call, unsigned master, unsigned moments, unsigned rounded, Step *s)
{
    const uint64_t count = call->args->optimizer.count;

    s->a = call->args;
    return lh_matrix_flat(&s->gradient, call, GRADIENT, 1, count) &&
           lh_matrix_flat(&s->norm, call, NORM, 1, 1) &&
           lh_matrix_flat(&s->clock, call, CLOCK, 1, 1) &&
           lh_matrix_flat(&s->master, call, master, 1, count) &&
           find_moments(call, moments, 0, &s->first) &&
           find_moments(call, moments, 1, &s->second) &&
           lh_matrix_flat(&s->rounded, call, rounded, 1, count);
}

/* Increments the clock and computes the factors that depend on it and on the norm. */
static void
begin(Step *s)
{
    const double norm = sqrt(lh_matrix_get(&s->norm, 0, 0)), clip = s->a->optimizer.clip;
    const double clock = (s->a->first ? 0 : lh_matrix_get(&s->clock, 0, 0)) + 1;

    lh_matrix_put(&s->clock, 0, 0, clock);
    s->scale = clip > 0 && norm > clip ? clip / norm : 1;
    s->first_correction = 1 - pow(s->a->optimizer.beta1, clock);
    s->second_correction = 1 - pow(s->a->optimizer.beta2, clock);
}

/* Updates first moment, second moment and weight of one parameter from its gradient. */
static void
move(const Step *s, double g, double *m, double *v, double *w)
{
    const double beta1 = s->a->optimizer.beta1, beta2 = s->a->optimizer.beta2;

    g *= s->scale;
    *m = beta1 * *m + (1 - beta1) * g;
    *v = beta2 * *v + (1 - beta2) * g * g;
    *w -= s->a->optimizer.learning_rate *
          (*m / s->first_correction / (sqrt(*v / s->second_correction) + s->a->optimizer.epsilon) +
           s->a->optimizer.weight_decay * *w);
}

static void
move_block(const Step *s, uint64_t first, uint64_t count)
{
    double g[BLOCK], m[BLOCK], v[BLOCK], w[BLOCK];

    lh_matrix_load64(&s->gradient, 0, first, count, g);
    lh_matrix_load64(&s->first, 0, first, count, m);
    lh_matrix_load64(&s->second, 0, first, count, v);
    lh_matrix_load64(&s->master, 0, first, count, w);
    for (uint64_t i = 0; s->a->first && i < count; i++)
        m[i] = v[i] = 0;
    for (uint64_t i = 0; i < count; i++)
        move(s, g[i], &m[i], &v[i], &w[i]);
    lh_matrix_store64(&s->first, 0, first, count, m);
    lh_matrix_store64(&s->second, 0, first, count, v);
    lh_matrix_store64(&s->master, 0, first, count, w);
    if (s->rounded.data != s->master.data)
        lh_matrix_store64(&s->rounded, 0, first, count, w);
}

static enum lh_status
run(const LhCall *call, unsigned master, unsigned moments, unsigned rounded)
{
    Step s;

    if (!prepare(call, master, moments, rounded, &s))
        return LH_STATUS_UNSUPPORTED;
    begin(&s);
    for (uint64_t first = 0; first < s.a->optimizer.count; first += BLOCK)
        move_block(&s, first, block(s.a->optimizer.count, first));
    return LH_STATUS_OK;
}

static enum lh_status
adam(const LhCall *call)
{
    return run(call, CLOCK + 1, CLOCK + 2, CLOCK + 3);
}

static enum lh_status
adam_fp32(const LhCall *call)
{
    return run(call, CLOCK + 2, CLOCK + 1, CLOCK + 2);
}

const LhCpuKernel lh_cpu_kernel_grad_norm = { .reference = grad_norm, .fast = grad_norm };
const LhCpuKernel lh_cpu_kernel_adam = { .reference = adam, .fast = adam };
const LhCpuKernel lh_cpu_kernel_adam_fp32 = { .reference = adam_fp32, .fast = adam_fp32 };
