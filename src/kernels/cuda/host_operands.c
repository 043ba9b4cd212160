/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/cuda/host_operands.h"

#define MOST (UINT64_C(1) << 31)

bool
lh_cuda_knows(const LhCall *call, unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        if (call->operands[i].storage == LH_STORAGE_FP64)
            return false;
    }
    return true;
}

bool
lh_cuda_reads_fp32(const LhView *view, const unsigned char *first)
{
    return (uintptr_t)first % sizeof(float) == 0 &&
           (view->parts == 1 || view->part_bytes % sizeof(float) == 0);
}

static bool
is_aligned(uint64_t bytes)
{
    return bytes % 16 == 0;
}

static bool
is_at_aligned(const unsigned char *data)
{
    return is_aligned((uintptr_t)data);
}

LhCudaTensor
lh_cuda_tensor(LhRows rows)
{
    return (LhCudaTensor){ .data = rows.data,
                           .part_bytes = rows.part_bytes,
                           .part_rows = rows.part_rows,
                           .heads = rows.heads,
                           .dim = rows.dim,
                           .storage = rows.storage,
                           .grouped = rows.dim % LH_CUDA_GROUP == 0 &&
                                      is_aligned(rows.part_bytes) && is_at_aligned(rows.data) };
}

LhCudaLine
lh_cuda_line(const LhMatrix *m, uint64_t pitch, uint64_t offset)
{
    /* Groups do not cross parts if parts are whole groups; the last part may be partly filled. */
    const bool one = m->part_elements >= m->width;

    return (LhCudaLine){ .data = m->data,
                         .part_bytes = m->part_bytes,
                         .cut = m->part_elements,
                         .pitch = pitch,
                         .offset = offset,
                         .parts = 1,
                         .storage = m->storage,
                         .grouped = (one || m->part_elements % LH_CUDA_GROUP == 0) &&
                                    pitch % LH_CUDA_GROUP == 0 && offset % LH_CUDA_GROUP == 0 &&
                                    is_aligned(m->part_bytes) && is_at_aligned(m->data) };
}

/*
 * Division by a number of up to 2^31 as a product, rounded up, with a 33-bit number: its leading
 * bit is 1, the others are the factor.
 */
LhCudaDigit
lh_cuda_digit(uint64_t size, uint64_t stride)
{
    uint32_t shift = 0;

    while ((UINT64_C(1) << shift) < size)
        shift++;
    return (LhCudaDigit){
        .size = (uint32_t)size,
        .factor = (uint32_t)(((UINT64_C(1) << 32) * ((UINT64_C(1) << shift) - size)) / size) + 1,
        .shift = shift,
        .stride = (int64_t)stride
    };
}

static bool
digit_is_aligned(const LhCudaDigit *d)
{
    return d->size <= 1 || is_aligned((uint64_t)d->stride);
}

/* Whether groups of columns are contiguous and aligned in every row and in every slice. */
static bool
is_grouped(const LhCudaMatrix *m, uint64_t width)
{
    const bool one = m->column.size >= width;
    bool aligned = is_at_aligned(m->data) && is_aligned((uint64_t)m->rest) &&
                   (one || (m->column.size % LH_CUDA_GROUP == 0 && digit_is_aligned(&m->column)));

    for (unsigned i = 0; i < LH_CUDA_ROW_DIGITS; i++)
        aligned &= digit_is_aligned(&m->rows[i]);
    return aligned && m->cut == 0;
}

static void
no_digits(LhCudaMatrix *m, unsigned from)
{
    for (unsigned i = from; i < LH_CUDA_ROW_DIGITS; i++)
        m->rows[i] = lh_cuda_digit(1, 0);
}

static void
by_heads(LhCudaMatrix *to, const LhMatrix *m)
{
    const uint64_t part_width = m->width / m->slices;
    const uint64_t row = part_width * lh_storage_bytes(m->storage);

    /* Row digits outside: rows of a member, sequences, members, segments. */
    to->rows[0] = lh_cuda_digit(m->member_rows, row);
    to->rows[1] = lh_cuda_digit(m->batch, row * m->member_rows * m->members);
    to->rows[2] = lh_cuda_digit(m->members, row * m->member_rows);
    to->rest = (int64_t)(m->slices * m->part_bytes);
    to->column = lh_cuda_digit(part_width, m->part_bytes);
}

static void
flat(LhCudaMatrix *to, const LhMatrix *m, uint64_t rows)
{
    const uint64_t row = m->width * lh_storage_bytes(m->storage);

    to->column = lh_cuda_digit(m->width, 0);
    no_digits(to, 0);
    if (m->part_elements >= rows * m->width) {
        to->rest = (int64_t)row;
    } else if (m->part_elements % m->width == 0) {
        to->rows[0] = lh_cuda_digit(m->part_elements / m->width, row);
        to->rest = (int64_t)m->part_bytes;
    } else {
        to->cut = m->part_elements;
        to->part_bytes = m->part_bytes;
    }
}

bool
lh_cuda_matrix(LhCudaMatrix *to, const LhMatrix *m, uint64_t rows)
{
    *to = (LhCudaMatrix){ .data = m->data, .width = m->width, .storage = m->storage };
    if (rows >= MOST || m->width >= MOST || m->width == 0 || rows == 0)
        return false;
    if (m->members > 0)
        by_heads(to, m);
    else
        flat(to, m, rows);
    to->grouped = is_grouped(to, m->width);
    return true;
}

bool
lh_cuda_flat_matrix(LhCudaMatrix *to, const LhCall *call, unsigned operand, uint64_t rows,
                    uint64_t width)
{
    LhMatrix m;

    return call->operands[operand].storage != LH_STORAGE_FP64 &&
           lh_matrix_flat(&m, call, operand, rows, width) && lh_cuda_matrix(to, &m, rows);
}

bool
lh_cuda_matrix_of_rows(LhCudaMatrix *to, const LhRows *rows, LhCudaOffsets *offsets)
{
    const uint64_t head = rows->dim * (uint64_t)lh_storage_bytes(rows->storage);

    if (rows->part_rows >= MOST || rows->part_rows == 0 || rows->dim == 0)
        return false;
    *to = (LhCudaMatrix){ .data = rows->data,
                          .rest = (int64_t)rows->part_bytes,
                          .column = lh_cuda_digit(rows->dim, 0),
                          .width = rows->dim,
                          .storage = rows->storage };
    to->rows[0] = lh_cuda_digit(rows->part_rows, head * rows->heads);
    no_digits(to, 1);
    to->grouped = is_grouped(to, rows->dim) && is_aligned(head);
    *offsets = (LhCudaOffsets){ .sequence = rows->part_rows * rows->heads * head, .head = head };
    return true;
}
