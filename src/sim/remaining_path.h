/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lower bound of the remaining time of a rank after each of its ops: the longest chain of ops that
 * follow it. A run is abandoned as soon as the end of an op plus this bound exceeds its time limit.
 */
#pragma once

#include "base/units.h"
#include "program/program.h"

#include <glib.h>

typedef struct _LhRemainingPath LhRemainingPath;

/* Ops must be added in program order. */
LhRemainingPath *lh_remaining_path_new(void);

/* Adds @op with a lower bound of its time; for a sync, the host time after everything before it has
 * ended. */
void lh_remaining_path_add(LhRemainingPath *maker, const LhOp *op, LhTime takes_ps);

/* Frees the maker. Returns an LhTime for each op; the caller unrefs it. */
GArray *lh_remaining_path_end(LhRemainingPath *maker);
