/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Context parallelism as Megatron-LM has it.
 */
#pragma once

#include "framework_config/common/system_config.h"

extern const char *const lh_config_megatron_schedules[];

/* The number of ranks, and how they exchange. */
bool lh_config_megatron_take_context(LhConfig *c, GError **error);

/* --window-size 4096,0 (before and behind the own token); of Megatron's pair only the left part
 * counts under a causal mask. */
bool lh_config_megatron_take_window(LhConfig *c, GError **error);

/* Its words of a way. */
void lh_config_megatron_say_context(const LhConfig *c, const LhConfigWay *way, GPtrArray *words);
