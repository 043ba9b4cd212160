/*
 * Explicit programs: every op of every rank in memory, read from JSON (longhaul.schedule/1).
 */
#pragma once

#include "sched/ir.h"

/* The name of the format, as it stands in a file. */
#define LH_EXPLICIT_SCHEMA "longhaul.schedule/1"

/* Ops of a program in the explicit form, and messages; more are refused when reading and writing.
 */
#define LH_EXPLICIT_OPS_MAX (UINT32_C(1) << 20)
#define LH_EXPLICIT_PARTS_MAX (UINT32_C(1) << 21)

typedef struct {
    LhOp *ops; /* exchange.parts_first indexes parts */
    uint32_t ops_count;
    LhPart *parts;
    uint32_t parts_count;
} LhExplicitRank;

typedef struct {
    LhExplicitRank *ranks;
    uint32_t ranks_count;
} LhExplicit;

extern const char *const lh_reduction_names[];
extern const char *const lh_mask_names[];
extern const char *const lh_role_names[];
extern const char *const lh_stream_kind_names[];

void lh_explicit_free(LhExplicit *explicit_ops); /* NULL is allowed */

/* lh_cursor_step for an explicit program: ops that follow each other with the same phase and step
 * are a step.
 * @buffer is empty on entry. */
bool lh_explicit_step(LhCursor *cursor, LhOpBuffer *buffer);

/* The pairs of a mask over nq x nk, which a file need not state. Both at most 2^31. */
uint64_t lh_explicit_pairs(LhMaskKind mask, int64_t shift, uint64_t nq, uint64_t nk);
