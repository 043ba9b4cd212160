/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Hashes of ops by all that the simulator looks at: equal ones of two layers take equally long, as
 * far as 64 bits tell.
 */
#pragma once

#include "base/mix.h"
#include "program/program.h"

/* Of an op, but for what tells it from the same op of another layer. Hosts issue whole steps:
 * @first says whether it is the first op of one. */
uint64_t lh_op_hash(const LhProgram *program, const LhOp *op, const LhOpBuffer *buffer, bool first);
