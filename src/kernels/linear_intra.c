/*
 * Linear attention among the tokens of a call, forward: o += ((q k^T) D) v with D[i][j] =
 * decay^(i - j) under the mask; no softmax, no scale. Distances are those of rows, so only a
 * causal mask takes a decay.
 */
#include "kernels/cpu.h"
#include "kernels/sizes.h"

#include <stddef.h>

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

static bool
prepare(const LhCall *call, LhForward *f)
{
    const uint64_t table_bytes = lh_weights_scratch(call->args->nq);
    void *rest = (char *)call->scratch + table_bytes;

    *f = (LhForward){ .args = call->args,
                      .q = lh_rows_q(call, 0),
                      .k = lh_rows_k(call, 1),
                      .v = lh_rows_v(call, 1),
                      .o = lh_rows_q(call, 2),
                      .load = !call->args->first,
                      .linear = true,
                      .decay = lh_decay_table(call->args, call->scratch),
                      .scratch = rest };
    return (f->decay == NULL || call->args->mask == LH_MASK_CAUSAL ||
            call->args->mask == LH_MASK_EMPTY) &&
           lh_parts_divide(call, 3, 1 << 1);
}

static enum lh_status
reference(const LhCall *call)
{
    LhForward f;

    if (!prepare(call, &f))
        return LH_STATUS_UNSUPPORTED;
    lh_attention_forward_reference(&f);
    return LH_STATUS_OK;
}

static enum lh_status
cpu(const LhCall *call)
{
    LhForward f;

    if (!prepare(call, &f))
        return LH_STATUS_UNSUPPORTED;
    if (lh_linear_tiles(call->args).count > 1)
        lh_linear_forward_tiles(&f);
    else
        lh_cpu()->forward(&f);
    return LH_STATUS_OK;
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
    .reference = reference,
    .cpu = cpu,
    .scratch_bytes = lh_linear_forward_scratch,
    .linear = true,
};
