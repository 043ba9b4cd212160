/*
 * One micro-batch, written down call by call; or, in a pipeline, all that a stage does. A row of
 * the tables is written down when its turn comes; what it reads is made first if it is not there,
 * by the row that makes it, and so on back to what was kept. Nothing else is known here of
 * recomputation.
 */
#include "step/stage_calls.h"

/* ---- lists ---- */

uint32_t
lh_step_add_tensor(LhStepRecorder *r, LhStepTensor tensor)
{
    tensor.stage = (uint16_t)r->stage;
    g_array_append_val(r->list->tensors, tensor);
    return r->list->tensors->len - 1;
}

LhStepCall *
lh_step_add_call(LhStepRecorder *r, LhStepCallKind does, LhStepStream stream, uint32_t layer)
{
    GArray *calls = r->list->calls;

    g_array_set_size(calls, calls->len + 1);
    LhStepCall *call = &g_array_index(calls, LhStepCall, calls->len - 1);

    *call = (LhStepCall){
        .does = (uint8_t)does,
        .stream = (uint8_t)stream,
        .phase = r->phase,
        .layer = (uint16_t)layer,
        .micro_batch = r->micro_batch,
        .replicas = 1,
    };
    return call;
}

void
lh_step_set_args(LhStepRecorder *r, LhStepCall *call, const LhKernelArgs *args)
{
    g_array_append_val(r->plan->args, *args);
    call->args = r->plan->args->len - 1;
}

void
lh_step_add_use(LhStepRecorder *r, LhStepCall *call, LhStepUse use)
{
    GArray *uses = r->list->uses;

    if (call->uses_count == 0)
        call->uses = uses->len;
    g_assert(call->uses_count < LH_STEP_USES_MAX && call->uses + call->uses_count == uses->len);
    g_array_append_val(uses, use);
    call->uses_count++;
}

/* ---- roles ---- */

static LhStepKind
kind_of(const LhStepRecorder *r, uint32_t layer)
{
    return (LhStepKind)r->plan->kinds[MIN(layer, r->plan->layers - 1)];
}

/* Where a role stands: that of the residual stream's gradient is one for all layers. */
static uint32_t *
place_of(LhStepRecorder *r, LhStepRole role, uint32_t layer)
{
    role = lh_step_role(r->plan, role);
    return &r->roles[role == LH_STEP_DX ? 0 : layer][role];
}

static uint32_t
new_role(LhStepRecorder *r, LhStepRole role, uint32_t layer)
{
    const LhStepTensor tensor = {
        .family = LH_STEP_OF_ROLE,
        .what = (uint8_t)lh_step_role(r->plan, role),
        .layer = (uint16_t)layer,
    };
    const LhStepBehaviour *b = &r->plan->params.behaviour;
    const uint32_t unfused_bytes = role == LH_STEP_X1             ? b->unfused_bytes
                                   : role == LH_STEP_DLOGITS_FP32 ? b->unfused_loss
                                                                  : 0;
    const LhStepTensor unfused = {
        .family = LH_STEP_OF_UNFUSED,
        .what = role == LH_STEP_X1 ? LH_STEP_W_NORM2 : LH_STEP_W_HEAD,
        .layer = (uint16_t)layer,
    };

    *place_of(r, role, layer) = lh_step_add_tensor(r, tensor);
    if (unfused_bytes > 0)
        lh_step_add_tensor(r, unfused); /* stands right behind it */
    return *place_of(r, role, layer);
}

static bool
has_row(const LhStepRecorder *r, const LhStepNode *node, uint32_t layer)
{
    if ((node->does == LH_STEP_GATHER || node->does == LH_STEP_SCATTER ||
         node->does == LH_STEP_STATS) &&
        r->plan->params.tensor_parallel == 1)
        return false;
    return (node->when & lh_step_features(r->plan, layer)) == node->when;
}

static void run(LhStepRecorder *r, const LhStepNode *node, uint32_t layer);

static bool
attention_makes(const LhStepRecorder *r, LhStepRole role, uint32_t layer)
{
    const LhStepModule *module = &r->plan->modules[kind_of(r, layer)];

    for (uint32_t i = 0; i < module->forward->slots_count; i++) {
        if (module->forward_roles[i] == role && module->forward->slots[i].role == LH_SLOT_OUTPUT)
            return true;
    }
    return false;
}

/* Whether @node makes @role of its layer (@next: of the one behind). */
static bool
makes(const LhStepRecorder *r, const LhStepNode *node, uint32_t layer, LhStepRole role, bool next)
{
    if (!has_row(r, node, layer))
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

/* The tensor that a role is; made again by the forward table if it was not kept. */
static uint32_t
need(LhStepRecorder *r, LhStepRole role, uint32_t layer)
{
    const LhStepNode *maker;
    const uint8_t phase = r->phase;
    uint32_t of = layer;

    if (*place_of(r, role, layer) != LH_STEP_NONE)
        return *place_of(r, role, layer);
    if (phase == LH_PHASE_BACKWARD)
        r->phase = LH_PHASE_RECOMPUTE;
    role = lh_step_role(r->plan, role);
    if (role == LH_STEP_X && layer == 0)
        maker = find_maker(r, lh_step_embed, layer, role, false);
    else if (role == LH_STEP_X)
        maker = find_maker(r, lh_step_forward, of = layer - 1, role, true);
    else
        maker = find_maker(r, layer == r->plan->layers ? lh_step_head : lh_step_forward, layer,
                           role, false);
    g_assert(maker != NULL);
    run(r, maker, of);
    r->phase = phase;
    g_assert(*place_of(r, role, layer) != LH_STEP_NONE);
    return *place_of(r, role, layer);
}

/* ---- rows ---- */

static LhStepUse
whole(const LhStepRecorder *r, LhStepRole role, uint32_t layer, uint32_t tensor)
{
    const LhStepShape shape = lh_step_role_shape(r->plan, lh_step_role(r->plan, role), layer);

    return (LhStepUse){ .tensor = tensor, .count = shape.parts };
}

/* Gathers or scatters, segment by segment in one call, so that the rows of a segment stay together.
 */
static void
run_tensor_collective(LhStepRecorder *r, const LhStepNode *node, uint32_t layer)
{
    const LhStepPlan *plan = r->plan;
    const LhStepRole from = (LhStepRole)node->operands[0].what;
    const LhStepRole to = (LhStepRole)node->operands[1].what;
    const bool gathers = node->does != LH_STEP_SCATTER;
    const uint32_t t = plan->params.tensor_parallel;
    const uint32_t segments = node->does == LH_STEP_STATS ? 1 : plan->segments;
    const uint32_t source = need(r, from, layer), target = new_role(r, to, layer);
    LhStepCall *call = lh_step_add_call(
        r, LH_STEP_CALL_COLLECTIVE,
        plan->params.behaviour.overlap_tensor ? LH_STEP_STREAM_TENSOR : LH_STEP_STREAM_COMPUTE,
        layer);

    call->collective = gathers ? LH_COLL_ALL_GATHER : LH_COLL_REDUCE_SCATTER;
    call->group = LH_STEP_GROUP_TENSOR;
    for (uint32_t s = 0; s < segments; s++) {
        const LhStepUse one = { .part = s, .count = 1 }, all = { .part = s * t, .count = t };
        LhStepUse send = gathers ? one : all, receive = gathers ? all : one;

        send.tensor = source;
        send.reads = true;
        receive.tensor = target;
        receive.writes = true;
        lh_step_add_use(r, call, send);
        lh_step_add_use(r, call, receive);
    }
}

/* Attention, forward or backward: uses name the module's slots in their `part`. */
static void
run_attention(LhStepRecorder *r, uint32_t layer, bool backward)
{
    const LhStepKind kind = kind_of(r, layer);
    const LhStepModule *module = &r->plan->modules[kind];
    const LhProgram *program = backward ? module->backward : module->forward;
    const uint8_t *roles = backward ? module->backward_roles : module->forward_roles;
    LhStepCall *call;

    for (uint32_t i = 0; i < program->slots_count; i++) {
        if (roles[i] != LH_STEP_ROLES && program->slots[i].role == LH_SLOT_INPUT)
            need(r, (LhStepRole)roles[i], layer);
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
                            .tensor = reads ? *place_of(r, role, layer) : new_role(r, role, layer),
                            .part = i,
                            .count = program->slots[i].parts,
                            .reads = reads,
                            .writes = !reads,
                        });
    }
}

static bool
is_kernel(LhKernelId kernel, const LhKernelId *list, unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        if (list[i] == kernel)
            return true;
    }
    return false;
}
#define IS_ONE_OF(kernel, ...)                                                                     \
    is_kernel(kernel, (const LhKernelId[]){ __VA_ARGS__ },                                         \
              G_N_ELEMENTS(((const LhKernelId[]){ __VA_ARGS__ })))

/* The traffic that the framework says of a kernel; a gradient's is twice that. */
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

/* What unfused kernels of a layer move is counted with its second norm: they write what they keep,
 * and read it, forward; backward they read it, too, and move as much again of gradients. */
static uint32_t
unfused_traffic(const LhStepPlan *plan, const LhStepNode *node)
{
    const uint32_t once = plan->params.behaviour.unfused_bytes;
    const bool forward = IS_ONE_OF(node->kernel, LH_KERNEL_ID_rms_norm, LH_KERNEL_ID_layer_norm);

    if (node->operands[1].kind != LH_STEP_WEIGHT || node->operands[1].what != LH_STEP_W_NORM2)
        return 0;
    return (forward ? 2 : 4) * once;
}

/* Whose rows a call by rows counts: the forward call's result. */
static LhStepRole
counted_role(const LhStepNode *node)
{
    if (IS_ONE_OF(node->kernel, LH_KERNEL_ID_glu, LH_KERNEL_ID_glu_bwd, LH_KERNEL_ID_gelu,
                  LH_KERNEL_ID_gelu_bwd))
        return node->operands[0].what == LH_STEP_EXPERT_UP ? LH_STEP_EXPERT_P : LH_STEP_P;
    for (unsigned i = 0; i < LH_STEP_OPERANDS; i++) {
        if (node->operands[i].kind == LH_STEP_IN)
            return (LhStepRole)node->operands[i].what;
    }
    return (LhStepRole)node->operands[2].what; /* embed: its result */
}

static LhKernelArgs
args_of(const LhStepRecorder *r, const LhStepNode *node, uint32_t layer)
{
    const LhStepPlan *plan = r->plan;
    const LhAttention *a = &plan->params.module.attention;
    const LhStepKind kind = kind_of(r, layer);
    const LhHeadsLayout layout = { .batch = a->batch, .members = plan->params.tensor_parallel };
    const uint32_t traffic = traffic_of(plan, node->kernel);
    const LhStepMatrix matrix =
        lh_step_matrix(plan, lh_step_held_weight(plan, (LhStepWeight)node->matrix), layer);
    LhKernelArgs args = { 0 };

    switch (lh_kernels[node->kernel]->args) {
    case LH_ARGS_PRODUCT:
        return lh_step_product(plan, &matrix);
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
    }
    }
    return args;
}

/* The part of @use that belongs to segment @segment. */
static LhStepUse
of_segment(const LhStepRecorder *r, LhStepUse use, uint32_t segment)
{
    use.count /= r->plan->segments;
    use.part = segment * use.count;
    return use;
}

/* What a kernel's operands are, now. */
typedef struct {
    LhStepUse uses[LH_STEP_OPERANDS];
    unsigned count;
    bool overwrites; /* a role that is updated was not there */
    bool starts, fresh;
} Operands;

static void
bind_operand(LhStepRecorder *r, const LhStepOperand *o, uint32_t layer, Operands *bound)
{
    const LhStepRole role = (LhStepRole)o->what;
    LhStepUse use = { .count = 1 };

    switch (o->kind) {
    case LH_STEP_IN:
        use = whole(r, role, layer, need(r, role, layer));
        use.reads = true;
        break;
    case LH_STEP_OUT:
        use = whole(r, role, layer, new_role(r, role, layer));
        use.writes = true;
        break;
    case LH_STEP_OUT_NEXT:
        use = whole(r, role, layer + 1, new_role(r, role, layer + 1));
        use.writes = true;
        break;
    case LH_STEP_UPDATE:
        bound->overwrites = *place_of(r, role, layer) == LH_STEP_NONE;
        use = whole(r, role, layer,
                    bound->overwrites ? new_role(r, role, layer) : *place_of(r, role, layer));
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
        bound->starts = true;
        break;
    default:
        use.tensor =
            lh_step_staying(r, o->kind == LH_STEP_TOKENS ? LH_STEP_OF_TOKENS : LH_STEP_OF_TARGETS);
        use.count = r->plan->segments * r->plan->params.tensor_parallel;
        use.reads = true;
        use.of_micro_batch = true;
    }
    bound->uses[bound->count++] = use;
}

/* Inputs first: they may have to be made. */
static Operands
bind_operands(LhStepRecorder *r, const LhStepNode *node, uint32_t layer)
{
    Operands bound = { 0 };

    for (unsigned i = 0; i < LH_STEP_OPERANDS; i++) {
        if (node->operands[i].kind == LH_STEP_IN)
            need(r, (LhStepRole)node->operands[i].what, layer);
        else if (node->operands[i].kind == LH_STEP_WEIGHT)
            lh_step_weight(r, (LhStepWeight)node->operands[i].what, layer);
    }
    for (unsigned i = 0; i < LH_STEP_OPERANDS && node->operands[i].kind != LH_STEP_OPERAND_END; i++)
        bind_operand(r, &node->operands[i], layer, &bound);
    return bound;
}

static void
run_kernel(LhStepRecorder *r, const LhStepNode *node, uint32_t layer)
{
    const LhArgsKind kind = lh_kernels[node->kernel]->args;
    const uint32_t calls = kind == LH_ARGS_HEADS ? r->plan->segments : 1;
    const Operands bound = bind_operands(r, node, layer);
    LhKernelArgs args = args_of(r, node, layer);

    if (kind == LH_ARGS_ROWS)
        args.rows.adds = !bound.overwrites;
    args.first = bound.overwrites && !bound.starts && kind != LH_ARGS_ROWS;
    for (uint32_t c = 0; c < calls; c++) {
        LhStepCall *call = lh_step_add_call(r, LH_STEP_CALL_COMPUTE, LH_STEP_STREAM_COMPUTE, layer);

        call->kernel = node->kernel;
        call->starts = bound.starts;
        call->fresh = bound.fresh;
        call->segment = (uint8_t)c;
        lh_step_set_args(r, call, &args);
        for (unsigned i = 0; i < bound.count; i++)
            lh_step_add_use(r, call, calls > 1 ? of_segment(r, bound.uses[i], c) : bound.uses[i]);
    }
}

static void
run(LhStepRecorder *r, const LhStepNode *node, uint32_t layer)
{
    if (!has_row(r, node, layer))
        return;
    switch (node->does) {
    case LH_STEP_GATHER:
    case LH_STEP_SCATTER:
    case LH_STEP_STATS:
        run_tensor_collective(r, node, layer);
        break;
    case LH_STEP_ATTENTION:
        run_attention(r, layer, false);
        break;
    case LH_STEP_NEED:
        if (r->plan->params.behaviour.gather_again && r->plan->params.tensor_parallel > 1)
            *place_of(r, (LhStepRole)node->operands[0].what, layer) = LH_STEP_NONE;
        need(r, (LhStepRole)node->operands[0].what, layer);
        break;
    default:
        run_kernel(r, node, layer);
    }
}

static void
run_table(LhStepRecorder *r, const LhStepNode *table, uint32_t layer)
{
    for (; table->does != LH_STEP_END; table++)
        run(r, table, layer);
}

/* ---- a micro-batch ---- */

static void
drop(LhStepRecorder *r, uint32_t layer, uint64_t stays)
{
    const bool begins =
        layer < r->plan->layers &&
        layer == lh_step_chunk_begins(&r->plan->params, lh_step_chunk_of(r->plan, layer));

    for (uint32_t role = 0; role < LH_STEP_ROLES; role++) {
        const bool first =
            role == LH_STEP_X && begins; /* nothing makes it again but the tokens, or a message */
        const bool kept = role < LH_STEP_KEPT_BITS && (stays >> role & 1) != 0;

        if (!kept && !first)
            r->roles[layer][role] = LH_STEP_NONE;
    }
}

/* Under FSDP whose halves are called apart, weights go and come around attention. */
static void
around_attention(LhStepRecorder *r, uint32_t layer)
{
    if (r->plan->params.behaviour.halves)
        lh_step_drop_weights(r, LH_STEP_W_Q, layer);
}

/* What stays of a layer's forward pass. */
static uint64_t
kept(const LhStepPlan *plan)
{
    const uint64_t gathered = UINT64_C(1) << LH_STEP_N1_FULL | UINT64_C(1) << LH_STEP_N2_FULL;

    return lh_step_kept[plan->params.checkpoint] &
           ~(plan->params.behaviour.gather_again ? gathered : 0);
}

/* Layers [first, end), behind the embedding if they begin with the first one of all. */
static void
forward(LhStepRecorder *r, uint32_t first, uint32_t end)
{
    r->phase = LH_PHASE_FORWARD;
    if (first == 0) {
        run_table(r, lh_step_embed, 0);
        lh_step_drop_weights(r, LH_STEP_W_EMBED, 0);
    }
    for (uint32_t layer = first; layer < end; layer++) {
        for (const LhStepNode *node = lh_step_forward; node->does != LH_STEP_END; node++) {
            run(r, node, layer);
            if (node->does == LH_STEP_ATTENTION)
                around_attention(r, layer);
        }
        drop(r, layer, kept(r->plan));
        if (r->plan->params.behaviour.reshard)
            lh_step_drop_weights(r, LH_STEP_W_Q, layer);
    }
}

/* Everything that these rows read of the forward pass, before the first of them. Gathered rows come
 * when they are needed: they wait for nothing but their stream. */
static void
need_all(LhStepRecorder *r, const LhStepNode *table, uint32_t layer)
{
    for (; table->does != LH_STEP_END; table++) {
        for (unsigned i = 0; i < LH_STEP_OPERANDS && has_row(r, table, layer); i++) {
            const LhStepOperand *o = &table->operands[i];
            const LhStepRole role = (LhStepRole)o->what;

            if (table->does == LH_STEP_KERNEL && o->kind == LH_STEP_IN && role < LH_STEP_E_SUM &&
                role != LH_STEP_N2_FULL && role != LH_STEP_N1_FULL)
                need(r, role, layer);
        }
    }
}

static void
head(LhStepRecorder *r)
{
    const uint32_t behind = r->plan->layers;

    r->phase = LH_PHASE_FORWARD;
    for (const LhStepNode *node = lh_step_head; node->does != LH_STEP_END; node++) {
        run(r, node, behind);
        if (node->kernel == LH_KERNEL_ID_loss && node->does == LH_STEP_KERNEL)
            r->phase = LH_PHASE_BACKWARD;
    }
    lh_step_drop_weights(r, LH_STEP_W_HEAD, 0);
    lh_step_drop_weights(r, LH_STEP_W_NORM_F, 0);
    lh_step_reduce_gradients(r, LH_STEP_W_NORM_F, 0);
    if (lh_step_is_shared(r->plan, LH_STEP_W_EMBED))
        lh_step_reduce_gradients(r, LH_STEP_W_EMBED, 0);
    drop(r, behind, 0);
}

/* Whether gathered weights go behind a layer's backward pass. Who does not cut them anew behind the
 * forward pass keeps them, in a pipeline, from the first micro-batch to the last one. */
static bool
drops_behind(const LhStepRecorder *r)
{
    return r->last || r->plan->params.behaviour.reshard;
}

/* Layers [first, end), from behind. */
static void
backward(LhStepRecorder *r, uint32_t first, uint32_t end)
{
    r->phase = LH_PHASE_BACKWARD;
    for (uint32_t layer = end; layer-- > first;) {
        /* Who recomputes a layer calls it again as a whole, its last product and all. */
        if (r->plan->params.checkpoint >= LH_CHECKPOINT_LAYER)
            need(r, LH_STEP_M, layer);
        need_all(r, lh_step_post_bwd, layer);
        run_table(r, lh_step_post_bwd, layer);
        around_attention(r, layer);
        run_attention(r, layer, true);
        run_table(r, lh_step_pre_bwd, layer);
        if (drops_behind(r))
            lh_step_drop_weights(r, LH_STEP_W_Q, layer);
        lh_step_reduce_gradients(r, LH_STEP_W_Q, layer);
        drop(r, layer, layer == 0 ? UINT64_C(1) << LH_STEP_DX : 0);
    }
    if (first == 0) {
        run_table(r, lh_step_embed_bwd, 0);
        lh_step_reduce_gradients(r, LH_STEP_W_EMBED, 0);
    }
}

/* ---- lists ---- */

static void
begin(LhStepRecorder *r)
{
    r->list->calls = g_array_new(FALSE, FALSE, sizeof(LhStepCall));
    r->list->uses = g_array_new(FALSE, FALSE, sizeof(LhStepUse));
    r->list->tensors = g_array_new(FALSE, FALSE, sizeof(LhStepTensor));
    lh_step_begin_weights(r);
}

/* A micro-batch of which nothing has been made yet. Caller frees. */
static uint32_t (*new_roles(const LhStepPlan *plan))[LH_STEP_ROLES]
{
    uint32_t(*roles)[LH_STEP_ROLES] = g_malloc((plan->layers + 1) * sizeof(*roles));

    for (uint32_t layer = 0; layer <= plan->layers; layer++) {
        for (uint32_t role = 0; role < LH_STEP_ROLES; role++)
            roles[layer][role] = LH_STEP_NONE;
    }
    return roles;
}

void
lh_step_record(LhStepPlan *plan, LhStepList *list, bool last)
{
    LhStepRecorder r = { .plan = plan, .list = list, .last = last, .roles = new_roles(plan) };

    begin(&r);
    forward(&r, 0, plan->layers);
    head(&r);
    backward(&r, 0, plan->layers);
    lh_step_reduce_waiting(&r);
    if (last)
        lh_step_record_optimizer(&r);
    lh_step_end_weights(&r);
    g_free(r.roles);
}

/* ---- pipelines ---- */

/* What a stage does in its turns; each micro-batch has roles of its own. */
typedef struct {
    LhStepRecorder r;
    uint32_t (**roles)[LH_STEP_ROLES]; /* [micro-batches] */
} Stage;

static void
enter_micro_batch(Stage *s, uint16_t micro_batch)
{
    if (s->roles[micro_batch] == NULL)
        s->roles[micro_batch] = new_roles(s->r.plan);
    s->r.roles = s->roles[micro_batch];
    s->r.micro_batch = micro_batch;
    s->r.last = micro_batch + 1u == s->r.plan->params.micro_batches;
}

/* The first layer of one of the stage's chunks, and the one behind its last. */
static uint32_t
first_layer(const Stage *s, uint32_t chunk)
{
    const LhStepParams *p = &s->r.plan->params;

    return lh_step_chunk_begins(p, chunk * lh_step_stages(p) + s->r.stage);
}

static uint32_t
layer_behind(const Stage *s, uint32_t chunk)
{
    const LhStepParams *p = &s->r.plan->params;

    return lh_step_chunk_begins(p, chunk * lh_step_stages(p) + s->r.stage + 1);
}

/* The loss is computed when its gradient is needed: a stage holds the logits of one micro-batch. */
static void
work(Stage *s, const LhStepTurn *turn)
{
    LhStepRecorder *r = &s->r;
    const uint32_t first = first_layer(s, turn->chunk);
    const uint32_t end = layer_behind(s, turn->chunk);

    enter_micro_batch(s, turn->micro_batch);
    if (!turn->backward) {
        forward(r, first, end);
        return;
    }
    if (end == r->plan->layers)
        head(r);
    backward(r, first, end);
    if (turn->chunk == 0)
        lh_step_reduce_model(r);
    if (lh_step_reduces_each(r->plan))
        lh_step_reduce_waiting(r);
}

/* Rows behind a chunk, or before it; and the gradient of these. */
static void
add_message(Stage *s, const LhStepMessage *message, guint call)
{
    LhStepRecorder *r = &s->r;
    const uint32_t first = first_layer(s, message->chunk);
    const uint32_t behind = layer_behind(s, message->chunk);
    const LhStepRole role = message->backward ? LH_STEP_DX : LH_STEP_X;
    const uint32_t layer = message->send == message->backward ? first : behind;
    LhStepUse use;

    enter_micro_batch(s, message->micro_batch);
    use =
        whole(r, role, layer, message->send ? *place_of(r, role, layer) : new_role(r, role, layer));
    use.reads = message->send;
    use.writes = !message->send;
    use.gradient = message->backward;
    lh_step_add_use(r, &g_array_index(r->list->calls, LhStepCall, call), use);
    if (message->send)
        *place_of(r, role, layer) = LH_STEP_NONE;
}

/* The call goes by the name of its first message. */
static void
exchange(Stage *s, const LhStepTurn *turn)
{
    LhStepRecorder *r = &s->r;
    const LhStepMessage *first = &turn->messages[0];

    enter_micro_batch(s, first->micro_batch);
    r->phase = first->backward ? LH_PHASE_BACKWARD : LH_PHASE_FORWARD;
    lh_step_add_call(r, LH_STEP_CALL_EXCHANGE, LH_STEP_STREAM_PIPELINE,
                     first_layer(s, first->chunk));
    for (uint32_t i = 0; i < turn->messages_count; i++)
        add_message(s, &turn->messages[i], r->list->calls->len - 1);
}

void
lh_step_record_turns(LhStepPlan *plan, uint32_t stage, const GArray *turns)
{
    const uint32_t micro_batches = plan->params.micro_batches;
    Stage s = { .r = { .plan = plan, .list = &plan->stages[stage].last, .stage = stage } };

    s.roles = g_malloc0(micro_batches * sizeof(*s.roles));
    begin(&s.r);
    for (guint i = 0; i < turns->len; i++) {
        const LhStepTurn *turn = &g_array_index(turns, LhStepTurn, i);

        if (turn->messages_count > 0)
            exchange(&s, turn);
        else
            work(&s, turn);
    }
    enter_micro_batch(&s, (uint16_t)(micro_batches - 1));
    lh_step_reduce_waiting(&s.r);
    lh_step_record_optimizer(&s.r);
    lh_step_end_weights(&s.r);
    for (uint32_t i = 0; i < micro_batches; i++)
        g_free(s.roles[i]);
    g_free(s.roles);
}
