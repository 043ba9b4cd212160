/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Counted work of an op: bytes sent and attention flops. The verifier compares the sums with closed
 * forms, and the runtime compares its own counts with these.
 */
#pragma once

#include "program/program.h"

/* The activation type of a compute op: the type of its first operand that is an activation, or
 * that may be of either type and is not fp32; otherwise the program's. */
LhDtype lh_op_activation(const LhProgram *program, const LhOp *op);

/* Bytes sent over the network: those of a message's regions; and a rank's contribution to tensor
 * @tensor of a collective. The contribution is what it sends; for a reduce-scatter what it
 * receives, for an all-reduce the share that it reduces. */
uint64_t lh_part_wire_bytes(const LhProgram *program, const LhPart *part);
uint64_t lh_tensor_wire_bytes(const LhProgram *program, const LhOp *op, uint32_t tensor);

/* Flops of attention kernels; 0 for all other ops. */
uint64_t lh_op_flops(const LhOp *op);

/* Flops of products of activations with weights; 0 for all other ops. */
uint64_t lh_op_dense_flops(const LhOp *op);

/*
 * Bytes @rank sends over the network in @op, a collective by its bandwidth-optimal algorithm.
 * @parts and @counts are the lists that the op indexes.
 */
uint64_t lh_op_bytes_sent(const LhProgram *program, const LhOp *op, const LhPart *parts,
                          const uint32_t *counts, uint32_t rank);
