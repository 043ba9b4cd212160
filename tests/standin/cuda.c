/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The functions of CUDA's runtime that the program uses, except those for events (events.c) and
 * kernels (kernels.c). Other functions do not link: most of those left out, such as
 * cudaDeviceSynchronize or cudaMemcpy, make a host wait, which the program never does.
 *
 * From the pages of the CUDA Runtime API, 13.0:
 * - cudaGetLastError returns the last error of any call of this thread, also cudaErrorNotReady of a
 *   query, and resets it. The error of a kernel is sticky: no call of the process succeeds after
 *   it.
 * - API synchronization behavior, Asynchronous: copies from and to pageable memory may or may not
 *   be done when the call returns. Here they never are: the destination is poisoned at the call,
 *   the source is read when the copy runs.
 * - cudaFree does not wait here: an op that uses the memory later is a finding.
 * - cudaStreamDestroy returns at once if there is work on the stream: a finding, since nothing
 *   would tell when that work ends.
 */
#include "standin_private.h"

#include <string.h>

/* Bytes that are moved and filled even in an idle run: the program reads some data itself, between
 * its tensors. */
#define IDLE_BYTES 65536
#define IDLE_FILL_BYTES (UINT64_C(128) << 20)
#define POISON 0xff
#define ASKING_WORKS_IN 3 /* one query in this many executes something */
#define PRIORITY_GREATEST (-5)
#define GPU_BYTES (UINT64_C(80) << 30) /* of a GPU without a memory limit */

static __thread cudaError_t last_error;

cudaError_t
standin_result(cudaError_t code)
{
    if (code == cudaSuccess)
        code = standin_sticky;
    if (code != cudaSuccess)
        last_error = code;
    return code;
}

cudaError_t
cudaGetLastError(void)
{
    const cudaError_t code = last_error;

    last_error = standin_sticky;
    return code;
}

cudaError_t
cudaPeekAtLastError(void)
{
    return last_error;
}

static const struct {
    cudaError_t code;
    const char *name, *text;
} errors[] = {
    { cudaSuccess, "cudaSuccess", "no error" },
    { cudaErrorInvalidValue, "cudaErrorInvalidValue", "invalid argument" },
    { cudaErrorMemoryAllocation, "cudaErrorMemoryAllocation", "out of memory" },
    { cudaErrorInvalidConfiguration, "cudaErrorInvalidConfiguration",
      "invalid configuration argument" },
    { cudaErrorInsufficientDriver, "cudaErrorInsufficientDriver",
      "CUDA driver version is insufficient for CUDA runtime version" },
    { cudaErrorInvalidDeviceFunction, "cudaErrorInvalidDeviceFunction", "invalid device function" },
    { cudaErrorNoDevice, "cudaErrorNoDevice", "no CUDA-capable device is detected" },
    { cudaErrorInvalidDevice, "cudaErrorInvalidDevice", "invalid device ordinal" },
    { cudaErrorInvalidResourceHandle, "cudaErrorInvalidResourceHandle", "invalid resource handle" },
    { cudaErrorNotReady, "cudaErrorNotReady", "device not ready" },
    { cudaErrorIllegalAddress, "cudaErrorIllegalAddress",
      "an illegal memory access was encountered" },
};

const char *
cudaGetErrorString(cudaError_t code)
{
    for (size_t i = 0; i < G_N_ELEMENTS(errors); i++) {
        if (errors[i].code == code)
            return errors[i].text;
    }
    return "an error that the stand-in does not know";
}

const char *
cudaGetErrorName(cudaError_t code)
{
    for (size_t i = 0; i < G_N_ELEMENTS(errors); i++) {
        if (errors[i].code == code)
            return errors[i].name;
    }
    return "unrecognized error code";
}

/* ---- devices ---- */

cudaError_t
cudaDriverGetVersion(int *version)
{
    *version = standin_options.driver == 0 ? CUDART_VERSION : MAX(standin_options.driver, 0);
    return standin_result(cudaSuccess);
}

cudaError_t
cudaRuntimeGetVersion(int *version)
{
    *version = CUDART_VERSION;
    return standin_result(cudaSuccess);
}

cudaError_t
cudaGetDeviceCount(int *count)
{
    *count = (int)standin_options.devices;
    return standin_result(*count > 0 ? cudaSuccess : cudaErrorNoDevice);
}

/* Only the attributes that the program queries. */
cudaError_t
cudaGetDeviceProperties(struct cudaDeviceProp *properties, int device)
{
    if (device < 0 || device >= (int)standin_options.devices)
        return standin_result(cudaErrorInvalidDevice);
    memset(properties, 0, sizeof(*properties));
    g_strlcpy(properties->name, "stand-in", sizeof(properties->name));
    properties->totalGlobalMem =
        standin_options.memory_bytes > 0 ? standin_options.memory_bytes : GPU_BYTES;
    properties->major = 9;
    return standin_result(cudaSuccess);
}

cudaError_t
cudaSetDevice(int device)
{
    if (device < 0 || device >= (int)standin_options.devices)
        return standin_result(cudaErrorInvalidDevice);
    standin_device = device;
    return standin_result(cudaSuccess);
}

cudaError_t
cudaGetDevice(int *device)
{
    *device = standin_device;
    return standin_result(cudaSuccess);
}

cudaError_t
cudaDeviceGetStreamPriorityRange(int *least, int *greatest)
{
    *least = 0;
    *greatest = PRIORITY_GREATEST;
    return standin_result(cudaSuccess);
}

/* ---- streams ---- */

cudaError_t
cudaStreamCreateWithPriority(cudaStream_t *stream, unsigned flags, int priority)
{
    standin_lock();
    *stream = standin_stream_new(flags, priority);
    standin_unlock();
    return standin_result(cudaSuccess);
}

cudaError_t
cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned flags)
{
    return cudaStreamCreateWithPriority(stream, flags, 0);
}

cudaError_t
cudaStreamDestroy(cudaStream_t stream)
{
    standin_lock();
    if (stream->first != NULL)
        standin_finding("stream %u is destroyed with %s on it", stream->slot, stream->first->label);
    stream->alive = false;
    standin_unlock();
    return standin_result(cudaSuccess);
}

cudaError_t
cudaStreamQuery(cudaStream_t stream)
{
    cudaError_t code = cudaErrorNotReady;

    standin_lock();
    if (standin_random() % ASKING_WORKS_IN == 0)
        standin_work();
    if (stream->first == NULL) {
        standin_host_knows(&stream->done);
        standin_learned();
        code = cudaSuccess;
    } else {
        standin_asked_in_vain(stream);
    }
    standin_unlock();
    return standin_result(code);
}

static bool
is_empty(void *stream)
{
    return ((StandinStream *)stream)->first == NULL;
}

cudaError_t
cudaStreamSynchronize(cudaStream_t stream)
{
    standin_lock();
    if (standin_host_waits(is_empty, stream, "a stream"))
        standin_host_knows(&stream->done);
    standin_unlock();
    return standin_result(cudaSuccess);
}

/* ---- memory ---- */

cudaError_t
cudaMalloc(void **memory, size_t bytes)
{
    standin_lock();
    *memory = standin_memory_new(bytes);
    standin_unlock();
    return standin_result(*memory == NULL ? cudaErrorMemoryAllocation : cudaSuccess);
}

cudaError_t
cudaFree(void *memory)
{
    bool ok;

    standin_lock();
    ok = memory == NULL || standin_memory_free(memory);
    if (!ok)
        standin_finding("memory is freed that is nobody's, or was freed already");
    standin_unlock();
    return standin_result(ok ? cudaSuccess : cudaErrorInvalidValue);
}

/* ---- copies and fills ---- */

typedef struct {
    StandinOp op;
    void *to;
    const void *from; /* NULL: a fill */
    int byte;
    uint64_t bytes;
} MoveOp;

static bool
run_copy(StandinOp *op)
{
    const MoveOp *m = (MoveOp *)op;
    const uint32_t turn = standin_turn(op);
    const bool reads = standin_is_device_memory(m->from);
    const bool writes = standin_is_device_memory(m->to);

    standin_counted.copies++;
    if (standin_is_idle() && m->bytes > IDLE_BYTES)
        return true;
    if ((!reads || standin_touch(op, turn, m->from, m->bytes, false)) &&
        (!writes || standin_touch(op, turn, m->to, m->bytes, true)))
        memmove(m->to, m->from, m->bytes);
    return true;
}

static bool
run_fill(StandinOp *op)
{
    const MoveOp *m = (MoveOp *)op;

    standin_counted.fills++;
    op->end_s = op->begin_s + standin_fill_s(m->bytes);
    if ((!standin_is_idle() || m->bytes <= IDLE_FILL_BYTES) &&
        standin_touch(op, standin_turn(op), m->to, m->bytes, true))
        memset(m->to, m->byte, m->bytes);
    return true;
}

static const StandinKind kind_copy = { .name = "copy", .run = run_copy };
static const StandinKind kind_fill = { .name = "fill", .run = run_fill };

/* Which of the two ends are on the device, by kind. */
static bool
is_of_kind(const void *to, const void *from, enum cudaMemcpyKind kind)
{
    const bool to_device = standin_is_device_memory(to);
    const bool from_device = standin_is_device_memory(from);

    return to_device == (kind == cudaMemcpyHostToDevice || kind == cudaMemcpyDeviceToDevice) &&
           from_device == (kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyDeviceToDevice);
}

cudaError_t
cudaMemcpyAsync(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind,
                cudaStream_t stream)
{
    cudaError_t code = cudaErrorInvalidValue;
    MoveOp *m;

    standin_lock();
    if (!is_of_kind(to, from, kind)) {
        standin_finding("a copy is between other memory than its kind says");
    } else {
        m = standin_op_new(&kind_copy, stream, sizeof(*m), g_strdup("copy"));
        m->to = to;
        m->from = from;
        m->bytes = bytes;
        if (kind == cudaMemcpyDeviceToHost && !standin_is_idle())
            memset(to, POISON, bytes);
        code = standin_enqueue(&m->op);
    }
    standin_unlock();
    return standin_result(code);
}

cudaError_t
cudaMemsetAsync(void *to, int byte, size_t bytes, cudaStream_t stream)
{
    cudaError_t code;
    MoveOp *m;

    standin_lock();
    m = standin_op_new(&kind_fill, stream, sizeof(*m), g_strdup("fill"));
    m->to = to;
    m->byte = byte;
    m->bytes = bytes;
    code = standin_enqueue(&m->op);
    standin_unlock();
    return standin_result(code);
}
