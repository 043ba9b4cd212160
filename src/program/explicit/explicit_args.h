/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Kernel arguments of explicit programs.
 */
#pragma once

#include "program/explicit/explicit_fields.h"

/* lh_form_has_args: whether an op states any kernel arguments. lh_form_read_args: reads those of
 * compute op @op, whose kernel is already known. */
bool lh_form_has_args(const LhFormOp *form);
bool lh_form_read_args(const LhFormReader *r, const LhFormOp *form, LhOp *op);

/* Writes the arguments of compute op @op into @form, which holds defaults. Arguments equal to
 * @program's own are left out. */
void lh_form_note_args(const LhProgram *program, const LhOp *op, LhFormOp *form);

#define LH_FORM_ROWS_MAX 48

/* Rows of the op table, ended by a zero entry. */
typedef struct {
    LhField fields[LH_FORM_ROWS_MAX + 1];
    unsigned count;
} LhFormRows;

/* The order in which op fields are written. Arguments follow the order of their kind, which no
 * single table has: stride comes before heads in one kind and after them in another. */
typedef struct {
    LhFormRows of_op[LH_OP_KINDS];
    LhFormRows of_compute[LH_ARGS_KINDS], of_args[LH_ARGS_KINDS]; /* the arguments only */
    LhFormOp usual;                                               /* an op with all fields absent */
} LhFormOrder;

void lh_form_order_init(LhFormOrder *order);

/* Returns the rows of @op, ended by a zero entry; borrowed from @order. */
const LhField *lh_form_order_of(const LhFormOrder *order, const LhOp *op);
