/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One simulated run for people. Callers free the tables.
 */
#pragma once

#include "compare/compare.h"
#include "report/base/table.h"

LhTable *lh_describe_parts(const LhSimResult *result);  /* where the time went */
LhTable *lh_describe_ranks(const LhCompareRow *row);    /* smallest, mean and largest over ranks */
LhTable *lh_describe_traffic(const LhCompareRow *row);  /* bytes by tier, beside the closed form */
LhTable *lh_describe_memory(const LhSimResult *result); /* by tensor, at the peak */

/* How much of what links could carry they have: by kind, and of the busiest ones. */
LhTable *lh_describe_link_use(const LhSetup *setup, const LhSimResult *result);
LhTable *lh_describe_busy_links(const LhSetup *setup, const LhSimResult *result);

/* What a training step comes to. Caller frees. */
LhTable *lh_describe_step(const LhStepAnswer *step);

/* By category, at the peak; NULL if there is but one category. */
LhTable *lh_describe_categories(const LhSimResult *result);
