/*
 * Calls of attention by cuDNN. Its tensors have one distance from row to row: operands that are cut
 * into parts are put together in scratch memory first, and results are taken apart. Its masks are
 * full and causal ones: under a mask by position, queries and keys are cut into runs of rows that
 * stand one behind the other, and each of queries with one of keys is one or the other. What comes
 * of several runs of keys is merged in fp32.
 */
#include "runtime/gpu/cudnn_attention.h"

#include "base/error.h"
#include "kernels/cpu/rows.h"
#include "kernels/cuda/kernels.h"
#include "kernels/cuda/scratch.h"
#include "model/attention.h"
#include "runtime/gpu/cudnn_plan.h"
#include "runtime/gpu/library.h"

#include <math.h>
#include <pthread.h>
#include <string.h>

#define DIM_STEP 8U
#define DIM_MAX 256U
#define ROWS_MAX (UINT64_C(1) << 31)

struct LhCudnnDevice {
    int ordinal;
    const LhCudnn *cudnn;
    cudnnHandle_t handle;
    pthread_mutex_t lock; /* of what follows, and of the handle's stream */
    GPtrArray *plans;     /* of LhCudnnPlan, owned */
    char *why;
};

static GPtrArray *cudnn_devices; /* owned; until the process ends */
static pthread_mutex_t cudnn_devices_lock = PTHREAD_MUTEX_INITIALIZER;

char *
lh_cudnn_library(GError **error)
{
    const LhCudnn *cudnn = lh_cudnn_load(error);
    g_autofree char *version = NULL;
    g_autofree char *path = NULL;
    void *function;

    if (cudnn == NULL)
        return NULL;
    memcpy(&function, &cudnn->GetVersion, sizeof(function));
    version = lh_cudnn_version_text(cudnn->version);
    path = lh_library_path(function);
    return g_strdup_printf("%s, %s", version, path);
}

/* ---- devices ---- */

static LhCudnnDevice *
device_new(int ordinal, GError **error)
{
    const LhCudnn *cudnn = lh_cudnn_load(error);
    cudnnHandle_t handle = NULL;
    LhCudnnDevice *device;

    if (cudnn == NULL || !lh_cudnn_check(cudnn, cudnn->Create(&handle), "handle", error))
        return NULL;
    device = g_new0(LhCudnnDevice, 1);
    device->ordinal = ordinal;
    device->cudnn = cudnn;
    device->handle = handle;
    device->plans = g_ptr_array_new_with_free_func((GDestroyNotify)lh_cudnn_plan_free);
    pthread_mutex_init(&device->lock, NULL);
    return device;
}

static LhCudnnDevice *
find_device(int ordinal)
{
    for (guint i = 0; i < cudnn_devices->len; i++) {
        LhCudnnDevice *device = g_ptr_array_index(cudnn_devices, i);

        if (device->ordinal == ordinal)
            return device;
    }
    return NULL;
}

LhCudnnDevice *
lh_cudnn_device(int ordinal, GError **error)
{
    LhCudnnDevice *device;

    pthread_mutex_lock(&cudnn_devices_lock);
    if (cudnn_devices == NULL)
        cudnn_devices = g_ptr_array_new();
    device = find_device(ordinal);
    if (device == NULL) {
        device = device_new(ordinal, error);
        if (device != NULL)
            g_ptr_array_add(cudnn_devices, device);
    }
    pthread_mutex_unlock(&cudnn_devices_lock);
    return device;
}

char *
lh_cudnn_why(LhCudnnDevice *device)
{
    char *why;

    pthread_mutex_lock(&device->lock);
    why = g_strdup(device->why);
    pthread_mutex_unlock(&device->lock);
    return why;
}

/* ---- a call ---- */

/* Queries that stand one behind the other, with the keys of a run, from its first one on, that
 * they see. */
typedef struct {
    uint64_t first; /* of the queries */
    uint64_t nq, nk;
    LhCudnnMask mask;
    int32_t shift;
} Block;

/* A call, as it is being enqueued; or only counted, if there is no scratch memory yet. After the
 * first failure nothing is enqueued any more. */
typedef struct {
    LhCudnnDevice *device;
    const LhCall *call;
    const LhKernelArgs *args;
    unsigned kv; /* its operand */
    void *stream;
    bool counts;
    LhCudaScratch scratch;
    uint64_t scratch_most; /* that was in use at a time */
    enum lh_status status;

    /* The runs of keys; then those of the one that is being enqueued. */
    uint32_t runs;
    uint64_t nk;
    GArray *blocks;  /* of Block */
    bool rows_left;  /* some queries are in none of them */
    void *workspace; /* of the largest need of their plans */
} Job;

static void
fail_job(Job *j, enum lh_status status, GError *error)
{
    pthread_mutex_lock(&j->device->lock);
    g_free(j->device->why);
    j->device->why = error != NULL ? g_strdup(error->message) : NULL;
    pthread_mutex_unlock(&j->device->lock);
    g_clear_error(&error);
    j->status = status;
}

static void decline(Job *j, const char *format, ...) G_GNUC_PRINTF(2, 3);

static void
decline(Job *j, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    fail_job(j, LH_STATUS_UNSUPPORTED,
             g_error_new_valist(LH_ERROR, LH_ERROR_NO, format, arguments));
    va_end(arguments);
}

/* Scratch memory; its use ends when j->scratch.used is set back, as the stream goes on in order. */
static void *
take_scratch(Job *j, uint64_t bytes)
{
    void *taken = lh_cuda_take(&j->scratch, bytes);

    j->scratch_most = MAX(j->scratch_most, j->scratch.used);
    return taken;
}

/* Calls one of longhaul's own kernels. */
static void
call_own(Job *j, LhKernelId kernel, LhCall call)
{
    const LhCudaKernel *own = lh_cuda_kernels[kernel];
    const uint64_t bytes = own->scratch_bytes == NULL ? 0 : own->scratch_bytes(call.args);
    enum lh_status status;

    call.scratch = bytes == 0 ? NULL : take_scratch(j, bytes);
    if (j->counts || j->status != LH_STATUS_OK)
        return;
    status = own->run(&call, j->stream);
    if (status != LH_STATUS_OK)
        fail_job(j, status, NULL);
}

/* ---- tensors ---- */

/* Of @rows a sequence in all parts. */
static LhView
view_of(const Job *j, const LhRows *t, uint64_t rows)
{
    return (LhView){ .data = t->data,
                     .parts = (uint32_t)(rows / t->part_rows),
                     .part_bytes = t->part_bytes,
                     .storage = t->storage,
                     .held_bytes = lh_rows_bytes(t, j->args->batch) };
}

/* Whether a tensor is one to cuDNN: rows lie in the order of [batch][rows], aligned. */
static bool
is_whole_tensor(const Job *j, const LhRows *t, uint64_t rows)
{
    const uint64_t align = t->storage == LH_STORAGE_FP32 ? sizeof(float) : LH_CUDNN_ALIGN;
    const bool joined = j->args->batch == 1 && t->part_bytes == lh_rows_bytes(t, 1);

    return (uintptr_t)t->data % align == 0 && (t->part_rows == rows || joined);
}

/* A whole tensor like @t, without memory. */
static LhRows
like(const Job *j, const LhRows *t, uint64_t rows, enum lh_storage storage)
{
    LhRows whole = { .part_rows = rows, .heads = t->heads, .dim = t->dim, .storage = storage };

    whole.part_bytes = lh_rows_bytes(&whole, j->args->batch);
    return whole;
}

/* The same in scratch memory. */
static LhRows
scratch_for(Job *j, const LhRows *t, uint64_t rows, enum lh_storage storage)
{
    LhRows whole = like(j, t, rows, storage);

    whole.data = take_scratch(j, whole.part_bytes);
    return whole;
}

/* to = from, row by row, whatever parts either has: k taken out of an operand that is k alone. */
static void
copy_rows(Job *j, const LhRows *from, const LhRows *to, uint64_t rows)
{
    const LhKernelArgs args = {
        .nk = rows, .batch = j->args->batch, .groups = to->heads, .head_dim = to->dim
    };
    const LhCall call = { .args = &args,
                          .operands = { view_of(j, from, rows), view_of(j, to, rows) } };

    call_own(j, LH_KERNEL_ID_take_k, call);
}

/* An operand of the call as cuDNN reads it. */
static LhRows
read_whole(Job *j, LhRows t, uint64_t rows)
{
    LhRows whole = t;

    if (is_whole_tensor(j, &t, rows))
        return t;
    whole = scratch_for(j, &t, rows, t.storage);
    copy_rows(j, &t, &whole, rows);
    return whole;
}

/* to += from, or with @first = from: from is whole, of 16 bits. */
static void
add_rows(Job *j, const LhRows *from, const LhRows *to, uint64_t rows, bool first)
{
    const LhKernelArgs args = {
        .nq = rows, .batch = j->args->batch, .heads = to->heads, .head_dim = to->dim, .first = first
    };
    LhRows parted = *from;
    LhCall call = { .args = &args };

    parted.part_rows = to->part_rows;
    parted.part_bytes = lh_rows_bytes(&parted, j->args->batch);
    /* Of one sequence, elements lie in the same order either way. */
    if (to->part_rows != rows && j->args->batch > 1) {
        parted.data = take_scratch(j, rows / to->part_rows * parted.part_bytes);
        copy_rows(j, from, &parted, rows);
    }
    call.operands[0] = view_of(j, &parted, rows);
    call.operands[1] = view_of(j, to, rows);
    call_own(j, to->storage == LH_STORAGE_FP32 ? LH_KERNEL_ID_add_to_fp32 : LH_KERNEL_ID_add, call);
}

static void
zero_rows(Job *j, const LhRows *t, uint64_t rows)
{
    const LhKernelArgs args = {
        .nq = rows, .batch = j->args->batch, .heads = t->heads, .head_dim = t->dim, .first = true
    };
    const LhCall call = { .args = &args, .operands = { view_of(j, t, rows) } };

    call_own(j, LH_KERNEL_ID_zero, call);
}

static void *
row_at(const LhRows *t, uint64_t row)
{
    return t->data == NULL ? NULL
                           : t->data + row * t->heads * t->dim * lh_storage_bytes(t->storage);
}

/* ---- masks ---- */

/* @nq queries from @first on, which see keys j <= i + @shift, i counted from @first: nothing, or a
 * block. Queries in front that see none, and keys behind that are not seen, are left out. */
static void
add_block(Job *j, uint64_t first, uint64_t nq, int64_t shift)
{
    const uint64_t blind = shift < 0 ? (uint64_t)-shift : 0;
    Block b = { .first = first + blind, .mask = LH_CUDNN_CAUSAL };

    j->rows_left |= blind > 0;
    if (blind >= nq)
        return;
    b.nq = nq - blind;
    b.shift = (int32_t)MIN(MAX(shift, 0), (int64_t)ROWS_MAX - 1);
    b.nk = MIN(j->nk, b.nq + (uint64_t)b.shift);
    if ((uint64_t)b.shift + 1 >= b.nk)
        b.mask = LH_CUDNN_FULL;
    else if (b.shift > 0)
        b.mask = LH_CUDNN_SHIFTED;
    g_array_append_val(j->blocks, b);
}

/* As many times @b as go into @a, rounded down. */
static int64_t
floor_divide(int64_t a, int64_t b)
{
    return a / b - (a % b < 0 ? 1 : 0);
}

/* Whether the parts of rows stand in the sequence as one part would. */
static bool
are_joined(const LhRowsPosition *at, uint64_t stride, uint64_t rows, uint64_t part_rows)
{
    return part_rows == rows || at->part_step == (int64_t)(part_rows * stride);
}

/* How many runs the keys have: one, or as many as parts. */
static void
count_runs(Job *j)
{
    const LhKernelArgs *a = j->args;
    const uint32_t parts = j->call->operands[j->kv].parts;

    j->runs = 1;
    if (a->mask != LH_MASK_POSITIONS)
        return;
    if (!lh_mask_is_plain(a->rule))
        decline(j, "cuDNN is called with full and causal masks, not with windows or documents");
    else if (a->rule->causal && !are_joined(&a->k_at, a->stride, a->nk, a->nk / parts))
        j->runs = parts;
}

/* Rows stand at start + i stride: key j is not behind query i if j <= i + (start of q - start of k)
 * / stride. */
static void
cut_by_position(Job *j, uint32_t run)
{
    const LhKernelArgs *a = j->args;
    const uint64_t part_rows = a->nq / j->call->operands[0].parts;
    const uint64_t rows = are_joined(&a->q_at, a->stride, a->nq, part_rows) ? a->nq : part_rows;
    const int64_t k_start = a->k_at.start + (int64_t)run * a->k_at.part_step;

    for (uint64_t first = 0; first < a->nq; first += rows) {
        const int64_t q_start = a->q_at.start + (int64_t)(first / rows) * a->q_at.part_step;

        add_block(j, first, rows, floor_divide(q_start - k_start, (int64_t)a->stride));
    }
}

/* All queries with a run of keys. */
static void
cut_run(Job *j, uint32_t run)
{
    const LhKernelArgs *a = j->args;
    const bool all = a->mask == LH_MASK_FULL || (a->mask == LH_MASK_POSITIONS && !a->rule->causal);

    j->nk = a->nk / j->runs;
    j->rows_left = false;
    g_array_set_size(j->blocks, 0);
    if (all || a->mask == LH_MASK_CAUSAL)
        add_block(j, 0, a->nq, all ? (int64_t)j->nk : a->shift);
    else
        cut_by_position(j, run);
}

/* k, or v, of a run of keys, as cuDNN reads it or as it is written. */
static LhRows
of_run(const Job *j, LhRows t, uint32_t run)
{
    t.data += j->runs > 1 ? run * t.part_bytes : 0;
    return t;
}

/* ---- plans ---- */

static LhCudnnShape
block_shape(const Job *j, const Block *b, bool backward)
{
    const LhKernelArgs *a = j->args;

    return (LhCudnnShape){ .backward = backward,
                           .mask = b->mask,
                           .storage = j->call->operands[0].storage,
                           .batch = a->batch,
                           .heads = a->heads,
                           .groups = a->groups,
                           .dim = a->head_dim,
                           .nq = b->nq,
                           .nk = b->nk,
                           /* One sequence has no next one: whatever its place, the plan is one. */
                           .q_rows = a->batch == 1 ? b->nq : a->nq,
                           .k_rows = a->batch == 1 ? b->nk : j->nk };
}

static bool
is_same_shape(const LhCudnnShape *a, const LhCudnnShape *b)
{
    return a->backward == b->backward && a->mask == b->mask && a->storage == b->storage &&
           a->batch == b->batch && a->heads == b->heads && a->groups == b->groups &&
           a->dim == b->dim && a->nq == b->nq && a->nk == b->nk && a->q_rows == b->q_rows &&
           a->k_rows == b->k_rows;
}

/* The caller has the lock. */
static const LhCudnnPlan *
find_or_make_plan(LhCudnnDevice *device, const LhCudnnShape *shape, GError **error)
{
    const LhCudnnTarget target = { .cudnn = device->cudnn, .handle = device->handle };
    LhCudnnPlan *plan;

    for (guint i = 0; i < device->plans->len; i++) {
        plan = g_ptr_array_index(device->plans, i);
        if (is_same_shape(&plan->shape, shape))
            return plan;
    }
    plan = lh_cudnn_plan_new(&target, shape, error);
    if (plan != NULL)
        g_ptr_array_add(device->plans, plan);
    return plan;
}

/* NULL: the job has failed. */
static const LhCudnnPlan *
plan_for(Job *j, const Block *b, bool backward)
{
    const LhCudnnShape shape = block_shape(j, b, backward);
    const LhCudnnPlan *plan;
    GError *error = NULL;

    if (j->status != LH_STATUS_OK)
        return NULL;
    pthread_mutex_lock(&j->device->lock);
    plan = find_or_make_plan(j->device, &shape, &error);
    pthread_mutex_unlock(&j->device->lock);
    if (plan == NULL)
        fail_job(j,
                 g_error_matches(error, LH_ERROR, LH_ERROR_NO) ? LH_STATUS_UNSUPPORTED
                                                               : LH_STATUS_DEVICE,
                 error);
    return plan;
}

/* Blocks of a call come one after the other, and may use the same workspace. */
static void
reserve_workspace(Job *j, bool backward)
{
    uint64_t bytes = 0;

    for (guint i = 0; i < j->blocks->len; i++) {
        const LhCudnnPlan *plan = plan_for(j, &g_array_index(j->blocks, Block, i), backward);

        bytes = plan == NULL ? bytes : MAX(bytes, plan->workspace_bytes);
    }
    j->workspace = take_scratch(j, bytes);
}

/* @tensors: those of the call; the numbers are added to them. */
static void
run_block(Job *j, const Block *b, bool backward, void *const tensors[LH_CUDNN_TENSORS])
{
    const LhCudnnPlan *plan = plan_for(j, b, backward);
    float scale = (float)lh_attention_scale(j->args->scale, j->args->head_dim);
    float one = 1, minus_inf = -INFINITY;
    int32_t shift = b->shift;
    void *memory[LH_CUDNN_TENSORS];
    GError *error = NULL;
    bool done;

    if (j->counts || plan == NULL)
        return;
    memcpy(memory, tensors, sizeof(memory));
    memory[LH_CUDNN_SCALE] = &scale;
    memory[LH_CUDNN_ONE] = backward ? &one : NULL;
    memory[LH_CUDNN_MINUS_INF] = b->mask == LH_CUDNN_FULL ? NULL : &minus_inf;
    memory[LH_CUDNN_SHIFT] = b->mask == LH_CUDNN_SHIFTED ? &shift : NULL;
    pthread_mutex_lock(&j->device->lock);
    done =
        lh_cudnn_check(j->device->cudnn, j->device->cudnn->SetStream(j->device->handle, j->stream),
                       "stream", &error) &&
        lh_cudnn_plan_run(plan, j->device->handle, memory, j->workspace, &error);
    pthread_mutex_unlock(&j->device->lock);
    if (!done)
        fail_job(j, LH_STATUS_DEVICE, error);
}

/* ---- forward ---- */

/* Rows that see nothing have o = 0 and lse = -inf, which longhaul's own kernel writes to all. */
static void
leave_empty(Job *j, const LhRows *o, const LhRows *lse)
{
    LhKernelArgs args = *j->args;
    const LhCall call = { .args = &args,
                          .operands = { j->call->operands[0], j->call->operands[1],
                                        view_of(j, o, args.nq), view_of(j, lse, args.nq) } };

    args.mask = LH_MASK_EMPTY;
    args.pairs = 0;
    call_own(j, LH_KERNEL_ID_attention, call);
}

/* Of a run of keys, into @o and @lse, which are whole, as is @q. */
static void
attend_run(Job *j, uint32_t run, const LhRows *q, const LhRows *o, const LhRows *lse)
{
    const uint64_t used = j->scratch.used;
    LhRows k, v;

    cut_run(j, run);
    k = read_whole(j, of_run(j, lh_rows_k(j->call, j->kv), run), j->nk);
    v = read_whole(j, of_run(j, lh_rows_v(j->call, j->kv), run), j->nk);
    reserve_workspace(j, false);
    if (j->rows_left)
        leave_empty(j, o, lse);
    for (guint i = 0; i < j->blocks->len; i++) {
        const Block *b = &g_array_index(j->blocks, Block, i);
        void *const tensors[LH_CUDNN_TENSORS] = {
            [LH_CUDNN_Q] = row_at(q, b->first),
            [LH_CUDNN_K] = k.data,
            [LH_CUDNN_V] = v.data,
            [LH_CUDNN_O] = row_at(o, b->first),
            [LH_CUDNN_LSE] = row_at(lse, b->first),
        };

        run_block(j, b, false, tensors);
    }
    j->scratch.used = used;
}

/* o with what stands behind it: one statistic, or two. */
static LhView
with_stats(const Job *j, const LhRows *o, unsigned stats)
{
    const uint64_t rows = j->args->batch * j->args->nq * j->args->heads;
    LhView view = view_of(j, o, j->args->nq);

    view.part_bytes = view.held_bytes += stats * rows * sizeof(float);
    return view;
}

/* Every run of keys is a block, which is merged into the accumulator (o, m, l). */
static void
attend_and_merge(Job *j, const LhView *acc, bool first)
{
    const uint64_t nq = j->args->nq, rows = j->args->batch * nq * j->args->heads;
    const LhRows q = read_whole(j, lh_rows_q(j->call, 0), nq);
    LhRows o = like(j, &q, nq, q.storage), lse = lh_rows_stat(j->call, 0);
    LhKernelArgs args = *j->args;

    o.data = take_scratch(j, o.part_bytes + rows * sizeof(float));
    lse = like(j, &lse, nq, LH_STORAGE_FP32);
    lse.data = row_at(&o, j->args->batch * nq);
    for (uint32_t run = 0; run < j->runs; run++) {
        const LhCall merge = { .args = &args, .operands = { with_stats(j, &o, 1), *acc } };
        enum lh_status status;

        attend_run(j, run, &q, &o, &lse);
        args.first = first && run == 0;
        if (j->counts || j->status != LH_STATUS_OK)
            continue;
        status = lh_cuda_merge_block(&merge, j->stream);
        if (status != LH_STATUS_OK)
            fail_job(j, status, NULL);
    }
}

static void
attention_fwd(Job *j)
{
    attend_and_merge(j, &j->call->operands[2], j->args->first);
}

/* Several runs of keys, by way of an accumulator. */
static void
merge_to(Job *j, const LhRows *o, const LhRows *lse)
{
    const uint64_t nq = j->args->nq, rows = j->args->batch * nq * j->args->heads;
    LhRows acc = like(j, o, nq, LH_STORAGE_FP32);
    LhView view;

    acc.data = take_scratch(j, acc.part_bytes + 2 * rows * sizeof(float));
    view = with_stats(j, &acc, 2);
    attend_and_merge(j, &view, true);
    call_own(
        j, LH_KERNEL_ID_normalise,
        (LhCall){ .args = j->args, .operands = { view, view_of(j, o, nq), view_of(j, lse, nq) } });
}

/* o and lse of a call end up in @o and @lse. */
static void
forward_to(Job *j, LhRows o, LhRows lse)
{
    const uint64_t nq = j->args->nq;
    const bool o_whole = is_whole_tensor(j, &o, nq), lse_whole = is_whole_tensor(j, &lse, nq);
    LhRows q, to_o, to_lse;

    if (j->runs > 1) {
        merge_to(j, &o, &lse);
        return;
    }
    q = read_whole(j, lh_rows_q(j->call, 0), nq);
    to_o = o_whole ? o : scratch_for(j, &o, nq, o.storage);
    to_lse = lse_whole ? lse : scratch_for(j, &lse, nq, lse.storage);
    attend_run(j, 0, &q, &to_o, &to_lse);
    if (!o_whole)
        copy_rows(j, &to_o, &o, nq);
    if (!lse_whole)
        copy_rows(j, &to_lse, &lse, nq);
}

static void
attention(Job *j)
{
    forward_to(j, lh_rows_q(j->call, 2), lh_rows_stat(j->call, 3));
}

static void
attention_block(Job *j)
{
    forward_to(j, lh_rows_q(j->call, 2), lh_rows_acc_stat(j->call, 2, 0));
}

/* ---- backward ---- */

/* Operands q, do, o, lse, kv, dq, dkv. */
typedef struct {
    LhRows q, dout, o, lse, dq; /* of the call */
    LhRows k, v, dk, dv;        /* of a run of keys */
    void *delta, *dq_sum;
} Backward;

static Backward
prepare_backward(Job *j)
{
    const LhKernelArgs *a = j->args;
    const LhCall *call = j->call;
    const uint64_t rows = a->batch * a->nq * a->heads;
    Backward w = { .q = read_whole(j, lh_rows_q(call, 0), a->nq),
                   .dout = read_whole(j, lh_rows_q(call, 1), a->nq),
                   .o = read_whole(j, lh_rows_q(call, 2), a->nq),
                   .lse = read_whole(j, lh_rows_stat(call, 3), a->nq) };

    w.dq = scratch_for(j, &w.q, a->nq, w.q.storage);
    w.delta = take_scratch(j, rows * sizeof(float));
    w.dq_sum = take_scratch(j, rows * a->head_dim * sizeof(float));
    return w;
}

static void
run_backward(Job *j, const Backward *w, const Block *b)
{
    void *const tensors[LH_CUDNN_TENSORS] = {
        [LH_CUDNN_Q] = row_at(&w->q, b->first),
        [LH_CUDNN_K] = w->k.data,
        [LH_CUDNN_V] = w->v.data,
        [LH_CUDNN_O] = row_at(&w->o, b->first),
        [LH_CUDNN_LSE] = row_at(&w->lse, b->first),
        [LH_CUDNN_DO] = row_at(&w->dout, b->first),
        [LH_CUDNN_DQ] = row_at(&w->dq, b->first),
        [LH_CUDNN_DK] = w->dk.data,
        [LH_CUDNN_DV] = w->dv.data,
        [LH_CUDNN_DELTA] = w->delta,
        [LH_CUDNN_DQ_SUM] = w->dq_sum,
    };

    run_block(j, b, true, tensors);
}

/* dk and dv of keys that a block does not see. */
static void
zero_keys(Job *j, const Backward *w)
{
    zero_rows(j, &w->dk, j->nk);
    zero_rows(j, &w->dv, j->nk);
}

static void
add_keys(Job *j, const Backward *w, uint32_t run, bool first)
{
    const LhRows dk = of_run(j, lh_rows_k(j->call, 6), run);
    const LhRows dv = of_run(j, lh_rows_v(j->call, 6), run);

    add_rows(j, &w->dk, &dk, j->nk, first);
    add_rows(j, &w->dv, &dv, j->nk, first);
}

/* Gradients of a run's keys are added up block by block; queries are each in one block at most. */
static void
backward_run(Job *j, Backward *w, uint32_t run)
{
    const LhRows dq = lh_rows_q(j->call, 5);
    const bool first = j->args->first;

    w->dk = scratch_for(j, &w->k, j->nk, w->k.storage);
    w->dv = scratch_for(j, &w->v, j->nk, w->v.storage);
    reserve_workspace(j, true);
    if (j->rows_left)
        zero_rows(j, &w->dq, j->args->nq);
    for (guint i = 0; i < j->blocks->len; i++) {
        const Block *b = &g_array_index(j->blocks, Block, i);

        if (b->nk < j->nk)
            zero_keys(j, w);
        run_backward(j, w, b);
        add_keys(j, w, run, first && i == 0);
    }
    if (j->blocks->len == 0 && first) {
        zero_keys(j, w);
        add_keys(j, w, run, true);
    }
    add_rows(j, &w->dq, &dq, j->args->nq, first && run == 0);
}

static void
attention_bwd_o(Job *j)
{
    Backward w = prepare_backward(j);
    const uint64_t used = j->scratch.used;

    for (uint32_t run = 0; run < j->runs; run++) {
        cut_run(j, run);
        w.k = read_whole(j, of_run(j, lh_rows_k(j->call, j->kv), run), j->nk);
        w.v = read_whole(j, of_run(j, lh_rows_v(j->call, j->kv), run), j->nk);
        backward_run(j, &w, run);
        j->scratch.used = used;
    }
}

/* ---- what there is, and what not ---- */

/* How cuDNN computes a row of the table; NULL: not at all. */
typedef struct {
    LhKernelId kernel;
    void (*enqueue)(Job *j);
    unsigned operands_count;
    unsigned inputs, keys; /* sets of bits: operands of the activations' type; those of keys */
    unsigned kv;           /* the operand */
} Row;

static const Row kernel_rows[] = {
    { LH_KERNEL_ID_attention, attention, 4, 1 << 0 | 1 << 1 | 1 << 2, 1 << 1, 1 },
    { LH_KERNEL_ID_attention_fwd, attention_fwd, 3, 1 << 0 | 1 << 1, 1 << 1, 1 },
    { LH_KERNEL_ID_attention_block, attention_block, 3, 1 << 0 | 1 << 1 | 1 << 2, 1 << 1, 1 },
    { LH_KERNEL_ID_attention_bwd_o, attention_bwd_o, 7, 1 << 0 | 1 << 1 | 1 << 2 | 1 << 4,
      1 << 4 | 1 << 6, 4 },
    { LH_KERNEL_ID_attention_bwd, NULL, 7, 0, 1 << 4 | 1 << 6, 4 },
};

static const Row *
row_of(LhKernelId kernel)
{
    for (size_t i = 0; i < G_N_ELEMENTS(kernel_rows); i++) {
        if (kernel_rows[i].kernel == kernel)
            return &kernel_rows[i];
    }
    return NULL;
}

bool
lh_cudnn_computes(LhKernelId kernel, const LhKernelArgs *args)
{
    return row_of(kernel) != NULL && args->mask != LH_MASK_EMPTY && args->nq > 0 && args->nk > 0 &&
           args->batch > 0 && args->heads > 0;
}

/* False: the job is refused. */
static bool
check_types(Job *j, const Row *row)
{
    const enum lh_storage storage = j->call->operands[0].storage;

    if (storage != LH_STORAGE_BF16 && storage != LH_STORAGE_FP16)
        decline(j, "cuDNN's attention takes bf16 and fp16, not fp32");
    for (unsigned i = 0; i < row->operands_count && j->status == LH_STATUS_OK; i++) {
        if ((row->inputs >> i & 1) != 0 && j->call->operands[i].storage != storage)
            decline(j, "cuDNN's attention takes q, k, v and o of one type");
    }
    return j->status == LH_STATUS_OK;
}

static bool
check_call(Job *j, const Row *row)
{
    const LhKernelArgs *a = j->args;

    if (row->enqueue == NULL)
        decline(j,
                "cuDNN's backward attention computes delta from o, which this call does not "
                "have; schedules that give it o are those of TransformerEngine and of the rings");
    else if (a->head_dim % DIM_STEP != 0 || a->head_dim > DIM_MAX)
        decline(j,
                "cuDNN's attention takes head dimensions that are multiples of %u up to %u, not "
                "%u",
                DIM_STEP, DIM_MAX, a->head_dim);
    else if (!lh_parts_divide(j->call, row->operands_count, row->keys) || a->groups == 0 ||
             a->heads % a->groups != 0 || a->nq >= ROWS_MAX || a->nk >= ROWS_MAX)
        decline(j, "such a number of rows or heads is not supported");
    else
        return check_types(j, row);
    return false;
}

static void
enqueue_call(Job *j, LhKernelId kernel)
{
    const Row *row = row_of(kernel);

    j->args = j->call->args;
    j->kv = row->kv;
    j->blocks = g_array_new(FALSE, FALSE, sizeof(Block));
    if (check_call(j, row))
        count_runs(j);
    if (j->status == LH_STATUS_OK)
        row->enqueue(j);
    g_array_unref(j->blocks);
}

uint64_t
lh_cudnn_scratch_bytes(LhCudnnDevice *device, LhKernelId kernel, const LhCall *call)
{
    Job j = { .device = device, .call = call, .counts = true };

    enqueue_call(&j, kernel);
    return j.scratch_most;
}

enum lh_status
lh_cudnn_call(LhCudnnDevice *device, LhKernelId kernel, const LhCall *call, void *stream)
{
    Job j = { .device = device, .call = call, .stream = stream };

    j.scratch.base = call->scratch;
    enqueue_call(&j, kernel);
    return j.status;
}
