/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Results for programs: longhaul.result/3.
 */
#pragma once

#include "base/json/json_writer.h"
#include "compare/compare.h"
#include "report/data/document.h"

#define LH_RESULT_SCHEMA "longhaul.result/3"

/* Fields of the document. */
extern const LhField lh_result_fields[];

/* Document of a comparison, or of one run as a comparison of one schedule. */
void lh_result_json(const LhSetup *setup, const LhComparison *comparison, const LhStamp *stamp,
                    GString *out);
