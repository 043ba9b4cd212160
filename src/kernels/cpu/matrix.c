/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/cpu/matrix.h"

#include "kernels/cpu/cpu.h"
#include "kernels/cpu/rows.h"

/* Whether each part of a view has at least @bytes. */
static bool
holds(const LhView *view, uint64_t bytes)
{
    return (view->held_bytes != 0 ? view->held_bytes : view->part_bytes) >= bytes;
}

bool
lh_matrix_flat(LhMatrix *m, const LhCall *call, unsigned operand, uint64_t rows, uint64_t width)
{
    const LhView *view = &call->operands[operand];
    uint64_t elements;

    if (view->parts == 0 || __builtin_mul_overflow(rows, width, &elements))
        return false;
    *m = (LhMatrix){ .data = view->data,
                     .part_bytes = view->part_bytes,
                     .part_elements = elements / view->parts + (elements % view->parts != 0),
                     .width = width,
                     .storage = view->storage };
    return holds(view, m->part_elements * lh_storage_bytes(m->storage));
}

bool
lh_matrix_by_heads(LhMatrix *m, const LhCall *call, unsigned operand, const LhByHeads *heads,
                   uint64_t rows, uint64_t width)
{
    const LhView *view = &call->operands[operand];
    const uint64_t outside = heads->segments * heads->layout.members * heads->layout.batch;
    uint64_t bytes;

    if (view->parts == 0 || outside == 0 || rows % outside != 0 ||
        view->parts % heads->segments != 0)
        return false;
    *m = (LhMatrix){ .data = view->data,
                     .part_bytes = view->part_bytes,
                     .part_elements = rows * width / view->parts,
                     .width = width,
                     .storage = view->storage,
                     .members = heads->layout.members,
                     .batch = heads->layout.batch,
                     .slices = view->parts / heads->segments,
                     .member_rows = rows / outside };
    if (width % m->slices != 0)
        return false;
    bytes = m->part_elements * lh_storage_bytes(m->storage);
    m->data += heads->index * bytes;
    return holds(view, heads->tensors * bytes);
}

static uint64_t
least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* Row @row outside is row local of sequence b of member t's part of segment s. */
static unsigned char *
at_heads(const LhMatrix *m, uint64_t row, uint64_t column, uint64_t *run)
{
    const uint64_t part_width = m->width / m->slices, slice = column / part_width;
    const uint64_t local = row % m->member_rows, b = row / m->member_rows % m->batch;
    const uint64_t part = row / m->member_rows / m->batch;
    const uint64_t s = part / m->members, t = part % m->members;
    const uint64_t within = (b * m->members + t) * m->member_rows + local;

    *run = part_width - column % part_width;
    return m->data + (s * m->slices + slice) * m->part_bytes +
           (within * part_width + column % part_width) * lh_storage_bytes(m->storage);
}

unsigned char *
lh_matrix_at(const LhMatrix *m, uint64_t row, uint64_t column, uint64_t *run)
{
    const uint64_t index = row * m->width + column;
    uint64_t within;

    if (m->members > 0)
        return at_heads(m, row, column, run);
    within = index % m->part_elements;
    *run = least(m->width - column, m->part_elements - within);
    return m->data + index / m->part_elements * m->part_bytes +
           within * lh_storage_bytes(m->storage);
}

void
lh_matrix_load(const LhMatrix *m, uint64_t row, uint64_t first, uint64_t count, float *to)
{
    for (uint64_t i = 0, run; i < count; i += run) {
        const void *at = lh_matrix_at(m, row, first + i, &run);

        run = least(run, count - i);
        lh_cpu()->to_fp32(to + i, at, m->storage, run);
    }
}

void
lh_matrix_store(const LhMatrix *m, uint64_t row, uint64_t first, uint64_t count, const float *from)
{
    for (uint64_t i = 0, run; i < count; i += run) {
        void *at = lh_matrix_at(m, row, first + i, &run);

        run = least(run, count - i);
        lh_cpu()->from_fp32(at, m->storage, from + i, run);
    }
}

void
lh_matrix_load64(const LhMatrix *m, uint64_t row, uint64_t first, uint64_t count, double *to)
{
    for (uint64_t i = 0, run; i < count; i += run) {
        const void *at = lh_matrix_at(m, row, first + i, &run);

        run = least(run, count - i);
        for (uint64_t j = 0; j < run; j++)
            to[i + j] = lh_element_get(at, m->storage, j);
    }
}

void
lh_matrix_store64(const LhMatrix *m, uint64_t row, uint64_t first, uint64_t count,
                  const double *from)
{
    for (uint64_t i = 0, run; i < count; i += run) {
        void *at = lh_matrix_at(m, row, first + i, &run);

        run = least(run, count - i);
        for (uint64_t j = 0; j < run; j++)
            lh_element_put(at, m->storage, j, from[i + j]);
    }
}

double
lh_matrix_get(const LhMatrix *m, uint64_t row, uint64_t column)
{
    uint64_t run;

    return lh_element_get(lh_matrix_at(m, row, column, &run), m->storage, 0);
}

void
lh_matrix_put(const LhMatrix *m, uint64_t row, uint64_t column, double x)
{
    uint64_t run;

    lh_element_put(lh_matrix_at(m, row, column, &run), m->storage, 0, x);
}

uint32_t
lh_matrix_token(const LhMatrix *m, uint64_t row)
{
    uint64_t run;

    return *(const uint32_t *)(const void *)lh_matrix_at(m, row, 0, &run);
}
