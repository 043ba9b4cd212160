/* SPDX-License-Identifier: Apache-2.0 */
/* Output of collective: operations of NCCL on a cluster, and logs compared with them. */
#pragma once

#include "collective_check/log_check.h"
#include "report/base/table.h"

/* Appends a paragraph and a table for each run, with @links a table of its most loaded links, and
 * the result of the comparison with logs. */
void lh_describe_log_check(const LhLogCheck *held, bool links, LhFormat format, GString *out);
