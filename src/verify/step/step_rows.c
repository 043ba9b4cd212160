/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Checks calls of the layer outside attention against the table of a layer. A call must be one row
 * of the table, with exactly the values that the row names, of the layer and micro-batch in its
 * label. Then it produces the row's results.
 */
#include "verify/step/step_rows.h"
#include "step/layer_info.h"
#include "step/tensor_sizes.h"
#include "verify/step/step_table.h"

/* ---- values that a row names ---- */

static bool
is_of_heads(const LhStepNode *node)
{
    return lh_kernels[node->kernel]->args == LH_ARGS_HEADS;
}

/* Calls of the row that together take all rows of the rank. */
static uint32_t
turns_of(const LhStepValues *v, const LhStepNode *node)
{
    return is_of_heads(node) ? v->segments : lh_table_turns(v, (LhStepTiling)node->tiling);
}

static LhStepWeight
held(const LhStepValues *v, const LhStepOperand *o)
{
    return lh_step_held_weight(v->plan, (LhStepWeight)o->what);
}

static uint32_t
layer_of_weight(const LhTableRow *row, LhStepWeight weight)
{
    return weight < LH_STEP_W_LAYER ? row->layer : 0;
}

static uint32_t
parts_wanted(const LhStepValues *v, const LhTableRow *row, const LhStepOperand *o)
{
    switch (o->kind) {
    case LH_STEP_WEIGHT:
    case LH_STEP_GRADIENT:
        return v->pieces;
    case LH_STEP_TOKENS:
    case LH_STEP_TARGETS:
        return v->segments * v->tensor * v->cuts / turns_of(v, row->node);
    case LH_STEP_LOSS:
    case LH_STEP_IN_LAST:
        return 1;
    default:
        return lh_step_values_role_parts(v, (LhStepRole)o->what, row->layer) /
               (lh_step_rows((LhStepRole)o->what).undivided ? 1 : turns_of(v, row->node));
    }
}

/* Part @part of an operand, at the start of the row (@after: at its end). */
static LhValue
wanted(const LhStepValues *v, const LhTableRow *row, const LhStepOperand *o, uint32_t part,
       bool after)
{
    const LhStepRole role = (LhStepRole)o->what;
    uint32_t layer = row->layer + (o->kind == LH_STEP_OUT_NEXT ? 1 : 0);
    LhValue value;

    switch (o->kind) {
    case LH_STEP_WEIGHT:
    case LH_STEP_GRADIENT:
        return lh_step_values_of_weight(
            v, o->kind == LH_STEP_WEIGHT ? LH_VALUE_WEIGHT : LH_VALUE_GRADIENT, held(v, o),
            layer_of_weight(row, held(v, o)), row->rank, part);
    case LH_STEP_TOKENS:
    case LH_STEP_TARGETS:
        return lh_step_values_of_tokens(
            v, o->kind == LH_STEP_TOKENS ? LH_VALUE_TOKENS : LH_VALUE_TARGETS, row->micro_batch,
            row->rank, row->turn * parts_wanted(v, row, o) + part);
    case LH_STEP_LOSS:
        return (LhValue){ .kind = LH_VALUE_LOSS };
    default:
        if (lh_step_rows(role).alone == LH_STEP_DX)
            layer = lh_table_sublayers_ahead(v, row) - (o->kind == LH_STEP_UPDATE && after ? 1 : 0);
        if (!lh_step_rows(role).undivided)
            part += row->turn * parts_wanted(v, row, o);
        if (o->kind == LH_STEP_IN_LAST)
            part += lh_step_values_role_parts(v, role, row->layer) - 1;
        value = lh_step_values_of_role(v, role, layer, row->micro_batch, row->rank, part);
        if (lh_step_rows(role).undivided)
            value.cut = (uint16_t)row->turn;
        return value;
    }
}

/* ---- matching ---- */

/* The first difference between a call and a row. */
typedef struct {
    uint32_t matched; /* operands before the first difference */
    uint32_t operand, part;
    bool suspect;
    bool overwrites; /* it overwrites an operand that the row adds to */
    LhValue have, want;
} Difference;

/* Whether a row reads an operand of the call. */
static bool
reads(const LhOp *op, const LhStepOperand *o, uint32_t i)
{
    switch (o->kind) {
    case LH_STEP_OUT:
    case LH_STEP_OUT_NEXT:
        return false;
    case LH_STEP_UPDATE:
    case LH_STEP_GRADIENT:
    case LH_STEP_LOSS:
        return !lh_proof_overwrites(op, i);
    default:
        return true;
    }
}

/* Whether the call must add to the gradient of the residual stream. Only the head starts it. */
static bool
must_add(const LhTableRow *row, const LhStepOperand *o)
{
    return o->kind == LH_STEP_UPDATE && o->what == LH_STEP_DX && row->table != LH_TABLE_HEAD;
}

static bool
match_operand(LhStepValues *v, uint32_t g, const LhTableRow *row, uint32_t i, Difference *d)
{
    const LhOp *op = &v->proof->ops[g];
    const LhStepOperand *o = &row->node->operands[i];
    const LhRegion *region = &op->compute.regions[i];
    const bool sum = o->kind != LH_STEP_IN && o->kind != LH_STEP_IN_LAST;

    d->operand = i;
    d->overwrites = must_add(row, o) && lh_proof_overwrites(op, i);
    if (d->overwrites || region->count != parts_wanted(v, row, o)) {
        d->part = LH_NONE;
        return false;
    }
    for (uint32_t part = 0; reads(op, o, i) && part < region->count; part++) {
        d->part = part;
        d->want = wanted(v, row, o, part, false);
        d->have = lh_step_values_take(v, g, region->slot, region->part + part);
        d->suspect = d->have.kind == LH_VALUE_SUSPECT;
        if (!lh_step_values_equal(&d->have, &d->want) || (!sum && d->have.set != 0))
            return false;
    }
    return true;
}

static bool
match_row(LhStepValues *v, uint32_t g, const LhTableRow *row, Difference *d)
{
    const LhStepOperand *operands = row->node->operands;
    bool equal = true;

    *d = (Difference){ 0 };
    for (uint32_t i = 0; i < LH_STEP_OPERANDS && operands[i].kind != LH_STEP_OPERAND_END; i++) {
        Difference next = { 0 };
        const bool matches = match_operand(v, g, row, i, &next);

        if (!matches && equal) {
            next.matched = d->matched;
            *d = next;
            equal = false;
        }
        d->matched += matches;
    }
    return equal;
}

static void
find_no_row(LhStepValues *v, uint32_t g, const LhTableRow *row, const Difference *d)
{
    const LhOp *op = &v->proof->ops[g];
    const LhKernel *kernel = lh_proof_kernel(op);
    const LhRegion *region = &op->compute.regions[d->operand];
    g_autofree char *slot = NULL, *have = NULL, *want = NULL;

    if (row->node == NULL) {
        FIND_VALUE(g, -1,
                   "is not a call of layer %u of the model (layers are 0 to %u; the head is %u)",
                   op->layer, v->layers - 1, v->layers);
        return;
    }
    slot = lh_cell_text(v->proof->program, region->slot,
                        region->part + (d->part == LH_NONE ? 0 : d->part));
    if (d->overwrites) {
        FIND_VALUE(g, region->slot, "overwrites the gradient in slot %s, to which it should add",
                   slot);
    } else if (d->part == LH_NONE) {
        FIND_VALUE(g, region->slot, "takes %u parts of slot %s as its operand %s; needed: %u",
                   region->count, slot, kernel->operands[d->operand].name,
                   parts_wanted(v, row, &row->node->operands[d->operand]));
    } else {
        have = lh_proof_value_text(v, &d->have);
        want = lh_proof_value_text(v, &d->want);
        FIND_VALUE(g, region->slot, "finds %s in slot %s, its operand %s; needed: %s", have, slot,
                   kernel->operands[d->operand].name, want);
    }
}

/* Tries @row for every possible segment or tile, first the tile of the latest call and the next
 * one. Returns true if one matches, with @row's turn set. */
static bool
match_turns(LhStepValues *v, uint32_t g, LhTableRow *row, Difference *best, LhTableRow *closest)
{
    const uint32_t turns = turns_of(v, row->node);
    const uint32_t first = is_of_heads(row->node) ? 0 : v->last_tile % turns;

    for (uint32_t i = 0; i < turns; i++) {
        Difference d;

        row->turn = (first + i) % turns;
        if (match_row(v, g, row, &d)) {
            v->last_tile = is_of_heads(row->node) ? v->last_tile : row->turn;
            return true;
        }
        if (closest->node == NULL || d.matched > best->matched) {
            *best = d;
            *closest = *row;
        }
    }
    return false;
}

/* Finds the row of the call; false, with a finding or because of an earlier one, if there is
 * none. */
static bool
find_row(LhStepValues *v, uint32_t g, LhTableRow *row)
{
    const LhOp *op = &v->proof->ops[g];
    Difference best = { 0 };
    LhTableRow closest = { 0 };

    for (unsigned table = 0; table < LH_TABLES; table++) {
        if (!lh_table_has_layer(v, (LhTable)table, op->layer))
            continue;
        for (const LhStepNode *node = lh_step_tables[table]; node->does != LH_STEP_END; node++) {
            *row = (LhTableRow){ (LhTable)table,
                                 (uint32_t)(node - lh_step_tables[table]),
                                 node,
                                 v->proof->op_rank[g],
                                 op->layer,
                                 op->micro_batch,
                                 0 };
            if (lh_table_has_row(v, node, op->layer) && node->kernel == op->compute.kernel &&
                match_turns(v, g, row, &best, &closest))
                return true;
        }
    }
    if (!best.suspect)
        find_no_row(v, g, &closest, &best);
    return false;
}

/* ---- arguments ---- */

typedef struct {
    const char *name;
    uint64_t have, want;
} Argument;

static bool
check_arguments(LhStepValues *v, uint32_t g, const Argument *arguments, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        if (arguments[i].have == arguments[i].want)
            continue;
        FIND_VALUE(g, -1, "is called with %s = %" G_GUINT64_FORMAT "; needed: %" G_GUINT64_FORMAT,
                   arguments[i].name, arguments[i].have, arguments[i].want);
        return false;
    }
    return true;
}

static bool
check_product_rows(LhStepValues *v, uint32_t g, const LhTableRow *row)
{
    const LhKernelArgs *a = &v->proof->ops[g].compute.args;
    const LhStepMatrix matrix = lh_step_matrix(
        v->plan, lh_step_held_weight(v->plan, (LhStepWeight)row->node->matrix), row->layer);
    const LhKernelArgs want = lh_step_product(v->plan, &matrix);
    const bool last = lh_step_rows((LhStepRole)row->node->operands[0].what).last;
    const Argument arguments[] = {
        { "m", a->product.m,
          last ? v->params->module.attention.batch : want.product.m / turns_of(v, row->node) },
        { "k", a->product.k, want.product.k },
        { "n", a->product.n, want.product.n },
        { "experts", MAX(a->product.experts, 1), MAX(want.product.experts, 1) },
        { "batch", a->product.layout.batch, want.product.layout.batch },
        { "members", a->product.layout.members, want.product.layout.members },
        { "fp32", a->product.fp32,
          v->params->behaviour.head_fp32 && row->node->matrix == LH_STEP_W_HEAD },
    };

    return check_arguments(v, g, arguments, G_N_ELEMENTS(arguments));
}

static bool
check_experts(LhStepValues *v, uint32_t g)
{
    const LhKernelArgs *a = &v->proof->ops[g].compute.args;
    const Argument arguments[] = {
        { "rows", a->experts.rows, lh_step_rank_rows(v->plan) },
        { "width", a->experts.width, v->params->model->hidden_size },
        { "experts", a->experts.experts, lh_step_experts(v->plan) },
        { "choices", a->experts.choices, lh_step_choices(v->plan) },
    };

    return check_arguments(v, g, arguments, G_N_ELEMENTS(arguments));
}

/* The base comes from the model or is 0, so equality is exact. */
static bool
check_heads(LhStepValues *v, uint32_t g, const LhTableRow *row)
{
    const LhKernelArgs *a = &v->proof->ops[g].compute.args;
    const bool linear = lh_step_layer_kind(v->plan, row->layer) == LH_STEP_LINEAR;
    const double base = linear ? 0 : v->params->model->rotary_base;
    const LhSegment segment = lh_placement_segment(
        v->placement, lh_placement_segment_id(
                          v->placement, lh_step_values_place(v, row->rank).context, row->turn));
    const Argument arguments[] = {
        { "rows", a->to_heads.rows, segment.count },
        { "start", a->to_heads.start, segment.start },
        { "stride", a->to_heads.stride, segment.stride },
        { "batch", a->to_heads.layout.batch, v->params->module.attention.batch },
        { "members", a->to_heads.layout.members, v->tensor * v->cuts },
    };

    if (a->to_heads.base < base || a->to_heads.base > base) {
        FIND_VALUE(g, -1, "rotates by a base of %g; the model's is %g", a->to_heads.base, base);
        return false;
    }
    return check_arguments(v, g, arguments, G_N_ELEMENTS(arguments));
}

static bool
check_epsilon(LhStepValues *v, uint32_t g)
{
    const double epsilon = v->proof->ops[g].compute.args.rows.epsilon;

    if (v->epsilon <= 0)
        v->epsilon = epsilon;
    if (epsilon > 0 && epsilon <= v->epsilon && epsilon >= v->epsilon)
        return true;
    FIND_VALUE(g, -1, "normalises with an epsilon of %g; the other norms have %g", epsilon,
               v->epsilon);
    return false;
}

/* The last of the rows that a tensor-parallel rank has of each sequence of a segment. */
static bool
check_last_rows(LhStepValues *v, uint32_t g)
{
    const LhKernelArgs *a = &v->proof->ops[g].compute.args;
    const uint64_t batch = v->params->module.attention.batch;
    const Argument arguments[] = {
        { "rows", a->rows.rows, batch },
        { "count", a->rows.count,
          lh_step_rank_rows(v->plan) / batch / v->segments / v->tensor / v->cuts },
    };

    return check_arguments(v, g, arguments, G_N_ELEMENTS(arguments));
}

static bool
check_rows(LhStepValues *v, uint32_t g, const LhTableRow *row)
{
    const LhKernelArgs *a = &v->proof->ops[g].compute.args;
    const LhAttention *attention = &v->params->module.attention;
    const uint64_t columns = lh_step_vocabulary(v->plan);
    const bool embeds = row->table == LH_TABLE_EMBED || row->table == LH_TABLE_EMBED_BWD;
    const bool looks_up = row->node->operands[0].kind == LH_STEP_TOKENS ||
                          row->node->operands[1].kind == LH_STEP_TARGETS;
    const Argument arguments[] = {
        { "vocabulary", a->rows.vocabulary, v->params->model->vocab_size },
        { "first", a->rows.first, lh_step_values_place(v, row->rank).tensor * columns },
        { "count", embeds ? a->rows.count : a->rows.width, columns },
        { "tokens", a->rows.tokens,
          attention->batch * attention->seq_length * v->data * v->micro_batches },
    };

    if (row->node->kernel == LH_KERNEL_ID_last_rows)
        return check_last_rows(v, g);
    for (unsigned i = 0; i < LH_STEP_OPERANDS; i++) {
        const LhStepOperand *o = &row->node->operands[i];

        /* Norms have a weight and no tokens. */
        if (o->kind == LH_STEP_WEIGHT && !looks_up)
            return check_epsilon(v, g);
    }
    return !looks_up || check_arguments(v, g, arguments, embeds ? 3 : 4);
}

static bool
check_row_args(LhStepValues *v, uint32_t g, const LhTableRow *row)
{
    switch (lh_kernels[row->node->kernel]->args) {
    case LH_ARGS_PRODUCT:
        return check_product_rows(v, g, row);
    case LH_ARGS_HEADS:
        return check_heads(v, g, row);
    case LH_ARGS_ROWS:
        return check_rows(v, g, row);
    case LH_ARGS_EXPERTS:
        return check_experts(v, g);
    default:
        return true;
    }
}

/* ---- phases ---- */

bool
lh_step_rows_note_forward(LhStepValues *v, uint32_t op, uint32_t row, uint32_t turn)
{
    const LhOp *o = &v->proof->ops[op];
    const size_t index =
        ((size_t)v->proof->op_rank[op] * v->micro_batches + o->micro_batch) * (v->layers + 1) +
        o->layer;
    const uint64_t bit = UINT64_C(1) << row;
    uint64_t *made = &v->made[index * v->turns + turn];
    const bool first = (*made & bit) == 0;

    *made |= bit;
    return first;
}

static bool
is_behind_loss(const LhStepValues *v, const LhTableRow *row)
{
    for (const LhStepNode *node = lh_step_tables[row->table]; node != row->node; node++) {
        if (lh_table_has_row(v, node, row->layer) && node->kernel == LH_KERNEL_ID_loss)
            return true;
    }
    return false;
}

static bool
check_phase(LhStepValues *v, uint32_t g, const LhTableRow *row)
{
    const LhOp *op = &v->proof->ops[g];
    LhPhase phase = LH_PHASE_BACKWARD;

    if (row->table == LH_TABLE_EMBED || row->table == LH_TABLE_FORWARD ||
        (row->table == LH_TABLE_HEAD && !is_behind_loss(v, row)))
        phase = lh_step_rows_note_forward(
                    v, g, row->table == LH_TABLE_EMBED ? LH_EMBED_ROW : row->index, row->turn)
                    ? LH_PHASE_FORWARD
                    : LH_PHASE_RECOMPUTE;
    else if (row->table == LH_TABLE_LAST_HEAD)
        phase = LH_PHASE_FORWARD;
    if (op->phase == phase)
        return true;
    FIND_VALUE(g, -1, "is labelled phase %s, but belongs to phase %s", lh_phase_names[op->phase],
               lh_phase_names[phase]);
    return false;
}

/* ---- effects ---- */

/* The term that a row adds to a sum, and the total number of terms of that sum. */
static uint32_t
term_of(const LhStepValues *v, const LhTableRow *row, const LhStepOperand *o, uint32_t *terms)
{
    const LhValuePlace place = lh_step_values_place(v, row->rank);
    const uint32_t batch =
        (place.data * v->micro_batches + row->micro_batch) * v->context + place.context;
    const LhStepRows rows = lh_step_rows((LhStepRole)o->what);

    if (o->kind == LH_STEP_LOSS) {
        const uint32_t turns = turns_of(v, row->node);

        *terms = v->data_ranks * v->micro_batches * turns;
        return batch * turns + row->turn;
    }
    if (o->kind == LH_STEP_GRADIENT) {
        const LhStepWeight weight = held(v, o);
        const LhWeightFacts *facts =
            lh_step_values_weight_facts(v, weight, layer_of_weight(row, weight));
        const uint32_t use =
            lh_table_gradient_rows_before(v, weight, row->layer, row->node) + row->turn;

        *terms = facts->terms;
        return (use * v->data_ranks * v->micro_batches + batch) * facts->replicas +
               place.tensor % facts->replicas;
    }
    if (rows.alone == LH_STEP_DX || o->kind == LH_STEP_OUT_NEXT) {
        *terms = 1;
        return 0;
    }
    *terms = lh_table_role_terms(v, rows.alone, row->layer);
    if (lh_table_is_sum((LhStepRole)o->what))
        return lh_table_makers_before(v, rows.alone, row->layer, row->node) * v->tensor +
               place.tensor;
    return lh_table_makers_before(v, rows.alone, row->layer, row->node);
}

/* Whether a value keeps its set when it is complete. */
static bool
keeps_set(const LhValue *value)
{
    return value->kind != LH_VALUE_ROLE;
}

/* Adds the row's term to the current value; false, with a finding, if the value already has it. */
static bool
add_term(LhStepValues *v, uint32_t g, const LhTableRow *row, uint32_t i, const LhValue *before,
         LhValue *value)
{
    const LhStepOperand *o = &row->node->operands[i];
    const LhRegion *region = &v->proof->ops[g].compute.regions[i];
    const bool complete = before != NULL && !keeps_set(before) && before->set == 0;
    const bool is_dx =
        keeps_set(value) ? false : value->what == LH_STEP_DX; /* a sum of one term at a time */
    uint32_t terms = 0;
    const uint32_t term = lh_sets_one(&v->sets, term_of(v, row, o, &terms));

    value->set = before == NULL || is_dx ? term : lh_sets_unite(&v->sets, before->set, term);
    if (value->set == LH_NONE || (complete && !is_dx)) {
        g_autofree char *text = lh_proof_value_text(v, before);

        FIND_VALUE(g, region->slot, "adds a term to %s that it already has", text);
        return false;
    }
    if (!keeps_set(value) && lh_sets_size(&v->sets, value->set) == terms)
        value->set = 0;
    return true;
}

static void
write_operand(LhStepValues *v, uint32_t g, const LhTableRow *row, uint32_t i)
{
    const LhOp *op = &v->proof->ops[g];
    const LhStepOperand *o = &row->node->operands[i];
    const LhRegion *region = &op->compute.regions[i];

    for (uint32_t part = 0; part < region->count; part++) {
        LhValue value = wanted(v, row, o, part, true);
        const LhValue before = lh_step_values_at(v, g, region->slot, region->part + part);

        if (!add_term(v, g, row, i, reads(op, o, i) ? &before : NULL, &value))
            value.kind = LH_VALUE_SUSPECT;
        lh_step_values_put(v, g, region->slot, region->part + part, value);
    }
}

void
lh_step_rows_write_suspect(LhStepValues *v, uint32_t g)
{
    const LhOp *op = &v->proof->ops[g];
    const LhKernel *kernel = lh_proof_kernel(op);

    for (uint32_t i = 0; i < op->compute.regions_count; i++) {
        const LhRegion *region = &op->compute.regions[i];

        for (uint32_t part = 0;
             kernel->operands[i].access != LH_OPERAND_READ && part < region->count; part++)
            lh_step_values_put(v, g, region->slot, region->part + part,
                               (LhValue){ .kind = LH_VALUE_SUSPECT });
    }
}

void
lh_step_rows_apply(LhStepValues *v, uint32_t op)
{
    LhTableRow row;

    if (v->proof->ops[op].micro_batch >= v->micro_batches) {
        FIND_VALUE(op, -1, "belongs to micro-batch %u; there are %u", v->proof->ops[op].micro_batch,
                   v->micro_batches);
        return;
    }
    if (!find_row(v, op, &row) || !check_row_args(v, op, &row) || !check_phase(v, op, &row)) {
        lh_step_rows_write_suspect(v, op);
        return;
    }
    for (uint32_t i = 0; i < LH_STEP_OPERANDS; i++) {
        switch (row.node->operands[i].kind) {
        case LH_STEP_OUT:
        case LH_STEP_OUT_NEXT:
        case LH_STEP_UPDATE:
        case LH_STEP_GRADIENT:
        case LH_STEP_LOSS:
            write_operand(v, op, &row, i);
            break;
        default:
            break;
        }
    }
}
