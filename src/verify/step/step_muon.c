/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Values on the way from a gradient to a weight: pieces of an update; a whole matrix after some
 * Newton-Schulz steps, of which LhValue.micro_batch is the number; its Gram matrix and the
 * polynomial of that, within a step; and pieces of the orthogonal result.
 */
#include "verify/step/step_muon.h"

#include "step/layer_info.h"
#include "step/muon/muon.h"
#include "verify/step/step_optimizer.h"
#include "verify/step/step_rows.h"

bool
lh_step_muon_has(const LhOp *op)
{
    switch (op->compute.kernel) {
    case LH_KERNEL_ID_muon_momentum:
    case LH_KERNEL_ID_muon_momentum16:
    case LH_KERNEL_ID_muon_update:
    case LH_KERNEL_ID_muon_update_direct:
        return true;
    default:
        return lh_proof_kernel(op)->args == LH_ARGS_MUON;
    }
}

static LhValue
take(LhStepValues *v, uint32_t g, uint32_t operand, uint32_t i)
{
    const LhRegion *region = &v->proof->ops[g].compute.regions[operand];

    return lh_step_values_take(v, g, region->slot, region->part + i);
}

static void
put(LhStepValues *v, uint32_t g, uint32_t operand, uint32_t i, LhValue value)
{
    const LhRegion *region = &v->proof->ops[g].compute.regions[operand];

    lh_step_values_put(v, g, region->slot, region->part + i, value);
}

static bool
has_parts(LhStepValues *v, uint32_t g, uint32_t operand, uint32_t count)
{
    const LhOp *op = &v->proof->ops[g];
    const LhRegion *region = &op->compute.regions[operand];

    if (region->count == count)
        return true;
    FIND_VALUE(g, region->slot, "takes %u pieces as its operand %s; needed: %u", region->count,
               lh_proof_kernel(op)->operands[operand].name, count);
    return false;
}

/* The same value of another kind. */
static LhValue
as(LhValue value, LhValueKind kind)
{
    value.kind = (uint8_t)kind;
    return value;
}

static bool
is_equal(double a, double b)
{
    return a <= b && a >= b;
}

static bool
is_muons(LhStepValues *v, uint32_t g, const LhValue *value)
{
    if (lh_muon_has(v->params, (LhStepWeight)value->what))
        return true;
    FIND_VALUE(g, -1, "works on a weight that Muon does not update");
    return false;
}

/* ---- pieces ---- */

static bool
check_momentum_call(LhStepValues *v, uint32_t g)
{
    const LhOp *op = &v->proof->ops[g];
    const LhKernelArgs *a = &op->compute.args;
    const LhStepParams *p = v->params;
    const bool narrow = op->compute.kernel == LH_KERNEL_ID_muon_momentum16;

    if (!a->first && is_equal(a->optimizer.beta1, p->muon.momentum) &&
        is_equal(a->optimizer.beta2, lh_muon_mixture(&p->muon)) &&
        is_equal(a->optimizer.clip, p->behaviour.clip) && is_equal(a->optimizer.learning_rate, 0) &&
        narrow == (p->behaviour.moments == LH_MOMENTS_16BIT))
        return true;
    FIND_VALUE(g, -1,
               "resets its momentum, or uses another type or other hyperparameters than the "
               "step's");
    return false;
}

static bool
apply_momentum(LhStepValues *v, uint32_t g)
{
    enum { NORM = 1, MOMENTUM, UPDATE };
    LhValue update;

    for (uint32_t i = 0; i <= UPDATE; i++) {
        if (!has_parts(v, g, i, 1))
            return false;
    }
    if (!lh_step_optimizer_takes_gradient(v, g, &update) || !is_muons(v, g, &update) ||
        !check_momentum_call(v, g) || !lh_step_optimizer_has_norm(v, g, NORM) ||
        !lh_step_optimizer_raises(v, g, MOMENTUM, LH_VALUE_MOMENTUM, &update))
        return false;
    update.set = 0;
    put(v, g, UPDATE, 0, as(update, LH_VALUE_UPDATE));
    return true;
}

static bool
check_update_call(LhStepValues *v, uint32_t g, const LhValue *update)
{
    const LhOp *op = &v->proof->ops[g];
    const LhKernelArgs *a = &op->compute.args;
    const bool master =
        v->params->module.attention.dtype != LH_DTYPE_FP32 && !v->params->behaviour.no_master;
    const uint64_t count = lh_step_values_piece_size(
        lh_step_values_weight_facts(v, (LhStepWeight)update->what, update->layer), update->piece);

    if (a->optimizer.count == count && !a->first &&
        is_equal(a->optimizer.learning_rate, v->params->learning_rate) &&
        is_equal(a->optimizer.weight_decay, 0) && is_equal(a->optimizer.clip, 0) &&
        is_equal(a->optimizer.beta1, 0) && is_equal(a->optimizer.beta2, 0) &&
        op->layer == update->layer && op->phase == LH_PHASE_OPTIMIZER &&
        master == (op->compute.kernel == LH_KERNEL_ID_muon_update))
        return true;
    FIND_VALUE(g, -1,
               "updates other states or elements than its piece of layer %u has, or with another "
               "learning rate than the step's",
               update->layer);
    return false;
}

static bool
apply_update(LhStepValues *v, uint32_t g)
{
    const LhOp *op = &v->proof->ops[g];
    const bool master = op->compute.kernel == LH_KERNEL_ID_muon_update;
    LhValue update;

    for (uint32_t i = 0; i < op->compute.regions_count; i++) {
        if (!has_parts(v, g, i, 1))
            return false;
    }
    update = take(v, g, 0, 0);
    if (update.kind != LH_VALUE_ORTHOGONAL)
        return lh_step_optimizer_finds_other(v, g, 0, &update, "a piece of an orthogonal update");
    return check_update_call(v, g, &update) &&
           (!master || lh_step_optimizer_raises(v, g, 1, LH_VALUE_MASTER, &update)) &&
           lh_step_optimizer_raises(v, g, master ? 2 : 1, LH_VALUE_WEIGHT, &update);
}

/* ---- matrices ---- */

/* The slice of a weight that the rank of an op has. */
static uint32_t
own_slice(const LhStepValues *v, uint32_t g, const LhValue *value)
{
    return lh_step_values_of_weight(v, LH_VALUE_WEIGHT, (LhStepWeight)value->what, value->layer,
                                    v->proof->op_rank[g], 0)
        .slice;
}

/* Checks the arguments of a call on the matrices of a weight: @step, or LH_NONE outside steps. */
static bool
check_matrices(LhStepValues *v, uint32_t g, const LhValue *value, uint32_t step)
{
    const LhOp *op = &v->proof->ops[g];
    const LhStepWeight weight = (LhStepWeight)value->what;
    LhKernelArgs want = step == LH_NONE ? lh_muon_args(v->plan, weight, value->layer)
                                        : lh_muon_step_args(v->plan, weight, value->layer, step);

    if (want.muon.slices > 1)
        want.muon.slice = own_slice(v, g, value);
    if (op->phase == LH_PHASE_OPTIMIZER && op->layer == value->layer &&
        lh_kernel_args_equal(LH_ARGS_MUON, &op->compute.args, &want))
        return true;
    FIND_VALUE(g, -1,
               "is called for, or labelled with, other matrices, slices or coefficients than those "
               "of %s of layer %u",
               lh_step_weight_name(weight), value->layer);
    return false;
}

/* Checks part @i of the slices of @of: each piece of each slice has its place. */
static bool
check_slice(LhStepValues *v, uint32_t g, uint32_t i, const LhValue *of)
{
    const LhKernelArgs *a = &v->proof->ops[g].compute.args;
    const LhValue have = take(v, g, 0, i);
    LhValue want = *of;

    want.piece = i % v->pieces;
    want.slice = a->muon.slices > 1 ? i / v->pieces / a->muon.replicas : own_slice(v, g, of);
    if (!lh_step_values_equal(&have, &want)) {
        g_autofree char *text = lh_proof_value_text(v, &want);

        return lh_step_optimizer_finds_other(v, g, 0, &have, text);
    }
    return true;
}

static bool
apply_join(LhStepValues *v, uint32_t g)
{
    const LhKernelArgs *a = &v->proof->ops[g].compute.args;
    const LhValue first = take(v, g, 0, 0);
    LhValue whole = as(first, LH_VALUE_WHOLE);
    const uint32_t parts = MAX(a->muon.slices, 1) * v->pieces;

    if (first.kind != LH_VALUE_UPDATE)
        return lh_step_optimizer_finds_other(v, g, 0, &first, "a piece of an update");
    if (!check_matrices(v, g, &first, LH_NONE) || !has_parts(v, g, 0, parts) ||
        !has_parts(v, g, 1, 1))
        return false;
    for (uint32_t i = 0; i < parts; i++) {
        if (!check_slice(v, g, i, &first))
            return false;
    }
    if (a->muon.slices > 1)
        whole.slice = LH_NONE;
    put(v, g, 1, 0, whole);
    return true;
}

/* A kernel with one operand, of a step that has begun. */
static bool
apply_within(LhStepValues *v, uint32_t g, LhValueKind from, LhValueKind to, const char *needed)
{
    const LhValue have = take(v, g, 0, 0);

    if (have.kind != from)
        return lh_step_optimizer_finds_other(v, g, 0, &have, needed);
    if (!has_parts(v, g, 0, 1) || !has_parts(v, g, 1, 1) ||
        !check_matrices(v, g, &have, have.micro_batch))
        return false;
    put(v, g, 1, 0, as(have, to));
    return true;
}

static bool
apply_step(LhStepValues *v, uint32_t g)
{
    const LhValue p = take(v, g, 0, 0), x = take(v, g, 1, 0), same = as(p, LH_VALUE_WHOLE);
    LhValue y = x;

    if (p.kind != LH_VALUE_POLYNOMIAL)
        return lh_step_optimizer_finds_other(v, g, 0, &p, "the polynomial of a Gram matrix");
    if (!lh_step_values_equal(&x, &same))
        return lh_step_optimizer_finds_other(v, g, 1, &x, "the matrices of the polynomial");
    if (!has_parts(v, g, 0, 1) || !has_parts(v, g, 1, 1) || !has_parts(v, g, 2, 1) ||
        !check_matrices(v, g, &x, x.micro_batch))
        return false;
    y.micro_batch++;
    put(v, g, 2, 0, y);
    return true;
}

static bool
apply_split(LhStepValues *v, uint32_t g)
{
    const LhValue x = take(v, g, 0, 0);
    LhValue piece = as(x, LH_VALUE_ORTHOGONAL);

    if (x.kind != LH_VALUE_WHOLE || x.micro_batch != v->params->muon.steps)
        return lh_step_optimizer_finds_other(v, g, 0, &x,
                                             "whole matrices after all Newton-Schulz steps");
    if (!check_matrices(v, g, &x, LH_NONE) || !has_parts(v, g, 0, 1) ||
        !has_parts(v, g, 1, v->pieces))
        return false;
    piece.micro_batch = 0;
    piece.slice = own_slice(v, g, &x);
    for (uint32_t i = 0; i < v->pieces; i++) {
        piece.piece = i;
        put(v, g, 1, i, piece);
    }
    return true;
}

static bool
apply_call(LhStepValues *v, uint32_t g)
{
    switch (v->proof->ops[g].compute.kernel) {
    case LH_KERNEL_ID_muon_momentum:
    case LH_KERNEL_ID_muon_momentum16:
        return apply_momentum(v, g);
    case LH_KERNEL_ID_muon_join:
        return apply_join(v, g);
    case LH_KERNEL_ID_muon_gram:
        return apply_within(v, g, LH_VALUE_WHOLE, LH_VALUE_GRAM, "whole matrices");
    case LH_KERNEL_ID_muon_square:
        return apply_within(v, g, LH_VALUE_GRAM, LH_VALUE_POLYNOMIAL, "Gram matrices");
    case LH_KERNEL_ID_muon_step:
        return apply_step(v, g);
    case LH_KERNEL_ID_muon_split:
        return apply_split(v, g);
    default:
        return apply_update(v, g);
    }
}

void
lh_step_muon_apply(LhStepValues *v, uint32_t op)
{
    if (!apply_call(v, op))
        lh_step_rows_write_suspect(v, op);
}
