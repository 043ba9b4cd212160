/* SPDX-License-Identifier: Apache-2.0 */
/* Output of import: what was read from traces of a run, and the constants fitted to it. */
#pragma once

#include "import/trace/trace_fit.h"
#include "report/base/table.h"
#include "report/data/result_json.h"

/* Results of an import. */
typedef struct {
    const LhGpuTraceRun *run;
    const LhSetup *setup;
    const LhProgram *program;
    const LhTraceAlignment *match;
    const LhTraceFit *tuning;
} LhImported;

/* Tables; caller frees: the files; constants before and after the fit; times of kernels, messages
 * and collectives, measured, and simulated before and after. */
LhTable *lh_describe_traces(const LhImported *imported);
LhTable *lh_describe_tuned(const LhImported *imported);
LhTable *lh_describe_samples(const LhImported *imported);

/* Appends a line per sentence on unmatched or ignored parts of the traces; nothing without any. */
void lh_describe_unmatched(const LhImported *imported, GString *out);

/* Table of every traced op with its measured and simulated times. Caller frees. */
LhTable *lh_imported_timeline(const LhImported *imported);

/* Fields of the document longhaul.import/1. */
extern const LhField lh_import_fields[];

/* Appends the document. */
void lh_imported_json(const LhImported *imported, const LhStamp *stamp, GString *out);
