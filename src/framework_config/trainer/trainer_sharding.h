/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What data-parallel ranks shard: by FSDP, or by DeepSpeed's stages of ZeRO.
 */
#pragma once

#include "framework_config/common/system_config.h"

/* Whether DeepSpeed trains: its file, or accelerate's settings of it. */
bool lh_config_trainer_has_deepspeed(const LhConfig *c);

/* Sets what ranks shard, and how large their groups are. */
bool lh_config_trainer_take_sharding(LhConfig *c, GError **error);
