/*
 * What calibrating processors (calibrate.c) and GPUs (calibrate_gpu.c) share.
 */
#pragma once

#include "plan/calibrate.h"

/* A block of its own: most schedules add blocks up afterwards. */
LhKernelArgs lh_calibrate_attention_args(uint64_t n, bool causal, uint32_t heads,
                                         uint32_t head_dim);

/* On so many rows of queries, or of keys where the kernel works on those. */
LhKernelArgs lh_calibrate_traffic_args(const LhKernel *kernel, uint64_t rows);

/* Whether the kernel's time is what its memory traffic takes. */
bool lh_calibrate_is_elementwise(const LhKernel *kernel);

/* As lh_calibrate(), of a backend with GPUs. */
LhCalibration *lh_calibrate_gpus(const LhCalibrateParams *params, GError **error);
