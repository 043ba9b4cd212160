/* SPDX-License-Identifier: Apache-2.0 */
/* CPU versions of kernels/embed.c. */
#include "kernels/cpu/cpu.h"
#include "kernels/cpu/kernels.h"

#define BLOCK 512U

/* Tokens, the table or its gradient, and the rows outside. */
typedef struct {
    const LhKernelArgs *a;
    LhMatrix tokens, table, rows;
} Embedding;

static bool
prepare(const LhCall *call, unsigned table, unsigned rows, Embedding *e)
{
    const LhKernelArgs *a = call->args;

    e->a = a;
    return lh_matrix_flat(&e->tokens, call, 0, a->rows.rows, 1) &&
           lh_matrix_flat(&e->table, call, table, a->rows.count, a->rows.width) &&
           lh_matrix_flat(&e->rows, call, rows, a->rows.rows, a->rows.width);
}

/*
 * Finds the table row of token @row. Returns false if this rank does not have it, or if it is
 * padding.
 */
static bool
find(const Embedding *e, uint64_t row, uint64_t *index)
{
    const uint64_t token = lh_matrix_token(&e->tokens, row);

    *index = token - e->a->rows.first;
    return token >= e->a->rows.first && token < e->a->rows.vocabulary && *index < e->a->rows.count;
}

static uint64_t
block(const Embedding *e, uint64_t first)
{
    const uint64_t left = e->a->rows.width - first;

    return left < BLOCK ? left : BLOCK;
}

static enum lh_status
embed(const LhCall *call)
{
    Embedding e;
    double x[BLOCK];

    if (!prepare(call, 1, 2, &e))
        return LH_STATUS_UNSUPPORTED;
    for (uint64_t row = 0; row < e.a->rows.rows; row++) {
        uint64_t index;
        const bool found = find(&e, row, &index);

        for (uint64_t first = 0; first < e.a->rows.width; first += BLOCK) {
            const uint64_t count = block(&e, first);

            for (uint64_t i = 0; i < count; i++)
                x[i] = 0;
            if (found)
                lh_matrix_load64(&e.table, index, first, count, x);
            lh_matrix_store64(&e.rows, row, first, count, x);
        }
    }
    return LH_STATUS_OK;
}

/*
 * Chains of rows with the same token, in order: first row of each table row, next row of each row;
 * NONE ends a chain.
 */
#define NONE UINT64_MAX

typedef struct {
    uint64_t *first, *next;
} Chains;

static uint64_t
backward_scratch_bytes(const LhKernelArgs *a)
{
    return (a->rows.count + a->rows.rows) * sizeof(uint64_t);
}

static Chains
chain_rows(const Embedding *e, void *scratch)
{
    const Chains c = { scratch, (uint64_t *)scratch + e->a->rows.count };

    for (uint64_t index = 0; index < e->a->rows.count; index++)
        c.first[index] = NONE;
    for (uint64_t row = e->a->rows.rows; row > 0; row--) {
        uint64_t index;

        if (!find(e, row - 1, &index))
            continue;
        c.next[row - 1] = c.first[index];
        c.first[index] = row - 1;
    }
    return c;
}

/* Sums all rows of one token, rounded once. */
static void
add_token(const Embedding *e, const Chains *c, uint64_t index)
{
    double sums[BLOCK], x[BLOCK];

    for (uint64_t first = 0; first < e->a->rows.width; first += BLOCK) {
        const uint64_t count = block(e, first);

        for (uint64_t k = 0; k < count; k++)
            sums[k] = 0;
        if (!e->a->first)
            lh_matrix_load64(&e->table, index, first, count, sums);
        for (uint64_t row = c->first[index]; row != NONE; row = c->next[row]) {
            lh_matrix_load64(&e->rows, row, first, count, x);
            for (uint64_t k = 0; k < count; k++)
                sums[k] += x[k];
        }
        lh_matrix_store64(&e->table, index, first, count, sums);
    }
}

static enum lh_status
embed_bwd(const LhCall *call)
{
    Embedding e;
    Chains chains;

    if (!prepare(call, 2, 1, &e))
        return LH_STATUS_UNSUPPORTED;
    chains = chain_rows(&e, call->scratch);
    for (uint64_t index = 0; index < e.a->rows.count; index++) {
        if (e.a->first || chains.first[index] != NONE)
            add_token(&e, &chains, index);
    }
    return LH_STATUS_OK;
}

const LhCpuKernel lh_cpu_kernel_embed = { .reference = embed, .fast = embed };
const LhCpuKernel lh_cpu_kernel_embed_bwd = { .reference = embed_bwd,
                                              .fast = embed_bwd,
                                              .scratch_bytes = backward_scratch_bytes };
