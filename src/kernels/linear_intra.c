/*
 * Linear attention among the tokens of a call, forward: o += ((q k^T) D) v with D[i][j] =
 * decay^(i - j) under the mask; no softmax, no scale. Distances are those of rows, so only a
 * causal mask takes a decay.
 */
#include "kernels/sizes.h"

static uint64_t
flops(const LhKernelArgs *a)
{
    const LhLinearTiles t = lh_linear_tiles(a);
    const uint64_t decays = t.count > 2 ? t.count - 2 : 0; /* of a state that holds something */

    return 4 * (uint64_t)a->batch * a->heads * a->head_dim * t.pairs +
           lh_state_flops(a, t.before + t.behind + decays);
}

static uint64_t
memory_bytes(const LhKernelArgs *a, uint32_t element_bytes)
{
    const uint64_t o = (a->first ? 1 : 2) * lh_q_elements(a);

    return (lh_q_elements(a) + lh_kv_elements(a) + o) * element_bytes;
}

const LhKernel lh_kernel_linear_intra = {
    .name = "linear_intra",
    .summary = "linear attention among the tokens of a block, forward",
    .effect = LH_EFFECT_ATTEND,
    .cost = LH_COST_GEMM,
    .operands = {
        { "q", LH_OPERAND_READ, LH_TENSOR_Q, LH_ELEMENT_ACTIVATION },
        { "kv", LH_OPERAND_READ, LH_TENSOR_KV, LH_ELEMENT_ACTIVATION },
        { "o", LH_OPERAND_UPDATE, LH_TENSOR_O, LH_ELEMENT_EITHER },
        { .access = LH_OPERAND_END },
    },
    .flops = flops,
    .memory_bytes = memory_bytes,
    .linear = true,
};
