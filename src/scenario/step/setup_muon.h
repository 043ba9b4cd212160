/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The optimizer of a step, Muon's options, and their rows of the table in scenario_fields.c.
 */
#pragma once

#include "scenario/scenario.h"
#include "step/step.h"

/* Sets what the scenario gives in @params. */
bool lh_setup_muon(const LhScenario *scenario, LhStepParams *params, GError **error);

#define LH_MUON_FIELD(key, kind, ...)                                                              \
    {                                                                                              \
        .name = #key, .category = LH_ABOUT_MUON, .type = LH_FIELD_##kind, .offset = AT(key),       \
        .flags = LH_SCENARIO_OF_PROGRAM | LH_SCENARIO_OF_STEP, __VA_ARGS__                         \
    }

#define LH_MUON_FIELDS                                                                             \
    LH_MUON_FIELD(optimizer, CHOICE, .absent = "adam", .choices = lh_optimizer_names,              \
                  .description = "Optimizer of a step: adam (AdamW, default) for all weights, or " \
                                 "muon for the matrices of layers and AdamW for the rest."),       \
        LH_MUON_FIELD(muon_num_ns_steps, UINT, .absent = "5", .min = 1, .max = LH_MUON_STEPS_MAX,  \
                      .description = "Newton-Schulz steps that orthogonalise a matrix of Muon; "   \
                                     "default 5."),                                                \
        LH_MUON_FIELD(muon_tp_mode, CHOICE, .absent = "duplicated",                                \
                      .choices = lh_muon_tp_mode_names,                                            \
                      .description = "How Muon orthogonalises a matrix that tensor-parallel "      \
                                     "ranks share: whole, gathered and computed on each of them "  \
                                     "(duplicated, default), or each slice alone (blockwise)."),   \
        LH_MUON_FIELD(muon_momentum, DOUBLE, .absent = "0.95", .min = 0, .max = 0.9999,            \
                      .description = "Decay rate of Muon's momentum; default 0.95."),              \
        LH_MUON_FIELD(muon_nesterov, BOOL,                                                         \
                      .description = "Muon's update is a mixture of momentum and gradient "        \
                                     "(Nesterov), not the momentum alone."),                       \
        LH_MUON_FIELD(                                                                             \
            muon_scale_mode, CHOICE, .absent = "spectral", .choices = lh_muon_scale_mode_names,    \
            .description = "Factor of Muon's update of a matrix from `in` to `out` features: "     \
                           "sqrt(max(out, in)) (spectral, default), sqrt(out / in) "               \
                           "(unit_rms_norm) or sqrt(max(1, out / in)) (shape_scaling)."),          \
        LH_MUON_FIELD(muon_extra_scale_factor, DOUBLE, .absent = "1", .min = 1e-9, .max = 1e9,     \
                      .description = "Further factor of Muon's updates, such as Moonlight's 0.2; " \
                                     "default 1."),                                                \
        LH_MUON_FIELD(muon_coefficient_type, CHOICE, .absent = "quintic",                          \
                      .choices = lh_muon_coefficient_names,                                        \
                      .description = "Coefficients of Muon's Newton-Schulz steps: quintic "        \
                                     "(default), simple (the first ones published) or "            \
                                     "polar_express.")
