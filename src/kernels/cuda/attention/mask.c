/* SPDX-License-Identifier: Apache-2.0 */
/* Masks of calls for CUDA kernels. */
#include "kernels/cuda/attention/mask.h"

#define TOKENS_MAX (UINT64_C(1) << 31)

static uint32_t
documents_of(const LhKernelArgs *a)
{
    const bool by_position = a->mask == LH_MASK_POSITIONS;

    return by_position && a->rule->documents_count > 1 ? a->rule->documents_count : 0;
}

uint64_t
lh_cuda_mask_bytes(const LhKernelArgs *a)
{
    const uint64_t bytes = documents_of(a) * sizeof(uint32_t);

    return (bytes + LH_SCRATCH_ALIGN - 1) / LH_SCRATCH_ALIGN * LH_SCRATCH_ALIGN;
}

static enum lh_status
write_documents(const LhMaskRule *rule, uint32_t *to, void *stream)
{
    LhCudaNumbers numbers = { .to = to };

    for (uint32_t i = 0; i < rule->documents_count; i++) {
        numbers.numbers[numbers.count++] = (uint32_t)rule->document_ends[i];
        if (numbers.count == LH_CUDA_NUMBERS || i + 1 == rule->documents_count) {
            const enum lh_status status = lh_cuda_write_numbers(&numbers, stream);

            if (status != LH_STATUS_OK)
                return status;
            numbers.to += numbers.count;
            numbers.count = 0;
        }
    }
    return LH_STATUS_OK;
}

static LhCudaPlaces
places(const LhRowsPosition *at, uint64_t stride, uint64_t part_rows)
{
    return (LhCudaPlaces){ .start = (uint32_t)at->start,
                           .step = (uint32_t)at->part_step,
                           .stride = (uint32_t)stride,
                           .part_rows = (uint32_t)part_rows };
}

/* Places that are row indices plus @shift. */
static LhCudaPlaces
indices(int shift)
{
    return (LhCudaPlaces){ .start = (uint32_t)shift, .stride = 1, .part_rows = UINT32_MAX };
}

enum lh_status
lh_cuda_mask(const LhKernelArgs *a, uint64_t q_part_rows, uint64_t k_part_rows, void *scratch,
             void *stream, LhCudaMask *mask)
{
    *mask = (LhCudaMask){ .q = indices(0), .k = indices(0), .empty = a->mask == LH_MASK_EMPTY };
    if (a->nq >= TOKENS_MAX || a->nk >= TOKENS_MAX)
        return LH_STATUS_UNSUPPORTED;
    if (a->mask == LH_MASK_CAUSAL) {
        mask->causal = true;
        mask->q = indices(a->shift);
    } else if (a->mask == LH_MASK_POSITIONS) {
        mask->causal = a->rule->causal;
        mask->window = a->rule->window < TOKENS_MAX ? (uint32_t)a->rule->window : 0;
        mask->q = places(&a->q_at, a->stride, q_part_rows);
        mask->k = places(&a->k_at, a->stride, k_part_rows);
        mask->documents = documents_of(a);
        mask->document_ends = scratch;
    }
    return mask->documents > 0 ? write_documents(a->rule, scratch, stream) : LH_STATUS_OK;
}
