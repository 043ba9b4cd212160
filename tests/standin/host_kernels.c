/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CPU kernels in place of the GPU's, as work on streams: their accesses are checked for races with
 * all others, and results must equal those of threads bit by bit. This tests the engine with every
 * schedule, including those with kernels that are slow to interpret.
 */
#include "kernels/cpu/kernels.h"
#include "kernels/cpu/rows.h"
#include "kernels/cuda/attention/rows_of_tensors.h"
#include "kernels/cuda/pace.h"
#include "kernels/cuda/rows/elementwise.h"
#include "kernels/cuda/table.h"
#include "standin_calls.h"
#include "standin_private.h"

#include <math.h>
#include <string.h>

#define NS_PER_S 1e9

double (*standin_call_seconds)(LhKernelId kernel, const LhKernelArgs *args);

typedef struct {
    StandinOp op;
    LhKernelId kernel;
    LhKernelArgs args;
    LhCall call;
} CallOp;

typedef struct {
    StandinOp op;
    unsigned char **terms; /* [count], owned */
    uint32_t count;
    unsigned char *sum;
    uint64_t elements;
    enum lh_storage storage;
} SumOp;

/* As launchers end: with the thread's last error, whichever call it comes from. */
static enum lh_status
launched(void)
{
    return cudaGetLastError() == cudaSuccess ? LH_STATUS_OK : LH_STATUS_DEVICE;
}

/* False if an operand's memory does not exist. */
static bool
touch_operand(CallOp *c, uint32_t turn, unsigned i)
{
    const LhView *v = &c->call.operands[i];
    const LhKernel *row = lh_kernels[c->kernel];
    const uint64_t bytes = v->held_bytes != 0 ? v->held_bytes : v->part_bytes;
    const bool reads = !lh_operand_is_overwritten(row, &c->args, i);
    const bool writes = row->operands[i].access != LH_OPERAND_READ;
    bool ok = true;

    for (uint32_t part = 0; ok && part < v->parts; part++) {
        const unsigned char *at = v->data + part * v->part_bytes;

        ok = (!reads || standin_touch(&c->op, turn, at, bytes, false)) &&
             (!writes || standin_touch(&c->op, turn, at, bytes, true));
    }
    return ok;
}

static bool
run_call(StandinOp *op)
{
    CallOp *c = (CallOp *)op;
    const uint32_t turn = standin_turn(op);
    const uint64_t scratch_bytes = lh_cpu_scratch_bytes(c->kernel, &c->args);
    bool ok = scratch_bytes == 0 || standin_touch(op, turn, c->call.scratch, scratch_bytes, true);

    for (unsigned i = 0; ok && i < LH_KERNEL_OPERANDS_MAX && c->call.operands[i].data != NULL; i++)
        ok = touch_operand(c, turn, i);
    standin_counted.kernels++;
    if (standin_is_idle())
        return true;
    if (ok && lh_cpu_kernels[c->kernel]->fast(&c->call) == LH_STATUS_OK)
        return true;
    standin_finding("%s failed", op->label);
    standin_sticky = cudaErrorIllegalAddress;
    return true;
}

static const StandinKind kind_call = { .name = "kernel", .run = run_call };

static enum lh_status
enqueue(const StandinKind *kind, LhKernelId kernel, const LhCall *call, void *stream)
{
    static const uint32_t grid[3] = { 1, 1, 1 };
    cudaError_t code;
    CallOp *c;

    standin_lock();
    c = standin_op_new(kind, stream, sizeof(*c), g_strdup(lh_kernels[kernel]->name));
    c->kernel = kernel;
    c->args = *call->args;
    c->call = *call;
    c->call.args = &c->args;
    if (standin_call_seconds != NULL)
        standin_next_launch(standin_call_seconds(kernel, &c->args), 0);
    standin_clock_launch(&c->op, lh_kernels[kernel]->name, grid);
    code = standin_enqueue(&c->op);
    standin_unlock();
    (void)standin_result(code);
    return launched();
}

static enum lh_status
enqueue_call(LhKernelId kernel, const LhCall *call, void *stream)
{
    if (lh_cpu_kernels[kernel]->fast == NULL)
        return LH_STATUS_UNSUPPORTED;
    return enqueue(&kind_call, kernel, call, stream);
}

/* ---- the table ---- */

#define LH_KERNEL(id)                                                                              \
    static enum lh_status run_##id(const LhCall *call, void *stream)                               \
    {                                                                                              \
        return enqueue_call(LH_KERNEL_ID_##id, call, stream);                                      \
    }                                                                                              \
    static uint64_t scratch_bytes_##id(const LhKernelArgs *args)                                   \
    {                                                                                              \
        return lh_cpu_scratch_bytes(LH_KERNEL_ID_##id, args);                                      \
    }                                                                                              \
    static const LhCudaKernel kernel_##id = { run_##id, scratch_bytes_##id };
#include "kernels.def"
#undef LH_KERNEL

const LhCudaKernel *const lh_cuda_kernels[LH_KERNELS_COUNT] = {
#define LH_KERNEL(id) [LH_KERNEL_ID_##id] = &kernel_##id,
#include "kernels.def"
#undef LH_KERNEL
};

bool
lh_cuda_present(void)
{
    return true;
}

/* ---- blocks into accumulators ---- */

/* A block with m = lse and l = 1 is an accumulator, which the CPU's kernel merges. Operands block,
 * acc; the block has one part. */
static enum lh_status
merge_as_accumulator(const LhCall *call)
{
    const LhKernelArgs *a = call->args;
    const uint64_t stats = a->batch * a->nq * a->heads;
    const uint64_t bytes = call->operands[0].held_bytes;
    g_autofree unsigned char *source = g_malloc(bytes + stats * sizeof(float));
    LhCall merge = *call;

    memcpy(source, call->operands[0].data, bytes);
    for (uint64_t i = 0; i < stats; i++) {
        const float one = 1;

        memcpy(source + bytes + i * sizeof(float), &one, sizeof(one));
    }
    merge.operands[0].data = source;
    merge.operands[0].held_bytes = merge.operands[0].part_bytes = bytes + stats * sizeof(float);
    return lh_cpu_kernels[LH_KERNEL_ID_merge]->fast(&merge);
}

static bool
run_merge_block(StandinOp *op)
{
    CallOp *c = (CallOp *)op;
    const uint32_t turn = standin_turn(op);

    standin_counted.kernels++;
    if (standin_is_idle())
        return true;
    if (!touch_operand(c, turn, 0) || !touch_operand(c, turn, 1) ||
        merge_as_accumulator(&c->call) != LH_STATUS_OK)
        standin_finding("%s failed", op->label);
    return true;
}

static const StandinKind kind_merge_block = { .name = "kernel", .run = run_merge_block };

enum lh_status
lh_cuda_merge_block(const LhCall *call, void *stream)
{
    return enqueue(&kind_merge_block, LH_KERNEL_ID_merge, call, stream);
}

/* ---- sums ---- */

static void
add_up(const SumOp *s)
{
    for (uint64_t i = 0; i < s->elements; i++) {
        float total = (float)lh_element_get(s->terms[0], s->storage, i);

        for (uint32_t k = 1; k < s->count; k++)
            total += (float)lh_element_get(s->terms[k], s->storage, i);
        lh_element_put(s->sum, s->storage, i, (double)total);
    }
}

static bool
run_sum(StandinOp *op)
{
    SumOp *s = (SumOp *)op;
    const uint64_t bytes = s->elements * lh_storage_bytes(s->storage);
    const uint32_t turn = standin_turn(op);
    bool ok = true;

    for (uint32_t k = 0; ok && k < s->count; k++)
        ok = standin_touch(op, turn, s->terms[k], bytes, false);
    if (ok && standin_touch(op, turn, s->sum, bytes, true) && !standin_is_idle())
        add_up(s);
    return true;
}

static void
clear_sum(StandinOp *op)
{
    g_free(((SumOp *)op)->terms);
}

static const StandinKind kind_sum = { .name = "sum", .run = run_sum, .clear = clear_sum };

enum lh_status
lh_cuda_sum(unsigned char *const *terms, uint32_t count, unsigned char *sum, uint64_t elements,
            enum lh_storage storage, void *stream)
{
    cudaError_t code;
    SumOp *s;

    standin_lock();
    s = standin_op_new(&kind_sum, stream, sizeof(*s), g_strdup("sum"));
    s->terms = g_memdup2(terms, count * sizeof(*terms));
    s->count = count;
    s->sum = sum;
    s->elements = elements;
    s->storage = storage;
    code = standin_enqueue(&s->op);
    standin_unlock();
    (void)standin_result(code);
    return launched();
}

/* ---- the clock ---- */

typedef struct {
    StandinOp op;
    uint64_t *cell;
    LhCudaPace pace;
} ClockOp;

static bool
run_stamp(StandinOp *op)
{
    const ClockOp *c = (const ClockOp *)op;

    if (standin_touch(op, standin_turn(op), c->cell, sizeof(*c->cell), true))
        *c->cell = (uint64_t)llround(op->begin_s * NS_PER_S);
    return true;
}

static bool
run_pace(StandinOp *op)
{
    const LhCudaPace *p = &((const ClockOp *)op)->pace;
    const uint32_t turn = standin_turn(op);

    if (standin_touch(op, turn, p->epoch, sizeof(*p->epoch), false) &&
        standin_touch(op, turn, p->begun, sizeof(*p->begun), false)) {
        const uint64_t until = MAX(*p->begun, *p->epoch + p->others_ns) + p->took_ns;

        op->end_s = MAX(op->end_s, (double)until / NS_PER_S);
    }
    return true;
}

static const StandinKind kind_stamp = { .name = "stamp", .run = run_stamp };
static const StandinKind kind_pace = { .name = "pace", .run = run_pace };

static enum lh_status
enqueue_clock(const StandinKind *kind, uint64_t *cell, const LhCudaPace *pace, void *stream)
{
    cudaError_t code;
    ClockOp *c;

    standin_lock();
    c = standin_op_new(kind, stream, sizeof(*c), g_strdup(kind->name));
    c->cell = cell;
    if (pace != NULL)
        c->pace = *pace;
    code = standin_enqueue(&c->op);
    standin_unlock();
    (void)standin_result(code);
    return launched();
}

enum lh_status
lh_cuda_stamp(uint64_t *cell, void *stream)
{
    return enqueue_clock(&kind_stamp, cell, NULL, stream);
}

enum lh_status
lh_cuda_pace(const LhCudaPace *pace, void *stream)
{
    return enqueue_clock(&kind_pace, NULL, pace, stream);
}

/* Does nothing. */
void
standin_kernels_start(void)
{
}
