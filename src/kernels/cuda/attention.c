/* Attention on a GPU: calls as the launchers take them. What they do say the rows,
 * kernels/attention*.c and delta.c. */
#include "kernels/cuda/attention.h"

#include "kernels/cuda/host.h"
#include "kernels/cuda/kernels.h"

static enum lh_status
delta(const LhCall *call, void *stream)
{
    const LhKernelArgs *a = call->args;
    const LhCudaDelta d = { .dout = lh_cuda_rows(lh_rows_q(call, 0)),
                            .o = lh_cuda_rows(lh_rows_q(call, 1)),
                            .delta = lh_cuda_rows(lh_rows_stat(call, 2)),
                            .batch = a->batch,
                            .heads = a->heads,
                            .nq = (uint32_t)a->nq,
                            .dim = a->head_dim,
                            .storage = call->operands[0].storage };

    if (!lh_parts_divide(call, 3, 0) || call->operands[1].storage != call->operands[0].storage)
        return LH_STATUS_UNSUPPORTED;
    return lh_cuda_delta(&d, stream);
}

const LhCudaKernel lh_cuda_kernel_delta = { .run = delta };
