/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Configurations of DeepSpeed.
 */
#pragma once

#include "framework_config/common/system_config.h"

extern const LhConfigSystem lh_config_deepspeed;

/* The stage of ZeRO, and what is not modelled of it; @shard stays if it is not said. */
bool lh_config_deepspeed_zero(LhConfig *config, int *shard, GError **error);
