/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Maps over elements, and the kernels of kernels/elementwise.c on a CPU. Bound by memory:
 * conversions go through short blocks that stay in the L1 cache.
 */
#include "kernels/cpu/elementwise.h"

#include "kernels/cpu/kernels.h"
#include "kernels/sizes.h"

#include <math.h>
#include <string.h>

#define BLOCK 512U

static bool
same_parts(const LhCall *call, unsigned a, unsigned b)
{
    const uint64_t rows = call->args->nq != 0 ? call->args->nq : call->args->nk;
    const uint32_t parts = call->operands[a].parts;

    return parts > 0 && parts == call->operands[b].parts && rows % parts == 0;
}

uint64_t
lh_stats_bytes(const LhCall *call, unsigned operand)
{
    const LhView *view = &call->operands[operand];
    const uint64_t elements =
        lh_elements(call->args) / view->parts * lh_storage_bytes(view->storage);
    const uint64_t stat = lh_rows(call->args) / view->parts * LH_STAT_BYTES;
    const uint64_t held = view->held_bytes != 0 ? view->held_bytes : view->part_bytes;
    const uint64_t rest = held > elements ? held - elements : 0;

    return rest == stat || rest == 2 * stat ? rest : 0;
}

static void
add_block(const LhView *source, const LhView *target, const unsigned char *from, unsigned char *to,
          uint64_t count, bool add)
{
    float a[BLOCK], b[BLOCK];

    lh_cpu()->to_fp32(a, from, source->storage, count);
    if (add) {
        lh_cpu()->to_fp32(b, to, target->storage, count);
        for (uint64_t i = 0; i < count; i++)
            a[i] += b[i];
    }
    lh_cpu()->from_fp32(to, target->storage, a, count);
}

enum lh_status
lh_elements_add(const LhCall *call, bool add)
{
    const LhView *source = &call->operands[0], *target = &call->operands[1];
    const uint32_t from_size = lh_storage_bytes(source->storage);
    const uint32_t to_size = lh_storage_bytes(target->storage);
    uint64_t count, stats;

    if (!same_parts(call, 0, 1))
        return LH_STATUS_UNSUPPORTED;
    count = lh_elements(call->args) / source->parts;
    stats =
        lh_stats_bytes(call, 0) == lh_stats_bytes(call, 1) && !add ? lh_stats_bytes(call, 0) : 0;
    for (uint32_t part = 0; part < source->parts; part++) {
        const uint32_t at = call->args->reversed ? source->parts - 1 - part : part;
        const unsigned char *from = source->data + at * source->part_bytes;
        unsigned char *to = target->data + part * target->part_bytes;

        for (uint64_t i = 0; i < count; i += BLOCK) {
            const uint64_t block = count - i < BLOCK ? count - i : BLOCK;

            add_block(source, target, from + i * from_size, to + i * to_size, block, add);
        }
        memcpy(to + count * to_size, from + count * from_size, stats);
    }
    return LH_STATUS_OK;
}

void
lh_elements_sum(const unsigned char *const *terms, uint32_t count, enum lh_storage storage,
                uint64_t elements, unsigned char *sum)
{
    const uint32_t size = lh_storage_bytes(storage);
    float total[BLOCK], term[BLOCK];

    for (uint64_t i = 0; i < elements; i += BLOCK) {
        const uint64_t block = elements - i < BLOCK ? elements - i : BLOCK;

        lh_cpu()->to_fp32(total, terms[0] + i * size, storage, block);
        for (uint32_t k = 1; k < count; k++) {
            lh_cpu()->to_fp32(term, terms[k] + i * size, storage, block);
            for (uint64_t c = 0; c < block; c++)
                total[c] += term[c];
        }
        lh_cpu()->from_fp32(sum + i * size, storage, total, block);
    }
}

void
lh_keys_copy(const LhCall *call, LhRows from, LhRows to)
{
    const LhKernelArgs *a = call->args;
    float block[BLOCK];

    for (uint64_t row = 0; row < a->batch * a->nk * a->groups; row++) {
        const uint64_t b = row / a->groups / a->nk, j = row / a->groups % a->nk;
        const uint32_t head = (uint32_t)(row % a->groups);
        const unsigned char *source = lh_rows_at(&from, b, j, head);
        unsigned char *target = lh_rows_at(&to, b, j, head);

        for (uint64_t i = 0; i < a->head_dim; i += BLOCK) {
            const uint64_t count = a->head_dim - i < BLOCK ? a->head_dim - i : BLOCK;

            lh_cpu()->to_fp32(block, source + i * lh_storage_bytes(from.storage), from.storage,
                              count);
            lh_cpu()->from_fp32(target + i * lh_storage_bytes(to.storage), to.storage, block,
                                count);
        }
    }
}

typedef struct {
    const LhRows *from, *to;
    const void *source;
    void *target;
    LhFactors by;
} RowPair;

static void
combine_reference(const RowPair *r)
{
    for (uint64_t c = 0; c < r->to->dim; c++) {
        double x = 0;

        if (r->by.target != 0)
            x += r->by.target * lh_element_get(r->target, r->to->storage, c);
        if (r->by.source != 0)
            x += r->by.source * lh_element_get(r->source, r->from->storage, c);
        lh_element_put(r->target, r->to->storage, c, x);
    }
}

/* Reads elements from @first on of a row with factor @by; if that is 0, zeros without a read. */
static void
take_block(float *block, const LhRows *rows, const void *row, double by, uint64_t first,
           uint64_t count)
{
    if (by == 0)
        memset(block, 0, count * sizeof(*block));
    else
        lh_cpu()->to_fp32(block, (const char *)row + first * lh_storage_bytes(rows->storage),
                          rows->storage, count);
}

static void
combine_block(const RowPair *r, uint64_t first, uint64_t count)
{
    const LhCpuLevel *cpu = lh_cpu();
    const float by_target = (float)r->by.target, by_source = (float)r->by.source;
    float a[BLOCK], b[BLOCK];

    take_block(a, r->to, r->target, r->by.target, first, count);
    take_block(b, r->from, r->source, r->by.source, first, count);
    for (uint64_t i = 0; i < count; i++)
        a[i] = by_target * a[i] + by_source * b[i];
    cpu->from_fp32((char *)r->target + first * lh_storage_bytes(r->to->storage), r->to->storage, a,
                   count);
}

static void
combine_fast(const RowPair *r)
{
    for (uint64_t c = 0; c < r->to->dim; c += BLOCK)
        combine_block(r, c, r->to->dim - c < BLOCK ? r->to->dim - c : BLOCK);
}

static enum lh_status
combine(const LhCall *call, const unsigned operands[2], LhWeigh weigh,
        void (*rows)(const RowPair *r))
{
    const LhRows from = lh_rows_q(call, operands[0]), to = lh_rows_q(call, operands[1]);
    RowPair r = { .from = &from, .to = &to };

    for (uint64_t b = 0; b < call->args->batch; b++) {
        for (uint64_t i = 0; i < call->args->nq; i++) {
            for (uint32_t head = 0; head < call->args->heads; head++) {
                r.by = weigh(call, b, i, head);
                r.source = lh_rows_at(&from, b, i, head);
                r.target = lh_rows_at(&to, b, i, head);
                rows(&r);
            }
        }
    }
    return LH_STATUS_OK;
}

enum lh_status
lh_rows_combine_reference(const LhCall *call, unsigned source, unsigned target, LhWeigh weigh)
{
    if (!lh_parts_divide(call, target + 1, 0))
        return LH_STATUS_UNSUPPORTED;
    return combine(call, (const unsigned[]){ source, target }, weigh, combine_reference);
}

enum lh_status
lh_rows_combine(const LhCall *call, unsigned source, unsigned target, LhWeigh weigh)
{
    if (!lh_parts_divide(call, target + 1, 0))
        return LH_STATUS_UNSUPPORTED;
    return combine(call, (const unsigned[]){ source, target }, weigh, combine_fast);
}

/* ---- add ---- */

static enum lh_status
add_run(const LhCall *call)
{
    return lh_elements_add(call, !call->args->first);
}

const LhCpuKernel lh_cpu_kernel_add = {
    .reference = add_run,
    .fast = add_run,
};

/* ---- add_to_fp32 ---- */

const LhCpuKernel lh_cpu_kernel_add_to_fp32 = {
    .reference = add_run,
    .fast = add_run,
};

/* ---- add_from_fp32 ---- */

const LhCpuKernel lh_cpu_kernel_add_from_fp32 = {
    .reference = add_run,
    .fast = add_run,
};

/* ---- cast ---- */

static enum lh_status
cast_run(const LhCall *call)
{
    return lh_elements_add(call, false);
}

const LhCpuKernel lh_cpu_kernel_cast = {
    .reference = cast_run,
    .fast = cast_run,
};

/* ---- copy ---- */

const LhCpuKernel lh_cpu_kernel_copy = {
    .reference = cast_run,
    .fast = cast_run,
};

/* ---- zero ---- */

/* Sets the statistics after the elements to those of no key: m or lse -inf, l 0. */
static void
clear_stats(unsigned char *stats, uint64_t bytes, uint64_t rows)
{
    const float nothing = -INFINITY;

    memset(stats, 0, bytes);
    for (uint64_t i = 0; i < rows && bytes > 0; i++)
        memcpy(stats + i * LH_STAT_BYTES, &nothing, LH_STAT_BYTES);
}

static enum lh_status
zero_run(const LhCall *call)
{
    const LhView *target = &call->operands[0];
    uint64_t bytes;

    if (target->parts == 0 || (call->args->nq + call->args->nk) % target->parts != 0)
        return LH_STATUS_UNSUPPORTED;
    bytes = lh_elements(call->args) / target->parts * lh_storage_bytes(target->storage);
    for (uint32_t part = 0; part < target->parts; part++) {
        unsigned char *data = target->data + part * target->part_bytes;

        memset(data, 0, bytes);
        clear_stats(data + bytes, lh_stats_bytes(call, 0), lh_rows(call->args) / target->parts);
    }
    return LH_STATUS_OK;
}

const LhCpuKernel lh_cpu_kernel_zero = {
    .reference = zero_run,
    .fast = zero_run,
};

/* ---- expand_kv ---- */

static void
expand(const LhCall *call, const LhRows *from, const LhRows *to)
{
    const LhKernelArgs *a = call->args;
    const size_t bytes = (size_t)a->head_dim * lh_storage_bytes(to->storage);

    for (uint64_t row = 0; row < a->batch * a->nk * a->heads; row++) {
        const uint64_t b = row / a->heads / a->nk, j = row / a->heads % a->nk;
        const uint32_t head = (uint32_t)(row % a->heads);

        memcpy(lh_rows_at(to, b, j, head), lh_rows_at(from, b, j, head / (a->heads / a->groups)),
               bytes);
    }
}

static enum lh_status
expand_kv_run(const LhCall *call)
{
    const LhKernelArgs *a = call->args;
    LhRows k, v, to;

    if (!lh_parts_divide(call, 2, 1 << 0 | 1 << 1) || a->heads % a->groups != 0)
        return LH_STATUS_UNSUPPORTED;
    k = lh_rows_k(call, 0);
    v = lh_rows_v(call, 0);
    to = lh_rows_of(call, 1, a->nk, a->heads, a->head_dim);
    if (to.part_bytes < 2 * lh_rows_bytes(&to, a->batch))
        return LH_STATUS_UNSUPPORTED;
    expand(call, &k, &to);
    to.data += lh_rows_bytes(&to, a->batch);
    expand(call, &v, &to);
    return LH_STATUS_OK;
}

const LhCpuKernel lh_cpu_kernel_expand_kv = {
    .reference = expand_kv_run,
    .fast = expand_kv_run,
};

/* ---- take_k ---- */

static enum lh_status
take_k_run(const LhCall *call)
{
    if (!lh_parts_divide(call, 2, 1 << 0 | 1 << 1))
        return LH_STATUS_UNSUPPORTED;
    lh_keys_copy(call, lh_rows_k(call, 0), lh_rows_k(call, 1));
    return LH_STATUS_OK;
}

const LhCpuKernel lh_cpu_kernel_take_k = {
    .reference = take_k_run,
    .fast = take_k_run,
};

/* ---- take_v ---- */

static enum lh_status
take_v_run(const LhCall *call)
{
    if (!lh_parts_divide(call, 2, 1 << 0 | 1 << 1))
        return LH_STATUS_UNSUPPORTED;
    lh_keys_copy(call, lh_rows_v(call, 0), lh_rows_k(call, 1));
    return LH_STATUS_OK;
}

const LhCpuKernel lh_cpu_kernel_take_v = {
    .reference = take_v_run,
    .fast = take_v_run,
};

/* ---- join_dkv ---- */

static enum lh_status
join_dkv_run(const LhCall *call)
{
    if (!lh_parts_divide(call, 3, 1 << 0 | 1 << 1 | 1 << 2))
        return LH_STATUS_UNSUPPORTED;
    lh_keys_copy(call, lh_rows_k(call, 0), lh_rows_k(call, 2));
    lh_keys_copy(call, lh_rows_k(call, 1), lh_rows_v(call, 2));
    return LH_STATUS_OK;
}

const LhCpuKernel lh_cpu_kernel_join_dkv = {
    .reference = join_dkv_run,
    .fast = join_dkv_run,
};
