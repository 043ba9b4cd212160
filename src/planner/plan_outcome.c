/* SPDX-License-Identifier: Apache-2.0 */
#include "planner/plan_outcome.h"

const char *const lh_point_state_names[] = { "open",    "simulated", "cut", "unfit",
                                             "refused", "failed",    NULL };
