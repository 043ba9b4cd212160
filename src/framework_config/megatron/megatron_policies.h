/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sharding and pipeline stages in Megatron-LM's options.
 */
#pragma once

#include "framework_config/common/system_config.h"

/* Whether this is ms-swift's Megatron. It takes the model by its name, and has other defaults:
 * sharded optimizer states, recomputed attention, and the element type of the model's weights. */
bool lh_config_megatron_is_swift(const LhConfig *c);

/* Reads what data-parallel ranks shard. */
bool lh_config_megatron_take_sharding(LhConfig *c, GError **error);

/* Reads pipeline stages and chunks. */
bool lh_config_megatron_take_pipeline(LhConfig *c, GError **error);
