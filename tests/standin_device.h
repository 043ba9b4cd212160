/*
 * The kernels of the processor on the streams of the stand-in for CUDA: every schedule runs as on
 * GPUs, with every access held against the order that streams and events give, in little time.
 */
#pragma once

#include "runtime/backend.h"

extern const LhRunDevice standin_cpu_device;
