/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Configurations of Hugging Face's Trainer, and of programs based on it.
 */
#pragma once

#include "framework_config/common/system_config.h"

extern const LhConfigSystem lh_config_trainer;
