/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Classification of GPU kernels and collectives by their names in profilers.
 */
#pragma once

#include "import/trace/gpu_trace.h"

/* "attention forward", ...; NULL-terminated. */
extern const char *const lh_gpu_trace_class_names[];

/* Class of a kernel called @name. Sets @transfer; LH_GPU_TRACE_UNKNOWN if it does not communicate
 * or the name does not tell what it moves. */
LhGpuTraceClass lh_gpu_trace_class(const char *name, uint8_t *transfer);

/* Transfer of a collective by a profiler's name ("_allgather_base", "all_to_allv");
 * LH_GPU_TRACE_UNKNOWN for unknown names. */
uint8_t lh_gpu_trace_transfer(const char *name);
