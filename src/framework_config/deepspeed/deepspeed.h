/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Configurations of DeepSpeed.
 */
#pragma once

#include "framework_config/common/system_config.h"

extern const LhConfigSystem lh_config_deepspeed;

/* Reads ZeRO's stage and notes what is not modelled; @shard is unchanged if no stage is set. */
bool lh_config_deepspeed_zero(LhConfig *config, int *shard, GError **error);
