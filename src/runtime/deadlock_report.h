/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a rank says when nothing moves: the op, the peer and the slot that it waits for.
 */
#pragma once

#include "runtime/execution.h"

/* The other ranks whose messages this process's ranks wait for, each once: a GArray of uint32_t.
 * Caller unrefs. */
GArray *lh_execution_awaited(LhExecution *x);
/* Says by the control plane what the ranks of this process are at, once a second or @now: before a
 * run is stopped, after which they wait for nobody. The thread that opened it calls it. */
void lh_execution_say_standing(LhExecution *x, bool now);

/* What the blocked ones wait for of @count ranks of this process from its rank @first on. Caller
 * frees. */
char *lh_execution_describe_blocked(LhExecution *x, uint32_t first, uint32_t count);
