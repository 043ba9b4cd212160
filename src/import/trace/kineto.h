/* SPDX-License-Identifier: Apache-2.0 */
/* Traces of PyTorch's profiler, and longhaul's own in Chrome's format. */
#pragma once

#include "import/trace/gpu_trace.h"

/* How long a packed trace may be when it is unpacked, unless a run says otherwise: the larger of
 * both. */
#define LH_KINETO_RATIO_MAX 100
#define LH_KINETO_UNPACKED_MIB 64
#define LH_KINETO_UNPACKED                                                                         \
    G_STRINGIFY(LH_KINETO_RATIO_MAX)                                                               \
    " times what is read of the file, or " G_STRINGIFY(LH_KINETO_UNPACKED_MIB) " MiB"

/* As lh_gpu_trace_load, of JSON alone: of a file, or of what is there of one. */
bool lh_kineto_load(LhGpuTraceRun *run, const char *path, GError **error);
bool lh_kineto_parse(LhGpuTraceRun *run, const char *file, const char *text, gsize length,
                     GError **error);
