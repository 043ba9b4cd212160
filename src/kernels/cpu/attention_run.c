/* SPDX-License-Identifier: Apache-2.0 */
/*
 * References of attention, forward and backward: row by row in fp64, directly from the formulas.
 */
#include "kernels/cpu/attention_run.h"

#include "kernels/cpu/tile_mask.h"

#include <math.h>

static uint64_t
round_up(uint64_t x, uint64_t multiple)
{
    return (x + multiple - 1) / multiple * multiple;
}

/*
 * Floats of the fast version, for the widest panels (32 columns) and tiles of 64 rows; the
 * references' fp64 rows need less. The last term is for alignment.
 */
uint64_t
lh_attention_forward_scratch(const LhKernelArgs *args)
{
    const uint64_t d = round_up(args->head_dim, 32), nk = round_up(args->nk, 64);

    return 4 * (d * (2 * nk + 2 * 64 + 1) + 64 * 64 + 2 * 64 + 16 * 16) + lh_tile_mask_bytes(args);
}

uint64_t
lh_attention_backward_scratch(const LhKernelArgs *args)
{
    const uint64_t d = round_up(args->head_dim, 32);
    const uint64_t nq = round_up(args->nq, 64), nk = round_up(args->nk, 64);

    return 4 * (d * (5 * nk + 5 * nq + 2) + 2 * nq + 2 * 64 * 64 + 16 * 16) +
           lh_tile_mask_bytes(args);
}

static double
dot(const void *a, enum lh_storage a_storage, const void *b, enum lh_storage b_storage,
    uint32_t dim)
{
    double sum = 0;

    for (uint32_t c = 0; c < dim; c++)
        sum += lh_element_get(a, a_storage, c) * lh_element_get(b, b_storage, c);
    return sum;
}

/* One pair's indices: sequence, query row, key row, query head, key-value head. */
typedef struct {
    uint64_t b, i, j;
    uint32_t head, group;
} Pair;

static double
product(const LhRows *x, const LhRows *y, const Pair *p)
{
    const void *a = lh_rows_at(x, p->b, p->i, p->head), *b = lh_rows_at(y, p->b, p->j, p->group);

    return dot(a, x->storage, b, y->storage, x->dim);
}

static double
distance_weight(const float *decay, const Pair *p)
{
    return decay == NULL ? 1 : (double)decay[LH_DECAY_BEFORE + p->i - p->j];
}

/* Returns the logit under the mask, or the weight of linear attention. */
static double
score(const LhForward *f, const Pair *p)
{
    if (!lh_mask_allows(f->args, &f->q, &f->k, p->i, p->j))
        return f->linear ? 0 : -INFINITY;
    if (f->linear)
        return product(&f->q, &f->k, p) * distance_weight(f->decay, p);
    return product(&f->q, &f->k, p) * lh_attention_scale(f->args->scale, f->args->head_dim);
}

/*
 * Replaces logits by e^(x - m), m the new maximum, and stores m and l. Returns the factor for the
 * earlier output.
 */
static double
soften(const LhForward *f, const Pair *p, double *x, double *sum)
{
    double before = -INFINITY, maximum, factor;

    if (f->load)
        before = *lh_stat_at(&f->m, p->b, p->i, p->head);
    maximum = before;
    for (uint64_t j = 0; j < f->args->nk; j++)
        maximum = fmax(maximum, x[j]);
    maximum = (double)(float)maximum; /* as it is stored */
    factor = before == -INFINITY ? 0 : exp(before - maximum);
    *sum = f->load ? factor * (double)*lh_stat_at(&f->l, p->b, p->i, p->head) : 0;
    for (uint64_t j = 0; j < f->args->nk; j++) {
        x[j] = x[j] == -INFINITY ? 0 : exp(x[j] - maximum);
        *sum += x[j];
    }
    if (f->m.data != NULL) {
        *lh_stat_at(&f->m, p->b, p->i, p->head) = (float)maximum;
        *lh_stat_at(&f->l, p->b, p->i, p->head) = (float)*sum;
    }
    if (f->lse.data != NULL)
        *lh_stat_at(&f->lse, p->b, p->i, p->head) =
            *sum == 0 ? -INFINITY : (float)(maximum + log(*sum));
    return factor;
}

static void
forward_row(const LhForward *f, Pair p)
{
    const uint32_t dim = f->args->head_dim;
    double *x = f->scratch, *o = x + f->args->nk, factor = 1, sum = 1;
    void *out = lh_rows_at(&f->o, p.b, p.i, p.head);

    for (p.j = 0; p.j < f->args->nk; p.j++)
        x[p.j] = score(f, &p);
    if (!f->linear)
        factor = soften(f, &p, x, &sum);
    for (uint32_t c = 0; c < dim; c++)
        o[c] = f->load && factor != 0 ? factor * lh_element_get(out, f->o.storage, c) : 0;
    for (p.j = 0; p.j < f->args->nk; p.j++) {
        const void *v = lh_rows_at(&f->v, p.b, p.j, p.group);
        /* Masked rows are not read: their contents are undefined. */
        const bool seen = lh_mask_allows(f->args, &f->q, &f->k, p.i, p.j);

        for (uint32_t c = 0; c < dim && seen; c++)
            o[c] += x[p.j] * lh_element_get(v, f->v.storage, c);
    }
    for (uint32_t c = 0; c < dim; c++)
        lh_element_put(out, f->o.storage, c, f->normalise && sum > 0 ? o[c] / sum : o[c]);
}

void
lh_attention_forward_reference(const LhForward *f)
{
    const LhKernelArgs *a = f->args;

    for (uint64_t b = 0; b < a->batch; b++) {
        for (uint32_t head = 0; head < a->heads; head++) {
            for (uint64_t i = 0; i < a->nq; i++)
                forward_row(f, (Pair){ b, i, 0, head, head / (a->heads / a->groups) });
        }
    }
}

/* Computes the weight p of a pair and ds, the gradient of its q k. */
static bool
gradients(const LhBackward *w, const Pair *p, double *weight, double *ds)
{
    const double scale = lh_attention_scale(w->args->scale, w->args->head_dim);
    double dp, delta;

    if (!lh_mask_allows(w->args, &w->q, &w->k, p->i, p->j))
        return false;
    dp = product(&w->dout, &w->v, p);
    if (w->linear) {
        *weight = distance_weight(w->decay, p);
        *ds = dp * *weight;
        *weight *= product(&w->q, &w->k, p);
        return true;
    }
    if (w->delta.data != NULL)
        delta = *lh_stat_at(&w->delta, p->b, p->i, p->head);
    else
        delta = dot(lh_rows_at(&w->dout, p->b, p->i, p->head), w->dout.storage,
                    lh_rows_at(&w->o, p->b, p->i, p->head), w->o.storage, w->o.dim);
    *weight =
        exp(product(&w->q, &w->k, p) * scale - (double)*lh_stat_at(&w->lse, p->b, p->i, p->head));
    *ds = *weight * (dp - delta) * scale;
    return true;
}

static void
start(double *sum, const LhRows *gradient, const void *row, bool load)
{
    for (uint32_t c = 0; c < gradient->dim; c++)
        sum[c] = load ? lh_element_get(row, gradient->storage, c) : 0;
}

static void
add_scaled(double *sum, double factor, const LhRows *tensor, const void *row)
{
    for (uint32_t c = 0; c < tensor->dim; c++)
        sum[c] += factor * lh_element_get(row, tensor->storage, c);
}

static void
end(const double *sum, const LhRows *gradient, void *row)
{
    for (uint32_t c = 0; c < gradient->dim; c++)
        lh_element_put(row, gradient->storage, c, sum[c]);
}

static void
dq_row(const LhBackward *w, Pair p)
{
    double *sum = w->scratch, weight, ds;
    void *dq = lh_rows_at(&w->dq, p.b, p.i, p.head);

    start(sum, &w->dq, dq, w->load);
    for (p.j = 0; p.j < w->args->nk; p.j++) {
        if (gradients(w, &p, &weight, &ds))
            add_scaled(sum, ds, &w->k, lh_rows_at(&w->k, p.b, p.j, p.group));
    }
    end(sum, &w->dq, dq);
}

static void
dkv_row(const LhBackward *w, Pair p)
{
    const uint32_t share = w->args->heads / w->args->groups;
    double *dk_sum = w->scratch, *dv_sum = dk_sum + w->args->head_dim, weight, ds;
    void *dk = lh_rows_at(&w->dk, p.b, p.j, p.group), *dv = lh_rows_at(&w->dv, p.b, p.j, p.group);

    start(dk_sum, &w->dk, dk, w->load);
    start(dv_sum, &w->dv, dv, w->load);
    for (p.head = p.group * share; p.head < (p.group + 1) * share; p.head++) {
        for (p.i = 0; p.i < w->args->nq; p.i++) {
            if (!gradients(w, &p, &weight, &ds))
                continue;
            add_scaled(dk_sum, ds, &w->q, lh_rows_at(&w->q, p.b, p.i, p.head));
            add_scaled(dv_sum, weight, &w->dout, lh_rows_at(&w->dout, p.b, p.i, p.head));
        }
    }
    end(dk_sum, &w->dk, dk);
    end(dv_sum, &w->dv, dv);
}

void
lh_attention_backward_reference(const LhBackward *w)
{
    const LhKernelArgs *a = w->args;
    const uint32_t share = a->heads / a->groups;

    for (uint64_t b = 0; b < a->batch; b++) {
        for (uint32_t head = 0; head < a->heads; head++) {
            for (uint64_t i = 0; i < a->nq; i++)
                dq_row(w, (Pair){ b, i, 0, head, head / share });
        }
        for (uint32_t group = 0; group < a->groups; group++) {
            for (uint64_t j = 0; j < a->nk; j++)
                dkv_row(w, (Pair){ b, 0, j, 0, group });
        }
    }
}
