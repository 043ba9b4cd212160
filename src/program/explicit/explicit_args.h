/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The arguments of the kernels of explicit programs.
 */
#pragma once

#include "program/explicit/explicit_fields.h"

/* Whether an op has any; those of the kernel that a compute op has found already. */
bool lh_form_has_args(const LhFormOp *form);
bool lh_form_read_args(const LhFormReader *r, const LhFormOp *form, LhOp *op);

/* Notes in @form, of which nothing has been said, the arguments of the compute op @op; those that
 * @program says as well, not. */
void lh_form_note_args(const LhProgram *program, const LhOp *op, LhFormOp *form);

#define LH_FORM_ROWS_MAX 48

/* Rows of the table of ops; behind them, a zero entry. */
typedef struct {
    LhField fields[LH_FORM_ROWS_MAX + 1];
    unsigned count;
} LhFormRows;

/* The order in which ops are written. Arguments stand in that of their kind, which no single table
 * has: stride is before heads in one, and behind them in another. */
typedef struct {
    LhFormRows of_op[LH_OP_KINDS];
    LhFormRows of_compute[LH_ARGS_KINDS],
        of_args[LH_ARGS_KINDS]; /* of these, the arguments alone */
    LhFormOp usual;             /* an op of which nothing has been said */
} LhFormOrder;

void lh_form_order_init(LhFormOrder *order);

/* The rows of @op, ended by a zero entry; borrowed from @order. */
const LhField *lh_form_order_of(const LhFormOrder *order, const LhOp *op);
