/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Training frameworks whose configurations are read.
 */
#pragma once

#include "framework_config/common/system_config.h"

/* All of them; NULL-terminated. */
extern const LhConfigSystem *const lh_config_systems[];

/* The framework to which most settings belong: Megatron-LM, NeMo, torchtitan, or programs based on
 * Hugging Face's Trainer. */
const LhConfigSystem *lh_config_system_of(const LhSettingsFile *entries);
