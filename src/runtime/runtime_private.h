/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The steps of lh_execute(): setup and teardown of processes, devices and memory, the two engines,
 * and results.
 */
#pragma once

#include "runtime/execution.h"

/* Opens control plane, transport and devices, and fills the inputs. */
bool lh_execution_open(LhExecution *x, GError **error);

/* Runs the program over the backend's transport: the host and each stream of a rank are threads,
 * and one more thread watches them. */
void lh_execution_run_threads(LhExecution *x);

/* Runs the program by submitting it, over the backend's links. */
void lh_execution_submit(LhExecution *x);

/* Gathers the results of all ranks in the first process. Every process waits here until all have
 * finished, because results share the network with the messages of the others. */
LhRunResult *lh_execution_collect(LhExecution *x, GError **error);

/* Frees everything. */
void lh_execution_close(LhExecution *x);
