/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Data-parallel sharding: by FSDP, or by DeepSpeed's ZeRO stages.
 */
#pragma once

#include "framework_config/common/system_config.h"

/* Whether DeepSpeed is used: its file, or accelerate's settings of it. */
bool lh_config_trainer_has_deepspeed(const LhConfig *c);

/* Reads what ranks shard, and the sizes of their groups. */
bool lh_config_trainer_take_sharding(LhConfig *c, GError **error);
