/* SPDX-License-Identifier: Apache-2.0 */
#include "bench_faults.h"

#include "base/rng.h"
#include "kernels/cpu/rows.h"
#include "reference/reference_slots.h"

#include <string.h>

#define SCALE_ERROR 1.01
#define ROW_ERROR 1.05

enum {
    WRONG_SCALE = LH_INJECT_MUTANTS,
    NO_RESCALE,
    SUMS_IN_16_BITS,
    WRONG_ROW,
    SWAPPED_ROWS,
};

const char *const fault_names[] = {
    "block dropped",   "block twice",   "mask off by one",  "lse of own keys",
    "stale buffer",    "wrong kv head", "scale 1 % off",    "merge unscaled",
    "sums in 16 bits", "a row 5 % off", "two rows swapped", NULL,
};

struct _Fault {
    unsigned kind;
    uint64_t seed;
    LhInjection *injection; /* of the executor's faults */
    LhRunHooks hooks;
    bool done; /* for faults of results: already applied */
};

/* ---- calls ---- */

static enum lh_status
pass_on(const LhOp *op, const LhPlaceOfWork *at, const LhCall *call)
{
    return at->device->call(at->state, op->compute.kernel, call, at->stream);
}

/* Each call has its own scale. */
static enum lh_status
call_scaled(const LhOp *op, const LhPlaceOfWork *at, const LhCall *call)
{
    const LhKernel *kernel = lh_kernels[op->compute.kernel];
    const bool has_scale =
        !kernel->linear &&
        (kernel->effect == LH_EFFECT_ATTEND || kernel->effect == LH_EFFECT_ATTEND_GRAD ||
         kernel->effect == LH_EFFECT_SOFTMAX || kernel->effect == LH_EFFECT_SOFTMAX_GRAD);
    LhKernelArgs args = *call->args;
    LhCall changed = *call;

    if (!has_scale || args.pairs == 0)
        return pass_on(op, at, call);
    args.scale = SCALE_ERROR * lh_attention_scale(args.scale, args.head_dim);
    changed.args = &args;
    return pass_on(op, at, &changed);
}

/* The source of a merge gets the statistics of the target: their maxima compare equal. */
static enum lh_status
call_unscaled(const LhOp *op, const LhPlaceOfWork *at, const LhCall *call)
{
    const LhKernel *kernel = lh_kernels[op->compute.kernel];
    const LhView *source = &call->operands[0];
    g_autofree unsigned char *copy = NULL;
    LhCall changed = *call;
    LhRows from, to;

    if ((op->compute.kernel != LH_KERNEL_ID_merge &&
         op->compute.kernel != LH_KERNEL_ID_merge_lse) ||
        call->args->first)
        return pass_on(op, at, call);
    g_assert(kernel->effect == LH_EFFECT_ADD);
    copy = g_memdup2(source->data, source->parts * source->part_bytes);
    changed.operands[0].data = copy;
    from = lh_rows_acc_stat(call, 1, 0);
    to = lh_rows_acc_stat(&changed, 0, 0);
    for (uint32_t sequence = 0; sequence < call->args->batch; sequence++)
        for (uint64_t row = 0; row < call->args->nq; row++)
            for (uint32_t head = 0; head < call->args->heads; head++)
                *lh_stat_at(&to, sequence, row, head) = *lh_stat_at(&from, sequence, row, head);
    return pass_on(op, at, &changed);
}

static void
round_rows(const LhRows *rows, uint32_t batch, uint64_t count, enum lh_storage storage)
{
    for (uint32_t sequence = 0; sequence < batch; sequence++) {
        for (uint64_t row = 0; row < count; row++) {
            float *first = lh_rows_at(rows, sequence, row, 0);

            for (uint32_t i = 0; i < rows->heads * rows->dim; i++) {
                uint64_t cell;

                lh_element_put(&cell, storage, 0, (double)first[i]);
                first[i] = (float)lh_element_get(&cell, storage, 0);
            }
        }
    }
}

/* Sums due in fp32 use the activations' type, or fp16 where that is fp32. */
static enum lh_status
call_rounded(const LhOp *op, const LhPlaceOfWork *at, const LhCall *call)
{
    const LhKernel *kernel = lh_kernels[op->compute.kernel];
    const LhKernelArgs *args = call->args;
    const enum lh_status status = pass_on(op, at, call);

    for (unsigned i = 0; kernel->args == LH_ARGS_ATTENTION && i < op->compute.regions_count; i++) {
        const LhTensorKind kind = kernel->operands[i].kind;
        const enum lh_storage first = call->operands[0].storage;
        const enum lh_storage storage = first == LH_STORAGE_FP32 ? LH_STORAGE_FP16 : first;
        const bool keys = kind == LH_TENSOR_DKV;

        if (kernel->operands[i].access != LH_OPERAND_UPDATE || args->first ||
            call->operands[i].storage != LH_STORAGE_FP32 ||
            (!keys && kind != LH_TENSOR_ACC && kind != LH_TENSOR_OUT && kind != LH_TENSOR_O &&
             kind != LH_TENSOR_DQ))
            continue;
        if (keys) {
            const LhRows k = lh_rows_k(call, i), v = lh_rows_v(call, i);

            round_rows(&k, args->batch, args->nk, storage);
            round_rows(&v, args->batch, args->nk, storage);
        } else {
            const LhRows q = lh_rows_q(call, i);

            round_rows(&q, args->batch, args->nq, storage);
        }
    }
    return status;
}

static enum lh_status
call_wrongly(void *data, uint32_t rank, const LhOp *op, const LhPlaceOfWork *at, const LhCall *call)
{
    const Fault *f = data;

    (void)rank;
    if (f->kind == WRONG_SCALE)
        return call_scaled(op, at, call);
    return f->kind == NO_RESCALE ? call_unscaled(op, at, call) : call_rounded(op, at, call);
}

/* ---- results ---- */

typedef struct {
    uint64_t element[2];
    unsigned count;
    uint64_t skip;
} Rows;

static void
take_row(void *data, uint64_t row, uint64_t element)
{
    Rows *rows = data;

    (void)row;
    if (rows->skip > 0)
        rows->skip--;
    else if (rows->count < 2)
        rows->element[rows->count++] = element;
}

static void
change_row(const Fault *f, const LhReferenceSlots *held, unsigned char *data, const Rows *rows)
{
    for (uint32_t i = 0; i < held->dim; i++) {
        const double a = lh_element_get(data, held->storage, rows->element[0] + i);
        const double b = lh_element_get(data, held->storage, rows->element[1] + i);

        lh_element_put(data, held->storage, rows->element[0] + i,
                       f->kind == WRONG_ROW ? a * ROW_ERROR : b);
        if (f->kind == SWAPPED_ROWS)
            lh_element_put(data, held->storage, rows->element[1] + i, a);
    }
}

/* Changes a row, or swaps it with the next one, in the last rank's first part of an output. */
void
fault_in_result(Fault *f, const LhReference *r, const LhProgram *program, const LhRunResult *result)
{
    const uint32_t rank = lh_program_ranks(program) - 1;
    const uint32_t slots = program->slots_count;
    const uint32_t turn = (uint32_t)lh_rng_bits(f->seed, 1, 2) % slots;

    for (uint32_t i = 0; f->kind >= WRONG_ROW && !f->done && i < slots; i++) {
        const uint16_t slot = (uint16_t)((i + turn) % slots);
        LhReferenceSlots held[2] = { 0 };
        Rows rows = { 0 };
        LhReferencePart part;

        if (program->slots[slot].role != LH_SLOT_OUTPUT ||
            program->slots[slot].kind == LH_TENSOR_LSE ||
            lh_reference_slots(r, &program->slots[slot], held) == 0 ||
            !lh_slot_holds(program, &program->slots[slot], rank, 0))
            continue;
        part = lh_reference_slots_part(program, rank, slot, 0);
        /* Among its last rows: gradients of the first queries may be 0 in correct runs. */
        rows.skip = r->attention.batch * part.segment.count * (held[0].heads / part.slices) - 2 -
                    lh_rng_bits(f->seed, 1, 3) % 4;
        lh_reference_slots_visit(r, &held[0], &part, take_row, &rows);
        if (rows.count == 2) {
            /* the result belongs to this program */
            change_row(f, &held[0],
                       (unsigned char *)lh_run_output(result, program, rank, slot, 0) +
                           held[0].offset_bytes,
                       &rows);
            f->done = true;
        }
    }
}

/* ---- faults ---- */

Fault *
fault_new(unsigned kind, const LhProgram *program, uint64_t seed)
{
    Fault *f = g_new0(Fault, 1);

    f->kind = kind;
    f->seed = seed;
    if (kind < LH_INJECT_MUTANTS)
        f->injection = lh_injection_new(program, lh_inject_names[kind], NULL);
    if (kind < LH_INJECT_MUTANTS && f->injection == NULL) {
        fault_free(f);
        return NULL;
    }
    if (kind >= WRONG_SCALE && kind < WRONG_ROW)
        f->hooks = (LhRunHooks){ .data = f, .call = call_wrongly };
    return f;
}

void
fault_free(Fault *f)
{
    g_free(f->injection);
    g_free(f);
}

const LhRunHooks *
fault_hooks(Fault *f)
{
    return f->injection != NULL ? &f->injection->hooks : &f->hooks;
}
