/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Values of a step: their names, their initial places, and the values required at the end.
 */
#include "verify/step/step_values.h"
#include "step/layer_info.h"
#include "step/lora.h"
#include "step/modules.h"
#include "step/tensor_sizes.h"

#include "verify/alloc_times.h"
#include "verify/step/step_table.h"

#include <string.h>

/* ---- facts ---- */

uint32_t
lh_step_values_weight_number(const LhStepValues *v, LhStepWeight weight, uint32_t layer)
{
    return weight < LH_STEP_W_LAYER ? layer * LH_STEP_W_LAYER + weight
                                    : v->layers * LH_STEP_W_LAYER + weight - LH_STEP_W_LAYER;
}

const LhWeightFacts *
lh_step_values_weight_facts(const LhStepValues *v, LhStepWeight weight, uint32_t layer)
{
    return &v->weights[lh_step_values_weight_number(v, weight, layer)];
}

uint64_t
lh_step_values_piece_size(const LhWeightFacts *facts, uint32_t piece)
{
    const uint64_t before = MIN(piece * facts->piece, facts->elements);

    return MIN(facts->piece, facts->elements - before);
}

static void
fill_facts(LhStepValues *v, LhStepWeight weight, uint32_t layer)
{
    const LhStepMatrix matrix = lh_step_matrix(v->plan, weight, layer);
    LhWeightFacts *facts = &v->weights[lh_step_values_weight_number(v, weight, layer)];
    const uint64_t terms = (uint64_t)v->data * v->micro_batches * v->context;

    facts->elements = matrix.rows * matrix.columns;
    if (facts->elements == 0)
        return;
    facts->piece = (facts->elements + v->pieces - 1) / v->pieces;
    facts->held = (uint32_t)((facts->elements + facts->piece - 1) / facts->piece);
    facts->replicas = matrix.replicas;
    facts->terms = (uint32_t)(terms * matrix.replicas * lh_table_gradient_rows(v, weight, layer));
    facts->first = v->norm_terms;
    if (lh_step_is_trained(v->params, weight))
        v->norm_terms += facts->held * (v->tensor / matrix.replicas);
}

static void
fill_all_facts(LhStepValues *v)
{
    v->weights_count = v->layers * LH_STEP_W_LAYER + LH_STEP_WEIGHTS - LH_STEP_W_LAYER;
    v->weights = g_new0(LhWeightFacts, v->weights_count);
    for (uint32_t layer = 0; layer < v->layers; layer++) {
        for (unsigned weight = 0; weight < LH_STEP_W_LAYER; weight++)
            fill_facts(v, (LhStepWeight)weight, layer);
    }
    for (unsigned weight = LH_STEP_W_LAYER; weight < LH_STEP_WEIGHTS; weight++)
        fill_facts(v, (LhStepWeight)weight, 0);
}

/* ---- values ---- */

bool
lh_step_values_equal(const LhValue *a, const LhValue *b)
{
    return a->kind == b->kind && a->what == b->what && a->of == b->of && a->layer == b->layer &&
           a->micro_batch == b->micro_batch && a->cut == b->cut && a->replica == b->replica &&
           a->segment == b->segment && a->piece == b->piece && a->slice == b->slice;
}

LhValue
lh_step_values_of_weight(const LhStepValues *v, LhValueKind kind, LhStepWeight weight,
                         uint32_t layer, uint32_t rank, uint32_t piece)
{
    const LhWeightFacts *facts = lh_step_values_weight_facts(v, weight, layer);

    return (LhValue){
        .kind = (uint8_t)kind,
        .what = (uint8_t)weight,
        .layer = (uint16_t)layer,
        .piece = piece,
        .slice = lh_step_values_place(v, rank).tensor / MAX(facts->replicas, 1),
    };
}

/* The attention program of layers of @kind, and the slot in it that has @role. */
static const LhProgram *
attention_slot(const LhStepValues *v, LhStepRole role, LhStepKind kind, uint32_t *slot)
{
    for (unsigned pass = 0; pass < 2; pass++) {
        const LhProgram *program = v->proof->program->modules[2 * kind + pass];

        for (*slot = 0; program != NULL && *slot < program->slots_count; (*slot)++) {
            if (lh_step_slot_role(&program->slots[*slot]) == role)
                return program;
        }
    }
    return NULL;
}

/* Without the fields that depend on the part. */
static LhValue
activation(const LhStepValues *v, LhStepRole role, uint32_t layer, uint32_t micro_batch,
           uint32_t rank)
{
    return (LhValue){
        .kind = LH_VALUE_ROLE,
        .what = (uint8_t)lh_step_rows(role).alone,
        .layer = (uint16_t)layer,
        .micro_batch = (uint16_t)micro_batch,
        .replica = lh_step_values_place(v, rank).data,
        .slice = LH_NONE,
    };
}

LhValue
lh_step_values_of_attention(const LhStepValues *v, const LhProgram *program, uint32_t slot,
                            uint32_t rank, uint32_t part)
{
    const LhSlot *s = &program->slots[slot];
    const LhValuePlace place = lh_step_values_place(v, rank);
    const LhHolding holding = lh_slot_holding(program, s, place.context, part);
    LhValue value = activation(v, lh_step_slot_role(s), 0, 0, rank);

    value.of = (uint16_t)lh_program_slices(program, s->kind);
    value.segment = holding.segment;
    value.piece = holding.slice;
    value.slice = place.tensor;
    return value;
}

LhValue
lh_step_values_of_role(const LhStepValues *v, LhStepRole role, uint32_t layer, uint32_t micro_batch,
                       uint32_t rank, uint32_t part)
{
    const LhStepRows rows = lh_step_rows(role);
    const LhValuePlace place = lh_step_values_place(v, rank);
    LhValue value = activation(v, role, layer, micro_batch, rank);
    uint32_t slot;

    if (rows.of_attention) {
        const LhProgram *program =
            attention_slot(v, role, lh_step_layer_kind(v->plan, layer), &slot);

        value = lh_step_values_of_attention(v, program, slot, rank, part);
        value.layer = (uint16_t)layer;
        value.micro_batch = (uint16_t)micro_batch;
        return value;
    }
    if (rows.sliced)
        value.slice = rows.undivided && rows.full ? part : place.tensor;
    if (rows.last) {
        value.segment = lh_placement_segment_id(v->placement, place.context, v->segments - 1);
        value.piece = !rows.full ? place.tensor : rows.sliced ? v->tensor - 1 : part;
        return value;
    }
    if (rows.undivided) {
        value.segment = lh_placement_segment_id(v->placement, place.context, 0);
    } else {
        const uint32_t members = rows.full ? v->tensor : 1, uncut = part / v->cuts;

        value.segment = lh_placement_segment_id(v->placement, place.context, uncut / members);
        value.piece = rows.full ? uncut % members : place.tensor;
        value.cut = (uint16_t)(part % v->cuts);
    }
    return value;
}

uint32_t
lh_step_values_role_parts(const LhStepValues *v, LhStepRole role, uint32_t layer)
{
    const LhStepRows rows = lh_step_rows(role);
    uint32_t slot;

    if (rows.of_attention) {
        const LhProgram *program =
            attention_slot(v, role, lh_step_layer_kind(v->plan, layer), &slot);

        return program != NULL ? program->slots[slot].parts : 0;
    }
    if (rows.last)
        return rows.full && !rows.sliced ? v->tensor : 1;
    return (rows.undivided ? 1 : v->segments * v->cuts) * (rows.full ? v->tensor : 1);
}

LhValue
lh_step_values_of_tokens(const LhStepValues *v, LhValueKind kind, uint32_t micro_batch,
                         uint32_t rank, uint32_t part)
{
    const LhValuePlace place = lh_step_values_place(v, rank);

    return (LhValue){
        .kind = (uint8_t)kind,
        .micro_batch = (uint16_t)micro_batch,
        .cut = (uint16_t)(part % v->cuts),
        .replica = place.data,
        .segment = lh_placement_segment_id(v->placement, place.context, part / v->cuts / v->tensor),
        .piece = part / v->cuts % v->tensor,
    };
}

/* ---- cells ---- */

LhValue
lh_step_values_at(const LhStepValues *v, uint32_t op, uint32_t slot, uint32_t part)
{
    const LhValueCell *cell = lh_step_values_cell(v, v->proof->op_rank[op], slot, part);

    if (v->proof->program->slots[slot].role == LH_SLOT_TEMP) {
        const uint32_t alloc = lh_proof_last_alloc(v->proof, op, slot, part);

        if (cell->writer == LH_NONE || (alloc != LH_NONE && cell->writer < alloc))
            return (LhValue){ .kind = LH_VALUE_NOTHING };
    }
    return cell->value;
}

LhValue
lh_step_values_take(LhStepValues *v, uint32_t op, uint32_t slot, uint32_t part)
{
    LhValueCell *cell = lh_step_values_cell(v, v->proof->op_rank[op], slot, part);

    if (cell->open_writes > 0) {
        g_autofree char *name = lh_cell_text(v->proof->program, slot, part);

        FIND_VALUE(op, slot, "reads slot %s between two calls of attention that write it", name);
        return (LhValue){ .kind = LH_VALUE_SUSPECT };
    }
    return lh_step_values_at(v, op, slot, part);
}

void
lh_step_values_put(LhStepValues *v, uint32_t op, uint32_t slot, uint32_t part, LhValue value)
{
    LhValueCell *cell = lh_step_values_cell(v, v->proof->op_rank[op], slot, part);

    if (cell->open > 0) {
        g_autofree char *name = lh_cell_text(v->proof->program, slot, part);

        FIND_VALUE(op, slot, "writes slot %s between two calls of attention that use it", name);
        value.kind = LH_VALUE_SUSPECT;
    }
    cell->value = value;
    cell->writer = op;
}

/* ---- texts ---- */

/* "a partial sum of " for an incomplete value of a role. */
static const char *
partial_text(const LhValue *value)
{
    return value->kind == LH_VALUE_ROLE && value->set != 0 ? "a partial sum of " : "";
}

static char *
role_text(const LhStepValues *v, const LhValue *value)
{
    g_autoptr(GString) text = g_string_new(partial_text(value));

    if (value->what == LH_STEP_DX)
        g_string_append_printf(text, "the gradient of the residual stream %s layer %u",
                               value->layer == 2 * v->layers ? "behind"
                               : value->layer % 2 == 0       ? "before"
                                                             : "within",
                               value->layer == 2 * v->layers ? v->layers - 1 : value->layer / 2u);
    else
        g_string_append_printf(text, "%s of layer %u", lh_step_role_name((LhStepRole)value->what),
                               value->layer);
    g_string_append_printf(text, ", micro-batch %u, segment %u", value->micro_batch,
                           value->segment);
    if (v->cuts > 1)
        g_string_append_printf(text, ", part %u of %u", value->cut, v->cuts);
    if (v->data > 1)
        g_string_append_printf(text, ", data-parallel rank %u", value->replica);
    if (value->of > 1)
        g_string_append_printf(text, ", slice %u of the heads", value->piece);
    else if (v->tensor > 1 && value->of == 0)
        g_string_append_printf(text, ", rows of tensor-parallel rank %u", value->piece);
    if (v->tensor > 1 && value->slice != LH_NONE)
        g_string_append_printf(text, ", columns of tensor-parallel rank %u", value->slice);
    return g_strdup(text->str);
}

static char *
weight_text(const LhStepValues *v, const LhValue *value)
{
    static const char *const what[] = {
        [LH_VALUE_WEIGHT] = "the weight",
        [LH_VALUE_GRADIENT] = "the gradient of",
        [LH_VALUE_MASTER] = "the fp32 copy of",
        [LH_VALUE_MOMENTS] = "the moments of",
        [LH_VALUE_CLOCK] = "the clock of",
        [LH_VALUE_SCALES] = "the scales of",
        [LH_VALUE_MOMENTUM] = "the momentum of",
        [LH_VALUE_UPDATE] = "the update of",
        [LH_VALUE_ORTHOGONAL] = "the orthogonal update of",
    };
    const char *name = lh_step_weight_name((LhStepWeight)value->what);
    g_autoptr(GString) text = g_string_new(NULL);

    g_string_printf(text, "%s %s", what[value->kind], name);
    if (value->what < LH_STEP_W_LAYER)
        g_string_append_printf(text, " of layer %u", value->layer);
    if (v->tensor > 1)
        g_string_append_printf(text, ", tensor-parallel slice %u", value->slice);
    if (v->pieces > 1)
        g_string_append_printf(text, ", piece %u", value->piece);
    if (value->kind == LH_VALUE_GRADIENT)
        g_string_append_printf(
            text, " with %u of %u terms", lh_sets_size(&v->sets, value->set),
            lh_step_values_weight_facts(v, (LhStepWeight)value->what, value->layer)->terms);
    else
        g_string_append(text, value->of > 0 ? " after the optimizer" : " before the optimizer");
    return g_strdup(text->str);
}

/* Of Muon, between pieces. */
static char *
matrix_text(const LhStepValues *v, const LhValue *value)
{
    g_autofree char *slice = value->slice != LH_NONE && v->tensor > 1
                                 ? g_strdup_printf(", tensor-parallel slice %u", value->slice)
                                 : g_strdup("");

    return g_strdup_printf("%s %s of layer %u%s after %u Newton-Schulz steps",
                           value->kind == LH_VALUE_WHOLE  ? "the matrices"
                           : value->kind == LH_VALUE_GRAM ? "the Gram matrices of"
                                                          : "the polynomials of",
                           lh_step_weight_name((LhStepWeight)value->what), value->layer, slice,
                           value->micro_batch);
}

char *
lh_proof_value_text(const LhStepValues *v, const LhValue *value)
{
    switch (value->kind) {
    case LH_VALUE_WHOLE:
    case LH_VALUE_GRAM:
    case LH_VALUE_POLYNOMIAL:
        return matrix_text(v, value);
    case LH_VALUE_NOTHING:
        return g_strdup("nothing");
    case LH_VALUE_OWN:
        return g_strdup("an internal value of attention");
    case LH_VALUE_ROLE:
        return role_text(v, value);
    case LH_VALUE_TOKENS:
    case LH_VALUE_TARGETS:
        return g_strdup_printf("%s of micro-batch %u, segment %u, data-parallel rank %u, rows of "
                               "tensor-parallel rank %u",
                               value->kind == LH_VALUE_TOKENS ? "tokens" : "targets",
                               value->micro_batch, value->segment, value->replica, value->piece);
    case LH_VALUE_LOSS:
        return g_strdup_printf(
            "the loss of %u of %u batches of rows", lh_sets_size(&v->sets, value->set),
            v->data_ranks * v->micro_batches * lh_table_turns(v, LH_STEP_TILES_OF_LOSS));
    case LH_VALUE_NORM:
        return g_strdup_printf("the norm of %u of %u pieces of gradients",
                               lh_sets_size(&v->sets, value->set), v->norm_terms);
    case LH_VALUE_SUSPECT:
        return g_strdup("a value with an earlier finding");
    default:
        return weight_text(v, value);
    }
}

/* ---- the start ---- */

static LhValue
state_value(const LhStepValues *v, const LhStepState *state, uint32_t rank)
{
    static const uint8_t kinds[LH_STEP_FAMILIES] = {
        [LH_STEP_OF_WEIGHT] = LH_VALUE_WEIGHT,     [LH_STEP_OF_WEIGHT_SHARD] = LH_VALUE_WEIGHT,
        [LH_STEP_OF_MASTER] = LH_VALUE_MASTER,     [LH_STEP_OF_MOMENTS] = LH_VALUE_MOMENTS,
        [LH_STEP_OF_CLOCK] = LH_VALUE_CLOCK,       [LH_STEP_OF_SCALES] = LH_VALUE_SCALES,
        [LH_STEP_OF_MOMENTUM] = LH_VALUE_MOMENTUM, [LH_STEP_OF_HOST_WEIGHT] = LH_VALUE_WEIGHT,
    };
    const bool whole = state->family == LH_STEP_OF_WEIGHT;
    const uint32_t own = v->pieces > 1 ? lh_step_values_place(v, rank).shard : 0;
    const uint32_t of_micro_batch = v->segments * v->tensor * v->cuts;

    if (state->family == LH_STEP_OF_TOKENS || state->family == LH_STEP_OF_TARGETS)
        return lh_step_values_of_tokens(
            v, state->family == LH_STEP_OF_TOKENS ? LH_VALUE_TOKENS : LH_VALUE_TARGETS,
            state->part / of_micro_batch, rank, state->part % of_micro_batch);
    if (kinds[state->family] == LH_VALUE_NOTHING) /* left over from an earlier step */
        return (LhValue){ .kind = LH_VALUE_NOTHING };
    return lh_step_values_of_weight(v, (LhValueKind)kinds[state->family], state->weight,
                                    state->layer, rank, whole ? state->part : own);
}

static void
fill_slot(LhStepValues *v, uint32_t slot)
{
    const LhSlot *s = &v->proof->program->slots[slot];
    LhStepState state;

    for (uint32_t rank = 0; rank < v->proof->ranks; rank++) {
        for (uint32_t part = 0; part < s->parts; part++) {
            if (lh_slot_is_on(s, rank) && lh_step_state_at(v->plan, rank, slot, part, &state))
                lh_step_values_cell(v, rank, slot, part)->value = state_value(v, &state, rank);
        }
    }
}

void
lh_step_values_begin(LhStepValues *v)
{
    const LhProof *proof = v->proof;
    const size_t cells = (size_t)proof->ranks * proof->cells_count;

    fill_all_facts(v);
    v->cells = g_new0(LhValueCell, MAX(cells, 1));
    for (size_t i = 0; i < cells; i++)
        v->cells[i].writer = LH_NONE;
    v->turns = MAX(v->segments, MAX(lh_table_turns(v, LH_STEP_TILES_OF_LOSS),
                                    lh_table_turns(v, LH_STEP_TILES_OF_MLP)));
    v->made =
        g_new0(uint64_t, (size_t)proof->ranks * v->micro_batches * (v->layers + 1) * v->turns);
    for (uint32_t slot = 0; slot < proof->program->slots_count; slot++) {
        if (proof->program->slots[slot].role == LH_SLOT_STATE)
            fill_slot(v, slot);
    }
}

/* ---- the end ---- */

#define STATE_AT_END(rank, slot, ...)                                                              \
    lh_proof_find(v->proof, LH_FINDING_COVERAGE,                                                   \
                  (LhFindingPlace){ rank, LH_NONE, (int32_t)(slot), LH_NONE }, __VA_ARGS__)

/* The required value of a state after the step; false: none is required. */
static bool
wanted_state(LhStepValues *v, const LhStepState *state, uint32_t rank, LhValue *want)
{
    *want = state_value(v, state, rank);
    if (state->family == LH_STEP_OF_LOSS) {
        *want = (LhValue){ .kind = LH_VALUE_LOSS };
        want->set = lh_sets_all(&v->sets, v->data_ranks * v->micro_batches *
                                              lh_table_turns(v, LH_STEP_TILES_OF_LOSS));
        return true;
    }
    if (state->family == LH_STEP_OF_RESULT) {
        const uint32_t parts = lh_step_values_role_parts(v, state->role, state->layer);

        *want = lh_step_values_of_role(v, state->role, state->layer, state->part / parts, rank,
                                       state->part % parts);
        return true;
    }
    if (want->kind == LH_VALUE_NOTHING)
        return false;
    if (want->kind == LH_VALUE_TOKENS || want->kind == LH_VALUE_TARGETS)
        return true;
    want->of = !v->params->forward_only && lh_step_is_trained(v->params, state->weight) ? 1 : 0;
    return want->piece < lh_step_values_weight_facts(v, state->weight, state->layer)->held;
}

static void
check_state(LhStepValues *v, uint32_t rank, uint32_t slot, uint32_t part, const LhStepState *state)
{
    const LhValue have = lh_step_values_cell(v, rank, slot, part)->value;
    LhValue want;
    g_autofree char *name = NULL, *wanted = NULL, *found = NULL;

    if (wanted_state(v, state, rank, &want) && want.of == 0 &&
        (want.kind == LH_VALUE_MASTER || want.kind == LH_VALUE_MOMENTS ||
         want.kind == LH_VALUE_SCALES || want.kind == LH_VALUE_CLOCK)) {
        STATE_AT_END(rank, slot, "holds states of the optimizer for a weight that is frozen");
        return;
    }
    if (!wanted_state(v, state, rank, &want) || have.kind == LH_VALUE_SUSPECT ||
        (lh_step_values_equal(&have, &want) && have.set == want.set))
        return;
    name = lh_cell_text(v->proof->program, slot, part);
    wanted = lh_proof_value_text(v, &want);
    found = lh_proof_value_text(v, &have);
    STATE_AT_END(rank, slot, "ends with %s in slot %s; needed: %s", found, name, wanted);
}

/* Pieces of weights that a rank of this stage holds from start to end. */
static uint64_t
weights_wanted(const LhStepValues *v, uint32_t stage)
{
    uint64_t count = 0;

    for (uint32_t i = 0; i < v->weights_count; i++) {
        const bool of_layer = i < v->layers * LH_STEP_W_LAYER;
        const LhStepWeight weight =
            (LhStepWeight)(of_layer ? i % LH_STEP_W_LAYER
                                    : LH_STEP_W_LAYER + i - v->layers * LH_STEP_W_LAYER);

        if (v->weights[i].elements > 0 &&
            lh_step_stage_has(v->plan, stage, weight, i / LH_STEP_W_LAYER))
            count += v->params->shard == LH_SHARD_FSDP || v->params->offload_param ? 1 : v->pieces;
    }
    return count;
}

/* Parts that a rank of this stage leaves after a forward pass alone: keys and values of its layers,
 * and the last stage's logits, of all micro-batches. */
static uint64_t
results_wanted(const LhStepValues *v, uint32_t stage)
{
    uint64_t parts = 0;

    if (!v->params->forward_only)
        return 0;
    for (uint32_t layer = 0; layer < v->layers; layer++) {
        if (lh_step_stage_of(v->plan, layer) == stage)
            parts += lh_step_values_role_parts(v, LH_STEP_KV, layer);
    }
    if (stage + 1 == v->stages)
        parts += lh_step_values_role_parts(v, LH_STEP_LOGITS_LAST, v->layers);
    return parts * v->micro_batches;
}

/* What a rank holds at the end: pieces of weights, and parts of results. */
typedef struct {
    uint64_t weights, results;
} Held;

/* Whether weights are held in slots of @family from start to end, so that a rank has each of its
 * pieces once. Beside them the host may have weights that its CPU updates. */
static bool
is_home_of_weights(const LhStepValues *v, LhStepFamily family)
{
    if (v->params->offload_param)
        return family == LH_STEP_OF_HOST_WEIGHT;
    return family == LH_STEP_OF_WEIGHT || family == LH_STEP_OF_WEIGHT_SHARD;
}

/* Checks a rank's slot of states or results, and counts them. */
static void
check_slot(LhStepValues *v, uint32_t rank, uint32_t slot, Held *held)
{
    const LhSlot *s = &v->proof->program->slots[slot];
    LhStepState state;

    if (!lh_slot_is_result(s) || !lh_slot_is_on(s, rank))
        return;
    for (uint32_t part = 0; part < s->parts; part++) {
        if (!lh_step_state_at(v->plan, rank, slot, part, &state))
            break;
        held->weights += is_home_of_weights(v, state.family) ? 1 : 0;
        held->results += state.family == LH_STEP_OF_RESULT ? 1 : 0;
        check_state(v, rank, slot, part, &state);
    }
}

void
lh_step_values_check_end(LhStepValues *v)
{
    for (uint32_t rank = 0; rank < v->proof->ranks; rank++) {
        const uint32_t stage = lh_step_values_place(v, rank).stage;
        const Held wanted = { weights_wanted(v, stage), results_wanted(v, stage) };
        Held held = { 0 };

        for (uint32_t slot = 0; slot < v->proof->program->slots_count; slot++)
            check_slot(v, rank, slot, &held);
        if (held.weights != wanted.weights)
            STATE_AT_END(rank, -1,
                         "holds %" G_GUINT64_FORMAT
                         " pieces of weights, but its share of the model has %" G_GUINT64_FORMAT,
                         held.weights, wanted.weights);
        if (held.results != wanted.results)
            STATE_AT_END(rank, -1,
                         "leaves %" G_GUINT64_FORMAT " parts of KV caches and logits; needed: "
                         "%" G_GUINT64_FORMAT,
                         held.results, wanted.results);
    }
}
