/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Products with scores. The fast versions convert the keys of a head once and work row by row on
 * contiguous vectors.
 */
#include "kernels/cpu/scores_run.h"

#include "kernels/cpu/cpu.h"

uint64_t
lh_scores_scratch(const LhKernelArgs *args)
{
    /* Keys of one head, a row of scores, a row of queries. */
    return 4 * (args->nk * args->head_dim + args->nk + args->head_dim);
}

uint64_t
lh_scores_row_scratch(const LhKernelArgs *args)
{
    return args->nk * sizeof(double);
}

bool
lh_scores_prepare(const LhCall *call, unsigned scores, unsigned q, unsigned k, LhScoresProduct *p)
{
    *p = (LhScoresProduct){ .args = call->args,
                            .scores = lh_scores_of(call, scores),
                            .q = lh_rows_q(call, q),
                            .k = lh_rows_k(call, k),
                            .load = !call->args->first,
                            .scratch = call->scratch };
    return lh_parts_divide(call, 3, 1U << scores | 1U << k);
}

void
lh_scores_load(const LhScores *s, double *row, uint64_t sequence, uint64_t i, uint32_t head)
{
    for (uint32_t part = 0; part < s->parts; part++) {
        const void *from = lh_scores_at(s, sequence, i, head, part);

        for (uint32_t j = 0; j < s->rows.dim; j++)
            *row++ = lh_element_get(from, s->rows.storage, j);
    }
}

void
lh_scores_store(const LhScores *s, const double *row, uint64_t sequence, uint64_t i, uint32_t head)
{
    for (uint32_t part = 0; part < s->parts; part++) {
        void *to = lh_scores_at(s, sequence, i, head, part);

        for (uint32_t j = 0; j < s->rows.dim; j++)
            lh_element_put(to, s->rows.storage, j, *row++);
    }
}

/* ---- references ---- */

/* Indices of a score. */
typedef struct {
    uint64_t b, i, j;
    uint32_t head;
} Place;

static void *
score_at(const LhScoresProduct *p, const Place *at)
{
    const LhRows *rows = &p->scores.rows;

    return (unsigned char *)lh_scores_at(&p->scores, at->b, at->i, at->head,
                                         (uint32_t)(at->j / rows->dim)) +
           at->j % rows->dim * lh_storage_bytes(rows->storage);
}

static double
score(const LhScoresProduct *p, const Place *at)
{
    return lh_element_get(score_at(p, at), p->scores.rows.storage, 0);
}

static uint32_t
group_of(const LhScoresProduct *p, uint32_t head)
{
    return head / (p->args->heads / p->args->groups);
}

/* Returns q k^T, or do v^T, of one pair. */
static double
product(const LhScoresProduct *p, const Place *at)
{
    const void *q = lh_rows_at(&p->q, at->b, at->i, at->head);
    const void *k = lh_rows_at(&p->k, at->b, at->j, group_of(p, at->head));
    double sum = 0;

    for (uint32_t c = 0; c < p->args->head_dim; c++)
        sum += lh_element_get(q, p->q.storage, c) * lh_element_get(k, p->k.storage, c);
    return sum;
}

void
lh_scores_reference(const LhScoresProduct *p)
{
    const LhKernelArgs *a = p->args;

    for (Place at = { 0 }; at.b < a->batch; at.b++) {
        for (at.i = 0; at.i < a->nq; at.i++) {
            for (at.head = 0; at.head < a->heads; at.head++) {
                for (at.j = 0; at.j < a->nk; at.j++)
                    lh_element_put(score_at(p, &at), p->scores.rows.storage, 0, product(p, &at));
            }
        }
    }
}

/* Adds a row of scores times the keys, or values, of its head to the row of q. */
static void
apply_row_reference(const LhScoresProduct *p, Place at)
{
    const uint32_t group = group_of(p, at.head);
    void *q = lh_rows_at(&p->q, at.b, at.i, at.head);

    for (uint32_t c = 0; c < p->args->head_dim; c++) {
        double sum = p->load ? lh_element_get(q, p->q.storage, c) : 0;

        for (at.j = 0; at.j < p->args->nk; at.j++)
            sum += score(p, &at) *
                   lh_element_get(lh_rows_at(&p->k, at.b, at.j, group), p->k.storage, c);
        lh_element_put(q, p->q.storage, c, sum);
    }
}

void
lh_scores_apply_reference(const LhScoresProduct *p)
{
    const LhKernelArgs *a = p->args;

    for (Place at = { 0 }; at.b < a->batch; at.b++) {
        for (at.i = 0; at.i < a->nq; at.i++) {
            for (at.head = 0; at.head < a->heads; at.head++)
                apply_row_reference(p, at);
        }
    }
}

/* Element @c of a key's sum, over the query heads that share @group. */
static double
transposed_element(const LhScoresProduct *p, Place at, uint32_t group, uint32_t c)
{
    const LhKernelArgs *a = p->args;
    const uint32_t share = a->heads / a->groups;
    double sum = 0;

    for (at.head = group * share; at.head < (group + 1) * share; at.head++) {
        for (at.i = 0; at.i < a->nq; at.i++)
            sum += score(p, &at) *
                   lh_element_get(lh_rows_at(&p->q, at.b, at.i, at.head), p->q.storage, c);
    }
    return sum;
}

void
lh_scores_transposed_reference(const LhScoresProduct *p)
{
    const LhKernelArgs *a = p->args;

    for (Place at = { 0 }; at.b < a->batch; at.b++) {
        for (at.j = 0; at.j < a->nk; at.j++) {
            for (uint32_t group = 0; group < a->groups; group++) {
                void *k = lh_rows_at(&p->k, at.b, at.j, group);

                for (uint32_t c = 0; c < a->head_dim; c++)
                    lh_element_put(k, p->k.storage, c, transposed_element(p, at, group, c));
            }
        }
    }
}

/* ---- fast versions ---- */

/* Layout of the scratch memory. */
typedef struct {
    float *keys;  /* [nk][d], or [d][nk] */
    float *row;   /* [nk] */
    float *query; /* [d] */
} Work;

static Work
work_of(const LhScoresProduct *p)
{
    Work w = { .keys = p->scratch };

    w.row = w.keys + p->args->nk * p->args->head_dim;
    w.query = w.row + p->args->nk;
    return w;
}

/* A vector of LANES numbers with the alignment of one. */
#define LANES 16
typedef float Lanes
    __attribute__((vector_size(LANES * sizeof(float)), aligned(sizeof(float)), may_alias));

static void
add_scaled(float *restrict sum, float factor, const float *restrict x, uint64_t count)
{
    uint64_t i = 0;

    for (; i + LANES <= count; i += LANES)
        *(Lanes *)&sum[i] += factor * *(const Lanes *)&x[i];
    for (; i < count; i++)
        sum[i] += factor * x[i];
}

static void
load_keys(const LhScoresProduct *p, float *keys, uint64_t b, uint32_t group)
{
    const uint32_t d = p->args->head_dim;

    for (uint64_t j = 0; j < p->args->nk; j++)
        lh_cpu()->to_fp32(keys + j * d, lh_rows_at(&p->k, b, j, group), p->k.storage, d);
}

static void
load_keys_transposed(const LhScoresProduct *p, const Work *w, uint64_t b, uint32_t group)
{
    const uint64_t nk = p->args->nk;
    const uint32_t d = p->args->head_dim;

    for (uint64_t j = 0; j < nk; j++) {
        lh_cpu()->to_fp32(w->query, lh_rows_at(&p->k, b, j, group), p->k.storage, d);
        for (uint32_t c = 0; c < d; c++)
            w->keys[c * nk + j] = w->query[c];
    }
}

static void
load_row(const LhScoresProduct *p, float *row, const Place *at)
{
    for (uint32_t part = 0; part < p->scores.parts; part++)
        lh_cpu()->to_fp32(row + (uint64_t)part * p->scores.rows.dim,
                          lh_scores_at(&p->scores, at->b, at->i, at->head, part),
                          p->scores.rows.storage, p->scores.rows.dim);
}

static void
store_row(const LhScoresProduct *p, const float *row, const Place *at)
{
    for (uint32_t part = 0; part < p->scores.parts; part++)
        lh_cpu()->from_fp32(lh_scores_at(&p->scores, at->b, at->i, at->head, part),
                            p->scores.rows.storage, row + (uint64_t)part * p->scores.rows.dim,
                            p->scores.rows.dim);
}

static void
load_query(const LhScoresProduct *p, float *query, const Place *at)
{
    lh_cpu()->to_fp32(query, lh_rows_at(&p->q, at->b, at->i, at->head), p->q.storage,
                      p->args->head_dim);
}

static void
scores_row(const LhScoresProduct *p, const Work *w, const Place *at)
{
    const uint64_t nk = p->args->nk;

    load_query(p, w->query, at);
    memset(w->row, 0, nk * sizeof(float));
    for (uint32_t c = 0; c < p->args->head_dim; c++)
        add_scaled(w->row, w->query[c], w->keys + c * nk, nk);
    store_row(p, w->row, at);
}

static void
apply_row(const LhScoresProduct *p, const Work *w, const Place *at)
{
    const uint32_t d = p->args->head_dim;

    load_row(p, w->row, at);
    memset(w->query, 0, d * sizeof(float));
    if (p->load)
        load_query(p, w->query, at);
    for (uint64_t j = 0; j < p->args->nk; j++)
        add_scaled(w->query, w->row[j], w->keys + j * d, d);
    lh_cpu()->from_fp32(lh_rows_at(&p->q, at->b, at->i, at->head), p->q.storage, w->query, d);
}

static void
transposed_row(const LhScoresProduct *p, const Work *w, const Place *at)
{
    const uint32_t d = p->args->head_dim;

    load_row(p, w->row, at);
    load_query(p, w->query, at);
    for (uint64_t j = 0; j < p->args->nk; j++)
        add_scaled(w->keys + j * d, w->row[j], w->query, d);
}

/* Calls @row for every query row of the heads that share @group. */
static void
for_rows(const LhScoresProduct *p, const Work *w, uint64_t b, uint32_t group,
         void (*row)(const LhScoresProduct *p, const Work *w, const Place *at))
{
    const uint32_t share = p->args->heads / p->args->groups;
    Place at = { .b = b };

    for (at.head = group * share; at.head < (group + 1) * share; at.head++) {
        for (at.i = 0; at.i < p->args->nq; at.i++)
            row(p, w, &at);
    }
}

void
lh_scores_fast(const LhScoresProduct *p)
{
    const Work w = work_of(p);

    for (uint64_t b = 0; b < p->args->batch; b++) {
        for (uint32_t group = 0; group < p->args->groups; group++) {
            load_keys_transposed(p, &w, b, group);
            for_rows(p, &w, b, group, scores_row);
        }
    }
}

void
lh_scores_apply_fast(const LhScoresProduct *p)
{
    const Work w = work_of(p);

    for (uint64_t b = 0; b < p->args->batch; b++) {
        for (uint32_t group = 0; group < p->args->groups; group++) {
            load_keys(p, w.keys, b, group);
            for_rows(p, &w, b, group, apply_row);
        }
    }
}

void
lh_scores_transposed_fast(const LhScoresProduct *p)
{
    const uint32_t d = p->args->head_dim;
    const Work w = work_of(p);

    for (uint64_t b = 0; b < p->args->batch; b++) {
        for (uint32_t group = 0; group < p->args->groups; group++) {
            memset(w.keys, 0, p->args->nk * d * sizeof(float));
            for_rows(p, &w, b, group, transposed_row);
            for (uint64_t j = 0; j < p->args->nk; j++)
                lh_cpu()->from_fp32(lh_rows_at(&p->k, b, j, group), p->k.storage, w.keys + j * d,
                                    d);
        }
    }
}
