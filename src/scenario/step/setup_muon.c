/* SPDX-License-Identifier: Apache-2.0 */
#include "scenario/step/setup_muon.h"

static bool
refuse_options(const LhScenario *s, GError **error)
{
    static const char *const fields[] = {
        "muon_num_ns_steps",     "muon_tp_mode",    "muon_momentum",
        "muon_nesterov",         "muon_scale_mode", "muon_extra_scale_factor",
        "muon_coefficient_type",
    };

    for (gsize i = 0; i < G_N_ELEMENTS(fields); i++) {
        if (lh_scenario_has(s, fields[i]))
            return lh_scenario_error(s, fields[i], error, "needs the optimizer muon");
    }
    return true;
}

static uint8_t
choice(int given)
{
    return (uint8_t)MAX(given, 0);
}

static double
number(const LhScenario *s, const char *field, double given, double otherwise)
{
    return lh_scenario_has(s, field) ? given : otherwise;
}

bool
lh_setup_muon(const LhScenario *s, LhStepParams *p, GError **error)
{
    p->muon = (LhMuonParams){
        .optimizer = choice(s->optimizer),
        .tp_mode = choice(s->muon_tp_mode),
        .scale_mode = choice(s->muon_scale_mode),
        .coefficients = choice(s->muon_coefficient_type),
        .nesterov = s->muon_nesterov,
        .steps = s->muon_num_ns_steps > 0 ? (uint32_t)s->muon_num_ns_steps : 5,
        .momentum = number(s, "muon_momentum", s->muon_momentum, 0.95),
        .extra_scale = number(s, "muon_extra_scale_factor", s->muon_extra_scale_factor, 1),
    };
    return p->muon.optimizer == LH_OPTIMIZER_MUON || refuse_options(s, error);
}
