/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Recomputation, sharding and pipeline stages in options of Megatron-LM.
 */
#pragma once

#include "framework_config/common/system_config.h"

/* ms-swift's Megatron takes the model by its name, and other defaults: it shards its optimizer's
 * states, recomputes attention, and has the type of the model's weights. */
bool lh_config_megatron_is_swift(const LhConfig *c);

/* What is recomputed in the backward pass. */
bool lh_config_megatron_take_recomputation(LhConfig *c, GError **error);

/* What data-parallel ranks shard. */
bool lh_config_megatron_take_sharding(LhConfig *c, GError **error);

/* Stages, and chunks of layers on each. */
bool lh_config_megatron_take_pipeline(LhConfig *c, GError **error);
