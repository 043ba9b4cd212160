/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Recipes. A wanted part exists on the rank already; or a kernel produces it from parts that are
 * wanted in turn; or another rank produces and sends it; or all ranks produce terms that are added.
 */
#include "grower.h"

#include "program/holding.h"

#define DEPTH_MAX 9
#define WAYS 4 /* tried per part */
#define PREFIX_LOTS 8
#define MISTAKES 1 /* percent of operands with random heads */

/* ---- sets ---- */

static uint32_t
member(Grower *g, uint32_t set)
{
    uint32_t skip = grown_draw(g, (uint32_t)__builtin_popcount(set)), i = 0;

    for (;; i++) {
        if ((set >> i & 1) != 0 && skip-- == 0)
            return i;
    }
}

/* A random non-empty subset, often of one. */
static uint32_t
some_of(Grower *g, uint32_t set)
{
    uint32_t some = 1U << member(g, set);

    for (uint32_t i = 0; i < g->segments * g->replicas; i++) {
        if ((set >> i & 1) != 0 && grown_chance(g, 25))
            some |= 1U << i;
    }
    return some;
}

/* ---- calls ---- */

typedef struct {
    Grower *g;
    uint32_t rank;
    unsigned depth;
    const GrownWant *w;
    LhRegion at;    /* the wanted part; pinned */
    uint32_t slice; /* of the query heads; determines that of the key-value heads */
    LhKernelId id;
    const LhKernel *kernel;
    uint32_t target; /* index of the wanted operand */
    LhRegion regions[LH_KERNEL_OPERANDS_MAX];
    bool held[LH_KERNEL_OPERANDS_MAX];         /* pinned for the call */
    GrownCell results[LH_KERNEL_OPERANDS_MAX]; /* per part of a written operand */
    LhKernelArgs args;
} Call;

/* Types allowed for operand @i. */
static uint32_t
types_of_operand(const Call *c, uint32_t i)
{
    const uint32_t target = grown_types(&c->g->program->slots[c->at.slot]);

    switch (c->kernel->operands[i].element) {
    case LH_ELEMENT_FP32:
        return GROWN_FP32;
    case LH_ELEMENT_EITHER:
        return c->kernel->operands[c->target].element == LH_ELEMENT_OTHER ? GROWN_ANY_TYPE & ~target
                                                                          : GROWN_ANY_TYPE;
    case LH_ELEMENT_OTHER:
        return GROWN_ANY_TYPE;
    case LH_ELEMENT_ACTIVATION:
    default:
        return GROWN_NARROW;
    }
}

static LhTensorKind
kind_of_operand(const Call *c, uint32_t i)
{
    const LhTensorKind kind = c->kernel->operands[i].kind;

    return kind == LH_TENSOR_ANY ? c->w->kind : kind;
}

static uint32_t
operands_of(const LhKernel *kernel)
{
    uint32_t count = 0;

    while (kernel->operands[count].access != LH_OPERAND_END)
        count++;
    return count;
}

/* The content wanted for operand @i, in the call's slice. */
static GrownWant
wanted(const Call *c, uint32_t i, uint32_t segment, uint32_t set, bool ended)
{
    const LhTensorKind kind = kind_of_operand(c, i);

    return (GrownWant){ .kind = kind,
                        .types = types_of_operand(c, i),
                        .segment = segment,
                        .set = set,
                        .ended = ended,
                        .slice = lh_tensor_is_kv(kind) ? c->slice / c->g->replicas : c->slice };
}

/* Gets a part with this content for operand @i; occasionally with other heads. */
static bool
need(Call *c, uint32_t i, uint32_t segment, uint32_t set, bool ended)
{
    GrownWant want = wanted(c, i, segment, set, ended);

    if (c->g->wild && grown_chance(c->g, MISTAKES))
        want.slice = grown_draw(c->g, lh_program_slices(c->g->program, want.kind));
    c->held[i] = grown_make(c->g, c->rank, &want, NULL, c->depth + 1, &c->regions[i]);
    return c->held[i];
}

/* Gets consecutive parts of one kind and type with these contents for operand @i. */
static bool
need_row(Call *c, uint32_t i, const GrownWant *wants, uint32_t count)
{
    LhRegion part, made;

    if (!grown_choose_free(c->g, c->rank, &wants[0], count, &c->regions[i]))
        return false;
    c->held[i] = true;
    part = c->regions[i];
    part.count = 1;
    for (uint32_t k = 0; k < count; k++, part.part++) {
        if (!grown_make(c->g, c->rank, &wants[k], &part, c->depth + 1, &made))
            return false;
        grown_unpin(c->g, c->rank, made);
    }
    return true;
}

/* Gets one part, or consecutive parts, of these segments for operand @i. */
static bool
need_segments(Call *c, uint32_t i, const uint32_t *segments, uint32_t count)
{
    GrownWant wants[GROWN_SEGMENTS_MAX] = { 0 };

    if (count == 1)
        return need(c, i, segments[0], 0, false);
    for (uint32_t k = 0; k < count; k++)
        wants[k] = wanted(c, i, segments[k], 0, false);
    return need_row(c, i, wants, count);
}

/* Chooses a free part for operand @i, a by-product that will hold @holds. */
static bool
spare(Call *c, uint32_t i, GrownCell holds)
{
    const GrownWant want = wanted(c, i, 0, 0, false);

    holds.slice = want.slice;
    c->results[i] = holds;
    c->held[i] = grown_choose_free(c->g, c->rank, &want, 1, &c->regions[i]);
    return c->held[i];
}

static void
take_target(Call *c)
{
    c->regions[c->target] = c->at;
    c->results[c->target] = grown_result(c->w);
}

/* Emits the call. */
static bool
call(Call *c)
{
    Grower *g = c->g;
    const LhAttention *a = &g->program->params.attention;
    LhEmitter *e = &g->built.emitters[c->rank];
    g_autofree GrownState *state = g_new(GrownState, 1);

    grown_keep(g, state);
    c->args.batch = a->batch;
    c->args.heads = a->heads / lh_program_slices(g->program, LH_TENSOR_Q);
    c->args.groups = a->groups / lh_program_slices(g->program, LH_TENSOR_KV);
    c->args.head_dim = a->head_dim;
    c->args.decay = c->kernel->linear ? a->decay : 0;
    lh_emit_compute(e, (uint8_t)grown_draw(g, GROWN_STREAMS), c->id, &c->args);
    for (uint32_t i = 0; i < operands_of(c->kernel); i++)
        lh_emit_operand(e, c->regions[i].slot, c->regions[i].part, c->regions[i].count);
    grown_order(g, c->rank);
    for (uint32_t i = 0; i < operands_of(c->kernel); i++) {
        for (uint32_t k = 0;
             c->kernel->operands[i].access != LH_OPERAND_READ && k < c->regions[i].count; k++)
            grown_put(g, c->rank, c->regions[i], k, c->results[i]);
    }
    return grown_settle(g, state);
}

/* Sets the rows of a call that processes every element of a tensor of @kind once. */
static void
count_elements(Call *c, LhTensorKind kind, uint32_t parts)
{
    const bool state = kind == LH_TENSOR_STATE || kind == LH_TENSOR_DSTATE;
    const uint64_t rows = parts * (state ? c->g->program->params.attention.head_dim : c->g->rows);

    *(lh_tensor_is_kv(kind) ? &c->args.nk : &c->args.nq) = rows;
}

bool
grown_empty(Grower *g, uint32_t rank, LhRegion region)
{
    Call c = { .g = g,
               .rank = rank,
               .id = LH_KERNEL_ID_zero,
               .kernel = lh_kernels[LH_KERNEL_ID_zero],
               .regions = { region },
               .results = { { .known = true, .empty = true } } };

    count_elements(&c, g->program->slots[region.slot].kind, region.count);
    return call(&c);
}

/* Makes the target hold @rest of the wanted set. If @rest is empty, the call initialises it or it
 * is an empty accumulator. */
static bool
begin_sum(Call *c, uint32_t rest)
{
    GrownWant before = *c->w;
    LhRegion made;

    before.set = rest;
    before.types = grown_types(&c->g->program->slots[c->at.slot]);
    c->args.first = rest == 0 && (grown_chance(c->g, 80) || !grown_suits_any(c->w->kind));
    if (rest == 0)
        return c->args.first || grown_empty(c->g, c->rank, c->at);
    if (!grown_make(c->g, c->rank, &before, &c->at, c->depth + 1, &made))
        return false;
    grown_unpin(c->g, c->rank, made);
    return true;
}

/* ---- recipes by effect ---- */

static uint32_t
list(uint32_t set, uint32_t *members)
{
    uint32_t count = 0;

    for (uint32_t i = 0; set >> i != 0; i++) {
        if ((set >> i & 1) != 0)
            members[count++] = i;
    }
    return count;
}

/* Takes part @next, behind the target, if nothing needs it; pins it. */
static bool
take_next(const Call *c, LhRegion next)
{
    const LhSlot *slot = &c->g->program->slots[next.slot];
    const GrownCell *cell;

    if (next.part >= slot->parts)
        return false;
    cell = grown_cell(c->g, c->rank, next, 0);
    if (cell->pins > 0 || (slot->role != LH_SLOT_TEMP && cell->known))
        return false;
    grown_pin(c->g, c->rank, next);
    if (grown_bring_back(c->g, c->rank, next, false))
        return true;
    grown_unpin(c->g, c->rank, next);
    return false;
}

/* Records the results of a call on two slices: the second parts are of slice @second. */
static void
put_slice(const Call *c, uint32_t second)
{
    for (uint32_t i = 2; i < operands_of(c->kernel); i++) {
        GrownCell holds = c->results[i];

        holds.slice = second;
        grown_put(c->g, c->rank, c->regions[i], 1, holds);
    }
}

/* Attention of two slices of queries to the keys and values they share. */
static bool
attend_with_two(Call *c, const uint32_t *segments, uint32_t count, uint32_t second)
{
    GrownWant rows[2] = { wanted(c, 0, c->w->segment, 0, false),
                          wanted(c, 0, c->w->segment, 0, false) };

    rows[1].slice = second;
    take_target(c);
    c->regions[c->target].count = 2;
    c->args.first = c->kernel->operands[c->target].access == LH_OPERAND_UPDATE;
    if (!need_row(c, 0, rows, 2) || !need_segments(c, 1, segments, count))
        return false;
    for (uint32_t i = 2; i < operands_of(c->kernel); i++) {
        const GrownWant other = wanted(c, i, 0, 0, false);

        if (i == c->target)
            continue;
        c->results[i] = grown_result(c->w);
        c->held[i] = grown_choose_free(c->g, c->rank, &other, 2, &c->regions[i]);
        if (!c->held[i])
            return false;
    }
    grown_mask(c->g, &c->args, c->w->segment, segments, count);
    if (c->args.mask == LH_MASK_CAUSAL)
        c->args.mask = LH_MASK_POSITIONS;
    c->args.nq *= 2;
    c->args.pairs *= 2;
    if (!call(c))
        return false;
    put_slice(c, second);
    return true;
}

static bool
attend_slices(Call *c)
{
    const uint32_t replicas = c->g->replicas;
    const uint32_t second = c->slice - c->slice % replicas + (c->slice + 1) % replicas;
    LhRegion next = c->at;
    uint32_t segments[GROWN_SEGMENTS_MAX];
    const uint32_t count = list(c->w->set, segments);
    bool ok;

    next.part++;
    if (!take_next(c, next))
        return false;
    ok = attend_with_two(c, segments, count, second);
    grown_unpin(c->g, c->rank, next);
    return ok;
}

static bool
attend(Call *c)
{
    const bool sums = c->kernel->operands[c->target].access == LH_OPERAND_UPDATE;
    const uint32_t keys = sums ? some_of(c->g, c->w->set) : c->w->set;
    uint32_t segments[GROWN_SEGMENTS_MAX];
    const uint32_t count = list(keys, segments);

    take_target(c);
    if ((sums && !begin_sum(c, c->w->set & ~keys)) || !need(c, 0, c->w->segment, 0, false) ||
        !need_segments(c, 1, segments, count))
        return false;
    for (uint32_t i = 2; i < operands_of(c->kernel); i++) {
        if (i != c->target && !spare(c, i, grown_result(c->w)))
            return false;
    }
    grown_mask(c->g, &c->args, c->w->segment, segments, count);
    return call(c);
}

static bool
attend_somehow(Call *c)
{
    return c->g->replicas > 1 && grown_chance(c->g, 40) ? attend_slices(c) : attend(c);
}

/* Gets the accumulator of the gradient that the call produces beside the wanted one: one that lacks
 * this contribution, or an empty one. */
static bool
need_other_sum(Call *c, uint32_t i, uint32_t segment, uint32_t source)
{
    const GrownCell alone = { .known = true, .segment = segment, .set = 1U << source };
    const GrownWant want = wanted(c, i, segment, 0, false);
    uint32_t found = 0;

    if (c->args.first)
        return spare(c, i, alone);
    for (uint16_t slot = 0; slot < (uint16_t)c->g->program->slots_count; slot++) {
        const LhSlot *s = &c->g->program->slots[slot];

        for (uint32_t part = 0; s->kind == want.kind && part < s->parts; part++) {
            const LhRegion region = { .slot = slot, .part = part, .count = 1 };
            const GrownCell *cell = grown_cell(c->g, c->rank, region, 0);

            if ((want.types & grown_types(s)) == 0 || !cell->known || cell->empty ||
                cell->pins > 0 || cell->segment != segment || cell->slice != want.slice ||
                (cell->set >> source & 1) != 0 || s->role == LH_SLOT_INPUT ||
                grown_draw(c->g, ++found) != 0)
                continue;
            c->regions[i] = region;
            c->results[i] = *cell;
            c->results[i].set |= 1U << source;
        }
    }
    if (found == 0)
        return spare(c, i, alone) && grown_empty(c->g, c->rank, c->regions[i]);
    grown_pin(c->g, c->rank, c->regions[i]);
    c->held[i] = true;
    return true;
}

/* Decodes a contribution to rows of keys: returns its segment of queries and sets the call's slice;
 * and the inverse. */
static uint32_t
queries_of(Call *c, uint32_t source)
{
    c->slice = c->w->slice * c->g->replicas + source % c->g->replicas;
    return source / c->g->replicas;
}

static uint32_t
source_of(const Call *c, uint32_t q)
{
    return q * c->g->replicas + c->slice % c->g->replicas;
}

static bool
attend_grad(Call *c)
{
    const bool of_keys = c->w->kind == LH_TENSOR_DKV;
    const uint32_t other = member(c->g, c->w->set);
    const uint32_t q = of_keys ? queries_of(c, other) : c->w->segment;
    const uint32_t k = of_keys ? c->w->segment : other;
    const uint32_t all = ((1U << c->g->replicas) - 1) << q * c->g->replicas;
    const uint32_t complete = grown_complete(c->g, LH_TENSOR_O, q);

    take_target(c);
    /* A mistake: one slice of queries does not stand for all that share its keys. */
    if (!begin_sum(c, c->w->set & ~(of_keys && grown_mistakes(c->g) ? all : 1U << other)))
        return false;
    for (uint32_t i = 0; i < operands_of(c->kernel); i++) {
        const LhTensorKind kind = c->kernel->operands[i].kind;

        if (i != c->target && !(kind == LH_TENSOR_DQ    ? need_other_sum(c, i, q, k)
                                : kind == LH_TENSOR_DKV ? need_other_sum(c, i, k, source_of(c, q))
                                : kind == LH_TENSOR_KV  ? need(c, i, k, 0, false)
                                                        : need(c, i, q, complete, false)))
            return false;
    }
    grown_mask(c->g, &c->args, q, &k, 1);
    return call(c);
}

static bool
add(Call *c)
{
    const uint32_t last = operands_of(c->kernel) - 1;
    uint32_t terms;

    if (!grown_has_set(c->w->kind))
        return false;
    terms = some_of(c->g, c->w->set);
    take_target(c);
    if (!begin_sum(c, c->w->set & ~terms))
        return false;
    for (uint32_t i = 0; i < last; i++) {
        const bool weight =
            c->kernel->operands[i].kind == LH_TENSOR_LSE && c->w->kind == LH_TENSOR_O;

        if (!need(c, i, c->w->segment,
                  weight ? grown_complete(c->g, LH_TENSOR_O, c->w->segment) : terms, c->w->ended))
            return false;
    }
    /* The types allow a sum to begin with its own destination. */
    if (c->args.first && last == 1 && grown_chance(c->g, 4)) {
        grown_unpin(c->g, c->rank, c->regions[0]);
        c->held[0] = false;
        c->regions[0] = c->at;
    }
    count_elements(c, c->w->kind, 1);
    return call(c);
}

static bool
derive(Call *c)
{
    LhTensorKind kind = c->w->kind;

    take_target(c);
    for (uint32_t i = 0; i < operands_of(c->kernel); i++) {
        if (c->kernel->operands[i].access != LH_OPERAND_READ) {
            if (i != c->target && !spare(c, i, grown_result(c->w)))
                return false;
        } else if (!need(c, i, c->w->segment, c->w->set, c->w->ended)) {
            return false;
        }
    }
    if (kind == LH_TENSOR_LSE)
        kind = LH_TENSOR_O;
    count_elements(c, kind, 1);
    return call(c);
}

/* Copies two parts shifted by one, where @c copies one: the types allow this overlap. */
static bool
copy_shifted(Call *c)
{
    const LhSlot *slot = &c->g->program->slots[c->at.slot];
    GrownWant from = *c->w;
    LhRegion next = c->at, behind = c->at, made;

    from.types = grown_types(slot);
    next.part++;
    behind.part += 2;
    if (behind.part >= slot->parts || slot->role != LH_SLOT_TEMP ||
        !grown_cell(c->g, c->rank, behind, 0)->known ||
        !grown_is_free(c->g, c->rank, &from, next) ||
        !grown_is_free(c->g, c->rank, &from, behind) ||
        !grown_bring_back(c->g, c->rank, next, false))
        return false;
    grown_pin(c->g, c->rank, behind);
    if (!grown_make(c->g, c->rank, &from, &next, c->depth + 1, &made)) {
        grown_unpin(c->g, c->rank, behind);
        return false;
    }
    grown_unpin(c->g, c->rank, made);
    grown_unpin(c->g, c->rank, behind);
    next.count = c->at.count = 2;
    c->regions[0] = next;
    take_target(c);
    count_elements(c, c->w->kind, 2);
    if (!call(c))
        return false;
    next.count = 1; /* the second part does not hold the wanted content */
    grown_put(c->g, c->rank, next, 0, (GrownCell){ 0 });
    return true;
}

/* ---- linear attention ---- */

static bool
sum_state(Call *c)
{
    const bool gradient = c->w->kind == LH_TENSOR_DSTATE;
    const uint32_t border = c->w->segment;
    const uint32_t rows = gradient ? border : border - 1;
    GrownWant before = *c->w;
    LhRegion made;

    if ((!gradient && border == 0) || (c->w->set >> rows & 1) == 0)
        return false;
    take_target(c);
    before.set &= ~(1U << rows);
    before.segment = gradient ? border + 1 : border - 1;
    c->args.first = before.set == 0;
    if (before.set != 0) {
        if (!grown_make(c->g, c->rank, &before, &c->at, c->depth + 1, &made))
            return false;
        grown_unpin(c->g, c->rank, made);
    }
    for (uint32_t i = 0; i < c->target; i++) {
        if (!need(c, i, rows, 0, false))
            return false;
    }
    *(gradient ? &c->args.nq : &c->args.nk) = c->g->rows;
    return call(c);
}

static bool
carry_state(Call *c)
{
    const bool gradient = c->w->kind == LH_TENSOR_DSTATE;
    const uint32_t border = c->w->segment, terms = some_of(c->g, c->w->set);
    const uint32_t steps = 1 + grown_draw(c->g, 2);

    if (gradient ? border + steps > c->g->segments : border < steps)
        return false;
    take_target(c);
    if (!begin_sum(c, c->w->set & ~terms) ||
        !need(c, 0, gradient ? border + steps : border - steps, terms, false))
        return false;
    *(gradient ? &c->args.nq : &c->args.nk) = steps * c->g->rows;
    return call(c);
}

/* Adds two states one segment apart. */
static bool
add_prefix(Call *c)
{
    const bool gradient = c->w->kind == LH_TENSOR_DSTATE;
    const uint32_t border = c->w->segment;
    GrownWant wants[2] = { wanted(c, 0, 0, 0, false), wanted(c, 0, 0, 0, false) };
    GrownWant *near = &wants[gradient ? 0 : 1], *far = &wants[gradient ? 1 : 0];

    if (!gradient && border == 0)
        return false;
    far->segment = gradient ? border + 1 : border - 1;
    far->set = c->w->set & (gradient ? ~((2U << border) - 1) : (1U << far->segment) - 1);
    if (far->set == 0)
        return false;
    far->set = some_of(c->g, far->set);
    near->segment = border;
    near->set = c->w->set & ~far->set;
    if (near->set == 0)
        return false;
    take_target(c);
    if (!need_row(c, 0, wants, 2))
        return false;
    c->args.states = 2;
    *(gradient ? &c->args.nq : &c->args.nk) = c->g->rows;
    return call(c);
}

static bool
apply_state(Call *c)
{
    const bool gradient = c->w->kind == LH_TENSOR_DKV;
    const uint32_t terms = some_of(c->g, c->w->set);

    take_target(c);
    if (!begin_sum(c, c->w->set & ~terms) || !need(c, 0, c->w->segment, 0, false) ||
        !need(c, 1, c->w->segment + (gradient ? 1 : 0), terms, false))
        return false;
    *(gradient ? &c->args.nk : &c->args.nq) = c->g->rows;
    return call(c);
}

/* ---- scores that are written out ---- */

/* Sets the rows for scores of one segment of queries with one of keys; all pairs. */
static void
count_scores(Call *c, uint32_t keys)
{
    c->args.mask = LH_MASK_FULL;
    c->args.nq = c->g->rows;
    c->args.nk = keys * c->g->rows;
    c->args.pairs = c->args.nq * c->args.nk;
}

static bool
score(Call *c)
{
    take_target(c);
    if (c->w->ended || !need(c, 0, c->w->segment, 0, false) ||
        !need(c, 1, member(c->g, c->w->set), 0, false))
        return false;
    count_scores(c, 1);
    return call(c);
}

static bool
apply_scores(Call *c)
{
    const bool of_keys = lh_tensor_is_kv(c->w->kind);
    const uint32_t other = member(c->g, c->w->set);
    const uint32_t q = of_keys ? queries_of(c, other) : c->w->segment;
    const uint32_t k = of_keys ? c->w->segment : other;

    take_target(c);
    if (!of_keys ? !begin_sum(c, c->w->set & ~(1U << other)) : c->w->set != 1U << other)
        return false;
    if (!need(c, 0, q, 1U << k, true) || !need(c, 1, of_keys ? q : k, 0, false))
        return false;
    count_scores(c, 1);
    return call(c);
}

/* Whether consecutive parts hold the probabilities of all rows of a segment, or their gradient. */
static bool
holds_rows(Grower *g, uint32_t rank, const GrownWant *w, LhRegion window)
{
    uint32_t keys[GROWN_SEGMENTS_MAX];
    const uint32_t count = list(grown_complete(g, LH_TENSOR_O, w->segment), keys);
    GrownWant part = *w;

    for (uint32_t i = 0; i < count; i++) {
        LhRegion region = window;

        region.part += i;
        part.set = 1U << keys[i];
        if (!grown_is_wanted(grown_cell(g, rank, region, 0), &part))
            return false;
    }
    return true;
}

/* Gets such rows for operand @i. */
static bool
need_rows(Call *c, uint32_t i, const uint32_t *keys, uint32_t count)
{
    const GrownWant want = wanted(c, i, c->w->segment, 1U << keys[0], true);
    LhRegion made;

    c->held[i] = grown_choose_window(c->g, c->rank, &want, count, holds_rows, &c->regions[i]);
    if (c->held[i] || !grown_make(c->g, c->rank, &want, NULL, c->depth + 1, &made))
        return c->held[i];
    c->held[i] = grown_choose_window(c->g, c->rank, &want, count, holds_rows, &c->regions[i]);
    grown_unpin(c->g, c->rank, made);
    return c->held[i];
}

/* Gets consecutive parts for operand @i: the rows of @w with each segment of keys they may see. */
static bool
need_scores(Call *c, uint32_t i, const uint32_t *keys, uint32_t count)
{
    GrownWant wants[GROWN_SEGMENTS_MAX] = { 0 };

    for (uint32_t k = 0; k < count; k++)
        wants[k] = wanted(c, i, c->w->segment, 1U << keys[k], false);
    return need_row(c, i, wants, count);
}

/* Records rows of scores after softmax, one part per segment of keys. */
static bool
put_rows(const Call *c, LhRegion region, const uint32_t *keys, uint32_t count)
{
    for (uint32_t k = 0; k < count; k++)
        grown_put(c->g, c->rank, region, k,
                  (GrownCell){ .known = true,
                               .ended = true,
                               .segment = c->w->segment,
                               .slice = c->slice,
                               .set = 1U << keys[k] });
    return true;
}

/* Softmax of all rows of a segment, where their lse or one of the parts is wanted. */
static bool
soften(Call *c)
{
    const uint32_t complete = grown_complete(c->g, LH_TENSOR_O, c->w->segment);
    const GrownWant probs = wanted(c, 1, c->w->segment, 0, true);
    const bool wants_lse = c->w->kind == LH_TENSOR_LSE;
    uint32_t keys[GROWN_SEGMENTS_MAX] = { 0 };
    const uint32_t count = list(complete, keys);

    if (!need_scores(c, 0, keys, count))
        return false;
    c->held[1] = grown_choose_free(c->g, c->rank, &probs, count, &c->regions[1]);
    if (wants_lse)
        take_target(c);
    if (!c->held[1] ||
        (!wants_lse &&
         !spare(c, 2, (GrownCell){ .known = true, .segment = c->w->segment, .set = complete })))
        return false;
    grown_mask(c->g, &c->args, c->w->segment, keys, count);
    if (c->args.mask == LH_MASK_CAUSAL)
        c->args.mask = LH_MASK_POSITIONS;
    return call(c) && put_rows(c, c->regions[1], keys, count);
}

/* Gradient of softmax, in place or elsewhere. */
static bool
soften_gradient(Call *c)
{
    uint32_t keys[GROWN_SEGMENTS_MAX] = { 0 };
    const uint32_t count = list(grown_complete(c->g, LH_TENSOR_O, c->w->segment), keys);

    if (!c->w->ended || !need_rows(c, 0, keys, count) || !need_scores(c, 1, keys, count))
        return false;
    c->held[2] =
        grown_chance(c->g, 50) && grown_choose_free(c->g, c->rank, c->w, count, &c->regions[2]);
    if (!c->held[2])
        c->regions[2] = c->regions[1];
    count_scores(c, count);
    return call(c) && put_rows(c, c->regions[2], keys, count);
}

/* ---- ways ---- */

/* Whether operand @i of a kernel can produce @kind in a slot of @types. */
static bool
can_write(const LhOperand *operand, LhTensorKind kind, uint32_t types)
{
    if (operand->access == LH_OPERAND_READ ||
        (operand->kind != kind && (operand->kind != LH_TENSOR_ANY || !grown_suits_any(kind))))
        return false;
    return operand->element == LH_ELEMENT_ACTIVATION ? types == GROWN_NARROW
           : operand->element == LH_ELEMENT_FP32     ? types == GROWN_FP32
                                                     : true;
}

/* Draws one of the kernels that can produce the wanted part, and the operand to use. */
static bool
choose_kernel(Call *c)
{
    const uint32_t types = grown_types(&c->g->program->slots[c->at.slot]);
    uint32_t found = 0, lots;

    for (uint32_t k = 0; k < c->g->kernels_count; k++) {
        const LhKernel *kernel = lh_kernels[c->g->kernels[k]];

        for (uint32_t i = 0; kernel->operands[i].access != LH_OPERAND_END; i++) {
            if (!can_write(&kernel->operands[i], c->w->kind, types) ||
                kernel->effect == LH_EFFECT_ZERO)
                continue;
            /* Sums of states rarely find two consecutive ones, so they are drawn more often. */
            lots = kernel->effect == LH_EFFECT_STATE_PREFIX ? PREFIX_LOTS : 1;
            found += lots;
            if (grown_draw(c->g, found) >= lots)
                continue;
            c->id = c->g->kernels[k];
            c->kernel = kernel;
            c->target = i;
        }
    }
    return found > 0;
}

static bool
by_kernel(Grower *g, uint32_t rank, const GrownWant *w, LhRegion at, unsigned depth)
{
    static bool (*const recipes[])(Call * c) = {
        [LH_EFFECT_ATTEND] = attend_somehow,
        [LH_EFFECT_ATTEND_GRAD] = attend_grad,
        [LH_EFFECT_ADD] = add,
        [LH_EFFECT_DERIVE] = derive,
        [LH_EFFECT_ZERO] = NULL,
        [LH_EFFECT_STATE_SUM] = sum_state,
        [LH_EFFECT_STATE_CARRY] = carry_state,
        [LH_EFFECT_STATE_PREFIX] = add_prefix,
        [LH_EFFECT_STATE_APPLY] = apply_state,
        [LH_EFFECT_SCORES] = score,
        [LH_EFFECT_SOFTMAX] = soften,
        [LH_EFFECT_SOFTMAX_GRAD] = soften_gradient,
        [LH_EFFECT_SCORES_APPLY] = apply_scores,
    };
    Call c = { .g = g,
               .rank = rank,
               .depth = depth,
               .w = w,
               .at = at,
               .slice = lh_tensor_is_kv(w->kind) ? w->slice * g->replicas : w->slice };
    bool made;

    if (!choose_kernel(&c))
        return false;
    g_assert(c.kernel != NULL);
    made = c.id == LH_KERNEL_ID_copy && grown_chance(g, 10) ? copy_shifted(&c)
                                                            : recipes[c.kernel->effect](&c);
    for (uint32_t i = 0; i < LH_KERNEL_OPERANDS_MAX; i++) {
        if (c.held[i])
            grown_unpin(g, rank, c.regions[i]);
    }
    return made;
}

/* Probabilities and gradients of scores come in rows and therefore in places of their own. */
static bool
comes_in_rows(const GrownWant *w)
{
    return w->kind == LH_TENSOR_PROBS || (w->kind == LH_TENSOR_DSCORES && w->ended);
}

/* Tries one way to produce it; on failure everything produced on the way is removed. */
static bool
try_way(Grower *g, uint32_t rank, const GrownWant *w, LhRegion at, unsigned depth)
{
    const uint32_t way = grown_draw(g, 100);
    g_autofree GrownState *state = g_new(GrownState, 1);
    bool made;

    grown_keep(g, state);
    made = comes_in_rows(w) || way < 68 ? by_kernel(g, rank, w, at, depth)
           : way < 92                   ? grown_by_move(g, rank, w, at, depth)
                                        : grown_by_reduction(g, rank, w, at, depth);
    if (!made)
        grown_go_back(g, state);
    return made;
}

bool
grown_make(Grower *g, uint32_t rank, const GrownWant *w, const LhRegion *into, unsigned depth,
           LhRegion *made)
{
    const bool rows = comes_in_rows(w);

    if (grown_has_set(w->kind) && w->set == 0)
        return false;
    if (into == NULL && (depth >= DEPTH_MAX || grown_chance(g, 85)) &&
        grown_choose_window(g, rank, w, 1, grown_holds_wanted, made))
        return true;
    for (uint32_t i = 0; depth < DEPTH_MAX && i < WAYS && g->tries > 0; i++) {
        bool done;

        g->tries--;
        if (into != NULL) {
            *made = *into;
            grown_pin(g, rank, *made);
        } else if (!grown_choose_free(g, rank, w, 1, made)) {
            return false;
        }
        if (rows)
            grown_unpin(g, rank, *made);
        done = try_way(g, rank, w, *made, depth);
        if (done && !rows)
            return true;
        if (done)
            return grown_choose_window(g, rank, w, 1, grown_holds_wanted, made);
        if (!rows)
            grown_unpin(g, rank, *made);
    }
    return false;
}

static GrownWant
wanted_output(const Grower *g, uint32_t rank, uint16_t slot, uint32_t part)
{
    const LhSlot *s = &g->program->slots[slot];
    const LhHolding holding = lh_slot_holding(g->program, s, rank, part);

    return (GrownWant){ .kind = s->kind,
                        .types = grown_types(s),
                        .segment = holding.segment,
                        .set = grown_complete(g, s->kind, holding.segment),
                        .slice = holding.slice };
}

bool
grown_has(Grower *g, uint32_t rank, uint16_t slot, uint32_t part)
{
    const GrownWant want = wanted_output(g, rank, slot, part);
    const LhRegion region = { .slot = slot, .part = part, .count = 1 };

    return grown_is_wanted(grown_cell(g, rank, region, 0), &want);
}

void
grown_aim(Grower *g, uint32_t rank, uint16_t slot, uint32_t part)
{
    const GrownWant want = wanted_output(g, rank, slot, part);
    const LhRegion region = { .slot = slot, .part = part, .count = 1 };
    LhRegion made;

    if (grown_make(g, rank, &want, &region, 0, &made))
        grown_unpin(g, rank, made);
}
