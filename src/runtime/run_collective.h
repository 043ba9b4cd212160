/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Collectives made of messages, round by round, or asked for of the library that links have.
 */
#pragma once

#include "runtime/execution.h"

/* As those of an op (run_op.h). */
bool lh_collective_begin_round(LhRunStream *stream, LhItem *item);
bool lh_collective_end_round(LhItem *item);
bool lh_collective_has_round(const LhItem *item);
