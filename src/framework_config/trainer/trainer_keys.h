/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Meaning of the settings of Hugging Face's Trainer, and of programs based on it.
 */
#pragma once

#include "framework_config/common/system_config.h"

/* Up to one without a name. */
extern const LhConfigKey lh_config_trainer_keys[];
