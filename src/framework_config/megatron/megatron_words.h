/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes a way of training in Megatron-LM's options.
 */
#pragma once

#include "framework_config/common/system_config.h"

/* Writes all options but those of data-parallel sharding. */
void lh_config_megatron_say_sizes(const LhConfig *c, const LhConfigWay *way, GPtrArray *words);

/* Writes all options. */
void lh_config_megatron_say(const LhConfig *c, const LhConfigWay *way, GPtrArray *words);
