/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Collectives that copy: a wanted content comes from another rank as a piece of an all-gather, a
 * broadcast or an all-to-all. Pieces may be unequal, some ranks may not take part, and other
 * tensors may join. Also random collectives without a purpose, including sums.
 */
#include "grower.h"

#include "program/collective_semantics.h"

#define TENSORS_MAX 3
#define PINS_MAX (2 * GROWN_RANKS_MAX * TENSORS_MAX)
#define SHAPES 4 /* attempts */
#define EVEN 20  /* percent of uneven pieces placed where an even cut would have them */
#define LIES 4   /* percent of members that declare other pieces, or the other half */

/* A tensor of a collective, indexed by the members' positions in the group. */
typedef struct {
    uint32_t counts[GROWN_RANKS_MAX][GROWN_RANKS_MAX]; /* parts sent from one member to another */
    LhRegion send[GROWN_RANKS_MAX], receive[GROWN_RANKS_MAX];
} Tensor;

typedef struct {
    Grower *g;
    LhCollectiveKind kind;
    LhReduction reduction;
    bool uneven;
    uint32_t members[GROWN_RANKS_MAX], count; /* ranks */
    Tensor tensors[TENSORS_MAX];
    uint32_t tensors_count;
    struct {
        uint32_t rank;
        LhRegion region;
    } pins[PINS_MAX];
    uint32_t pins_count;
} Meeting;

/* ---- shapes ---- */

/* Whether members send different parts to different members; whether parts from different members
 * land in different places. */
static bool
scatters(const Meeting *m)
{
    return m->kind == LH_COLL_ALL_TO_ALL || m->kind == LH_COLL_REDUCE_SCATTER;
}

static bool
gathers(const Meeting *m)
{
    return m->kind == LH_COLL_ALL_TO_ALL || m->kind == LH_COLL_ALL_GATHER;
}

/* The share of a member's send region that goes to another one. */
static LhShare
sent(const Meeting *m, const Tensor *t, uint32_t from, uint32_t to)
{
    LhShare share = { 0, t->counts[from][to] };

    for (uint32_t i = 0; scatters(m) && i < to; i++)
        share.first += t->counts[from][i];
    return share;
}

/* The share of a member's receive region that comes from another one. */
static LhShare
received(const Meeting *m, const Tensor *t, uint32_t from, uint32_t to)
{
    LhShare share = { 0, t->counts[from][to] };

    for (uint32_t i = 0; gathers(m) && i < from; i++)
        share.first += t->counts[i][to];
    return share;
}

static uint32_t
parts_of(const Meeting *m, const Tensor *t, uint32_t member, bool receives)
{
    const uint32_t last = m->count - 1;
    const LhShare end = receives ? received(m, t, last, member) : sent(m, t, member, last);

    /* Every member of a broadcast passes the same count. */
    return m->kind == LH_COLL_BROADCAST ? t->counts[0][0] : end.first + end.count;
}

/* Every member sends @count parts to every member. */
static void
cut_evenly(const Meeting *m, Tensor *t, uint32_t count)
{
    for (uint32_t from = 0; from < m->count; from++) {
        for (uint32_t to = 0; to < m->count; to++)
            t->counts[from][to] = m->kind == LH_COLL_BROADCAST && from > 0 ? 0 : count;
    }
}

/* Random counts; every member sends and receives at least one part. */
static void
cut_unevenly(const Meeting *m, Tensor *t)
{
    for (uint32_t from = 0; from < m->count; from++) {
        for (uint32_t to = 0; to < m->count; to++)
            t->counts[from][to] = grown_chance(m->g, 60) ? 0 : 1 + grown_draw(m->g, 3);
    }
    for (uint32_t i = 0; i < m->count; i++) {
        uint32_t row = 0, column = 0;

        for (uint32_t k = 0; k < m->count; k++) {
            row += t->counts[i][k];
            column += t->counts[k][i];
        }
        if (row == 0 || column == 0)
            t->counts[i][i] = 1;
    }
}

/* ---- windows ---- */

static void
hold(Meeting *m, uint32_t rank, LhRegion region)
{
    g_assert(m->pins_count < PINS_MAX);
    grown_pin(m->g, rank, region);
    m->pins[m->pins_count].rank = rank;
    m->pins[m->pins_count++].region = region;
}

static void
let_go(Meeting *m)
{
    while (m->pins_count > 0) {
        m->pins_count--;
        grown_unpin(m->g, m->pins[m->pins_count].rank, m->pins[m->pins_count].region);
    }
}

static bool
is_known(Grower *g, uint32_t rank, const GrownWant *w, LhRegion window)
{
    (void)w;
    for (uint32_t i = 0; i < window.count; i++) {
        if (!grown_cell(g, rank, window, i)->known)
            return false;
    }
    return true;
}

/* Widens @region, which has one part, to @count parts, with @before of them before it. False if its
 * slot has too few. */
static bool
widen(const Grower *g, LhRegion *region, uint32_t before, uint32_t count)
{
    if (region->part < before ||
        region->part - before + count > g->program->slots[region->slot].parts)
        return false;
    region->part -= before;
    region->count = count;
    return true;
}

/* Whether nothing needs the parts of a window outside @taken; allocates the window's freed
 * parts. */
static bool
is_free_but(Grower *g, uint32_t rank, LhRegion window, LhShare taken)
{
    for (uint32_t i = 0; i < window.count; i++) {
        LhRegion part = window;

        part.part += i;
        part.count = 1;
        if ((i < taken.first || i >= taken.first + taken.count) &&
            !grown_is_free(g, rank, NULL, part))
            return false;
    }
    return grown_bring_back(g, rank, window, false);
}

/* Makes every part of a window have a known content: by default an empty accumulator. */
static bool
fill(const Meeting *m, uint32_t rank, LhRegion window)
{
    for (uint32_t i = 0; i < window.count; i++) {
        LhRegion part = window;

        part.part += i;
        part.count = 1;
        if (!is_known(m->g, rank, NULL, part) &&
            (grown_cell(m->g, rank, part, 0)->pins > 1 ||
             !grown_suits_any(m->g->program->slots[part.slot].kind) ||
             m->g->program->slots[part.slot].role != LH_SLOT_TEMP ||
             !grown_empty(m->g, rank, part)))
            return false;
    }
    return true;
}

/* Chooses a member's send region: parts of any known content. */
static bool
choose_sent(Meeting *m, Tensor *t, const GrownWant *like, uint32_t member)
{
    const uint32_t rank = m->members[member], count = parts_of(m, t, member, false);

    if (!grown_choose_window(m->g, rank, like, count, is_known, &t->send[member]) &&
        !grown_choose_free(m->g, rank, like, count, &t->send[member]))
        return false;
    hold(m, rank, t->send[member]);
    grown_unpin(m->g, rank, t->send[member]);
    return fill(m, rank, t->send[member]);
}

/* Chooses a receive region around the member's own send region, as in-place calls of libraries have
 * it. */
static bool
choose_in_place(Meeting *m, Tensor *t, uint32_t member)
{
    const uint32_t rank = m->members[member], count = parts_of(m, t, member, true);
    const LhShare own = received(m, t, member, member);
    LhRegion window = t->send[member];

    if (m->kind == LH_COLL_ALL_TO_ALL || m->g->program->slots[window.slot].role != LH_SLOT_TEMP ||
        !widen(m->g, &window, m->kind == LH_COLL_BROADCAST ? 0 : own.first, count) ||
        !is_free_but(m->g, rank, window,
                     m->kind == LH_COLL_BROADCAST ? (LhShare){ 0, count } : own))
        return false;
    t->receive[member] = window;
    hold(m, rank, window);
    return true;
}

static bool
choose_received(Meeting *m, Tensor *t, const GrownWant *like, uint32_t member)
{
    const uint32_t rank = m->members[member];

    if (grown_chance(m->g, 40) && choose_in_place(m, t, member))
        return true;
    if (!grown_choose_free(m->g, rank, like, parts_of(m, t, member, true), &t->receive[member]))
        return false;
    hold(m, rank, t->receive[member]);
    grown_unpin(m->g, rank, t->receive[member]);
    return true;
}

/* Chooses regions for members that have none. */
static bool
choose_windows(Meeting *m, Tensor *t, const GrownWant *like)
{
    for (uint32_t i = 0; i < m->count; i++) {
        if (t->send[i].count == 0 && !choose_sent(m, t, like, i))
            return false;
    }
    for (uint32_t i = 0; i < m->count; i++) {
        if (t->receive[i].count == 0 && !choose_received(m, t, like, i))
            return false;
    }
    return true;
}

/* ---- ops ---- */

/* The content that each part of a member's receive region gets. Unknown for halves and sums. */
static void
list_landings(const Meeting *m, const Tensor *t, uint32_t to, GrownCell *cells)
{
    for (uint32_t from = 0; from < m->count; from++) {
        const LhShare s = sent(m, t, from, to), r = received(m, t, from, to);

        for (uint32_t i = 0; i < r.count; i++) {
            cells[r.first + i] =
                t->send[from].half != LH_HALF_BOTH || lh_collective_reduces(m->kind)
                    ? (GrownCell){ 0 }
                    : *grown_cell(m->g, m->members[from], t->send[from], s.first + i);
        }
    }
}

/* Moves one part of a member's counts from one sender to another. */
static void
take_from_another(const Meeting *m, uint32_t *column)
{
    const uint32_t less = grown_draw(m->g, m->count), more = grown_draw(m->g, m->count);

    if (column[less] == 0)
        return;
    column[less]--;
    column[more]++;
}

static LhRegion
other_half(LhRegion region)
{
    region.half = region.half == LH_HALF_K ? LH_HALF_V : LH_HALF_K;
    return region;
}

static void
add_tensor(const Meeting *m, const Tensor *t, uint32_t member)
{
    LhEmitter *e = &m->g->built.emitters[m->members[member]];
    const bool lies = m->g->wild && grown_chance(m->g, LIES);
    LhRegion send = t->send[member], receive = t->receive[member];
    uint32_t column[GROWN_RANKS_MAX] = { 0 };

    for (uint32_t from = 0; from < m->count; from++)
        column[from] = t->counts[from][member];
    if (lies && m->uneven)
        take_from_another(m, column);
    if (lies && send.half != LH_HALF_BOTH) {
        send = other_half(send);
        receive = other_half(receive);
    }
    if (m->uneven)
        lh_emit_tensor_uneven(e, send, receive, t->counts[member], column);
    else
        lh_emit_tensor(e, send, receive);
}

static void
emit(const Meeting *m)
{
    const uint8_t communicator = (uint8_t)grown_draw(m->g, GROWN_STREAMS);
    const uint32_t stride = m->count > 1 ? m->members[1] - m->members[0] : 1;

    for (uint32_t i = 0; i < m->count; i++) {
        LhEmitter *e = &m->g->built.emitters[m->members[i]];

        e->communicator = communicator;
        lh_emit_collective(
            e, grown_chance(m->g, 90) ? communicator : (uint8_t)grown_draw(m->g, GROWN_STREAMS),
            m->kind, (LhGroup){ m->members[0], stride, m->count, 0, 1 });
        lh_emit_last(e)->collective.reduction = m->reduction;
        for (uint32_t k = 0; k < m->tensors_count; k++)
            add_tensor(m, &m->tensors[k], i);
        grown_order(m->g, m->members[i]);
    }
}

typedef struct {
    GrownCell cells[GROWN_CELLS_MAX];
} Landing;

/* Records the results: everything sent is read before anything lands. */
static bool
meet(Meeting *m)
{
    g_autofree Landing *landings = g_new0(Landing, m->tensors_count * m->count);
    g_autofree GrownState *state = g_new(GrownState, 1);

    grown_keep(m->g, state);
    for (uint32_t k = 0; k < m->tensors_count * m->count; k++)
        list_landings(m, &m->tensors[k / m->count], k % m->count, landings[k].cells);
    emit(m);
    for (uint32_t k = 0; k < m->tensors_count * m->count; k++) {
        const LhRegion *at = &m->tensors[k / m->count].receive[k % m->count];

        for (uint32_t i = 0; i < at->count; i++)
            grown_put(m->g, m->members[k % m->count], *at, i, landings[k].cells[i]);
    }
    return grown_settle(m->g, state);
}

/* ---- a recipe ---- */

/* Chooses the members: @rank and at least one other; returns one that is not @rank. */
static uint32_t
choose_members(Meeting *m, uint32_t rank)
{
    const uint32_t ranks = m->g->ranks;
    uint32_t left_out = ranks, other;

    if (ranks > 2 && grown_chance(m->g, 30))
        left_out = (rank + 1 + grown_draw(m->g, ranks - 1)) % ranks;
    for (uint32_t r = 0; r < ranks; r++) {
        if (r != left_out)
            m->members[m->count++] = r;
    }
    do
        other = grown_draw(m->g, m->count);
    while (m->members[other] == rank);
    return other;
}

static void
choose_shape(Meeting *m, Tensor *t)
{
    static const LhCollectiveKind kinds[] = { LH_COLL_ALL_GATHER, LH_COLL_ALL_TO_ALL,
                                              LH_COLL_ALL_TO_ALL, LH_COLL_BROADCAST };

    m->kind = kinds[grown_draw(m->g, G_N_ELEMENTS(kinds))];
    m->uneven = m->kind == LH_COLL_ALL_TO_ALL && grown_chance(m->g, 65);
    if (m->uneven)
        cut_unevenly(m, t);
    else
        cut_evenly(m, t, grown_chance(m->g, 75) ? 1 : 2);
}

/* Adds another tensor to the collective if there is something to send and room for it. */
static void
take_along(Meeting *m)
{
    const LhSlot *slot = &m->g->program->slots[grown_draw(m->g, m->g->program->slots_count)];
    const GrownWant like = { .kind = slot->kind, .types = grown_types(slot) };
    const uint32_t pins = m->pins_count;
    Tensor *t = &m->tensors[m->tensors_count];

    if (m->uneven)
        cut_unevenly(m, t);
    else
        cut_evenly(m, t, m->tensors[0].counts[0][0]);
    if (choose_windows(m, t, &like)) {
        m->tensors_count++;
        return;
    }
    while (m->pins_count > pins) {
        m->pins_count--;
        grown_unpin(m->g, m->pins[m->pins_count].rank, m->pins[m->pins_count].region);
    }
}

/* The place of a piece if all pieces had its length, as far as there is room. */
static LhShare
as_if_even(LhShare piece, uint32_t index, uint32_t parts)
{
    return (LhShare){ MIN(index * piece.count, parts - piece.count), piece.count };
}

/* Sets up the first tensor so that a piece goes from @from at member @other to @at at @rank. */
static bool
fit(Meeting *m, uint32_t other, LhRegion from, uint32_t rank, LhRegion at)
{
    Tensor *t = &m->tensors[0];
    uint32_t own = 0, in_piece;
    LhShare s, r;

    while (m->members[own] != rank)
        own++;
    choose_shape(m, t);
    if (t->counts[other][own] == 0)
        t->counts[other][own] = m->uneven ? 1 : 0;
    s = sent(m, t, other, own);
    r = received(m, t, other, own);
    if (s.count == 0)
        return false;
    if (m->uneven && m->g->wild && grown_chance(m->g, EVEN))
        s = as_if_even(s, own, parts_of(m, t, other, false));
    if (m->uneven && m->g->wild && grown_chance(m->g, EVEN))
        r = as_if_even(r, other, parts_of(m, t, own, true));
    in_piece = grown_draw(m->g, s.count);
    t->send[other] = from;
    t->receive[own] = at;
    if (!widen(m->g, &t->send[other], s.first + in_piece, parts_of(m, t, other, false)) ||
        !widen(m->g, &t->receive[own], r.first + in_piece, parts_of(m, t, own, true)) ||
        !is_free_but(m->g, rank, t->receive[own], (LhShare){ r.first + in_piece, 1 }))
        return false;
    return true;
}

/* The same with random pieces; the other members get regions too. */
static bool
arrange(Meeting *m, uint32_t other, LhRegion from, uint32_t rank, LhRegion at,
        const GrownWant *like)
{
    Tensor *t = &m->tensors[0];
    bool fits = false;

    for (uint32_t i = 0; i < SHAPES && !fits; i++)
        fits = fit(m, other, from, rank, at);
    if (!fits)
        return false;
    for (uint32_t i = 0; i < m->count; i++) {
        if (t->send[i].count > 0)
            hold(m, m->members[i], t->send[i]);
        if (t->receive[i].count > 0)
            hold(m, m->members[i], t->receive[i]);
    }
    m->tensors_count = 1;
    return fill(m, m->members[other], t->send[other]) && choose_windows(m, t, like);
}

static void
name_half(Meeting *m, uint8_t half)
{
    for (uint32_t i = 0; i < m->count; i++)
        m->tensors[0].send[i].half = m->tensors[0].receive[i].half = half;
}

bool
grown_by_collective(Grower *g, uint32_t rank, const GrownWant *w, LhRegion at, unsigned depth)
{
    g_autofree Meeting *m = g_new0(Meeting, 1);
    GrownWant there = *w;
    uint32_t other;
    LhRegion from, plain = at;
    bool ok;

    m->g = g;
    plain.half = LH_HALF_BOTH;
    there.types = grown_types(&g->program->slots[at.slot]);
    other = choose_members(m, rank);
    if (!grown_make(g, m->members[other], &there, NULL, depth + 1, &from))
        return false;
    ok = arrange(m, other, from, rank, plain, &there);
    for (uint32_t i = 1; ok && i < TENSORS_MAX && grown_chance(g, 25); i++)
        take_along(m);
    name_half(m, at.half);
    ok = ok && meet(m);
    let_go(m);
    grown_unpin(g, m->members[other], from);
    return ok;
}

/* ---- without a purpose ---- */

static bool
may_be_sent(Grower *g, uint32_t rank, const GrownWant *w, LhRegion window)
{
    (void)g;
    (void)rank;
    (void)w;
    (void)window;
    return true;
}

static bool
may_be_written(Grower *g, uint32_t rank, const GrownWant *w, LhRegion window)
{
    (void)rank;
    (void)w;
    return g->program->slots[window.slot].role == LH_SLOT_TEMP;
}

static void
choose_any_shape(Meeting *m, Tensor *t)
{
    if (grown_chance(m->g, 75)) {
        choose_shape(m, t);
        return;
    }
    m->kind = grown_chance(m->g, 50) ? LH_COLL_REDUCE_SCATTER : LH_COLL_ALL_REDUCE;
    m->reduction = grown_chance(m->g, 60) ? LH_REDUCE_SUM : LH_REDUCE_ATTENTION;
    cut_evenly(m, t, grown_chance(m->g, 60) ? 1 : m->count);
}

/* Chooses any parts of one kind and type, or halves of them. */
static bool
add_any_tensor(Meeting *m)
{
    Tensor *t = &m->tensors[m->tensors_count++];
    const LhSlot *slot = &m->g->program->slots[grown_draw(m->g, m->g->program->slots_count)];
    const GrownWant like = { .kind = slot->kind, .types = grown_types(slot) };
    const uint8_t half = lh_slot_has_halves(slot) && grown_chance(m->g, 40)
                             ? (uint8_t)(LH_HALF_K + grown_draw(m->g, 2))
                             : LH_HALF_BOTH;

    if (m->tensors_count == 1)
        choose_any_shape(m, t);
    else if (m->uneven)
        cut_unevenly(m, t);
    else
        cut_evenly(m, t, MAX(m->tensors[0].counts[0][0], 1));
    for (uint32_t i = 0; i < m->count; i++) {
        const uint32_t rank = m->members[i];

        if (!grown_choose_window(m->g, rank, &like, parts_of(m, t, i, false), may_be_sent,
                                 &t->send[i]))
            return false;
        grown_unpin(m->g, rank, t->send[i]);
        if (!grown_choose_window(m->g, rank, &like, parts_of(m, t, i, true), may_be_written,
                                 &t->receive[i]))
            return false;
        grown_unpin(m->g, rank, t->receive[i]);
        t->send[i].half = t->receive[i].half = half;
    }
    return true;
}

void
grown_meet_anyhow(Grower *g)
{
    g_autofree Meeting *m = g_new0(Meeting, 1);
    bool ok = true;

    m->g = g;
    choose_members(m, grown_draw(g, g->ranks));
    do
        ok = add_any_tensor(m);
    while (ok && m->tensors_count < TENSORS_MAX && grown_chance(g, 30));
    if (ok)
        meet(m);
}
