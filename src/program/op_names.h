/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names of ops and regions in messages, shared by verifier, simulator and runtime.
 */
#pragma once

#include "program/program.h"

/* "attention_fwd", "all-gather", "exchange"; borrowed. */
const char *lh_op_name(const LhOp *op);

/* "op 12 (exchange, stream comm)". An unknown stream is left out. Caller frees. */
char *lh_op_text(const LhProgram *program, const LhOp *op);

/* "kv_a", or "kv_a[3]" if the slot has several parts. Caller frees. */
char *lh_cell_text(const LhProgram *program, uint32_t slot, uint32_t part);

/* "", ":k" or ":v", indexed by LhHalf. */
extern const char *const lh_half_suffixes[];

/* A region as written in files: "kv" for a whole slot, "kv[1]" for a part, "kv[1..2]" for
 * several, with a suffix ":k" or ":v" for one half. Caller frees. */
char *lh_region_text(const LhProgram *program, const LhRegion *region);
