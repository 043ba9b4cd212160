/* SPDX-License-Identifier: Apache-2.0 */
/* Stand-in for cuDNN in a build without its headers. */
#include "runtime/gpu/cudnn_attention.h"

#include "base/error.h"

static void
set_absent(GError **error)
{
    g_set_error_literal(error, LH_ERROR, LH_ERROR_RUNTIME,
                        "cuDNN: this longhaul was built without it (cudnn_graph.h was not found)");
}

char *
lh_cudnn_library(GError **error)
{
    set_absent(error);
    return NULL;
}

LhCudnnDevice *
lh_cudnn_device(int ordinal, GError **error)
{
    (void)ordinal;
    set_absent(error);
    return NULL;
}

bool
lh_cudnn_computes(LhKernelId kernel, const LhKernelArgs *args)
{
    (void)kernel;
    (void)args;
    return false;
}

uint64_t
lh_cudnn_scratch_bytes(LhCudnnDevice *device, LhKernelId kernel, const LhCall *call)
{
    (void)device;
    (void)kernel;
    (void)call;
    return 0;
}

enum lh_status
lh_cudnn_call(LhCudnnDevice *device, LhKernelId kernel, const LhCall *call, void *stream)
{
    (void)device;
    (void)kernel;
    (void)call;
    (void)stream;
    return LH_STATUS_UNSUPPORTED;
}

char *
lh_cudnn_why(LhCudnnDevice *device)
{
    (void)device;
    return NULL;
}
