/* SPDX-License-Identifier: Apache-2.0 */
/* Reader of databases exported by Nsight Systems (nsys export --type sqlite). */
#pragma once

#include "import/trace/gpu_trace.h"

/*
 * Adds the contents of the database. Each process is a rank: the one in NCCL's ranges, else the
 * number of ranks before it. LH_ERROR_INPUT, with file, table and column, if it is not a database
 * of nsys, or if longhaul was built without SQLite.
 */
bool lh_nsys_load(LhGpuTraceRun *run, const char *path, GError **error);
