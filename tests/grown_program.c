/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Grows programs: draws parameters, orders ops and decides which ones stay. An op comes after all
 * earlier ops of its rank that touch the same parts; occasionally one of these orderings is left
 * out.
 */
#include "grower.h"

#include "accesses.h"
#include "base/rng.h"
#include "program/holding.h"

#include <string.h>

#define TRIES 600 /* attempts to produce a result or an ingredient of it */
#define ROUNDS 16 /* each aims at every missing result */
#define WILD 60   /* percent of rounds that begin with an op without a purpose */
#define WINDOW 3
#define DECAY 0.9

uint32_t
grown_draw(Grower *g, uint32_t below)
{
    g_assert(below > 0);
    return (uint32_t)(lh_rng_bits(g->seed, g->drawn++, 7) % below);
}

bool
grown_chance(Grower *g, uint32_t percent)
{
    return grown_draw(g, 100) < percent;
}

bool
grown_mistakes(Grower *g)
{
    return g->wild && grown_chance(g, GROWN_MISTAKES);
}

/* ---- declarations ---- */

/* Bytes of a part: one segment of one slice of the heads. */
static uint64_t
part_bytes(const Grower *g, LhTensorKind kind, LhDtype dtype)
{
    const LhAttention *a = &g->program->params.attention;
    const uint64_t rows = a->batch * g->rows, fp32 = lh_dtype_bytes(LH_DTYPE_FP32);
    const uint64_t row = (uint64_t)a->head_dim * lh_dtype_bytes(dtype);
    const uint32_t slices = lh_program_slices(g->program, kind);
    const uint64_t heads = a->heads / slices, groups = a->groups / slices;

    switch (kind) {
    case LH_TENSOR_KV:
    case LH_TENSOR_DKV:
        return 2 * rows * groups * row;
    case LH_TENSOR_K:
    case LH_TENSOR_V:
    case LH_TENSOR_DK:
    case LH_TENSOR_DV:
        return rows * groups * row;
    case LH_TENSOR_ACC:
        return rows * heads * (row + 2 * fp32);
    case LH_TENSOR_OUT:
        return rows * heads * (row + fp32);
    case LH_TENSOR_LSE:
    case LH_TENSOR_DELTA:
        return rows * heads * fp32;
    case LH_TENSOR_SCORES:
    case LH_TENSOR_PROBS:
    case LH_TENSOR_DSCORES:
        return rows * heads * g->rows * lh_dtype_bytes(dtype);
    case LH_TENSOR_STATE:
    case LH_TENSOR_DSTATE:
        return (uint64_t)a->batch * heads * a->head_dim * row;
    default:
        return rows * heads * row;
    }
}

static void
declare_slot(Grower *g, LhTensorKind kind, LhSlotRole role, LhDtype dtype, uint32_t parts,
             bool by_heads)
{
    g_autofree char *name = g_strdup_printf("%s_%s%s", lh_tensor_names[kind], lh_dtype_names[dtype],
                                            role == LH_SLOT_TEMP    ? "_temp"
                                            : role == LH_SLOT_INPUT ? ""
                                                                    : "_out");

    lh_program_add_slot(g->program, (LhSlotParams){ .name = name,
                                                    .kind = kind,
                                                    .role = role,
                                                    .dtype = dtype,
                                                    .by_heads = by_heads,
                                                    .parts = parts,
                                                    .part_bytes = part_bytes(g, kind, dtype) });
}

/* Declares a tensor's input or output slot, in the program's type or fp32. Inputs saved by the
 * forward pass may keep its layout. */
static void
declare_own(Grower *g, LhTensorKind kind, LhSlotRole role, bool fp32)
{
    const bool by_heads = g->program->saved_group > 0 && role == LH_SLOT_INPUT &&
                          kind != LH_TENSOR_DO && grown_chance(g, 75);
    const LhSlot like = { .kind = kind, .by_heads = by_heads };

    declare_slot(g, kind, role, fp32 ? LH_DTYPE_FP32 : g->dtype, lh_slot_parts(g->program, &like),
                 by_heads);
}

static void
declare_contract(Grower *g)
{
    const LhProgramParams *p = &g->program->params;
    const bool forward = lh_pass_has(p, LH_PASS_FWD), backward = lh_pass_has(p, LH_PASS_BWD);
    const bool softmax = g->kind != GROWN_LINEAR;

    declare_own(g, LH_TENSOR_Q, LH_SLOT_INPUT, false);
    declare_own(g, LH_TENSOR_KV, LH_SLOT_INPUT, false);
    if (backward)
        declare_own(g, LH_TENSOR_DO, LH_SLOT_INPUT, false);
    if (!forward && grown_chance(g, 80))
        declare_own(g, LH_TENSOR_O, LH_SLOT_INPUT, false);
    if (!forward && softmax && grown_chance(g, 80))
        declare_own(g, LH_TENSOR_LSE, LH_SLOT_INPUT, true);
    if (forward)
        declare_own(g, LH_TENSOR_O, LH_SLOT_OUTPUT, grown_chance(g, 30));
    if (forward && softmax && grown_chance(g, 50))
        declare_own(g, LH_TENSOR_LSE, LH_SLOT_OUTPUT, true);
    if (backward)
        declare_own(g, LH_TENSOR_DQ, LH_SLOT_OUTPUT, grown_chance(g, 40));
    if (backward)
        declare_own(g, LH_TENSOR_DKV, LH_SLOT_OUTPUT, grown_chance(g, 40));
}

/* Kinds of temporary slots, the passes that have them, and their types. */
typedef struct {
    LhTensorKind kind;
    bool forward, backward; /* used in that pass only */
    bool narrow, fp32;      /* available types */
    bool in_rows;           /* calls take several consecutive parts, so there are more of them */
    uint8_t of;             /* LhGrownKind bits */
} Temporary;

#define OF(kind) (1U << (kind))
#define OF_ALL (OF(GROWN_BLOCKS) | OF(GROWN_SCORES) | OF(GROWN_LINEAR))
#define OF_SOFTMAX (OF(GROWN_BLOCKS) | OF(GROWN_SCORES))

static const Temporary temporaries[] = {
    { LH_TENSOR_Q, true, true, true, false, false, OF_ALL },
    { LH_TENSOR_KV, true, true, true, false, false, OF_ALL },
    { LH_TENSOR_ACC, true, false, true, true, false, OF(GROWN_BLOCKS) },
    { LH_TENSOR_OUT, true, false, true, true, false, OF(GROWN_BLOCKS) },
    { LH_TENSOR_O, true, true, true, true, false, OF_ALL },
    { LH_TENSOR_LSE, true, true, false, true, false, OF_SOFTMAX },
    { LH_TENSOR_DO, false, true, true, false, false, OF_ALL },
    { LH_TENSOR_DELTA, false, true, false, true, false, OF(GROWN_BLOCKS) },
    { LH_TENSOR_DQ, false, true, true, true, false, OF_ALL },
    { LH_TENSOR_DKV, false, true, true, true, false, OF_ALL },
    { LH_TENSOR_K, true, true, true, false, false, OF(GROWN_SCORES) },
    { LH_TENSOR_V, true, true, true, false, false, OF(GROWN_SCORES) },
    { LH_TENSOR_DK, false, true, true, true, false, OF(GROWN_SCORES) },
    { LH_TENSOR_DV, false, true, true, true, false, OF(GROWN_SCORES) },
    { LH_TENSOR_SCORES, true, true, false, true, true, OF(GROWN_SCORES) },
    { LH_TENSOR_PROBS, true, true, true, false, true, OF(GROWN_SCORES) },
    { LH_TENSOR_DSCORES, false, true, true, false, true, OF(GROWN_SCORES) },
    { LH_TENSOR_STATE, true, true, false, true, true, OF(GROWN_LINEAR) },
    { LH_TENSOR_DSTATE, false, true, false, true, true, OF(GROWN_LINEAR) },
};

static void
declare_temporaries(Grower *g)
{
    const LhProgramParams *p = &g->program->params;
    const uint32_t parts = 2 + grown_draw(g, 3);

    for (size_t i = 0; i < G_N_ELEMENTS(temporaries); i++) {
        const Temporary *t = &temporaries[i];
        const uint32_t count = parts + (t->in_rows ? g->segments : 0);

        if ((t->of >> g->kind & 1) == 0 || !((t->forward && lh_pass_has(p, LH_PASS_FWD)) ||
                                             (t->backward && lh_pass_has(p, LH_PASS_BWD))))
            continue;
        if (t->narrow && grown_chance(g, t->of == OF(g->kind) ? 95 : 85))
            declare_slot(g, t->kind, LH_SLOT_TEMP, g->dtype, count, false);
        if (t->fp32 && grown_chance(g, t->of == OF(g->kind) ? 95 : 85))
            declare_slot(g, t->kind, LH_SLOT_TEMP, LH_DTYPE_FP32, count, false);
    }
}

static bool
has_slot(const Grower *g, LhTensorKind kind)
{
    for (uint32_t i = 0; i < g->program->slots_count; i++) {
        if (kind == LH_TENSOR_ANY || g->program->slots[i].kind == kind)
            return true;
    }
    return false;
}

static void
list_kernels(Grower *g)
{
    const uint32_t attends = 1U << LH_EFFECT_ATTEND | 1U << LH_EFFECT_ATTEND_GRAD;
    const bool apart = g->kind == GROWN_SCORES && grown_chance(g, 75);

    for (int id = 0; id < LH_KERNELS_COUNT; id++) {
        const LhKernel *kernel = lh_kernels[id];
        bool usable = kernel->args == LH_ARGS_ATTENTION &&
                      (!kernel->linear || g->kind == GROWN_LINEAR) &&
                      !(apart && (attends >> kernel->effect & 1) != 0);

        for (uint32_t i = 0; kernel->operands[i].access != LH_OPERAND_END; i++)
            usable = usable && has_slot(g, kernel->operands[i].kind);
        if (usable)
            g->kernels[g->kernels_count++] = (LhKernelId)id;
    }
}

uint32_t
grown_complete(const Grower *g, LhTensorKind kind, uint32_t segment)
{
    const LhPlacement *p = &g->program->placement;
    const LhMaskRule *rule = &g->program->params.mask;
    const bool keys = lh_tensor_is_kv(kind);
    uint32_t set = 0;

    for (uint32_t other = 0; other < g->segments; other++) {
        const LhSegment own = lh_placement_segment(p, segment),
                        met = lh_placement_segment(p, other);

        if (lh_mask_pairs(rule, keys ? met : own, keys ? own : met) == 0)
            continue;
        if (keys)
            set |= ((1U << g->replicas) - 1) << other * g->replicas;
        else
            set |= 1U << other;
    }
    return set;
}

/* Inputs hold the rank's own segments, complete with all contributions. */
static void
fill_inputs(Grower *g)
{
    for (uint32_t rank = 0; rank < g->ranks; rank++) {
        for (uint16_t slot = 0; slot < (uint16_t)g->program->slots_count; slot++) {
            const LhSlot *s = &g->program->slots[slot];
            const LhRegion all = lh_region_whole(g->program, slot);

            for (uint32_t i = 0; s->role == LH_SLOT_INPUT && i < all.count; i++) {
                const LhHolding holding = lh_slot_holding(g->program, s, rank, i);

                *grown_cell(g, rank, all, i) =
                    (GrownCell){ .known = true,
                                 .segment = holding.segment,
                                 .slice = holding.slice,
                                 .set = grown_complete(g, s->kind, holding.segment) };
            }
        }
    }
}

/* How heads are sliced and placed. */
typedef struct {
    LhPlacementKind placement;
    uint32_t slices, kv_slices;
    uint32_t heads, groups;
} Layout;

/* Unsliced heads; as many key-value heads, or one for all. */
static Layout
choose_uncut(Grower *g)
{
    static const LhPlacementKind kinds[] = { LH_PLACE_CONTIGUOUS, LH_PLACE_CONTIGUOUS,
                                             LH_PLACE_STRIPED, LH_PLACE_ZIGZAG };
    const bool linear = g->kind == GROWN_LINEAR;
    Layout l = { .placement =
                     linear ? LH_PLACE_CONTIGUOUS : kinds[grown_draw(g, G_N_ELEMENTS(kinds))],
                 .slices = 1,
                 .kv_slices = 1,
                 .heads = 1 + grown_draw(g, 2) };

    l.groups = linear || grown_chance(g, 70) ? l.heads : 1;
    return l;
}

/* Slices of one head or two. Slices that share keys and values share one key-value head. */
static Layout
choose_layout(Grower *g)
{
    Layout l = choose_uncut(g);
    uint32_t each;

    if (grown_chance(g, 50))
        return l;
    each = grown_chance(g, 70) ? 1 : 2;
    if (g->kind != GROWN_LINEAR && grown_chance(g, 25))
        l.placement = LH_PLACE_HEADS;
    l.slices = l.placement == LH_PLACE_HEADS                                            ? g->ranks
               : l.placement != LH_PLACE_ZIGZAG && g->ranks == 2 && grown_chance(g, 25) ? 4
                                                                                        : 2;
    l.kv_slices = l.slices;
    if (g->kind != GROWN_LINEAR && grown_chance(g, 50))
        l.kv_slices = l.slices == 4 ? 1 + grown_draw(g, 2) : 1;
    l.heads = l.slices * each;
    l.groups = l.kv_slices;
    if (l.kv_slices == l.slices && (g->kind == GROWN_LINEAR || grown_chance(g, 50)))
        l.groups = l.heads;
    return l;
}

static void
declare_streams(Grower *g)
{
    static const char *const names[GROWN_STREAMS] = { "compute", "second", "comm" };

    for (uint32_t i = 0; i < GROWN_STREAMS; i++)
        lh_program_add_stream(g->program, names[i],
                              i + 1 < GROWN_STREAMS ? LH_STREAM_COMPUTE : LH_STREAM_COMM);
}

static void
declare(Grower *g, const LhProgramParams *params, const Layout *layout)
{
    g->built = built_placed("grown", params, layout->placement);
    g->program = g->built.program;
    g->program->head_slices = layout->slices;
    g->program->kv_slices = layout->kv_slices;
    g->replicas = layout->slices / layout->kv_slices;
    g->segments = lh_placement_segments(&g->program->placement);
    if (layout->slices > 1 && layout->placement != LH_PLACE_HEADS && params->pass == LH_PASS_BWD &&
        grown_chance(g, 40))
        g->program->saved_group = g->ranks;
    declare_contract(g);
    declare_temporaries(g);
    g_assert(g->program->slots_count <= GROWN_SLOTS_MAX &&
             lh_program_cells(g->program) <= GROWN_CELLS_MAX);
    declare_streams(g);
}

static void
choose_params(Grower *g, const Layout *layout, LhProgramParams *params)
{
    static const LhPass passes[] = { LH_PASS_FWD, LH_PASS_FWD, LH_PASS_BWD, LH_PASS_BOTH };
    const bool linear = g->kind == GROWN_LINEAR;
    const uint32_t segments = layout->placement == LH_PLACE_HEADS    ? 1
                              : layout->placement == LH_PLACE_ZIGZAG ? 2 * g->ranks
                                                                     : g->ranks;

    g->rows = 2 + grown_draw(g, 3);
    g->dtype = grown_chance(g, 75) ? LH_DTYPE_FP16 : LH_DTYPE_BF16;
    params->ranks = g->ranks;
    params->pass = passes[grown_draw(g, G_N_ELEMENTS(passes))];
    params->mask.causal = linear || grown_chance(g, 65);
    params->mask.window = params->mask.causal && !linear && grown_chance(g, 25) ? WINDOW : 0;
    params->attention = (LhAttention){ .batch = 1 + grown_draw(g, 2),
                                       .seq_length = g->rows * segments,
                                       .heads = layout->heads,
                                       .groups = layout->groups,
                                       .head_dim = 8,
                                       .linear = linear,
                                       .decay = linear && grown_chance(g, 50) ? DECAY : 0,
                                       .dtype = g->dtype };
}

static void
begin(Grower *g)
{
    const Layout layout = choose_layout(g);
    LhProgramParams params = { 0 };

    choose_params(g, &layout, &params);
    declare(g, &params, &layout);
    list_kernels(g);
    fill_inputs(g);
    for (uint32_t rank = 0; rank < g->ranks; rank++) {
        g->built.emitters[rank].phase =
            params.pass == LH_PASS_FWD ? LH_PHASE_FORWARD : LH_PHASE_BACKWARD;
        grown_begin_memory(g, rank);
        g->first[rank] = g->built.states[rank].next_id;
    }
}

/* ---- masks ---- */

static uint64_t
pairs_by_position(const Grower *g, const LhKernelArgs *a, uint32_t k_count)
{
    const LhSegment q = { (uint64_t)a->q_at.start, a->stride, g->rows };
    uint64_t pairs = 0;

    for (uint32_t i = 0; i < k_count; i++)
        pairs += lh_mask_pairs(
            a->rule, q,
            (LhSegment){ (uint64_t)(a->k_at.start + i * a->k_at.part_step), a->stride, g->rows });
    return pairs;
}

void
grown_mask(Grower *g, LhKernelArgs *args, uint32_t q, const uint32_t *k, uint32_t k_count)
{
    const LhPlacement *p = &g->program->placement;
    const LhSegment q_at = lh_placement_segment(p, q), k_at = lh_placement_segment(p, k[0]);
    const LhBlock block = lh_block(q_at, k_at, &g->program->params.mask);

    args->nq = g->rows;
    args->nk = k_count * g->rows;
    args->rule = &g->program->params.mask;
    args->stride = q_at.stride;
    args->q_at.start = (int64_t)q_at.start;
    args->k_at.start = (int64_t)k_at.start;
    if (k_count > 1)
        args->k_at.part_step = (int64_t)lh_placement_segment(p, k[1]).start - args->k_at.start;
    args->pairs = pairs_by_position(g, args, k_count);
    args->mask = LH_MASK_POSITIONS;
    if (args->pairs == args->nq * args->nk && grown_chance(g, 60)) {
        args->mask = LH_MASK_FULL;
    } else if (k_count == 1 && block.kind == LH_MASK_CAUSAL && grown_chance(g, 85)) {
        args->mask = LH_MASK_CAUSAL;
        args->shift = (int8_t)block.shift;
    }
}

/* ---- order ---- */

static bool
conflict(const LhOp *a, const LhOp *b, const LhPart *parts)
{
    Access of_a[ACCESSES_MAX], of_b[ACCESSES_MAX];

    return accesses_conflict(of_a, accesses_of(a, parts, of_a), of_b, accesses_of(b, parts, of_b));
}

/* The rank's last op comes after all earlier ones it conflicts with; occasionally one of them is
 * left out. */
void
grown_order(Grower *g, uint32_t rank)
{
    LhEmitter *e = &g->built.emitters[rank];
    const LhOpBuffer *buffer = &g->built.buffers[rank];
    LhOp *op = lh_emit_last(e);
    const uint32_t first = g->first[rank], index = op->id - first;
    const bool on_stream = lh_op_on_stream(op);
    uint64_t before = 0;
    bool leave_out = grown_chance(g, 6);

    for (uint32_t i = index; i-- > 0;) {
        const LhOp *other = &buffer->ops[first + i];

        if ((before >> i & 1) != 0)
            continue;
        if (!on_stream || other->kind == LH_OP_SYNC ||
            (lh_op_on_stream(other) && other->stream == op->stream)) {
            before |= UINT64_C(1) << i | g->before[rank][i];
        } else if (conflict(op, other, buffer->parts) && op->after_count < LH_OP_AFTER_MAX) {
            if (!leave_out)
                lh_emit_after(e, other->id);
            before |= UINT64_C(1) << i | g->before[rank][i];
            leave_out = false;
        }
    }
    g->before[rank][index] = before;
}

/* ---- growing ---- */

void
grown_keep(const Grower *g, GrownState *state)
{
    for (uint32_t rank = 0; rank < g->ranks; rank++) {
        state->ops[rank] = g->built.buffers[rank].ops_count;
        state->parts[rank] = g->built.buffers[rank].parts_count;
        state->counts[rank] = g->built.buffers[rank].counts_count;
    }
    memcpy(state->cells, g->cells, sizeof(state->cells));
}

void
grown_go_back(Grower *g, const GrownState *state)
{
    for (uint32_t rank = 0; rank < g->ranks; rank++) {
        g->built.buffers[rank].ops_count = g->built.states[rank].next_id = state->ops[rank];
        g->built.buffers[rank].parts_count = state->parts[rank];
        g->built.buffers[rank].counts_count = state->counts[rank];
    }
    memcpy(g->cells, state->cells, sizeof(state->cells));
}

/* The judge's verdict on the program if it ended here. */
static bool
ask(Grower *g)
{
    g_autofree GrownState *state = g_new0(GrownState, 1);
    bool stays;

    grown_keep(g, state);
    for (uint32_t rank = 0; rank < g->ranks; rank++)
        grown_end_memory(g, rank);
    for (uint32_t rank = 0; rank < g->ranks; rank++)
        g->views[rank] = built_rank(&g->built.buffers[rank]);
    g->view = (LhExplicit){ g->views, g->ranks };
    g->program->plan = &g->view;
    stays = g->judge(g->program);
    g->program->plan = NULL;
    grown_go_back(g, state);
    return stays;
}

bool
grown_settle(Grower *g, const GrownState *state)
{
    bool stays = true;

    for (uint32_t rank = 0; rank < g->ranks; rank++)
        stays = stays && g->built.buffers[rank].ops_count - g->first[rank] < GROWN_OPS_MAX;
    stays = stays && ask(g);
    if (!stays)
        grown_go_back(g, state);
    return stays;
}

/* Every second program uses blocks. */
static GrownKind
choose_kind(Grower *g)
{
    const uint32_t kind = grown_draw(g, GROWN_KINDS + 1);

    return kind < GROWN_KINDS ? (GrownKind)kind : GROWN_BLOCKS;
}

/* Aims at every missing result, beginning with a random one; returns how many are missing. */
static uint32_t
aim_at_all(Grower *g)
{
    const uint32_t cells = lh_program_cells(g->program), all = g->ranks * cells;
    const uint32_t from = grown_draw(g, all);
    uint32_t missing = 0;

    for (uint32_t i = 0; i < all; i++) {
        const uint32_t rank = (from + i) % all / cells, index = (from + i) % cells;

        for (uint16_t slot = 0; slot < (uint16_t)g->program->slots_count; slot++) {
            const LhSlot *s = &g->program->slots[slot];

            if (s->role != LH_SLOT_OUTPUT || index < s->first_cell ||
                index - s->first_cell >= s->parts)
                continue;
            if (!grown_has(g, rank, slot, index - s->first_cell))
                grown_aim(g, rank, slot, index - s->first_cell);
            missing += !grown_has(g, rank, slot, index - s->first_cell);
        }
    }
    return missing;
}

LhProgram *
grown_program(uint64_t seed, GrownJudge judge, bool wild, bool *complete)
{
    Grower *g = g_new0(Grower, 1);
    LhProgram *program;

    g->seed = seed;
    g->kind = choose_kind(g);
    g->judge = judge;
    g->wild = wild;
    g->ranks = grown_chance(g, g->kind == GROWN_LINEAR ? 30 : 80) ? 2 : 3;
    begin(g);
    *complete = false;
    for (uint32_t round = 0; round < ROUNDS && !*complete; round++) {
        g->tries = TRIES;
        if (wild && grown_chance(g, WILD))
            grown_go_wild(g);
        *complete = aim_at_all(g) == 0;
    }
    for (uint32_t rank = 0; rank < g->ranks; rank++)
        grown_end_memory(g, rank);
    program = built_end(&g->built);
    g_free(g);
    return program;
}
