/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The model that Megatron-LM trains: one of models/, by its published name or its shape, or one
 * built from the options.
 */
#pragma once

#include "framework_config/common/system_config.h"

/* Names the model, or reports what is missing. */
bool lh_config_megatron_take_model(LhConfig *c, GError **error);
