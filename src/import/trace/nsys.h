/* SPDX-License-Identifier: Apache-2.0 */
/* Databases that Nsight Systems exports (nsys export --type sqlite). */
#pragma once

#include "import/trace/gpu_trace.h"

/*
 * Adds what the database has. Each process is a rank: that which NCCL's ranges say, else the number
 * of ranks before it. LH_ERROR_INPUT, with file, table and column, if it is none of nsys, or
 * longhaul was built without SQLite.
 */
bool lh_nsys_load(LhGpuTraceRun *run, const char *path, GError **error);
