/* SPDX-License-Identifier: Apache-2.0 */
/* Output of calibrate and validate: measurements of this machine, and errors of predictions for it.
 */
#pragma once

#include "calibrate/calibrate.h"
#include "report/base/table.h"
#include "report/data/result_json.h"
#include "validate/validate.h"

/* Caller frees. */
LhTable *lh_describe_rates(const LhCalibration *calibration);
LhTable *lh_describe_elementwise(const LhCalibration *calibration);
LhTable *lh_describe_executor(const LhCalibration *calibration);
LhTable *lh_describe_cluster(const LhCluster *cluster);
/* Rows of LhCollectiveCheck. */
LhTable *lh_describe_collectives(const GArray *checks);

/* One row per schedule; of LhValidation *. */
LhTable *lh_describe_makespans(const GPtrArray *validations, double tolerance);
/* One row per schedule and kernel. */
LhTable *lh_describe_kernel_errors(const GPtrArray *validations, double tolerance);

/* One row per schedule and tier. */
LhTable *lh_describe_tier_errors(const GPtrArray *validations);

/* One row per class of constants, and a sentence on which of them explains the error. */
LhTable *lh_describe_explained(const LhAttributed *explained);
void lh_describe_cause(const LhAttributed *explained, GString *out);

/* Kernels by host, and messages by pair of hosts. */
LhTable *lh_describe_hosts(const LhSlowHosts *hosts);
/* Appends a line per slow host and per slow link, or one that there are none. */
void lh_describe_slow(const LhSlowHosts *hosts, GString *out);
