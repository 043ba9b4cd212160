/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fields of a scenario that decide what a step holds in memory: rows of the table in
 * scenario_fields.c, which defines AT().
 */
#pragma once

#include "model/framework.h"
#include "model/recomputation.h"
#include "scenario/scenario_options.h"
#include "scenario/step/setup_lora.h"
#include "scenario/step/setup_muon.h"
#include "scenario/step/setup_offload.h"
#include "scenario/step/setup_optimizer.h"

#define LH_STEP_MEMORY_FIELDS                                                                      \
    { .name = "shard",                                                                             \
      .category = LH_ABOUT_MEMORY,                                                                 \
      .type = LH_FIELD_CHOICE,                                                                     \
      .offset = AT(shard),                                                                         \
      .flags = LH_SCENARIO_OF_PROGRAM | LH_SCENARIO_OF_STEP,                                       \
      .choices = lh_shard_names,                                                                   \
      .description = "What of a step's weights, gradients and optimizer state is sharded over "    \
                     "data- and context-parallel ranks; default: the framework's, in a prefill "   \
                     "nothing (ddp)." },                                                           \
        { .name = "checkpoint",                                                                    \
          .category = LH_ABOUT_MEMORY,                                                             \
          .type = LH_FIELD_CHOICE,                                                                 \
          .offset = AT(checkpoint),                                                                \
          .flags = LH_SCENARIO_OF_PROGRAM | LH_SCENARIO_OF_STEP,                                   \
          .choices = lh_checkpoint_names,                                                          \
          .description =                                                                           \
              "Activations of a step to recompute in the backward pass: none; attention "          \
              "(selective); "                                                                      \
              "whole layers (layer); or all but attention (remat). Default: the framework's." },   \
        { .name = "recompute_modules",                                                             \
          .category = LH_ABOUT_MEMORY,                                                             \
          .type = LH_FIELD_STRING,                                                                 \
          .offset = AT(recompute_modules),                                                         \
          .flags = LH_SCENARIO_OF_PROGRAM | LH_SCENARIO_OF_STEP,                                   \
          .min = 1,                                                                                \
          .max = -1,                                                                               \
          .placeholder = "LIST",                                                                   \
          .description =                                                                           \
              "Modules of each layer to recompute, in Megatron-LM's words and separated by "       \
              "commas: core_attn, layernorm, mlp, moe, moe_act, shared_experts. It means "         \
              "--checkpoint selective, which alone recomputes core_attn." },                       \
        { .name = "recompute_method",                                                              \
          .category = LH_ABOUT_MEMORY,                                                             \
          .type = LH_FIELD_CHOICE,                                                                 \
          .offset = AT(recompute_method),                                                          \
          .flags = LH_SCENARIO_OF_PROGRAM | LH_SCENARIO_OF_STEP,                                   \
          .choices = lh_recompute_method_names,                                                    \
          .description = "Layers that --checkpoint layer recomputes, with N of "                   \
                         "--recompute-num-layers: the first "                                      \
                         "N of a pipeline stage, or of each of its chunks (block); N at a time, "  \
                         "of which only the "                                                      \
                         "first one's input is kept (uniform); or every N-th (every). Default: "   \
                         "all, one by one." },                                                     \
        { .name = "recompute_num_layers",                                                          \
          .category = LH_ABOUT_MEMORY,                                                             \
          .type = LH_FIELD_UNIT,                                                                   \
          .unit = LH_UNIT_COUNT,                                                                   \
          .offset = AT(recompute_num_layers),                                                      \
          .flags = LH_SCENARIO_OF_PROGRAM | LH_SCENARIO_OF_STEP,                                   \
          .min = 1,                                                                                \
          .max = 65535,                                                                            \
          .description = "The N of --recompute-method." },                                         \
        { .name = "loss",                                                                          \
          .category = LH_ABOUT_MEMORY,                                                             \
          .type = LH_FIELD_STRING,                                                                 \
          .offset = AT(loss),                                                                      \
          .flags = LH_SCENARIO_OF_PROGRAM | LH_SCENARIO_OF_STEP,                                   \
          .min = 1,                                                                                \
          .max = 32,                                                                               \
          .placeholder = "KIND[:ROWS]",                                                            \
          .description =                                                                           \
              "How a step computes its loss: the framework's kernels (eager), or one whose "       \
              "gradient "                                                                          \
              "takes the place of the logits (fused); or together with the head in chunks of at "  \
              "most "                                                                              \
              "ROWS rows: of the framework's kernels, with logits computed again for the "         \
              "gradient "                                                                          \
              "(chunked) or not (tiled), or fused (fused-linear). Default: the framework's." },    \
        { .name = "tiled_mlp",                                                                     \
          .category = LH_ABOUT_MEMORY,                                                             \
          .type = LH_FIELD_STRING,                                                                 \
          .offset = AT(tiled_mlp),                                                                 \
          .flags = LH_SCENARIO_OF_PROGRAM | LH_SCENARIO_OF_STEP,                                   \
          .min = 1,                                                                                \
          .max = 16,                                                                               \
          .placeholder = "ROWS|auto",                                                              \
          .description =                                                                           \
              "Tile a step's MLPs: at most so many rows of a rank at a time, each tile "           \
              "computed again in the backward pass; auto: as many rows as the model is wide. "     \
              "Default: not tiled." },                                                             \
        LH_OPTIMIZER_FIELDS, LH_MUON_FIELDS
