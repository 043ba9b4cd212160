/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Closed forms of a training step, and the ops of a rank.
 */
#pragma once

#include "program/program.h"
#include "report/base/table.h"

/* Appends parameters and flops of the step, and compute, traffic and memory by rank: from closed
 * forms (step/formulas.h), which the program is proven to satisfy. */
void lh_describe_step_forms(const LhProgram *program, GString *out);

/* Table with a row per op of @rank that computes, communicates or waits, in the order of launch;
 * caller frees. */
LhTable *lh_step_ops_table(const LhProgram *program, uint32_t rank);
