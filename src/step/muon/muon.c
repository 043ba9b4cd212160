/* SPDX-License-Identifier: Apache-2.0 */
#include "step/muon/muon.h"

#include "step/memory/liveness.h"
#include "step/step_private.h"

#include <inttypes.h>
#include <math.h>

/* ---- which weights ---- */

bool
lh_muon_has(const LhStepParams *params, LhStepWeight weight)
{
    if (params->muon.optimizer != LH_OPTIMIZER_MUON || params->forward_only)
        return false;
    switch (weight) {
    case LH_STEP_W_Q:
    case LH_STEP_W_KV:
    case LH_STEP_W_GATE:
    case LH_STEP_W_OUT:
    case LH_STEP_W_UP:
    case LH_STEP_W_DOWN:
    case LH_STEP_W_ROUTER:
    case LH_STEP_W_EXPERT_UP:
    case LH_STEP_W_EXPERT_DOWN:
        return true;
    default:
        return false;
    }
}

bool
lh_muon_check(const LhStepParams *p, GError **error)
{
    const LhMuonParams *m = &p->muon;

    if (m->optimizer != LH_OPTIMIZER_MUON)
        return true;
    if (p->lora_rank > 0)
        return lh_program_refuse(error,
                                 "Muon orthogonalises updates of whole matrices, of which LoRA "
                                 "trains none; adapters are trained by --optimizer adam");
    if (p->optimizer_offload > 0)
        return lh_program_refuse(error,
                                 "the optimizer on the CPU is AdamW: --optimizer-cpu-offload "
                                 "with --optimizer adam only");
    if (p->module.attention.dtype == LH_DTYPE_FP16)
        return lh_program_refuse(error, "Muon's products have numbers below the range of fp16; "
                                        "allowed element types: bf16, fp32");
    if (p->behaviour.moments == LH_MOMENTS_8BIT)
        return lh_program_refuse(error, "Muon's momentum has no 8-bit form; allowed types of "
                                        "moments: fp32, that of the activations");
    if (m->steps == 0 || m->steps > LH_MUON_STEPS_MAX)
        return lh_program_refuse(error, "found %u Newton-Schulz steps; allowed: 1 to %u", m->steps,
                                 LH_MUON_STEPS_MAX);
    return true;
}

bool
lh_muon_check_pieces(const LhStepPlan *plan, GError **error)
{
    const uint64_t pieces = lh_step_pieces(plan);

    for (uint32_t i = 0; i < plan->layers * LH_STEP_W_LAYER; i++) {
        const LhStepWeight weight = (LhStepWeight)(i % LH_STEP_W_LAYER);
        const LhStepMatrix matrix = lh_step_matrix(plan, weight, i / LH_STEP_W_LAYER);
        const uint64_t elements = matrix.rows * matrix.columns;

        if (!lh_muon_has(&plan->params, weight) || elements == 0 ||
            (elements + (elements + pieces - 1) / pieces - 1) /
                    ((elements + pieces - 1) / pieces) ==
                pieces)
            continue;
        return lh_program_refuse(
            error,
            "Muon cuts every matrix among the ranks that share states; %s of "
            "layer %u has %" PRIu64 " elements, which leave some of %" PRIu64 " ranks without any",
            lh_step_weight_name(weight), i / LH_STEP_W_LAYER, elements, pieces);
    }
    return true;
}

/* ---- matrices ---- */

static bool
is_cut_by_rows(LhStepWeight weight)
{
    return weight == LH_STEP_W_OUT || weight == LH_STEP_W_DOWN || weight == LH_STEP_W_EXPERT_DOWN;
}

/* Matrices side by side: k and v, gate and up. */
static uint32_t
halves_of(const LhStepPlan *plan, LhStepWeight weight)
{
    const bool up = weight == LH_STEP_W_UP || weight == LH_STEP_W_EXPERT_UP;

    return weight == LH_STEP_W_KV || (up && plan->model.gated_mlp) ? 2 : 1;
}

bool
lh_muon_gathers(const LhStepPlan *plan, LhStepWeight weight, uint32_t layer)
{
    return plan->params.muon.tp_mode == LH_MUON_DUPLICATED &&
           lh_step_matrix(plan, weight, layer).replicas < plan->params.tensor_parallel;
}

/* x W: rows of W are features of the input. */
static double
scale_of(const LhMuonParams *muon, double in, double out)
{
    switch (muon->scale_mode) {
    case LH_MUON_UNIT_RMS_NORM:
        return sqrt(out / in) * muon->extra_scale;
    case LH_MUON_SHAPE_SCALING:
        return sqrt(fmax(1, out / in)) * muon->extra_scale;
    default:
        return sqrt(fmax(out, in)) * muon->extra_scale;
    }
}

LhKernelArgs
lh_muon_args(const LhStepPlan *plan, LhStepWeight weight, uint32_t layer)
{
    const LhStepMatrix matrix = lh_step_matrix(plan, weight, layer);
    const bool gathers = lh_muon_gathers(plan, weight, layer);
    const uint32_t t = plan->params.tensor_parallel, cuts = gathers ? t / matrix.replicas : 1;
    const bool by_rows = is_cut_by_rows(weight);
    LhKernelArgs args = { 0 };
    uint64_t of_each[2]; /* rows and columns of a matrix */

    args.muon.rows = matrix.rows * (by_rows ? cuts : 1);
    args.muon.width = matrix.columns * (by_rows ? 1 : cuts);
    args.muon.experts = MAX(matrix.experts, 1);
    args.muon.halves = halves_of(plan, weight);
    args.muon.slices = gathers ? t : 1;
    args.muon.replicas = gathers ? matrix.replicas : 1;
    args.muon.by_rows = by_rows;
    of_each[0] = args.muon.rows / args.muon.experts;
    of_each[1] = args.muon.width / args.muon.halves;
    args.muon.factor = scale_of(&plan->params.muon, (double)of_each[0], (double)of_each[1]);
    return args;
}

/* ---- coefficients ---- */

typedef struct {
    double a, b, c;
} Coefficients;

/* K. Jordan's (https://kellerjordan.github.io/posts/muon/); F. Cesista's, for five steps
 * (https://leloykun.github.io/ponder/muon-opt-coeffs/); Polar Express (arXiv 2505.16932). */
static const Coefficients simple[] = { { 3.4445, -4.7750, 2.0315 } };
static const Coefficients quintic[] = {
    { 4.0848, -6.8946, 2.9270 }, { 3.9505, -6.3029, 2.6377 }, { 3.7418, -5.5913, 2.3037 },
    { 2.8769, -3.1427, 1.2046 }, { 2.8366, -3.0525, 1.2012 },
};
static const Coefficients polar_express[] = {
    { 8.2051, -22.9019, 16.4607 }, { 4.0664, -2.8612, 0.5184 }, { 3.9096, -2.8234, 0.5250 },
    { 3.2856, -2.4153, 0.4853 },   { 2.2779, -1.6198, 0.3985 }, { 1.8726, -1.2307, 0.3585 },
    { 1.8564, -1.2132, 0.3568 },   { 1.8750, -1.2500, 0.3750 },
};

/* Polar Express repeats its last step, the others begin again. */
static Coefficients
coefficients_of(const LhMuonParams *muon, uint32_t step)
{
    switch (muon->coefficients) {
    case LH_MUON_SIMPLE:
        return simple[0];
    case LH_MUON_POLAR_EXPRESS:
        return polar_express[MIN(step, G_N_ELEMENTS(polar_express) - 1)];
    default:
        return quintic[step % G_N_ELEMENTS(quintic)];
    }
}

LhKernelArgs
lh_muon_step_args(const LhStepPlan *plan, LhStepWeight weight, uint32_t layer, uint32_t step)
{
    const Coefficients c = coefficients_of(&plan->params.muon, step);
    LhKernelArgs args = lh_muon_args(plan, weight, layer);

    args.muon.a = c.a;
    args.muon.b = c.b;
    args.muon.c = c.c;
    return args;
}

double
lh_muon_mixture(const LhMuonParams *muon)
{
    return muon->nesterov ? muon->momentum : 1;
}

/* ---- ranks ---- */

static bool
is_of(const LhStepPlan *plan, const LhMuonBatch *batch, uint32_t stage, uint32_t layer)
{
    return lh_step_stage_of(plan, layer) == stage &&
           lh_step_variant(plan, LH_STEP_OF_WEIGHT, (uint8_t)batch->weight, layer).number ==
               batch->variant &&
           lh_step_matrix(plan, batch->weight, layer).rows > 0;
}

uint32_t
lh_muon_next(const LhStepPlan *plan, const LhMuonBatch *batch, uint32_t stage, uint32_t layer)
{
    while (layer < plan->layers && !is_of(plan, batch, stage, layer))
        layer++;
    return layer;
}

/* Appends the batches of one shape. @dealt: matrices before them. */
static void
add_batches(const LhStepPlan *plan, uint32_t stage, LhMuonBatch batch, uint32_t *dealt,
            GArray *batches)
{
    const uint32_t ranks = lh_step_pieces(plan);
    uint32_t layer = lh_muon_next(plan, &batch, stage, 0);

    while (layer < plan->layers) {
        batch.layer = layer;
        batch.first = *dealt % ranks;
        batch.count = 0;
        for (; layer < plan->layers && batch.count < ranks;
             layer = lh_muon_next(plan, &batch, stage, layer + 1))
            batch.count++;
        *dealt += batch.count;
        g_array_append_val(batches, batch);
    }
}

GArray *
lh_muon_batches(const LhStepPlan *plan, uint32_t stage)
{
    GArray *batches = g_array_new(FALSE, FALSE, sizeof(LhMuonBatch));
    uint32_t dealt = 0;

    for (unsigned weight = 0; weight < LH_STEP_W_LAYER; weight++) {
        for (unsigned variant = 0; variant < LH_STEP_KINDS; variant++) {
            const LhMuonBatch batch = { .weight = (LhStepWeight)weight,
                                        .variant = (uint8_t)variant };

            if (lh_muon_has(&plan->params, batch.weight))
                add_batches(plan, stage, batch, &dealt, batches);
        }
    }
    return batches;
}

bool
lh_muon_is_even(const LhStepPlan *plan)
{
    bool even = true;

    for (uint32_t stage = 0; stage < lh_step_stages(&plan->params); stage++) {
        g_autoptr(GArray) batches = lh_muon_batches(plan, stage);

        for (guint i = 0; i < batches->len; i++)
            even &= g_array_index(batches, LhMuonBatch, i).count == lh_step_pieces(plan);
    }
    return even;
}
