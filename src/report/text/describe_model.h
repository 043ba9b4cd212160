/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A model as it was understood.
 */
#pragma once

#include "model/model.h"
#include "report/base/table.h"

/* Facts of @model, one a row: layers by kind, heads, windows, experts, parameters, keys that were
 * not used, why it is not predicted. Caller frees. */
LhTable *lh_model_table(const LhModel *model);
