/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CPU versions of kernels/muon.c. Passes over parameters are in fp64 by blocks; products are those
 * of gemm.h, for each matrix, into scratch, from where the result is rounded once.
 */
#include "kernels/cpu/cpu.h"
#include "kernels/cpu/gemm.h"
#include "kernels/cpu/kernels.h"
#include "kernels/layer.h"

#include <math.h>

#define BLOCK 512U
#define NORM_EPSILON 1e-7 /* of the norm of a matrix without gradient */

static uint64_t
block(uint64_t count, uint64_t first)
{
    return count - first < BLOCK ? count - first : BLOCK;
}

static uint64_t
at_least_one(uint64_t x)
{
    return x > 1 ? x : 1;
}

/* ---- passes over the parameters of a shard ---- */

static enum lh_status
momentum(const LhCall *call)
{
    enum { GRADIENT, NORM, MOMENTUM, UPDATE };
    const LhKernelArgs *a = call->args;
    const uint64_t count = a->optimizer.count;
    const double beta1 = a->optimizer.beta1, beta2 = a->optimizer.beta2, clip = a->optimizer.clip;
    LhMatrix gradient, norm, average, update;
    double g[BLOCK], m[BLOCK], scale = 1;

    if (!lh_matrix_flat(&gradient, call, GRADIENT, 1, count) ||
        !lh_matrix_flat(&norm, call, NORM, 1, 1) ||
        !lh_matrix_flat(&average, call, MOMENTUM, 1, count) ||
        !lh_matrix_flat(&update, call, UPDATE, 1, count))
        return LH_STATUS_UNSUPPORTED;
    if (clip > 0 && sqrt(lh_matrix_get(&norm, 0, 0)) > clip)
        scale = clip / sqrt(lh_matrix_get(&norm, 0, 0));
    for (uint64_t first = 0; first < count; first += BLOCK) {
        const uint64_t n = block(count, first);

        lh_matrix_load64(&gradient, 0, first, n, g);
        for (uint64_t i = 0; i < n; i++)
            m[i] = 0;
        if (!a->first)
            lh_matrix_load64(&average, 0, first, n, m);
        for (uint64_t i = 0; i < n; i++) {
            m[i] = beta1 * m[i] + (1 - beta1) * scale * g[i];
            g[i] = beta2 * m[i] + (1 - beta2) * scale * g[i];
        }
        lh_matrix_store64(&average, 0, first, n, m);
        lh_matrix_store64(&update, 0, first, n, g);
    }
    return LH_STATUS_OK;
}

/* Adds the update to operand @master and rounds the result to operand @rounded. */
static enum lh_status
add_update(const LhCall *call, unsigned master, unsigned rounded)
{
    const LhKernelArgs *a = call->args;
    const uint64_t count = a->optimizer.count;
    LhMatrix update, weights, copy;
    double u[BLOCK], w[BLOCK];

    if (!lh_matrix_flat(&update, call, 0, 1, count) ||
        !lh_matrix_flat(&weights, call, master, 1, count) ||
        !lh_matrix_flat(&copy, call, rounded, 1, count))
        return LH_STATUS_UNSUPPORTED;
    for (uint64_t first = 0; first < count; first += BLOCK) {
        const uint64_t n = block(count, first);

        lh_matrix_load64(&update, 0, first, n, u);
        lh_matrix_load64(&weights, 0, first, n, w);
        for (uint64_t i = 0; i < n; i++)
            w[i] -= a->optimizer.learning_rate * (u[i] + a->optimizer.weight_decay * w[i]);
        lh_matrix_store64(&weights, 0, first, n, w);
        if (rounded != master)
            lh_matrix_store64(&copy, 0, first, n, w);
    }
    return LH_STATUS_OK;
}

static enum lh_status
update(const LhCall *call)
{
    return add_update(call, 1, 2);
}

static enum lh_status
update_direct(const LhCall *call)
{
    return add_update(call, 1, 1);
}

/* ---- slices and whole matrices ---- */

/* How a weight is cut. */
typedef struct {
    uint64_t experts, halves, cuts, replicas, slices;
    uint64_t rows, columns; /* of a matrix */
    bool by_rows, transposed;
} Cut;

static bool
find_cut(const LhKernelArgs *a, Cut *c)
{
    *c = (Cut){ .experts = at_least_one(a->muon.experts),
                .halves = at_least_one(a->muon.halves),
                .cuts = lh_muon_cuts(a),
                .replicas = at_least_one(a->muon.replicas),
                .slices = at_least_one(a->muon.slices),
                .by_rows = a->muon.by_rows };
    c->rows = a->muon.rows / c->experts;
    c->columns = a->muon.width / c->halves;
    c->transposed = c->rows > c->columns;
    return a->muon.rows % c->experts == 0 && a->muon.width % c->halves == 0 && c->rows > 0 &&
           c->columns > 0 && (c->slices == 1 || c->slices % c->replicas == 0) &&
           (c->by_rows ? c->rows : c->columns) % c->cuts == 0 && a->muon.slice < c->cuts;
}

/* Slice @index of @count ones, which have equally many parts of an operand. */
static bool
find_slice(LhMatrix *m, const LhCall *call, unsigned operand, const Cut *c, uint64_t index,
           uint64_t count)
{
    const uint64_t rows = c->experts * c->rows / (c->by_rows ? c->cuts : 1);
    const uint64_t width = c->halves * c->columns / (c->by_rows ? 1 : c->cuts);
    LhCall own = *call;
    LhView *view = &own.operands[operand];

    if (view->parts % count != 0)
        return false;
    view->parts /= (uint32_t)count;
    view->data += index * view->parts * view->part_bytes;
    return lh_matrix_flat(m, &own, operand, rows, width);
}

/* X: all matrices, one behind the other. */
static bool
find_whole(LhMatrix *m, const LhCall *call, unsigned operand)
{
    const LhProductShape shape = lh_muon_matrices(call->args);

    return lh_matrix_flat(m, call, operand, shape.matrices * shape.rows, shape.columns);
}

/* A row of a matrix before it is transposed. */
typedef struct {
    uint64_t expert, half, row;
} Line;

/* Its elements within a slice: those from @first on. */
typedef struct {
    uint64_t slice, row, column; /* without replicas; in the slice */
    uint64_t first, count;
} Segment;

static Segment
segment_of(const Cut *c, const Line *at, uint64_t slice)
{
    const uint64_t rows = c->rows / c->cuts, columns = c->columns / c->cuts;

    if (c->by_rows)
        return (Segment){ .slice = at->row / rows,
                          .row = at->expert * rows + at->row % rows,
                          .column = at->half * c->columns,
                          .count = c->columns };
    return (Segment){ .slice = slice,
                      .row = at->expert * c->rows + at->row,
                      .column = at->half * columns,
                      .first = slice * columns,
                      .count = columns };
}

static bool
load_line(const LhCall *call, const Cut *c, const Line *at, double *line)
{
    for (uint64_t s = 0; s < (c->by_rows ? 1 : c->cuts); s++) {
        const Segment own = segment_of(c, at, s);
        LhMatrix slice;

        if (!find_slice(&slice, call, 0, c, own.slice * c->replicas, c->slices))
            return false;
        lh_matrix_load64(&slice, own.row, own.column, own.count, line + own.first);
    }
    return true;
}

/* Reads or writes the line in X. */
static void
move_whole(const LhMatrix *x, const Cut *c, const Line *at, bool store, double *line)
{
    const uint64_t first =
        (at->expert * c->halves + at->half) * (c->transposed ? c->columns : c->rows);

    if (!c->transposed && store)
        lh_matrix_store64(x, first + at->row, 0, c->columns, line);
    else if (!c->transposed)
        lh_matrix_load64(x, first + at->row, 0, c->columns, line);
    for (uint64_t j = 0; c->transposed && j < c->columns; j++) {
        if (store)
            lh_matrix_put(x, first + j, at->row, line[j]);
        else
            line[j] = lh_matrix_get(x, first + j, at->row);
    }
}

static double
squares(const double *line, uint64_t count)
{
    double sum = 0;

    for (uint64_t j = 0; j < count; j++)
        sum += line[j] * line[j];
    return sum;
}

/* Joins one matrix. */
static bool
join_matrix(const LhCall *call, const Cut *c, const LhMatrix *x, Line at)
{
    double *line = call->scratch, sum = 0, scale;

    for (at.row = 0; at.row < c->rows; at.row++) {
        if (!load_line(call, c, &at, line))
            return false;
        sum += squares(line, c->columns);
    }
    scale = 1 / fmax(sqrt(sum), NORM_EPSILON);
    for (at.row = 0; at.row < c->rows; at.row++) {
        load_line(call, c, &at, line);
        for (uint64_t j = 0; j < c->columns; j++)
            line[j] *= scale;
        move_whole(x, c, &at, true, line);
    }
    return true;
}

static enum lh_status
join(const LhCall *call)
{
    LhMatrix x;
    Cut c;

    if (!find_cut(call->args, &c) || !find_whole(&x, call, 1))
        return LH_STATUS_UNSUPPORTED;
    for (uint64_t i = 0; i < c.experts * c.halves; i++) {
        if (!join_matrix(call, &c, &x, (Line){ i / c.halves, i % c.halves, 0 }))
            return LH_STATUS_UNSUPPORTED;
    }
    return LH_STATUS_OK;
}

static enum lh_status
split(const LhCall *call)
{
    const LhKernelArgs *a = call->args;
    double *line = call->scratch;
    LhMatrix x, slice;
    Cut c;

    if (!find_cut(a, &c) || !find_whole(&x, call, 0) || !find_slice(&slice, call, 1, &c, 0, 1))
        return LH_STATUS_UNSUPPORTED;
    for (uint64_t i = 0; i < c.experts * c.halves * c.rows; i++) {
        const Line at = { i / c.rows / c.halves, i / c.rows % c.halves, i % c.rows };
        const Segment own = segment_of(&c, &at, a->muon.slice);

        if (own.slice != a->muon.slice)
            continue;
        move_whole(&x, &c, &at, false, line);
        for (uint64_t j = own.first; j < own.first + own.count; j++)
            line[j] *= a->muon.factor;
        lh_matrix_store64(&slice, own.row, own.column, own.count, line + own.first);
    }
    return LH_STATUS_OK;
}

static uint64_t
line_bytes(const LhKernelArgs *a)
{
    return a->muon.width * sizeof(double);
}

/* ---- products ---- */

/* result = times (operand 0 x operand `right`) + plus operand `right`, for each matrix. */
typedef struct {
    unsigned right, result;
    bool transposed; /* the right factor is */
    double times, plus;
} Product;

typedef void (*Gemm)(const LhGemm *g);

static uint64_t
rounded_up(uint64_t bytes)
{
    return (bytes + LH_SCRATCH_ALIGN - 1) / LH_SCRATCH_ALIGN * LH_SCRATCH_ALIGN;
}

/* Scratch: a product of one matrix, two of its rows, and what the product needs. */
static uint64_t
sums_bytes(const LhProductShape *s)
{
    return rounded_up(s->rows * s->columns * sizeof(double));
}

static uint64_t
lines_bytes(const LhProductShape *s)
{
    return rounded_up(2 * s->columns * sizeof(double));
}

/* Rounds row @row of matrix @index of the product in @sums to @result. */
static void
store_row(const Product *p, const LhMatrix operands[3], uint64_t row, uint64_t whole, double *line)
{
    const LhMatrix *sums = &operands[0], *right = &operands[1], *result = &operands[2];
    double *other = line + result->width;

    lh_matrix_load64(sums, row, 0, sums->width, line);
    for (uint64_t j = 0; j < sums->width; j++)
        line[j] *= p->times;
    if (p->plus != 0)
        lh_matrix_load64(right, whole, 0, sums->width, other);
    for (uint64_t j = 0; p->plus != 0 && j < sums->width; j++)
        line[j] += p->plus * other[j];
    lh_matrix_store64(result, whole, 0, sums->width, line);
}

static enum lh_status
multiply(const LhCall *call, const LhProductShape *s, const Product *p, Gemm gemm)
{
    const bool exact = gemm == lh_gemm_reference;
    const uint64_t rows = s->matrices * s->rows, elements = s->rows * s->columns;
    unsigned char *scratch = call->scratch;
    double *line = (double *)(void *)(scratch + sums_bytes(s));
    LhMatrix left, operands[3];
    LhGemm g = { .a = &left,
                 .b = &operands[1],
                 .c = &operands[0],
                 .rows = s->rows,
                 .columns = s->columns,
                 .depth = s->depth,
                 .b_transposed = p->transposed,
                 .scratch = scratch + sums_bytes(s) + lines_bytes(s) };

    operands[0] = (LhMatrix){ .data = scratch,
                              .part_elements = elements,
                              .width = s->columns,
                              .storage = exact ? LH_STORAGE_FP64 : LH_STORAGE_FP32 };
    if (!lh_matrix_flat(&left, call, 0, rows, s->depth) ||
        !lh_matrix_flat(&operands[1], call, p->right, rows,
                        p->transposed ? s->depth : s->columns) ||
        !lh_matrix_flat(&operands[2], call, p->result, rows, s->columns))
        return LH_STATUS_UNSUPPORTED;
    for (uint64_t i = 0; i < s->matrices; i++) {
        g.a_row = g.b_row = i * s->rows;
        gemm(&g);
        for (uint64_t row = 0; row < s->rows; row++)
            store_row(p, operands, row, i * s->rows + row, line);
    }
    return LH_STATUS_OK;
}

static enum lh_status
gram(const LhCall *call, const LhProductShape *s, Gemm gemm)
{
    return multiply(call, s, &(Product){ 0, 1, true, 1, 0 }, gemm);
}

static enum lh_status
square(const LhCall *call, const LhProductShape *s, Gemm gemm)
{
    const LhKernelArgs *a = call->args;

    return multiply(call, s, &(Product){ 0, 1, false, a->muon.c, a->muon.b }, gemm);
}

static enum lh_status
step(const LhCall *call, const LhProductShape *s, Gemm gemm)
{
    return multiply(call, s, &(Product){ 1, 2, false, 1, call->args->muon.a }, gemm);
}

/* ---- table ---- */

#define PASS(name, function)                                                                       \
    const LhCpuKernel lh_cpu_kernel_##name = { .reference = (function), .fast = (function) };
#define SLICES(name, function)                                                                     \
    const LhCpuKernel lh_cpu_kernel_##name = { .reference = (function),                            \
                                               .fast = (function),                                 \
                                               .scratch_bytes = line_bytes };
#define PRODUCT(name, function)                                                                    \
    extern const LhKernel lh_kernel_##name;                                                        \
    static enum lh_status name##_by(const LhCall *call, Gemm gemm)                                 \
    {                                                                                              \
        Cut c;                                                                                     \
        LhProductShape s;                                                                          \
                                                                                                   \
        if (!find_cut(call->args, &c))                                                             \
            return LH_STATUS_UNSUPPORTED;                                                          \
        s = lh_product_shape(&lh_kernel_##name, call->args);                                       \
        return function(call, &s, gemm);                                                           \
    }                                                                                              \
    static enum lh_status name##_reference(const LhCall *call)                                     \
    {                                                                                              \
        return name##_by(call, lh_gemm_reference);                                                 \
    }                                                                                              \
    static enum lh_status name##_fast(const LhCall *call)                                          \
    {                                                                                              \
        return name##_by(call, lh_cpu()->gemm);                                                    \
    }                                                                                              \
    static uint64_t name##_scratch(const LhKernelArgs *a)                                          \
    {                                                                                              \
        const LhProductShape s = lh_product_shape(&lh_kernel_##name, a);                           \
                                                                                                   \
        return sums_bytes(&s) + lines_bytes(&s) +                                                  \
               lh_gemm_scratch_bytes(s.rows, s.columns, s.depth);                                  \
    }                                                                                              \
    const LhCpuKernel lh_cpu_kernel_##name = {                                                     \
        .reference = name##_reference,                                                             \
        .fast = name##_fast,                                                                       \
        .scratch_bytes = name##_scratch,                                                           \
    };

PASS(muon_momentum, momentum)
PASS(muon_momentum16, momentum)
PASS(muon_update, update)
PASS(muon_update_direct, update_direct)
SLICES(muon_join, join)
SLICES(muon_split, split)
PRODUCT(muon_gram, gram)
PRODUCT(muon_square, square)
PRODUCT(muon_step, step)
