/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cuDNN on the GPUs of this process: the library, its handle on each GPU, and the plans made there.
 */
#pragma once

#include <glib.h>

/* Version and file of the library, for people: "9.19.0, /usr/lib/libcudnn.so.9"; NULL with @error
 * if it cannot be used. Caller frees. */
char *lh_cudnn_library(GError **error);

/* A GPU with its cuDNN handle and plans, shared by runs and ranks. */
typedef struct LhCudnnDevice LhCudnnDevice;

/* The entry of the current device, whose number is @ordinal; created by the first call, kept until
 * the process ends. LH_ERROR_RUNTIME: no usable cuDNN. */
LhCudnnDevice *lh_cudnn_device(int ordinal, GError **error);

/* Why the last call failed; NULL: unknown. Caller frees. */
char *lh_cudnn_why(LhCudnnDevice *device);
