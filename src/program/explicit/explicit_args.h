/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The arguments of the kernels of explicit programs.
 */
#pragma once

#include "program/explicit/explicit_fields.h"

/* Whether an op has any; those of the kernel that a
 * compute op has found already; and writing them. */
bool lh_form_has_args(const LhFormOp *form);
bool lh_form_read_args(const LhFormReader *r, const LhFormOp *form, LhOp *op);
void lh_form_write_args(LhJsonWriter *w, const LhProgram *program, const LhOp *op);
