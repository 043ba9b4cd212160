/* SPDX-License-Identifier: Apache-2.0 */
/*
 * LoRA: its rank and targets, by peft's names.
 */
#pragma once

#include "framework_config/common/system_config.h"

/* Sets lora_rank and lora_targets if the settings ask for LoRA. */
bool lh_config_trainer_take_lora(LhConfig *c, GError **error);
