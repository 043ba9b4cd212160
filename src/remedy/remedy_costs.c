/* SPDX-License-Identifier: Apache-2.0 */
#include "remedy/remedy_costs.h"

#include "scenario/setup_simulate.h"
#include "sim/lower_bound/lower_bound.h"
#include "step/memory/offload_forms.h"

#include <string.h>

#define FEW_LAYERS 2

/* A step of one stage, one micro-batch and few layers, of which its setup has `scale` times as
 * many. */
typedef struct {
    LhSetup setup;
    LhSetupStep step;
    const LhSchedule *schedule;
    uint32_t layers;
    double scale; /* of the layers of a stage, in all micro-batches */
} Small;

typedef struct {
    LhTime kernels_ps, forward_ps, backward_ps;
    uint64_t kept_bytes; /* of a layer */
} Times;

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
    small->layers =
        has_equal_layers(&small->step.model) ? MIN(FEW_LAYERS, (uint32_t)layers) : (uint32_t)layers;
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

/* Times the step with what is turned on; false if there is none. */
static bool
time_of(const Small *small, const LhRemedies *r, Times *times)
{
    LhSetup setup = small->setup;
    LhSetupStep step = small->step;
    const uint32_t rank = step.params.tensor_parallel * (step.params.module.ranks - 1);
    g_autoptr(LhProgram) program = NULL;
    g_autoptr(LhLowerBound) least = NULL;
    LhLowerBoundTimes of;
    LhSimParams params;

    setup.step = &step;
    lh_remedies_apply(r, &step);
    program = lh_setup_program(&setup, small->schedule, NULL);
    if (program == NULL)
        return false;
    params = lh_setup_sim_params(&setup, program);
    least = lh_lower_bound_new(&params, NULL);
    of = lh_lower_bound_of(least, rank, false);
    *times = (Times){ .kernels_ps = of.sums_ps[0],
                      .forward_ps = of.forward_ps,
                      .backward_ps = of.sums_ps[0] - of.forward_ps,
                      .kept_bytes = lh_step_layer_kept_bytes(program, 0) };
    return true;
}

/* What the copies of @layers layers add: what each takes longer than a layer in its pass, and those
 * of the last layer, beside which nothing runs. */
static LhTime
offload_cost(const Small *small, const Times *plain, uint16_t layers)
{
    const double bandwidth = small->setup.topology->host_link.bandwidth;
    const double copy_ps = (double)plain->kept_bytes / bandwidth * (double)LH_PS_PER_S;
    const double forward_ps = (double)plain->forward_ps / small->layers;
    const double backward_ps = (double)plain->backward_ps / small->layers;
    const double each_ps = MAX(0, copy_ps - forward_ps) + MAX(0, copy_ps - backward_ps);
    const double all = small->scale * small->layers;

    if (layers == LH_REMEDIES_ALL_LAYERS)
        return (LhTime)(all * each_ps + 2 * copy_ps);
    return (LhTime)(MIN(layers, all) * each_ps);
}

/* The cost of a switch with all that it needs. */
static bool
cost_of(const Small *small, const Times *plain, const LhRemedies *adds, LhTime *cost_ps)
{
    LhRemedies tried = *adds;
    double scale = small->scale;
    Times with;

    *cost_ps = 0;
    if (adds->offload != 0) {
        *cost_ps = offload_cost(small, plain, adds->offload);
        return true;
    }
    if (adds->method != 0) { /* of the layers, a part is recomputed */
        const double layers = (double)small->setup.step->model.num_layers;

        scale *= adds->method - 1 == LH_RECOMPUTE_EVERY ? 1.0 / adds->layers
                                                        : MIN(1, adds->layers / layers);
        tried.method = 1 + LH_RECOMPUTE_UNIFORM;
        tried.layers = 1;
    }
    if (adds->loss != 0)
        scale = small->setup.step->params.micro_batches;
    if (!time_of(small, &tried, &with))
        return false;
    *cost_ps = (LhTime)(scale * (double)(with.kernels_ps - plain->kernels_ps));
    return true;
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
    LhTime whole_ps[LH_REMEDY_SWITCHES_MAX] = { 0 };
    Small small;
    Times plain;

    init_small(&small, setup, schedule);
    if (!time_of(&small, &none, &plain))
        return false;
    for (guint i = 0; i < menu->count; i++) {
        const LhRemedySwitch *one = &menu->switches[i];
        const int below = last_of(one->needs);

        costs_ps[i] = 0;
        if (one->types)
            continue;
        if (!cost_of(&small, &plain, &one->adds, &whole_ps[i]))
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
    Small small;
    Times plain;

    init_small(&small, setup, schedule);
    return time_of(&small, &none, &plain) && cost_of(&small, &plain, r, cost_ps);
}
