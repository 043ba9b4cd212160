/* SPDX-License-Identifier: Apache-2.0 */
/* One thread enqueues on all devices, one after another, and then waits for them. */
#include "measure/measure_device.h"

#include "base/error.h"
#include "measure/fit.h"

#include <math.h>
#include <string.h>

#define FLUSH_BYTES (UINT64_C(256) << 20) /* exceeds the L2 cache of any GPU */

typedef struct {
    LhDeviceState *state;
    LhDeviceStream stream;
    unsigned char *flush;
    LhCall call; /* operands in device memory */
    LhDeviceMark start, end;
    double *times; /* [repeats] */
} Gpu;

struct _LhBench {
    LhBenchParams params;
    Gpu *gpus; /* [params.count] */
};

/* ---- operands ---- */

/* Copies the operand to all devices. */
static bool
load_operand(LhBench *b, LhKernelId kernel, const LhKernelArgs *args, unsigned operand,
             LhDtype dtype, GError **error)
{
    const LhRunDevice *device = b->params.device;
    const LhOperand *o = &lh_kernels[kernel]->operands[operand];
    uint64_t bytes;
    unsigned char *data = lh_measure_operand(lh_kernels[kernel], args, operand, dtype, &bytes);
    bool ok = true;

    for (uint32_t i = 0; ok && i < b->params.count; i++) {
        Gpu *g = &b->gpus[i];
        LhView *view = &g->call.operands[operand];

        *view = (LhView){ .data = device->alloc(g->state, bytes, error),
                          .parts = 1,
                          .part_bytes = bytes,
                          .storage = lh_measure_storage(o, dtype) };
        ok = view->data != NULL &&
             device->load(g->state, view->data, data, bytes, g->stream, error) &&
             lh_device_finish(device, g->state, g->stream, NULL, NULL, error);
    }
    g_aligned_free(data);
    return ok;
}

static bool
load_operands(LhBench *b, LhKernelId kernel, const LhKernelArgs *args, LhDtype dtype,
              GError **error)
{
    const LhRunDevice *device = b->params.device;

    for (unsigned k = 0; lh_kernels[kernel]->operands[k].access != LH_OPERAND_END; k++) {
        if (!load_operand(b, kernel, args, k, dtype, error))
            return false;
    }
    for (uint32_t i = 0; i < b->params.count; i++) {
        Gpu *g = &b->gpus[i];
        uint64_t bytes;

        g->call.args = args;
        bytes = device->scratch_bytes(g->state, kernel, &g->call);
        g->call.scratch = bytes > 0 ? device->alloc(g->state, bytes, error) : NULL;
        if (bytes > 0 && g->call.scratch == NULL)
            return false;
    }
    return true;
}

static void
release_operands(LhBench *b)
{
    const LhRunDevice *device = b->params.device;

    for (uint32_t i = 0; i < b->params.count; i++) {
        Gpu *g = &b->gpus[i];

        for (unsigned k = 0; k < LH_KERNEL_OPERANDS_MAX; k++) {
            if (g->call.operands[k].data != NULL)
                device->release(g->state, g->call.operands[k].data);
        }
        if (g->call.scratch != NULL)
            device->release(g->state, g->call.scratch);
        g->call = (LhCall){ 0 };
    }
}

/* ---- calls ---- */

static bool
fail_call(const Gpu *g, const LhRunDevice *device, LhKernelId kernel, GError **error)
{
    g_autofree char *why = device->why != NULL ? device->why(g->state) : NULL;

    g_set_error(error, LH_ERROR, LH_ERROR_RUNTIME, "kernel %s cannot be called%s%s",
                lh_kernels[kernel]->name, why != NULL ? ": " : "", why != NULL ? why : "");
    return false;
}

/* Enqueues a call of the kernel between two marks. */
static bool
enqueue_marked(const LhBench *b, Gpu *g, LhKernelId kernel, bool *known, GError **error)
{
    const LhRunDevice *device = b->params.device;
    enum lh_status status;

    if (!device->fill(g->state, g->flush, 0, FLUSH_BYTES, g->stream, error))
        return false;
    g->start = device->mark(g->state, g->stream, error);
    if (g->start == NULL)
        return false;
    status = device->call(g->state, kernel, &g->call, g->stream);
    *known = status != LH_STATUS_UNSUPPORTED;
    if (status != LH_STATUS_OK && *known)
        return fail_call(g, device, kernel, error);
    g->end = device->mark(g->state, g->stream, error);
    return g->end != NULL;
}

/* Waits for the call and reads its duration. */
static bool
collect_seconds(const LhBench *b, Gpu *g, double *seconds, GError **error)
{
    const LhRunDevice *device = b->params.device;
    LhTime took_ps = 0;

    if (g->end != NULL && (!lh_device_pass(device, g->state, g->end, NULL, NULL, error) ||
                           !device->time(g->state, g->start, g->end, &took_ps, error)))
        return false;
    *seconds = (double)took_ps / (double)LH_PS_PER_S;
    if (g->start != NULL)
        device->unmark(g->state, g->start);
    if (g->end != NULL)
        device->unmark(g->state, g->end);
    g->start = g->end = NULL;
    return true;
}

/* Calls the kernel once on all devices. */
static bool
call_all(LhBench *b, LhKernelId kernel, uint32_t into, bool *known, GError **error)
{
    for (uint32_t i = 0; i < b->params.count; i++) {
        if (!enqueue_marked(b, &b->gpus[i], kernel, known, error))
            return false;
    }
    for (uint32_t i = 0; i < b->params.count; i++) {
        if (!collect_seconds(b, &b->gpus[i], &b->gpus[i].times[into], error))
            return false;
    }
    return true;
}

bool
lh_bench_kernel(LhBench *b, LhKernelId kernel, const LhKernelArgs *args, LhDtype dtype,
                double *seconds, GError **error)
{
    g_autofree double *all = g_new(double, b->params.count);
    bool known = true, ok = load_operands(b, kernel, args, dtype, error);

    *seconds = 0;
    if (ok)
        ok = call_all(b, kernel, 0, &known, error); /* warm-up */
    for (uint32_t i = 0; ok && known && i < b->params.repeats; i++)
        ok = call_all(b, kernel, i, &known, error);
    release_operands(b);
    if (!ok || !known)
        return ok;
    for (uint32_t i = 0; i < b->params.count; i++)
        all[i] = lh_statistic(b->params.statistic, b->gpus[i].times, b->params.repeats);
    *seconds = lh_median(all, b->params.count);
    return true;
}

/* ---- devices ---- */

static bool
open_gpu(const LhBench *b, Gpu *g, uint32_t index, GError **error)
{
    const LhRunDevice *device = b->params.device;
    const LhDeviceParams params = { .rank = index,
                                    .ordinal = b->params.first + index,
                                    .alone = b->params.alone,
                                    .kernel_set = b->params.kernel_set };

    g->times = g_new0(double, MAX(b->params.repeats, 1));
    g->state = device->open(&params, error);
    if (g->state == NULL)
        return false;
    g->stream = device->stream(g->state, true, error);
    g->flush = g->stream == NULL ? NULL : device->alloc(g->state, FLUSH_BYTES, error);
    return g->flush != NULL;
}

LhBench *
lh_bench_new(const LhBenchParams *params, GError **error)
{
    g_autoptr(LhBench) b = g_new0(LhBench, 1);

    b->params = *params;
    b->gpus = g_new0(Gpu, MAX(params->count, 1));
    for (uint32_t i = 0; i < params->count; i++) {
        if (!open_gpu(b, &b->gpus[i], i, error))
            return NULL;
    }
    return g_steal_pointer(&b);
}

void
lh_bench_free(LhBench *b)
{
    if (b == NULL)
        return;
    for (uint32_t i = 0; i < b->params.count; i++) {
        Gpu *g = &b->gpus[i];

        if (g->flush != NULL)
            b->params.device->release(g->state, g->flush);
        if (g->stream != NULL)
            b->params.device->end_stream(g->state, g->stream);
        if (g->state != NULL)
            b->params.device->close(g->state);
        g_free(g->times);
    }
    g_free(b->gpus);
    g_free(b);
}
