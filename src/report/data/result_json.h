/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Results for machines: longhaul.result/3.
 */
#pragma once

#include "base/json/json_writer.h"
#include "compare/compare.h"
#include "report/data/document.h"

#define LH_RESULT_SCHEMA "longhaul.result/3"

/* The document of a comparison, or of one run as a comparison of one schedule. */
void lh_result_json(const LhSetup *setup, const LhComparison *comparison, const LhStamp *stamp,
                    GString *out);

/* The members saved_fraction_low, saved_fraction_high and edit of the open object. */
void lh_what_if_more_json(LhJsonWriter *w, const LhTopology *topology, const LhWhatIf *what_if);

/* The members op, layer, micro_batch and phase of the open object; null before the first op. */
void lh_memory_op_json(LhJsonWriter *w, const LhMemoryOp *op);
