/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The JSON Schema of a table of fields.
 */
#pragma once

#include "base/json/field.h"

/* JSON Schema (draft 2020-12) of @fields; caller frees. @id is e.g. "longhaul.device/1". */
char *lh_json_schema(const char *id, const char *title, const LhField *fields);
