/* SPDX-License-Identifier: Apache-2.0 */
/* Timing of kernels; measure_executor.c times the executor. */
#include "measure/measure.h"

#include "base/error.h"
#include "base/time_units.h"
#include "kernels/cpu/rows.h"
#include "measure/fit.h"
#include "runtime/process/clocks.h"
#include "runtime/thread_affinity.h"

#include <math.h>
#include <pthread.h>
#include <string.h>
#include <time.h>

/* Period of the operand's content, in elements; prime, so that rows differ. */
#define PATTERN 4093
#define TOLD_NS 1000000 /* lead time for telling all threads when to begin */
#define AWAKE_NS 100000 /* threads are awake this long before a call */

const char *const lh_statistic_names[] = { "median", "best", NULL };

double
lh_statistic(LhStatistic statistic, double *values, size_t count)
{
    const double median = lh_median(values, count);

    return statistic == LH_STATISTIC_BEST ? values[0] : median;
}

static double
now_s(clockid_t clock)
{
    struct timespec t;

    clock_gettime(clock, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / LH_NS_PER_S;
}

/* ---- kernels ---- */

/* Follows the use of kernels in schedules: an operand that may have either type is an activation,
 * and its counterpart is fp32. */
enum lh_storage
lh_measure_storage(const LhOperand *o, LhDtype dtype)
{
    if (o->element == LH_ELEMENT_INT8)
        return LH_STORAGE_INT8;
    return o->element == LH_ELEMENT_FP32 || o->element == LH_ELEMENT_OTHER
               ? LH_STORAGE_FP32
               : lh_dtype_storage(dtype);
}

/* Upper bound of the operand's elements, from its kind. */
uint64_t
lh_measure_elements(const LhKernel *kernel, const LhKernelArgs *a, unsigned operand)
{
    const LhTensorKind kind = kernel->operands[operand].kind;
    const uint64_t heads = (uint64_t)a->batch * a->heads;
    const uint64_t q = heads * a->nq * (a->head_dim + 2);
    const uint64_t kv = 2 * (uint64_t)a->batch * a->nk * a->groups * a->head_dim;

    if (kernel->operand_elements != NULL)
        return kernel->operand_elements(a, operand);
    if (kind == LH_TENSOR_SCORES || kind == LH_TENSOR_PROBS || kind == LH_TENSOR_DSCORES)
        return heads * a->nq * a->nk;
    if (kind == LH_TENSOR_STATE || kind == LH_TENSOR_DSTATE ||
        (kind == LH_TENSOR_ANY && kernel->linear)) /* either of the two kinds */
        return heads * a->head_dim * a->head_dim * MAX(a->states, 1);
    return MAX(MAX(q, kv), 1);
}

/* Values that are valid for any operand. The log-sum-exp is that over @nk keys with logits near 0,
 * so that no exponential over- or underflows. */
static double
value_of(const LhOperand *o, const LhKernelArgs *a, uint64_t element)
{
    if (o->kind == LH_TENSOR_LSE || o->kind == LH_TENSOR_DELTA)
        return log((double)MAX(a->nk, 1));
    if (o->kind == LH_TENSOR_ACC || o->kind == LH_TENSOR_OUT)
        return 1;
    return 0.1 * sin((double)element);
}

unsigned char *
lh_measure_operand(const LhKernel *kernel, const LhKernelArgs *args, unsigned operand,
                   LhDtype dtype, uint64_t *bytes)
{
    const LhOperand *o = &kernel->operands[operand];
    const enum lh_storage storage = lh_measure_storage(o, dtype);
    const uint64_t count = lh_measure_elements(kernel, args, operand);
    const uint64_t first = MIN(count, PATTERN);
    unsigned char *data;

    *bytes = count * sizeof(float);
    data = g_aligned_alloc(count, sizeof(float), LH_SCRATCH_ALIGN);
    for (uint64_t i = 0; i < first; i++)
        lh_element_put(data, storage, i, value_of(o, args, i));
    for (uint64_t done = first * lh_storage_bytes(storage); done < *bytes;) {
        const uint64_t more = MIN(done, *bytes - done);

        memcpy(data + done, data, more);
        done += more;
    }
    return data;
}

static LhView
make_operand(const LhKernel *kernel, const LhKernelArgs *a, unsigned operand, LhDtype dtype)
{
    LhView view = { .parts = 1, .storage = lh_measure_storage(&kernel->operands[operand], dtype) };

    view.data = lh_measure_operand(kernel, a, operand, dtype, &view.part_bytes);
    return view;
}

/* State shared by threads that call the kernel at the same time. */
typedef struct {
    const LhMeasureParams *params;
    LhKernelId kernel;
    const LhKernelArgs *args;
    LhDtype dtype;
    pthread_barrier_t meets; /* the callers and the thread that leads them */
    int64_t begin_ns;
    bool over; /* another process does not answer: stop calling */
} Calls;

/* One calling thread. */
typedef struct {
    Calls *calls;
    uint32_t index;
    double seconds;
    enum lh_status status;
} Caller;

/* Evicts the caches' content. */
static void
flush_caches(const Caller *c)
{
    unsigned char *all = c->calls->params->flush;

    for (size_t i = 0; all != NULL && i < LH_MEASURE_FLUSH_BYTES; i += LH_SCRATCH_ALIGN)
        all[c->index * LH_MEASURE_FLUSH_BYTES + i]++;
}

static void
call_kernel(Caller *c, LhDeviceState *device, LhDeviceStream stream, const LhCall *call)
{
    if (c->status == LH_STATUS_OK)
        c->status = lh_device_cpu.call(device, c->calls->kernel, call, stream);
}

/* Times a call that starts together with those of the other threads, in seconds. */
static double
time_call(Caller *c, LhDeviceState *device, LhDeviceStream stream, const LhCall *call)
{
    const int64_t begin_ns = c->calls->begin_ns;
    double start;

    if (c->calls->params->idle_s > 0)
        lh_clocks_sleep_until(begin_ns - AWAKE_NS);
    while (lh_clocks_now() < begin_ns) {
    }
    start = now_s(CLOCK_THREAD_CPUTIME_ID);
    call_kernel(c, device, stream, call);
    return c->calls->params->statistic == LH_STATISTIC_BEST
               ? now_s(CLOCK_THREAD_CPUTIME_ID) - start
               : (double)(lh_clocks_now() - begin_ns) / LH_NS_PER_S;
}

/* Number of rounds until every process has made its calls. */
static uint32_t
rounds(const LhMeasureParams *params)
{
    return params->repeats * MAX(params->turns, 1);
}

static bool
has_turn(const LhMeasureParams *params, uint32_t round)
{
    return round % MAX(params->turns, 1) == params->turn;
}

/* Makes the calls. A thread whose call failed still takes part in the barriers, since the others
 * wait for it. */
static void
time_calls(Caller *c, LhDeviceState *device, LhDeviceStream stream, const LhCall *call)
{
    const LhMeasureParams *params = c->calls->params;
    g_autofree double *times = g_new(double, params->repeats);
    uint32_t made = 0;

    c->status =
        call->scratch != NULL && params->flush != NULL ? LH_STATUS_OK : LH_STATUS_OUT_OF_MEMORY;
    call_kernel(c, device, stream, call);
    for (uint32_t round = 0; round < rounds(params); round++) {
        if (has_turn(params, round))
            flush_caches(c);
        pthread_barrier_wait(&c->calls->meets);
        pthread_barrier_wait(&c->calls->meets);
        if (c->calls->over)
            return;
        if (has_turn(params, round))
            times[made++] = time_call(c, device, stream, call);
        /* No thread may flush while another one's call is running. */
        pthread_barrier_wait(&c->calls->meets);
        pthread_barrier_wait(&c->calls->meets);
    }
    c->seconds = lh_statistic(params->statistic, times, params->repeats);
}

static void *
caller_main(void *data)
{
    Caller *c = data;
    const Calls *calls = c->calls;
    const LhRunDevice *cpu = &lh_device_cpu;
    const LhDeviceParams params = { c->index, calls->params->kernel_set,
                                    .pin = calls->params->pin };
    LhDeviceState *device = cpu->open(&params, NULL);
    LhDeviceStream stream = cpu->stream(device, true, NULL);
    const LhOperand *operands = lh_kernels[calls->kernel]->operands;
    LhCall call = { .args = calls->args };

    for (unsigned i = 0; operands[i].access != LH_OPERAND_END; i++)
        call.operands[i] = make_operand(lh_kernels[calls->kernel], calls->args, i, calls->dtype);
    call.scratch = cpu->alloc(device, cpu->scratch_bytes(device, calls->kernel, &call), NULL);
    time_calls(c, device, stream, &call);
    cpu->release(device, call.scratch);
    for (unsigned i = 0; operands[i].access != LH_OPERAND_END; i++)
        g_aligned_free(call.operands[i].data);
    cpu->end_stream(device, stream);
    cpu->close(device);
    return NULL;
}

/* Waits until the calls of all processes have ended. */
static bool
meet_others(const LhOpenControl *others, GError **error)
{
    return others == NULL || others->table->barrier(others->state, error);
}

/* Leads the callers: sets the start time of each call once all are ready, and waits for the
 * ends. */
static bool
lead(Calls *calls, GError **error)
{
    const LhMeasureParams *params = calls->params;
    bool ok = true;

    for (uint32_t i = 0; i < rounds(params); i++) {
        pthread_barrier_wait(&calls->meets);
        calls->begin_ns = lh_clocks_now();
        if (ok && params->others != NULL)
            ok = lh_clocks_meet(params->others, &calls->begin_ns, error);
        calls->begin_ns += TOLD_NS + (int64_t)(params->idle_s * LH_NS_PER_S);
        calls->over = !ok;
        pthread_barrier_wait(&calls->meets);
        if (calls->over)
            break;
        pthread_barrier_wait(&calls->meets);
        ok = meet_others(params->others, error);
        pthread_barrier_wait(&calls->meets);
    }
    return ok;
}

/* Runs all callers. */
static bool
call_together(Calls *calls, Caller *callers, uint32_t count, GError **error)
{
    g_autofree GThread **threads = g_new(GThread *, count);
    bool ok;

    (void)lh_cores_count(); /* reads the process's cores before a thread is pinned to fewer */
    pthread_barrier_init(&calls->meets, NULL, count + 1);
    for (uint32_t i = 0; i < count; i++)
        threads[i] = g_thread_new("caller", caller_main, &callers[i]);
    ok = lead(calls, error);
    for (uint32_t i = 0; i < count; i++)
        g_thread_join(threads[i]);
    pthread_barrier_destroy(&calls->meets);
    return ok;
}

bool
lh_measure_kernel(const LhMeasureParams *params, LhKernelId kernel, const LhKernelArgs *args,
                  LhDtype dtype, double *seconds, GError **error)
{
    const uint32_t count = MAX(params->threads, 1);
    Calls calls = { .params = params, .kernel = kernel, .args = args, .dtype = dtype };
    g_autofree Caller *callers = g_new0(Caller, count);
    g_autofree double *times = g_new(double, count);
    enum lh_status status = LH_STATUS_OK;

    for (uint32_t i = 0; i < count; i++)
        callers[i] = (Caller){ .calls = &calls, .index = i };
    if (!call_together(&calls, callers, count, error))
        return false;
    for (uint32_t i = 0; i < count; i++) {
        status = status != LH_STATUS_OK ? status : callers[i].status;
        times[i] = callers[i].seconds;
    }
    if (status != LH_STATUS_OK) {
        g_set_error(error, LH_ERROR,
                    status == LH_STATUS_OUT_OF_MEMORY ? LH_ERROR_RUNTIME : LH_ERROR_NO,
                    status == LH_STATUS_OUT_OF_MEMORY ? "no memory to call kernel %s"
                                                      : "kernel %s cannot be called",
                    lh_kernels[kernel]->name);
        return false;
    }
    *seconds = lh_median(times, count);
    return true;
}
