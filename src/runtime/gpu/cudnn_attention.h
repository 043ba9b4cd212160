/*
 * cuDNN as a second provider of a GPU's kernels: of softmax attention, forward, and backward where
 * the call has o. What lies around it (blocks merged into sums, gradients added up, parts put
 * together) is done by longhaul's own kernels, as is everything else.
 */
#pragma once

#include "kernels/call.h"

#include <glib.h>
#include <stdbool.h>

/* The library and its version, for people: "9.19.0, /usr/lib/libcudnn.so.9"; NULL with @error if it
 * cannot be used. Caller frees. */
char *lh_cudnn_library(GError **error);

/* A GPU of this process with cuDNN's handle and plans, which runs and ranks share. */
typedef struct LhCudnnDevice LhCudnnDevice;

/* Of the current device, whose number is @ordinal; made by the first call, kept until the process
 * ends. LH_ERROR_RUNTIME: no cuDNN that can be used. */
LhCudnnDevice *lh_cudnn_device(int ordinal, GError **error);

/* Whether a call is cuDNN's to compute, or to refuse: attention of some queries with some keys. */
bool lh_cudnn_computes(LhKernelId kernel, const LhKernelArgs *args);

/* What the call needs of scratch memory, the workspace of its plans included. Makes these plans if
 * the device has not yet any of their shape, which takes up to a second each. */
uint64_t lh_cudnn_scratch_bytes(LhCudnnDevice *device, LhKernelId kernel, const LhCall *call);

/* As LhCudaKernel.run. LH_STATUS_UNSUPPORTED: cuDNN does not compute such calls. */
enum lh_status lh_cudnn_call(LhCudnnDevice *device, LhKernelId kernel, const LhCall *call,
                             void *stream);

/* Why the last call was not OK; NULL: nothing is known. Caller frees. */
char *lh_cudnn_why(LhCudnnDevice *device);
