/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A way of training in words of Megatron-LM.
 */
#pragma once

#include "framework_config/common/system_config.h"

/* Words of Megatron-LM for all but how data-parallel ranks shard. */
void lh_config_megatron_say_sizes(const LhConfig *c, const LhConfigWay *way, GPtrArray *words);

/* All of them. */
void lh_config_megatron_say(const LhConfig *c, const LhConfigWay *way, GPtrArray *words);
