/* SPDX-License-Identifier: Apache-2.0 */
#include "remedy/remedy_costs.h"

#include "scenario/setup_simulate.h"
#include "sim/lower_bound/lower_bound.h"

#define FEW_LAYERS 2
#define OFFLOAD_LAYERS 4 /* the same, where some are offloaded */
#define HIDDEN 64

/* A step of one stage, one micro-batch and few layers, of which its setup has `scale` times as
 * many. */
typedef struct {
    LhSetup setup;
    LhSetupStep step;
    const LhSchedule *schedule;
    uint32_t layers;
    bool equal;      /* layers cost the same */
    double scale;    /* of the layers of a stage, in all micro-batches */
    double of_chunk; /* layers of a chunk */
} Small;

/* Whether all layers cost the same. */
static bool
has_equal_layers(const LhModel *m)
{
    return (m->layers == NULL || m->layers->len <= 1) &&
           (m->num_experts == 0 || lh_model_dense(m) == 0);
}

static void
init_small(Small *small, const LhSetup *setup, const LhSchedule *schedule)
{
    const LhStepParams *given = &setup->step->params;
    const uint64_t layers = setup->step->model.num_layers;
    LhStepParams *p = &small->step.params;

    *small = (Small){ .setup = *setup, .step = *setup->step, .schedule = schedule };
    small->equal = has_equal_layers(&small->step.model);
    small->layers = small->equal ? MIN(FEW_LAYERS, (uint32_t)layers) : (uint32_t)layers;
    small->of_chunk = (double)layers / lh_step_stages(given) / lh_step_chunks(given);
    small->step.model.num_layers = small->layers;
    small->scale = (double)layers / small->layers / lh_step_stages(given) * given->micro_batches;
    p->pipeline_parallel = p->chunks = p->micro_batches = 1;
    p->pipeline_order = LH_PIPELINE_1F1B;
    p->embedding_counts = p->loss_counts = false;
    p->offload_layers = 0;
    p->recompute.layers = 0;
    p->packs = NULL;
    p->packs_count = 0;
}

/* Longest chain of the step with what is turned on, on one rank; 0 if there is no such step.
 * Kernels count a little apart, so that those that messages hide have an order, too. */
static LhTime
time_of(const Small *small, const LhRemedies *r)
{
    LhSetup setup = small->setup;
    LhSetupStep step = small->step;
    const uint32_t rank = step.params.tensor_parallel * (step.params.module.ranks - 1);
    g_autoptr(LhProgram) program = NULL;
    g_autoptr(LhLowerBound) least = NULL;
    LhLowerBoundTimes times;
    LhSimParams params;

    setup.step = &step;
    lh_remedies_apply(r, &step);
    program = lh_setup_program(&setup, small->schedule, NULL);
    if (program == NULL)
        return 0;
    params = lh_setup_sim_params(&setup, program);
    least = lh_lower_bound_new(&params, NULL);
    times = lh_lower_bound_of(least, rank, true);
    return times.path_ps + times.sums_ps[0] / HIDDEN;
}

/* What offloading @layers layers adds: each waits for copies that take longer than the layer beside
 * them; beside those of the last layer of a chunk nothing runs. */
static LhTime
offload_cost(const Small *small, uint16_t layers)
{
    static const LhRemedies none = { 0 };
    const LhRemedies one = { .offload = 1 }, all = { .offload = LH_REMEDIES_ALL_LAYERS };
    Small more = *small;
    LhTime plain_ps, each_ps, last_ps;
    double number = small->scale * small->layers;

    if (small->equal)
        more.step.model.num_layers = MAX(more.step.model.num_layers, OFFLOAD_LAYERS);
    plain_ps = time_of(&more, &none);
    each_ps = MAX(0, time_of(&more, &one) - plain_ps);
    last_ps = time_of(&more, &all) - plain_ps - (LhTime)more.step.model.num_layers * each_ps;
    if (layers == LH_REMEDIES_ALL_LAYERS)
        return (LhTime)(number * (double)each_ps) + MAX(0, last_ps);
    number = MIN(number, number * layers / small->of_chunk);
    return (LhTime)(number * (double)each_ps);
}

/* The cost of a switch with all that it needs; @plain_ps: of the step without. */
static bool
cost_of(const Small *small, LhTime plain_ps, const LhRemedies *adds, LhTime *cost_ps)
{
    LhRemedies tried = *adds;
    double scale = small->scale;
    LhTime with_ps;

    *cost_ps = 0;
    if (adds->offload != 0) {
        *cost_ps = offload_cost(small, adds->offload);
        return true;
    }
    if (adds->method != 0) { /* of the layers, a part is recomputed */
        scale *= adds->method - 1 == LH_RECOMPUTE_EVERY ? 1.0 / adds->layers
                                                        : MIN(1, adds->layers / small->of_chunk);
        tried.method = 1 + LH_RECOMPUTE_UNIFORM;
        tried.layers = 1;
    }
    if (adds->loss != 0)
        scale = small->setup.step->params.micro_batches;
    with_ps = time_of(small, &tried);
    *cost_ps = (LhTime)(scale * (double)(with_ps - plain_ps));
    return with_ps > 0;
}

/* The strongest of the switches in @set, of which the last is. */
static int
last_of(uint32_t set)
{
    int last = -1;

    for (int i = 0; i < LH_REMEDY_SWITCHES_MAX; i++)
        last = (set >> i & 1) != 0 ? i : last;
    return last;
}

bool
lh_remedy_costs(const LhSetup *setup, const LhSchedule *schedule, const LhRemedyMenu *menu,
                LhTime *costs_ps)
{
    static const LhRemedies none = { 0 };
    LhTime whole_ps[LH_REMEDY_SWITCHES_MAX] = { 0 }, plain_ps;
    Small small;

    init_small(&small, setup, schedule);
    plain_ps = time_of(&small, &none);
    if (plain_ps == 0)
        return false;
    for (guint i = 0; i < menu->count; i++) {
        const LhRemedySwitch *one = &menu->switches[i];
        const int below = last_of(one->needs);

        costs_ps[i] = 0;
        if (one->types)
            continue;
        if (!cost_of(&small, plain_ps, &one->adds, &whole_ps[i]))
            return false;
        costs_ps[i] = whole_ps[i] - (below < 0 ? 0 : whole_ps[below]);
    }
    return true;
}

bool
lh_remedy_cost(const LhSetup *setup, const LhSchedule *schedule, const LhRemedies *r,
               LhTime *cost_ps)
{
    static const LhRemedies none = { 0 };
    LhTime plain_ps;
    Small small;

    init_small(&small, setup, schedule);
    plain_ps = time_of(&small, &none);
    return plain_ps > 0 && cost_of(&small, plain_ps, r, cost_ps);
}
