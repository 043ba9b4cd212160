/* See the header. */
#include "standin_device.h"

#include "base/error.h"
#include "kernels/cpu/kernels.h"
#include "kernels/cpu/rows.h"
#include "standin/standin_private.h"

#include <string.h>

#define PS_PER_S 1e12

struct _LhDeviceState {
    LhDeviceParams params;
};

typedef enum {
    DO_MOVE,
    DO_FILL,
    DO_CALL,
    DO_SUM,
} What;

/* What a stream is asked for. */
typedef struct {
    StandinOp op;
    What what;
    unsigned char *to;
    const unsigned char *from;
    int byte;
    uint64_t bytes;
    LhKernelId kernel;
    LhKernelArgs args;
    LhCall call;
    LhDeviceSum sum;
    unsigned char **terms; /* owned */
} Command;

/* Memory of the host is nobody's; what is on the device is touched. */
static bool
touch(Command *c, uint32_t turn, const void *at, uint64_t bytes, bool write)
{
    return !standin_is_device_memory(at) || standin_touch(&c->op, turn, at, bytes, write);
}

static void
touch_view(Command *c, uint32_t turn, const LhView *v, bool write)
{
    const uint64_t held = v->held_bytes != 0 ? v->held_bytes : v->part_bytes;

    for (uint32_t i = 0; i < v->parts; i++)
        standin_touch(&c->op, turn, v->data + i * v->part_bytes, held, write);
}

static void
call_kernel(Command *c, uint32_t turn)
{
    const LhKernel *row = lh_kernels[c->kernel];
    static const uint32_t none[3];

    for (unsigned i = 0; i < LH_KERNEL_OPERANDS_MAX && c->call.operands[i].data != NULL; i++) {
        if (!lh_operand_is_overwritten(row, &c->args, i))
            touch_view(c, turn, &c->call.operands[i], false);
        if (row->operands[i].access != LH_OPERAND_READ)
            touch_view(c, turn, &c->call.operands[i], true);
    }
    if (lh_cpu_kernels[c->kernel]->fast(&c->call) != LH_STATUS_OK)
        standin_finding("kernel %s failed", row->name);
    standin_counted.kernels++;
    c->op.end_s = c->op.begin_s + standin_kernel_s(row->name, none);
}

static void
add_up(Command *c, uint32_t turn)
{
    const LhDeviceSum *s = &c->sum;
    const uint64_t bytes = s->elements * lh_storage_bytes(s->storage);

    for (uint32_t k = 0; k < s->count; k++)
        standin_touch(&c->op, turn, s->terms[k], bytes, false);
    standin_touch(&c->op, turn, s->sum, bytes, true);
    for (uint64_t i = 0; i < s->elements; i++) {
        float total = (float)lh_element_get(s->terms[0], s->storage, i);

        for (uint32_t k = 1; k < s->count; k++)
            total += (float)lh_element_get(s->terms[k], s->storage, i);
        lh_element_put(s->sum, s->storage, i, (double)total);
    }
}

static bool
run(StandinOp *op)
{
    Command *c = (Command *)op;
    const uint32_t turn = standin_turn(op);

    switch (c->what) {
    case DO_MOVE:
        if (touch(c, turn, c->from, c->bytes, false) && touch(c, turn, c->to, c->bytes, true))
            memmove(c->to, c->from, c->bytes);
        break;
    case DO_FILL:
        if (standin_touch(op, turn, c->to, c->bytes, true))
            memset(c->to, c->byte, c->bytes);
        break;
    case DO_SUM:
        add_up(c, turn);
        break;
    default:
        call_kernel(c, turn);
        break;
    }
    return true;
}

static void
clear(StandinOp *op)
{
    g_free(((Command *)op)->terms);
}

static const StandinKind kind = { .name = "command", .run = run, .clear = clear };

static Command *
command(What what, LhDeviceStream stream, const char *label)
{
    Command *c = standin_op_new(&kind, stream, sizeof(Command), g_strdup(label));

    c->what = what;
    return c;
}

static bool
ask(Command *c)
{
    standin_enqueue(&c->op);
    standin_unlock();
    return true;
}

/* ---- the table ---- */

static LhDeviceState *
open_device(const LhDeviceParams *params, GError **error)
{
    LhDeviceState *device = g_new0(LhDeviceState, 1);

    (void)error;
    device->params = *params;
    return device;
}

static void
close_device(LhDeviceState *device)
{
    g_free(device);
}

static void
use(const LhDeviceState *device)
{
    standin_device = (int)device->params.ordinal;
}

static unsigned char *
alloc(LhDeviceState *device, uint64_t bytes, GError **error)
{
    unsigned char *memory;

    use(device);
    standin_lock();
    memory = standin_memory_new(bytes);
    standin_unlock();
    if (memory == NULL)
        g_set_error_literal(error, LH_ERROR, LH_ERROR_RUNTIME, "the stand-in has no memory");
    return memory;
}

static void
release(LhDeviceState *device, unsigned char *memory)
{
    (void)device;
    standin_lock();
    if (!standin_memory_free(memory))
        standin_finding("memory is released that is nobody's");
    standin_unlock();
}

static LhDeviceStream
open_stream(LhDeviceState *device, bool compute, GError **error)
{
    StandinStream *s;

    (void)compute;
    (void)error;
    use(device);
    standin_lock();
    s = standin_stream_new(cudaStreamNonBlocking, 0);
    standin_unlock();
    return s;
}

/* As on a GPU, what was asked for goes on; the stand-in's end says what is left. */
static void
end_stream(LhDeviceState *device, LhDeviceStream stream)
{
    StandinStream *s = stream;

    (void)device;
    standin_lock();
    while (s->first != NULL && standin_work())
        continue;
    if (s->first != NULL)
        standin_finding("a stream ends with %s on it", s->first->label);
    s->alive = false;
    standin_unlock();
}

static bool
move(LhDeviceStream stream, void *to, const void *from, uint64_t bytes, const char *label)
{
    Command *c;

    standin_lock();
    c = command(DO_MOVE, stream, label);
    c->to = to;
    c->from = from;
    c->bytes = bytes;
    return ask(c);
}

static bool
load(LhDeviceState *device, unsigned char *to, const void *from, uint64_t bytes,
     LhDeviceStream stream, GError **error)
{
    (void)device;
    (void)error;
    return move(stream, to, from, bytes, "load");
}

static bool
store(LhDeviceState *device, void *to, const unsigned char *from, uint64_t bytes,
      LhDeviceStream stream, GError **error)
{
    (void)device;
    (void)error;
    memset(to, 0xff, bytes); /* it is not there before the copy is */
    return move(stream, to, from, bytes, "store");
}

static bool
copy(LhDeviceState *device, unsigned char *to, const unsigned char *from, uint64_t bytes,
     LhDeviceStream stream, GError **error)
{
    (void)device;
    (void)error;
    return move(stream, to, from, bytes, "copy");
}

static bool
fill(LhDeviceState *device, unsigned char *to, int byte, uint64_t bytes, LhDeviceStream stream,
     GError **error)
{
    Command *c;

    (void)device;
    (void)error;
    standin_lock();
    c = command(DO_FILL, stream, "fill");
    c->to = to;
    c->byte = byte;
    c->bytes = bytes;
    return ask(c);
}

static enum lh_status
call(LhDeviceState *device, LhKernelId kernel, const LhCall *wanted, LhDeviceStream stream)
{
    Command *c;

    (void)device;
    if (lh_cpu_kernels[kernel]->fast == NULL)
        return LH_STATUS_UNSUPPORTED;
    standin_lock();
    c = command(DO_CALL, stream, lh_kernels[kernel]->name);
    c->kernel = kernel;
    c->args = *wanted->args;
    c->call = *wanted;
    c->call.args = &c->args;
    ask(c);
    return LH_STATUS_OK;
}

static uint64_t
scratch_bytes(const LhDeviceState *device, LhKernelId kernel, const LhKernelArgs *args)
{
    (void)device;
    return lh_cpu_scratch_bytes(kernel, args);
}

static enum lh_status
sum(LhDeviceState *device, const LhDeviceSum *wanted, LhDeviceStream stream)
{
    Command *c;

    (void)device;
    standin_lock();
    c = command(DO_SUM, stream, "sum");
    c->sum = *wanted;
    c->terms = g_memdup2(wanted->terms, wanted->count * sizeof(*wanted->terms));
    c->sum.terms = c->terms;
    ask(c);
    return LH_STATUS_OK;
}

static LhDeviceMark
mark(LhDeviceState *device, LhDeviceStream stream, GError **error)
{
    cudaEvent_t event;

    (void)error;
    use(device);
    cudaEventCreateWithFlags(&event, cudaEventDefault);
    cudaEventRecord(event, stream);
    return event;
}

static bool
wait_for(LhDeviceState *device, LhDeviceStream stream, LhDeviceMark at, GError **error)
{
    (void)device;
    (void)error;
    cudaStreamWaitEvent(stream, at, 0);
    return true;
}

static int
passed(LhDeviceState *device, LhDeviceMark at, GError **error)
{
    (void)device;
    (void)error;
    return cudaEventQuery(at) == cudaSuccess ? 1 : 0;
}

/* To the last digit, where cudaEventElapsedTime() would give a float. */
static bool
time_between(LhDeviceState *device, LhDeviceMark from, LhDeviceMark to, LhTime *ps, GError **error)
{
    const StandinEvent *a = from, *b = to;

    (void)device;
    (void)error;
    *ps = (LhTime)((b->latest->time_s - a->latest->time_s) * PS_PER_S + 0.5);
    return true;
}

static void
unmark(LhDeviceState *device, LhDeviceMark at)
{
    (void)device;
    cudaEventDestroy(at);
}

static const char *const kernel_sets[] = { "cpu", NULL };

const LhRunDevice standin_cpu_device = {
    .name = "stand-in",
    .kernel_sets = kernel_sets,
    .open = open_device,
    .close = close_device,
    .alloc = alloc,
    .release = release,
    .stream = open_stream,
    .end_stream = end_stream,
    .load = load,
    .store = store,
    .copy = copy,
    .fill = fill,
    .call = call,
    .scratch_bytes = scratch_bytes,
    .sum = sum,
    .mark = mark,
    .wait = wait_for,
    .passed = passed,
    .time = time_between,
    .unmark = unmark,
};
