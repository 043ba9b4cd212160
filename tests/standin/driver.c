/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A stand-in for NVIDIA's driver, libcuda.so.1, under which cuDNN finishes its plans on a machine
 * without a GPU: for a device that is only described it makes the machine code of a plan itself,
 * but no engine of it can do so without a driver to load. This one has no device. Everything else
 * that cuDNN and the compilers that it brings look up is refused, and its name kept.
 *
 * CUDA's header is left out, as functions that are refused have no arguments here.
 */
#include "driver.h"

/* Values of CUresult. */
#define SUCCESS 0
#define NO_DEVICE 100
#define NOT_SUPPORTED 801

/* What cuDNN 9.19 and NVRTC 13 look up and do not need for this. */
#define REFUSED(F)                                                                                 \
    F(cuCtxGetCurrent)                                                                             \
    F(cuCtxGetDevice)                                                                              \
    F(cuCtxGetLimit)                                                                               \
    F(cuCtxPopCurrent)                                                                             \
    F(cuCtxPushCurrent)                                                                            \
    F(cuDeviceGet)                                                                                 \
    F(cuDeviceGetAttribute)                                                                        \
    F(cuDevicePrimaryCtxRelease)                                                                   \
    F(cuDevicePrimaryCtxReset)                                                                     \
    F(cuDevicePrimaryCtxRetain)                                                                    \
    F(cuDriverGetVersion)                                                                          \
    F(cuFuncGetAttribute)                                                                          \
    F(cuFuncSetAttribute)                                                                          \
    F(cuGetErrorName)                                                                              \
    F(cuKernelGetAttribute)                                                                        \
    F(cuKernelSetAttribute)                                                                        \
    F(cuLaunchCooperativeKernel)                                                                   \
    F(cuLaunchKernel)                                                                              \
    F(cuLaunchKernelEx)                                                                            \
    F(cuLibraryGetKernel)                                                                          \
    F(cuLibraryLoadData)                                                                           \
    F(cuLibraryLoadFromFile)                                                                       \
    F(cuLibraryUnload)                                                                             \
    F(cuLinkAddData)                                                                               \
    F(cuLinkAddData_v2)                                                                            \
    F(cuLinkAddFile_v2)                                                                            \
    F(cuLinkComplete)                                                                              \
    F(cuLinkCreate)                                                                                \
    F(cuLinkCreate_v2)                                                                             \
    F(cuLinkDestroy)                                                                               \
    F(cuMemcpyDtoH_v2)                                                                             \
    F(cuModuleGetFunction)                                                                         \
    F(cuModuleGetGlobal_v2)                                                                        \
    F(cuModuleLoadData)                                                                            \
    F(cuModuleLoadDataEx)                                                                          \
    F(cuModuleLoadFatBinary)                                                                       \
    F(cuModuleUnload)                                                                              \
    F(cuOccupancyMaxActiveBlocksPerMultiprocessor)                                                 \
    F(cuOccupancyMaxPotentialClusterSize)                                                          \
    F(cuStreamGetCtx)                                                                              \
    F(cuStreamSynchronize)                                                                         \
    F(cuTensorMapEncodeTiled)

static const char *refused = "";

const char *
standin_driver_refused(void)
{
    return refused;
}

#define REFUSE(name)                                                                               \
    int name(void);                                                                                \
    int name(void)                                                                                 \
    {                                                                                              \
        refused = #name;                                                                           \
        return NOT_SUPPORTED;                                                                      \
    }
REFUSED(REFUSE)
#undef REFUSE

int cuInit(unsigned flags);
int cuDeviceGetCount(int *count);
int cuGetErrorString(int error, const char **text);
int cuGetExportTable(const void **table, const void *id);

int
cuInit(unsigned flags)
{
    (void)flags;
    return SUCCESS;
}

int
cuDeviceGetCount(int *count)
{
    *count = 0;
    return NO_DEVICE;
}

int
cuGetErrorString(int error, const char **text)
{
    *text = error == SUCCESS     ? "no error"
            : error == NO_DEVICE ? "no device"
                                 : "the stand-in refuses this";
    return SUCCESS;
}

/* Tables that no header has: NVRTC asks for one, and goes on without it. */
int
cuGetExportTable(const void **table, const void *id)
{
    (void)table;
    (void)id;
    return NOT_SUPPORTED;
}
