/* SPDX-License-Identifier: Apache-2.0 */
/* Reader of PyTorch profiler traces, and of longhaul's own traces in Chrome's format. */
#pragma once

#include "import/trace/gpu_trace.h"

/* Default limits of the decompressed size of a trace; the larger one applies. */
#define LH_KINETO_RATIO_MAX 100
#define LH_KINETO_UNPACKED_MIB 64
#define LH_KINETO_UNPACKED                                                                         \
    G_STRINGIFY(LH_KINETO_RATIO_MAX)                                                               \
    " times the compressed size read, or " G_STRINGIFY(LH_KINETO_UNPACKED_MIB) " MiB"

/* lh_gpu_trace_load() for JSON only: from a file, or from text in memory. */
bool lh_kineto_load(LhGpuTraceRun *run, const char *path, GError **error);
bool lh_kineto_parse(LhGpuTraceRun *run, const char *file, const char *text, gsize length,
                     GError **error);
