/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What kernels take by what they are asked to do, where the processor's stand for the GPU's.
 */
#pragma once

#include "kernels/kernel.h"

/* Seconds of a call that has the device for itself, in place of StandinTimes.kernel; NULL: none. */
extern double (*standin_call_seconds)(LhKernelId kernel, const LhKernelArgs *args);
