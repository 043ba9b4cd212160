/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The model that Megatron-LM trains: one of models/ by its published name or its shape, or one
 * that is made of what the file says.
 */
#pragma once

#include "framework_config/common/system_config.h"

/* Names the model, or notes what is missing of it. */
bool lh_config_megatron_take_model(LhConfig *c, GError **error);
