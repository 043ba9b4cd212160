/*
 * delta = rowsum(do * o), what the backward pass needs of o.
 */
#include "kernels/elementwise.h"
#include "kernels/sizes.h"

#include <stddef.h>

#define BLOCK 256U
#define LANES 8U

static uint64_t
flops(const LhKernelArgs *a)
{
    return 2 * lh_q_elements(a);
}

static uint64_t
memory_bytes(const LhKernelArgs *a, uint32_t element_bytes)
{
    return 2 * lh_q_elements(a) * element_bytes + lh_rows(a) * LH_STAT_BYTES;
}

static double
dot_reference(const LhRows *a, const void *x, const LhRows *b, const void *y)
{
    double sum = 0;

    for (uint32_t c = 0; c < a->dim; c++)
        sum += lh_element_get(x, a->storage, c) * lh_element_get(y, b->storage, c);
    return sum;
}

/* Blocks of fp32 products into fp64 lanes. */
static double
dot_fast(const LhRows *a, const void *x, const LhRows *b, const void *y)
{
    float p[BLOCK], q[BLOCK];
    double lanes[LANES] = { 0 }, sum = 0;

    for (uint32_t c = 0; c < a->dim; c += BLOCK) {
        const uint32_t count = a->dim - c < BLOCK ? a->dim - c : BLOCK;

        memset(p, 0, sizeof(p));
        memset(q, 0, sizeof(q));
        lh_cpu()->to_fp32(p, (const char *)x + c * (size_t)lh_storage_bytes(a->storage), a->storage,
                          count);
        lh_cpu()->to_fp32(q, (const char *)y + c * (size_t)lh_storage_bytes(b->storage), b->storage,
                          count);
        for (uint32_t i = 0; i < count; i += LANES) {
            for (uint32_t lane = 0; lane < LANES; lane++)
                lanes[lane] += (double)p[i + lane] * (double)q[i + lane];
        }
    }
    for (uint32_t lane = 0; lane < LANES; lane++)
        sum += lanes[lane];
    return sum;
}

static enum lh_status
run(const LhCall *call,
    double (*dot)(const LhRows *a, const void *x, const LhRows *b, const void *y))
{
    const LhRows dout = lh_rows_q(call, 0), o = lh_rows_q(call, 1), delta = lh_rows_stat(call, 2);

    if (!lh_parts_divide(call, 3, 0))
        return LH_STATUS_UNSUPPORTED;
    for (uint64_t b = 0; b < call->args->batch; b++) {
        for (uint64_t i = 0; i < call->args->nq; i++) {
            for (uint32_t head = 0; head < call->args->heads; head++)
                *lh_stat_at(&delta, b, i, head) = (float)dot(&dout, lh_rows_at(&dout, b, i, head),
                                                             &o, lh_rows_at(&o, b, i, head));
        }
    }
    return LH_STATUS_OK;
}

static enum lh_status
reference(const LhCall *call)
{
    return run(call, dot_reference);
}

static enum lh_status
cpu(const LhCall *call)
{
    return run(call, dot_fast);
}

const LhKernel lh_kernel_delta = {
    .name = "delta",
    .summary = "rowsum(do * o) of every query row",
    .effect = LH_EFFECT_DERIVE,
    .cost = LH_COST_MEMORY,
    .operands = {
        { "do", LH_OPERAND_READ, LH_TENSOR_DO, LH_ELEMENT_ACTIVATION },
        { "o", LH_OPERAND_READ, LH_TENSOR_O, LH_ELEMENT_ACTIVATION },
        { "delta", LH_OPERAND_WRITE, LH_TENSOR_DELTA, LH_ELEMENT_FP32 },
        { .access = LH_OPERAND_END },
    },
    .flops = flops,
    .memory_bytes = memory_bytes,
    .reference = reference,
    .cpu = cpu,
};
