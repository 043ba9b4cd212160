/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A stand-in for NVIDIA's driver, libcuda.so.1, with which cuDNN can finalise plans on a machine
 * without a GPU. For a described device cuDNN generates the machine code of a plan itself, but no
 * engine can do so without loading a driver. This driver has no device. Everything else that cuDNN
 * and its compilers look up is rejected, and its name kept.
 *
 * CUDA's header is not included, since rejected functions have no arguments here.
 */
#include "driver.h"

/* Values of CUresult. */
#define SUCCESS 0
#define NO_DEVICE 100
#define NOT_SUPPORTED 801

/* Functions that cuDNN 9.19 and NVRTC 13 look up without needing them for this. */
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

/* Tables without a public header: NVRTC requests one and continues without it. */
int
cuGetExportTable(const void **table, const void *id)
{
    (void)table;
    (void)id;
    return NOT_SUPPORTED;
}
