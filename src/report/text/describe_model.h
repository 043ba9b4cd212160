/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A model as read from its file.
 */
#pragma once

#include "model/model.h"
#include "report/base/table.h"

/* Properties of @model, one per row: layers by kind, heads, windows, experts, parameters, unused
 * keys, and why it cannot be predicted. Caller frees. */
LhTable *lh_model_table(const LhModel *model);
