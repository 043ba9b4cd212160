/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Attention within a step: programs embedded unchanged. Each program is proven alone, like any
 * other. Every instance is then shown to be that program, renamed; to get the inputs of its layer
 * and micro-batch on every rank of its group; and not to be disturbed by other ops. So its results
 * are those of the program's proof.
 */
#include "verify/step/step_modules.h"
#include "step/layer_info.h"
#include "step/modules.h"

#include "program/cursor.h"
#include "verify/step/step_instance.h"
#include "verify/step/step_rows.h"

#include <string.h>

#define ATTENTION_ROW 62 /* its bit among the forward rows */

static void
free_instance(gpointer data)
{
    LhInstance *instance = data;

    g_free(instance->slots);
    g_free(instance->parts);
    g_free(instance->touched);
    g_free(instance->written);
    g_free(instance);
}

static bool
is_backward(uint32_t module)
{
    return module % 2 == 1;
}

/* ---- accesses of ops ---- */

typedef struct {
    LhRegion region;
    bool reads, writes;
} Touch;

static void
add_touch(GArray *touches, const LhRegion *region, bool reads, bool writes)
{
    const Touch touch = { *region, reads, writes };

    g_array_append_val(touches, touch);
}

/* Lists all regions of an op, whose messages are in @parts. */
static void
list_touches(const LhOp *op, const GArray *parts, GArray *touches)
{
    g_array_set_size(touches, 0);
    if (op->kind == LH_OP_COMPUTE) {
        for (uint32_t i = 0; i < op->compute.regions_count; i++) {
            const LhOperandAccess access = lh_proof_kernel(op)->operands[i].access;

            add_touch(touches, &op->compute.regions[i], !lh_proof_overwrites(op, i),
                      access == LH_OPERAND_WRITE || access == LH_OPERAND_UPDATE);
        }
    } else if (op->kind == LH_OP_EXCHANGE) {
        for (uint32_t i = 0; i < op->exchange.parts_count; i++) {
            const LhPart *part = &g_array_index(parts, LhPart, op->exchange.parts_first + i);

            for (uint32_t k = 0; k < part->regions_count; k++)
                add_touch(touches, &part->regions[k], part->send, !part->send);
        }
    } else if (op->kind == LH_OP_COLLECTIVE) {
        for (uint32_t i = 0; i < op->collective.tensors_count; i++) {
            add_touch(touches, &op->collective.send[i], true, false);
            add_touch(touches, &op->collective.receive[i], false, true);
        }
    }
}

/* ---- programs ---- */

static void
append_step(LhModuleRank *m, const LhOpBuffer *buffer)
{
    for (uint32_t i = 0; i < buffer->ops_count; i++) {
        LhOp op = buffer->ops[i];

        if (op.kind == LH_OP_EXCHANGE)
            op.exchange.parts_first += m->parts->len;
        else if (op.kind == LH_OP_COLLECTIVE && op.collective.uneven)
            op.collective.counts_first += m->counts->len;
        g_array_append_val(m->ops, op);
    }
    if (buffer->parts_count > 0)
        g_array_append_vals(m->parts, buffer->parts, buffer->parts_count);
    if (buffer->counts_count > 0)
        g_array_append_vals(m->counts, buffer->counts, buffer->counts_count);
}

static void
count_touches(LhModuleRank *m)
{
    const uint32_t cells = lh_program_cells(m->program);
    g_autoptr(GArray) touches = g_array_new(FALSE, FALSE, sizeof(Touch));

    m->touches = g_new0(uint16_t, MAX(cells, 1));
    m->writes = g_new0(uint16_t, MAX(cells, 1));
    for (guint i = 0; i < m->ops->len; i++) {
        list_touches(&g_array_index(m->ops, LhOp, i), m->parts, touches);
        for (guint k = 0; k < touches->len; k++) {
            const Touch *t = &g_array_index(touches, Touch, k);
            const uint32_t first = m->program->slots[t->region.slot].first_cell + t->region.part;

            for (uint32_t part = 0; part < t->region.count; part++) {
                m->touches[first + part]++;
                m->writes[first + part] += t->writes;
            }
        }
    }
}

/* The program of @module, which exists, for the index of @rank in its group. */
static const LhModuleRank *
module_rank(LhStepValues *v, uint32_t module, uint32_t rank)
{
    const uint32_t context = lh_step_values_place(v, rank).context;
    LhModuleRank *m = &v->parts_of[module * v->context + context];
    LhOpBuffer buffer = { 0 };
    LhCursor cursor;

    if (m->program != NULL)
        return m;
    m->program = v->proof->program->modules[module];
    m->ops = g_array_new(FALSE, FALSE, sizeof(LhOp));
    m->parts = g_array_new(FALSE, FALSE, sizeof(LhPart));
    m->counts = g_array_new(FALSE, FALSE, sizeof(uint32_t));
    lh_cursor_init(&cursor, m->program, context);
    while (lh_cursor_step(&cursor, &buffer))
        append_step(m, &buffer);
    lh_op_buffer_clear(&buffer);
    count_touches(m);
    return m;
}

#define FIND_MODULE(...)                                                                           \
    (lh_proof_find(v->proof, LH_FINDING_COVERAGE,                                                  \
                   (LhFindingPlace){ LH_NONE, LH_NONE, -1, LH_NONE }, __VA_ARGS__),                \
     false)

static const char *const kind_names[LH_STEP_KINDS] = {
    [LH_STEP_SOFTMAX] = "softmax",
    [LH_STEP_WINDOWED] = "windowed",
    [LH_STEP_LINEAR] = "linear",
};

static bool
check_attention_module(LhStepValues *v, uint32_t module, const char *name)
{
    const LhProgram *program = v->proof->program->modules[module];
    const LhStepKind kind = lh_instance_kind(module);
    const LhModel *model = v->params->model;
    const LhAttention *have = &program->params.attention, *all = &v->params->module.attention;
    const bool linear = kind == LH_STEP_LINEAR;
    const uint64_t heads = model->num_attention_heads / v->tensor;
    const uint64_t groups = linear ? heads : MAX(model->num_query_groups / v->tensor, 1);

    if (program->params.ranks == v->context && have->batch == all->batch &&
        have->seq_length == all->seq_length && have->heads == heads && have->groups == groups &&
        have->head_dim == model->kv_channels && have->dtype == all->dtype && have->linear == linear)
        return true;
    return FIND_MODULE("computes %s by a program for %u ranks, %u heads, %u key-value heads and "
                       "%" G_GUINT64_FORMAT " tokens, which differs from the model",
                       name, program->params.ranks, have->heads, have->groups, have->seq_length);
}

/* Checks pass and mask; documents are checked where attention is called. */
static bool
check_rule(LhStepValues *v, uint32_t module, const char *name)
{
    const LhProgramParams *p = &v->proof->program->modules[module]->params;
    const LhMaskRule want = lh_instance_mask(v, lh_instance_kind(module), 0, 0);

    if (p->pass == (is_backward(module) ? LH_PASS_BWD : LH_PASS_FWD) &&
        p->mask.causal == want.causal && p->mask.window == want.window)
        return true;
    return FIND_MODULE("computes %s by a program of another pass or under another mask", name);
}

/* Findings about an embedded program are findings about the step. */
static bool
check_alone(LhStepValues *v, uint32_t module, const char *name)
{
    const LhProgram *program = v->proof->program->modules[module];
    g_autoptr(LhVerdict) verdict = lh_verify(program);

    for (guint i = 0; i < verdict->findings->len; i++) {
        const LhFinding *f = &g_array_index(verdict->findings, LhFinding, i);

        lh_proof_find(v->proof, f->kind, (LhFindingPlace){ LH_NONE, LH_NONE, -1, LH_NONE },
                      "computes %s by %s, which by itself has this finding: %s", name,
                      program->name, f->message);
    }
    v->proof->verdict->pairs_checked += verdict->pairs_checked;
    return verdict->findings_total == 0;
}

static bool
check_programs(LhStepValues *v)
{
    const LhProgram *program = v->proof->program;
    bool needed[LH_STEP_KINDS] = { false };
    bool right = true;

    for (uint32_t layer = 0; layer < v->layers; layer++)
        needed[lh_step_layer_kind(v->plan, layer)] = true;
    for (uint32_t module = 0; module < MAX(program->modules_count, 2 * LH_STEP_KINDS); module++) {
        g_autofree char *name =
            g_strdup_printf("%s attention, %s,", kind_names[lh_instance_kind(module)],
                            lh_pass_names[(is_backward(module) ? LH_PASS_BWD : LH_PASS_FWD) - 1]);

        if (!needed[lh_instance_kind(module)] || (is_backward(module) && v->params->forward_only))
            continue;
        if (module >= program->modules_count || program->modules[module] == NULL)
            return FIND_MODULE("has no program of %s", name);
        right &= check_attention_module(v, module, name) && check_rule(v, module, name) &&
                 check_alone(v, module, name);
    }
    return right;
}

/* ---- instances ---- */

#define FIND_AT(g, ...) (FIND_VALUE(g, -1, __VA_ARGS__), false)

/* Checks that no two slots of the program are mapped to the same place. */
static bool
check_apart(LhStepValues *v, const LhInstance *instance)
{
    const LhProgram *program = instance->of->program;

    for (uint32_t a = 0; a < program->slots_count; a++) {
        for (uint32_t b = 0; b < a; b++) {
            const uint32_t *slots = instance->slots, *parts = instance->parts;

            if (slots[a] == LH_NONE || slots[a] != slots[b] ||
                parts[a] >= parts[b] + program->slots[b].parts ||
                parts[b] >= parts[a] + program->slots[a].parts)
                continue;
            return FIND_AT(instance->first,
                           "begins attention with slots %s and %s in the same place",
                           program->slots[a].name, program->slots[b].name);
        }
    }
    return true;
}

static LhInstance *
new_instance(LhStepValues *v, uint32_t g, uint32_t number)
{
    const LhOp *op = &v->proof->ops[g];
    const uint32_t rank = v->proof->op_rank[g];
    LhInstance *instance = g_new0(LhInstance, 1);
    uint32_t slots, cells;

    instance->rank = rank;
    instance->module = op->module - 1u;
    instance->of = module_rank(v, instance->module, rank);
    instance->first = g;
    instance->number = number;
    instance->layer = op->layer;
    instance->micro_batch = op->micro_batch;
    instance->again =
        !is_backward(instance->module) && !lh_step_rows_note_forward(v, g, ATTENTION_ROW, 0);
    slots = instance->of->program->slots_count;
    cells = lh_program_cells(instance->of->program);
    instance->slots = g_new(uint32_t, slots);
    instance->parts = g_new0(uint32_t, slots);
    instance->touched = g_new0(uint16_t, MAX(cells, 1));
    instance->written = g_new0(uint16_t, MAX(cells, 1));
    for (uint32_t i = 0; i < slots; i++)
        instance->slots[i] = LH_NONE;
    for (uint32_t i = 0; i < LH_STREAMS_MAX; i++)
        instance->streams[i] = LH_NONE;
    g_ptr_array_add(v->instances, instance);
    return instance;
}

/* Whether attention of some kind may begin at op @g. */
static bool
check_begin(LhStepValues *v, uint32_t g)
{
    const LhOp *op = &v->proof->ops[g];
    const LhStepKind kind = lh_instance_kind(op->module - 1u);
    const LhProgram *program = v->proof->program->modules[op->module - 1];
    const uint32_t data = lh_step_values_place(v, v->proof->op_rank[g]).data;
    LhMaskRule want;

    if (op->layer >= v->layers || op->micro_batch >= v->micro_batches)
        return FIND_AT(g, "begins attention of layer %u, micro-batch %u, which do not exist",
                       op->layer, op->micro_batch);
    if (kind != lh_step_layer_kind(v->plan, op->layer) || program == NULL)
        return FIND_AT(g, "begins attention of another kind than that of layer %u", op->layer);
    want = lh_instance_mask(v, kind, data, op->micro_batch);
    return lh_mask_rules_equal(&program->params.mask, &want) ||
           FIND_AT(g, "begins attention under the mask of another micro-batch than %u",
                   op->micro_batch);
}

/* Checks the instance that begins at op @g; false, with a finding, if there is none. */
static bool
check_instance(LhStepValues *v, uint32_t g, uint32_t number)
{
    const LhProof *proof = v->proof;
    LhInstance *instance;

    if (!check_begin(v, g))
        return false;
    instance = new_instance(v, g, number);
    if (instance->of->ops->len == 0)
        return FIND_AT(g, "begins attention that has no ops on this rank");
    for (guint i = 0; i < instance->of->ops->len; i++) {
        const char *differs;

        if (g + i >= proof->rank_first[instance->rank + 1])
            return FIND_AT(g, "begins attention that ends after %u of its %u ops", i,
                           instance->of->ops->len);
        differs = lh_instance_difference(v, instance, &g_array_index(instance->of->ops, LhOp, i),
                                         &proof->ops[g + i], g + i);
        if (differs != NULL)
            return FIND_AT(g + i,
                           "is not op %u of %s, which computes attention of layer %u here: %s "
                           "differs",
                           i, instance->of->program->name, instance->layer, differs);
        v->op_instance[g + i] = v->instances->len - 1;
    }
    return check_apart(v, instance);
}

static bool
find_instances(LhStepValues *v)
{
    const LhProof *proof = v->proof;

    for (uint32_t rank = 0; rank < proof->ranks; rank++) {
        uint32_t number = 0;

        for (uint32_t g = proof->rank_first[rank]; g < proof->rank_first[rank + 1];) {
            if (!lh_program_embeds(proof->program, &proof->ops[g])) {
                g++;
                continue;
            }
            if (!check_instance(v, g, number++))
                return false;
            g += ((const LhInstance *)g_ptr_array_index(v->instances, v->instances->len - 1))
                     ->of->ops->len;
        }
    }
    return true;
}

static const LhInstance *
instance_of(const LhStepValues *v, uint32_t g)
{
    return v->op_instance[g] == LH_NONE ? NULL : g_ptr_array_index(v->instances, v->op_instance[g]);
}

/* Whether two ops of matching ranks belong to the same call of attention, or neither to one. */
static bool
are_together(const LhStepValues *v, uint32_t g, uint32_t h)
{
    const LhInstance *a = instance_of(v, g), *b = instance_of(v, h);

    if (a == NULL || b == NULL)
        return a == b;
    return a->number == b->number && a->module == b->module && a->layer == b->layer &&
           a->micro_batch == b->micro_batch;
}

static bool
check_messages(LhStepValues *v)
{
    const LhProof *proof = v->proof;

    for (uint32_t i = 0; i < proof->parts_count; i++) {
        const uint32_t g = proof->part_op[i], h = proof->part_op[proof->part_match[i]];

        if (!are_together(v, g, h))
            return FIND_AT(g, "matches a message of another call of attention");
    }
    for (uint32_t i = 0; i < proof->meetings_count; i++) {
        const LhMeeting *meeting = &proof->meetings[i];

        for (uint32_t k = 1; k < meeting->count; k++) {
            const uint32_t g = proof->meeting_ops[meeting->first + k];

            if (!are_together(v, g, proof->meeting_ops[meeting->first]))
                return FIND_AT(g, "matches a collective of another call of attention");
        }
    }
    return true;
}

/* Checks that all ranks of a group make the same calls in the same order. */
static bool
check_groups(LhStepValues *v)
{
    const LhProof *proof = v->proof;
    g_autofree uint32_t *first = g_new0(uint32_t, proof->ranks + 1);

    for (guint i = 0; i < v->instances->len; i++)
        first[((const LhInstance *)g_ptr_array_index(v->instances, i))->rank + 1]++;
    for (uint32_t rank = 0; rank < proof->ranks; rank++)
        first[rank + 1] += first[rank];
    for (uint32_t rank = 0; rank < proof->ranks; rank++) {
        const uint32_t head = lh_instance_map(v, rank).base;
        const uint32_t count = first[rank + 1] - first[rank];

        if (count != first[head + 1] - first[head])
            return FIND_MODULE("calls attention %u times on rank %u, but %u times on rank %u, of "
                               "the same group",
                               count, rank, first[head + 1] - first[head], head);
        for (uint32_t i = 0; i < count; i++) {
            const LhInstance *a = g_ptr_array_index(v->instances, first[rank] + i);
            const LhInstance *b = g_ptr_array_index(v->instances, first[head] + i);

            if (!are_together(v, a->first, b->first))
                return FIND_AT(a->first, "begins other attention than rank %u of its group", head);
        }
    }
    return true;
}

bool
lh_step_modules_check(LhStepValues *v)
{
    const uint32_t ops = v->proof->ops_count;

    v->parts_of = g_new0(LhModuleRank, (size_t)v->proof->program->modules_count * v->context);
    v->instances = g_ptr_array_new_with_free_func(free_instance);
    v->op_instance = g_new(uint32_t, MAX(ops, 1));
    for (uint32_t g = 0; g < ops; g++)
        v->op_instance[g] = LH_NONE;
    return check_programs(v) && find_instances(v) && check_groups(v) && check_messages(v);
}

void
lh_step_modules_clear(LhStepValues *v)
{
    for (uint32_t i = 0; i < v->proof->program->modules_count * v->context; i++) {
        LhModuleRank *m = &v->parts_of[i];

        g_clear_pointer(&m->ops, g_array_unref);
        g_clear_pointer(&m->parts, g_array_unref);
        g_clear_pointer(&m->counts, g_array_unref);
        g_free(m->touches);
        g_free(m->writes);
    }
    g_free(v->parts_of);
    g_ptr_array_unref(v->instances);
    g_free(v->op_instance);
}

/* ---- effects ---- */

/* An access of an attention op to one part. */
typedef struct {
    LhStepValues *v;
    LhInstance *instance;
    uint32_t g;
    const LhSlot *slot;   /* of the program */
    uint32_t index, part; /* in the program */
    uint32_t around, at;  /* slot and part in the step */
    uint16_t *touched, *written;
    uint16_t touches, writes; /* totals */
} Place;

/* The required value of an input or output. */
static LhValue
outside_value(const Place *p)
{
    LhValue value = lh_step_values_of_attention(p->v, p->instance->of->program, p->index,
                                                p->instance->rank, p->part);

    value.layer = p->instance->layer;
    value.micro_batch = p->instance->micro_batch;
    return value;
}

static bool
holds(const Place *p)
{
    const uint32_t context = lh_step_values_place(p->v, p->instance->rank).context;

    return lh_step_slot_role(p->slot) != LH_STEP_ROLES &&
           lh_slot_holds(p->instance->of->program, p->slot, context, p->part);
}

static void
check_input(const Place *p)
{
    LhStepValues *v = p->v;
    const LhValue want = outside_value(p);
    const LhValue have = lh_step_values_at(v, p->g, p->around, p->at);
    LhValueCell *cell = lh_step_values_cell(v, p->instance->rank, p->around, p->at);
    g_autofree char *wanted = NULL, *found = NULL, *name = NULL;

    if (have.kind == LH_VALUE_SUSPECT || (lh_step_values_equal(&have, &want) && have.set == 0))
        return;
    name = lh_cell_text(v->proof->program, p->around, p->at);
    wanted = lh_proof_value_text(v, &want);
    found = lh_proof_value_text(v, &have);
    FIND_VALUE(p->g, p->around, "finds %s in slot %s, an input of attention; needed: %s", found,
               name, wanted);
    cell->value = (LhValue){ .kind = LH_VALUE_SUSPECT };
    cell->writer = p->g;
}

/* Checks that no two calls of attention work in the same place at a time. */
static bool
check_alone_there(const Place *p, const Touch *touch)
{
    LhStepValues *v = p->v;
    const LhValueCell *cell = lh_step_values_cell(v, p->instance->rank, p->around, p->at);
    const bool begun = *p->touched > 0 && *p->touched < p->touches;
    const bool writing = *p->written > 0 && *p->written < p->writes;
    g_autofree char *name = NULL;

    if ((!touch->writes || cell->open == (begun ? 1 : 0)) && cell->open_writes == (writing ? 1 : 0))
        return true;
    name = lh_cell_text(v->proof->program, p->around, p->at);
    return FIND_AT(p->g, "uses slot %s, which another call of attention is still using", name);
}

static void
count_touch(const Place *p, const Touch *touch)
{
    LhValueCell *cell = lh_step_values_cell(p->v, p->instance->rank, p->around, p->at);

    if ((*p->touched)++ == 0)
        cell->open++;
    if (*p->touched == p->touches)
        cell->open--;
    if (!touch->writes)
        return;
    if ((*p->written)++ == 0)
        cell->open_writes++;
    if (*p->written == p->writes)
        cell->open_writes--;
}

static void
touch_part(const Place *p, const Touch *touch)
{
    LhValueCell *cell = lh_step_values_cell(p->v, p->instance->rank, p->around, p->at);

    check_alone_there(p, touch);
    if (touch->reads && p->slot->role == LH_SLOT_INPUT && holds(p))
        check_input(p);
    count_touch(p, touch);
    if (!touch->writes)
        return;
    cell->value = (LhValue){ .kind = LH_VALUE_OWN };
    cell->writer = p->g;
    if (p->slot->role == LH_SLOT_OUTPUT && *p->written == p->writes && holds(p))
        cell->value = outside_value(p);
}

void
lh_step_modules_apply(LhStepValues *v, uint32_t op)
{
    LhInstance *instance = g_ptr_array_index(v->instances, v->op_instance[op]);
    const LhModuleRank *of = instance->of;
    g_autoptr(GArray) touches = g_array_new(FALSE, FALSE, sizeof(Touch));

    list_touches(&g_array_index(of->ops, LhOp, op - instance->first), of->parts, touches);
    for (guint i = 0; i < touches->len; i++) {
        const Touch *touch = &g_array_index(touches, Touch, i);
        const LhSlot *slot = &of->program->slots[touch->region.slot];

        for (uint32_t k = 0; k < touch->region.count; k++) {
            const uint32_t part = touch->region.part + k, cell = slot->first_cell + part;
            const Place place = {
                .v = v,
                .instance = instance,
                .g = op,
                .slot = slot,
                .index = touch->region.slot,
                .part = part,
                .around = instance->slots[touch->region.slot],
                .at = instance->parts[touch->region.slot] + part,
                .touched = &instance->touched[cell],
                .written = &instance->written[cell],
                .touches = of->touches[cell],
                .writes = of->writes[cell],
            };

            touch_part(&place, touch);
        }
    }
}
