/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cuDNN as a second provider of a GPU's kernels: of softmax attention, forward, and backward where
 * the call has o. What lies around it (blocks merged into sums, gradients added up, parts put
 * together) is done by longhaul's own kernels, as is everything else.
 */
#pragma once

#include "kernels/call.h"
#include "runtime/gpu/cudnn_device.h"

#include <stdbool.h>

/* Whether a call is cuDNN's to compute, or to refuse: attention of some queries with some keys. */
bool lh_cudnn_computes(LhKernelId kernel, const LhKernelArgs *args);

/* What the call needs of scratch memory, the workspace of its plans included. Makes these plans if
 * the device has not yet any of their shape, which takes up to a second each. */
uint64_t lh_cudnn_scratch_bytes(LhCudnnDevice *device, LhKernelId kernel, const LhCall *call);

/* As LhCudaKernel.run. LH_STATUS_UNSUPPORTED: cuDNN does not compute such calls. */
enum lh_status lh_cudnn_call(LhCudnnDevice *device, LhKernelId kernel, const LhCall *call,
                             void *stream);
