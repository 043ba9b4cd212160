/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Number of parameters of a model.
 */
#pragma once

#include "model/model.h"

/* Number of parameters; UINT64_MAX: overflow. */
uint64_t lh_model_parameters(const LhModel *model);

/* Parameters that one token uses: with experts, only the experts it passes. */
uint64_t lh_model_active_parameters(const LhModel *model);
