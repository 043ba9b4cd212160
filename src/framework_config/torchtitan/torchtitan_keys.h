/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Meaning of torchtitan's settings.
 */
#pragma once

#include "framework_config/common/system_config.h"

/* Up to one without a name. */
extern const LhConfigKey lh_config_torchtitan_keys[];
