/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Models of Megatron-LM that are not supported.
 */
#pragma once

#include "framework_config/common/system_config.h"

/* Rejects kinds of layers that no longhaul model has. */
bool lh_config_megatron_refuse_layers(const LhConfig *c, GError **error);

/* Rejects programs of Megatron-LM that train anything but a text decoder. */
bool lh_config_megatron_refuse_program(const LhConfig *c, GError **error);

/* Rejects NeMo's T5, which has two stacks of layers. */
bool lh_config_megatron_refuse_stacks(const LhConfig *c, GError **error);
