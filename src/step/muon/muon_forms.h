/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Closed forms of Muon, from the model and the parallel sizes alone.
 */
#pragma once

#include "step/graph.h"

/* Flops of the products of a rank's Newton-Schulz steps. */
uint64_t lh_muon_flops(const LhStepPlan *plan, uint32_t rank);

/* Bytes that a rank sends to gather slices of its matrices from tensor-parallel ranks; and to
 * exchange pieces with data- and context-parallel ranks. */
uint64_t lh_muon_tensor_sent(const LhStepPlan *plan, uint32_t rank);
uint64_t lh_muon_data_sent(const LhStepPlan *plan, uint32_t rank);
