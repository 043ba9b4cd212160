/* SPDX-License-Identifier: Apache-2.0 */
#include "step/memory/host_state_forms.h"

#include "step/formulas.h"
#include "step/lora.h"
#include "step/muon/muon.h"
#include "step/step_private.h"

#define NORM_BYTES 4U

/* Weights of a stage, in order: of the layers, then the others; and the parameters before each. */
typedef struct {
    const LhStepPlan *plan;
    LhStepPlace place;
    double all, before; /* trained parameters of the stage; of the weights before this one */
    uint32_t layer;
    LhStepWeight weight;
} Walk;

static bool
exists(const Walk *w)
{
    return lh_step_matrix(w->plan, w->weight, w->layer).rows > 0 &&
           lh_step_stage_has(w->plan, w->place.stage, w->weight, w->layer);
}

static double
trained(const Walk *w)
{
    return exists(w) && lh_step_is_trained(&w->plan->params, w->weight)
               ? (double)lh_step_piece_elements(w->plan, w->weight, w->layer)
               : 0;
}

static bool
step_on(Walk *w)
{
    w->before += trained(w);
    w->weight++;
    if (w->weight == LH_STEP_W_LAYER && w->layer + 1 < w->plan->layers) {
        w->weight = (LhStepWeight)0;
        w->layer++;
    }
    if (w->weight >= LH_STEP_W_LAYER)
        w->layer = 0;
    return w->weight < LH_STEP_WEIGHTS;
}

/* Whether the CPU updates the weight: the weights before it are less than the fraction. */
static bool
is_updated_on_cpu(const Walk *w)
{
    return trained(w) > 0 && w->before < w->plan->params.optimizer_offload * w->all;
}

static Walk
begin(const LhStepPlan *plan, uint32_t rank)
{
    Walk w = { .plan = plan, .place = lh_step_place_of(plan, rank) };

    do
        w.all += trained(&w);
    while (step_on(&w));
    return (Walk){ .plan = plan, .place = w.place, .all = w.all };
}

/* ---- states ---- */

/* Bytes of the fp32 copy, if there is one, and of both moments; Muon has one. */
static uint64_t
optimizer_bytes(const Walk *w, uint64_t piece)
{
    const LhStepParams *p = &w->plan->params;
    const bool fp32 = p->module.attention.dtype == LH_DTYPE_FP32;
    const uint64_t master = fp32 || p->behaviour.no_master ? 0 : 4 * piece;
    const uint64_t moments = lh_muon_has(p, w->weight) ? 1 : 2;

    switch (p->behaviour.moments) {
    case LH_MOMENTS_8BIT:
        return master + moments * (piece + 4 * ((piece + 255) / 256));
    case LH_MOMENTS_16BIT:
        return master + moments * piece * lh_dtype_bytes(p->module.attention.dtype);
    default:
        return master + moments * 4 * piece;
    }
}

/* Without an fp32 copy the CPU updates the weight itself. */
static bool
keeps_weight(const Walk *w)
{
    const bool direct = w->plan->params.module.attention.dtype == LH_DTYPE_FP32 ||
                        w->plan->params.behaviour.no_master;

    return w->plan->params.offload_param || (direct && is_updated_on_cpu(w));
}

LhStepHostStates
lh_step_host_states(const LhProgram *program, uint32_t rank)
{
    const LhStepPlan *plan = program->step;
    LhStepHostStates states = { 0 };
    Walk w = begin(plan, rank);

    do {
        const uint64_t piece = exists(&w) ? lh_step_piece_elements(plan, w.weight, w.layer) : 0;

        if (keeps_weight(&w))
            states.weights += piece * lh_dtype_bytes(plan->params.module.attention.dtype);
        if (is_updated_on_cpu(&w))
            states.optimizer += optimizer_bytes(&w, piece);
        else if (trained(&w) > 0)
            states.device_optimizer += optimizer_bytes(&w, piece);
    } while (step_on(&w));
    return states;
}

/* ---- copies ---- */

/* Whether the rank's piece of the weight has elements; else it is not updated. */
static bool
has_piece(const Walk *w)
{
    const LhStepMatrix matrix = lh_step_matrix(w->plan, w->weight, w->layer);
    const uint64_t pieces = w->plan->params.shard == LH_SHARD_DDP ? 1 : w->plan->data_ranks;
    const uint64_t piece = (matrix.rows * matrix.columns + pieces - 1) / pieces;

    return pieces == 1 || w->place.data * piece < matrix.rows * matrix.columns;
}

/* A tied matrix's gradient is summed over two stages first. */
static bool
leaves_early(const Walk *w)
{
    return w->plan->params.gradients_leave && is_updated_on_cpu(w) &&
           !lh_step_is_shared(w->plan, w->weight);
}

/* Times that gradients which leave early do so: those of each micro-batch, or their sum. A model of
 * one unit in chunks has no end of a micro-batch. */
static uint64_t
times(const LhStepPlan *plan)
{
    const LhStepBehaviour *b = &plan->params.behaviour;

    return b->reduce_each && !(b->unit_is_model && lh_step_chunks(&plan->params) > 1)
               ? plan->params.micro_batches
               : 1;
}

/* Squares of gradients on one side are added up before those on the other: the side of the weight
 * that is first. The last side's sum is copied to the device, and what has been summed over ranks
 * to the host. */
static void
add_norm_copies(const LhStepPlan *plan, uint32_t rank, uint64_t *to_host, uint64_t *from_host)
{
    const LhStepParams *p = &plan->params;
    const uint64_t bytes = lh_step_ranks(p) * NORM_BYTES;
    const bool summed = p->shard != LH_SHARD_DDP || lh_step_stages(p) > 1 || p->tensor_parallel > 1;
    bool early = false, late = false, first = false, last;
    Walk w = begin(plan, rank);

    do {
        const bool all = lh_step_is_trained(p, LH_STEP_W_EMBED);
        const LhStepWeight of =
            all ? w.place.stage == 0 ? LH_STEP_W_EMBED : LH_STEP_W_Q : lh_step_cut_adapter(p);

        if (trained(&w) <= 0 || (w.weight == LH_STEP_W_EMBED && w.place.stage > 0))
            continue;
        early |= leaves_early(&w);
        late |= !leaves_early(&w);
        if (w.weight == of &&
            (of >= LH_STEP_W_LAYER || w.layer == lh_step_chunk_begins(p, w.place.stage)))
            first = leaves_early(&w);
    } while (step_on(&w));
    last = early && late ? !first : first;
    if (early && late)
        *(last ? to_host : from_host) += bytes;
    if (last)
        *from_host += bytes;
    if (summed || !last)
        *to_host += bytes;
}

void
lh_step_host_state_copies(const LhProgram *program, uint32_t rank, uint64_t *to_host,
                          uint64_t *from_host)
{
    const LhStepPlan *plan = program->step;
    const uint64_t gradient = plan->params.behaviour.gradients_fp32
                                  ? 4
                                  : lh_dtype_bytes(plan->params.module.attention.dtype);
    const uint64_t weight = lh_dtype_bytes(plan->params.module.attention.dtype);
    Walk w = begin(plan, rank);

    *to_host = *from_host = 0;
    do {
        const uint64_t piece = exists(&w) ? lh_step_piece_elements(plan, w.weight, w.layer) : 0;

        if (plan->params.offload_param)
            *from_host += piece * weight * lh_step_gathers(plan, w.weight, w.layer);
        if (!is_updated_on_cpu(&w))
            continue;
        *to_host += piece * gradient * (leaves_early(&w) ? times(plan) : 1);
        if (!plan->params.offload_param && has_piece(&w))
            *from_host += piece * weight;
    } while (step_on(&w));
    if (plan->params.optimizer_offload > 0 && plan->params.behaviour.clip > 0)
        add_norm_copies(plan, rank, to_host, from_host);
}
