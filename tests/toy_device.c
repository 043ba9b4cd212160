/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory is two address ranges of equal size: handles are in the first, which is inaccessible; the
 * bytes are in the second, at the same offset. Blocks are whole pages, and no page is reused, so
 * that a use after free faults, too.
 */
#include "toy_device.h"

#include "base/error.h"
#include "base/rng.h"
#include "kernels/cpu/kernels.h"
#include "kernels/cpu/rows.h"

#include <pthread.h>
#include <string.h>
#include <sys/mman.h>

#define RANGE_BYTES (UINT64_C(64) << 30)
#define PAGE_BYTES UINT64_C(4096)
#define DELAY_US_MAX 50 /* before a command, occasionally */
#define PS_PER_US 1000000

static pthread_once_t mapped = PTHREAD_ONCE_INIT;
static unsigned char *handles, *bytes_of_handles;
static pthread_mutex_t memory_lock = PTHREAD_MUTEX_INITIALIZER;
static uint64_t next_block;
static GHashTable *block_sizes; /* by handle */

static gint commands, blocks, fail_at;

void
toy_device_fail_at(gint command)
{
    g_atomic_int_set(&commands, 0);
    g_atomic_int_set(&fail_at, command);
}

gint
toy_device_commands(void)
{
    return g_atomic_int_get(&commands);
}

gint
toy_device_blocks(void)
{
    return g_atomic_int_get(&blocks);
}

/* ---- memory ---- */

static void
map(void)
{
    const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;

    handles = mmap(NULL, RANGE_BYTES, PROT_NONE, flags, -1, 0);
    bytes_of_handles = mmap(NULL, RANGE_BYTES, PROT_NONE, flags, -1, 0);
    g_assert(handles != MAP_FAILED && bytes_of_handles != MAP_FAILED);
    block_sizes = g_hash_table_new(NULL, NULL);
}

static unsigned char *
real(const unsigned char *handle)
{
    if (handle == NULL)
        return NULL;
    g_assert(handle >= handles && handle < handles + RANGE_BYTES);
    return bytes_of_handles + (handle - handles);
}

static unsigned char *
toy_alloc(LhDeviceState *device, uint64_t bytes, GError **error)
{
    const uint64_t size = (MAX(bytes, 1) + PAGE_BYTES - 1) / PAGE_BYTES * PAGE_BYTES;
    unsigned char *handle = NULL;

    (void)device;
    pthread_once(&mapped, map);
    pthread_mutex_lock(&memory_lock);
    if (size <= RANGE_BYTES - next_block) {
        handle = handles + next_block;
        next_block += size;
        g_hash_table_insert(block_sizes, handle, GSIZE_TO_POINTER(size));
    }
    pthread_mutex_unlock(&memory_lock);
    if (handle == NULL || mprotect(real(handle), size, PROT_READ | PROT_WRITE) != 0) {
        g_set_error(error, LH_ERROR, LH_ERROR_RUNTIME,
                    "the toy device has no %" G_GUINT64_FORMAT " bytes", bytes);
        return NULL;
    }
    g_atomic_int_inc(&blocks);
    return handle;
}

static void
toy_release(LhDeviceState *device, unsigned char *memory)
{
    uint64_t size;

    (void)device;
    pthread_mutex_lock(&memory_lock);
    size = GPOINTER_TO_SIZE(g_hash_table_lookup(block_sizes, memory));
    g_hash_table_remove(block_sizes, memory);
    pthread_mutex_unlock(&memory_lock);
    g_assert(size > 0);
    madvise(real(memory), size, MADV_DONTNEED);
    mprotect(real(memory), size, PROT_NONE);
    g_atomic_int_add(&blocks, -1);
}

/* ---- streams ---- */

typedef enum {
    COMMAND_MOVE,
    COMMAND_FILL,
    COMMAND_CALL,
    COMMAND_SUM,
    COMMAND_WAIT,
    COMMAND_END,
} CommandKind;

/* Progress of a stream; those who wait for it may outlive the stream. */
typedef struct {
    gint holders;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    uint64_t done; /* commands */
    bool failed;
    GArray *times_us; /* of gint64: completion time of each */
} Progress;

/* All addresses are real ones. */
typedef struct {
    CommandKind kind;
    Progress *other; /* waits for @bytes commands of this one; holds a reference */
    void *to;
    const void *from;
    int byte;
    uint64_t bytes;
    LhKernelId kernel;
    LhKernelArgs args;
    LhCall call;
    LhDeviceSum sum;
    unsigned char **terms; /* owned */
} Command;

struct _LhDeviceState {
    LhDeviceParams params;
    gint streams;
};

typedef struct {
    GThread *thread;
    GAsyncQueue *queue;
    uint64_t seed;
    uint64_t asked; /* commands issued */
    Progress *progress;
} Stream;

typedef struct {
    Progress *progress; /* holds a reference */
    uint64_t after;     /* number of commands */
} Mark;

static Progress *
hold(Progress *p)
{
    g_atomic_int_inc(&p->holders);
    return p;
}

static Progress *
progress_new(void)
{
    Progress *p = g_new0(Progress, 1);

    pthread_mutex_init(&p->lock, NULL);
    pthread_cond_init(&p->changed, NULL);
    p->times_us = g_array_new(FALSE, FALSE, sizeof(gint64));
    return hold(p);
}

static void
give_up(Progress *p)
{
    if (p == NULL || !g_atomic_int_dec_and_test(&p->holders))
        return;
    pthread_mutex_destroy(&p->lock);
    pthread_cond_destroy(&p->changed);
    g_array_unref(p->times_us);
    g_free(p);
}

static void
advance(Progress *p, bool failed)
{
    const gint64 now_us = g_get_monotonic_time();

    pthread_mutex_lock(&p->lock);
    g_array_append_val(p->times_us, now_us);
    p->done++;
    p->failed = failed;
    pthread_cond_broadcast(&p->changed);
    pthread_mutex_unlock(&p->lock);
}

static void
wait_for(Progress *p, uint64_t count)
{
    pthread_mutex_lock(&p->lock);
    while (p->done < count)
        pthread_cond_wait(&p->changed, &p->lock);
    pthread_mutex_unlock(&p->lock);
}

static void
add_up(const LhDeviceSum *s)
{
    for (uint64_t i = 0; i < s->elements; i++) {
        float total = (float)lh_element_get(s->terms[0], s->storage, i);

        for (uint32_t k = 1; k < s->count; k++)
            total += (float)lh_element_get(s->terms[k], s->storage, i);
        lh_element_put(s->sum, s->storage, i, (double)total);
    }
}

/* Overwrites a kernel's outputs before anything is read, as a device that computes all elements
 * at once may do: they hold no numbers when the CPU's kernel begins. Calls that stand for the
 * layer outside write nothing. */
static void
spoil_results(const Command *c)
{
    const LhKernel *kernel = lh_kernels[c->kernel];
    const unsigned read = kernel->in_place.read, written = kernel->in_place.written;

    for (unsigned i = 0;
         kernel->cost != LH_COST_OUTSIDE && kernel->operands[i].access != LH_OPERAND_END; i++) {
        const LhView *view = &c->call.operands[i];
        const uint64_t held = view->held_bytes > 0 ? view->held_bytes : view->part_bytes;
        const bool in_place =
            read != written && i == written && view->data == c->call.operands[read].data;

        for (uint32_t k = 0;
             !in_place && lh_operand_is_overwritten(kernel, &c->args, i) && k < view->parts; k++)
            memset(view->data + k * view->part_bytes, 0xff, held);
    }
}

static bool
carry_out(const Command *c)
{
    if (g_atomic_int_add(&commands, 1) + 1 == g_atomic_int_get(&fail_at))
        return false;
    switch (c->kind) {
    case COMMAND_MOVE:
        memmove(c->to, c->from, c->bytes);
        return true;
    case COMMAND_FILL:
        memset(c->to, c->byte, c->bytes);
        return true;
    case COMMAND_SUM:
        add_up(&c->sum);
        return true;
    case COMMAND_WAIT:
        wait_for(c->other, c->bytes);
        return true;
    default:
        spoil_results(c);
        return lh_cpu_kernels[c->kernel]->fast(&c->call) == LH_STATUS_OK;
    }
}

static gpointer
work(gpointer data)
{
    Stream *s = data;
    bool failed = false;

    for (uint64_t n = 0;; n++) {
        Command *c = g_async_queue_pop(s->queue);
        const bool end = c->kind == COMMAND_END;
        const uint64_t bits = lh_rng_bits(s->seed, n, 0);

        if (bits % 4 == 0)
            g_usleep((gulong)(bits / 4 % DELAY_US_MAX));
        failed = failed || (!end && !carry_out(c));
        give_up(c->other);
        g_free(c->terms);
        g_free(c);
        if (end)
            return NULL;
        advance(s->progress, failed);
    }
}

static void
ask(Stream *s, const Command *command)
{
    s->asked++;
    g_async_queue_push(s->queue, g_memdup2(command, sizeof(*command)));
}

static LhDeviceStream
toy_stream(LhDeviceState *device, bool compute, GError **error)
{
    Stream *s = g_new0(Stream, 1);

    (void)compute;
    (void)error;
    s->queue = g_async_queue_new();
    s->seed = device->params.rank * UINT64_C(100) + (uint64_t)g_atomic_int_add(&device->streams, 1);
    s->progress = progress_new();
    s->thread = g_thread_new("toy", work, s);
    return s;
}

static void
toy_end_stream(LhDeviceState *device, LhDeviceStream stream)
{
    Stream *s = stream;

    g_atomic_int_add(&device->streams, -1);
    ask(s, &(Command){ .kind = COMMAND_END });
    g_thread_join(s->thread);
    g_async_queue_unref(s->queue);
    give_up(s->progress);
    g_free(s);
}

static LhDeviceMark
toy_mark(LhDeviceState *device, LhDeviceStream stream, GError **error)
{
    const Stream *s = stream;
    Mark *mark = g_new(Mark, 1);

    (void)device;
    (void)error;
    mark->progress = hold(s->progress);
    mark->after = s->asked;
    return mark;
}

static bool
toy_wait(LhDeviceState *device, LhDeviceStream stream, LhDeviceMark mark, GError **error)
{
    const Mark *m = mark;

    (void)device;
    (void)error;
    ask(stream, &(Command){ COMMAND_WAIT, .other = hold(m->progress), .bytes = m->after });
    return true;
}

static int
toy_passed(LhDeviceState *device, LhDeviceMark mark, GError **error)
{
    const Mark *m = mark;
    bool failed, passed;

    (void)device;
    pthread_mutex_lock(&m->progress->lock);
    failed = m->progress->failed;
    passed = m->progress->done >= m->after;
    pthread_mutex_unlock(&m->progress->lock);
    if (!failed)
        return passed ? 1 : 0;
    g_set_error_literal(error, LH_ERROR, LH_ERROR_RUNTIME, "the toy device failed");
    return -1;
}

/* When the mark was passed; before any command, the beginning of time. */
static gint64
time_us(const Mark *m)
{
    gint64 us = 0;

    pthread_mutex_lock(&m->progress->lock);
    if (m->after > 0)
        us = g_array_index(m->progress->times_us, gint64, m->after - 1);
    pthread_mutex_unlock(&m->progress->lock);
    return us;
}

static bool
toy_time(LhDeviceState *device, LhDeviceMark from, LhDeviceMark to, LhTime *ps, GError **error)
{
    (void)device;
    (void)error;
    *ps = (time_us(to) - time_us(from)) * PS_PER_US;
    return true;
}

static void
toy_unmark(LhDeviceState *device, LhDeviceMark mark)
{
    (void)device;
    give_up(((Mark *)mark)->progress);
    g_free(mark);
}

/* ---- capabilities ---- */

static LhDeviceState *
toy_open(const LhDeviceParams *params, GError **error)
{
    LhDeviceState *device = g_new0(LhDeviceState, 1);

    (void)error;
    device->params = *params;
    return device;
}

static void
toy_close(LhDeviceState *device)
{
    g_assert(device->streams == 0);
    g_free(device);
}

static bool
toy_load(LhDeviceState *device, unsigned char *to, const void *from, uint64_t bytes,
         LhDeviceStream stream, GError **error)
{
    (void)device;
    (void)error;
    ask(stream, &(Command){ COMMAND_MOVE, .to = real(to), .from = from, .bytes = bytes });
    return true;
}

static bool
toy_store(LhDeviceState *device, void *to, const unsigned char *from, uint64_t bytes,
          LhDeviceStream stream, GError **error)
{
    (void)device;
    (void)error;
    ask(stream, &(Command){ COMMAND_MOVE, .to = to, .from = real(from), .bytes = bytes });
    return true;
}

static bool
toy_copy(LhDeviceState *device, unsigned char *to, const unsigned char *from, uint64_t bytes,
         LhDeviceStream stream, GError **error)
{
    (void)device;
    (void)error;
    ask(stream, &(Command){ COMMAND_MOVE, .to = real(to), .from = real(from), .bytes = bytes });
    return true;
}

static bool
toy_fill(LhDeviceState *device, unsigned char *to, int byte, uint64_t bytes, LhDeviceStream stream,
         GError **error)
{
    (void)device;
    (void)error;
    ask(stream, &(Command){ COMMAND_FILL, .to = real(to), .byte = byte, .bytes = bytes });
    return true;
}

static enum lh_status
toy_call(LhDeviceState *device, LhKernelId kernel, const LhCall *call, LhDeviceStream stream)
{
    Command *c;

    (void)device;
    if (lh_cpu_kernels[kernel]->fast == NULL)
        return LH_STATUS_UNSUPPORTED;
    c = g_new0(Command, 1);
    c->kind = COMMAND_CALL;
    c->kernel = kernel;
    c->args = *call->args;
    c->call = *call;
    c->call.args = &c->args;
    c->call.scratch = real(call->scratch);
    for (unsigned i = 0; i < LH_KERNEL_OPERANDS_MAX; i++)
        c->call.operands[i].data = real(call->operands[i].data);
    ((Stream *)stream)->asked++;
    g_async_queue_push(((Stream *)stream)->queue, c);
    return LH_STATUS_OK;
}

static uint64_t
toy_scratch_bytes(const LhDeviceState *device, LhKernelId kernel, const LhCall *call)
{
    (void)device;
    return lh_cpu_scratch_bytes(kernel, call->args);
}

static enum lh_status
toy_sum(LhDeviceState *device, const LhDeviceSum *sum, LhDeviceStream stream)
{
    Command c = { COMMAND_SUM, .sum = *sum };

    (void)device;
    c.terms = g_new(unsigned char *, sum->count);
    for (uint32_t i = 0; i < sum->count; i++)
        c.terms[i] = real(sum->terms[i]);
    c.sum.terms = c.terms;
    c.sum.sum = real(sum->sum);
    ask(stream, &c);
    return LH_STATUS_OK;
}

static const char *const kernel_sets[] = { "toy", NULL };

const LhRunDevice toy_device = {
    .name = "toy",
    .kernel_sets = kernel_sets,
    .open = toy_open,
    .close = toy_close,
    .alloc = toy_alloc,
    .release = toy_release,
    .stream = toy_stream,
    .end_stream = toy_end_stream,
    .load = toy_load,
    .store = toy_store,
    .copy = toy_copy,
    .fill = toy_fill,
    .call = toy_call,
    .scratch_bytes = toy_scratch_bytes,
    .sum = toy_sum,
    .mark = toy_mark,
    .wait = toy_wait,
    .passed = toy_passed,
    .time = toy_time,
    .unmark = toy_unmark,
};

const LhBackend toy_submitting_backend = {
    .name = "toy",
    .control = &lh_control_single,
    .links = &lh_links_copies,
    .device = &toy_device,
};

const LhBackend toy_backend = {
    .name = "toy",
    .control = &lh_control_single,
    .transport = &lh_transport_threads,
    .device = &toy_device,
};
