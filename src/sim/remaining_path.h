/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How long a rank takes at least from the end of each of its ops on: the longest chain of ops that
 * follow it. A run in which an op ends so late that this leads beyond what it may take can be given
 * up at once.
 */
#pragma once

#include "base/units.h"
#include "program/program.h"

#include <glib.h>

typedef struct _LhRemainingPath LhRemainingPath;

/* Ops are added in the order of the program. */
LhRemainingPath *lh_remaining_path_new(void);

/* @op, which takes so long at least; of a sync, the host after all that was before it. */
void lh_remaining_path_add(LhRemainingPath *maker, const LhOp *op, LhTime takes_ps);

/* Frees the maker. An LhTime for each op, which the caller unrefs. */
GArray *lh_remaining_path_end(LhRemainingPath *maker);
