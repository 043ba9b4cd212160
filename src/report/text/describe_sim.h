/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tables of one simulated run. Caller frees them.
 */
#pragma once

#include "compare/compare.h"
#include "report/base/table.h"

LhTable *lh_describe_parts(const LhSimResult *result);  /* breakdown of the time */
LhTable *lh_describe_ranks(const LhCompareRow *row);    /* smallest, mean and largest over ranks */
LhTable *lh_describe_traffic(const LhCompareRow *row);  /* bytes by tier, and the closed form */
LhTable *lh_describe_memory(const LhSimResult *result); /* by tensor, at the peak */

/* Link utilization: by kind, and of the busiest links. */
LhTable *lh_describe_link_use(const LhSetup *setup, const LhSimResult *result);
LhTable *lh_describe_busy_links(const LhSetup *setup, const LhSimResult *result);

/* Results of a training step. Caller frees. */
LhTable *lh_describe_step(const LhStepAnswer *step);

/* By category, at the peak; NULL if there is only one category. */
LhTable *lh_describe_categories(const LhSimResult *result);
