/* SPDX-License-Identifier: Apache-2.0 */
#include "step/kernel_args.h"

#define IS_ONE_OF(kernel, ...)                                                                     \
    is_kernel(kernel, (const LhKernelId[]){ __VA_ARGS__ },                                         \
              G_N_ELEMENTS(((const LhKernelId[]){ __VA_ARGS__ })))

static bool
is_kernel(LhKernelId kernel, const LhKernelId *list, unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        if (list[i] == kernel)
            return true;
    }
    return false;
}

/* Traffic that the framework gives for a kernel; a gradient's is twice that. */
static uint32_t
traffic_of(const LhStepPlan *plan, LhKernelId kernel)
{
    const LhStepBehaviour *b = &plan->params.behaviour;

    switch (kernel) {
    case LH_KERNEL_ID_rms_norm:
    case LH_KERNEL_ID_layer_norm:
        return b->norm_traffic;
    case LH_KERNEL_ID_rms_norm_bwd:
    case LH_KERNEL_ID_layer_norm_bwd:
        return 2 * b->norm_traffic;
    case LH_KERNEL_ID_rotary_q:
    case LH_KERNEL_ID_rotary_kv:
    case LH_KERNEL_ID_silu_q:
    case LH_KERNEL_ID_silu_kv:
        return b->rotary_traffic;
    case LH_KERNEL_ID_rotary_q_bwd:
    case LH_KERNEL_ID_rotary_kv_bwd:
    case LH_KERNEL_ID_silu_q_bwd:
    case LH_KERNEL_ID_silu_kv_bwd:
        return 2 * b->rotary_traffic;
    case LH_KERNEL_ID_glu:
    case LH_KERNEL_ID_gate:
        return b->glu_traffic;
    case LH_KERNEL_ID_glu_bwd:
    case LH_KERNEL_ID_gate_bwd:
        return 2 * b->glu_traffic;
    case LH_KERNEL_ID_gelu:
        return b->activation_traffic;
    case LH_KERNEL_ID_gelu_bwd:
        return 2 * b->activation_traffic;
    case LH_KERNEL_ID_residual:
        return b->residual_traffic;
    case LH_KERNEL_ID_loss:
        return b->loss_traffic;
    case LH_KERNEL_ID_loss_stats:
    case LH_KERNEL_ID_cast_hidden: /* counted with the loss */
        return b->loss_traffic > 0 ? 1 : 0;
    default:
        return 0;
    }
}

/* Traffic of a layer's unfused kernels, counted with its second norm. Forward they write and read
 * what they keep; backward they read it, and move as much again for gradients. */
static uint32_t
unfused_traffic(const LhStepPlan *plan, const LhStepNode *node)
{
    const uint32_t once = plan->params.behaviour.unfused_bytes;
    const bool forward = IS_ONE_OF(node->kernel, LH_KERNEL_ID_rms_norm, LH_KERNEL_ID_layer_norm);

    if (node->operands[1].kind != LH_STEP_WEIGHT || node->operands[1].what != LH_STEP_W_NORM2)
        return 0;
    return (forward ? 2 : 4) * once;
}

/* Role whose rows a kernel with row arguments counts: the result of the forward call. */
static LhStepRole
counted_role(const LhStepNode *node)
{
    if (IS_ONE_OF(node->kernel, LH_KERNEL_ID_glu, LH_KERNEL_ID_glu_bwd, LH_KERNEL_ID_gelu,
                  LH_KERNEL_ID_gelu_bwd))
        return node->operands[0].what == LH_STEP_EXPERT_UP ? LH_STEP_EXPERT_P : LH_STEP_P;
    for (unsigned i = 0; i < LH_STEP_OPERANDS; i++) {
        if (node->operands[i].kind == LH_STEP_IN || node->operands[i].kind == LH_STEP_IN_LAST)
            return (LhStepRole)node->operands[i].what;
    }
    return (LhStepRole)node->operands[2].what; /* embed: its result */
}

/* A product may be in tiles, or take the last row of each sequence alone. */
static LhKernelArgs
product_args(const LhStepPlan *plan, const LhStepNode *node, uint32_t layer)
{
    const LhStepMatrix matrix =
        lh_step_matrix(plan, lh_step_held_weight(plan, (LhStepWeight)node->matrix), layer);
    LhKernelArgs args = lh_step_product(plan, &matrix);

    args.product.m /= MAX(lh_step_tiles(plan, (LhStepTiling)node->tiling), 1);
    if (lh_step_rows((LhStepRole)node->operands[0].what).last)
        args.product.m = plan->params.module.attention.batch;
    args.product.fp32 = node->matrix == LH_STEP_W_HEAD && plan->params.behaviour.head_fp32;
    return args;
}

LhKernelArgs
lh_step_kernel_args(const LhStepPlan *plan, const LhStepNode *node, uint32_t layer)
{
    const LhAttention *a = &plan->params.module.attention;
    const LhStepKind kind = lh_step_layer_kind(plan, layer);
    const LhHeadsLayout layout = { .batch = a->batch,
                                   .members = plan->params.tensor_parallel * plan->cuts };
    const uint32_t traffic = traffic_of(plan, node->kernel);
    LhKernelArgs args = { 0 };

    switch (lh_kernels[node->kernel]->args) {
    case LH_ARGS_PRODUCT:
        return product_args(plan, node, layer);
    case LH_ARGS_EXPERTS:
        args.experts.rows = plan->rows;
        args.experts.width = plan->model.hidden_size;
        args.experts.experts = lh_step_experts(plan);
        args.experts.choices = lh_step_choices(plan);
        break;
    case LH_ARGS_ELEMENTS: {
        const LhStepOperand *out =
            &node->operands[node->operands[2].kind == LH_STEP_OPERAND_END ? 1 : 2];
        const LhStepShape shape =
            lh_step_role_shape(plan, lh_step_role(plan, (LhStepRole)out->what), layer);

        args.elements.count = shape.rows * shape.width;
        if (lh_step_rows((LhStepRole)out->what).tiling != (LhStepTiling)node->tiling)
            args.elements.count /= MAX(lh_step_tiles(plan, (LhStepTiling)node->tiling), 1);
        args.elements.traffic = traffic;
        break;
    }
    case LH_ARGS_HEADS: {
        const LhProgramParams *module = &plan->modules[kind].forward->params;

        args.to_heads.rows = plan->rows / a->batch / plan->segments;
        args.to_heads.base = kind == LH_STEP_LINEAR ? 0 : plan->model.rotary_base;
        args.to_heads.layout = layout;
        args.to_heads.heads = module->attention.heads;
        args.to_heads.groups = module->attention.groups;
        args.to_heads.head_dim = module->attention.head_dim;
        args.to_heads.traffic = traffic;
        break;
    }
    case LH_ARGS_ROWS:
    default: {
        const LhStepShape shape =
            lh_step_role_shape(plan, lh_step_role(plan, counted_role(node)), layer);

        args.rows.rows = shape.rows;
        args.rows.width = shape.width;
        args.rows.vocabulary = plan->model.vocab_size;
        args.rows.count = lh_step_vocabulary(plan);
        args.rows.tokens =
            a->batch * a->seq_length * plan->params.data_parallel * plan->params.micro_batches;
        args.rows.epsilon = LH_STEP_NORM_EPSILON;
        args.rows.traffic = traffic + unfused_traffic(plan, node);
        if (node->kernel == LH_KERNEL_ID_last_rows) {
            args.rows.count = shape.rows / a->batch / shape.parts;
            args.rows.rows = a->batch;
        }
    }
    }
    return args;
}
