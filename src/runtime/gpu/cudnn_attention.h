/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cuDNN as a second provider of a GPU's kernels: softmax attention, forward, and backward if the
 * call has o. longhaul's own kernels do the work around it (merging blocks, accumulating gradients,
 * gathering parts) and everything else.
 */
#pragma once

#include "kernels/call.h"
#include "runtime/gpu/cudnn_device.h"

#include <stdbool.h>

/* Whether cuDNN computes, or rejects, the call: attention with at least one query and one key. */
bool lh_cudnn_computes(LhKernelId kernel, const LhKernelArgs *args);

/* Scratch memory of the call, including the workspace of its plans. Creates missing plans for its
 * shapes, up to a second each. */
uint64_t lh_cudnn_scratch_bytes(LhCudnnDevice *device, LhKernelId kernel, const LhCall *call);

/* As LhCudaKernel.run. LH_STATUS_UNSUPPORTED: cuDNN does not support the call. */
enum lh_status lh_cudnn_call(LhCudnnDevice *device, LhKernelId kernel, const LhCall *call,
                             void *stream);
