/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A kernel, asked for on a stream with the scratch memory that it needs.
 */
#pragma once

#include "runtime/execution.h"

/* False: the run has failed. */
bool lh_run_kernel(LhRunStream *stream, LhItem *item, LhKernelId kernel, LhCall *call);
