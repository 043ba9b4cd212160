/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Element types of a step's optimizer: options over the values of the framework file, and their
 * rows of the table in scenario_fields.c.
 */
#pragma once

#include "model/framework.h"
#include "scenario/scenario.h"
#include "step/behaviour.h"

/* Sets what the scenario gives in @framework, for a step with activations of @dtype. LH_ERROR_INPUT
 * if a step with these has no such optimizer. */
bool lh_setup_optimizer(const LhScenario *scenario, LhDtype dtype, LhFramework *framework,
                        GError **error);

/* Whether the states of a step with @data_ranks data- and context-parallel ranks have the type of
 * the activations, since nothing shards or casts the parameters. */
static inline bool
lh_setup_is_alone(const LhFramework *framework, uint32_t data_ranks)
{
    return data_ranks == 1 && framework->states_alone == LH_TYPE_ACTIVATION;
}

/* Sets the types of such states in @framework. */
void lh_setup_alone(LhFramework *framework, uint32_t data_ranks);

#define LH_OPTIMIZER_FIELD(member, names, text)                                                    \
    {                                                                                              \
        .name = #member, .category = LH_ABOUT_TRAINED, .type = LH_FIELD_CHOICE,                    \
        .offset = AT(member), .flags = LH_SCENARIO_OF_PROGRAM | LH_SCENARIO_OF_STEP,               \
        .choices = (names), .description = (text)                                                  \
    }

#define LH_OPTIMIZER_FIELDS                                                                        \
    LH_OPTIMIZER_FIELD(                                                                            \
        main_params_dtype, lh_main_params_names,                                                   \
        "Copy of a step's 16-bit weights that the optimizer updates: fp32, or none: it updates "   \
        "the weights themselves. Default: the framework's."),                                      \
        LH_OPTIMIZER_FIELD(                                                                        \
            main_grads_dtype, lh_activation_names,                                                 \
            "Element type in which a step's gradients are added up, reduced and read by the "      \
            "optimizer: fp32, or that of the activations. Default: the framework's."),             \
        LH_OPTIMIZER_FIELD(                                                                        \
            exp_avg_dtype, lh_exp_avg_names,                                                       \
            "Element type of both of Adam's moments: fp32, that of the activations, or 8bit: "     \
            "blocks of 256 with an fp32 scale. Default: the framework's.")
