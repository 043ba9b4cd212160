/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What lh_execute() is made of: processes, devices and memory of a run, the two engines, and
 * results.
 */
#pragma once

#include "runtime/execution.h"

/* Opens control plane, transport and devices, and fills the inputs. */
bool lh_execution_open(LhExecution *x, GError **error);

/* Runs the program over the backend's transport: of every rank a host and its streams are threads,
 * and one more watches over them. */
void lh_execution_run_threads(LhExecution *x);

/* Runs the program by submitting it, over the backend's links. */
void lh_execution_submit(LhExecution *x);

/* The results of all ranks, in the first process. Every process waits here until all have ended:
 * results go over the network that the messages of the others have. */
LhRunResult *lh_execution_collect(LhExecution *x, GError **error);

/* Gives everything back. */
void lh_execution_close(LhExecution *x);
