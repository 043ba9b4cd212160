/* SPDX-License-Identifier: Apache-2.0 */
/* CPU versions of kernels/rotary.c. */
#include "kernels/cpu/cpu.h"
#include "kernels/cpu/kernels.h"

#include <math.h>

/* Operation on the elements besides the layout change. */
typedef enum {
    ROTATE,
    SILU_AND_ROTATE,
    MOVE,
} Way;

/* Tensors by heads, of which only the first is rotated, and the row outside. */
typedef struct {
    const LhKernelArgs *a;
    unsigned tensors;
    LhMatrix by_heads[2]; /* q; or k and v */
    LhMatrix outside;
    LhMatrix forward; /* rows of the forward pass, for silu's gradient */
    Way way;
    bool back;      /* from heads to rows */
    bool gradient;  /* of silu: forward is set */
    double *line;   /* one head's elements */
    double *before; /* the same of the forward pass */
    double *angles; /* of a token: cosine and sine for each half of a head */
} Rotation;

/* Operand numbers of a kernel. */
typedef struct {
    unsigned by_heads, outside, forward;
    unsigned tensors; /* by heads: 1, or 2 for k and v */
    Way way;
    bool back, gradient;
} Operands;

static bool
prepare(const LhCall *call, const Operands *o, Rotation *r)
{
    const LhKernelArgs *a = call->args;
    const uint64_t d = a->to_heads.head_dim, rows = a->to_heads.rows * a->to_heads.layout.batch;
    const uint64_t heads = o->tensors == 1 ? a->to_heads.heads : a->to_heads.groups;

    *r = (Rotation){ .a = a,
                     .tensors = o->tensors,
                     .way = o->way,
                     .back = o->back,
                     .gradient = o->gradient,
                     .line = call->scratch };
    r->before = r->line + d;
    r->angles = r->before + d;
    if (a->to_heads.layout.members == 0 ||
        call->operands[o->outside].parts != a->to_heads.layout.members ||
        (d % 2 != 0 && a->to_heads.base != 0))
        return false;
    for (unsigned i = 0; i < o->tensors; i++) {
        const LhByHeads of = { a->to_heads.layout, 1, o->tensors, i };

        if (!lh_matrix_by_heads(&r->by_heads[i], call, o->by_heads, &of, rows, heads * d) ||
            heads * d / r->by_heads[i].slices % d != 0)
            return false;
    }
    if (o->gradient && !lh_matrix_flat(&r->forward, call, o->forward, rows, o->tensors * heads * d))
        return false;
    return lh_matrix_flat(&r->outside, call, o->outside, rows, o->tensors * heads * d);
}

static uint64_t
scratch_bytes(const LhKernelArgs *a)
{
    return 3 * (uint64_t)a->to_heads.head_dim * sizeof(double);
}

/* Returns the position in the sequence of the token of row @row outside. */
static double
position_of(const LhKernelArgs *a, uint64_t row)
{
    const uint64_t rows = a->to_heads.rows / a->to_heads.layout.members;
    const uint64_t member = row / rows / a->to_heads.layout.batch;

    return (double)(a->to_heads.start + (member * rows + row % rows) * a->to_heads.stride);
}

static void
find_angles(const Rotation *r, uint64_t row, bool back)
{
    const uint64_t d = r->a->to_heads.head_dim;
    const double position = position_of(r->a, row);

    for (uint64_t i = 0; i < d / 2 && r->a->to_heads.base != 0; i++) {
        const double angle = position * pow(r->a->to_heads.base, -2 * (double)i / (double)d);

        r->angles[2 * i] = cos(angle);
        r->angles[2 * i + 1] = back ? -sin(angle) : sin(angle);
    }
}

static void
rotate(const Rotation *r)
{
    const uint64_t half = r->a->to_heads.head_dim / 2;
    double *x = r->line;

    for (uint64_t i = 0; i < half; i++) {
        const double c = r->angles[2 * i], s = r->angles[2 * i + 1];
        const double a = x[i], b = x[i + half];

        x[i] = a * c - b * s;
        x[i + half] = b * c + a * s;
    }
}

static double
sigmoid(double x)
{
    return 1 / (1 + exp(-x));
}

/* Applies silu to the line, or its gradient at the forward pass's line. */
static void
apply_silu(const Rotation *r)
{
    for (uint64_t i = 0; i < r->a->to_heads.head_dim; i++) {
        const double x = r->gradient ? r->before[i] : r->line[i];
        const double s = sigmoid(x);

        r->line[i] = r->gradient ? r->line[i] * s * (1 + x * (1 - s)) : x * s;
    }
}

static void
turn(const Rotation *r, uint64_t row, uint64_t column)
{
    const uint64_t d = r->a->to_heads.head_dim;
    const bool rotates = r->a->to_heads.base != 0;

    if (r->way == SILU_AND_ROTATE && !r->gradient)
        apply_silu(r);
    if (rotates)
        rotate(r);
    if (r->way == SILU_AND_ROTATE && r->gradient) {
        lh_matrix_load64(&r->forward, row, column, d, r->before);
        apply_silu(r);
    }
}

static enum lh_status
run(const Rotation *r)
{
    const uint64_t d = r->a->to_heads.head_dim;

    for (uint64_t row = 0; row < r->a->to_heads.rows * r->a->to_heads.layout.batch; row++) {
        uint64_t column = 0;

        find_angles(r, row, r->back);
        for (unsigned t = 0; t < r->tensors; t++) {
            for (uint64_t i = 0; i < r->by_heads[t].width; i += d, column += d) {
                const LhMatrix *from = r->back ? &r->by_heads[t] : &r->outside;
                const LhMatrix *to = r->back ? &r->outside : &r->by_heads[t];

                lh_matrix_load64(from, row, r->back ? i : column, d, r->line);
                if (t == 0 && r->way != MOVE)
                    turn(r, row, column);
                lh_matrix_store64(to, row, r->back ? column : i, d, r->line);
            }
        }
    }
    return LH_STATUS_OK;
}

#define KERNEL(word, ...)                                                                          \
    static enum lh_status word(const LhCall *call)                                                 \
    {                                                                                              \
        const Operands operands = { __VA_ARGS__ };                                                 \
        Rotation r;                                                                                \
                                                                                                   \
        return prepare(call, &operands, &r) ? run(&r) : LH_STATUS_UNSUPPORTED;                     \
    }                                                                                              \
    const LhCpuKernel lh_cpu_kernel_##word = { .reference = word,                                  \
                                               .fast = word,                                       \
                                               .scratch_bytes = scratch_bytes };

KERNEL(rotary_q, .by_heads = 1, .outside = 0, .tensors = 1)
KERNEL(rotary_kv, .by_heads = 1, .outside = 0, .tensors = 2)
KERNEL(rotary_q_bwd, .by_heads = 0, .outside = 1, .tensors = 1, .back = true)
KERNEL(rotary_kv_bwd, .by_heads = 0, .outside = 1, .tensors = 2, .back = true)
KERNEL(silu_q, .by_heads = 1, .outside = 0, .tensors = 1, .way = SILU_AND_ROTATE)
KERNEL(silu_kv, .by_heads = 1, .outside = 0, .tensors = 2, .way = SILU_AND_ROTATE)
KERNEL(silu_q_bwd, .by_heads = 1, .outside = 2, .forward = 0, .tensors = 1, .way = SILU_AND_ROTATE,
       .back = true, .gradient = true)
KERNEL(silu_kv_bwd, .by_heads = 1, .outside = 2, .forward = 0, .tensors = 2, .way = SILU_AND_ROTATE,
       .back = true, .gradient = true)
KERNEL(from_heads, .by_heads = 0, .outside = 1, .tensors = 1, .way = MOVE, .back = true)
KERNEL(from_heads_bwd, .by_heads = 1, .outside = 0, .tensors = 1, .way = MOVE)
