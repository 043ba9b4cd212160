/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Options of Megatron-LM.
 */
#pragma once

#include "framework_config/common/system_config.h"

/* Up to one without a name. */
extern const LhConfigKey lh_config_megatron_keys[];
