/*
 * Attention of queries that meet all their keys in one call, as a library's kernel computes it:
 * writes the normalised o and the lse themselves, so that nothing is merged or normalised after it.
 * Traffic as attention_block.
 */
#include "kernels/cpu.h"
#include "kernels/sizes.h"

#include <stddef.h>

static uint64_t
memory_bytes(const LhKernelArgs *a, uint32_t element_bytes)
{
    const uint64_t inputs = (lh_q_elements(a) + lh_kv_elements(a)) * element_bytes;
    const uint64_t outputs = lh_q_elements(a) * element_bytes + lh_rows(a) * LH_STAT_BYTES;

    return inputs + outputs;
}

static bool
prepare(const LhCall *call, LhForward *f)
{
    *f = (LhForward){ .args = call->args,
                      .q = lh_rows_q(call, 0),
                      .k = lh_rows_k(call, 1),
                      .v = lh_rows_v(call, 1),
                      .o = lh_rows_q(call, 2),
                      .lse = lh_rows_stat(call, 3),
                      .normalise = true,
                      .scratch = call->scratch };
    return lh_parts_divide(call, 4, 1 << 1);
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

const LhKernel lh_kernel_attention = {
    .name = "attention",
    .summary = "complete attention of queries with all their keys, forward",
    .effect = LH_EFFECT_ATTEND,
    .cost = LH_COST_ATTENTION,
    .operands = {
        { "q", LH_OPERAND_READ, LH_TENSOR_Q, LH_ELEMENT_ACTIVATION },
        { "kv", LH_OPERAND_READ, LH_TENSOR_KV, LH_ELEMENT_ACTIVATION },
        { "o", LH_OPERAND_WRITE, LH_TENSOR_O, LH_ELEMENT_ACTIVATION },
        { "lse", LH_OPERAND_WRITE, LH_TENSOR_LSE, LH_ELEMENT_FP32 },
        { .access = LH_OPERAND_END },
    },
    .flops = lh_pair_flops_forward,
    .memory_bytes = memory_bytes,
    .reference = reference,
    .cpu = cpu,
    .scratch_bytes = lh_attention_forward_scratch,
};
