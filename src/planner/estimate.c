/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Representatives: ranks that differ only in tensor- or data-parallel rank run the same program
 * with other peers, and the first of them has at least as much work as any. So one context-parallel
 * group represents all; in a pipeline, one group per stage.
 */
#include "planner/estimate.h"

#include "compare/step_plan.h"
#include "scenario/setup_simulate.h"
#include "sim/lower_bound/lower_bound.h"
#include "step/formulas.h"
#include "step/memory/peak_memory.h"
#include "step/pipeline/pipeline_exchanges.h"

/* Layers of the quick estimate: enough that prefetches and reductions of a layer lie within
 * them. */
#define FEW_LAYERS 3
#define FEW_MICRO_BATCHES 2
#define WATCHED_RANKS 4 /* most ranks whose chains are followed */

uint64_t
lh_plan_limit_bytes(const LhSetup *setup)
{
    return setup->cost == LH_COST_DEVICE
               ? MAX(lh_device_usable_bytes(setup->device, LH_MEMORY_MARGIN), 1)
               : 0;
}

/* ---- quick estimate ---- */

/* Sums that a pipeline stage has like a program without a pipeline, and attention like the rest:
 * stages may gather weights less often, and the order of streams other than the first is
 * unknown. */
static const int common_sums[] = { 0, LH_LEAST_HOST, LH_LEAST_SMS };

/* Sums of a program with few layers and micro-batches. */
typedef struct {
    LhTime sums_ps[LH_LEAST_SUMS];
    uint64_t peak_bytes;
    LhLowerBoundTimes few; /* of the few micro-batches only */
    /* Before the first op; peaks of saved activations, and of other gradients. */
    uint64_t states_bytes, saved_bytes, gradients_bytes;
} ProgramSums;

/* Adds the times of a pass of attention, times its number of calls. Unless calls overlap, the first
 * stream is busy from reaching a call to its end. */
static void
add_calls(LhLowerBoundTimes *few, const LhAttentionPart *attention, unsigned kind, unsigned pass,
          const LhAttentionCalls *calls)
{
    const LhTime passes_ps = attention->passes_ps[kind][pass];
    LhLowerBoundTimes times = attention->times[kind][pass];

    if (!calls->joined) {
        times.sums_ps[0] = times.first_ps[0] = passes_ps;
        times.forward_ps = pass == 0 ? passes_ps : 0;
        times.backward_ps = pass == 0 ? 0 : passes_ps;
    }
    for (size_t i = 0; i < G_N_ELEMENTS(common_sums); i++) {
        const int s = common_sums[i];

        few->sums_ps[s] += (LhTime)calls->all * times.sums_ps[s];
        few->first_ps[s] += (LhTime)calls->first * times.first_ps[s];
    }
    few->forward_ps += (LhTime)calls->timely * times.forward_ps;
    few->backward_ps += (LhTime)calls->timely * times.backward_ps;
}

/* Adds both parts; each of the @more remaining micro-batches repeats the first. */
static ProgramSums
sum_parts(const LhAttentionPart *attention, const LhAroundPart *around, uint32_t more)
{
    ProgramSums sums = { .peak_bytes = around->peak_bytes,
                         .few = around->times,
                         .states_bytes = around->states_bytes,
                         .saved_bytes = around->saved_bytes,
                         .gradients_bytes = around->gradients_bytes };

    for (unsigned kind = 0; kind < LH_STEP_KINDS; kind++) {
        for (unsigned pass = 0; pass < 2; pass++) {
            const LhAttentionCalls *calls = &around->calls[kind][pass];

            add_calls(&sums.few, attention, kind, pass, calls);
            if (calls->all > 0)
                sums.peak_bytes =
                    MAX(sums.peak_bytes, calls->held_bytes + attention->peak_bytes[kind][pass]);
        }
    }
    for (int s = 0; s < LH_LEAST_SUMS; s++)
        sums.sums_ps[s] = sums.few.sums_ps[s] + (LhTime)more * sums.few.first_ps[s];
    return sums;
}

/* Whether all layers have the same kind of attention, all are dense or all have experts, and all
 * are recomputed in the same way. */
static bool
has_equal_layers(const LhSetupStep *step)
{
    const LhModel *m = &step->model;

    return (m->layers == NULL || m->layers->len <= 1) &&
           (m->num_experts == 0 || lh_model_dense(m) == 0) && step->params.recompute.layers == 0;
}

/* Estimates a step without a pipeline. @next: sums with one more layer, for extrapolation; NULL:
 * @sums are of all layers. */
static void
estimate_stage(const LhPlanCase *c, const ProgramSums *sums, const ProgramSums *next,
               LhPlanEstimate *estimate)
{
    const LhTime more = next == NULL ? 0 : (LhTime)(c->step.model.num_layers - FEW_LAYERS);

    for (int s = 0; s < LH_LEAST_SUMS; s++)
        estimate->time_ps = MAX(
            estimate->time_ps,
            sums->sums_ps[s] + (next == NULL ? 0 : more * (next->sums_ps[s] - sums->sums_ps[s])));
    estimate->peak_bytes = sums->peak_bytes;
    estimate->states_bytes = sums->states_bytes;
    if (next != NULL) {
        estimate->peak_bytes += (uint64_t)more * (next->peak_bytes - sums->peak_bytes);
        estimate->states_bytes += (uint64_t)more * (next->states_bytes - sums->states_bytes);
    }
}

/* ---- quick estimate: pipelines ---- */

/* Times and memory that a layer of a stage adds per micro-batch. */
typedef struct {
    LhTime times_ps[LH_LEAST_SUMS], forward_ps, backward_ps, accumulate_ps;
    uint64_t states_bytes, saved_bytes, gradients_bytes; /* states: once, not per micro-batch */
} OfLayer;

/* Whether weights are gathered for each pass of a layer and gradients are reduced per layer, as
 * without a pipeline. */
static bool
moves_alike(const LhStepParams *p)
{
    return p->behaviour.reshard && !p->behaviour.unit_is_model;
}

static OfLayer
of_layer(const LhStepParams *p, const ProgramSums *sums, const ProgramSums *next)
{
    OfLayer of = { .forward_ps = next->few.forward_ps - sums->few.forward_ps,
                   .backward_ps = next->few.backward_ps - sums->few.backward_ps,
                   .accumulate_ps = next->few.accumulate_ps - sums->few.accumulate_ps,
                   .states_bytes = next->states_bytes - sums->states_bytes,
                   .saved_bytes = next->saved_bytes - sums->saved_bytes,
                   .gradients_bytes = next->gradients_bytes - sums->gradients_bytes };

    for (size_t i = 0; i < G_N_ELEMENTS(common_sums); i++)
        of.times_ps[common_sums[i]] =
            next->few.first_ps[common_sums[i]] - sums->few.first_ps[common_sums[i]];
    for (int s = LH_STEP_STREAM_GATHER; s <= LH_STEP_STREAM_SCATTER && moves_alike(p); s++)
        of.times_ps[s] = next->few.first_ps[s] - sums->few.first_ps[s];
    return of;
}

static LhStepLayerTimes
layer_times(const OfLayer *of)
{
    return (LhStepLayerTimes){ .forward_ps = of->forward_ps,
                               .recompute_ps = of->times_ps[0] - of->forward_ps - of->backward_ps,
                               .backward_ps = of->backward_ps,
                               .accumulate_ps = of->accumulate_ps };
}

/* Lower bound of a pipeline: the order of the first stream; only sums for the other streams. */
static LhTime
stages_time(const LhStepParams *p, const OfLayer *of)
{
    const LhStepLayerTimes times = layer_times(of);
    LhTime time_ps = lh_step_pipeline_least(p, &times);
    uint32_t layers = 0;

    for (uint32_t stage = 0; stage < lh_step_stages(p); stage++)
        layers = MAX(layers, lh_step_stage_layers(p, stage));
    for (int s = 0; s < LH_LEAST_SUMS; s++)
        time_ps = MAX(time_ps, (LhTime)p->micro_batches * layers * of->times_ps[s]);
    return time_ps;
}

/* Peak memory of a stage: its states, and the saved activations of chunks in flight, each with at
 * least the layers of the smallest chunk. At the end of the backward pass of one of them, its
 * gradients have taken the place of its activations. */
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
           least * ((lh_step_in_flight(p, stage) - 1) * of->saved_bytes +
                    MAX(of->saved_bytes, of->gradients_bytes));
}

/* Estimates a pipeline from what a layer adds in a program without one. For models whose layers
 * differ: the mean over all stages, which the slowest stage cannot be below. */
static void
estimate_pipeline(const LhPlanCase *c, const ProgramSums *sums, const ProgramSums *next,
                  LhPlanEstimate *estimate)
{
    LhStepParams p = c->step.params;
    const uint32_t stages = lh_step_stages(&p);
    OfLayer of;

    p.model = &c->step.model;
    if (next == NULL) {
        for (size_t i = 0; i < G_N_ELEMENTS(common_sums); i++)
            estimate->time_ps =
                MAX(estimate->time_ps,
                    (LhTime)p.micro_batches * sums->few.first_ps[common_sums[i]] / stages);
        estimate->peak_bytes = estimate->states_bytes = sums->states_bytes / stages;
        return;
    }
    of = of_layer(&p, sums, next);
    estimate->time_ps = MAX(estimate->time_ps, stages_time(&p, &of));
    for (uint32_t stage = 0; stage < stages; stage++) {
        estimate->peak_bytes = MAX(estimate->peak_bytes, stage_peak(&p, &of, stage));
        estimate->states_bytes =
            MAX(estimate->states_bytes, lh_step_stage_layers(&p, stage) * of.states_bytes);
    }
}

/* ---- quick estimate: from parts ---- */

/* The case with all layers in one stage, and few micro-batches. */
static LhPlanCase
as_one_stage(const LhPlanCase *c)
{
    LhPlanCase one = *c;
    LhStepParams *p = &one.step.params;

    if (p->behaviour.unit_is_model && lh_step_chunks(p) > 1) /* never reduced at the same time */
        p->behaviour.reduce_each = false;
    if (lh_step_stages(p) > 1 && p->recompute.layers > 0) { /* layers are chosen in each chunk */
        p->recompute.layers = 0;
        if (p->recompute.method != LH_RECOMPUTE_UNIFORM)
            p->checkpoint = LH_CHECKPOINT_NONE;
    }
    p->pipeline_parallel = p->chunks = 1;
    p->pipeline_order = LH_PIPELINE_1F1B;
    p->embedding_counts = p->loss_counts = false;
    p->micro_batches = MIN(p->micro_batches, FEW_MICRO_BATCHES);
    return one;
}

bool
lh_plan_attention(const LhPlanCase *c, bool communication, LhAttentionPart *part, GError **error)
{
    const LhPlanCase one = as_one_stage(c);

    return lh_attention_part(&one, communication, part, error);
}

/* Estimates the rest of a case with @layers layers. Offload takes no part in time: it only adds
 * copies. The memory is that of offloading all layers, whatever their number. */
static bool
estimate_around(const LhPlanCase *c, uint64_t layers, const LhStepAttention *hollow,
                bool communication, LhAroundPart *part, GError **error)
{
    LhPlanCase without = *c, all = *c;
    LhAroundPart memory;

    without.step.params.offload_layers = 0;
    if (!lh_around_part(&without, layers, hollow, communication, part, error))
        return false;
    if (c->step.params.offload_layers == 0)
        return true;
    all.step.params.offload_layers = LH_STEP_OFFLOAD_ALL;
    if (!lh_around_part(&all, layers, hollow, false, &memory, error))
        return false;
    part->peak_bytes = memory.peak_bytes;
    part->states_bytes = memory.states_bytes;
    part->saved_bytes = memory.saved_bytes;
    part->gradients_bytes = memory.gradients_bytes;
    for (unsigned kind = 0; kind < LH_STEP_KINDS; kind++) {
        for (unsigned pass = 0; pass < 2; pass++)
            part->calls[kind][pass].held_bytes = memory.calls[kind][pass].held_bytes;
    }
    return true;
}

bool
lh_plan_around(const LhPlanCase *c, const LhStepAttention *hollow, bool communication,
               LhPlanAround *around, GError **error)
{
    const LhPlanCase one = as_one_stage(c);
    const uint64_t layers = c->step.model.num_layers;
    const bool pipeline = lh_step_stages(&c->step.params) > 1;

    around->continued = has_equal_layers(&c->step) && (pipeline || layers > FEW_LAYERS + 1);
    return estimate_around(&one, around->continued ? FEW_LAYERS : layers, hollow, communication,
                           &around->few, error) &&
           (!around->continued ||
            estimate_around(&one, FEW_LAYERS + 1, hollow, communication, &around->next, error));
}

LhPlanEstimate
lh_plan_estimate_parts(const LhPlanCase *c, const LhAttentionPart *attention,
                       const LhPlanAround *around)
{
    const LhStepParams *p = &c->step.params;
    const uint32_t more = p->micro_batches - MIN(p->micro_batches, FEW_MICRO_BATCHES);
    const ProgramSums few = sum_parts(attention, &around->few, more);
    LhPlanEstimate estimate = { .limit_bytes = lh_plan_limit_bytes(&c->setup) };
    ProgramSums next;

    if (around->continued)
        next = sum_parts(attention, &around->next, more);
    (lh_step_stages(p) > 1 ? estimate_pipeline
                           : estimate_stage)(c, &few, around->continued ? &next : NULL, &estimate);
    estimate.time_ps += lh_step_overhead_ps(&c->setup);
    return estimate;
}

/* ---- estimate with exchanges ---- */

/* Lower bounds of the messages from each stage to the next one, or to the previous one, along the
 * ranks that represent their stages. Caller frees. */
static LhTime *
messages_from_stages(const LhPlanCase *c, const LhStepParams *p, bool backward)
{
    const LhAttention *a = &p->module.attention;
    const uint32_t stages = lh_step_stages(p), of_stage = (uint32_t)lh_step_stage_ranks(p);
    const uint64_t rows = (uint64_t)a->batch * (a->seq_length / p->module.ranks);
    LhPart part = { .send = true,
                    .wire_bytes = rows / p->tensor_parallel * p->model->hidden_size *
                                  lh_dtype_bytes(a->dtype) };
    LhTime *times_ps = g_new0(LhTime, stages);
    LhLowerBoundCalls *calls;

    if (c->setup.cost != LH_COST_DEVICE) /* messages take no time */
        return times_ps;
    calls = lh_bound_cache_take(c->calls);
    for (uint32_t stage = 0; stage < stages; stage++) {
        const uint32_t to = (stage + (backward ? stages - 1 : 1)) % stages;

        part.peer = to * of_stage + lh_plan_group_rank(p, 1, 2);
        times_ps[stage] = lh_lower_bound_calls_exchange(
            calls, stage * of_stage + lh_plan_group_rank(p, 1, 2), &part, 1);
    }
    lh_bound_cache_give_back(c->calls, calls);
    return times_ps;
}

LhTime
lh_plan_estimate_exchanges(const LhPlanCase *c, const LhAttentionPart *attention,
                           const LhPlanAround *around)
{
    LhStepParams p = c->step.params;
    g_autofree LhTime *forward_ps = NULL, *backward_ps = NULL;
    ProgramSums few, next;
    LhStepStageTimes ends;
    LhStepLayerTimes times;
    OfLayer of;

    if (lh_step_stages(&p) == 1 || !around->continued)
        return 0;
    p.model = &c->step.model;
    few = sum_parts(attention, &around->few, 0);
    next = sum_parts(attention, &around->next, 0);
    of = of_layer(&p, &few, &next);
    times = layer_times(&of);
    forward_ps = messages_from_stages(c, &p, false);
    backward_ps = messages_from_stages(c, &p, true);
    ends = (LhStepStageTimes){ .head_ps = around->few.times.watched_ps,
                               .message_ps = { forward_ps, backward_ps } };
    return lh_step_pipeline_exchanged(&p, &times, &ends) + lh_step_overhead_ps(&c->setup);
}

static bool
estimate_alone(const LhPlanCase *c, bool communication, LhPlanEstimate *found, GError **error)
{
    LhAttentionPart attention = { 0 };
    LhPlanAround around;
    bool estimated;

    *found = (LhPlanEstimate){ 0 };
    estimated = lh_plan_case_check(c, error) &&
                lh_plan_attention(c, communication, &attention, error) &&
                lh_plan_around(c, &attention.hollow, communication, &around, error);
    if (estimated)
        *found = lh_plan_estimate_parts(c, &attention, &around);
    lh_attention_part_clear(&attention);
    return estimated;
}

bool
lh_plan_estimate_quick(const LhPlanCase *c, LhPlanEstimate *quick, GError **error)
{
    return estimate_alone(c, false, quick, error);
}

LhTime
lh_plan_estimate_messages(const LhPlanCase *c)
{
    LhPlanEstimate with;

    return estimate_alone(c, true, &with, NULL) ? with.time_ps : 0;
}

LhTime
lh_plan_estimate_refined(const LhPlanCase *c)
{
    LhAttentionPart attention = { 0 };
    LhPlanAround around;
    LhTime time_ps = 0;

    if (lh_plan_case_check(c, NULL) && lh_plan_attention(c, true, &attention, NULL) &&
        lh_plan_around(c, &attention.hollow, true, &around, NULL))
        time_ps = lh_plan_estimate_exchanges(c, &attention, &around);
    lh_attention_part_clear(&attention);
    return time_ps;
}

/* ---- close estimate ---- */

void
lh_plan_estimate_memory(const LhPlanCase *c, const LhProgram *program, LhPlanEstimate *estimate)
{
    estimate->limit_bytes = lh_plan_limit_bytes(&c->setup);
    estimate->peak_bytes = lh_step_peak(program, estimate->by_category);
}

/* Follows the chains of @rank of the first stage and of the same rank of the other stages. */
static LhLowerBoundTimes
follow(LhLowerBound *least, const LhStepParams *p, uint32_t rank)
{
    const uint32_t stages = lh_step_stages(p);
    g_autofree uint32_t *ranks = g_new(uint32_t, stages);

    if (stages == 1)
        return lh_lower_bound_of(least, rank, true);
    for (uint32_t stage = 0; stage < stages; stage++)
        ranks[stage] = stage * (uint32_t)lh_step_stage_ranks(p) + rank;
    return lh_lower_bound_of_all(least, ranks, stages);
}

LhTime
lh_plan_estimate_chain(const LhPlanCase *c, const LhProgram *program, LhTime enough_ps)
{
    const LhTime overhead_ps = lh_step_overhead_ps(&c->setup);
    const LhStepParams *p = &c->step.params;
    const uint32_t ranks = MIN(p->module.ranks, WATCHED_RANKS);
    const LhSimParams params = lh_setup_sim_params(&c->setup, program);
    LhLowerBoundCalls *calls = lh_bound_cache_take(c->calls);
    g_autoptr(LhLowerBound) least = lh_lower_bound_new(&params, calls);
    LhTime time_ps = 0;

    for (uint32_t i = ranks; i-- > 0 && time_ps < enough_ps - overhead_ps;) {
        const LhLowerBoundTimes times = follow(least, p, lh_plan_group_rank(p, i, ranks));

        time_ps = MAX(time_ps, times.path_ps);
        for (int s = 0; s < LH_LEAST_SUMS; s++)
            time_ps = MAX(time_ps, times.sums_ps[s]);
    }
    lh_bound_cache_give_back(c->calls, calls);
    return time_ps + overhead_ps;
}

bool
lh_plan_estimate_close(const LhPlanCase *c, const LhProgram *program, LhTime enough_ps,
                       LhPlanEstimate *estimate)
{
    *estimate = (LhPlanEstimate){ 0 };
    lh_plan_estimate_memory(c, program, estimate);
    if (estimate->limit_bytes > 0 && estimate->peak_bytes > estimate->limit_bytes)
        return true;
    estimate->time_ps = lh_plan_estimate_chain(c, program, enough_ps);
    return estimate->time_ps < enough_ps;
}

static void
clear_tails(gpointer data)
{
    const LhRankTails *tails = data;

    g_array_unref(tails->tails_ps);
}

GArray *
lh_plan_estimate_tails(const LhPlanCase *c, const LhProgram *program)
{
    const LhStepParams *p = &c->step.params;
    const LhSimParams params = lh_setup_sim_params(&c->setup, program);
    LhLowerBoundCalls *calls = lh_bound_cache_take(c->calls);
    g_autoptr(LhLowerBound) least = lh_lower_bound_new(&params, calls);
    GArray *all = g_array_new(FALSE, FALSE, sizeof(LhRankTails));

    g_array_set_clear_func(all, clear_tails);
    for (uint32_t stage = 0; stage < lh_step_stages(p); stage++) {
        LhRankTails tails = { .rank = stage * (uint32_t)lh_step_stage_ranks(p) +
                                      lh_plan_group_rank(p, 1, 2) };

        tails.tails_ps = lh_lower_bound_tails(least, tails.rank);
        g_array_append_val(all, tails);
    }
    lh_bound_cache_give_back(c->calls, calls);
    return all;
}
