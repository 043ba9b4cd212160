/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Describes the simulated case.
 */
#pragma once

#include "compare/compare.h"

/* Appends " of llama-7b", and that it is the default if no model is given. */
void lh_describe_model(const LhSetup *setup, GString *out);

/* Appends one line on the experts of a step's model: number per token, and assumptions on routing
 * and placement. @tensor: tensor-parallel ranks (0: varies); @shard (-1: varies). Nothing for a
 * model without experts. */
void lh_describe_experts(const LhModel *model, uint32_t tensor, int shard, GString *out);

/* Appends ", loss chunked:256, MLPs in tiles of 4096 rows, LoRA of rank 16 (linear_qkv)"; nothing
 * for an eager loss, MLPs that are not tiled, and a step that trains all weights. */
void lh_describe_tiles(const LhStepParams *params, GString *out);

/* Appends ", 8-bit moments, no fp32 copy of the weights"; nothing for the states of mixed
 * precision. */
void lh_describe_optimizer(const LhStepParams *params, GString *out);

/* Appends lines on the case, the cluster, the options, and what is left out. */
void lh_describe_case(const LhSetup *setup, GString *out);

/* Appends "NVLink 371 GB/s; 8 x 48 GB/s to the network", and which of these values the scenario
 * overrides. */
void lh_describe_links(const LhSetup *setup, GString *out);

/* Appends one line on schedules skipped because they do not compute this kind of attention; nothing
 * without any. */
void lh_describe_left_out(const LhSetup *setup, GString *out);
