/*
 * One block of attention, forward, that stands alone: overwrites its block with a normalised o and
 * its lse, to be merged by merge_lse. Traffic as attention_fwd.
 */
#include "kernels/cpu.h"
#include "kernels/sizes.h"

#include <stddef.h>

static uint64_t
memory_bytes(const LhKernelArgs *a, uint32_t element_bytes)
{
    const uint64_t inputs = (lh_q_elements(a) + lh_kv_elements(a)) * element_bytes;
    const uint64_t block = lh_q_elements(a) * element_bytes + lh_rows(a) * LH_STAT_BYTES;

    return inputs + block;
}

static bool
prepare(const LhCall *call, LhForward *f)
{
    *f = (LhForward){ .args = call->args,
                      .q = lh_rows_q(call, 0),
                      .k = lh_rows_k(call, 1),
                      .v = lh_rows_v(call, 1),
                      .o = lh_rows_q(call, 2),
                      .lse = lh_rows_acc_stat(call, 2, 0),
                      .normalise = true,
                      .scratch = call->scratch };
    return lh_parts_divide(call, 3, 1 << 1);
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
    lh_cpu()->forward(&f);
    return LH_STATUS_OK;
}

const LhKernel lh_kernel_attention_block = {
    .name = "attention_block",
    .summary = "attention of one block, forward, as a normalised o with its lse",
    .effect = LH_EFFECT_ATTEND,
    .cost = LH_COST_ATTENTION,
    .operands = {
        { "q", LH_OPERAND_READ, LH_TENSOR_Q, LH_ELEMENT_ACTIVATION },
        { "kv", LH_OPERAND_READ, LH_TENSOR_KV, LH_ELEMENT_ACTIVATION },
        { "block", LH_OPERAND_WRITE, LH_TENSOR_ACC, LH_ELEMENT_ACTIVATION },
        { .access = LH_OPERAND_END },
    },
    .flops = lh_pair_flops_forward,
    .memory_bytes = memory_bytes,
    .reference = reference,
    .cpu = cpu,
    .scratch_bytes = lh_attention_forward_scratch,
};
