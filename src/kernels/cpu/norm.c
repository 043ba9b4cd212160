/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CPU versions of kernels/norm.c, in fp64, row by row. Weight gradients are summed over rows in
 * scratch memory and written after the last row, unless the weights are frozen.
 */
#include "kernels/cpu/cpu.h"
#include "kernels/cpu/kernels.h"

#include <math.h>

enum { X, W, Y, DY = Y, DX, DW };

/* Statistics of a row: the weights apply to (x - @mean) @scale. */
typedef struct {
    double mean, scale;
    double dot, sum; /* backward: means of dy w (x - mean) scale, and of dy w */
} Row;

typedef struct {
    const LhKernelArgs *a;
    LhMatrix x, w, y, dx, dw;
    bool centred;                          /* layer_norm: with mean and bias */
    bool frozen;                           /* no gradients of the weights */
    double *line, *other, *weights, *sums; /* of a row: x, dy; w and the bias; sums of dw */
} Norm;

typedef enum { FORWARD, BACKWARD, BACKWARD_FROZEN } Pass;

static bool
prepare(const LhCall *call, bool centred, Pass pass, Norm *n)
{
    const LhKernelArgs *a = call->args;
    const uint64_t width = a->rows.width, weights = centred ? 2 * width : width;

    n->a = a;
    n->centred = centred;
    n->frozen = pass == BACKWARD_FROZEN;
    n->line = call->scratch;
    n->other = n->line + width;
    n->weights = n->other + width;
    n->sums = n->weights + weights;
    return lh_matrix_flat(&n->x, call, X, a->rows.rows, width) &&
           lh_matrix_flat(&n->w, call, W, 1, weights) &&
           lh_matrix_flat(&n->y, call, Y, a->rows.rows, width) &&
           (pass == FORWARD || lh_matrix_flat(&n->dx, call, DX, a->rows.rows, width)) &&
           (pass != BACKWARD || lh_matrix_flat(&n->dw, call, DW, 1, weights));
}

/* Bytes of lines of x and dy, the weights and the sums of their gradients. */
static uint64_t
rms_scratch_bytes(const LhKernelArgs *a)
{
    return 4 * a->rows.width * sizeof(double);
}

static uint64_t
layer_scratch_bytes(const LhKernelArgs *a)
{
    return 6 * a->rows.width * sizeof(double);
}

static Row
read_row(const Norm *n, uint64_t row)
{
    const uint64_t width = n->a->rows.width;
    const double count = (double)width;
    double squares = 0;
    Row r = { 0 };

    lh_matrix_load64(&n->x, row, 0, width, n->line);
    for (uint64_t i = 0; n->centred && i < width; i++)
        r.mean += n->line[i] / count;
    for (uint64_t i = 0; i < width; i++)
        squares += (n->line[i] - r.mean) * (n->line[i] - r.mean);
    r.scale = 1 / sqrt(squares / count + n->a->rows.epsilon);
    for (uint64_t i = 0; i < width; i++)
        n->line[i] = (n->line[i] - r.mean) * r.scale;
    return r;
}

static enum lh_status
forward(const LhCall *call, bool centred)
{
    const uint64_t width = call->args->rows.width;
    Norm n;

    if (!prepare(call, centred, FORWARD, &n))
        return LH_STATUS_UNSUPPORTED;
    lh_matrix_load64(&n.w, 0, 0, n.w.width, n.weights);
    for (uint64_t row = 0; row < n.a->rows.rows; row++) {
        read_row(&n, row);
        for (uint64_t i = 0; i < width; i++)
            n.line[i] = n.line[i] * n.weights[i] + (centred ? n.weights[width + i] : 0);
        lh_matrix_store64(&n.y, row, 0, width, n.line);
    }
    return LH_STATUS_OK;
}

/* Adds a row to the weight gradients and computes the means for its dx; dy becomes dy w. */
static void
read_gradient(const Norm *n, uint64_t row, Row *r)
{
    const uint64_t width = n->a->rows.width;
    const double count = (double)width;

    lh_matrix_load64(&n->y, row, 0, width, n->other);
    for (uint64_t i = 0; i < width; i++) {
        n->sums[i] += n->other[i] * n->line[i];
        if (n->centred)
            n->sums[width + i] += n->other[i];
        n->other[i] *= n->weights[i];
        r->dot += n->other[i] * n->line[i] / count;
        r->sum += n->centred ? n->other[i] / count : 0;
    }
}

static void
write_dx(const Norm *n, uint64_t row, const Row *r)
{
    const uint64_t width = n->a->rows.width;

    for (uint64_t i = 0; i < width; i++)
        n->other[i] = r->scale * (n->other[i] - r->sum - n->line[i] * r->dot);
    if (n->a->rows.adds) {
        lh_matrix_load64(&n->dx, row, 0, width, n->line);
        for (uint64_t i = 0; i < width; i++)
            n->other[i] += n->line[i];
    }
    lh_matrix_store64(&n->dx, row, 0, width, n->other);
}

static enum lh_status
back(const LhCall *call, bool centred, Pass pass)
{
    Norm n;

    if (!prepare(call, centred, pass, &n))
        return LH_STATUS_UNSUPPORTED;
    lh_matrix_load64(&n.w, 0, 0, n.w.width, n.weights);
    for (uint64_t i = 0; i < n.w.width; i++)
        n.sums[i] = 0;
    if (!n.frozen && !n.a->first)
        lh_matrix_load64(&n.dw, 0, 0, n.dw.width, n.sums);
    for (uint64_t row = 0; row < n.a->rows.rows; row++) {
        Row r = read_row(&n, row);

        read_gradient(&n, row, &r);
        write_dx(&n, row, &r);
    }
    if (!n.frozen)
        lh_matrix_store64(&n.dw, 0, 0, n.dw.width, n.sums);
    return LH_STATUS_OK;
}

static enum lh_status
backward(const LhCall *call, bool centred)
{
    return back(call, centred, BACKWARD);
}

static enum lh_status
backward_frozen(const LhCall *call, bool centred)
{
    return back(call, centred, BACKWARD_FROZEN);
}

#define NORM(word, what, is_centred, scratch)                                                      \
    static enum lh_status word(const LhCall *call)                                                 \
    {                                                                                              \
        return what(call, is_centred);                                                             \
    }                                                                                              \
    const LhCpuKernel lh_cpu_kernel_##word = { .reference = word,                                  \
                                               .fast = word,                                       \
                                               .scratch_bytes = scratch };

NORM(rms_norm, forward, false, rms_scratch_bytes)
NORM(rms_norm_bwd, backward, false, rms_scratch_bytes)
NORM(rms_norm_dgrad, backward_frozen, false, rms_scratch_bytes)
NORM(layer_norm, forward, true, layer_scratch_bytes)
NORM(layer_norm_bwd, backward, true, layer_scratch_bytes)
NORM(layer_norm_dgrad, backward_frozen, true, layer_scratch_bytes)
