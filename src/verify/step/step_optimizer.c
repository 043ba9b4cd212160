/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ops that the table of a layer does not have: sums of gradients of several micro-batches, the norm
 * of all gradients, and the optimizer, which runs once for each piece of a weight, with all terms
 * of its gradient.
 */
#include "verify/step/step_optimizer.h"

#include "step/layer_info.h"
#include "step/memory/host_states.h"
#include "step/muon/muon.h"
#include "verify/step/step_rows.h"
#include "verify/step/step_values.h"

/* A step of AdamW: what it updates, and the type of the moments. */
typedef struct {
    LhKernelId kernel;
    bool master;
    LhMoments moments;
} AdamKernel;

static const AdamKernel adam_kernels[] = {
    { LH_KERNEL_ID_adam, true, LH_MOMENTS_FP32 },
    { LH_KERNEL_ID_adam_moments16, true, LH_MOMENTS_16BIT },
    { LH_KERNEL_ID_adam_moments8, true, LH_MOMENTS_8BIT },
    { LH_KERNEL_ID_adam_fp32, false, LH_MOMENTS_FP32 },
    { LH_KERNEL_ID_adam_direct, false, LH_MOMENTS_FP32 },
    { LH_KERNEL_ID_adam_direct_moments16, false, LH_MOMENTS_16BIT },
    { LH_KERNEL_ID_adam_direct_moments8, false, LH_MOMENTS_8BIT },
};

static const AdamKernel *
find_adam(LhKernelId kernel)
{
    for (gsize i = 0; i < G_N_ELEMENTS(adam_kernels); i++) {
        if (adam_kernels[i].kernel == kernel)
            return &adam_kernels[i];
    }
    return NULL;
}

bool
lh_step_optimizer_has(const LhOp *op)
{
    return op->compute.kernel == LH_KERNEL_ID_accumulate ||
           op->compute.kernel == LH_KERNEL_ID_grad_norm || find_adam(op->compute.kernel) != NULL;
}

static LhValue
take_operand(LhStepValues *v, uint32_t g, uint32_t i)
{
    const LhRegion *region = &v->proof->ops[g].compute.regions[i];

    return lh_step_values_take(v, g, region->slot, region->part);
}

static void
put_operand(LhStepValues *v, uint32_t g, uint32_t i, LhValue value)
{
    const LhRegion *region = &v->proof->ops[g].compute.regions[i];

    lh_step_values_put(v, g, region->slot, region->part, value);
}

/* Reports an operand that is not the required value. */
static bool
find_other(LhStepValues *v, uint32_t g, uint32_t i, const LhValue *have, const char *needed)
{
    const LhOp *op = &v->proof->ops[g];
    const LhRegion *region = &op->compute.regions[i];
    g_autofree char *slot = lh_cell_text(v->proof->program, region->slot, region->part);
    g_autofree char *text = lh_proof_value_text(v, have);

    if (have->kind != LH_VALUE_SUSPECT)
        FIND_VALUE(g, region->slot, "finds %s in slot %s, its operand %s; needed: %s", text, slot,
                   lh_proof_kernel(op)->operands[i].name, needed);
    return false;
}

/* Reads a gradient, with all of its terms if @complete. */
static bool
take_gradient(LhStepValues *v, uint32_t g, bool complete, LhValue *gradient)
{
    uint32_t terms;

    *gradient = take_operand(v, g, 0);
    if (gradient->kind != LH_VALUE_GRADIENT)
        return find_other(v, g, 0, gradient, "the gradient of a weight");
    terms = lh_step_values_weight_facts(v, (LhStepWeight)gradient->what, gradient->layer)->terms;
    if (complete && lh_sets_size(&v->sets, gradient->set) != terms)
        return find_other(v, g, 0, gradient, "all of its terms");
    return true;
}

static bool
check_label(LhStepValues *v, uint32_t g, const LhValue *gradient, LhPhase phase)
{
    const LhOp *op = &v->proof->ops[g];

    if (op->layer != gradient->layer) {
        FIND_VALUE(g, -1, "is labelled layer %u, but works on layer %u", op->layer,
                   gradient->layer);
        return false;
    }
    if (op->phase == phase)
        return true;
    FIND_VALUE(g, -1, "is labelled phase %s, but belongs to phase %s", lh_phase_names[op->phase],
               lh_phase_names[phase]);
    return false;
}

/* Checks that the call covers the elements of its piece. */
static bool
check_piece_count(LhStepValues *v, uint32_t g, const LhValue *gradient)
{
    const uint64_t count = v->proof->ops[g].compute.args.optimizer.count;
    const uint64_t want = lh_step_values_piece_size(
        lh_step_values_weight_facts(v, (LhStepWeight)gradient->what, gradient->layer),
        gradient->piece);

    if (count == want)
        return true;
    FIND_VALUE(g, -1,
               "is called for %" G_GUINT64_FORMAT
               " elements of a piece that has %" G_GUINT64_FORMAT,
               count, want);
    return false;
}

/* y += x, of the same piece, with no term twice. */
static bool
apply_accumulate(LhStepValues *v, uint32_t g)
{
    const LhOp *op = &v->proof->ops[g];
    LhValue sum, target;

    if (!take_gradient(v, g, false, &sum) || !check_label(v, g, &sum, LH_PHASE_BACKWARD))
        return false;
    if (op->compute.args.elements.count <
        lh_step_values_piece_size(lh_step_values_weight_facts(v, (LhStepWeight)sum.what, sum.layer),
                                  sum.piece)) {
        FIND_VALUE(g, -1, "adds up fewer elements than the piece has");
        return false;
    }
    if (!lh_proof_overwrites(op, 1)) {
        target = take_operand(v, g, 1);
        if (!lh_step_values_equal(&target, &sum))
            return find_other(v, g, 1, &target, "the gradient of the same piece");
        sum.set = lh_sets_unite(&v->sets, sum.set, target.set);
        if (sum.set == LH_NONE)
            return find_other(v, g, 1, &target, "terms that are not in the sum yet");
    }
    put_operand(v, g, 1, sum);
    return true;
}

/* norm += squares of a piece, each piece once. */
static bool
apply_norm(LhStepValues *v, uint32_t g)
{
    const LhOp *op = &v->proof->ops[g];
    LhValue gradient, norm = { .kind = LH_VALUE_NORM };
    const LhWeightFacts *facts;
    uint32_t term;

    if (!take_gradient(v, g, true, &gradient) || !check_piece_count(v, g, &gradient) ||
        !check_label(v, g, &gradient, LH_PHASE_OPTIMIZER))
        return false;
    facts = lh_step_values_weight_facts(v, (LhStepWeight)gradient.what, gradient.layer);
    term = lh_sets_one(&v->sets, facts->first + gradient.slice * facts->held + gradient.piece);
    if (!lh_proof_overwrites(op, 1)) {
        norm = take_operand(v, g, 1);
        if (norm.kind != LH_VALUE_NORM)
            return find_other(v, g, 1, &norm, "the norm of other gradients");
        term = lh_sets_unite(&v->sets, norm.set, term);
        if (term == LH_NONE)
            return find_other(v, g, 1, &norm, "a norm that does not have this piece yet");
    }
    norm.set = term;
    put_operand(v, g, 1, norm);
    return true;
}

/* Checks the hyperparameters of the optimizer: the user's, and the same in all calls. */
static bool
check_numbers(LhStepValues *v, uint32_t g)
{
    const LhKernelArgs *a = &v->proof->ops[g].compute.args, *b;
    const LhStepParams *p = v->params;

    if (v->adam == NULL)
        v->adam = a;
    b = v->adam;
    if (!a->first && a->optimizer.learning_rate <= p->learning_rate &&
        a->optimizer.learning_rate >= p->learning_rate && a->optimizer.clip <= p->behaviour.clip &&
        a->optimizer.clip >= p->behaviour.clip && a->optimizer.beta1 <= b->optimizer.beta1 &&
        a->optimizer.beta1 >= b->optimizer.beta1 && a->optimizer.beta2 <= b->optimizer.beta2 &&
        a->optimizer.beta2 >= b->optimizer.beta2 && a->optimizer.epsilon <= b->optimizer.epsilon &&
        a->optimizer.epsilon >= b->optimizer.epsilon &&
        a->optimizer.weight_decay <= b->optimizer.weight_decay &&
        a->optimizer.weight_decay >= b->optimizer.weight_decay)
        return true;
    FIND_VALUE(g, -1, "resets its moments, or uses other hyperparameters than the step's");
    return false;
}

/* Checks that gradients are clipped by the norm of all of them. Without clipping the norm is
 * ignored. */
static bool
check_norm(LhStepValues *v, uint32_t g, uint32_t operand)
{
    const LhValue norm = take_operand(v, g, operand);

    if (v->params->behaviour.clip <= 0 ||
        (norm.kind == LH_VALUE_NORM && lh_sets_size(&v->sets, norm.set) == v->norm_terms))
        return true;
    return find_other(v, g, operand, &norm, "the norm of all gradients");
}

/* Moves operand @i, which belongs to the weight of @gradient, from its value before the step to
 * that after it. */
static bool
raise_state(LhStepValues *v, uint32_t g, uint32_t i, LhValueKind kind, const LhValue *gradient)
{
    const LhValue have = take_operand(v, g, i);
    LhValue want = *gradient;

    want.kind = (uint8_t)kind;
    want.set = 0;
    if (!lh_step_values_equal(&have, &want)) {
        g_autofree char *text = lh_proof_value_text(v, &want);

        return find_other(v, g, i, &have, text);
    }
    want.of = 1;
    put_operand(v, g, i, want);
    return true;
}

/* Checks that the kernel updates what the step's optimizer does, with moments of its type. */
static bool
check_kernel(LhStepValues *v, uint32_t g, const AdamKernel *adam, LhStepWeight weight)
{
    const bool fp32 = v->params->module.attention.dtype == LH_DTYPE_FP32;
    const bool master = !fp32 && !v->params->behaviour.no_master;

    if (lh_muon_has(v->params, weight)) {
        FIND_VALUE(g, -1, "updates %s by AdamW, which is Muon's", lh_step_weight_name(weight));
        return false;
    }
    if (adam->master == master && adam->moments == v->params->behaviour.moments &&
        (adam->kernel == LH_KERNEL_ID_adam_fp32) ==
            (fp32 && v->params->behaviour.moments == LH_MOMENTS_FP32))
        return true;
    FIND_VALUE(g, -1, "updates other states than those of the step's optimizer");
    return false;
}

/* Puts the updated weight into a temporary slot of the host, from which it is copied to where the
 * device has it. */
static bool
put_updated(LhStepValues *v, uint32_t g, uint32_t i, const LhValue *gradient)
{
    LhValue updated = *gradient;

    updated.kind = LH_VALUE_WEIGHT;
    updated.set = 0;
    updated.of = 1;
    put_operand(v, g, i, updated);
    return true;
}

/* The memory whose kernel updates the weight is that of the step's policy. */
static bool
check_place(LhStepValues *v, uint32_t g, const LhValue *gradient)
{
    const LhValuePlace place = lh_step_values_place(v, v->proof->op_rank[g]);
    const bool on_cpu = lh_op_on_cpu(v->proof->program, &v->proof->ops[g]);

    if (on_cpu ==
        lh_step_is_host_state(v->plan, place.stage, (LhStepWeight)gradient->what, gradient->layer))
        return true;
    FIND_VALUE(g, -1, "updates a weight on the %s, but the optimizer's states are %s",
               on_cpu ? "CPU" : "device", on_cpu ? "not offloaded" : "offloaded");
    return false;
}

static bool
apply_adam(LhStepValues *v, uint32_t g)
{
    enum { NORM = 1, CLOCK };
    const AdamKernel *adam = find_adam(v->proof->ops[g].compute.kernel);
    const LhRegion *updated = NULL;
    uint32_t i = CLOCK;
    LhValue gradient;

    if (!take_gradient(v, g, true, &gradient) || !check_piece_count(v, g, &gradient) ||
        !check_label(v, g, &gradient, LH_PHASE_OPTIMIZER) ||
        !check_kernel(v, g, adam, (LhStepWeight)gradient.what) || !check_place(v, g, &gradient) ||
        !check_numbers(v, g) || !check_norm(v, g, NORM) ||
        !raise_state(v, g, i++, LH_VALUE_CLOCK, &gradient))
        return false;
    if ((adam->master && !raise_state(v, g, i++, LH_VALUE_MASTER, &gradient)) ||
        !raise_state(v, g, i++, LH_VALUE_MOMENTS, &gradient) ||
        (adam->moments == LH_MOMENTS_8BIT && !raise_state(v, g, i++, LH_VALUE_SCALES, &gradient)))
        return false;
    updated = &v->proof->ops[g].compute.regions[i];
    return v->proof->program->slots[updated->slot].role == LH_SLOT_TEMP
               ? put_updated(v, g, i, &gradient)
               : raise_state(v, g, i, LH_VALUE_WEIGHT, &gradient);
}

/* Checks that a call works on one piece. */
static bool
check_parts(LhStepValues *v, uint32_t g)
{
    const LhOp *op = &v->proof->ops[g];

    for (uint32_t i = 0; i < op->compute.regions_count; i++) {
        if (op->compute.regions[i].count == 1)
            continue;
        FIND_VALUE(g, op->compute.regions[i].slot, "takes %u pieces as its operand %s; needed: 1",
                   op->compute.regions[i].count, lh_proof_kernel(op)->operands[i].name);
        return false;
    }
    return true;
}

void
lh_step_optimizer_apply(LhStepValues *v, uint32_t op)
{
    bool applied = check_parts(v, op);

    if (applied) {
        switch (v->proof->ops[op].compute.kernel) {
        case LH_KERNEL_ID_accumulate:
            applied = apply_accumulate(v, op);
            break;
        case LH_KERNEL_ID_grad_norm:
            applied = apply_norm(v, op);
            break;
        default:
            applied = apply_adam(v, op);
        }
    }
    if (!applied)
        lh_step_rows_write_suspect(v, op);
}

/* ---- for Muon ---- */

bool
lh_step_optimizer_takes_gradient(LhStepValues *v, uint32_t op, LhValue *gradient)
{
    return take_gradient(v, op, true, gradient) && check_piece_count(v, op, gradient) &&
           check_label(v, op, gradient, LH_PHASE_OPTIMIZER);
}

bool
lh_step_optimizer_has_norm(LhStepValues *v, uint32_t op, uint32_t operand)
{
    return check_norm(v, op, operand);
}

bool
lh_step_optimizer_raises(LhStepValues *v, uint32_t op, uint32_t operand, LhValueKind kind,
                         const LhValue *of)
{
    return raise_state(v, op, operand, kind, of);
}

bool
lh_step_optimizer_finds_other(LhStepValues *v, uint32_t op, uint32_t operand, const LhValue *have,
                              const char *needed)
{
    return find_other(v, op, operand, have, needed);
}
