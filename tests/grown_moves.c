/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Recipes that communicate: another rank has the wanted content and sends it, possibly in halves
 * that come from different ranks; or every rank has some of its terms and a collective adds them.
 */
#include "grower.h"

#include "program/collective_semantics.h"
#include "program/work.h"

static void
emit_end(Grower *g, uint32_t rank, uint32_t peer, bool send, LhRegion region)
{
    LhEmitter *e = &g->built.emitters[rank];
    LhPart *part;

    lh_emit_part(e, send, peer, 0, 0);
    lh_emit_part_region(e, region);
    part = &e->buffer->parts[e->buffer->parts_count - 1];
    part->wire_bytes = lh_part_wire_bytes(g->program, part);
}

/* Sends one part of @peer to one of @rank by message. */
static void
send(Grower *g, uint32_t peer, LhRegion from, uint32_t rank, LhRegion to)
{
    const uint8_t communicator = (uint8_t)grown_draw(g, GROWN_STREAMS);

    for (uint32_t end = 0; end < 2; end++) {
        const uint32_t here = end == 0 ? peer : rank, other = end == 0 ? rank : peer;
        LhEmitter *e = &g->built.emitters[here];

        e->communicator = communicator;
        lh_emit_exchange(e, grown_chance(g, 90) ? communicator
                                                : (uint8_t)grown_draw(g, GROWN_STREAMS));
        emit_end(g, here, other, end == 0, end == 0 ? from : to);
        grown_order(g, here);
    }
}

static bool
by_message(Grower *g, uint32_t rank, const GrownWant *w, LhRegion at, unsigned depth)
{
    const uint32_t peer = (rank + 1 + grown_draw(g, g->ranks - 1)) % g->ranks;
    g_autofree GrownState *state = g_new(GrownState, 1);
    GrownWant there = *w;
    LhRegion from;
    bool ok;

    there.types = grown_types(&g->program->slots[at.slot]);
    if (!grown_make(g, peer, &there, NULL, depth + 1, &from))
        return false;
    grown_keep(g, state);
    from.half = at.half;
    send(g, peer, from, rank, at);
    ok = grown_settle(g, state);
    grown_unpin(g, peer, from);
    return ok;
}

/* Brings a half or the whole; the previous content is lost. */
static bool
bring(Grower *g, uint32_t rank, const GrownWant *w, LhRegion at, unsigned depth)
{
    const bool ok = (grown_chance(g, 52) ? by_message : grown_by_collective)(g, rank, w, at, depth);

    if (ok)
        grown_put(g, rank, at, 0, (GrownCell){ 0 });
    return ok;
}

bool
grown_by_move(Grower *g, uint32_t rank, const GrownWant *w, LhRegion at, unsigned depth)
{
    const bool halves = lh_slot_has_halves(&g->program->slots[at.slot]) && grown_chance(g, 40);
    const uint8_t first = grown_chance(g, 50) ? LH_HALF_K : LH_HALF_V;
    GrownWant second = *w;
    bool ok;

    at.half = halves ? first : LH_HALF_BOTH;
    ok = bring(g, rank, w, at, depth);
    at.half = first == LH_HALF_K ? LH_HALF_V : LH_HALF_K;
    /* Mistakes for the judge to detect: halves of different rows, or one half alone. */
    if (!grown_has_set(w->kind) && grown_mistakes(g))
        second.segment = grown_draw(g, g->segments);
    ok = ok && (!halves || grown_mistakes(g) || bring(g, rank, &second, at, depth));
    if (ok)
        grown_put(g, rank, at, 0, grown_result(w));
    return ok;
}

/* Distributes a set among the ranks at random. */
static void
deal(Grower *g, uint32_t set, uint32_t *shares)
{
    for (uint32_t rank = 0; rank < g->ranks; rank++)
        shares[rank] = 0;
    for (uint32_t i = 0; set >> i != 0; i++) {
        if ((set >> i & 1) != 0)
            shares[grown_draw(g, g->ranks)] |= 1U << i;
    }
}

/* Produces @rank's terms of a sum: @w in part @index of @terms, whose other parts are to be
 * empty. */
static bool
make_terms(Grower *g, uint32_t rank, const GrownWant *w, uint32_t index, unsigned depth,
           LhRegion *terms)
{
    LhRegion part = *terms, made;

    part.part += index;
    part.count = 1;
    if (w->set == 0)
        return true;
    if (!grown_make(g, rank, w, &part, depth + 1, &made))
        return false;
    grown_unpin(g, rank, made);
    return true;
}

static bool
clear_others(Grower *g, uint32_t rank, const GrownWant *w, uint32_t index, LhRegion terms)
{
    bool ok = true;

    for (uint32_t i = 0; ok && i < terms.count; i++) {
        LhRegion part = terms;

        part.part += i;
        part.count = 1;
        ok =
            (i == index && w->set != 0) || (grown_suits_any(w->kind) && grown_empty(g, rank, part));
    }
    return ok;
}

bool
grown_by_reduction(Grower *g, uint32_t rank, const GrownWant *w, LhRegion at, unsigned depth)
{
    const bool scatter = grown_chance(g, 50);
    const bool merges =
        w->kind == LH_TENSOR_ACC || w->kind == LH_TENSOR_OUT || (g->wild && grown_chance(g, 5));
    const uint32_t parts = scatter || merges ? g->ranks : 1, index = scatter ? rank : 0;
    g_autofree GrownState *state = g_new(GrownState, 1);
    LhRegion sent[GROWN_RANKS_MAX] = { 0 }, received[GROWN_RANKS_MAX] = { 0 };
    uint32_t shares[GROWN_RANKS_MAX] = { 0 }, sending = 0, receiving = 0;
    GrownWant term = *w;
    bool ok = grown_has_set(w->kind) && (!merges || scatter);

    term.types = grown_types(&g->program->slots[at.slot]);
    deal(g, w->set, shares);
    for (uint32_t r = 0; ok && r < g->ranks; r++) {
        term.set = shares[r];
        ok = grown_choose_free(g, r, &term, parts, &sent[r]);
        sending += ok ? 1 : 0;
        ok = ok && make_terms(g, r, &term, index, depth, &sent[r]);
    }
    for (uint32_t r = 0; ok && r < g->ranks; r++) {
        term.set = shares[r];
        ok = clear_others(g, r, &term, index, sent[r]);
    }
    for (uint32_t r = 0; ok && r < g->ranks; r++) {
        received[r] = at;
        ok = r == rank || grown_choose_free(g, r, &term, 1, &received[r]);
        if (ok && r == rank)
            grown_pin(g, r, at);
        receiving += ok ? 1 : 0;
    }
    grown_keep(g, state);
    for (uint32_t r = 0; ok && r < g->ranks; r++) {
        LhEmitter *e = &g->built.emitters[r];

        lh_emit_collective(e, 2, scatter ? LH_COLL_REDUCE_SCATTER : LH_COLL_ALL_REDUCE,
                           (LhGroup){ 0, 1, g->ranks, 0, 1 });
        lh_emit_last(e)->communicator = 2;
        lh_emit_last(e)->collective.reduction = merges ? LH_REDUCE_ATTENTION : LH_REDUCE_SUM;
        lh_emit_tensor(e, sent[r], received[r]);
        grown_order(g, r);
        grown_put(g, r, received[r], 0,
                  !scatter || r == rank ? grown_result(w)
                                        : (GrownCell){ .known = true, .empty = true });
    }
    ok = ok && grown_settle(g, state);
    for (uint32_t r = 0; r < sending; r++)
        grown_unpin(g, r, sent[r]);
    for (uint32_t r = 0; r < receiving; r++)
        grown_unpin(g, r, received[r]);
    return ok;
}
