/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names of programs, ranks and ops in tables and figures.
 */
#pragma once

#include "scenario/setup.h"

/* "training step", or "prefill" for a forward pass alone; @setup is of a step. */
const char *lh_step_word(const LhSetup *setup);

/* "ring: attention of llama-7b, 4,096 tokens on 8 ranks", or "ring: training step of ...": title of
 * a figure of @program with row @name; caller frees. */
char *lh_describe_program(const LhSetup *setup, const char *name, const LhProgram *program);

/* "16 ranks", or "2 groups of 8 ranks (data parallel)"; for a step all of its ranks; caller
 * frees. */
char *lh_describe_all_ranks(const LhSetup *setup);

/* "op 12 (backward, layer 3, micro-batch 0)", or "before the first op"; caller frees. */
char *lh_describe_memory_op(const LhMemoryOp *op);
