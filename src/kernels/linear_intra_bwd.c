/*
 * Backward of linear_intra: dq += ((do v^T) D) k, dk += ((do v^T) D)^T q, dv += ((q k^T) D)^T do.
 */
#include "kernels/sizes.h"

/* dq with the states of the tokens before; then dk and dv, backwards, with their gradients. */
static uint64_t
flops(const LhKernelArgs *a)
{
    const LhLinearTiles t = lh_linear_tiles(a);
    const uint64_t decays = t.count > 2 ? t.count - 2 : 0;

    return 10 * (uint64_t)a->batch * a->heads * a->head_dim * t.pairs +
           lh_state_flops(a, 3 * t.before + 2 * t.behind + 2 * decays);
}

/* Of several tiles the way back reads do, k and v a second time. */
static uint64_t
memory_bytes(const LhKernelArgs *a, uint32_t element_bytes)
{
    const uint64_t again = lh_linear_tiles(a).count > 1 ? lh_q_elements(a) + lh_kv_elements(a) : 0;
    const uint64_t inputs = 2 * lh_q_elements(a) + lh_kv_elements(a) + again;
    const uint64_t gradients = lh_q_elements(a) + lh_kv_elements(a);

    return (inputs + (a->first ? 1 : 2) * gradients) * element_bytes;
}

const LhKernel lh_kernel_linear_intra_bwd = {
    .name = "linear_intra_bwd",
    .summary = "linear attention among the tokens of a block, backward",
    .effect = LH_EFFECT_ATTEND_GRAD,
    .cost = LH_COST_GEMM,
    .operands = {
        { "q", LH_OPERAND_READ, LH_TENSOR_Q, LH_ELEMENT_ACTIVATION },
        { "do", LH_OPERAND_READ, LH_TENSOR_DO, LH_ELEMENT_ACTIVATION },
        { "kv", LH_OPERAND_READ, LH_TENSOR_KV, LH_ELEMENT_ACTIVATION },
        { "dq", LH_OPERAND_UPDATE, LH_TENSOR_DQ, LH_ELEMENT_EITHER },
        { "dkv", LH_OPERAND_UPDATE, LH_TENSOR_DKV, LH_ELEMENT_EITHER },
        { .access = LH_OPERAND_END },
    },
    .flops = flops,
    .memory_bytes = memory_bytes,
    .linear = true,
};
