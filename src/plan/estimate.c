/*
 * See the header. Ranks that differ in tensor- or data-parallel rank alone have the same program
 * but for whom they talk to, and the first of them has as much to do as any: those of one
 * context-parallel group stand for all, in a pipeline those of one group of each stage.
 */
#include "plan/estimate.h"

#include "plan/step_plan.h"
#include "sim/least.h"
#include "step/formulas.h"

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

/* The rank at place @index of @count, spread over the first context-parallel group of the first
 * stage. */
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
    LhLeastTimes few;                   /* of the few micro-batches alone */
    uint64_t states_bytes, saved_bytes; /* there before the first op; the most that is saved */
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
    sums->few = times;
    lh_live_init(&live, program, rank);
    sums->states_bytes = live.bytes;
    lh_live_walk(&live, program, rank);
    sums->peak_bytes = live.peak_bytes;
    sums->saved_bytes = live.most_saved;
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

/* Without a pipeline. */
static bool
estimate_stage(const LhPlanCase *c, LhPlanEstimate *estimate, GError **error)
{
    const uint64_t layers = c->step.model.num_layers;
    const bool few = has_equal_layers(&c->step.model) && layers > FEW_LAYERS + 1;
    const LhTime more = few ? (LhTime)(layers - FEW_LAYERS) : 0;
    LhTime time_ps = 0;
    Sums sums, next;

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

/* ---- quick: pipelines ---- */

/* What each layer of a stage adds for each micro-batch. */
typedef struct {
    LhTime times_ps[LH_LEAST_SUMS], forward_ps, backward_ps;
    uint64_t states_bytes, saved_bytes; /* the states once */
} OfLayer;

static OfLayer
of_layer(const Sums *sums, const Sums *next)
{
    OfLayer of = { .forward_ps = next->few.forward_ps - sums->few.forward_ps,
                   .backward_ps = next->few.backward_ps - sums->few.backward_ps,
                   .states_bytes = next->states_bytes - sums->states_bytes,
                   .saved_bytes = next->saved_bytes - sums->saved_bytes };

    for (int s = 0; s < LH_LEAST_SUMS; s++)
        of.times_ps[s] = next->few.first_ps[s] - sums->few.first_ps[s];
    return of;
}

/*
 * The first micro-batch passes the first chunk of every stage before it is here, and after the last
 * gradient has left, so do the gradients, whose last products, those of weights, may come behind
 * what is sent on: a layer's are left out of each. Recomputation waits for no gradient.
 */
static LhTime
stage_time(const LhStepParams *p, const OfLayer *of, uint32_t stage)
{
    const LhTime work = (LhTime)p->micro_batches * lh_step_stage_layers(p, stage);
    LhTime time_ps = work * of->times_ps[0], longest_ps = 0;

    for (uint32_t before = 0; before < stage; before++) {
        const LhTime layers = lh_step_chunk_begins(p, before + 1) - lh_step_chunk_begins(p, before);

        time_ps += layers * of->forward_ps + (layers - 1) * of->backward_ps;
    }
    if (stage > 0)
        time_ps -= of->backward_ps;
    for (int s = 0; s < LH_LEAST_SUMS; s++)
        longest_ps = MAX(longest_ps, work * of->times_ps[s]);
    return MAX(time_ps, longest_ps);
}

/* States, and what is saved of the chunks that are in flight; each has at least so many layers as
 * the smallest. */
static uint64_t
stage_peak(const LhStepParams *p, const OfLayer *of, uint32_t stage)
{
    const uint32_t stages = lh_step_stages(p);
    uint64_t least = UINT64_MAX;

    for (uint32_t chunk = 0; chunk < lh_step_chunks(p); chunk++) {
        const uint32_t place = chunk * stages + stage;

        least = MIN(least, lh_step_chunk_begins(p, place + 1) - lh_step_chunk_begins(p, place));
    }
    return lh_step_stage_layers(p, stage) * of->states_bytes +
           lh_step_in_flight(p, stage) * least * of->saved_bytes;
}

/* The case as one stage that has all layers. */
static LhPlanCase
as_one_stage(const LhPlanCase *c)
{
    LhPlanCase one = *c;
    LhStepParams *p = &one.step.params;

    p->pipeline_parallel = p->chunks = 1;
    p->pipeline_order = LH_PIPELINE_1F1B;
    p->embedding_counts = p->loss_counts = false;
    p->micro_batches = MIN(p->micro_batches, FEW_MICRO_BATCHES);
    return one;
}

/* Stages from what layers of a program without a pipeline add; of models whose layers differ, the
 * mean of all stages, which none of them is above. */
static bool
estimate_pipeline(const LhPlanCase *c, LhPlanEstimate *estimate, GError **error)
{
    const LhPlanCase one = as_one_stage(c);
    const bool equal = has_equal_layers(&c->step.model);
    LhStepParams p = c->step.params;
    const uint32_t stages = lh_step_stages(&p);
    Sums sums, next;
    OfLayer of;

    p.model = &c->step.model;
    if (!lh_plan_case_check(c, error) ||
        !sum_layers(&one, equal ? FEW_LAYERS : p.model->num_layers, &sums, &estimate->limit_bytes,
                    error) ||
        (equal && !sum_layers(&one, FEW_LAYERS + 1, &next, &estimate->limit_bytes, error)))
        return false;
    if (equal) {
        of = of_layer(&sums, &next);
        for (uint32_t stage = 0; stage < stages; stage++) {
            estimate->time_ps = MAX(estimate->time_ps, stage_time(&p, &of, stage));
            estimate->peak_bytes = MAX(estimate->peak_bytes, stage_peak(&p, &of, stage));
        }
    } else {
        for (int s = 0; s < LH_LEAST_SUMS; s++)
            estimate->time_ps =
                MAX(estimate->time_ps, (LhTime)p.micro_batches * sums.few.first_ps[s] / stages);
        estimate->peak_bytes = sums.states_bytes / stages;
    }
    estimate->time_ps += lh_step_overhead_ps(&c->setup);
    return true;
}

bool
lh_plan_estimate_quick(const LhPlanCase *c, LhPlanEstimate *estimate, GError **error)
{
    *estimate = (LhPlanEstimate){ 0 };
    return lh_step_stages(&c->step.params) > 1 ? estimate_pipeline(c, estimate, error)
                                               : estimate_stage(c, estimate, error);
}

/* ---- close ---- */

void
lh_plan_estimate_memory(const LhPlanCase *c, const LhProgram *program, LhPlanEstimate *estimate)
{
    const LhStepParams *p = &c->step.params;
    const uint32_t stage_ranks = (uint32_t)lh_step_stage_ranks(p);
    const uint32_t ranks = lh_step_stages(p) * p->module.ranks;

    estimate->limit_bytes = lh_setup_memory_limit_bytes(&c->setup, program);
    for (uint32_t i = 0; i < ranks; i++) {
        LhLive live;

        lh_live_walk(&live, program,
                     i / p->module.ranks * stage_ranks + i % p->module.ranks * p->tensor_parallel);
        if (live.peak_bytes <= estimate->peak_bytes && i > 0)
            continue;
        estimate->peak_bytes = live.peak_bytes;
        memcpy(estimate->by_category, live.peak_by_category, sizeof(estimate->by_category));
    }
}

/* The chains of @rank of the first stage and of the ranks at its place in the others. */
static LhLeastTimes
follow(LhLeast *least, const LhStepParams *p, uint32_t rank)
{
    const uint32_t stages = lh_step_stages(p);
    g_autofree uint32_t *ranks = g_new(uint32_t, stages);

    if (stages == 1)
        return lh_least_of(least, rank, true);
    for (uint32_t stage = 0; stage < stages; stage++)
        ranks[stage] = stage * (uint32_t)lh_step_stage_ranks(p) + rank;
    return lh_least_of_all(least, ranks, stages);
}

/* Follows the chains of a few ranks of every stage, until one takes @enough_ps. */
static LhTime
longest_chain(const LhPlanCase *c, const LhProgram *program, LhTime enough_ps)
{
    const LhStepParams *p = &c->step.params;
    const uint32_t ranks = MIN(p->module.ranks, WATCHED_RANKS);
    const LhSimParams params = sim_params(&c->setup, program);
    g_autoptr(LhLeast) least = lh_least_new(&params);
    LhTime time_ps = 0;

    for (uint32_t i = ranks; i-- > 0 && time_ps < enough_ps;) {
        const LhLeastTimes times = follow(least, p, group_rank(p, i, ranks));

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
