/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What settings of torchtitan are to a prediction.
 */
#pragma once

#include "framework_config/common/system_config.h"

/* Up to one without a name. */
extern const LhConfigKey lh_config_torchtitan_keys[];
