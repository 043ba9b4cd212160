/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Contents of parts and search for wanted ones: by kind, type, rows and contributions. Parts still
 * needed are pinned.
 */
#include "grower.h"

GrownCell *
grown_cell(Grower *g, uint32_t rank, LhRegion region, uint32_t i)
{
    return &g->cells[rank][g->program->slots[region.slot].first_cell + region.part + i];
}

bool
grown_has_set(LhTensorKind kind)
{
    return kind != LH_TENSOR_Q && kind != LH_TENSOR_KV && kind != LH_TENSOR_DO &&
           kind != LH_TENSOR_K && kind != LH_TENSOR_V;
}

bool
grown_suits_any(LhTensorKind kind)
{
    const uint32_t suitable = 1U << LH_TENSOR_Q | 1U << LH_TENSOR_KV | 1U << LH_TENSOR_O |
                              1U << LH_TENSOR_DO | 1U << LH_TENSOR_DQ | 1U << LH_TENSOR_DKV |
                              1U << LH_TENSOR_STATE | 1U << LH_TENSOR_DSTATE;

    return (suitable >> kind & 1) != 0;
}

uint32_t
grown_types(const LhSlot *slot)
{
    return slot->dtype == LH_DTYPE_FP32 ? GROWN_FP32 : GROWN_NARROW;
}

GrownCell
grown_result(const GrownWant *w)
{
    return (GrownCell){
        .known = true, .ended = w->ended, .segment = w->segment, .slice = w->slice, .set = w->set
    };
}

bool
grown_is_wanted(const GrownCell *c, const GrownWant *w)
{
    return c->known && !c->empty && c->segment == w->segment && c->slice == w->slice &&
           c->ended == w->ended && (!grown_has_set(w->kind) || c->set == w->set);
}

void
grown_pin(Grower *g, uint32_t rank, LhRegion region)
{
    for (uint32_t i = 0; i < region.count; i++)
        grown_cell(g, rank, region, i)->pins++;
}

void
grown_unpin(Grower *g, uint32_t rank, LhRegion region)
{
    for (uint32_t i = 0; i < region.count; i++)
        grown_cell(g, rank, region, i)->pins--;
}

void
grown_put(Grower *g, uint32_t rank, LhRegion region, uint32_t i, GrownCell holds)
{
    GrownCell *cell = grown_cell(g, rank, region, i);

    holds.pins = cell->pins;
    holds.gone = cell->gone;
    *cell = holds;
}

bool
grown_choose_window(Grower *g, uint32_t rank, const GrownWant *w, uint32_t count, GrownSuits suits,
                    LhRegion *window)
{
    uint32_t found = 0;

    *window = (LhRegion){ 0 };
    for (uint16_t slot = 0; slot < (uint16_t)g->program->slots_count; slot++) {
        const LhSlot *s = &g->program->slots[slot];

        if (s->kind != w->kind || (w->types & grown_types(s)) == 0)
            continue;
        for (uint32_t part = 0; part + count <= s->parts; part++) {
            const LhRegion next = { .slot = slot, .part = part, .count = count };

            if (suits(g, rank, w, next) && grown_draw(g, ++found) == 0)
                *window = next;
        }
    }
    if (found > 0)
        grown_pin(g, rank, *window);
    return found > 0;
}

bool
grown_holds_wanted(Grower *g, uint32_t rank, const GrownWant *w, LhRegion window)
{
    return grown_is_wanted(grown_cell(g, rank, window, 0), w);
}

bool
grown_is_free(Grower *g, uint32_t rank, const GrownWant *w, LhRegion window)
{
    (void)w;
    for (uint32_t i = 0; i < window.count; i++) {
        if (g->program->slots[window.slot].role != LH_SLOT_TEMP ||
            grown_cell(g, rank, window, i)->pins > 0)
            return false;
    }
    return true;
}

static bool
is_free_and_unknown(Grower *g, uint32_t rank, const GrownWant *w, LhRegion window)
{
    for (uint32_t i = 0; i < window.count; i++) {
        if (grown_cell(g, rank, window, i)->known)
            return false;
    }
    return grown_is_free(g, rank, w, window);
}

bool
grown_choose_free(Grower *g, uint32_t rank, const GrownWant *w, uint32_t count, LhRegion *window)
{
    grown_free_some(g, rank);
    if (!(grown_chance(g, 85) &&
          grown_choose_window(g, rank, w, count, is_free_and_unknown, window)) &&
        !grown_choose_window(g, rank, w, count, grown_is_free, window))
        return false;
    if (grown_bring_back(g, rank, *window, grown_chance(g, 75)))
        return true;
    grown_unpin(g, rank, *window);
    return false;
}
