/* SPDX-License-Identifier: Apache-2.0 */
/* CUDA versions of kernels/rotary.c: converts calls to launcher arguments, one tensor at a time. */
#include "kernels/cuda/rows/rotary.h"

#include "kernels/cuda/host_operands.h"
#include "kernels/cuda/table.h"

#include <math.h>

#define TAU 6.283185307179586476925286766559

/* Operand numbers of a kernel, and its operation on the first of its tensors. */
typedef struct {
    unsigned by_heads, outside, forward;
    unsigned tensors;
    bool moves, silu, back;
} Operands;

static void
find_frequencies(LhCudaTurn *t, double base)
{
    for (uint32_t i = 0; i < t->dim / 2; i++)
        t->frequencies[i] = (uint64_t)(pow(base, -2 * (double)i / t->dim) / TAU * 0x1p64);
}

/* Fills in tensor @index by heads. */
static bool
prepare(const LhCall *call, const Operands *o, unsigned index, LhCudaTurn *t)
{
    const LhKernelArgs *a = call->args;
    const uint64_t d = a->to_heads.head_dim, rows = a->to_heads.rows * a->to_heads.layout.batch;
    const uint64_t heads = o->tensors == 1 ? a->to_heads.heads : a->to_heads.groups;
    const uint64_t width = o->tensors * heads * d;
    const LhByHeads of = { a->to_heads.layout, 1, o->tensors, index };
    const uint32_t column = (uint32_t)(index * heads * d);
    LhCudaMatrix by_heads, outside;
    LhMatrix m;

    *t = (LhCudaTurn){ .rows = (uint32_t)rows,
                       .heads = (uint32_t)heads,
                       .dim = (uint32_t)d,
                       .batch = a->to_heads.layout.batch,
                       .start = a->to_heads.start,
                       .stride = a->to_heads.stride,
                       .turns = index == 0 && !o->moves && a->to_heads.base != 0,
                       .silu = index == 0 && o->silu,
                       .back = o->back,
                       .gradient = o->silu && o->back };
    if (a->to_heads.layout.members == 0 || call->operands[o->by_heads].storage == LH_STORAGE_FP64 ||
        call->operands[o->outside].parts != a->to_heads.layout.members ||
        (d % 2 != 0 && a->to_heads.base != 0) || (t->turns && d / 2 > LH_CUDA_FREQUENCIES) ||
        !lh_matrix_by_heads(&m, call, o->by_heads, &of, rows, heads * d) ||
        heads * d / m.slices % d != 0 || !lh_cuda_matrix(&by_heads, &m, rows) ||
        !lh_cuda_flat_matrix(&outside, call, o->outside, rows, width) ||
        (t->gradient && !lh_cuda_flat_matrix(&t->forward, call, o->forward, rows, width)))
        return false;
    t->member_rows = (uint32_t)m.member_rows;
    t->from = o->back ? by_heads : outside;
    t->to = o->back ? outside : by_heads;
    t->from_column = o->back ? 0 : column;
    t->to_column = o->back ? column : 0;
    t->forward_column = column;
    if (t->turns)
        find_frequencies(t, a->to_heads.base);
    return true;
}

static enum lh_status
run(const LhCall *call, const Operands *o, void *stream)
{
    enum lh_status status = LH_STATUS_OK;

    for (unsigned i = 0; i < o->tensors && status == LH_STATUS_OK; i++) {
        LhCudaTurn t;

        if (!prepare(call, o, i, &t))
            return LH_STATUS_UNSUPPORTED;
        status = lh_cuda_turn(&t, stream);
    }
    return status;
}

#define KERNEL(word, ...)                                                                          \
    static enum lh_status word(const LhCall *call, void *stream)                                   \
    {                                                                                              \
        static const Operands operands = { __VA_ARGS__ };                                          \
                                                                                                   \
        return run(call, &operands, stream);                                                       \
    }                                                                                              \
    const LhCudaKernel lh_cuda_kernel_##word = { .run = word };

KERNEL(rotary_q, .by_heads = 1, .outside = 0, .tensors = 1)
KERNEL(rotary_kv, .by_heads = 1, .outside = 0, .tensors = 2)
KERNEL(rotary_q_bwd, .by_heads = 0, .outside = 1, .tensors = 1, .back = true)
KERNEL(rotary_kv_bwd, .by_heads = 0, .outside = 1, .tensors = 2, .back = true)
KERNEL(silu_q, .by_heads = 1, .outside = 0, .tensors = 1, .silu = true)
KERNEL(silu_kv, .by_heads = 1, .outside = 0, .tensors = 2, .silu = true)
KERNEL(silu_q_bwd, .by_heads = 1, .outside = 2, .forward = 0, .tensors = 1, .silu = true,
       .back = true)
KERNEL(silu_kv_bwd, .by_heads = 1, .outside = 2, .forward = 0, .tensors = 2, .silu = true,
       .back = true)
KERNEL(from_heads, .by_heads = 0, .outside = 1, .tensors = 1, .moves = true, .back = true)
KERNEL(from_heads_bwd, .by_heads = 1, .outside = 0, .tensors = 1, .moves = true)
