/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Explicit programs: every op of every rank in memory, read from JSON (longhaul.schedule/1). They
 * are read through cursors like any other program.
 */
#pragma once

#include "base/json/json.h"
#include "program/program.h"

/* Schema name of the format. */
#define LH_EXPLICIT_SCHEMA "longhaul.schedule/1"

/* Limits on the ops and messages of an explicit program; files beyond them are neither read nor
 * written. */
#define LH_EXPLICIT_OPS_MAX (UINT32_C(1) << 20)
#define LH_EXPLICIT_PARTS_MAX (UINT32_C(1) << 21)

/* --- internal to the files of the form
 * ---------------------------------------------------------- */

/* The program of one rank. Consecutive ops with the same phase and step form one step. */
typedef struct {
    LhOp *ops; /* exchange.parts_first indexes parts, collective.counts_first indexes counts */
    uint32_t ops_count;
    LhPart *parts;
    uint32_t parts_count;
    uint32_t *counts;
    uint32_t counts_count;
    uint32_t steps_count;
} LhExplicitRank;

typedef struct {
    LhExplicitRank *ranks;
    uint32_t ranks_count;
} LhExplicit;

/* The generator of explicit programs; its plan is an LhExplicit. */
extern const LhGenerator lh_explicit_generator;
void lh_explicit_free(gpointer explicit_ops); /* an LhExplicit; NULL is allowed */

/* The number of unmasked pairs of an nq x nk block (both at most 2^31), for files that omit it. */
uint64_t lh_explicit_pairs(LhMaskKind mask, int64_t shift, uint64_t nq, uint64_t nk);
