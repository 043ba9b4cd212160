/* SPDX-License-Identifier: Apache-2.0 */
/*
 * LoRA of a step: its options, and their rows of the table in scenario_fields.c.
 */
#pragma once

#include "scenario/scenario.h"
#include "step/step.h"

/* Sets what the scenario gives in @params. */
bool lh_setup_lora(const LhScenario *scenario, LhStepParams *params, GError **error);

#define LH_LORA_FIELDS                                                                             \
    { .name = "lora_rank",                                                                         \
      .category = LH_ABOUT_STEP,                                                                   \
      .absent = "0",                                                                               \
      .type = LH_FIELD_UNIT,                                                                       \
      .unit = LH_UNIT_COUNT,                                                                       \
      .offset = AT(lora_rank),                                                                     \
      .flags = LH_SCENARIO_OF_PROGRAM | LH_SCENARIO_OF_STEP,                                       \
      .min = 0,                                                                                    \
      .max = 65536,                                                                                \
      .description = "Train a step with LoRA: adapters of this rank, with all other weights "      \
                     "frozen. Default 0: all weights are trained." },                              \
    {                                                                                              \
        .name = "lora_targets", .category = LH_ABOUT_STEP, .type = LH_FIELD_STRING,                \
        .offset = AT(lora_targets), .flags = LH_SCENARIO_OF_PROGRAM | LH_SCENARIO_OF_STEP,         \
        .min = 1, .max = 256, .placeholder = "NAMES",                                              \
        .description =                                                                             \
            "Matrices that have an adapter under --lora-rank, separated by commas: linear_qkv, "   \
            "linear_proj, linear_fc1, linear_fc2; or by peft's names. Default: all four."          \
    }
