/* SPDX-License-Identifier: Apache-2.0 */
#include "remedy/remedy_menu.h"

#include "step/behaviour.h"
#include "step/memory/recomputation.h"
#include "step/pipeline/pipeline.h"

#include <string.h>

/* Numbers of layers are on the menu as parts of all: quarters. */
#define PARTS 4

typedef struct {
    const LhSetup *setup;
    const LhStepParams *p;
    LhRemedyMenu *menu;
    uint32_t losses, modules, methods, offloads; /* switches of these options */
} Making;

/* Whether the scenario gives the option, or recomputation. */
static bool
is_given(const Making *m, LhRemedyOption option)
{
    static const char *const recomputation[] = { "checkpoint", "recompute_modules",
                                                 "recompute_method" };
    const LhScenario *s = m->setup->scenario;

    if (option != LH_REMEDY_MODULES && option != LH_REMEDY_METHOD)
        return lh_scenario_has(s, lh_remedy_option_names[option]);
    for (size_t i = 0; i < G_N_ELEMENTS(recomputation); i++) {
        if (lh_scenario_has(s, recomputation[i]))
            return true;
    }
    return false;
}

/* Whether the framework allows the remedy in this step. */
static bool
is_allowed(const Making *m, const LhFrameworkRemedy *remedy)
{
    const LhStepParams *p = m->p;

    return !(remedy->no_recomputation && p->checkpoint != LH_CHECKPOINT_NONE) &&
           !(remedy->no_pipeline && lh_step_stages(p) > 1) &&
           !(remedy->needs_recomputation && p->checkpoint != LH_CHECKPOINT_LAYER) &&
           !(remedy->needs_sharding && p->shard == LH_SHARD_DDP);
}

/* Adds a switch, which needs switch @below; -1: none. Returns its number, or @below if there is no
 * place. */
static int
add(Making *m, const LhRemedies *adds, int below, bool types)
{
    LhRemedyMenu *menu = m->menu;

    if (menu->count == LH_REMEDY_SWITCHES_MAX)
        return below;
    menu->switches[menu->count] =
        (LhRemedySwitch){ .adds = *adds,
                          .needs =
                              below < 0 ? 0 : menu->switches[below].needs | UINT32_C(1) << below,
                          .types = types };
    return (int)menu->count++;
}

static uint32_t
bit(int number)
{
    return number < 0 ? 0 : UINT32_C(1) << number;
}

/* ---- options ---- */

static void
add_losses(Making *m)
{
    for (int loss = 0; lh_loss_names[loss] != NULL && !is_given(m, LH_REMEDY_LOSS); loss++) {
        const LhRemedies adds = { .loss = (uint8_t)(loss + 1) };
        const LhFrameworkRemedy *remedy =
            lh_framework_remedy(m->setup->framework->remedies, LH_REMEDY_LOSS, lh_loss_names[loss]);

        if (remedy != NULL && loss != (int)m->p->loss && is_allowed(m, remedy))
            m->losses |= bit(add(m, &adds, -1, false));
    }
}

static void
add_tiles(Making *m)
{
    const LhRemedies adds = { .tiled = 1 };

    if (!is_given(m, LH_REMEDY_TILED_MLP) && m->p->mlp_tile_rows == 0 &&
        lh_framework_remedy(m->setup->framework->remedies, LH_REMEDY_TILED_MLP, "auto") != NULL)
        add(m, &adds, -1, false);
}

/* Whether the model has the module. */
static bool
has_module(const Making *m, unsigned module)
{
    LhStepParams p = *m->p;

    p.model = &m->setup->step->model;
    p.checkpoint = LH_CHECKPOINT_SELECTIVE;
    p.recompute = (LhRecompute){ .modules = UINT32_C(1) << module };
    return lh_step_check_recomputation(&p, NULL);
}

/* A module of experts contains others. */
static bool
contains(unsigned outer, unsigned inner)
{
    return outer == LH_RECOMPUTE_MOE &&
           (inner == LH_RECOMPUTE_MOE_ACT || inner == LH_RECOMPUTE_SHARED_EXPERTS);
}

static void
add_modules(Making *m)
{
    const LhFrameworkRemedy *remedy =
        lh_framework_remedy(m->setup->framework->remedies, LH_REMEDY_MODULES, NULL);
    int number_of[LH_RECOMPUTE_MODULES];
    uint32_t listed;

    if (remedy == NULL || !is_allowed(m, remedy) ||
        !lh_recompute_parse(remedy->value, &listed, NULL))
        return;
    for (unsigned module = 0; module < LH_RECOMPUTE_MODULES; module++) {
        const LhRemedies adds = { .modules = (uint8_t)(UINT32_C(1) << module) };

        number_of[module] = -1;
        if ((listed >> module & 1) == 0 || !has_module(m, module))
            continue;
        number_of[module] = add(m, &adds, -1, false);
        m->modules |= bit(number_of[module]);
    }
    for (unsigned a = 0; a < LH_RECOMPUTE_MODULES; a++) {
        for (unsigned b = 0; b < LH_RECOMPUTE_MODULES; b++) {
            if (number_of[a] >= 0 && number_of[b] >= 0 && (contains(a, b) || contains(b, a)))
                m->menu->switches[number_of[a]].excludes |= bit(number_of[b]);
        }
    }
}

/* Layers of the smallest chunk, of which there must be several. */
static uint32_t
layers_of_chunk(const Making *m)
{
    LhStepParams p = *m->p;
    uint32_t least = UINT32_MAX;

    p.model = &m->setup->step->model;
    for (uint32_t chunk = 0; chunk < lh_step_stages(&p) * lh_step_chunks(&p); chunk++)
        least = MIN(least, lh_step_chunk_begins(&p, chunk + 1) - lh_step_chunk_begins(&p, chunk));
    return MIN(least, UINT16_MAX - 1);
}

static void
add_methods(Making *m)
{
    const GArray *remedies = m->setup->framework->remedies;
    const uint32_t layers = layers_of_chunk(m);
    const LhFrameworkRemedy *remedy;
    uint16_t last = 0;
    int below = -1;

    remedy = lh_framework_remedy(remedies, LH_REMEDY_METHOD, "block");
    for (uint32_t part = 1; remedy != NULL && is_allowed(m, remedy) && part < PARTS; part++) {
        const LhRemedies adds = { .method = 1 + LH_RECOMPUTE_BLOCK,
                                  .layers = (uint16_t)(layers * part / PARTS) };

        if (adds.layers == last)
            continue;
        last = adds.layers;
        below = add(m, &adds, below, false);
        m->methods |= bit(below);
    }
    remedy = lh_framework_remedy(remedies, LH_REMEDY_METHOD, "every");
    for (uint32_t part = PARTS; remedy != NULL && is_allowed(m, remedy) && part >= 2; part /= 2) {
        const LhRemedies adds = { .method = 1 + LH_RECOMPUTE_EVERY, .layers = (uint16_t)part };

        if (layers < part)
            continue;
        below = add(m, &adds, below, false);
        m->methods |= bit(below);
    }
}

/* Copies need a link to the host that is known. */
static bool
can_offload(const LhSetup *setup)
{
    return setup->topology != NULL && setup->topology->host_link.bandwidth > 0;
}

static void
add_offload(Making *m)
{
    const LhFrameworkRemedy *remedy =
        lh_framework_remedy(m->setup->framework->remedies, LH_REMEDY_OFFLOAD, NULL);
    const uint32_t layers = layers_of_chunk(m);
    LhRemedies adds = { .offload = LH_REMEDIES_ALL_LAYERS };
    int below = -1;

    if (remedy == NULL || !is_allowed(m, remedy) || !can_offload(m->setup) ||
        m->p->recompute.layers > 0 || is_given(m, LH_REMEDY_OFFLOAD))
        return;
    if (strcmp(remedy->value, "all") == 0) {
        m->offloads = bit(add(m, &adds, -1, false));
        return;
    }
    for (uint32_t part = 1; part <= PARTS; part++) {
        const uint16_t last = adds.offload;

        adds.offload = (uint16_t)MIN(layers * part / PARTS, layers - 1);
        if (adds.offload == 0 || adds.offload == last)
            continue;
        below = add(m, &adds, below, false);
        m->offloads |= bit(below);
    }
}

/* ---- types of the optimizer's states ---- */

static int
add_type(Making *m, LhRemedyOption option, const char *value, const LhRemedies *adds, int below)
{
    const LhFrameworkRemedy *remedy =
        lh_framework_remedy(m->setup->framework->remedies, option, value);

    return remedy != NULL && is_allowed(m, remedy) && !is_given(m, option)
               ? add(m, adds, below, true)
               : below;
}

/* In one order, from the type that matters least for what is computed. */
static void
add_types(Making *m)
{
    const LhDtype dtype = m->p->module.attention.dtype;
    const LhStepBehaviour *b = &m->p->behaviour;
    const LhRemedies grads = { .grads = (uint8_t)(1 + dtype) };
    const LhRemedies params = { .params = 1 + LH_MAIN_PARAMS_NONE };
    const LhRemedies moments = { .moments = 1 + LH_EXP_AVG_BF16 };
    const LhRemedies bytes = { .moments = 1 + LH_EXP_AVG_8BIT };
    int below = -1;

    if (dtype != LH_DTYPE_BF16 || m->p->lora_rank > 0)
        return;
    if (b->gradients_fp32)
        below = add_type(m, LH_REMEDY_GRADS, lh_dtype_names[dtype], &grads, below);
    if (!b->no_master)
        below = add_type(m, LH_REMEDY_PARAMS, "none", &params, below);
    if (b->moments == LH_MOMENTS_FP32)
        below = add_type(m, LH_REMEDY_MOMENTS, "bf16", &moments, below);
    if (b->moments != LH_MOMENTS_8BIT)
        add_type(m, LH_REMEDY_MOMENTS, "8bit", &bytes, below);
}

/* ---- the menu ---- */

/* Each of @of excludes all of @others, and the other way round. */
static void
exclude(LhRemedyMenu *menu, uint32_t of, uint32_t others)
{
    for (guint i = 0; i < menu->count; i++) {
        const uint32_t self = UINT32_C(1) << i;

        if ((of & self) != 0)
            menu->switches[i].excludes |= others & ~self;
        if ((others & self) != 0)
            menu->switches[i].excludes |= of & ~self;
    }
}

void
lh_remedy_menu(const LhSetup *setup, LhRemedyMenu *menu)
{
    const LhStepParams *p = &setup->step->params;
    const LhFrameworkRemedy *offload;
    Making m = { .setup = setup, .p = p, .menu = menu };

    *menu = (LhRemedyMenu){ 0 };
    if (p->forward_only || setup->framework == NULL)
        return;
    add_losses(&m);
    add_tiles(&m);
    if (p->checkpoint == LH_CHECKPOINT_NONE && !is_given(&m, LH_REMEDY_MODULES)) {
        add_modules(&m);
        add_methods(&m);
    }
    add_offload(&m);
    add_types(&m);
    offload = lh_framework_remedy(setup->framework->remedies, LH_REMEDY_OFFLOAD, NULL);
    exclude(menu, m.losses, m.losses);
    exclude(menu, m.modules, m.methods);
    exclude(menu, m.offloads, m.methods);
    if (offload != NULL && offload->no_recomputation)
        exclude(menu, m.offloads, m.modules);
}

bool
lh_remedy_menu_allows(const LhRemedyMenu *menu, uint32_t set)
{
    for (guint i = 0; i < menu->count; i++) {
        const LhRemedySwitch *one = &menu->switches[i];

        if ((set >> i & 1) != 0 && ((one->needs & ~set) != 0 || (one->excludes & set) != 0))
            return false;
    }
    return true;
}

LhRemedies
lh_remedy_menu_of(const LhRemedyMenu *menu, uint32_t set)
{
    LhRemedies r = { 0 };

    for (guint i = 0; i < menu->count; i++) {
        if ((set >> i & 1) != 0)
            lh_remedies_add(&r, &menu->switches[i].adds);
    }
    return r;
}

bool
lh_remedy_menu_is_most(const LhRemedyMenu *menu, uint32_t set)
{
    for (guint i = 0; i < menu->count; i++) {
        if ((set >> i & 1) == 0 && menu->switches[i].adds.loss == 0 &&
            lh_remedy_menu_allows(menu, set | UINT32_C(1) << i))
            return false;
    }
    return true;
}

/* ---- losses ---- */

uint8_t
lh_remedy_fast_loss(const LhSetup *setup)
{
    const LhLoss loss = setup->step->params.loss;
    const LhLoss fast = loss == LH_LOSS_EAGER ? LH_LOSS_FUSED : LH_LOSS_FUSED_LINEAR;

    if (loss == LH_LOSS_FUSED || loss == LH_LOSS_FUSED_LINEAR || setup->framework == NULL ||
        setup->step->params.forward_only || lh_scenario_has(setup->scenario, "loss"))
        return 0;
    return lh_framework_remedy(setup->framework->remedies, LH_REMEDY_LOSS, lh_loss_names[fast]) !=
                   NULL
               ? (uint8_t)(1 + fast)
               : 0;
}
