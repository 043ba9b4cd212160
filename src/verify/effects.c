/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Effects of compute ops on symbolic contents: one rule per LhEffect. A rule that finds an error
 * marks what the op writes as suspect, so that one mistake is reported once and not again by every
 * later op.
 */
#include "verify/verify_private.h"

#include "verify/layer_boundary.h"

#include <string.h>

static void
suspect(LhSymbolicExec *cover, uint32_t op, const LhRegion *region)
{
    for (uint32_t i = 0; i < region->count; i++)
        lh_symbolic_write_none(cover, op, region, i, LH_ROW_NONE)->state = LH_CELL_SUSPECT;
}

/* Marks everything that a compute op writes as suspect. */
static void
suspect_all(LhSymbolicExec *cover, uint32_t g)
{
    const LhOp *op = &cover->proof->ops[g];

    for (uint32_t i = 0; i < op->compute.regions_count; i++) {
        if (lh_proof_kernel(op)->operands[i].access != LH_OPERAND_READ)
            suspect(cover, g, &op->compute.regions[i]);
    }
}

/* The part of a source that corresponds to part @i of the target. */
static uint32_t
source_part(const LhOp *op, const LhRegion *source, uint32_t i)
{
    const bool reversed =
        lh_proof_kernel(op)->args == LH_ARGS_ATTENTION && op->compute.args.reversed;

    return reversed ? source->count - 1 - i : i;
}

/* Adds the corresponding part of a source to part @i of the target. Finished results are added
 * only to finished results. @weighed: the source is divided by the sum over the whole row. */
static bool
add_part(LhSymbolicExec *cover, uint32_t g, const LhRegion *source, const LhRegion *target,
         uint32_t i, bool weighed)
{
    const uint32_t part = source_part(&cover->proof->ops[g], source, i);
    const LhTensorKind kind = cover->slots[target->slot].kind;
    const LhCell *from = lh_symbolic_read(cover, g, source, part);
    LhAddend addend = { .region = source, .i = part };
    LhCell *into =
        lh_symbolic_cell(cover, cover->proof->op_rank[g], target->slot, target->part + i);
    const bool fresh = into->rows.segment == LH_ROW_ANY;

    if (from == NULL)
        return false;
    if (from->rows.segment == LH_ROW_ANY)
        return true;
    if (from->rows.segment == LH_ROW_NONE || (!fresh && into->ended != from->ended)) {
        COVERAGE(g, source->slot, "cannot add slot %s to slot %s: one of them holds no partial sum",
                 cover->slots[source->slot].name, cover->slots[target->slot].name);
        return false;
    }
    addend.norm = weighed ? LH_NORM_ROW : lh_symbolic_norm(cover->slots[source->slot].kind, from);
    into = lh_symbolic_open(cover, g, target, i, from->rows);
    if (into == NULL || !lh_symbolic_join_norm(cover, g, &addend, kind, fresh, into))
        return false;
    into->ended = from->ended;
    return lh_symbolic_merge(cover, g, target, into, from);
}

/* Rows in a part of a tensor; 0: rows are not counted. */
static uint64_t
part_rows(const LhSymbolicExec *cover, LhTensorKind kind)
{
    if (lh_tensor_is_outside(kind))
        return 0;
    if (kind == LH_TENSOR_STATE || kind == LH_TENSOR_DSTATE)
        return cover->proof->program->params.attention.head_dim;
    return cover->rows;
}

/* Checks the row counts in the arguments of elementwise kernels: key rows for k, v and their
 * gradients, otherwise query rows. */
static bool
check_elementwise_rows(LhSymbolicExec *cover, uint32_t g, uint32_t operand)
{
    const LhOp *op = &cover->proof->ops[g];
    const LhRegion *region = &op->compute.regions[operand];
    const LhTensorKind kind = cover->slots[region->slot].kind;
    const bool keys = lh_tensor_is_kv(kind);
    const uint64_t rows = region->count * part_rows(cover, kind);

    if (rows == 0 ||
        (op->compute.args.nq == (keys ? 0 : rows) && op->compute.args.nk == (keys ? rows : 0)))
        return true;
    COVERAGE(g, region->slot,
             "is called for %" G_GUINT64_FORMAT " query and %" G_GUINT64_FORMAT
             " key rows, but slot %s has %" G_GUINT64_FORMAT " rows of %s there",
             op->compute.args.nq, op->compute.args.nk, cover->slots[region->slot].name, rows,
             lh_tensor_names[kind]);
    return false;
}

/* Weights have their own parts, which correspond to no rows. */
static bool
is_weight_slot(const LhSymbolicExec *cover, const LhRegion *region)
{
    return cover->slots[region->slot].kind == LH_TENSOR_WEIGHT;
}

bool
lh_symbolic_check_counts(LhSymbolicExec *cover, uint32_t g)
{
    const LhOp *op = &cover->proof->ops[g];
    const LhRegion *target = &op->compute.regions[op->compute.regions_count - 1];

    for (uint32_t i = 0; i + 1 < op->compute.regions_count; i++) {
        const LhRegion *region = &op->compute.regions[i];

        if (region->count != target->count && !is_weight_slot(cover, region)) {
            COVERAGE(g, region->slot, "takes %u parts of slot %s beside %u of slot %s",
                     region->count, cover->slots[region->slot].name, target->count,
                     cover->slots[target->slot].name);
            return false;
        }
    }
    return check_elementwise_rows(cover, g, op->compute.regions_count - 1u);
}

/* Checks part @i of the statistic that weighs what was added to the target: it must cover all
 * keys. */
static bool
check_weight(LhSymbolicExec *cover, uint32_t g, const LhRegion *weight, const LhRegion *target,
             uint32_t i)
{
    const LhCell *lse = lh_symbolic_read_rows(cover, g, weight, i);
    const LhCell *sum = lh_symbolic_read_rows(cover, g, target, i);

    if (lse == NULL || sum == NULL)
        return false;
    if (lh_rows_equal(lse->rows, sum->rows) &&
        lse->set == lh_symbolic_complete_number(cover, LH_FAMILY_OUTPUT, lse->rows.segment))
        return true;
    COVERAGE(g, weight->slot,
             "weighs by slot %s, which is not the complete statistic of the rows in slot %s",
             cover->slots[weight->slot].name, cover->slots[target->slot].name);
    return false;
}

/* Whether operand @source is a weight of the others and is not added itself. */
static bool
is_weight(const LhSymbolicExec *cover, const LhOp *op, uint32_t source, LhTensorKind target)
{
    return target == LH_TENSOR_O &&
           cover->slots[op->compute.regions[source].slot].kind == LH_TENSOR_LSE;
}

static bool
apply_add(LhSymbolicExec *cover, uint32_t g)
{
    const LhOp *op = &cover->proof->ops[g];
    const uint32_t last = op->compute.regions_count - 1u;
    const LhRegion *target = &op->compute.regions[last];
    const LhTensorKind kind = cover->slots[target->slot].kind;
    bool weighed = false;

    lh_symbolic_start(cover, g);
    if (lh_families[kind] == LH_FAMILY_PLAIN) {
        COVERAGE(g, target->slot, "adds to slot %s (%s), which is not a sum",
                 cover->slots[target->slot].name, lh_tensor_names[kind]);
        return false;
    }
    if (!lh_symbolic_check_counts(cover, g))
        return false;
    for (uint32_t source = 0; source < last; source++)
        weighed |= is_weight(cover, op, source, kind);
    for (uint32_t source = 0; source < last; source++) {
        const LhRegion *region = &op->compute.regions[source];

        for (uint32_t i = 0; i < target->count; i++) {
            if (!(is_weight(cover, op, source, kind)
                      ? check_weight(cover, g, region, target, i)
                      : add_part(cover, g, region, target, i, weighed)))
                return false;
        }
    }
    return true;
}

/* Properties common to the sources of one part. */
typedef struct {
    const LhCell *rows;     /* any source; an empty accumulator only if all are */
    const LhCell *coverage; /* a source that is a result, or NULL */
    LhFamily family;        /* family of that source */
    LhNorm norm;            /* of all sources: LH_NORM_ROW only if each one is */
} Origin;

static bool
join_rows(LhSymbolicExec *cover, uint32_t g, const LhRegion *region, const LhCell *cell,
          Origin *origin)
{
    const bool any = cell->rows.segment == LH_ROW_ANY;

    if (origin->rows == NULL || origin->rows->rows.segment == LH_ROW_ANY) {
        origin->rows = cell;
    } else if (!any && !lh_rows_equal(origin->rows->rows, cell->rows)) {
        g_autofree char *found = lh_symbolic_rows_text(cover, cell->rows);
        g_autofree char *other = lh_symbolic_rows_text(cover, origin->rows->rows);

        COVERAGE(g, region->slot, "takes rows of %s from slot %s beside rows of %s", found,
                 cover->slots[region->slot].name, other);
        return false;
    }
    return true;
}

static bool
join_origin(LhSymbolicExec *cover, uint32_t g, const LhRegion *region, uint32_t i, Origin *origin)
{
    const LhTensorKind kind = cover->slots[region->slot].kind;
    const LhFamily family = lh_families[kind];
    const LhCell *cell = lh_symbolic_read(cover, g, region, i);

    if (cell != NULL && cell->rows.segment != LH_ROW_ANY)
        cell = lh_symbolic_read_rows(cover, g, region, i);
    if (cell == NULL || !join_rows(cover, g, region, cell, origin))
        return false;
    if (family == LH_FAMILY_PLAIN)
        return true;
    if (origin->coverage != NULL &&
        (origin->family != family || origin->coverage->set != cell->set)) {
        COVERAGE(g, region->slot,
                 "takes slot %s, which has other contributions than its other operands",
                 cover->slots[region->slot].name);
        return false;
    }
    origin->norm = origin->coverage == NULL || origin->norm == LH_NORM_ROW
                       ? lh_symbolic_norm(kind, cell)
                       : LH_NORM_OWN;
    origin->coverage = cell;
    origin->family = family;
    return true;
}

/* Checks that all parts of the weights that an op reads have been written. */
static bool
read_weights(LhSymbolicExec *cover, uint32_t g, const LhRegion *region)
{
    for (uint32_t i = 0; i < region->count; i++) {
        if (lh_symbolic_read(cover, g, region, i) == NULL)
            return false;
    }
    return true;
}

/* Writes part @i of every target with the coverage of the sources. */
static bool
derive_part(LhSymbolicExec *cover, uint32_t g, uint32_t i)
{
    const LhOp *op = &cover->proof->ops[g];
    const LhKernel *kernel = lh_proof_kernel(op);
    Origin origin = { .family = LH_FAMILY_PLAIN };

    for (uint32_t k = 0; k < op->compute.regions_count; k++) {
        const LhRegion *region = &op->compute.regions[k];

        if (kernel->operands[k].access != LH_OPERAND_READ)
            continue;
        if (is_weight_slot(cover, region)
                ? i == 0 && !read_weights(cover, g, region)
                : !join_origin(cover, g, region, source_part(op, region, i), &origin))
            return false;
    }
    if (origin.rows == NULL)
        return false;
    for (uint32_t k = 0; k < op->compute.regions_count; k++) {
        const LhRegion *region = &op->compute.regions[k];
        const LhFamily family = lh_families[cover->slots[region->slot].kind];
        LhCell *cell;

        if (kernel->operands[k].access == LH_OPERAND_READ)
            continue;
        g_assert(family == origin.family); /* otherwise the kernel's row is inconsistent */
        cell = lh_symbolic_write(cover, g, region, i, origin.rows->rows);
        cell->ended = origin.rows->ended;
        cell->norm = origin.norm & 1u;
        if (origin.coverage != NULL)
            lh_symbolic_give_set(cover, cell, origin.coverage->set);
    }
    return true;
}

static bool
apply_derive(LhSymbolicExec *cover, uint32_t g)
{
    const LhOp *op = &cover->proof->ops[g];
    const LhRegion *target = &op->compute.regions[op->compute.regions_count - 1];

    if (cover->computes_layer && lh_proof_kernel(op)->args != LH_ARGS_ATTENTION)
        return lh_boundary_compute(cover, g);
    if (!lh_symbolic_check_counts(cover, g))
        return false;
    for (uint32_t i = 0; i < target->count; i++) {
        if (!derive_part(cover, g, i))
            return false;
    }
    return true;
}

static bool
apply_zero(LhSymbolicExec *cover, uint32_t g)
{
    const LhOp *op = &cover->proof->ops[g];

    for (uint32_t i = 0; i < op->compute.regions_count; i++) {
        for (uint32_t k = 0; k < op->compute.regions[i].count; k++)
            lh_symbolic_write_none(cover, g, &op->compute.regions[i], k, LH_ROW_ANY);
    }
    return lh_symbolic_check_counts(cover, g);
}

/* Checks that a call that scales logits uses the program's scale. */
static bool
check_scale(LhSymbolicExec *cover, uint32_t g)
{
    const LhOp *op = &cover->proof->ops[g];
    const LhKernelArgs *args = &op->compute.args;
    const LhAttention *attention = &cover->proof->program->params.attention;
    const LhEffect effect = lh_proof_kernel(op)->effect;
    const double wanted = lh_attention_scale(attention->scale, attention->head_dim);
    const double found = lh_attention_scale(args->scale, args->head_dim);

    if ((effect != LH_EFFECT_ATTEND && effect != LH_EFFECT_ATTEND_GRAD &&
         effect != LH_EFFECT_SOFTMAX && effect != LH_EFFECT_SOFTMAX_GRAD) ||
        found == wanted)
        return true;
    COVERAGE(g, op->compute.regions[0].slot,
             "multiplies logits by %.9g, where the program's scale is %.9g", found, wanted);
    return false;
}

/* Checks that a call is for the program's kind of attention and uses its decay or scale. */
static bool
check_attention(LhSymbolicExec *cover, uint32_t g)
{
    const LhOp *op = &cover->proof->ops[g];
    const LhKernel *kernel = lh_proof_kernel(op);
    const bool linear = cover->proof->program->params.attention.linear;

    if (lh_kernel_counts_flops(kernel) && kernel->linear != linear) {
        COVERAGE(g, op->compute.regions[0].slot, "is for %s attention, and the program's is %s",
                 kernel->linear ? "linear" : "softmax", linear ? "linear" : "softmax");
        return false;
    }
    return kernel->linear ? lh_symbolic_check_decay(cover, g) : check_scale(cover, g);
}

void
lh_symbolic_list_block(LhSymbolicExec *cover, uint32_t g, LhHolding q, uint32_t key)
{
    const LhAttentionBlock block = { .rank = cover->proof->op_rank[g],
                                     .step = cover->proof->ops[g].step,
                                     .query = q.segment,
                                     .key = key,
                                     .slice = q.slice };

    if (cover->proof->blocks != NULL &&
        lh_symbolic_block(cover, q.segment, key).kind != LH_MASK_EMPTY)
        g_array_append_val(cover->proof->blocks, block);
}

void
lh_symbolic_apply(LhSymbolicExec *cover, uint32_t g)
{
    static bool (*const apply[])(LhSymbolicExec * cover, uint32_t g) = {
        [LH_EFFECT_ATTEND] = lh_symbolic_attend,
        [LH_EFFECT_ATTEND_GRAD] = lh_symbolic_attend_grad,
        [LH_EFFECT_ADD] = apply_add,
        [LH_EFFECT_DERIVE] = apply_derive,
        [LH_EFFECT_ZERO] = apply_zero,
        [LH_EFFECT_STATE_SUM] = lh_symbolic_state_sum,
        [LH_EFFECT_STATE_CARRY] = lh_symbolic_state_carry,
        [LH_EFFECT_STATE_PREFIX] = lh_symbolic_state_prefix,
        [LH_EFFECT_STATE_APPLY] = lh_symbolic_state_apply,
        [LH_EFFECT_SCORES] = lh_symbolic_scores,
        [LH_EFFECT_SOFTMAX] = lh_symbolic_softmax,
        [LH_EFFECT_SOFTMAX_GRAD] = lh_symbolic_softmax_grad,
        [LH_EFFECT_SCORES_APPLY] = lh_symbolic_scores_apply,
        [LH_EFFECT_PROJECT_IN] = lh_boundary_project_in,
        [LH_EFFECT_PROJECT_OUT] = lh_boundary_project_out,
        [LH_EFFECT_OUTSIDE] = lh_boundary_read,
        [LH_EFFECT_LAYER] = lh_boundary_compute,
    };

    if (!check_attention(cover, g) ||
        !apply[lh_proof_kernel(&cover->proof->ops[g])->effect](cover, g))
        suspect_all(cover, g);
}
