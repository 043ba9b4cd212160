/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Describes what ranks wait for when nothing moves: the op, the peer and the slot.
 */
#pragma once

#include "runtime/execution.h"

/* The ranks of other processes whose messages this process's ranks wait for, each once: a GArray of
 * uint32_t. Caller unrefs. */
GArray *lh_execution_awaited(LhExecution *x);
/* Reports the progress of this process's ranks over the control plane: once a second, or at once
 * with @now, which is used before a run is stopped, after which they wait for nobody. Called by the
 * thread that opened the control plane. */
void lh_execution_say_standing(LhExecution *x, bool now);

/* Describes what the blocked ranks among @count ranks of this process, from its rank @first on,
 * wait for. Caller frees. */
char *lh_execution_describe_blocked(LhExecution *x, uint32_t first, uint32_t count);
