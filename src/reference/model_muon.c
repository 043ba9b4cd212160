/* SPDX-License-Identifier: Apache-2.0 */
#include "reference/model_muon.h"

#include "base/rng.h"
#include "reference/model_math.h"

#include <glib.h>
#include <math.h>
#include <string.h>

bool
lh_model_muon_has(const LhModelShape *s, LhModelWeight weight)
{
    const bool matrix = weight < LH_MODEL_QKV_A && weight != LH_MODEL_NORM1 &&
                        weight != LH_MODEL_NORM2 && weight != LH_MODEL_O_NORM;

    return s->muon.steps > 0 && matrix;
}

/* ---- blocks of a weight ---- */

/* A weight is bands x stacks of blocks of equal size, each orthogonalised apart. */
typedef struct {
    uint64_t bands, stacks; /* blocks below each other, and side by side */
    uint64_t rows, columns; /* of a block */
    uint64_t width;         /* of the weight */
} Blocks;

/* Experts are below each other, k and v, or gate and up, side by side; and each of these is cut
 * among ranks if they orthogonalise their slices apart. */
static Blocks
blocks_of(const LhModelShape *s, LhModelWeight weight, uint32_t layer, uint64_t rows,
          uint64_t width)
{
    const bool expert = weight == LH_MODEL_EXPERT_UP || weight == LH_MODEL_EXPERT_DOWN;
    const bool up = weight == LH_MODEL_UP || weight == LH_MODEL_EXPERT_UP;
    const bool down =
        weight == LH_MODEL_OUT || weight == LH_MODEL_DOWN || weight == LH_MODEL_EXPERT_DOWN;
    uint64_t slices = weight == LH_MODEL_ROUTER ? 1 : s->muon.slices;
    Blocks b = { .bands = expert ? s->experts : 1,
                 .stacks = weight == LH_MODEL_KV || (up && s->gated_mlp) ? 2 : 1,
                 .width = width };

    if (weight == LH_MODEL_KV)
        slices = MIN(slices, s->layers[layer].attention.groups);
    *(down ? &b.bands : &b.stacks) *= slices;
    b.rows = rows / b.bands;
    b.columns = width / b.stacks;
    return b;
}

/* ---- noise ---- */

typedef struct {
    const LhModelNoise *noise; /* NULL: none */
    uint64_t drawn;
} Noise;

/* Disturbs rows of numbers. */
static void
disturb(Noise *n, double *numbers, uint64_t rows, uint64_t width)
{
    for (uint64_t row = 0; n->noise != NULL && row < rows; row++) {
        double squares = 0, of_row;

        for (uint64_t i = 0; i < width; i++)
            squares += numbers[row * width + i] * numbers[row * width + i];
        of_row = n->noise->of_row * sqrt(squares / (double)width);
        for (uint64_t i = 0; i < width; i++) {
            double *x = &numbers[row * width + i];
            const double direction = 2 * lh_rng_uniform(n->noise->seed, 0, n->drawn++) - 1;

            *x += direction * (n->noise->of_number * fabs(*x) + of_row);
        }
    }
}

/* ---- Newton-Schulz ---- */

/* x = a x + b (x x^T) x + c (x x^T)^2 x; at most as many rows as columns. */
static void
newton_schulz(double *x, uint64_t rows, uint64_t columns, const double of[3], Noise *noise)
{
    const LhMathProduct tall = { columns, rows, rows, 1 }, square = { rows, rows, rows, 1 };
    const LhMathProduct wide = { rows, rows, columns, 1 };
    g_autofree double *gram = g_new0(double, rows *rows), *p = g_new0(double, rows *rows);
    g_autofree double *y = g_new0(double, rows *columns); /* first x, transposed */

    for (uint64_t i = 0; i < rows * columns; i++)
        y[i % columns * rows + i / columns] = x[i];
    lh_math_product_dw(&tall, y, y, gram);
    disturb(noise, gram, rows, rows);
    lh_math_product(&square, gram, gram, p);
    for (uint64_t i = 0; i < rows * rows; i++)
        p[i] = of[1] * gram[i] + of[2] * p[i];
    disturb(noise, p, rows, rows);
    lh_math_product(&wide, p, x, y);
    for (uint64_t i = 0; i < rows * columns; i++)
        x[i] = of[0] * x[i] + y[i];
    disturb(noise, x, rows, columns);
}

static double
scale_of(const LhModelMuon *muon, double in, double out)
{
    const double quotient = out / in;

    if (muon->scale == LH_MODEL_UNIT_RMS_NORM)
        return muon->extra_scale * sqrt(quotient);
    if (muon->scale == LH_MODEL_SHAPE_SCALING)
        return muon->extra_scale * (quotient > 1 ? sqrt(quotient) : 1);
    return muon->extra_scale * sqrt(MAX(in, out));
}

/* Moves block (band, stack) of a weight to @block or back, transposed if it is tall. */
static void
move_block(const Blocks *b, uint64_t band, uint64_t stack, bool back, double *block, double *whole)
{
    const bool tall = b->rows > b->columns;

    for (uint64_t i = 0; i < b->rows * b->columns; i++) {
        const uint64_t row = i / b->columns, column = i % b->columns;
        double *in = &block[tall ? column * b->rows + row : i];
        double *at = &whole[(band * b->rows + row) * b->width + stack * b->columns + column];

        *(back ? at : in) = *(back ? in : at);
    }
}

static void
orthogonalise(const LhModelMuon *muon, const Blocks *b, double *x, Noise *noise)
{
    const uint64_t rows = MIN(b->rows, b->columns), columns = MAX(b->rows, b->columns);
    const double scale = scale_of(muon, (double)b->rows, (double)b->columns);
    double squares = 0;

    disturb(noise, x, rows, columns);
    for (uint64_t i = 0; i < rows * columns; i++)
        squares += x[i] * x[i];
    for (uint64_t i = 0; i < rows * columns; i++)
        x[i] /= fmax(sqrt(squares), 1e-7);
    disturb(noise, x, rows, columns);
    for (uint32_t i = 0; i < muon->steps; i++)
        newton_schulz(x, rows, columns, muon->coefficients[i], noise);
    for (uint64_t i = 0; i < rows * columns; i++)
        x[i] *= scale;
    disturb(noise, x, rows, columns);
}

void
lh_model_muon_update(const LhModelShape *s, LhModelWeight weight, uint32_t layer,
                     const double *direction, const LhModelNoise *noise, double *update)
{
    const LhModelTensor t = lh_model_weight_shape(s, weight, layer);
    const Blocks b = blocks_of(s, weight, layer, t.rows, t.columns);
    g_autofree double *block = g_new0(double, MAX(b.rows * b.columns, 1));
    Noise n = { .noise = noise };

    memcpy(update, direction, t.rows * t.columns * sizeof(double));
    for (uint64_t i = 0; i < b.bands * b.stacks; i++) {
        move_block(&b, i / b.stacks, i % b.stacks, false, block, update);
        orthogonalise(&s->muon, &b, block, &n);
        move_block(&b, i / b.stacks, i % b.stacks, true, block, update);
    }
}
