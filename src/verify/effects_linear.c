/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Effects of linear attention. A state belongs to a border, named by the segment after it. The set
 * of its cell contains the key segments before the border that it has accumulated; the set of a
 * state's gradient contains the query segments after it. Every rule moves states over whole
 * segments and requires borders and rows to match, so that everything accumulated in a state is
 * decayed by its distance to the border.
 */
#include "verify/verify_private.h"

/* Maps all decays that mean "none" to one value. */
static double
decay_of(double decay)
{
    return decay <= 0 || decay >= 1 ? 1 : decay;
}

/*
 * Checks a call's decay by distance: part a of the queries is a - b parts after part b of the keys,
 * and its tokens are consecutive. Cells without rows are reported later.
 */
static bool
check_distances(LhSymbolicExec *cover, uint32_t g)
{
    const LhOp *op = &cover->proof->ops[g];
    const LhKernel *kernel = lh_proof_kernel(op);
    const uint32_t rank = cover->proof->op_rank[g];
    const LhRegion *q = &op->compute.regions[0];
    const LhRegion *kv = &op->compute.regions[kernel->effect == LH_EFFECT_ATTEND ? 1 : 2];
    const LhCell *first = lh_symbolic_cell(cover, rank, kv->slot, kv->part);

    for (uint32_t i = 0; i < q->count + kv->count && first->rows.segment < cover->segments; i++) {
        const LhRegion *region = i < q->count ? q : kv;
        const uint32_t part = i < q->count ? i : i - q->count;
        const LhCell *cell = lh_symbolic_cell(cover, rank, region->slot, region->part + part);
        const LhSegment *at;

        if (cell->rows.segment >= cover->segments)
            continue;
        at = &cover->segment[cell->rows.segment];
        if ((at->count == 1 || at->stride == 1) &&
            at->start == cover->segment[first->rows.segment].start + part * cover->rows)
            continue;
        COVERAGE(g, region->slot,
                 "decays by the distance of rows, which is not that of the tokens in slot %s",
                 cover->slots[region->slot].name);
        return false;
    }
    return true;
}

static bool
check_pairs_decay(LhSymbolicExec *cover, uint32_t g)
{
    const LhOp *op = &cover->proof->ops[g];
    const uint8_t mask = op->compute.args.mask;

    if (mask == LH_MASK_CAUSAL)
        return check_distances(cover, g);
    if (mask == LH_MASK_EMPTY)
        return true;
    COVERAGE(g, op->compute.regions[0].slot,
             "decays under a mask without distances (%s); only a causal mask has them",
             mask == LH_MASK_FULL ? "full" : "by positions");
    return false;
}

bool
lh_symbolic_check_decay(LhSymbolicExec *cover, uint32_t g)
{
    const LhOp *op = &cover->proof->ops[g];
    const LhKernel *kernel = lh_proof_kernel(op);
    const double wanted = decay_of(cover->proof->program->params.attention.decay);
    const double found = decay_of(op->compute.args.decay);

    if (found != wanted) {
        COVERAGE(g, op->compute.regions[0].slot,
                 "decays by %g per token; the program's decay is %g", found, wanted);
        return false;
    }
    if (kernel->effect != LH_EFFECT_ATTEND && kernel->effect != LH_EFFECT_ATTEND_GRAD)
        return true;
    return wanted == 1 || check_pairs_decay(cover, g);
}

/* Whether a call works on gradients: states accumulate keys, their gradients queries. */
static bool
is_gradient(const LhSymbolicExec *cover, const LhRegion *state)
{
    return cover->slots[state->slot].kind == LH_TENSOR_DSTATE;
}

static bool
one_part(LhSymbolicExec *cover, uint32_t g, const LhRegion *region)
{
    if (region->count == 1)
        return true;
    COVERAGE(g, region->slot, "takes %u parts of slot %s; a state needs one", region->count,
             cover->slots[region->slot].name);
    return false;
}

/* Checks that the rows of a call are those of one segment with consecutive tokens. NULL: they
 * are not. */
static const LhCell *
read_segment(LhSymbolicExec *cover, uint32_t g, uint32_t operand)
{
    const LhOp *op = &cover->proof->ops[g];
    const LhRegion *region = &op->compute.regions[operand];
    const bool keys = lh_tensor_is_kv(cover->slots[region->slot].kind);
    const uint64_t claimed = keys ? op->compute.args.nk : op->compute.args.nq;
    const LhCell *cell;

    if (!one_part(cover, g, region))
        return NULL;
    cell = lh_symbolic_read_rows(cover, g, region, 0);
    if (cell == NULL)
        return NULL;
    if (claimed != cover->rows) {
        COVERAGE(g, region->slot,
                 "is called for %" G_GUINT64_FORMAT " rows, but slot %s has %" G_GUINT64_FORMAT
                 " there",
                 claimed, cover->slots[region->slot].name, cover->rows);
        return NULL;
    }
    if (cover->segment[cell->rows.segment].stride != 1 && cover->rows > 1) {
        COVERAGE(g, region->slot, "adds tokens to a state that are not consecutive");
        return NULL;
    }
    if (cover->replicas > 1) {
        COVERAGE(g, region->slot,
                 "adds one of %u slices of query heads that share key-value heads to a state",
                 cover->replicas);
        return NULL;
    }
    return cell;
}

/* Checks that the state in @region is at border @border and of slice @slice. */
static bool
check_border(LhSymbolicExec *cover, uint32_t g, const LhRegion *region, const LhCell *state,
             LhHolding border)
{
    if (lh_rows_equal(state->rows, border))
        return true;
    if (state->rows.slice != border.slice)
        COVERAGE(g, region->slot,
                 "takes slice %u of the state in slot %s for slice %u of the heads",
                 state->rows.slice, cover->slots[region->slot].name, border.slice);
    else
        COVERAGE(g, region->slot,
                 "takes the state in slot %s at the border before segment %u, but its border is "
                 "before segment %u",
                 cover->slots[region->slot].name, border.segment, state->rows.segment);
    return false;
}

bool
lh_symbolic_state_sum(LhSymbolicExec *cover, uint32_t g)
{
    const LhOp *op = &cover->proof->ops[g];
    const uint32_t last = op->compute.regions_count - 1u;
    const LhRegion *region = &op->compute.regions[last];
    const bool gradient = is_gradient(cover, region);
    const LhCell *rows = read_segment(cover, g, 0);
    LhHolding from, to;
    LhCell *state;

    lh_symbolic_start(cover, g);
    if (rows == NULL || !one_part(cover, g, region))
        return false;
    for (uint32_t i = 1; i < last; i++) {
        const LhCell *other = read_segment(cover, g, i);

        if (other == NULL || !lh_rows_equal(other->rows, rows->rows)) {
            if (other != NULL)
                COVERAGE(g, op->compute.regions[i].slot, "adds rows of two segments to a state");
            return false;
        }
    }
    from = to = rows->rows;
    *(gradient ? &from : &to) = (LhHolding){ rows->rows.segment + 1, rows->rows.slice };
    state = lh_symbolic_read(cover, g, region, 0);
    if (state == NULL)
        return false;
    if (state->rows.segment != LH_ROW_ANY && !check_border(cover, g, region, state, from))
        return false;
    state->rows = to;
    lh_symbolic_note_writer(cover, state, g);
    return lh_symbolic_contribute(cover, g, region, state, rows->rows.segment);
}

/* target += the contributions in part @i of @source, moved over @tokens tokens. */
static bool
move_state(LhSymbolicExec *cover, uint32_t g, const LhRegion *source, uint32_t i, uint64_t tokens)
{
    const LhOp *op = &cover->proof->ops[g];
    const LhRegion *target = &op->compute.regions[1];
    const LhCell *from = lh_symbolic_read_rows(cover, g, source, i);
    const uint64_t segments = tokens / cover->rows;
    LhHolding border;
    LhCell *into;

    if (from == NULL)
        return false;
    border = from->rows;
    if (tokens % cover->rows != 0 ||
        segments >
            (is_gradient(cover, target) ? border.segment : cover->segments - border.segment)) {
        COVERAGE(
            g, source->slot,
            "moves the state in slot %s, whose border is before segment %u, by %" G_GUINT64_FORMAT
            " tokens, where there is no border",
            cover->slots[source->slot].name, border.segment, tokens);
        return false;
    }
    border.segment = (uint32_t)(is_gradient(cover, target) ? border.segment - segments
                                                           : border.segment + segments);
    into = lh_symbolic_read(cover, g, target, 0);
    if (into == NULL)
        return false;
    if (into->rows.segment == LH_ROW_ANY)
        into->rows = border;
    lh_symbolic_note_writer(cover, into, g);
    return check_border(cover, g, target, into, border) &&
           lh_symbolic_merge(cover, g, target, into, from);
}

static bool
check_linear_placement(LhSymbolicExec *cover, uint32_t g)
{
    const LhRegion *target = &cover->proof->ops[g].compute.regions[1];

    if (cover->segment[0].stride == 1 || cover->rows == 1)
        return one_part(cover, g, target);
    COVERAGE(g, target->slot, "moves a state over tokens that are not consecutive");
    return false;
}

bool
lh_symbolic_state_carry(LhSymbolicExec *cover, uint32_t g)
{
    const LhOp *op = &cover->proof->ops[g];
    const LhKernelArgs *args = &op->compute.args;
    const LhRegion *source = &op->compute.regions[0];

    lh_symbolic_start(cover, g);
    return check_linear_placement(cover, g) && one_part(cover, g, source) &&
           move_state(cover, g, source, 0, args->nq + args->nk);
}

bool
lh_symbolic_state_prefix(LhSymbolicExec *cover, uint32_t g)
{
    const LhOp *op = &cover->proof->ops[g];
    const LhKernelArgs *args = &op->compute.args;
    const LhRegion *sources = &op->compute.regions[0];
    const bool gradient = is_gradient(cover, sources);

    lh_symbolic_start(cover, g);
    if (args->states != sources->count || (gradient ? args->nk : args->nq) != 0) {
        COVERAGE(g, sources->slot,
                 "is called for %u states over %" G_GUINT64_FORMAT " query and %" G_GUINT64_FORMAT
                 " key rows each, but takes %u of slot %s (%s)",
                 args->states, args->nq, args->nk, sources->count, cover->slots[sources->slot].name,
                 lh_tensor_names[cover->slots[sources->slot].kind]);
        return false;
    }
    if (!check_linear_placement(cover, g))
        return false;
    for (uint32_t i = 0; i < sources->count; i++) {
        const uint64_t steps = gradient ? i : sources->count - 1 - i;

        if (!move_state(cover, g, sources, i, steps * (args->nq + args->nk)))
            return false;
    }
    return true;
}

/* Adds the contributions of the state to the rows of @target, pair of segments by pair. */
static bool
read_state(LhSymbolicExec *cover, uint32_t g, const LhCell *state, const LhRegion *target,
           LhCell *into)
{
    const LhFamily family = lh_families[cover->slots[target->slot].kind];

    for (uint32_t s = 0; s < cover->segments; s++) {
        const LhHolding source = { s, state->rows.slice };

        if (!lh_set_has(lh_symbolic_set(cover, state), s))
            continue;
        if (!lh_symbolic_contribute(cover, g, target, into,
                                    lh_symbolic_source(cover, family, source)))
            return false;
        cover->proof->verdict->pairs_checked += (LhWide)cover->rows * cover->rows;
    }
    return true;
}

bool
lh_symbolic_state_apply(LhSymbolicExec *cover, uint32_t g)
{
    const LhOp *op = &cover->proof->ops[g];
    const uint32_t last = op->compute.regions_count - 1u;
    const LhRegion *target = &op->compute.regions[last], *region = target - 1;
    const LhCell *rows = read_segment(cover, g, 0);
    const LhCell *state;
    LhCell *into;
    LhHolding border;

    lh_symbolic_start(cover, g);
    if (rows == NULL || !one_part(cover, g, target) || !one_part(cover, g, region))
        return false;
    state = lh_symbolic_read_rows(cover, g, region, 0);
    if (state == NULL)
        return false;
    border = rows->rows;
    border.segment += is_gradient(cover, region) ? 1 : 0;
    if (!check_border(cover, g, region, state, border))
        return false;
    into = lh_symbolic_open_unended(cover, g, target, 0, rows->rows);
    return into != NULL && read_state(cover, g, state, target, into);
}
