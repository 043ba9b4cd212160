/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Explicit programs: every op of every rank in memory, read from JSON (longhaul.schedule/1). They
 * are read through cursors like any other program.
 */
#pragma once

#include "base/json/json.h"
#include "program/program.h"

/* The name of the format, as it stands in a file. */
#define LH_EXPLICIT_SCHEMA "longhaul.schedule/1"

/* Ops of a program in the explicit form, and messages; more are refused when reading and writing.
 */
#define LH_EXPLICIT_OPS_MAX (UINT32_C(1) << 20)
#define LH_EXPLICIT_PARTS_MAX (UINT32_C(1) << 21)

/* --- for the files of the form ------------------------------------------------------------------
 */

/* The program of one rank. Ops that follow each other with the same phase and step are a step. */
typedef struct {
    LhOp *ops; /* exchange.parts_first indexes parts, collective.counts_first counts */
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

/* The generator of explicit programs, whose plan is an LhExplicit. */
extern const LhGenerator lh_explicit_generator;
void lh_explicit_free(gpointer explicit_ops); /* an LhExplicit; NULL is allowed */

/* The pairs of a mask over nq x nk, which a file need not state. Both at most 2^31. */
uint64_t lh_explicit_pairs(LhMaskKind mask, int64_t shift, uint64_t nq, uint64_t nk);
