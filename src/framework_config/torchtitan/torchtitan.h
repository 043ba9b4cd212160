/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Configurations of torchtitan.
 */
#pragma once

#include "framework_config/common/system_config.h"

extern const LhConfigSystem lh_config_torchtitan;
