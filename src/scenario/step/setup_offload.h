/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Offload of a step to host memory: its options, and their rows of the table in scenario_fields.c,
 * which defines AT() and NUMBER_OR_ALL().
 */
#pragma once

#include "scenario/setup.h"
#include "step/step.h"

/* Sets what the scenario of @setup gives in @params. LH_ERROR_INPUT if its cluster lacks what
 * copies or the CPU are timed by. */
bool lh_setup_offload(const LhSetup *setup, LhStepParams *params, GError **error);

#define LH_OFFLOAD_FLAG(member, text)                                                              \
    {                                                                                              \
        .name = #member, .category = LH_ABOUT_OFFLOAD, .type = LH_FIELD_BOOL,                      \
        .offset = AT(member), .flags = LH_SCENARIO_OF_PROGRAM | LH_SCENARIO_OF_STEP,               \
        .description = (text)                                                                      \
    }

#define LH_OFFLOAD_FIELDS                                                                          \
    NUMBER_OR_ALL(cpu_offloading_num_layers, LH_ABOUT_OFFLOAD, "0",                                \
                  "Layers of a step, the first ones of each pipeline chunk, whose activations "    \
                  "wait for the backward pass in host memory: a number, or all; default 0."),      \
        LH_OFFLOAD_FLAG(optimizer_cpu_offload,                                                     \
                        "Keep a step's optimizer states in host memory, where the CPU updates: "   \
                        "gradients are copied there and weights back."),                           \
        { .name = "optimizer_offload_fraction",                                                    \
          .category = LH_ABOUT_OFFLOAD,                                                            \
          .absent = "1",                                                                           \
          .type = LH_FIELD_DOUBLE,                                                                 \
          .offset = AT(optimizer_offload_fraction),                                                \
          .flags = LH_SCENARIO_OF_PROGRAM | LH_SCENARIO_OF_STEP,                                   \
          .min = 0,                                                                                \
          .max = 1,                                                                                \
          .description = "Share of the parameters to which --optimizer-cpu-offload applies, the "  \
                         "first layers first; default 1." },                                       \
        LH_OFFLOAD_FLAG(overlap_cpu_optimizer_d2h_h2d,                                             \
                        "Copy gradients and weights of --optimizer-cpu-offload one by one, while " \
                        "the CPU updates others; default: before and behind all updates."),        \
        LH_OFFLOAD_FLAG(                                                                           \
            offload_param,                                                                         \
            "Keep the shards of a step's weights in host memory, too, from which they "            \
            "are copied ahead of their use; with --shard fsdp, and with all of the "               \
            "optimizer.")
