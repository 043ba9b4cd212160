/*
 * See the header. Ranks that differ in tensor- or data-parallel rank alone have the same program
 * but for whom they talk to, and the first of them has as much to do as any: those of one
 * context-parallel group stand for all.
 */
#include "plan/estimate.h"

#include "plan/step_plan.h"
#include "sim/least.h"

#include <string.h>

/* Of the quick answer: enough layers that what is fetched ahead of a layer, or follows behind it,
 * lies within them. */
#define FEW_LAYERS 3
#define FEW_MICRO_BATCHES 2
#define WATCHED_RANKS 4 /* at most, whose chains are followed */

static LhSimParams
sim_params(const LhSetup *setup, const LhProgram *program)
{
    return (LhSimParams){ .program = program,
                          .network = &setup->network,
                          .device = setup->device,
                          .network_model = setup->network_model,
                          .collectives = setup->collectives,
                          .cost = setup->cost,
                          .framework = setup->framework,
                          .serving = setup->scenario->serving,
                          .jitter = setup->scenario->jitter };
}

/* The rank at place @index of @count, spread over the first context-parallel group. */
static uint32_t
group_rank(const LhStepParams *p, uint32_t index, uint32_t count)
{
    const uint32_t last = p->module.ranks - 1;

    return p->tensor_parallel * (count > 1 ? (uint32_t)((uint64_t)last * index / (count - 1)) : 0);
}

/* ---- quick ---- */

/* What a program of so many layers and few micro-batches has. */
typedef struct {
    LhTime sums_ps[LH_LEAST_SUMS];
    uint64_t peak_bytes;
} Sums;

/* Of the last rank of the group, which sees most keys where work is not balanced; micro-batches
 * beyond the few, @more of them, repeat the first. */
static void
sum_rank(const LhPlanCase *c, const LhProgram *program, uint32_t more, Sums *sums)
{
    const LhSimParams params = sim_params(&c->setup, program);
    const uint32_t rank = group_rank(&c->step.params, 1, 2);
    g_autoptr(LhLeast) least = lh_least_new(&params);
    const LhLeastTimes times = lh_least_of(least, rank, false);
    LhLive live;

    for (int s = 0; s < LH_LEAST_SUMS; s++)
        sums->sums_ps[s] = times.sums_ps[s] + (LhTime)more * times.first_ps[s];
    lh_live_walk(&live, program, rank);
    sums->peak_bytes = live.peak_bytes;
}

/* Of the case's program if it had so many layers. */
static bool
sum_layers(const LhPlanCase *of, uint64_t layers, Sums *sums, uint64_t *limit_bytes, GError **error)
{
    LhPlanCase c = *of;
    LhStepParams *p = &c.step.params;
    const uint32_t few = MIN(p->micro_batches, FEW_MICRO_BATCHES);
    const uint32_t more = p->micro_batches - few;
    g_autoptr(LhProgram) program = NULL;

    c.setup.step = &c.step;
    c.step.model.num_layers = layers;
    p->micro_batches = few;
    program = lh_plan_case_program(&c, error);
    if (program == NULL)
        return false;
    *limit_bytes = lh_setup_memory_limit_bytes(&c.setup, program);
    sum_rank(&c, program, more, sums);
    return true;
}

/* All of a kind, and dense or with experts alike. */
static bool
has_equal_layers(const LhModel *m)
{
    return (m->layers == NULL || m->layers->len <= 1) &&
           (m->num_experts == 0 || m->weights.dense_layers == 0);
}

bool
lh_plan_estimate_quick(const LhPlanCase *c, LhPlanEstimate *estimate, GError **error)
{
    const uint64_t layers = c->step.model.num_layers;
    const bool few = has_equal_layers(&c->step.model) && layers > FEW_LAYERS + 1;
    const LhTime more = few ? (LhTime)(layers - FEW_LAYERS) : 0;
    LhTime time_ps = 0;
    Sums sums, next;

    *estimate = (LhPlanEstimate){ 0 };
    if (!sum_layers(c, few ? FEW_LAYERS : layers, &sums, &estimate->limit_bytes, error))
        return false;
    next = sums;
    if (few && !sum_layers(c, FEW_LAYERS + 1, &next, &estimate->limit_bytes, error))
        return false;
    for (int s = 0; s < LH_LEAST_SUMS; s++)
        time_ps = MAX(time_ps, sums.sums_ps[s] + more * (next.sums_ps[s] - sums.sums_ps[s]));
    estimate->time_ps = time_ps + lh_step_overhead_ps(&c->setup);
    estimate->peak_bytes = sums.peak_bytes + (uint64_t)more * (next.peak_bytes - sums.peak_bytes);
    return true;
}

/* ---- close ---- */

void
lh_plan_estimate_memory(const LhPlanCase *c, const LhProgram *program, LhPlanEstimate *estimate)
{
    const LhStepParams *p = &c->step.params;

    estimate->limit_bytes = lh_setup_memory_limit_bytes(&c->setup, program);
    for (uint32_t context = 0; context < p->module.ranks; context++) {
        LhLive live;

        lh_live_walk(&live, program, context * p->tensor_parallel);
        if (live.peak_bytes <= estimate->peak_bytes && context > 0)
            continue;
        estimate->peak_bytes = live.peak_bytes;
        memcpy(estimate->by_category, live.peak_by_category, sizeof(estimate->by_category));
    }
}

/* Follows the chains of a few ranks, until one takes @enough_ps. */
static LhTime
longest_chain(const LhPlanCase *c, const LhProgram *program, LhTime enough_ps)
{
    const LhStepParams *p = &c->step.params;
    const uint32_t ranks = MIN(p->module.ranks, WATCHED_RANKS);
    const LhSimParams params = sim_params(&c->setup, program);
    g_autoptr(LhLeast) least = lh_least_new(&params);
    LhTime time_ps = 0;

    for (uint32_t i = ranks; i-- > 0 && time_ps < enough_ps;) {
        const LhLeastTimes times = lh_least_of(least, group_rank(p, i, ranks), true);

        time_ps = MAX(time_ps, times.path_ps);
        for (int s = 0; s < LH_LEAST_SUMS; s++)
            time_ps = MAX(time_ps, times.sums_ps[s]);
    }
    return time_ps;
}

bool
lh_plan_estimate_close(const LhPlanCase *c, const LhProgram *program, LhTime enough_ps,
                       LhPlanEstimate *estimate)
{
    const LhTime overhead_ps = lh_step_overhead_ps(&c->setup);

    *estimate = (LhPlanEstimate){ 0 };
    estimate->time_ps = longest_chain(c, program, enough_ps - overhead_ps) + overhead_ps;
    if (estimate->time_ps >= enough_ps)
        return false;
    lh_plan_estimate_memory(c, program, estimate);
    return true;
}
