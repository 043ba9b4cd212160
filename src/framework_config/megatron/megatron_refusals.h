/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Models of Megatron-LM that are not predicted.
 */
#pragma once

#include "framework_config/common/system_config.h"

/* What layers are that no model of longhaul's has. */
bool lh_config_megatron_refuse_layers(const LhConfig *c, GError **error);

/* Programs of Megatron-LM that train something else than a decoder of text. */
bool lh_config_megatron_refuse_program(const LhConfig *c, GError **error);

/* NeMo's T5 has two stacks of layers. */
bool lh_config_megatron_refuse_stacks(const LhConfig *c, GError **error);
