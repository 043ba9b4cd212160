/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Configurations of NeMo.
 */
#pragma once

#include "framework_config/common/system_config.h"

extern const LhConfigSystem lh_config_nemo;
