/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Recomputation in Megatron-LM's options: of whole layers, or of modules.
 */
#pragma once

#include "framework_config/common/system_config.h"

/* Reads what is recomputed in the backward pass. */
bool lh_config_megatron_take_recomputation(LhConfig *c, GError **error);
