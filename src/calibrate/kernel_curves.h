/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rates and bandwidths of the kernels of a processor, fitted to their times at many sizes.
 */
#pragma once

#include "calibrate/calibration.h"
#include "runtime/process/processes.h"

/* Arguments of attention on one block of @n queries and @n keys that does not accumulate into an
 * earlier result: most schedules combine blocks afterwards. */
LhKernelArgs lh_calibrate_attention_args(uint64_t n, bool causal, uint32_t heads,
                                         uint32_t head_dim);

/* Arguments for @rows rows of queries, or of keys if the kernel works on those, with 32 heads. */
LhKernelArgs lh_calibrate_traffic_args(const LhKernel *kernel, uint64_t rows, uint32_t head_dim);

/* Whether memory traffic alone determines the kernel's time. */
bool lh_calibrate_is_elementwise(const LhKernel *kernel);

/* Fills in rates, traffic and memory bandwidth of @c, whose arrays must exist. @peak: of a core,
 * flop/s; INFINITY in processes whose fit is not used. All processes must call this. */
bool lh_calibrate_kernels(const LhCalibrateParams *params, const LhProcesses *processes,
                          double peak, LhCalibration *c, GError **error);
