/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The optimizer of Hugging Face's Trainer by its name: which states it keeps, and whether one
 * kernel updates a parameter.
 */
#pragma once

#include "framework_config/common/system_config.h"

/* Reads "optim" (or axolotl's "optimizer"); refuses optimizers with other states than Adam's. */
bool lh_config_trainer_take_optimizer(LhConfig *c, GError **error);
