/* SPDX-License-Identifier: Apache-2.0 */
#include "step/behaviour.h"

#include "model/framework_states.h"

/* Of a logit of 16 bits: read for the statistics of its row, read and written for the gradient
 * (Liger-Kernel and TransformerEngine, cross_entropy). */
#define FUSED_LOSS_TRAFFIC 6

const char *const lh_main_params_names[] = { "fp32", "none", NULL };
const char *const lh_exp_avg_names[] = { "fp32", "bf16", "fp16", "8bit", NULL };

static LhDtype
dtype_of(int type, LhDtype activation)
{
    return type == LH_TYPE_FP32 ? LH_DTYPE_FP32 : activation;
}

/* Bytes per logit that the loss holds in addition to the tables, which have 16-bit logits, fp32
 * logits, an fp32 gradient and, if all are live until it is cast, a 16-bit gradient. */
static uint32_t
unfused_loss(const LhFramework *f)
{
    const double named = f->logits_gradient_bytes > 0 ? 12 : 10, held = lh_framework_logit_bytes(f);

    return f->logits_fp32_bytes > 0 && held > named ? (uint32_t)(held - named) : 0;
}

static LhMoments
moments_of(const LhFramework *f, LhDtype activation)
{
    if (f->states_moments == LH_STATE_8BIT)
        return LH_MOMENTS_8BIT;
    return dtype_of(f->states_moments, activation) == LH_DTYPE_FP32 ? LH_MOMENTS_FP32
                                                                    : LH_MOMENTS_16BIT;
}

LhStepBehaviour
lh_step_behaviour(const LhFramework *f, LhShard shard, LhDtype activation)
{
    const LhDtype kept = dtype_of(f->states_gradient, activation);
    const LhDtype bucket = dtype_of(f->ddp_gradient_reduce, activation);
    const LhDtype gradient = shard == LH_SHARD_FSDP  ? dtype_of(f->fsdp_gradient_reduce, activation)
                             : shard == LH_SHARD_DDP ? bucket
                                                     : kept;
    /* Copies are separate buckets, and what the optimizer reads if its type is not that of the
     * reduction. */
    const bool ddp = shard == LH_SHARD_DDP, copied = ddp && gradient != kept;

    return (LhStepBehaviour){
        .unit_is_model = shard == LH_SHARD_FSDP && f->fsdp_unit == LH_FSDP_MODEL,
        .halves = f->fsdp_halves,
        .reshard = f->fsdp_reshard,
        .prefetch = (uint32_t)f->fsdp_prefetch,
        .overlap_reduce = shard == LH_SHARD_FSDP || f->ddp_overlap,
        .reduce_each = f->fsdp_reduce_every_micro_batch,
        .gradients_stay = shard < LH_SHARD_ZERO2 && !copied,
        .copy_bytes = (ddp && f->ddp_bucket_copies ? lh_dtype_bytes(bucket) : 0) +
                      (copied ? lh_dtype_bytes(kept) : 0),
        .overlap_tensor = f->tp_overlap_gather || f->tp_overlap_scatter,
        .gather_again = f->tp_overlap_gather,
        .gradients_fp32 = gradient == LH_DTYPE_FP32,
        .no_master = !f->states_master && activation != LH_DTYPE_FP32,
        .moments = moments_of(f, activation),
        .logits_fp32 = f->logits_fp32_bytes > 0,
        .logits_stay = f->logits_gradient_bytes > 0,
        .step_bytes = (uint32_t)f->states_step_bytes,
        .other_bytes = f->memory_other_bytes,
        .norm_traffic = (uint32_t)f->kernels_norm,
        .rotary_traffic = (uint32_t)f->kernels_rotary,
        .glu_traffic = (uint32_t)f->kernels_glu,
        .activation_traffic = (uint32_t)f->kernels_activation,
        .residual_traffic = (uint32_t)f->kernels_residual,
        .unfused_bytes = (uint32_t)f->kernels_unfused,
        .norm_kept_bytes = (uint32_t)f->kernels_norm_kept,
        .glu_kept_bytes = (uint32_t)f->kernels_glu_kept,
        .unfused_loss = unfused_loss(f),
        .loss_traffic = (uint32_t)f->kernels_loss,
        .optimizer_traffic = (uint32_t)lh_framework_optimizer_traffic(f),
        .cpu_optimizer_traffic = (uint32_t)f->kernels_cpu_optimizer,
    };
}

void
lh_step_fuse_loss(LhStepBehaviour *behaviour)
{
    behaviour->logits_fp32 = behaviour->logits_stay = false;
    behaviour->unfused_loss = 0;
    behaviour->loss_traffic = FUSED_LOSS_TRAFFIC;
}
