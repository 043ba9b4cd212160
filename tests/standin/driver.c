/*
 * A stand-in for NVIDIA's driver, libcuda.so.1, under which cuDNN finishes its plans on a machine
 * without a GPU. For a device that is only described, cuDNN makes the machine code of a plan itself
 * and then asks the driver to load it and to find its kernels; that much is here. There is no
 * device, and nothing runs: every other function that cuDNN looks up is refused, and its name kept.
 *
 * CUDA's header is left out, as functions that are refused have no arguments here.
 */
#include "driver.h"

#include <stdio.h>
#include <string.h>

/* Values of CUresult. */
#define SUCCESS 0
#define NO_DEVICE 100
#define INVALID_IMAGE 200
#define NOT_SUPPORTED 801

/* What cuDNN 9.19 looks up and does not need for this. */
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
    F(cuGetExportTable)                                                                            \
    F(cuKernelGetAttribute)                                                                        \
    F(cuKernelSetAttribute)                                                                        \
    F(cuLaunchCooperativeKernel)                                                                   \
    F(cuLaunchKernel)                                                                              \
    F(cuLaunchKernelEx)                                                                            \
    F(cuLibraryLoadFromFile)                                                                       \
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

static StandinDriverLog log_now;

/* Handles are never looked into. */
static char a_library, a_kernel;

void standin_driver_take(StandinDriverLog *log);

void
standin_driver_take(StandinDriverLog *log)
{
    *log = log_now;
    log_now = (StandinDriverLog){ 0 };
}

#define REFUSE(name)                                                                               \
    int name(void);                                                                                \
    int name(void)                                                                                 \
    {                                                                                              \
        snprintf(log_now.refused, sizeof(log_now.refused), "%s", #name);                           \
        return NOT_SUPPORTED;                                                                      \
    }
REFUSED(REFUSE)
#undef REFUSE

int cuInit(unsigned flags);
int cuDeviceGetCount(int *count);
int cuGetErrorString(int error, const char **text);
int cuLibraryLoadData(void **library, const void *code, ...);
int cuLibraryGetKernel(void **kernel, void *library, const char *name);
int cuLibraryUnload(void *library);

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

/* Options of the linker and of the library are not looked at. */
int
cuLibraryLoadData(void **library, const void *code, ...)
{
    if (memcmp(code, "\177ELF", 4) != 0)
        return INVALID_IMAGE;
    log_now.images++;
    *library = &a_library;
    return SUCCESS;
}

int
cuLibraryGetKernel(void **kernel, void *library, const char *name)
{
    (void)library;
    log_now.kernels++;
    snprintf(log_now.kernel, sizeof(log_now.kernel), "%s", name);
    *kernel = &a_kernel;
    return SUCCESS;
}

int
cuLibraryUnload(void *library)
{
    (void)library;
    return SUCCESS;
}
