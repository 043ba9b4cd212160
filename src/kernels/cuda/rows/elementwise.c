/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CUDA versions of kernels/elementwise.c, residual.c, activation.c and optimizer.c: converts calls
 * to launcher arguments.
 */
#include "kernels/cuda/rows/elementwise.h"

#include "kernels/cpu/elementwise.h"
#include "kernels/cuda/host_operands.h"
#include "kernels/cuda/table.h"
#include "kernels/sizes.h"

#include <math.h>

#define RUNS(word) const LhCudaKernel lh_cuda_kernel_##word = { .run = word };

/* target = source, or with @add their sum. */
static enum lh_status
add_lines(const LhCudaLine *source, const LhCudaLine *target, uint64_t count, bool add,
          void *stream)
{
    LhCudaElements e = {
        .lines = { *source, *target, *target }, .count = 1, .width = count, .value = 1
    };

    e.function = add ? LH_CUDA_SUM_OF_TWO : LH_CUDA_SUM;
    return lh_cuda_elements(&e, stream);
}

static enum lh_status
fill_line(const LhCudaLine *line, uint64_t count, float value, void *stream)
{
    const LhCudaElements e = {
        .lines = { *line }, .count = 1, .width = count, .function = LH_CUDA_FILL, .value = value
    };

    return count == 0 ? LH_STATUS_OK : lh_cuda_elements(&e, stream);
}

/* ---- attention's tensors ---- */

/*
 * Sets a line to @count elements of every part of an operand, @skipped bytes after the part's
 * start.
 */
static LhCudaLine
line_of_parts(const LhView *view, uint64_t skipped, uint64_t count, enum lh_storage storage)
{
    const LhMatrix m = { .data = view->data + skipped,
                         .part_bytes = view->part_bytes,
                         .part_elements = count,
                         .width = view->parts * count,
                         .storage = storage };
    LhCudaLine line = lh_cuda_line(&m, 0, 0);

    line.parts = view->parts;
    return line;
}

#define UNALIGNED UINT64_MAX

/* Returns the end of the @count elements of a part. */
static const unsigned char *
end_of(const LhView *view, uint64_t count)
{
    return view->data + count * lh_storage_bytes(view->storage);
}

/* Returns the number of statistics per part that a copy includes, or UNALIGNED. */
static uint64_t
stats_to_copy(const LhCall *call, uint64_t count)
{
    const LhView *source = &call->operands[0], *target = &call->operands[1];
    const uint64_t bytes = lh_stats_bytes(call, 0);

    if (bytes == 0 || bytes != lh_stats_bytes(call, 1))
        return 0;
    return lh_cuda_reads_fp32(source, end_of(source, count)) &&
                   lh_cuda_reads_fp32(target, end_of(target, count))
               ? bytes / LH_STAT_BYTES
               : UNALIGNED;
}

/* The CUDA version of lh_elements_add(). */
static enum lh_status
add_parts(const LhCall *call, bool add, void *stream)
{
    const LhView *source = &call->operands[0], *target = &call->operands[1];
    const uint64_t rows = call->args->nq != 0 ? call->args->nq : call->args->nk;
    const uint64_t parts = source->parts, count = parts > 0 ? lh_elements(call->args) / parts : 0;
    LhCudaLine from, to;
    uint64_t stats;
    enum lh_status status;

    if (parts == 0 || parts != target->parts || rows % parts != 0 || !lh_cuda_knows(call, 2))
        return LH_STATUS_UNSUPPORTED;
    stats = add ? 0 : stats_to_copy(call, count);
    if (stats == UNALIGNED)
        return LH_STATUS_UNSUPPORTED;
    from = line_of_parts(source, 0, count, source->storage);
    to = line_of_parts(target, 0, count, target->storage);
    from.reversed = call->args->reversed;
    status = add_lines(&from, &to, parts * count, add, stream);
    if (status != LH_STATUS_OK || stats == 0)
        return status;
    from = line_of_parts(source, count * lh_storage_bytes(source->storage), stats, LH_STORAGE_FP32);
    to = line_of_parts(target, count * lh_storage_bytes(target->storage), stats, LH_STORAGE_FP32);
    from.reversed = call->args->reversed;
    return add_lines(&from, &to, parts * stats, false, stream);
}

static enum lh_status
add(const LhCall *call, void *stream)
{
    return add_parts(call, !call->args->first, stream);
}

static enum lh_status
copy(const LhCall *call, void *stream)
{
    return add_parts(call, false, stream);
}

/* Sets the statistics after the elements to those of no key: m or lse -inf, l 0. */
static enum lh_status
zero(const LhCall *call, void *stream)
{
    const LhView *target = &call->operands[0];
    const uint64_t parts = target->parts;
    uint64_t count, stats, rows;
    LhCudaLine elements, first, second;
    enum lh_status status;

    if (parts == 0 || (call->args->nq + call->args->nk) % parts != 0 || !lh_cuda_knows(call, 1))
        return LH_STATUS_UNSUPPORTED;
    count = lh_elements(call->args) / parts;
    rows = lh_rows(call->args) / parts;
    stats = lh_stats_bytes(call, 0) / LH_STAT_BYTES;
    if (stats > 0 && !lh_cuda_reads_fp32(target, end_of(target, count)))
        return LH_STATUS_UNSUPPORTED;
    elements = line_of_parts(target, 0, count, target->storage);
    status = fill_line(&elements, parts * count, 0, stream);
    if (status != LH_STATUS_OK || stats == 0)
        return status;
    count *= lh_storage_bytes(target->storage);
    first = line_of_parts(target, count, rows, LH_STORAGE_FP32);
    second = line_of_parts(target, count + rows * LH_STAT_BYTES, rows, LH_STORAGE_FP32);
    status = fill_line(&first, parts * rows, -INFINITY, stream);
    return status != LH_STATUS_OK || stats == rows ? status
                                                   : fill_line(&second, parts * rows, 0, stream);
}

const LhCudaKernel lh_cuda_kernel_add = { .run = add };
const LhCudaKernel lh_cuda_kernel_add_to_fp32 = { .run = add };
const LhCudaKernel lh_cuda_kernel_add_from_fp32 = { .run = add };
const LhCudaKernel lh_cuda_kernel_cast = { .run = copy };
RUNS(copy)
RUNS(zero)

enum lh_status
lh_cuda_sum(unsigned char *const *terms, uint32_t count, unsigned char *sum, uint64_t elements,
            enum lh_storage storage, void *stream)
{
    LhCudaTerms t = {
        .sum = sum, .elements = elements, .count = count, .storage = storage, .factor = 1
    };

    if (count == 0 || count > LH_CUDA_TERMS || storage == LH_STORAGE_FP64)
        return LH_STATUS_UNSUPPORTED;
    t.grouped = (uintptr_t)sum % 16 == 0;
    for (uint32_t i = 0; i < count; i++) {
        t.terms[i] = terms[i];
        t.grouped &= (uintptr_t)terms[i] % 16 == 0;
    }
    return lh_cuda_terms(&t, stream);
}

/* ---- outside attention ---- */

/* An operand's shape: rows of `halves` times `width` elements. */
typedef struct {
    unsigned operand, halves;
    uint64_t rows, width;
} Shape;

/* Sets a line to half @half of the operand's rows. */
static bool
find_line(LhCudaLine *line, const LhCall *call, const Shape *s, unsigned half)
{
    LhMatrix m;

    if (call->operands[s->operand].storage == LH_STORAGE_FP64 ||
        !lh_matrix_flat(&m, call, s->operand, s->rows, s->halves * s->width))
        return false;
    m.width *= s->rows;
    *line = lh_cuda_line(&m, s->rows > 1 ? s->halves * s->width : 0, half * s->width);
    return true;
}

/* Sets a line to all elements of an operand. */
static bool
find_elements(LhCudaLine *line, const LhCall *call, unsigned operand, uint64_t count)
{
    const Shape shape = { .operand = operand, .halves = 1, .rows = 1, .width = count };

    return find_line(line, call, &shape, 0);
}

static enum lh_status
add_elements(const LhCall *call, unsigned reads, void *stream)
{
    const uint64_t count = call->args->elements.count;
    const unsigned target = call->operands[2].data != NULL ? 2 : 1;
    LhCudaElements e = { .count = 1,
                         .width = count,
                         .function = reads == 2 ? LH_CUDA_SUM_OF_TWO : LH_CUDA_SUM,
                         .value = 1 };

    for (unsigned i = 0; i <= reads; i++) {
        if (!find_elements(&e.lines[i], call, i < reads ? i : target, count))
            return LH_STATUS_UNSUPPORTED;
    }
    return lh_cuda_elements(&e, stream);
}

static enum lh_status
residual(const LhCall *call, void *stream)
{
    return add_elements(call, 2, stream);
}

static enum lh_status
one_into_second(const LhCall *call, void *stream)
{
    return add_elements(call, call->args->first ? 1 : 2, stream);
}

static enum lh_status
cast_hidden(const LhCall *call, void *stream)
{
    return add_elements(call, 1, stream);
}

RUNS(residual)
RUNS(cast_hidden)
const LhCudaKernel lh_cuda_kernel_add_hidden = { .run = one_into_second };
const LhCudaKernel lh_cuda_kernel_accumulate = { .run = one_into_second };

/* Copies the last of the rows of each sequence, whose rows stand side by side in a line. */
static enum lh_status
last_rows(const LhCall *call, void *stream)
{
    const LhKernelArgs *a = call->args;
    const Shape x = { 0, (unsigned)a->rows.count, a->rows.rows, a->rows.width };
    const Shape y = { 1, 1, a->rows.rows, a->rows.width };
    LhCudaElements e = {
        .count = a->rows.rows, .width = a->rows.width, .function = LH_CUDA_SUM, .value = 1
    };

    if (call->operands[0].parts != 1 || a->rows.count == 0 || a->rows.count > UINT32_MAX ||
        !find_line(&e.lines[0], call, &x, x.halves - 1) || !find_line(&e.lines[1], call, &y, 0))
        return LH_STATUS_UNSUPPORTED;
    return lh_cuda_elements(&e, stream);
}

RUNS(last_rows)

/* Lines of a function's operands: one each, two if its rows have two halves. */
typedef struct {
    uint32_t function;
    unsigned operands;
    bool halves[5];
} Activation;

static enum lh_status
activate(const LhCall *call, const Activation *f, void *stream)
{
    const uint64_t rows = call->args->rows.rows, width = call->args->rows.width;
    LhCudaElements e = { .count = rows, .width = width, .function = f->function };
    unsigned lines = 0;

    for (unsigned i = 0; i < f->operands; i++) {
        const Shape shape = { i, f->halves[i] ? 2 : 1, rows, width };

        for (unsigned half = 0; half < shape.halves; half++) {
            if (!find_line(&e.lines[lines++], call, &shape, half))
                return LH_STATUS_UNSUPPORTED;
        }
    }
    return lh_cuda_elements(&e, stream);
}

#define ACTIVATION(word, ...)                                                                      \
    static enum lh_status word(const LhCall *call, void *stream)                                   \
    {                                                                                              \
        static const Activation f = { __VA_ARGS__ };                                               \
                                                                                                   \
        return activate(call, &f, stream);                                                         \
    }                                                                                              \
    RUNS(word)

ACTIVATION(glu, LH_CUDA_GLU, 2, { true, false })
ACTIVATION(glu_bwd, LH_CUDA_GLU_BWD, 3, { true, false, true })
ACTIVATION(gelu, LH_CUDA_GELU, 2, { false })
ACTIVATION(gelu_bwd, LH_CUDA_GELU_BWD, 3, { false })
ACTIVATION(gate, LH_CUDA_GATE, 3, { false })
ACTIVATION(gate_bwd, LH_CUDA_GATE_BWD, 5, { false })

/* ---- the optimizer ---- */

enum { GRADIENT, NORM, CLOCK };

static bool
find_moments(LhCudaLine *line, const LhCall *call, unsigned operand, unsigned index)
{
    const uint64_t count = call->args->optimizer.count;
    const uint32_t parts = call->operands[operand].parts;
    LhMatrix m;

    if (call->operands[operand].storage == LH_STORAGE_FP64 ||
        !lh_matrix_flat(&m, call, operand, 2, count) || count % parts != 0)
        return false;
    m.part_elements = count / parts;
    m.data += index * m.part_elements * lh_storage_bytes(m.storage);
    *line = lh_cuda_line(&m, 0, 0);
    return true;
}

static LhCudaAdam
find_step(const LhCall *call)
{
    const LhKernelArgs *a = call->args;
    const double beta1 = a->optimizer.beta1, beta2 = a->optimizer.beta2;

    return (LhCudaAdam){
        .norm = (const float *)(const void *)call->operands[NORM].data,
        .clock = a->first ? NULL : (const float *)(const void *)call->operands[CLOCK].data,
        .clip = (float)a->optimizer.clip,
        .beta1 = (float)beta1,
        .beta2 = (float)beta2,
        .less_beta1 = (float)(1 - beta1),
        .less_beta2 = (float)(1 - beta2),
        .log_beta1 = (float)log(beta1),
        .log_beta2 = (float)log(beta2),
        .rate = (float)a->optimizer.learning_rate,
        .epsilon = (float)a->optimizer.epsilon,
        .keep = (float)(1 - a->optimizer.learning_rate * a->optimizer.weight_decay),
    };
}

/* One AdamW step. Moments that start are not read. */
static enum lh_status
step(const LhCall *call, unsigned master, unsigned moments, unsigned rounded, void *stream)
{
    const uint64_t count = call->args->optimizer.count;
    LhCudaElements e = { .count = 1, .width = count, .function = LH_CUDA_ADAM };
    LhCudaLine *const read = e.lines, *const written = e.lines + 4;
    enum lh_status status;

    if (!find_elements(&read[0], call, GRADIENT, count) ||
        !find_moments(&written[0], call, moments, 0) ||
        !find_moments(&written[1], call, moments, 1) ||
        !find_elements(&written[2], call, master, count) ||
        !find_elements(&written[3], call, rounded, count) ||
        call->operands[NORM].storage != LH_STORAGE_FP32 ||
        call->operands[CLOCK].storage != LH_STORAGE_FP32)
        return LH_STATUS_UNSUPPORTED;
    for (unsigned i = 0; i < 3; i++)
        read[1 + i] = written[i];
    if (call->args->first)
        read[1].data = read[2].data = NULL;
    if (rounded == master)
        written[3].data = NULL;
    e.adam = find_step(call);
    status = lh_cuda_elements(&e, stream);
    return status != LH_STATUS_OK ? status
                                  : lh_cuda_tick((float *)(void *)call->operands[CLOCK].data,
                                                 call->args->first, stream);
}

static enum lh_status
adam(const LhCall *call, void *stream)
{
    return step(call, CLOCK + 1, CLOCK + 2, CLOCK + 3, stream);
}

static enum lh_status
adam_fp32(const LhCall *call, void *stream)
{
    return step(call, CLOCK + 2, CLOCK + 1, CLOCK + 2, stream);
}

RUNS(adam)
RUNS(adam_fp32)
