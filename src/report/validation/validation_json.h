/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Validations for programs: longhaul.validation/2, written and read.
 */
#pragma once

#include "base/json/json.h"
#include "report/data/result_json.h"
#include "validate/validate.h"

/* Fields of the document. */
extern const LhField lh_validation_fields[];

/* Appends the document of `longhaul validate`, also before anything was measured. */
void lh_validate_json(const LhSetup *setup, const LhValidated *validated,
                      const LhValidateParams *params, double tolerance, const LhStamp *stamp,
                      GString *out);

/* Reads a document about the schedules of @setup. @alone: one rank of each ran alone.
 * LH_ERROR_INPUT; caller frees. */
LhValidated *lh_validate_from_json(const LhJson *json, const LhSetup *setup, bool alone,
                                   GError **error);
