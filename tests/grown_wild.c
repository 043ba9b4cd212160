/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ops without a purpose: a kernel on any parts whose kinds and types fit, and any collective
 * (grown_collectives.c). The result of such a kernel is unknown; what was moved is known.
 */
#include "grower.h"

#include "program/holding.h"

#define CALLS 4 /* attempts in a row */

/* Chooses parts of any slot of this kind and type, a temporary one if @written; false if there is
 * none. */
static bool
any_parts(Grower *g, const LhSlot *like, bool written, uint32_t count, LhRegion *region)
{
    uint32_t found = 0;

    for (uint16_t slot = 0; slot < (uint16_t)g->program->slots_count; slot++) {
        const LhSlot *s = &g->program->slots[slot];

        if (s->kind != like->kind || s->dtype != like->dtype || s->parts < count ||
            (written && s->role != LH_SLOT_TEMP) || grown_draw(g, ++found) != 0)
            continue;
        *region =
            (LhRegion){ .slot = slot, .part = grown_draw(g, s->parts - count + 1), .count = count };
    }
    return found > 0;
}

static LhDtype
any_dtype(Grower *g, const LhOperand *operand)
{
    if (operand->element == LH_ELEMENT_ACTIVATION)
        return g->dtype;
    return operand->element == LH_ELEMENT_FP32 || grown_chance(g, 50) ? LH_DTYPE_FP32 : g->dtype;
}

static uint32_t
segment_of(Grower *g, uint32_t rank, LhRegion region)
{
    const GrownCell *cell = grown_cell(g, rank, region, 0);

    return cell->known && cell->segment < g->segments ? cell->segment : grown_draw(g, g->segments);
}

/* Sets rows and mask as the first parts of queries and of keys imply. */
static void
fill_args(Grower *g, uint32_t rank, const LhRegion *regions, uint32_t count, LhKernelArgs *args)
{
    const LhAttention *a = &g->program->params.attention;
    uint32_t q = 0, k = 0;
    bool has_q = false, has_k = false;

    for (uint32_t i = 0; i < count; i++) {
        const bool keys = lh_tensor_is_kv(g->program->slots[regions[i].slot].kind);
        const uint32_t segment = segment_of(g, rank, regions[i]);

        q = keys || has_q ? q : segment;
        k = keys && !has_k ? segment : k;
        has_q |= !keys;
        has_k |= keys;
    }
    if (has_q && has_k)
        grown_mask(g, args, q, &k, 1);
    args->nq = has_q ? regions[0].count * g->rows : 0;
    args->nk = has_k ? regions[0].count * g->rows : 0;
    args->batch = a->batch;
    args->heads = a->heads / lh_program_slices(g->program, LH_TENSOR_Q);
    args->groups = a->groups / lh_program_slices(g->program, LH_TENSOR_KV);
    args->head_dim = a->head_dim;
    args->decay = g->kind == GROWN_LINEAR ? a->decay : 0;
}

static void
call_any(Grower *g)
{
    const uint32_t rank = grown_draw(g, g->ranks), parts = grown_chance(g, 80) ? 1 : 2;
    const LhKernelId id = g->kernels[grown_draw(g, g->kernels_count)];
    const LhOperand *operands = lh_kernels[id]->operands;
    const LhTensorKind any = g->program->slots[grown_draw(g, g->program->slots_count)].kind;
    LhEmitter *e = &g->built.emitters[rank];
    LhRegion regions[LH_KERNEL_OPERANDS_MAX];
    g_autofree GrownState *state = g_new(GrownState, 1);
    LhKernelArgs args = { .first = grown_chance(g, 60) };
    uint32_t count = 0;

    for (; operands[count].access != LH_OPERAND_END; count++) {
        const LhOperand *o = &operands[count];
        const LhSlot like = { .kind = o->kind == LH_TENSOR_ANY ? any : o->kind,
                              .dtype = any_dtype(g, o) };

        if (!any_parts(g, &like, o->access != LH_OPERAND_READ, parts, &regions[count]))
            return;
    }
    fill_args(g, rank, regions, count, &args);
    grown_keep(g, state);
    lh_emit_compute(e, (uint8_t)grown_draw(g, GROWN_STREAMS), id, &args);
    for (uint32_t i = 0; i < count; i++)
        lh_emit_operand(e, regions[i].slot, regions[i].part, regions[i].count);
    grown_order(g, rank);
    for (uint32_t i = 0; i < count; i++) {
        for (uint32_t k = 0; operands[i].access != LH_OPERAND_READ && k < parts; k++)
            grown_put(g, rank, regions[i], k, (GrownCell){ 0 });
    }
    grown_settle(g, state);
}

static void
synchronise(Grower *g)
{
    const uint32_t rank = grown_draw(g, g->ranks);
    g_autofree GrownState *state = g_new(GrownState, 1);

    grown_keep(g, state);
    lh_emit_sync(&g->built.emitters[rank]);
    grown_order(g, rank);
    grown_settle(g, state);
}

void
grown_go_wild(Grower *g)
{
    const uint32_t what = grown_draw(g, 100);

    for (uint32_t i = 0; what < 50 && i < CALLS; i++)
        call_any(g);
    if (what >= 50 && what < 65)
        grown_free_anyhow(g);
    if (what >= 65 && what < 95)
        grown_meet_anyhow(g);
    if (what >= 95)
        synchronise(g);
}
