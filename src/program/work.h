/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What an op does that is counted: bytes sent and flops of attention. The verifier holds the sums
 * against closed forms, and the runtime what it has done against these.
 */
#pragma once

#include "program/program.h"

/* The type of a compute op's activations: that of the first operand which has it by its rule, or
 * which may be of either type and is not fp32; else the program's. */
LhDtype lh_op_activation(const LhProgram *program, const LhOp *op);

/* What crosses the network: the bytes of a message's regions; and what a rank contributes to tensor
 * @tensor of a collective, which is what it sends, but to a reduce-scatter what it gets, and to an
 * all-reduce the share that it adds up. */
uint64_t lh_part_wire_bytes(const LhProgram *program, const LhPart *part);
uint64_t lh_tensor_wire_bytes(const LhProgram *program, const LhOp *op, uint32_t tensor);

/* Of kernels of attention; 0 of all other ops. */
uint64_t lh_op_flops(const LhOp *op);

/* Of products of activations with weights; 0 of all other ops. */
uint64_t lh_op_dense_flops(const LhOp *op);

/*
 * What @rank sends over the network in @op, a collective by its bandwidth-optimal algorithm. @parts
 * and @counts are the lists that the op indexes.
 */
uint64_t lh_op_bytes_sent(const LhProgram *program, const LhOp *op, const LhPart *parts,
                          const uint32_t *counts, uint32_t rank);
