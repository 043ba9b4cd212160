/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What GPU kernels and collectives are, by the names that profilers show.
 */
#pragma once

#include "import/trace/gpu_trace.h"

/* "attention forward", ...; NULL-terminated. */
extern const char *const lh_gpu_trace_class_names[];

/* What a kernel called @name is; sets @transfer (LH_GPU_TRACE_UNKNOWN if it does not communicate,
 * or the name does not say what). */
LhGpuTraceClass lh_gpu_trace_class(const char *name, uint8_t *transfer);

/* What profilers call a collective ("_allgather_base", "all_to_allv"): LH_GPU_TRACE_UNKNOWN if it
 * is none that is known. */
uint8_t lh_gpu_trace_transfer(const char *name);
