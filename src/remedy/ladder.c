/* SPDX-License-Identifier: Apache-2.0 */
#include "remedy/ladder.h"

#include "program/live.h"
#include "remedy/remedy_costs.h"
#include "step/memory/offload_forms.h"
#include "step/memory/peak_memory.h"

#include <string.h>

#define TRIED_MAX 48 /* programs, after which the cheapest of the largest sets is the answer */

/* ---- memory ---- */

/* Whether the hosts of a node hold what its ranks offload, as if all did as much as the one that
 * offloads most. */
static bool
host_holds(const LhSetup *setup, const LhProgram *program)
{
    const LhStepParams *p = lh_step_params(program);
    const uint64_t ranks = MIN(setup->topology->gpus_per_node, lh_step_ranks(p));
    const uint64_t limit_bytes = setup->topology->host_memory;
    uint64_t most = 0;

    if (limit_bytes == 0 || p->offload_layers == 0)
        return true;
    for (uint32_t stage = 0; stage < lh_step_stages(p); stage++)
        most =
            MAX(most, lh_step_offloaded_bytes(program, stage * (uint32_t)lh_step_stage_ranks(p)));
    if (most * ranks <= limit_bytes)
        return true;
    most = 0;
    for (uint32_t stage = 0; stage < lh_step_stages(p); stage++) {
        LhLive live;

        lh_live_walk(&live, program, stage * (uint32_t)lh_step_stage_ranks(p));
        most = MAX(most, live.host_peak_bytes);
    }
    return most * ranks <= limit_bytes;
}

bool
lh_ladder_peak(const LhLadder *ladder, const LhRemedies *r, LhLadderPeak *peak)
{
    LhSetup setup = *ladder->setup;
    LhSetupStep step = *ladder->setup->step;
    g_autoptr(LhProgram) program = NULL;

    setup.step = &step;
    lh_remedies_apply(r, &step);
    program = lh_setup_program(&setup, ladder->schedule, NULL);
    if (program == NULL)
        return false;
    memset(peak, 0, sizeof(*peak));
    peak->bytes = lh_step_peak(program, peak->by_category);
    peak->fits = (ladder->limit_bytes == 0 || peak->bytes <= ladder->limit_bytes) &&
                 host_holds(&setup, program);
    return true;
}

/* ---- sets ---- */

typedef struct {
    uint32_t set;
    guint types;
    LhTime cost_ps;
    bool most; /* with these types, nothing more can be turned on */
} Rung;

typedef struct {
    const LhLadder *ladder;
    LhRemedyMenu menu;
    LhTime costs_ps[LH_REMEDY_SWITCHES_MAX];
    uint32_t types, losses; /* switches that are these */
    GArray *rungs;          /* of Rung */
    GArray *unfit;          /* of uint32_t: sets that do not fit */
    GHashTable *known;
    guint tried;
} Climb;

static Rung
rung_of(const Climb *c, uint32_t set)
{
    Rung rung = { .set = set, .most = true };

    for (guint i = 0; i < c->menu.count; i++) {
        const uint32_t bit = UINT32_C(1) << i;

        if ((set & bit) != 0) {
            rung.cost_ps += c->costs_ps[i];
            rung.types += (c->types & bit) != 0;
        } else if (((c->types | c->losses) & bit) == 0 &&
                   lh_remedy_menu_allows(&c->menu, set | bit)) {
            rung.most = false;
        }
    }
    return rung;
}

/* Adds all consistent sets that have @set and switches from @next on. */
static void
add_sets(Climb *c, uint32_t set, guint next)
{
    const Rung rung = rung_of(c, set);

    g_array_append_val(c->rungs, rung);
    for (guint i = next; i < c->menu.count; i++) {
        const uint32_t more = set | UINT32_C(1) << i;

        if (lh_remedy_menu_allows(&c->menu, more))
            add_sets(c, more, i + 1);
    }
}

/* Few types, little time, then few remedies come first. */
static int
by_cost(gconstpointer a, gconstpointer b)
{
    const Rung *x = a, *y = b;

    if (x->types != y->types)
        return x->types < y->types ? -1 : 1;
    if (x->cost_ps != y->cost_ps)
        return x->cost_ps < y->cost_ps ? -1 : 1;
    return x->set < y->set ? -1 : x->set > y->set;
}

static void
drop_types(LhRemedyMenu *menu)
{
    guint kept = 0;

    for (guint i = 0; i < menu->count; i++) { /* they come last */
        if (!menu->switches[i].types)
            kept++;
    }
    menu->count = kept;
}

static void
init_climb(Climb *c, const LhLadder *ladder, bool types)
{
    *c = (Climb){ .ladder = ladder };
    lh_remedy_menu(ladder->setup, &c->menu);
    if (!types)
        drop_types(&c->menu);
    for (guint i = 0; i < c->menu.count; i++) {
        c->losses |= c->menu.switches[i].adds.loss != 0 ? UINT32_C(1) << i : 0;
        c->types |= c->menu.switches[i].types ? UINT32_C(1) << i : 0;
    }
    c->rungs = g_array_new(FALSE, FALSE, sizeof(Rung));
    c->unfit = g_array_new(FALSE, FALSE, sizeof(uint32_t));
    c->known = g_hash_table_new(NULL, NULL);
}

static void
clear_climb(Climb *c)
{
    g_array_unref(c->rungs);
    g_array_unref(c->unfit);
    g_hash_table_unref(c->known);
}

static const Rung *
rung_at(const Climb *c, guint i)
{
    return &g_array_index(c->rungs, Rung, i);
}

/* ---- the climb ---- */

/* Whether a set is part of one with the same loss that does not fit. */
static bool
is_in_unfit(const Climb *c, uint32_t set)
{
    for (guint i = 0; i < c->unfit->len; i++) {
        const uint32_t unfit = g_array_index(c->unfit, uint32_t, i);

        if ((set & ~unfit) == 0 && ((set ^ unfit) & c->losses) == 0)
            return true;
    }
    return false;
}

static bool
set_fits(Climb *c, uint32_t set)
{
    const LhRemedies r = lh_remedy_menu_of(&c->menu, set);
    const gpointer key = GUINT_TO_POINTER(set);
    LhLadderPeak peak;
    gpointer fits;

    if (g_hash_table_lookup_extended(c->known, key, NULL, &fits))
        return GPOINTER_TO_INT(fits) != 0;
    if (is_in_unfit(c, set))
        return false;
    c->tried++;
    fits = GINT_TO_POINTER(lh_ladder_peak(c->ladder, &r, &peak) && peak.fits);
    g_hash_table_insert(c->known, key, fits);
    if (fits == NULL)
        g_array_append_val(c->unfit, set);
    return fits != NULL;
}

/* Whether some of the largest sets with @types types fits; the cheapest is *@set. */
static bool
level_fits(Climb *c, guint types, uint32_t *set)
{
    for (guint i = 0; i < c->rungs->len; i++) {
        const Rung *rung = rung_at(c, i);

        if (rung->types == types && rung->most && set_fits(c, rung->set)) {
            *set = rung->set;
            return true;
        }
    }
    return false;
}

/* The first set with @types types that fits, which is not beyond @last, which does. */
static uint32_t
first_fit(Climb *c, guint types, uint32_t last)
{
    for (guint i = 0; i < c->rungs->len && c->tried < TRIED_MAX; i++) {
        const Rung *rung = rung_at(c, i);

        if (rung->types == types && (rung->set == last || set_fits(c, rung->set)))
            return rung->set;
    }
    return last;
}

/* ---- numbers of layers ---- */

/* Lowers *@number, with which it fits, to the lowest above @below with which it does. */
static void
lower(const Climb *c, LhRemedies *r, uint16_t *number, uint16_t below)
{
    uint16_t fails = below, fits = *number;

    while (fits - fails > 1) {
        LhLadderPeak peak;

        *number = (uint16_t)(fails + (fits - fails) / 2);
        if (lh_ladder_peak(c->ladder, r, &peak) && peak.fits)
            fits = *number;
        else
            fails = *number;
    }
    *number = fits;
}

/* The next smaller number of the same option on the menu; 0: none. */
static uint16_t
smaller(const Climb *c, uint16_t number, bool offload)
{
    uint16_t most = 0;

    for (guint i = 0; i < c->menu.count; i++) {
        const LhRemedies *adds = &c->menu.switches[i].adds;
        const uint16_t of = offload                                  ? adds->offload
                            : adds->method == 1 + LH_RECOMPUTE_BLOCK ? adds->layers
                                                                     : 0;

        most = of < number ? MAX(most, of) : most;
    }
    return most;
}

static void
lower_numbers(const Climb *c, LhRemedies *r)
{
    if (r->method == 1 + LH_RECOMPUTE_BLOCK)
        lower(c, r, &r->layers, smaller(c, r->layers, false));
    if (r->offload != 0 && r->offload != LH_REMEDIES_ALL_LAYERS)
        lower(c, r, &r->offload, smaller(c, r->offload, true));
}

static bool
climb(Climb *c, LhRemedies *found)
{
    const guint types = (guint)__builtin_popcount(c->types);
    uint32_t last = 0;

    add_sets(c, 0, 0);
    qsort(c->rungs->data, c->rungs->len, sizeof(Rung), by_cost);
    if (!level_fits(c, types, &last))
        return false;
    for (guint level = 0; level <= types; level++) {
        if (!level_fits(c, level, &last))
            continue;
        *found = lh_remedy_menu_of(&c->menu, first_fit(c, level, last));
        lower_numbers(c, found);
        return true;
    }
    return false;
}

bool
lh_ladder_climb(const LhLadder *ladder, bool types, LhRemedies *found)
{
    bool fits = false;
    Climb c;

    init_climb(&c, ladder, types);
    if (c.menu.count > 0 && lh_remedy_costs(ladder->setup, ladder->schedule, &c.menu, c.costs_ps))
        fits = climb(&c, found);
    clear_climb(&c);
    return fits;
}

/* ---- all sets ---- */

static GArray *
list_sets(const LhLadder *ladder, bool types, bool tops)
{
    GArray *sets = g_array_new(FALSE, FALSE, sizeof(LhRemedies));
    Climb c;

    init_climb(&c, ladder, types);
    add_sets(&c, 0, 0);
    for (guint i = 0; i < c.rungs->len; i++) {
        const Rung *rung = rung_at(&c, i);
        const LhRemedies r = lh_remedy_menu_of(&c.menu, rung->set);

        if (!tops || lh_remedy_menu_is_most(&c.menu, rung->set))
            g_array_append_val(sets, r);
    }
    clear_climb(&c);
    return sets;
}

GArray *
lh_ladder_tops(const LhLadder *ladder, bool types)
{
    return list_sets(ladder, types, true);
}

GArray *
lh_ladder_sets(const LhLadder *ladder, bool types)
{
    return list_sets(ladder, types, false);
}
