/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Enqueues a kernel on a stream, with the scratch memory that it needs.
 */
#pragma once

#include "runtime/execution.h"

/* False if the run has failed. */
bool lh_run_kernel(LhRunStream *stream, LhItem *item, LhKernelId kernel, LhCall *call);
