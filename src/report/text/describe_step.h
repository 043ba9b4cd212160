/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a training step amounts to, and what a rank does in it.
 */
#pragma once

#include "program/program.h"
#include "report/base/table.h"

/* Parameters and flops of the step, and by rank what it computes, sends and holds: from closed
 * forms (step/formulas.h), which its program is proven to keep. */
void lh_describe_step_forms(const LhProgram *program, GString *out);

/* One row for each op of @rank that computes, communicates or waits, in the order in which its host
 * issues them; caller frees. */
LhTable *lh_step_ops_table(const LhProgram *program, uint32_t rank);
