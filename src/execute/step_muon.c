/* SPDX-License-Identifier: Apache-2.0 */
#include "execute/step_muon.h"

#include "execute/step_rounding.h"
#include "reference/model_muon.h"
#include "step/muon/muon.h"

LhModelMuon
lh_step_model_muon(const LhProgram *program, double (*coefficients)[3])
{
    static const LhModelMuonScale scales[LH_MUON_SCALE_MODES] = {
        [LH_MUON_SPECTRAL] = LH_MODEL_SPECTRAL,
        [LH_MUON_UNIT_RMS_NORM] = LH_MODEL_UNIT_RMS_NORM,
        [LH_MUON_SHAPE_SCALING] = LH_MODEL_SHAPE_SCALING,
    };
    const LhStepParams *p = lh_step_params(program);
    const LhMuonParams *muon = &p->muon;

    if (muon->optimizer != LH_OPTIMIZER_MUON)
        return (LhModelMuon){ 0 };
    for (uint32_t i = 0; i < muon->steps; i++) {
        const LhKernelArgs args = lh_muon_step_args(program->plan, LH_STEP_W_Q, 0, i);

        coefficients[i][0] = args.muon.a;
        coefficients[i][1] = args.muon.b;
        coefficients[i][2] = args.muon.c;
    }
    return (LhModelMuon){ .steps = muon->steps,
                          .coefficients = (const double(*)[3])coefficients,
                          .slices = muon->tp_mode == LH_MUON_BLOCKWISE ? p->tensor_parallel : 1,
                          .scale = scales[muon->scale_mode],
                          .momentum = muon->momentum,
                          .mixture = lh_muon_mixture(muon),
                          .extra_scale = muon->extra_scale };
}

/* In the first step momentum and gradient have one direction, and the update depends on no more. */
double
lh_step_muon_update(const LhStepNumerics *n, LhStepWeight weight, uint32_t layer, double *momentum)
{
    const LhModelShape *s = &n->reference->shape;
    const LhModelTensor *t = lh_model_tensor(n->reference, (LhModelWeight)weight, layer);
    const uint64_t count = t->rows * t->columns;
    g_autofree double *noisy = g_new(double, MAX(count, 1));
    g_autofree double *direction = g_memdup2(momentum, count * sizeof(double));
    LhSpread spread = { 0 };

    lh_model_muon_update(s, (LhModelWeight)weight, layer, direction, NULL, momentum);
    for (uint64_t seed = 1; seed <= LH_DISTURBED_STEPS; seed++) {
        const LhModelNoise noise = lh_step_rounding_noise(n, seed);

        lh_model_muon_update(s, (LhModelWeight)weight, layer, direction, &noise, noisy);
        lh_step_spread_add(&spread, lh_step_distance2(noisy, momentum, count));
    }
    for (uint64_t i = 0; i < count; i++)
        momentum[i] *= -s->learning_rate;
    return s->learning_rate * s->learning_rate * lh_step_spread_bound2(&spread) /
           (double)MAX(count, 1);
}
