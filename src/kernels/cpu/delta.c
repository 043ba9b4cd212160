/* On a CPU; what it does says the row, kernels/delta.c. */
#include "kernels/cpu/elementwise.h"
#include "kernels/cpu/kernels.h"

#define BLOCK 256U
#define LANES 8U

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

const LhCpuKernel lh_cpu_kernel_delta = {
    .reference = reference,
    .fast = cpu,
};
