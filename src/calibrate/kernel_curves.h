/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rates and bandwidths of the kernels of a processor, by how long they take in many sizes.
 */
#pragma once

#include "calibrate/calibration.h"
#include "runtime/process/processes.h"

/* A block of its own: most schedules add blocks up afterwards. */
LhKernelArgs lh_calibrate_attention_args(uint64_t n, bool causal, uint32_t heads,
                                         uint32_t head_dim);

/* On so many rows of queries, or of keys where the kernel works on those: of 32 heads each. */
LhKernelArgs lh_calibrate_traffic_args(const LhKernel *kernel, uint64_t rows, uint32_t head_dim);

/* Whether the kernel's time is what its memory traffic takes. */
bool lh_calibrate_is_elementwise(const LhKernel *kernel);

/* Fills in rates, traffic and memory bandwidth of @c, whose arrays are there. @peak: of a core,
 * flop/s; INFINITY where nobody asks for what is fitted. All processes call it. */
bool lh_calibrate_kernels(const LhCalibrateParams *params, const LhProcesses *processes,
                          double peak, LhCalibration *c, GError **error);
