/* SPDX-License-Identifier: Apache-2.0 */
/* What was read from traces of a run, and the constants that were fitted to it. */
#pragma once

#include "import/trace/trace_fit.h"
#include "report/base/table.h"
#include "report/data/result_json.h"

/* All that an import found. */
typedef struct {
    const LhGpuTraceRun *run;
    const LhSetup *setup;
    const LhProgram *program;
    const LhTraceAlignment *match;
    const LhTraceFit *tuning;
} LhImported;

/* Tables: caller frees. The files; constants before and after; times of kernels, messages and
 * collectives, measured and simulated before and after. */
LhTable *lh_describe_traces(const LhImported *imported);
LhTable *lh_describe_tuned(const LhImported *imported);
LhTable *lh_describe_samples(const LhImported *imported);

/* Appends what could not be matched or was left out, a sentence on a line; nothing if there is
 * none. */
void lh_describe_unmatched(const LhImported *imported, GString *out);

/* Every op that was seen: what it took, measured and simulated. Caller frees. */
LhTable *lh_imported_timeline(const LhImported *imported);

/* Of the document longhaul.import/1. */
extern const LhField lh_import_fields[];

/* Appends it. */
void lh_imported_json(const LhImported *imported, const LhStamp *stamp, GString *out);
