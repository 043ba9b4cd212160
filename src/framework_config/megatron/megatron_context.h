/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Context parallelism in Megatron-LM's options.
 */
#pragma once

#include "framework_config/common/system_config.h"

extern const char *const lh_config_megatron_schedules[];

/* Reads the context-parallel size and the communication type. */
bool lh_config_megatron_take_context(LhConfig *c, GError **error);

/* Reads --window-size 4096,0 (tokens before and after the query's own); under a causal mask only
 * the first counts. */
bool lh_config_megatron_take_window(LhConfig *c, GError **error);

/* Writes the options of a way of training. */
void lh_config_megatron_say_context(const LhConfig *c, const LhConfigWay *way, GPtrArray *words);
