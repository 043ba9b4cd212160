/* SPDX-License-Identifier: Apache-2.0 */
/* Time of kernels by their call, for CPU kernels in place of the GPU's. */
#pragma once

#include "kernels/kernel.h"

/* Seconds of a call that has the device to itself; replaces StandinTimes.kernel. NULL: unused. */
extern double (*standin_call_seconds)(LhKernelId kernel, const LhKernelArgs *args);
