/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What settings of Hugging Face's Trainer, and of what is built on it, are to a prediction.
 */
#pragma once

#include "framework_config/common/system_config.h"

/* Up to one without a name. */
extern const LhConfigKey lh_config_trainer_keys[];
