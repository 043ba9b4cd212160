/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Hashes of ops by everything that affects the simulation: ops of two layers with equal hashes take
 * equally long, up to collisions of 64 bits.
 */
#pragma once

#include "base/mix.h"
#include "program/program.h"

/* Hashes an op, except for what distinguishes it from the same op of another layer. Hosts issue
 * whole steps: @first: it is the first op of one. */
uint64_t lh_op_hash(const LhProgram *program, const LhOp *op, const LhOpBuffer *buffer, bool first);
