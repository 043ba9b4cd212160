/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Records rows of the tables. A row's inputs that are absent are recomputed first, by the rows that
 * make them, and so on back to what was kept. That is all that implements recomputation.
 */
#include "step/table_rows.h"

#include "step/kernel_args.h"
#include "step/lora.h"
#include "step/memory/kept_beside.h"
#include "step/memory/tiles.h"
#include "step/sharding.h"

uint32_t *
lh_step_role_place(LhStepRecorder *r, LhStepRole role, uint32_t layer)
{
    role = lh_step_role(r->plan, role);
    return &r->roles[role == LH_STEP_DX ? 0 : layer][role];
}

/* The tensor of a result. It is one for all micro-batches, with the place of the weight that makes
 * it. */
static uint32_t
result(LhStepRecorder *r, LhStepRole role, uint32_t layer)
{
    const LhStepHeld of = { role == LH_STEP_KV ? LH_STEP_W_KV : LH_STEP_W_HEAD, layer };
    uint32_t *place = lh_step_weight_place(r, LH_STEP_OF_RESULT, of);

    if (*place == LH_STEP_NONE)
        *place = lh_step_add_tensor(r, (LhStepTensor){ .family = LH_STEP_OF_RESULT,
                                                       .what = (uint8_t)role,
                                                       .stays = true,
                                                       .layer = (uint16_t)layer });
    return *place;
}

uint32_t
lh_step_new_role(LhStepRecorder *r, LhStepRole role, uint32_t layer)
{
    const LhStepTensor tensor = {
        .family = LH_STEP_OF_ROLE,
        .what = (uint8_t)lh_step_role(r->plan, role),
        .layer = (uint16_t)layer,
    };
    const uint64_t unfused_bytes = role == LH_STEP_X1 ? lh_step_layer_beside_bytes(r->plan, layer)
                                   : role == LH_STEP_DLOGITS_FP32
                                       ? r->plan->params.behaviour.unfused_loss
                                       : 0;
    const LhStepTensor unfused = {
        .family = LH_STEP_OF_UNFUSED,
        .what = role == LH_STEP_X1 ? LH_STEP_W_NORM2 : LH_STEP_W_HEAD,
        .layer = (uint16_t)layer,
    };

    if (lh_step_is_result(r->plan, role))
        return *lh_step_role_place(r, role, layer) = result(r, role, layer);
    *lh_step_role_place(r, role, layer) = lh_step_add_tensor(r, tensor);
    if (unfused_bytes > 0)
        lh_step_add_tensor(r, unfused); /* must directly follow its role's tensor */
    return *lh_step_role_place(r, role, layer);
}

bool
lh_step_has_row(const LhStepRecorder *r, const LhStepNode *node, uint32_t layer)
{
    if ((node->does == LH_STEP_GATHER || node->does == LH_STEP_SCATTER ||
         node->does == LH_STEP_STATS) &&
        r->plan->params.tensor_parallel == 1)
        return false;
    return lh_step_takes(r->plan, node, layer);
}

static bool
attention_makes(const LhStepRecorder *r, LhStepRole role, uint32_t layer)
{
    const LhStepModule *module = &r->plan->modules[lh_step_layer_kind(r->plan, layer)];

    for (uint32_t i = 0; i < module->forward->slots_count; i++) {
        if (module->forward_roles[i] == role && module->forward->slots[i].role == LH_SLOT_OUTPUT)
            return true;
    }
    return false;
}

/* Whether @node makes @role of its layer (@next: of the next layer). */
static bool
makes(const LhStepRecorder *r, const LhStepNode *node, uint32_t layer, LhStepRole role, bool next)
{
    if (!lh_step_has_row(r, node, layer))
        return false;
    if (node->does == LH_STEP_ATTENTION)
        return !next && attention_makes(r, role, layer);
    for (unsigned i = 0; i < LH_STEP_OPERANDS; i++) {
        const LhStepOperand *o = &node->operands[i];
        const bool out = next ? o->kind == LH_STEP_OUT_NEXT
                              : o->kind == LH_STEP_OUT || o->kind == LH_STEP_UPDATE;

        if (out && lh_step_role(r->plan, (LhStepRole)o->what) == role)
            return true;
    }
    return false;
}

static const LhStepNode *
find_maker(const LhStepRecorder *r, const LhStepNode *table, uint32_t layer, LhStepRole role,
           bool next)
{
    while (table->does != LH_STEP_END && !makes(r, table, layer, role, next))
        table++;
    return table->does == LH_STEP_END ? NULL : table;
}

/* Runs the rows behind @maker that add to the role it has made. */
static void
run_updates(LhStepRecorder *r, const LhStepNode *table, const LhStepNode *maker, LhStepRole role,
            uint32_t layer)
{
    for (const LhStepNode *node = maker + 1; node->does != LH_STEP_END; node++) {
        if (node->kernel == LH_KERNEL_ID_add_hidden && makes(r, node, layer, role, false))
            lh_step_run_row(r, table, node, layer);
    }
}

uint32_t
lh_step_need(LhStepRecorder *r, LhStepRole role, uint32_t layer)
{
    const LhStepNode *table = layer == r->plan->layers ? lh_step_head : lh_step_forward, *maker;
    const bool next = role == LH_STEP_X && layer > 0; /* made by the layer before */
    const LhStepLoop loop = r->loop;
    const uint8_t phase = r->phase;

    if (*lh_step_role_place(r, role, layer) != LH_STEP_NONE)
        return *lh_step_role_place(r, role, layer);
    if (phase == LH_PHASE_BACKWARD || r->loop.forgot)
        r->phase = LH_PHASE_RECOMPUTE;
    role = lh_step_role(r->plan, role);
    if (role == LH_STEP_X)
        table = layer == 0 ? lh_step_embed : lh_step_forward;
    maker = find_maker(r, table, layer - next, role, next);
    g_assert(maker != NULL);
    if (maker->tiling != loop.tiling) /* it makes the role for all tiles */
        r->loop = (LhStepLoop){ .tiling = LH_STEP_NO_TILES };
    if (lh_step_begins_loop(r, maker))
        lh_step_run_tiles(r, table, maker, layer);
    else
        lh_step_run_row(r, table, maker, layer - next);
    if (!next && !lh_step_begins_loop(r, maker))
        run_updates(r, table, maker, role, layer);
    r->loop = loop;
    r->phase = phase;
    g_assert(*lh_step_role_place(r, role, layer) != LH_STEP_NONE);
    return *lh_step_role_place(r, role, layer);
}

LhStepUse
lh_step_whole_role(const LhStepRecorder *r, LhStepRole role, uint32_t layer, uint32_t tensor)
{
    const LhStepShape shape = lh_step_role_shape(r->plan, lh_step_role(r->plan, role), layer);

    return (LhStepUse){ .tensor = tensor,
                        .count = shape.parts,
                        .of_micro_batch = lh_step_is_result(r->plan, role) };
}

/* Gathers or scatters all segments in one call, one tensor for each, so that the rows of a segment
 * stay together. */
static void
run_tensor_collective(LhStepRecorder *r, const LhStepNode *node, uint32_t layer)
{
    const LhStepPlan *plan = r->plan;
    const LhStepRole from = (LhStepRole)node->operands[0].what;
    const LhStepRole to = (LhStepRole)node->operands[1].what;
    const bool gathers = node->does != LH_STEP_SCATTER;
    const uint32_t t = plan->params.tensor_parallel;
    const bool whole = node->does == LH_STEP_STATS; /* one part on each rank */
    const uint32_t segments = whole ? 1 : plan->segments, cuts = whole ? 1 : plan->cuts;
    const uint32_t source = lh_step_need(r, from, layer), target = lh_step_new_role(r, to, layer);
    LhStepCall *call = lh_step_add_call(
        r, LH_STEP_CALL_COLLECTIVE,
        plan->params.behaviour.overlap_tensor ? LH_STEP_STREAM_TENSOR : LH_STEP_STREAM_COMPUTE,
        layer);

    call->collective = gathers ? LH_COLL_ALL_GATHER : LH_COLL_REDUCE_SCATTER;
    call->group = LH_STEP_GROUP_TENSOR;
    for (uint32_t s = 0; s < segments; s++) {
        const LhStepUse one = { .part = s * cuts, .count = cuts };
        const LhStepUse all = { .part = s * t * cuts, .count = t * cuts };
        LhStepUse send = gathers ? one : all, receive = gathers ? all : one;

        send.tensor = source;
        send.reads = true;
        receive.tensor = target;
        receive.writes = true;
        lh_step_add_use(r, call, send);
        lh_step_add_use(r, call, receive);
    }
}

void
lh_step_run_attention(LhStepRecorder *r, uint32_t layer, bool backward)
{
    const LhStepKind kind = lh_step_layer_kind(r->plan, layer);
    const LhStepModule *module = &r->plan->modules[kind];
    const LhProgram *program = backward ? module->backward : module->forward;
    const uint8_t *roles = backward ? module->backward_roles : module->forward_roles;
    LhStepCall *call;

    for (uint32_t i = 0; i < program->slots_count; i++) {
        if (roles[i] != LH_STEP_ROLES && program->slots[i].role == LH_SLOT_INPUT)
            lh_step_need(r, (LhStepRole)roles[i], layer);
    }
    call = lh_step_add_call(r, LH_STEP_CALL_MODULE, LH_STEP_STREAM_COMPUTE, layer);
    call->kind = (uint8_t)kind;
    call->backward = backward;
    r->list->modules[kind][backward]++;
    for (uint32_t i = 0; i < program->slots_count; i++) {
        const LhStepRole role = (LhStepRole)roles[i];
        const bool reads = program->slots[i].role == LH_SLOT_INPUT;

        if (role == LH_STEP_ROLES)
            continue;
        lh_step_add_use(r, call,
                        (LhStepUse){
                            .tensor = reads ? *lh_step_role_place(r, role, layer)
                                            : lh_step_new_role(r, role, layer),
                            .part = i,
                            .count = program->slots[i].parts,
                            .of_micro_batch = lh_step_is_result(r->plan, role),
                            .reads = reads,
                            .writes = !reads,
                        });
    }
}

/* The part of @use that belongs to @segment. */
static LhStepUse
of_segment(const LhStepRecorder *r, LhStepUse use, uint32_t segment)
{
    use.count /= r->plan->segments;
    use.part = segment * use.count;
    return use;
}

/* Operands of a kernel. */
typedef struct {
    LhStepUse uses[LH_STEP_OPERANDS];
    unsigned count;
    bool overwrites; /* the role to update was absent */
    bool starts, fresh;
} Operands;

/* All of a role's tensor, or what belongs to the current tile. */
static LhStepUse
whole_or_tile(const LhStepRecorder *r, LhStepRole role, uint32_t layer, uint32_t tensor)
{
    return lh_step_use_of_tile(r, role, lh_step_whole_role(r, role, layer, tensor));
}

/* Tensor of a role that is written: a new one, or the one that other tiles have written, too. */
static uint32_t
written_role(LhStepRecorder *r, LhStepRole role, uint32_t layer)
{
    return lh_step_made_in_loop(r, role, layer) ? *lh_step_role_place(r, role, layer)
                                                : lh_step_new_role(r, role, layer);
}

static void
bind_operand(LhStepRecorder *r, const LhStepOperand *o, uint32_t layer, Operands *bound)
{
    const LhStepRole role = (LhStepRole)o->what;
    const uint32_t next = layer + (o->kind == LH_STEP_OUT_NEXT ? 1 : 0);
    LhStepUse use = { .count = 1 };

    switch (o->kind) {
    case LH_STEP_IN:
        use = whole_or_tile(r, role, layer, lh_step_need(r, role, layer));
        use.reads = true;
        break;
    case LH_STEP_IN_LAST:
        use = lh_step_whole_role(r, role, layer, lh_step_need(r, role, layer));
        use.part = use.count - 1;
        use.count = 1;
        use.reads = true;
        break;
    case LH_STEP_OUT:
    case LH_STEP_OUT_NEXT:
        use = whole_or_tile(r, role, next, written_role(r, role, next));
        use.writes = true;
        break;
    case LH_STEP_UPDATE:
        bound->overwrites =
            *lh_step_role_place(r, role, layer) == LH_STEP_NONE ||
            (lh_step_made_in_loop(r, role, layer) && !r->written[lh_step_role(r->plan, role)]);
        use = whole_or_tile(r, role, layer,
                            bound->overwrites ? written_role(r, role, layer)
                                              : *lh_step_role_place(r, role, layer));
        use.reads = !bound->overwrites;
        use.writes = true;
        break;
    case LH_STEP_WEIGHT:
        use.tensor = lh_step_weight(r, (LhStepWeight)o->what, layer);
        use.count = lh_step_pieces(r->plan);
        use.reads = true;
        break;
    case LH_STEP_GRADIENT:
        use.tensor =
            lh_step_gradient(r, (LhStepWeight)o->what, layer, &bound->starts, &bound->fresh);
        use.count = lh_step_pieces(r->plan);
        use.reads = use.writes = true;
        break;
    case LH_STEP_LOSS:
        use.tensor = lh_step_staying(r, LH_STEP_OF_LOSS);
        use.reads = use.writes = true;
        bound->starts = r->loop.tile == 0;
        break;
    default:
        use.tensor =
            lh_step_staying(r, o->kind == LH_STEP_TOKENS ? LH_STEP_OF_TOKENS : LH_STEP_OF_TARGETS);
        use.count = r->plan->segments * r->plan->params.tensor_parallel * r->plan->cuts;
        use = lh_step_use_of_tile(r, LH_STEP_X, use);
        use.reads = true;
        use.of_micro_batch = true;
    }
    if (o->kind == LH_STEP_OUT || o->kind == LH_STEP_UPDATE)
        r->written[lh_step_role(r->plan, role)] = true;
    bound->uses[bound->count++] = use;
}

/* Binds a role to be written where operand 0 is. */
static void
bind_in_place(LhStepRecorder *r, const LhStepOperand *o, uint32_t layer, Operands *bound)
{
    LhStepUse use = bound->uses[0];

    *lh_step_role_place(r, (LhStepRole)o->what, layer) = use.tensor;
    use.reads = false;
    use.writes = true;
    bound->uses[bound->count++] = use;
}

/* Binds the operands. Inputs come first, since they may have to be computed. */
static Operands
bind_operands(LhStepRecorder *r, const LhStepNode *node, uint32_t layer)
{
    Operands bound = { 0 };

    for (unsigned i = 0; i < LH_STEP_OPERANDS; i++) {
        if (node->operands[i].kind == LH_STEP_IN || node->operands[i].kind == LH_STEP_IN_LAST)
            lh_step_need(r, (LhStepRole)node->operands[i].what, layer);
        else if (node->operands[i].kind == LH_STEP_WEIGHT)
            lh_step_weight(r, (LhStepWeight)node->operands[i].what, layer);
    }
    for (unsigned i = 0; i < LH_STEP_OPERANDS && node->operands[i].kind != LH_STEP_OPERAND_END;
         i++) {
        const LhStepOperand *o = &node->operands[i];

        if (node->in_place && o->kind == LH_STEP_OUT)
            bind_in_place(r, o, layer, &bound);
        else
            bind_operand(r, o, layer, &bound);
    }
    return bound;
}

static void
run_kernel(LhStepRecorder *r, const LhStepNode *node, uint32_t layer)
{
    const LhArgsKind kind = lh_kernels[node->kernel]->args;
    const uint32_t calls = kind == LH_ARGS_HEADS ? r->plan->segments : 1;
    const Operands bound = bind_operands(r, node, layer);
    LhKernelArgs args = lh_step_kernel_args(r->plan, node, layer);

    if (kind == LH_ARGS_ROWS)
        args.rows.adds = !bound.overwrites;
    args.first = bound.overwrites && !bound.starts && kind != LH_ARGS_ROWS;
    for (uint32_t c = 0; c < calls; c++) {
        LhStepCall *call = lh_step_add_call(r, LH_STEP_CALL_COMPUTE, LH_STEP_STREAM_COMPUTE, layer);

        call->phase = node->again ? LH_PHASE_RECOMPUTE : r->phase;
        call->kernel = node->kernel;
        call->starts = bound.starts;
        call->fresh = bound.fresh;
        call->segment = (uint8_t)c;
        lh_step_set_args(r, call, &args);
        for (unsigned i = 0; i < bound.count; i++)
            lh_step_add_use(r, call, calls > 1 ? of_segment(r, bound.uses[i], c) : bound.uses[i]);
    }
}

/* Gathers rows again, if the framework does; the rows of a loop are gathered once for all tiles. */
static void
run_need(LhStepRecorder *r, const LhStepNode *node, uint32_t layer)
{
    const LhStepRole role = (LhStepRole)node->operands[0].what;
    const bool tiled = role == LH_STEP_XF_FULL
                           ? lh_step_tiles(r->plan, LH_STEP_TILES_OF_LOSS) > 0
                           : role == LH_STEP_N2_FULL &&
                                 (lh_step_features(r->plan, layer) & LH_STEP_HAS_TILED_MLP) != 0;

    if (!lh_step_is_read_again(&r->plan->params, role))
        return;
    if (r->plan->params.behaviour.gather_again && r->plan->params.tensor_parallel > 1 && !tiled)
        *lh_step_role_place(r, role, layer) = LH_STEP_NONE;
    lh_step_need(r, role, layer);
}

static void
forget(LhStepRecorder *r, const LhStepNode *node, uint32_t layer)
{
    if (!lh_step_loss_again(&r->plan->params))
        return;
    *lh_step_role_place(r, (LhStepRole)node->operands[0].what, layer) = LH_STEP_NONE;
    r->loop.forgot = true;
}

/* Whether @node is the first row of its loop that the layer has. */
static bool
is_first_of_loop(const LhStepRecorder *r, const LhStepNode *table, const LhStepNode *node,
                 uint32_t layer)
{
    while (table->tiling != node->tiling || !lh_step_has_row(r, table, layer))
        table++;
    return table == node;
}

void
lh_step_run_row(LhStepRecorder *r, const LhStepNode *table, const LhStepNode *node, uint32_t layer)
{
    if (!lh_step_has_row(r, node, layer))
        return;
    if (lh_step_begins_loop(r, node)) {
        if (is_first_of_loop(r, table, node, layer))
            lh_step_run_tiles(r, table, node, layer);
        return;
    }
    switch (node->does) {
    case LH_STEP_GATHER:
    case LH_STEP_SCATTER:
    case LH_STEP_STATS:
        run_tensor_collective(r, node, layer);
        break;
    case LH_STEP_ATTENTION:
        lh_step_run_attention(r, layer, false);
        break;
    case LH_STEP_NEED:
        run_need(r, node, layer);
        break;
    case LH_STEP_FORGET:
        forget(r, node, layer);
        break;
    default:
        run_kernel(r, node, layer);
        if (node->kernel == LH_KERNEL_ID_loss)
            r->phase = LH_PHASE_BACKWARD;
    }
}

void
lh_step_run_table(LhStepRecorder *r, const LhStepNode *table, uint32_t layer)
{
    for (const LhStepNode *node = table; node->does != LH_STEP_END; node++)
        lh_step_run_row(r, table, node, layer);
}
