/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What messages call ops and parts of slots, the same whoever speaks: verifier, simulator, runtime.
 */
#pragma once

#include "program/program.h"

/* "attention_fwd", "all-gather", "exchange"; borrowed. */
const char *lh_op_name(const LhOp *op);

/* "op 12 (exchange, stream comm)"; caller frees. What does not exist is left out. */
char *lh_op_text(const LhProgram *program, const LhOp *op);

/* "kv_a", or "kv_a[3]" when the slot has several parts; caller frees. */
char *lh_cell_text(const LhProgram *program, uint32_t slot, uint32_t part);

/* "", ":k" or ":v", by LhHalf. */
extern const char *const lh_half_suffixes[];

/* "kv" for a whole slot, "kv[1]" for a part, "kv[1..2]" for several, and ":k" or ":v" behind it for
 * one half: as in files. Caller frees. */
char *lh_region_text(const LhProgram *program, const LhRegion *region);
