/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An NVIDIA GPU as a device. Slots are allocated from an arena of large pieces of GPU memory:
 * nothing is allocated from CUDA while the program runs, unless the arena was too small. Marks are
 * events with timing.
 */
#include "runtime/api/compute_device.h"

#include "base/error.h"
#include "base/time_units.h"
#include "base/units.h"
#include "kernels/cuda/pace.h"
#include "kernels/cuda/rows/elementwise.h"
#include "kernels/cuda/table.h"
#include "runtime/gpu/arena.h"
#include "runtime/gpu/cudnn_attention.h"

#include <cuda_runtime_api.h>
#include <pthread.h>

#define PIECE_BYTES_MIN (UINT64_C(2) << 20) /* of the arena; the size of a GPU page */
#define SPARE_PARTS 4                       /* the first piece is a quarter larger than requested */
#define PS_PER_MS 1e9
#define VERSION_MAJOR 1000 /* CUDA version numbers are 1000 major + 10 minor */
#define VERSION_MINOR 10

/* Indices into kernel_sets. */
enum {
    KERNELS_BUILTIN,
    KERNELS_CUDNN,
};

struct _LhDeviceState {
    int ordinal;
    LhCudnnDevice *cudnn; /* borrowed; NULL: all kernels are longhaul's own */
    uint64_t piece_bytes; /* of the next piece */
    pthread_mutex_t lock; /* of the following fields */
    LhArena *arena;
    GPtrArray *pieces; /* of device memory, owned */
    GPtrArray *events; /* of cudaEvent_t, unused, owned */
};

/* ---- errors ---- */

/* Explanations of errors whose CUDA text does not say what to do. */
static const struct {
    cudaError_t code;
    const char *text;
} meanings[] = {
    { cudaErrorNoDevice, "no GPU is visible to this process: see nvidia-smi and "
                         "CUDA_VISIBLE_DEVICES" },
    { cudaErrorDevicesUnavailable, "another process has exclusive use of the GPU" },
    { cudaErrorNoKernelImageForDevice, "the GPU is older than those that longhaul was built for "
                                       "(meson setup -Dgpu_archs=...)" },
    { cudaErrorECCUncorrectable, "the GPU's memory is damaged" },
    { cudaErrorIllegalAddress, "a kernel accessed memory outside its allocations" },
    { cudaErrorLaunchTimeout, "a kernel ran for too long: the GPU also drives a screen" },
    { cudaErrorMemoryAllocation, "the GPU's memory is full: choose a shorter sequence, fewer heads "
                                 "or fewer ranks" },
};

static const char *
meaning_of(cudaError_t code)
{
    for (size_t i = 0; i < G_N_ELEMENTS(meanings); i++) {
        if (meanings[i].code == code)
            return meanings[i].text;
    }
    return NULL;
}

/* Whether @code is success; else @error names the operation. */
static bool
check_code(cudaError_t code, const char *what, GError **error)
{
    const char *meaning = meaning_of(code);

    if (code == cudaSuccess)
        return true;
    (void)cudaGetLastError(); /* clears the error, which the next launch would report */
    g_set_error(error, LH_ERROR, LH_ERROR_RUNTIME, "CUDA: %s: %s (%s)%s%s", what,
                cudaGetErrorString(code), cudaGetErrorName(code), meaning != NULL ? ": " : "",
                meaning != NULL ? meaning : "");
    return false;
}

/* Checks that the driver, which belongs to the system, supports the CUDA version of the build. */
static bool
check_driver(GError **error)
{
    int driver = 0, runtime = 0;

    if (!check_code(cudaDriverGetVersion(&driver), "driver", error) ||
        !check_code(cudaRuntimeGetVersion(&runtime), "runtime", error))
        return false;
    if (driver == 0) {
        g_set_error_literal(error, LH_ERROR, LH_ERROR_RUNTIME,
                            "CUDA: there is no driver for NVIDIA GPUs here (libcuda.so.1): install "
                            "NVIDIA's driver on a machine that has one");
        return false;
    }
    if (driver / VERSION_MAJOR >= runtime / VERSION_MAJOR)
        return true;
    g_set_error(error, LH_ERROR, LH_ERROR_RUNTIME,
                "CUDA: the driver is too old: it supports CUDA %d.%d, and longhaul was built with "
                "%d.%d: install a newer driver, or build longhaul with an older CUDA Toolkit",
                driver / VERSION_MAJOR, driver % VERSION_MAJOR / VERSION_MINOR,
                runtime / VERSION_MAJOR, runtime % VERSION_MAJOR / VERSION_MINOR);
    return false;
}

static bool
cuda_probe(GError **error)
{
    int count = 0;

    return check_driver(error) && check_code(cudaGetDeviceCount(&count), "devices", error);
}

/* "GPU 0: NVIDIA H100 80GB HBM3, 79.1 GiB, compute capability 9.0". */
static bool
survey_device(int ordinal, GPtrArray *devices, GError **error)
{
    struct cudaDeviceProp is;
    g_autofree char *bytes = NULL;

    if (!check_code(cudaGetDeviceProperties(&is, ordinal), "properties of a device", error))
        return false;
    bytes = lh_format_bytes(is.totalGlobalMem);
    g_ptr_array_add(devices, g_strdup_printf("GPU %d: %s, %s, compute capability %d.%d", ordinal,
                                             is.name, bytes, is.major, is.minor));
    return true;
}

static bool
cuda_survey(char **driver, GPtrArray *devices, GError **error)
{
    int version = 0, runtime = 0, count = 0;

    if (!check_driver(error) || !check_code(cudaDriverGetVersion(&version), "driver", error) ||
        !check_code(cudaRuntimeGetVersion(&runtime), "runtime", error))
        return false;
    *driver = g_strdup_printf("CUDA %d.%d; longhaul was built with %d.%d", version / VERSION_MAJOR,
                              version % VERSION_MAJOR / VERSION_MINOR, runtime / VERSION_MAJOR,
                              runtime % VERSION_MAJOR / VERSION_MINOR);
    if (!check_code(cudaGetDeviceCount(&count), "devices", error))
        return false;
    for (int i = 0; i < count; i++) {
        if (!survey_device(i, devices, error))
            return false;
    }
    return true;
}

/* Makes this the thread's current device. */
static bool
use(const LhDeviceState *device, GError **error)
{
    return check_code(cudaSetDevice(device->ordinal), "device", error);
}

/* ---- the device ---- */

static void
free_events(LhDeviceState *device)
{
    for (guint i = 0; i < device->events->len; i++)
        (void)cudaEventDestroy(g_ptr_array_index(device->events, i));
    g_ptr_array_unref(device->events);
}

static void
cuda_close(LhDeviceState *device)
{
    (void)use(device, NULL);
    for (guint i = 0; i < device->pieces->len; i++)
        (void)cudaFree(g_ptr_array_index(device->pieces, i));
    g_ptr_array_unref(device->pieces);
    free_events(device);
    lh_arena_free(device->arena);
    pthread_mutex_destroy(&device->lock);
    g_free(device);
}

/* Opens cuDNN if the kernel set needs it. */
static bool
open_kernels(LhDeviceState *device, uint32_t kernel_set, GError **error)
{
    if (kernel_set != KERNELS_CUDNN)
        return true;
    device->cudnn = lh_cudnn_device(device->ordinal, error);
    return device->cudnn != NULL;
}

static LhDeviceState *
cuda_open(const LhDeviceParams *params, GError **error)
{
    LhDeviceState *device;
    int count = 0;

    if (!check_driver(error) || !check_code(cudaGetDeviceCount(&count), "devices", error))
        return NULL;
    if (params->ordinal >= (uint32_t)count && !(params->alone && count == 1)) {
        g_set_error(error, LH_ERROR, LH_ERROR_RUNTIME,
                    "CUDA: rank %u needs GPU %u of this machine, which has %d", params->rank,
                    params->ordinal, count);
        return NULL;
    }
    device = g_new0(LhDeviceState, 1);
    device->ordinal = params->ordinal < (uint32_t)count ? (int)params->ordinal : 0;
    device->piece_bytes =
        MAX(params->memory_bytes + params->memory_bytes / SPARE_PARTS, PIECE_BYTES_MIN);
    device->arena = lh_arena_new();
    device->pieces = g_ptr_array_new();
    device->events = g_ptr_array_new();
    pthread_mutex_init(&device->lock, NULL);
    if (use(device, error) && open_kernels(device, params->kernel_set, error))
        return device;
    cuda_close(device);
    return NULL;
}

/* ---- memory ---- */

/* Allocates a piece for at least @bytes from the GPU; the caller holds the lock. */
static bool
grow(LhDeviceState *device, uint64_t bytes, GError **error)
{
    const uint64_t wanted = MAX(device->piece_bytes, bytes + LH_ARENA_ALIGN);
    g_autofree char *text = lh_format_bytes(wanted);
    g_autofree char *what = g_strdup_printf("%s of memory on GPU %d", text, device->ordinal);
    void *piece = NULL;

    if (!use(device, error) || !check_code(cudaMalloc(&piece, wanted), what, error))
        return false;
    g_ptr_array_add(device->pieces, piece);
    lh_arena_add(device->arena, piece, wanted);
    device->piece_bytes = MAX(wanted / SPARE_PARTS, PIECE_BYTES_MIN);
    return true;
}

static unsigned char *
cuda_alloc(LhDeviceState *device, uint64_t bytes, GError **error)
{
    unsigned char *memory;

    pthread_mutex_lock(&device->lock);
    memory = lh_arena_take(device->arena, bytes);
    if (memory == NULL && grow(device, bytes, error))
        memory = lh_arena_take(device->arena, bytes);
    pthread_mutex_unlock(&device->lock);
    return memory;
}

static void
cuda_release(LhDeviceState *device, unsigned char *memory)
{
    pthread_mutex_lock(&device->lock);
    lh_arena_give(device->arena, memory);
    pthread_mutex_unlock(&device->lock);
}

/* ---- streams ---- */

/* Communication streams have the highest priority: their few blocks should not wait for the many of
 * a kernel. */
static LhDeviceStream
cuda_stream(LhDeviceState *device, bool compute, GError **error)
{
    cudaStream_t stream = NULL;
    int least = 0, greatest = 0;

    if (!use(device, error) ||
        !check_code(cudaDeviceGetStreamPriorityRange(&least, &greatest), "priorities", error) ||
        !check_code(cudaStreamCreateWithPriority(&stream, cudaStreamNonBlocking,
                                                 compute ? least : greatest),
                    "stream", error))
        return NULL;
    return stream;
}

static void
cuda_end_stream(LhDeviceState *device, LhDeviceStream stream)
{
    (void)use(device, NULL);
    (void)cudaStreamSynchronize(stream);
    (void)cudaStreamDestroy(stream);
}

static bool
cuda_load(LhDeviceState *device, unsigned char *to, const void *from, uint64_t bytes,
          LhDeviceStream stream, GError **error)
{
    return use(device, error) &&
           check_code(cudaMemcpyAsync(to, from, bytes, cudaMemcpyHostToDevice, stream), "load",
                      error);
}

static bool
cuda_store(LhDeviceState *device, void *to, const unsigned char *from, uint64_t bytes,
           LhDeviceStream stream, GError **error)
{
    return use(device, error) &&
           check_code(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToHost, stream), "store",
                      error);
}

static bool
cuda_copy(LhDeviceState *device, unsigned char *to, const unsigned char *from, uint64_t bytes,
          LhDeviceStream stream, GError **error)
{
    return use(device, error) &&
           check_code(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, stream), "copy",
                      error);
}

static bool
cuda_fill(LhDeviceState *device, unsigned char *to, int byte, uint64_t bytes, LhDeviceStream stream,
          GError **error)
{
    return use(device, error) &&
           check_code(cudaMemsetAsync(to, byte, bytes, stream), "fill", error);
}

/* ---- kernels ---- */

static bool
is_cudnns(const LhDeviceState *device, LhKernelId kernel, const LhCall *call)
{
    return device->cudnn != NULL && lh_cudnn_computes(kernel, call->args);
}

static enum lh_status
cuda_call(LhDeviceState *device, LhKernelId kernel, const LhCall *call, LhDeviceStream stream)
{
    const LhCudaKernel *k = lh_cuda_kernels[kernel];

    if (k == NULL)
        return LH_STATUS_UNSUPPORTED;
    if (!use(device, NULL))
        return LH_STATUS_DEVICE;
    return is_cudnns(device, kernel, call) ? lh_cudnn_call(device->cudnn, kernel, call, stream)
                                           : k->run(call, stream);
}

static uint64_t
cuda_scratch_bytes(const LhDeviceState *device, LhKernelId kernel, const LhCall *call)
{
    const LhCudaKernel *k = lh_cuda_kernels[kernel];

    if (is_cudnns(device, kernel, call))
        return use(device, NULL) ? lh_cudnn_scratch_bytes(device->cudnn, kernel, call) : 0;
    return k == NULL || k->scratch_bytes == NULL ? 0 : k->scratch_bytes(call->args);
}

static char *
cuda_why(LhDeviceState *device)
{
    return device->cudnn != NULL ? lh_cudnn_why(device->cudnn) : NULL;
}

static enum lh_status
cuda_sum(LhDeviceState *device, const LhDeviceSum *s, LhDeviceStream stream)
{
    if (!use(device, NULL))
        return LH_STATUS_DEVICE;
    return lh_cuda_sum(s->terms, s->count, s->sum, s->elements, s->storage, stream);
}

/* ---- marks ---- */

static cudaEvent_t
event_new(LhDeviceState *device, GError **error)
{
    cudaEvent_t event = NULL;

    pthread_mutex_lock(&device->lock);
    if (device->events->len > 0)
        event = g_ptr_array_steal_index_fast(device->events, device->events->len - 1);
    pthread_mutex_unlock(&device->lock);
    if (event == NULL &&
        !check_code(cudaEventCreateWithFlags(&event, cudaEventDefault), "event", error))
        return NULL;
    return event;
}

static void
cuda_unmark(LhDeviceState *device, LhDeviceMark mark)
{
    pthread_mutex_lock(&device->lock);
    g_ptr_array_add(device->events, mark);
    pthread_mutex_unlock(&device->lock);
}

static LhDeviceMark
cuda_mark(LhDeviceState *device, LhDeviceStream stream, GError **error)
{
    cudaEvent_t event = use(device, error) ? event_new(device, error) : NULL;

    if (event == NULL || check_code(cudaEventRecord(event, stream), "mark", error))
        return event;
    cuda_unmark(device, event);
    return NULL;
}

static bool
cuda_wait(LhDeviceState *device, LhDeviceStream stream, LhDeviceMark mark, GError **error)
{
    return use(device, error) &&
           check_code(cudaStreamWaitEvent(stream, mark, cudaEventWaitDefault), "wait", error);
}

/* cudaErrorNotReady is cleared, since the next cudaGetLastError() would attribute it to a
 * launch. */
static int
cuda_passed(LhDeviceState *device, LhDeviceMark mark, GError **error)
{
    const cudaError_t code = cudaEventQuery(mark);

    (void)device;
    if (code == cudaErrorNotReady) {
        (void)cudaGetLastError();
        return 0;
    }
    return check_code(code, "the device failed", error) ? 1 : -1;
}

static bool
cuda_time(LhDeviceState *device, LhDeviceMark from, LhDeviceMark to, LhTime *ps, GError **error)
{
    float ms = 0;

    (void)device;
    if (!check_code(cudaEventElapsedTime(&ms, from, to), "time", error))
        return false;
    *ps = (LhTime)((double)ms * PS_PER_MS);
    return true;
}

/* ---- the clock ---- */

/* Whether the kernel to do @what was launched. */
static bool
check_launch(enum lh_status status, const char *what, GError **error)
{
    if (status == LH_STATUS_OK)
        return true;
    g_set_error(error, LH_ERROR, LH_ERROR_RUNTIME, "CUDA: the kernel to %s was not launched", what);
    return false;
}

static bool
cuda_stamp(LhDeviceState *device, unsigned char *cell, LhDeviceStream stream, GError **error)
{
    return use(device, error) &&
           check_launch(lh_cuda_stamp((uint64_t *)(void *)cell, stream), "read the clock", error);
}

static uint64_t
nanoseconds(LhTime time_ps)
{
    return ((uint64_t)time_ps + LH_PS_PER_NS / 2) / LH_PS_PER_NS;
}

static bool
cuda_pace(LhDeviceState *device, const LhDevicePace *pace, LhDeviceStream stream, GError **error)
{
    const LhCudaPace p = { .epoch = (const uint64_t *)(const void *)pace->epoch,
                           .begun = (const uint64_t *)(const void *)pace->begun,
                           .others_ns = nanoseconds(pace->others_ps),
                           .took_ns = nanoseconds(pace->took_ps) };

    return use(device, error) &&
           check_launch(lh_cuda_pace(&p, stream), "wait for a message", error);
}

static const char *const cuda_kernel_sets[] = {
    [KERNELS_BUILTIN] = "builtin", [KERNELS_CUDNN] = "cudnn", NULL
};

const LhRunDevice lh_device_cuda = {
    .name = "cuda",
    .kernel_sets = cuda_kernel_sets,
    .unordered_sets = 1U << KERNELS_CUDNN,
    .tick_s = 0.5e-6, /* cudaEventElapsedTime */
    .probe = cuda_probe,
    .survey = cuda_survey,
    .open = cuda_open,
    .close = cuda_close,
    .alloc = cuda_alloc,
    .release = cuda_release,
    .stream = cuda_stream,
    .end_stream = cuda_end_stream,
    .load = cuda_load,
    .store = cuda_store,
    .copy = cuda_copy,
    .fill = cuda_fill,
    .call = cuda_call,
    .scratch_bytes = cuda_scratch_bytes,
    .why = cuda_why,
    .sum = cuda_sum,
    .mark = cuda_mark,
    .wait = cuda_wait,
    .passed = cuda_passed,
    .time = cuda_time,
    .unmark = cuda_unmark,
    .stamp = cuda_stamp,
    .pace = cuda_pace,
};
