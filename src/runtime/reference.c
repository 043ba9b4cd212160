/* Attention by its definition, in fp64; see the header. */
#include "runtime/reference.h"

#include <glib.h>

#include <math.h>

void
lh_reference_init(LhReference *r, const LhAttention *a, const LhMaskRule *mask)
{
    const uint64_t q = lh_reference_q_elements(a), k = lh_reference_k_elements(a);
    double **const of_q[] = { &r->q, &r->dout, &r->o, &r->dq, &r->o_size, &r->dq_size };
    double **const of_k[] = { &r->k, &r->v, &r->dk, &r->dv, &r->dk_size, &r->dv_size };

    r->attention = *a;
    r->mask = *mask;
    for (unsigned i = 0; i < G_N_ELEMENTS(of_q); i++)
        *of_q[i] = g_new0(double, q);
    for (unsigned i = 0; i < G_N_ELEMENTS(of_k); i++)
        *of_k[i] = g_new0(double, k);
    r->lse = g_new0(double, lh_reference_rows(a));
}

void
lh_reference_clear(LhReference *r)
{
    double *const all[] = { r->q,  r->k,  r->v,      r->dout,    r->o,       r->lse,    r->dq,
                            r->dk, r->dv, r->o_size, r->dq_size, r->dk_size, r->dv_size };

    for (unsigned i = 0; i < G_N_ELEMENTS(all); i++)
        g_free(all[i]);
    *r = (LhReference){ 0 };
}

/* One query row and head against all its keys. */
typedef struct {
    LhReference *r;
    uint64_t keys;  /* how many it sees, one after another */
    uint64_t at;    /* element of the row in q, o, dout, dq */
    uint64_t first; /* element of the first of them in k, v, dk, dv */
    uint64_t step;  /* from one key to the next */
    uint64_t row;   /* in lse */
    double scale;
    double *p, *dp;
} Row;

static double
dot(const double *a, const double *b, uint32_t n)
{
    double sum = 0;

    for (uint32_t i = 0; i < n; i++)
        sum += a[i] * b[i];
    return sum;
}

static void
forward_row(const Row *row)
{
    LhReference *r = row->r;
    const uint32_t d = r->attention.head_dim;
    double max = -INFINITY, sum = 0;

    for (uint64_t j = 0; j < row->keys; j++) {
        row->p[j] = row->scale * dot(r->q + row->at, r->k + row->first + j * row->step, d);
        max = fmax(max, row->p[j]);
    }
    for (uint64_t j = 0; j < row->keys; j++) {
        row->p[j] = exp(row->p[j] - max);
        sum += row->p[j];
    }
    /* Every query sees a key, so the sum is at least 1. */
    /* cppcheck-suppress invalidFunctionArg */
    r->lse[row->row] = max + log(sum);
    for (uint64_t j = 0; j < row->keys; j++) {
        const double *v = r->v + row->first + j * row->step;

        row->p[j] /= sum;
        for (uint32_t i = 0; i < d; i++) {
            r->o[row->at + i] += row->p[j] * v[i];
            r->o_size[row->at + i] += row->p[j] * fabs(v[i]);
        }
    }
}

static void
backward_row(const Row *row)
{
    LhReference *r = row->r;
    const uint32_t d = r->attention.head_dim;
    double delta = 0;

    for (uint64_t j = 0; j < row->keys; j++) {
        row->dp[j] = dot(r->dout + row->at, r->v + row->first + j * row->step, d);
        delta += row->p[j] * row->dp[j];
    }
    for (uint64_t j = 0; j < row->keys; j++) {
        const uint64_t key = row->first + j * row->step;
        const double weight = row->p[j] * row->scale;
        const double ds = weight * (row->dp[j] - delta);
        const double ds_size = weight * (fabs(row->dp[j]) + fabs(delta));

        for (uint32_t i = 0; i < d; i++) {
            r->dq[row->at + i] += ds * r->k[key + i];
            r->dq_size[row->at + i] += ds_size * fabs(r->k[key + i]);
            r->dk[key + i] += ds * r->q[row->at + i];
            r->dk_size[key + i] += ds_size * fabs(r->q[row->at + i]);
            r->dv[key + i] += row->p[j] * r->dout[row->at + i];
            r->dv_size[key + i] += fabs(row->p[j] * r->dout[row->at + i]);
        }
    }
}

/* All query heads of one key-value head of one sequence: what nobody else writes. */
static void
run_group(LhReference *r, uint64_t sequence, uint32_t group, double *p, double *dp)
{
    const LhAttention *a = &r->attention;
    const uint32_t share = a->heads / a->groups;
    Row row = { .r = r, .p = p, .dp = dp };

    row.scale = lh_attention_scale(a->scale, a->head_dim);
    row.step = (uint64_t)a->groups * a->head_dim;
    for (uint32_t head = group * share; head < (group + 1) * share; head++) {
        for (uint64_t i = 0; i < a->seq_length; i++) {
            const LhInterval keys = lh_mask_keys(&r->mask, i, a->seq_length);

            row.row = (sequence * a->seq_length + i) * a->heads + head;
            row.at = row.row * a->head_dim;
            row.keys = keys.end - keys.first;
            row.first =
                (sequence * a->seq_length + keys.first) * row.step + (uint64_t)group * a->head_dim;
            forward_row(&row);
            backward_row(&row);
        }
    }
}

typedef struct {
    LhReference *r;
    gint next; /* atomic */
} Work;

static void *
work_main(void *data)
{
    Work *work = data;
    const LhAttention *a = &work->r->attention;
    const gint count = (gint)(a->batch * a->groups);
    g_autofree double *p = g_new(double, a->seq_length);
    g_autofree double *dp = g_new(double, a->seq_length);
    gint i;

    while ((i = g_atomic_int_add(&work->next, 1)) < count) {
        const uint32_t sequence = (uint32_t)i / a->groups, group = (uint32_t)i % a->groups;

        if (a->linear)
            lh_reference_run_linear(work->r, sequence, group);
        else
            run_group(work->r, sequence, group, p, dp);
    }
    return NULL;
}

void
lh_reference_run(LhReference *r)
{
    Work work = { .r = r };
    const guint threads = MIN(g_get_num_processors(), r->attention.batch * r->attention.groups);
    g_autoptr(GPtrArray) others = g_ptr_array_new();

    for (guint i = 1; i < threads; i++)
        g_ptr_array_add(others, g_thread_new("reference", work_main, &work));
    work_main(&work);
    for (guint i = 0; i < others->len; i++)
        g_thread_join(g_ptr_array_index(others, i));
}
