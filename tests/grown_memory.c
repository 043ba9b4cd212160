/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory: temporary parts that are allocated initially or when first wanted, freed in between even
 * while other ops may still read them, and allocated again.
 */
#include "grower.h"

#define ROOM 12      /* ops of a rank reserved for ops other than allocs and frees */
#define FREES 8      /* percent of choices of a free part preceded by a free */
#define FORGOTTEN 25 /* percent of purposeless frees whose contents are then assumed intact */

static bool
has_room(const Grower *g, uint32_t rank)
{
    return g->built.buffers[rank].ops_count - g->first[rank] + ROOM < GROWN_OPS_MAX;
}

static void
emit(Grower *g, uint32_t rank, LhRegion region, bool alloc)
{
    LhEmitter *e = &g->built.emitters[rank];

    region.half = LH_HALF_BOTH;
    (alloc ? lh_emit_alloc_region : lh_emit_free_region)(e, region);
    for (uint32_t i = 0; i < region.count; i++)
        grown_cell(g, rank, region, i)->gone = !alloc;
}

/* Allocates the freed parts of a window, or frees the allocated ones: one op per run of parts. */
static void
change(Grower *g, uint32_t rank, LhRegion window, bool alloc)
{
    LhRegion run = window;

    for (uint32_t i = 0; i < window.count; i += run.count + 1) {
        run.part = window.part + i;
        run.count = 0;
        while (i + run.count < window.count &&
               grown_cell(g, rank, window, i + run.count)->gone == alloc)
            run.count++;
        if (run.count > 0)
            emit(g, rank, run, alloc);
    }
}

static bool
is_gone(Grower *g, uint32_t rank, LhRegion window)
{
    for (uint32_t i = 0; i < window.count; i++) {
        if (grown_cell(g, rank, window, i)->gone)
            return true;
    }
    return false;
}

/* Frees a window; its content becomes unknown. */
static void
free_all(Grower *g, uint32_t rank, LhRegion window)
{
    change(g, rank, window, false);
    for (uint32_t i = 0; i < window.count; i++)
        grown_put(g, rank, window, i, (GrownCell){ 0 });
}

bool
grown_bring_back(Grower *g, uint32_t rank, LhRegion window, bool at_once)
{
    if (!is_gone(g, rank, window))
        return true;
    if (!has_room(g, rank))
        return false;
    if (at_once)
        free_all(g, rank, window);
    change(g, rank, window, true);
    return true;
}

/* Chooses some consecutive parts of any temporary slot. */
static bool
choose_some(Grower *g, uint32_t rank, bool needed, LhRegion *window)
{
    const uint16_t slot = (uint16_t)grown_draw(g, g->program->slots_count);
    const LhSlot *s = &g->program->slots[slot];

    if (s->role != LH_SLOT_TEMP)
        return false;
    *window = (LhRegion){ .slot = slot, .count = s->parts };
    if (grown_chance(g, 60)) {
        window->part = grown_draw(g, s->parts);
        window->count = 1 + grown_draw(g, s->parts - window->part);
    }
    for (uint32_t i = 0; i < window->count; i++) {
        const GrownCell *cell = grown_cell(g, rank, *window, i);

        if (cell->pins > 0 || (!needed && cell->known))
            return false;
    }
    return true;
}

void
grown_free_some(Grower *g, uint32_t rank)
{
    LhRegion window;

    if (!grown_chance(g, FREES) || !has_room(g, rank) ||
        !choose_some(g, rank, grown_chance(g, 30), &window))
        return;
    free_all(g, rank, window);
}

void
grown_begin_memory(Grower *g, uint32_t rank)
{
    for (uint16_t slot = 0; slot < (uint16_t)g->program->slots_count; slot++) {
        const LhSlot *s = &g->program->slots[slot];
        LhRegion all = lh_region_whole(g->program, slot), first = all;

        if (s->role != LH_SLOT_TEMP)
            continue;
        for (uint32_t i = 0; i < all.count; i++)
            grown_cell(g, rank, all, i)->gone = true;
        if (grown_chance(g, 25))
            continue;
        first.count = grown_chance(g, 80) ? all.count : 1 + grown_draw(g, all.count);
        emit(g, rank, first, true);
        if (grown_chance(g, 60))
            change(g, rank, all, true);
    }
}

void
grown_end_memory(Grower *g, uint32_t rank)
{
    for (uint16_t slot = 0; slot < (uint16_t)g->program->slots_count; slot++) {
        if (g->program->slots[slot].role == LH_SLOT_TEMP)
            change(g, rank, lh_region_whole(g->program, slot), false);
    }
}

void
grown_free_anyhow(Grower *g)
{
    const uint32_t rank = grown_draw(g, g->ranks);
    const bool again = grown_chance(g, 60), forgotten = grown_chance(g, FORGOTTEN);
    g_autofree GrownState *state = g_new(GrownState, 1);
    LhRegion window;

    if (!has_room(g, rank) || !choose_some(g, rank, true, &window))
        return;
    grown_keep(g, state);
    change(g, rank, window, false);
    if (again)
        change(g, rank, window, true);
    for (uint32_t i = 0; !forgotten && i < window.count; i++)
        grown_put(g, rank, window, i, (GrownCell){ 0 });
    grown_settle(g, state);
}
