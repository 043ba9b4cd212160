/*
 * Configurations of NeMo.
 */
#pragma once

#include "framework_config/common/system_config.h"

extern const LhConfigSystem lh_config_nemo;
