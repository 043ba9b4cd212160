/* SPDX-License-Identifier: Apache-2.0 */
/*
 * GPUs of this process with cuDNN: its library, its handle on each, and the plans that were made
 * there.
 */
#pragma once

#include <glib.h>

/* The library and its version, for people: "9.19.0, /usr/lib/libcudnn.so.9"; NULL with @error if it
 * cannot be used. Caller frees. */
char *lh_cudnn_library(GError **error);

/* A GPU of this process with cuDNN's handle and plans, which runs and ranks share. */
typedef struct LhCudnnDevice LhCudnnDevice;

/* Of the current device, whose number is @ordinal; made by the first call, kept until the process
 * ends. LH_ERROR_RUNTIME: no cuDNN that can be used. */
LhCudnnDevice *lh_cudnn_device(int ordinal, GError **error);

/* Why the last call was not OK; NULL: nothing is known. Caller frees. */
char *lh_cudnn_why(LhCudnnDevice *device);
