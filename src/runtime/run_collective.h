/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Collectives as rounds of messages, or by the library of the links.
 */
#pragma once

#include "runtime/execution.h"

/* Like the functions of an op (run_op.h). */
bool lh_collective_begin_round(LhRunStream *stream, LhItem *item);
bool lh_collective_end_round(LhItem *item);
bool lh_collective_has_round(const LhItem *item);
