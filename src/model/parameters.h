/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How many parameters a model has.
 */
#pragma once

#include "model/model.h"

/* How many parameters the model has; UINT64_MAX: at least so many. */
uint64_t lh_model_parameters(const LhModel *model);

/* Those that a token meets: of the experts, its own. */
uint64_t lh_model_active_parameters(const LhModel *model);
