/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The optimizer, and Megatron-LM's arguments of Muon.
 */
#pragma once

#include "framework_config/common/system_config.h"

/* Sets the optimizer and Muon's options. */
bool lh_config_megatron_take_optimizer(LhConfig *config, GError **error);

/* Whether the optimizer is dist_muon: muon with a distributed optimizer. */
bool lh_config_megatron_is_dist_muon(const LhConfig *config);
