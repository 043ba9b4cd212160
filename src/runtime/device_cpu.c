/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The CPU as a device: its memory is host memory, and the calling thread executes stream operations
 * immediately, so that every mark has passed when it is set.
 */
#include "runtime/api/compute_device.h"

#include "base/allocation.h"
#include "base/error.h"
#include "base/time_units.h"
#include "kernels/cpu/elementwise.h"
#include "kernels/cpu/kernels.h"
#include "runtime/thread_affinity.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

typedef enum {
    KERNELS_FAST,
    KERNELS_REFERENCE,
} KernelSet;

static const char *const cpu_kernel_sets[] = {
    [KERNELS_FAST] = "cpu",
    [KERNELS_REFERENCE] = "reference",
    NULL,
};

/* The LhDeviceState of this device. */
typedef struct {
    LhDeviceParams params;
} CpuDevice;

static LhDeviceState *
cpu_open(const LhDeviceParams *params, GError **error)
{
    CpuDevice *cpu = g_new0(CpuDevice, 1);

    (void)error;
    cpu->params = *params;
    return (LhDeviceState *)cpu;
}

static void
cpu_close(LhDeviceState *device)
{
    g_free(device);
}

static unsigned char *
cpu_alloc(LhDeviceState *device, uint64_t bytes, GError **error)
{
    const uint64_t blocks = (MAX(bytes, 1) + LH_SCRATCH_ALIGN - 1) / LH_SCRATCH_ALIGN;
    void *memory = NULL;

    (void)device;
    if (posix_memalign(&memory, LH_SCRATCH_ALIGN, blocks * LH_SCRATCH_ALIGN) == 0)
        return memory;
    lh_memory_fail(bytes, "a buffer of a rank", error);
    return NULL;
}

static void
cpu_release(LhDeviceState *device, unsigned char *memory)
{
    (void)device;
    free(memory);
}

/* The stream is the calling thread, which is pinned to a core if it is a compute stream and @pin is
 * set. */
static LhDeviceStream
cpu_stream(LhDeviceState *device, bool compute, GError **error)
{
    const LhDeviceParams *params = &((const CpuDevice *)device)->params;

    (void)error;
    if (params->pin && compute)
        lh_pin_thread(params->rank);
    return device;
}

static void
cpu_end_stream(LhDeviceState *device, LhDeviceStream stream)
{
    (void)device;
    (void)stream;
}

static bool
cpu_move(LhDeviceState *device, void *to, const void *from, uint64_t bytes, LhDeviceStream stream,
         GError **error)
{
    (void)device;
    (void)stream;
    (void)error;
    memcpy(to, from, bytes);
    return true;
}

static bool
cpu_load(LhDeviceState *device, unsigned char *to, const void *from, uint64_t bytes,
         LhDeviceStream stream, GError **error)
{
    return cpu_move(device, to, from, bytes, stream, error);
}

static bool
cpu_store(LhDeviceState *device, void *to, const unsigned char *from, uint64_t bytes,
          LhDeviceStream stream, GError **error)
{
    return cpu_move(device, to, from, bytes, stream, error);
}

static bool
cpu_copy(LhDeviceState *device, unsigned char *to, const unsigned char *from, uint64_t bytes,
         LhDeviceStream stream, GError **error)
{
    return cpu_move(device, to, from, bytes, stream, error);
}

static bool
cpu_fill(LhDeviceState *device, unsigned char *to, int byte, uint64_t bytes, LhDeviceStream stream,
         GError **error)
{
    (void)device;
    (void)stream;
    (void)error;
    memset(to, byte, bytes);
    return true;
}

static enum lh_status
cpu_call(LhDeviceState *device, LhKernelId kernel, const LhCall *call, LhDeviceStream stream)
{
    const LhCpuKernel *k = lh_cpu_kernels[kernel];
    const CpuDevice *cpu = (const CpuDevice *)device;
    const LhKernelRun run = cpu->params.kernel_set == KERNELS_REFERENCE ? k->reference : k->fast;

    (void)stream;
    return run == NULL ? LH_STATUS_UNSUPPORTED : run(call);
}

static uint64_t
cpu_scratch_bytes(const LhDeviceState *device, LhKernelId kernel, const LhCall *call)
{
    (void)device;
    return lh_cpu_scratch_bytes(kernel, call->args);
}

static enum lh_status
cpu_sum(LhDeviceState *device, const LhDeviceSum *s, LhDeviceStream stream)
{
    (void)device;
    (void)stream;
    lh_elements_sum((const unsigned char *const *)s->terms, s->count, s->storage, s->elements,
                    s->sum);
    return LH_STATUS_OK;
}

/* The mark is a time stamp. */
static LhDeviceMark
cpu_mark(LhDeviceState *device, LhDeviceStream stream, GError **error)
{
    struct timespec *mark = g_new(struct timespec, 1);

    (void)device;
    (void)stream;
    (void)error;
    clock_gettime(CLOCK_MONOTONIC, mark);
    return mark;
}

static bool
cpu_wait(LhDeviceState *device, LhDeviceStream stream, LhDeviceMark mark, GError **error)
{
    (void)device;
    (void)stream;
    (void)mark;
    (void)error;
    return true;
}

static int
cpu_passed(LhDeviceState *device, LhDeviceMark mark, GError **error)
{
    (void)device;
    (void)mark;
    (void)error;
    return 1;
}

static bool
cpu_time(LhDeviceState *device, LhDeviceMark from, LhDeviceMark to, LhTime *ps, GError **error)
{
    const struct timespec *a = from, *b = to;

    (void)device;
    (void)error;
    *ps = (b->tv_sec - a->tv_sec) * LH_PS_PER_S + (b->tv_nsec - a->tv_nsec) * LH_PS_PER_NS;
    return true;
}

static void
cpu_unmark(LhDeviceState *device, LhDeviceMark mark)
{
    (void)device;
    g_free(mark);
}

const LhRunDevice lh_device_cpu = {
    .name = "cpu",
    .kernel_sets = cpu_kernel_sets,
    .tick_s = 1e-9,
    .host_memory = true,
    .open = cpu_open,
    .close = cpu_close,
    .alloc = cpu_alloc,
    .release = cpu_release,
    .stream = cpu_stream,
    .end_stream = cpu_end_stream,
    .load = cpu_load,
    .store = cpu_store,
    .copy = cpu_copy,
    .fill = cpu_fill,
    .call = cpu_call,
    .scratch_bytes = cpu_scratch_bytes,
    .sum = cpu_sum,
    .mark = cpu_mark,
    .wait = cpu_wait,
    .passed = cpu_passed,
    .time = cpu_time,
    .unmark = cpu_unmark,
};
