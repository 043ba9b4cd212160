/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds the single cause that explains a log of nccl-tests.
 */
#pragma once

#include "collective_check/log_check.h"

/* Fills in the causes; part of lh_log_check_new(). */
void lh_log_causes_find(LhLogCheck *held);
