/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The training systems whose configurations are read.
 */
#pragma once

#include "framework_config/common/system_config.h"

/* All of them; NULL-terminated. */
extern const LhConfigSystem *const lh_config_systems[];

/* Whose settings most of them are: of Megatron-LM, of NeMo, of torchtitan, or of what is built on
 * Hugging Face's Trainer. */
const LhConfigSystem *lh_config_system_of(const LhSettingsFile *entries);
