/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Attention within a step. Each kind of layer has a forward-only and a backward-only program of its
 * schedule, embedded unchanged; a step of the forward pass alone has only the former. Their inputs
 * and outputs are roles of the step; their temporaries are slots of their own, shared by all
 * layers.
 */
#include "step/modules.h"

#include "program/emit.h"
#include "step/packs.h"
#include "step/step_private.h"

#include <string.h>

LhStepRole
lh_step_slot_role(const LhSlot *slot)
{
    if (slot->role == LH_SLOT_TEMP)
        return LH_STEP_ROLES;
    switch (slot->kind) {
    case LH_TENSOR_Q:
        return slot->by_heads ? LH_STEP_Q_HEADS : LH_STEP_Q;
    case LH_TENSOR_KV:
        return slot->by_heads ? LH_STEP_KV_HEADS : LH_STEP_KV;
    case LH_TENSOR_O:
        return slot->by_heads ? LH_STEP_O_HEADS : LH_STEP_O;
    case LH_TENSOR_LSE:
        return slot->by_heads ? LH_STEP_LSE_HEADS : LH_STEP_LSE;
    case LH_TENSOR_STATE:
        return LH_STEP_STATE;
    case LH_TENSOR_DO:
        return LH_STEP_DO;
    case LH_TENSOR_DQ:
        return LH_STEP_DQ;
    case LH_TENSOR_DKV:
        return LH_STEP_DKV;
    default:
        return LH_STEP_ROLES;
    }
}

static uint8_t *
roles_of(const LhProgram *program)
{
    uint8_t *roles = g_new(uint8_t, program->slots_count);

    for (uint32_t i = 0; i < program->slots_count; i++)
        roles[i] = (uint8_t)lh_step_slot_role(&program->slots[i]);
    return roles;
}

static uint32_t *
steps_of(const LhProgram *program)
{
    const uint32_t ranks = lh_program_ranks(program);
    uint32_t *steps = g_new(uint32_t, ranks);

    for (uint32_t rank = 0; rank < ranks; rank++)
        steps[rank] = program->generator->steps(program, rank);
    return steps;
}

LhStepKindAttention
lh_step_kind_attention(const LhStepPlan *plan, LhStepKind kind)
{
    const LhModel *m = &plan->model;
    const bool linear = kind == LH_STEP_LINEAR;
    LhStepKindAttention of = { plan->params.module.attention, plan->params.module.mask };

    of.attention.linear = linear;
    of.attention.heads = (uint32_t)m->num_attention_heads;
    of.attention.groups = (uint32_t)(linear ? m->num_attention_heads : m->num_query_groups);
    of.attention.head_dim = (uint32_t)m->kv_channels;
    of.attention.hidden_size = (uint32_t)m->hidden_size;
    if (!linear)
        of.attention.decay = 0;
    if (kind == LH_STEP_WINDOWED)
        of.mask.window = plan->params.window;
    return of;
}

/* Parameters of one pass, with the heads of a tensor-parallel rank, under pack @pack. */
static LhProgramParams
params_of(const LhStepPlan *plan, LhStepKind kind, LhPass pass, uint32_t pack)
{
    const LhStepKindAttention whole = lh_step_kind_attention(plan, kind);
    const uint32_t t = plan->params.tensor_parallel;
    LhProgramParams p = plan->params.module;

    p.pass = pass;
    p.keep_saved = pass == LH_PASS_FWD && !plan->params.forward_only;
    p.data_parallel_size = 0;
    p.attention = whole.attention;
    p.attention.heads = whole.attention.heads / t;
    p.attention.groups = MAX(whole.attention.groups / t, 1);
    p.mask = lh_step_pack_mask(whole.mask, plan->packs[pack]);
    return p;
}

/* Whether the programs are borrowed from the step's parameters. */
static bool
is_given(const LhStepPlan *plan)
{
    return plan->params.attention != NULL;
}

static LhProgram *
make_pass(const LhStepPlan *plan, LhStepKind kind, LhPass pass, uint32_t pack, GError **error)
{
    const LhLayerKind attention = kind == LH_STEP_LINEAR ? LH_LAYER_LINEAR : LH_LAYER_SOFTMAX;
    const LhSchedule *schedule = plan->params.schedule[attention];
    const LhProgramParams params = params_of(plan, kind, pass, pack);
    LhProgram *program;

    if (is_given(plan))
        return plan->params.attention->pass[kind][pass == LH_PASS_BWD];
    if (schedule == NULL) {
        lh_program_refuse(error,
                          "the model has %s attention layers, but no named schedule supports them",
                          lh_layer_kind_names[attention]);
        return NULL;
    }
    program = lh_program_new(schedule, &params, error);
    if (program == NULL)
        return NULL;
    if (program->placement.kind == LH_PLACE_HEADS) {
        lh_program_refuse(error, "this schedule is tensor parallelism itself: use "
                                 "--tensor-model-parallel-size with another schedule");
        g_clear_pointer(&program, lh_program_free);
    } else if (program->params.attention.heads != params.attention.heads) {
        lh_program_refuse(error,
                          "the schedule would pad %u heads to %u; a step pads the model's heads "
                          "instead, by --pad heads or --pad width",
                          params.attention.heads, program->params.attention.heads);
        g_clear_pointer(&program, lh_program_free);
    }
    return program;
}

/* Whether programs under two packs have the same slots and streams: masks leave out blocks alone.
 */
static bool
same_layout(const LhProgram *first, const LhProgram *other)
{
    bool same =
        first->slots_count == other->slots_count && first->streams_count == other->streams_count;

    for (uint32_t i = 0; same && i < first->slots_count; i++) {
        const LhSlot *a = &first->slots[i], *b = &other->slots[i];

        same = strcmp(a->name, b->name) == 0 && a->kind == b->kind && a->role == b->role &&
               a->dtype == b->dtype && a->head_dim == b->head_dim && a->by_heads == b->by_heads &&
               a->part_bytes == b->part_bytes && a->parts == b->parts;
    }
    for (uint32_t i = 0; same && i < first->streams_count; i++)
        same = strcmp(first->streams[i].name, other->streams[i].name) == 0;
    return same;
}

static bool
make_module(LhStepPlan *plan, LhStepKind kind, uint32_t pack, GError **error)
{
    LhStepModule *module = &plan->modules[pack * LH_STEP_KINDS + kind];
    const LhProgram **programs = &plan->programs[2 * (pack * LH_STEP_KINDS + kind)];

    module->forward = make_pass(plan, kind, LH_PASS_FWD, pack, error);
    if (module->forward == NULL)
        return false;
    programs[0] = module->forward;
    module->forward_steps = steps_of(module->forward);
    g_assert(same_layout(plan->modules[kind].forward, module->forward));
    if (pack == 0) {
        module->forward_roles = roles_of(module->forward);
        module->forward_slots = g_new0(uint16_t, module->forward->slots_count);
    }
    if (plan->params.forward_only)
        return true;
    module->backward = make_pass(plan, kind, LH_PASS_BWD, pack, error);
    if (module->backward == NULL)
        return false;
    programs[1] = module->backward;
    module->backward_steps = steps_of(module->backward);
    g_assert(same_layout(plan->modules[kind].backward, module->backward));
    if (pack > 0)
        return true;
    module->backward_roles = roles_of(module->backward);
    module->backward_slots = g_new0(uint16_t, module->backward->slots_count);
    return true;
}

static bool
refuse_placements(const LhPlacement *softmax, const LhPlacement *other, GError **error)
{
    if (softmax->kind == other->kind)
        return lh_program_refuse(error,
                                 "the schedules of softmax and of linear attention cut a rank's "
                                 "tokens (%s) into different parts",
                                 lh_placement_names[softmax->kind]);
    return lh_program_refuse(error,
                             "the schedules of softmax and of linear attention place tokens "
                             "differently (%s, %s)",
                             lh_placement_names[softmax->kind], lh_placement_names[other->kind]);
}

/* Checks that all kinds have a rank's tokens in the same layout, since rows pass from layer to
 * layer. */
static bool
check_placements(const LhStepPlan *plan, GError **error)
{
    const LhPlacement *first = NULL;

    for (unsigned kind = 0; kind < LH_STEP_KINDS; kind++) {
        const LhProgram *program = plan->modules[kind].forward;

        if (program == NULL)
            continue;
        if (first == NULL)
            first = &program->placement;
        /* On one rank every placement has all tokens, though the number of segments may differ. */
        if (lh_placement_parts(first) != lh_placement_parts(&program->placement) ||
            (plan->params.module.ranks > 1 &&
             (first->kind != program->placement.kind || first->split != program->placement.split)))
            return refuse_placements(first, &program->placement, error);
    }
    return true;
}

bool
lh_step_make_modules(LhStepPlan *plan, GError **error)
{
    bool present[LH_STEP_KINDS] = { false };

    for (uint32_t i = 0; i < plan->layers; i++)
        present[plan->kinds[i]] = true;
    plan->modules = g_new0(LhStepModule, (size_t)plan->packs_count * LH_STEP_KINDS);
    plan->programs = g_new0(const LhProgram *, (size_t)plan->packs_count * 2 * LH_STEP_KINDS);
    for (uint32_t i = 0; i < plan->packs_count * LH_STEP_KINDS; i++) {
        const LhStepKind kind = (LhStepKind)(i % LH_STEP_KINDS);

        if (present[kind] && !make_module(plan, kind, i / LH_STEP_KINDS, error))
            return false;
    }
    return check_placements(plan, error);
}

void
lh_step_clear_modules(LhStepPlan *plan)
{
    for (uint32_t i = 0; plan->modules != NULL && i < plan->packs_count * LH_STEP_KINDS; i++) {
        LhStepModule *module = &plan->modules[i];

        if (!is_given(plan)) {
            lh_program_free(module->forward);
            lh_program_free(module->backward);
        }
        g_free(module->forward_roles);
        g_free(module->backward_roles);
        g_free(module->forward_steps);
        g_free(module->backward_steps);
        g_free(module->forward_slots);
        g_free(module->backward_slots);
    }
    g_free(plan->modules);
    g_free(plan->programs);
}

/* Finds the shape of the attention programs' slot with @role. */
static bool
shape_in(const LhProgram *program, const uint8_t *slot_roles, LhStepRole role, LhStepShape *shape)
{
    for (uint32_t i = 0; program != NULL && i < program->slots_count; i++) {
        const LhSlot *slot = &program->slots[i];

        if (slot_roles[i] != role)
            continue;
        *shape = (LhStepShape){
            .kind = slot->kind,
            .dtype = slot->dtype,
            .category = LH_CATEGORY_WORKING,
            .head_dim = slot->head_dim,
            .parts = slot->parts,
            .part_bytes = slot->part_bytes,
        };
        return true;
    }
    return false;
}

LhStepShape
lh_step_attention_shape(const LhStepPlan *plan, LhStepRole role, LhStepKind kind)
{
    const LhStepModule *module = &plan->modules[kind];
    LhStepShape shape = { 0 };

    if (!shape_in(module->forward, module->forward_roles, role, &shape) &&
        !shape_in(module->backward, module->backward_roles, role, &shape))
        g_assert_not_reached();
    return shape;
}

/* ---- attention alone, and placeholders ---- */

void
lh_step_take_attention(LhStepPlan *plan, LhStepAttention *attention)
{
    for (unsigned kind = 0; kind < LH_STEP_KINDS; kind++) {
        attention->pass[kind][0] = g_steal_pointer(&plan->modules[kind].forward);
        attention->pass[kind][1] = g_steal_pointer(&plan->modules[kind].backward);
    }
}

void
lh_step_attention_clear(LhStepAttention *attention)
{
    for (unsigned kind = 0; kind < LH_STEP_KINDS; kind++) {
        g_clear_pointer(&attention->pass[kind][0], lh_program_free);
        g_clear_pointer(&attention->pass[kind][1], lh_program_free);
    }
}

static uint32_t
hollow_steps(const LhProgram *program, uint32_t rank)
{
    (void)program;
    (void)rank;
    return 1;
}

static void
hollow_emit(LhEmitter *e, uint32_t step)
{
    const LhKernelArgs none = { 0 };

    (void)step;
    lh_emit_compute(e, 0, LH_KERNEL_ID_outside, &none);
}

static const LhGenerator hollow_generator = { .steps = hollow_steps, .emit = hollow_emit };

static LhProgram *
hollow_of(const LhProgram *program)
{
    LhProgram *hollow = lh_program_create(program->name, &hollow_generator, &program->params,
                                          program->placement.kind);

    hollow->placement = program->placement;
    hollow->saved_group = program->saved_group;
    lh_program_add_stream(hollow, program->streams[0].name, program->streams[0].kind);
    for (uint32_t i = 0; i < program->slots_count; i++) {
        const LhSlot *slot = &program->slots[i];

        if (slot->role == LH_SLOT_TEMP)
            continue;
        lh_program_add_slot(hollow, (LhSlotParams){ .name = slot->name,
                                                    .kind = slot->kind,
                                                    .role = slot->role,
                                                    .dtype = slot->dtype,
                                                    .head_dim = slot->head_dim,
                                                    .by_heads = slot->by_heads,
                                                    .category = slot->category,
                                                    .parts = slot->parts,
                                                    .part_bytes = slot->part_bytes });
    }
    return hollow;
}

LhStepAttention
lh_step_hollow(const LhStepAttention *attention)
{
    LhStepAttention hollow = { 0 };

    for (unsigned kind = 0; kind < LH_STEP_KINDS; kind++) {
        for (unsigned pass = 0; pass < 2 && attention->pass[kind][pass] != NULL; pass++)
            hollow.pass[kind][pass] = hollow_of(attention->pass[kind][pass]);
    }
    return hollow;
}

/* ---- slots and streams ---- */

/* Declares the module's own slots, prefixed by the pass and, except for softmax, the kind. */
static void
declare_slots(LhProgram *program, const LhProgram *module, const uint8_t *roles, uint16_t *slots,
              const char *prefix)
{
    for (uint32_t i = 0; i < module->slots_count; i++) {
        const LhSlot *slot = &module->slots[i];
        g_autofree char *name = g_strdup_printf("%s.%s", prefix, slot->name);

        if (roles[i] != LH_STEP_ROLES)
            continue;
        slots[i] = lh_program_add_slot(program, (LhSlotParams){
                                                    .name = name,
                                                    .kind = slot->kind,
                                                    .role = LH_SLOT_TEMP,
                                                    .dtype = slot->dtype,
                                                    .head_dim = slot->head_dim,
                                                    .category = LH_CATEGORY_ATTENTION,
                                                    .parts = slot->parts,
                                                    .part_bytes = slot->part_bytes,
                                                });
    }
}

/* Maps streams by name: the first is the step's compute stream, and "comm" is shared by all
 * modules. */
static void
declare_streams(LhProgram *program, const LhProgram *module, uint8_t *streams)
{
    for (uint32_t i = 0; i < module->streams_count; i++) {
        const LhStream *stream = &module->streams[i];
        uint32_t found = 0;

        while (found < program->streams_count &&
               strcmp(program->streams[found].name, stream->name) != 0)
            found++;
        streams[i] = (uint8_t)(found < program->streams_count
                                   ? found
                                   : lh_program_add_stream(program, stream->name, stream->kind));
    }
}

void
lh_step_declare_modules(LhStepPlan *plan, LhProgram *program)
{
    static const char *const prefixes[LH_STEP_KINDS][2] = {
        [LH_STEP_SOFTMAX] = { "fwd", "bwd" },
        [LH_STEP_WINDOWED] = { "fwd_win", "bwd_win" },
        [LH_STEP_LINEAR] = { "fwd_lin", "bwd_lin" },
    };

    for (unsigned kind = 0; kind < LH_STEP_KINDS; kind++) {
        LhStepModule *module = &plan->modules[kind];

        if (module->forward == NULL)
            continue;
        declare_slots(program, module->forward, module->forward_roles, module->forward_slots,
                      prefixes[kind][0]);
        if (module->backward != NULL)
            declare_slots(program, module->backward, module->backward_roles, module->backward_slots,
                          prefixes[kind][1]);
        declare_streams(program, module->forward, module->forward_streams);
        if (module->backward != NULL)
            declare_streams(program, module->backward, module->backward_streams);
    }
}
