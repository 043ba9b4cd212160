/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Offload to host memory in Megatron-LM's options: the optimizer's states, and activations.
 */
#pragma once

#include "framework_config/common/system_config.h"

/* Reads what is offloaded. */
bool lh_config_megatron_take_offload(LhConfig *c, GError **error);
