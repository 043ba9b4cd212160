/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is simulated, in words.
 */
#pragma once

#include "compare/compare.h"

/* " of llama-7b", and that it is taken because no model is given, where that is so. */
void lh_describe_model(const LhSetup *setup, GString *out);

/* One line on the experts of a step's model: how many a token passes, and what is assumed of their
 * routing and of who holds them, of @tensor tensor-parallel ranks (0: it varies) and by @shard (-1:
 * likewise); nothing of a model without. */
void lh_describe_experts(const LhModel *model, uint32_t tensor, int shard, GString *out);

/* Lines that say what is simulated, on what, with which options, and what is left out. */
void lh_describe_case(const LhSetup *setup, GString *out);

/* "NVLink 371 GB/s; 8 x 48 GB/s to the network", and what of it is as the scenario has it. */
void lh_describe_links(const LhSetup *setup, GString *out);

/* One line on the schedules that are not of this kind of attention; nothing if there are none. */
void lh_describe_left_out(const LhSetup *setup, GString *out);
