/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CPU versions of kernels/optimizer.c, in fp64, by blocks of the shard.
 */
#include "kernels/cpu/cpu.h"
#include "kernels/cpu/kernels.h"
#include "kernels/sizes.h"

#include <math.h>

#define BLOCK (2 * LH_MOMENT_BLOCK) /* whole blocks of 8-bit moments */

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

/* ---- 8-bit moments, as kernels/sizes.h defines them ---- */

/* A scale is rounded to fp32 before codes are computed with it. */
#define CODE_FIRST 127.0  /* largest code of a first moment */
#define CODE_SECOND 255.0 /* and of the root of a second one */

static void
read_first_codes(const int8_t *codes, float scale, uint64_t count, double *m)
{
    for (uint64_t i = 0; i < count; i++)
        m[i] = codes[i] * (double)scale;
}

static void
read_second_codes(const uint8_t *codes, float scale, uint64_t count, double *v)
{
    for (uint64_t i = 0; i < count; i++) {
        const double root = codes[i] * (double)scale;

        v[i] = root * root;
    }
}

/* The nearest code, of which there are none beyond @largest. */
static double
code_of(double value, float scale, double largest)
{
    return scale > 0 ? fmax(fmin(nearbyint(value / (double)scale), largest), -largest) : 0;
}

/* Both return the scale of the block. */
static float
write_first_codes(const double *m, uint64_t count, int8_t *codes)
{
    double largest = 0;
    float scale;

    for (uint64_t i = 0; i < count; i++)
        largest = fmax(largest, fabs(m[i]));
    scale = (float)(largest / CODE_FIRST);
    for (uint64_t i = 0; i < count; i++)
        codes[i] = (int8_t)code_of(m[i], scale, CODE_FIRST);
    return scale;
}

static float
write_second_codes(const double *v, uint64_t count, uint8_t *codes)
{
    double largest = 0;
    float scale;

    for (uint64_t i = 0; i < count; i++)
        largest = fmax(largest, v[i]);
    scale = (float)(sqrt(largest) / CODE_SECOND);
    for (uint64_t i = 0; i < count; i++)
        codes[i] = (uint8_t)code_of(sqrt(v[i]), scale, CODE_SECOND);
    return scale;
}

/* ---- steps ---- */

/* Where a kernel has its operands. */
typedef struct {
    unsigned master;  /* what is updated: an fp32 copy of the weights, or the weights themselves */
    unsigned moments; /* of the element type of the kernel's row ... */
    unsigned scales;  /* ... 0: the moments are no codes */
    unsigned rounded; /* the weights */
} Layout;

/* Operands of a step. */
typedef struct {
    const LhKernelArgs *a;
    LhMatrix gradient, norm, clock, master, first, second, rounded;
    float *scales; /* of the blocks of first moments, then of second ones; NULL: no codes */
    double scale;  /* of the gradient */
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

/* 8-bit moments are in one part. */
static bool
find_scales(const LhCall *call, const Layout *layout, Step *s)
{
    const uint64_t bytes = lh_moment_scales(call->args->optimizer.count) * sizeof(float);
    const LhView *view = &call->operands[layout->scales];

    s->scales = NULL;
    if (layout->scales == 0)
        return call->operands[layout->moments].storage != LH_STORAGE_INT8;
    s->scales = (float *)(void *)view->data;
    return call->operands[layout->moments].storage == LH_STORAGE_INT8 &&
           call->operands[layout->moments].parts == 1 && view->parts == 1 &&
           (view->held_bytes != 0 ? view->held_bytes : view->part_bytes) >= bytes;
}

static bool
prepare(const LhCall *call, const Layout *layout, Step *s)
{
    const uint64_t count = call->args->optimizer.count;

    s->a = call->args;
    return lh_matrix_flat(&s->gradient, call, GRADIENT, 1, count) &&
           lh_matrix_flat(&s->norm, call, NORM, 1, 1) &&
           lh_matrix_flat(&s->clock, call, CLOCK, 1, 1) &&
           lh_matrix_flat(&s->master, call, layout->master, 1, count) &&
           find_moments(call, layout->moments, 0, &s->first) &&
           find_moments(call, layout->moments, 1, &s->second) && find_scales(call, layout, s) &&
           lh_matrix_flat(&s->rounded, call, layout->rounded, 1, count);
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

static uint64_t
block_of(uint64_t left)
{
    return left < LH_MOMENT_BLOCK ? left : LH_MOMENT_BLOCK;
}

/* Scales of block @block: of its first moments, and of its second ones. */
static float *
scale_at(const Step *s, uint64_t block, bool second)
{
    return s->scales + (second ? lh_moment_scales(s->a->optimizer.count) / 2 : 0) + block;
}

static void
load_codes(const Step *s, uint64_t first, uint64_t count, double *m, double *v)
{
    for (uint64_t i = 0; i < count; i += LH_MOMENT_BLOCK) {
        const uint64_t block = (first + i) / LH_MOMENT_BLOCK;
        const uint64_t of_block = block_of(count - i);

        read_first_codes((const int8_t *)s->first.data + first + i, *scale_at(s, block, false),
                         of_block, m + i);
        read_second_codes(s->second.data + first + i, *scale_at(s, block, true), of_block, v + i);
    }
}

static void
store_codes(const Step *s, uint64_t first, uint64_t count, const double *m, const double *v)
{
    for (uint64_t i = 0; i < count; i += LH_MOMENT_BLOCK) {
        const uint64_t block = (first + i) / LH_MOMENT_BLOCK;
        const uint64_t of_block = block_of(count - i);

        *scale_at(s, block, false) =
            write_first_codes(m + i, of_block, (int8_t *)s->first.data + first + i);
        *scale_at(s, block, true) = write_second_codes(v + i, of_block, s->second.data + first + i);
    }
}

static void
load_moments(const Step *s, uint64_t first, uint64_t count, double *m, double *v)
{
    if (s->a->first) {
        for (uint64_t i = 0; i < count; i++)
            m[i] = v[i] = 0;
    } else if (s->scales != NULL) {
        load_codes(s, first, count, m, v);
    } else {
        lh_matrix_load64(&s->first, 0, first, count, m);
        lh_matrix_load64(&s->second, 0, first, count, v);
        for (uint64_t i = 0; s->second.storage == LH_STORAGE_FP16 && i < count; i++)
            v[i] *= v[i];
    }
}

static void
store_moments(const Step *s, uint64_t first, uint64_t count, const double *m, double *v)
{
    if (s->scales != NULL) {
        store_codes(s, first, count, m, v);
        return;
    }
    for (uint64_t i = 0; s->second.storage == LH_STORAGE_FP16 && i < count; i++)
        v[i] = sqrt(v[i]);
    lh_matrix_store64(&s->first, 0, first, count, m);
    lh_matrix_store64(&s->second, 0, first, count, v);
}

static void
move_block(const Step *s, uint64_t first, uint64_t count)
{
    double g[BLOCK], m[BLOCK], v[BLOCK], w[BLOCK];

    lh_matrix_load64(&s->gradient, 0, first, count, g);
    load_moments(s, first, count, m, v);
    lh_matrix_load64(&s->master, 0, first, count, w);
    for (uint64_t i = 0; i < count; i++)
        move(s, g[i], &m[i], &v[i], &w[i]);
    store_moments(s, first, count, m, v);
    lh_matrix_store64(&s->master, 0, first, count, w);
    if (s->rounded.data != s->master.data)
        lh_matrix_store64(&s->rounded, 0, first, count, w);
}

static enum lh_status
run(const LhCall *call, const Layout *layout)
{
    Step s;

    if (!prepare(call, layout, &s))
        return LH_STATUS_UNSUPPORTED;
    begin(&s);
    for (uint64_t first = 0; first < s.a->optimizer.count; first += BLOCK)
        move_block(&s, first, block(s.a->optimizer.count, first));
    return LH_STATUS_OK;
}

static enum lh_status
adam(const LhCall *call)
{
    return run(call, &(Layout){ CLOCK + 1, CLOCK + 2, 0, CLOCK + 3 });
}

static enum lh_status
adam_moments8(const LhCall *call)
{
    return run(call, &(Layout){ CLOCK + 1, CLOCK + 2, CLOCK + 3, CLOCK + 4 });
}

static enum lh_status
adam_direct(const LhCall *call)
{
    return run(call, &(Layout){ CLOCK + 2, CLOCK + 1, 0, CLOCK + 2 });
}

static enum lh_status
adam_direct_moments8(const LhCall *call)
{
    return run(call, &(Layout){ CLOCK + 3, CLOCK + 1, CLOCK + 2, CLOCK + 3 });
}

#define CPU_KERNEL(name, function)                                                                 \
    const LhCpuKernel lh_cpu_kernel_##name = { .reference = (function), .fast = (function) };

CPU_KERNEL(grad_norm, grad_norm)
CPU_KERNEL(adam, adam)
CPU_KERNEL(adam_moments16, adam)
CPU_KERNEL(adam_moments8, adam_moments8)
CPU_KERNEL(adam_fp32, adam_direct)
CPU_KERNEL(adam_direct, adam_direct)
CPU_KERNEL(adam_direct_moments16, adam_direct)
CPU_KERNEL(adam_direct_moments8, adam_direct_moments8)
