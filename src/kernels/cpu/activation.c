/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CPU versions of kernels/activation.c, in fp64, by blocks of a row.
 */
#include "kernels/cpu/cpu.h"
#include "kernels/cpu/kernels.h"

#include <math.h>

#define BLOCK 256U
#define LINES 5U

/* A line: a block of a row of an operand, or of one of the halves of its rows. */
typedef struct {
    unsigned operand, halves, half;
} Line;

/* An elementwise function: the first @read lines are inputs, the others outputs. */
typedef struct {
    unsigned read, lines;
    Line line[LINES];
    void (*function)(double (*x)[BLOCK], uint64_t count);
} Activation;

static bool
prepare(const LhCall *call, const Activation *f, LhMatrix lines[LINES])
{
    const LhKernelArgs *a = call->args;

    for (unsigned i = 0; i < f->lines; i++) {
        if (!lh_matrix_flat(&lines[i], call, f->line[i].operand, a->rows.rows,
                            a->rows.width * f->line[i].halves))
            return false;
    }
    return true;
}

static void
run_block(const Activation *f, const LhMatrix lines[LINES], uint64_t row, uint64_t first,
          uint64_t count)
{
    double x[LINES][BLOCK];

    for (unsigned i = 0; i < f->lines; i++) {
        const uint64_t half = lines[i].width / f->line[i].halves * f->line[i].half;

        if (i == f->read)
            f->function(x, count);
        (i < f->read) ? lh_matrix_load64(&lines[i], row, half + first, count, x[i])
                      : lh_matrix_store64(&lines[i], row, half + first, count, x[i]);
    }
}

static enum lh_status
run(const LhCall *call, const Activation *f)
{
    const uint64_t width = call->args->rows.width;
    LhMatrix lines[LINES];

    if (!prepare(call, f, lines))
        return LH_STATUS_UNSUPPORTED;
    for (uint64_t row = 0; row < call->args->rows.rows; row++) {
        for (uint64_t first = 0; first < width; first += BLOCK)
            run_block(f, lines, row, first, width - first < BLOCK ? width - first : BLOCK);
    }
    return LH_STATUS_OK;
}

static double
sigmoid(double x)
{
    return 1 / (1 + exp(-x));
}

/* gate, up; p */
static void
glu(double (*x)[BLOCK], uint64_t count)
{
    for (uint64_t i = 0; i < count; i++)
        x[2][i] = x[0][i] * sigmoid(x[0][i]) * x[1][i];
}

/* gate, up, dp; dgate, dup */
static void
glu_bwd(double (*x)[BLOCK], uint64_t count)
{
    for (uint64_t i = 0; i < count; i++) {
        const double s = sigmoid(x[0][i]);

        x[3][i] = x[2][i] * x[1][i] * s * (1 + x[0][i] * (1 - s));
        x[4][i] = x[2][i] * x[0][i] * s;
    }
}

/* sqrt(2 / pi), and the factor of the cubic term. */
#define GELU_SCALE 0.79788456080286535588
#define GELU_CUBE 0.044715

/* x; y */
static void
gelu(double (*x)[BLOCK], uint64_t count)
{
    for (uint64_t i = 0; i < count; i++) {
        const double v = x[0][i];

        x[1][i] = 0.5 * v * (1 + tanh(GELU_SCALE * (v + GELU_CUBE * v * v * v)));
    }
}

/* x, dy; dx */
static void
gelu_bwd(double (*x)[BLOCK], uint64_t count)
{
    for (uint64_t i = 0; i < count; i++) {
        const double v = x[0][i];
        const double t = tanh(GELU_SCALE * (v + GELU_CUBE * v * v * v));
        const double slope = GELU_SCALE * (1 + 3 * GELU_CUBE * v * v);

        x[2][i] = x[1][i] * (0.5 * (1 + t) + 0.5 * v * (1 - t * t) * slope);
    }
}

/* x, g; z */
static void
gate(double (*x)[BLOCK], uint64_t count)
{
    for (uint64_t i = 0; i < count; i++)
        x[2][i] = x[0][i] * sigmoid(x[1][i]);
}

/* x, g, dz; dx, dg */
static void
gate_bwd(double (*x)[BLOCK], uint64_t count)
{
    for (uint64_t i = 0; i < count; i++) {
        const double s = sigmoid(x[1][i]);

        x[3][i] = x[2][i] * s;
        x[4][i] = x[2][i] * x[0][i] * s * (1 - s);
    }
}

#define WHOLE(operand)                                                                             \
    {                                                                                              \
        operand, 1, 0                                                                              \
    }
#define HALVES(operand)                                                                            \
    { operand, 2, 0 },                                                                             \
    {                                                                                              \
        operand, 2, 1                                                                              \
    }
#define ACTIVATION(word, inputs, outputs, ...)                                                     \
    static enum lh_status run_##word(const LhCall *call)                                           \
    {                                                                                              \
        static const Activation f = { inputs, (inputs) + (outputs), { __VA_ARGS__ }, word };       \
                                                                                                   \
        return run(call, &f);                                                                      \
    }                                                                                              \
    const LhCpuKernel lh_cpu_kernel_##word = { .reference = run_##word, .fast = run_##word };

ACTIVATION(glu, 2, 1, HALVES(0), WHOLE(1))
ACTIVATION(glu_bwd, 3, 2, HALVES(0), WHOLE(1), HALVES(2))
ACTIVATION(gelu, 1, 1, WHOLE(0), WHOLE(1))
ACTIVATION(gelu_bwd, 2, 1, WHOLE(0), WHOLE(1), WHOLE(2))
ACTIVATION(gate, 2, 1, WHOLE(0), WHOLE(1), WHOLE(2))
ACTIVATION(gate_bwd, 3, 2, WHOLE(0), WHOLE(1), WHOLE(2), WHOLE(3), WHOLE(4))
