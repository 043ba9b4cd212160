/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Inner part of the reference: a tile of query rows against all their keys, and a tile of keys
 * against all queries that see them. Compiled once per processor level, like the fast kernels, but
 * shares no code with them.
 */
#pragma once

#include "reference/reference.h"

#include <stddef.h>

#define LH_REFERENCE_TILE 64
#define LH_REFERENCE_PAD 8    /* rows of tensors are a multiple of it */
#define LH_REFERENCE_PANEL 16 /* columns of products processed at once */

/* Common data of all tiles. */
typedef struct {
    LhReference *r;
    const LhInterval *sees;   /* [B][N] */
    const double *decay;      /* [N], powers of the decay; NULL: softmax */
    const double *q2, *dout2; /* squared norms of rows */
    const double *k2, *v2;    /* the same of k and v */
    double scale;
    bool forward;    /* compute o and lse only */
    uint64_t widest; /* upper bound of the keys that queries of a task see, in whole tiles */
    bool row;        /* tasks that keep no pairs keep their logits; otherwise recompute them */
} LhReferenceInputs;

/*
 * Up to LH_REFERENCE_TILE rows of one sequence and head, at ascending positions: queries with all
 * their keys, or keys with the queries of some tasks.
 */
typedef struct LhReferenceTask {
    const LhReferenceInputs *in;
    uint64_t sequence;
    uint32_t head; /* of queries, or of keys */
    uint32_t count;
    uint64_t at[LH_REFERENCE_TILE];
    /* lh_reference_scratch() numbers, and a row of tiles if that is to stay; aligned to 64 bytes */
    double *scratch;
    /* Of queries: two rows of tiles for p and ds of all their pairs; or NULL. */
    double *pairs;
    /*
     * Of keys: query tasks of their group, in whole tiles. Sums are added to the reference's rows.
     */
    const struct LhReferenceTask *queries;
    uint32_t queries_count;
} LhReferenceTask;

typedef struct {
    const char *name; /* of the kernels' level */
    void (*queries)(const LhReferenceTask *task);
    void (*keys)(const LhReferenceTask *task);
} LhReferenceLevel;

/* Numbers of scratch per task when rows of tensors have @stride numbers. */
static inline uint64_t
lh_reference_scratch(uint32_t stride)
{
    return LH_REFERENCE_TILE * (LH_REFERENCE_PANEL + 2 * LH_REFERENCE_TILE + 6 * (uint64_t)stride);
}

static inline uint64_t
lh_reference_tiles(const LhAttention *a)
{
    return (a->seq_length + LH_REFERENCE_TILE - 1) / LH_REFERENCE_TILE;
}

/* Returns the keys that a task's queries may see, rounded down to the start of a tile. */
static inline LhInterval
lh_reference_seen_by(const LhReferenceTask *queries)
{
    const LhInterval *sees =
        queries->in->sees + queries->sequence * queries->in->r->attention.seq_length;
    const uint64_t first = sees[queries->at[0]].first;

    return (LhInterval){ first / LH_REFERENCE_TILE * LH_REFERENCE_TILE,
                         sees[queries->at[queries->count - 1]].end };
}

/* Returns the squared norm of a row. */
static inline double
lh_reference_norm2(const double *row, size_t stride)
{
    double sum = 0;

    for (size_t c = 0; c < stride; c++)
        sum += row[c] * row[c];
    return sum;
}
