/* Attention in fp64, tile by tile and on several threads; see the header. */
#include "runtime/reference_tiles.h"

#include "kernels/cpu/cpu.h"
#include "runtime/parallel.h"

#include <glib.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define ALIGNMENT 64

/* ---- memory ---- */

/* With room behind it for a block of rows that begins at the last one. */
static double *
new_rows(const LhReference *r, uint64_t rows)
{
    return g_aligned_alloc0((rows + LH_REFERENCE_TILE) * r->stride, sizeof(double), ALIGNMENT);
}

void
lh_reference_init(LhReference *r, const LhAttention *a, const LhMaskRule *mask)
{
    const uint64_t q = lh_reference_q_rows(a), k = lh_reference_k_rows(a);
    double **const of_q[] = { &r->q, &r->dout, &r->o, &r->dq };
    double **const of_k[] = { &r->k, &r->v, &r->dk, &r->dv };
    double **const q_numbers[] = { &r->lse,      &r->delta,       &r->o_size2,
                                   &r->dq_size2, &r->delta_size2, &r->dq_delta2 };
    double **const k_numbers[] = { &r->dk_size2, &r->dv_size2, &r->dk_delta2 };

    *r = (LhReference){ .attention = *a, .mask = *mask };
    r->stride = (a->head_dim + LH_REFERENCE_PAD - 1) / LH_REFERENCE_PAD * LH_REFERENCE_PAD;
    for (unsigned i = 0; i < G_N_ELEMENTS(of_q); i++)
        *of_q[i] = new_rows(r, q);
    for (unsigned i = 0; i < G_N_ELEMENTS(of_k); i++)
        *of_k[i] = new_rows(r, k);
    for (unsigned i = 0; i < G_N_ELEMENTS(q_numbers); i++)
        *q_numbers[i] = g_new0(double, q);
    for (unsigned i = 0; i < G_N_ELEMENTS(k_numbers); i++)
        *k_numbers[i] = g_new0(double, k);
}

void
lh_reference_clear(LhReference *r)
{
    double *const rows[] = { r->q, r->k, r->v, r->dout, r->o, r->dq, r->dk, r->dv };
    double *const numbers[] = { r->lse,      r->delta,     r->o_size2,   r->dq_size2,   r->dk_size2,
                                r->dv_size2, r->dk_delta2, r->dq_delta2, r->delta_size2 };

    for (unsigned i = 0; i < G_N_ELEMENTS(rows); i++)
        g_aligned_free(rows[i]);
    for (unsigned i = 0; i < G_N_ELEMENTS(numbers); i++)
        g_free(numbers[i]);
    *r = (LhReference){ 0 };
}

/* ---- what all tiles have in common ---- */

#define LH_LEVEL_(level) extern const LhReferenceLevel lh_reference_level_##level;
LH_CPU_LEVELS(LH_LEVEL_)
#undef LH_LEVEL_

static const LhReferenceLevel *const levels[] = {
#define LH_LEVEL_(level) &lh_reference_level_##level,
    LH_CPU_LEVELS(LH_LEVEL_)
#undef LH_LEVEL_
};

/* The level that the kernels use. */
static const LhReferenceLevel *
level_in_use(void)
{
    for (unsigned i = 0; i < G_N_ELEMENTS(levels); i++)
        if (strcmp(levels[i]->name, lh_cpu()->name) == 0)
            return levels[i];
    g_assert_not_reached();
}

static double *
norms_of(const LhReference *r, const double *tensor, uint64_t rows)
{
    double *norms = g_new(double, rows);

    for (uint64_t row = 0; row < rows; row++) {
        double sum = 0;

        for (uint32_t c = 0; c < r->stride; c++)
            sum += tensor[row * r->stride + c] * tensor[row * r->stride + c];
        norms[row] = sum;
    }
    return norms;
}

static double
largest(const double *x, uint64_t count)
{
    double max = 0;

    for (uint64_t i = 0; i < count; i++)
        max = fmax(max, x[i]);
    return max;
}

typedef struct {
    LhReferenceInputs in;
    LhInterval *sees;
    double *decay, *q2, *dout2, *k2, *v2;
} Common;

static void
measure_inputs(const Common *c, uint64_t q_rows, uint64_t k_rows)
{
    const double q2 = largest(c->q2, q_rows), k2 = largest(c->k2, k_rows);

    c->in.r->logit_size = fabs(c->in.scale) * sqrt(q2 * k2);
    c->in.r->input_size2 =
        fmax(fmax(q2, k2), fmax(largest(c->dout2, q_rows), largest(c->v2, k_rows)));
}

static void
common_init(Common *c, LhReference *r)
{
    const LhAttention *a = &r->attention;
    const uint64_t n = a->seq_length;

    *c = (Common){ .sees = g_new(LhInterval, n),
                   .q2 = norms_of(r, r->q, lh_reference_q_rows(a)),
                   .dout2 = norms_of(r, r->dout, lh_reference_q_rows(a)),
                   .k2 = norms_of(r, r->k, lh_reference_k_rows(a)),
                   .v2 = norms_of(r, r->v, lh_reference_k_rows(a)) };
    for (uint64_t i = 0; i < n; i++)
        c->sees[i] = a->linear ? (LhInterval){ 0, i + 1 } : lh_mask_keys(&r->mask, i, n);
    if (a->linear) {
        const double decay = a->decay > 0 && a->decay < 1 ? a->decay : 1;

        c->decay = g_new(double, n);
        for (uint64_t i = 0; i < n; i++)
            c->decay[i] = i == 0 ? 1 : c->decay[i - 1] * decay;
    }
    c->in = (LhReferenceInputs){ .r = r,
                                 .sees = c->sees,
                                 .decay = c->decay,
                                 .q2 = c->q2,
                                 .dout2 = c->dout2,
                                 .k2 = c->k2,
                                 .v2 = c->v2,
                                 .scale = lh_attention_scale(a->scale, a->head_dim) };
    measure_inputs(c, lh_reference_q_rows(a), lh_reference_k_rows(a));
}

static void
common_clear(Common *c)
{
    g_free(c->sees);
    g_free(c->decay);
    g_free(c->q2);
    g_free(c->dout2);
    g_free(c->k2);
    g_free(c->v2);
}

/* ---- tiles on threads ---- */

typedef struct {
    GArray *tasks; /* of LhReferenceTask, without scratch */
    void (*run)(const LhReferenceTask *task);
    double *scratch;          /* of all threads */
    uint64_t scratch_numbers; /* of one */
} Work;

static void
run_task(void *data, unsigned thread, uint32_t index)
{
    const Work *work = data;
    LhReferenceTask task = g_array_index(work->tasks, LhReferenceTask, index);

    task.scratch = work->scratch + thread * work->scratch_numbers;
    work->run(&task);
}

/* The wanted rows of a sequence and head, in tiles. */
static void
add_tasks(GArray *tasks, const LhReferenceInputs *in, uint64_t sequence, uint32_t head,
          const uint8_t *wanted)
{
    LhReferenceTask task = { .in = in, .sequence = sequence, .head = head };

    for (uint64_t i = 0; i < in->r->attention.seq_length; i++) {
        if (wanted != NULL && !wanted[i])
            continue;
        task.at[task.count++] = i;
        if (task.count == LH_REFERENCE_TILE) {
            g_array_append_val(tasks, task);
            task.count = 0;
        }
    }
    if (task.count > 0)
        g_array_append_val(tasks, task);
}

/* Under a causal mask the last queries, and the first keys, have most to do: they come first. */
static void
reverse(GArray *tasks)
{
    for (guint i = 0; i < tasks->len / 2; i++) {
        LhReferenceTask *a = &g_array_index(tasks, LhReferenceTask, i);
        LhReferenceTask *b = &g_array_index(tasks, LhReferenceTask, tasks->len - 1 - i);
        const LhReferenceTask kept = *a;

        *a = *b;
        *b = kept;
    }
}

static void
run_rows(LhReference *r, const LhReferenceWork *wanted, bool queries)
{
    const LhAttention *a = &r->attention;
    const uint32_t heads = queries ? a->heads : a->groups;
    const uint8_t *rows = queries ? wanted->queries : wanted->keys;
    const unsigned threads = MAX(wanted->threads, 1);
    const LhReferenceLevel *level = level_in_use();
    g_autoptr(GArray) tasks = g_array_new(FALSE, FALSE, sizeof(LhReferenceTask));
    Work work = { .tasks = tasks,
                  .run = queries ? level->queries : level->keys,
                  .scratch_numbers = lh_reference_scratch(r) };
    Common common;

    common_init(&common, r);
    common.in.forward = wanted->forward;
    for (uint64_t sequence = 0; sequence < a->batch; sequence++) {
        for (uint32_t head = 0; head < heads; head++) {
            const uint64_t first = lh_reference_row(r, sequence, head, heads, 0);

            add_tasks(tasks, &common.in, sequence, head, rows == NULL ? NULL : rows + first);
        }
    }
    if (queries)
        reverse(tasks);
    work.scratch = g_aligned_alloc(threads * work.scratch_numbers, sizeof(double), ALIGNMENT);
    lh_parallel(threads, tasks->len, run_task, &work);
    g_aligned_free(work.scratch);
    common_clear(&common);
}

void
lh_reference_queries(LhReference *r, const LhReferenceWork *work)
{
    run_rows(r, work, true);
}

void
lh_reference_keys(LhReference *r, const LhReferenceWork *work)
{
    if (!work->forward)
        run_rows(r, work, false);
}

void
lh_reference_run(LhReference *r, const LhReferenceWork *work)
{
    lh_reference_queries(r, work);
    lh_reference_keys(r, work);
}

/* ---- states ---- */

void
lh_reference_state(const LhReference *r, uint64_t sequence, uint32_t head, uint64_t position,
                   double *state)
{
    const LhAttention *a = &r->attention;
    const uint32_t d = a->head_dim, group = head / (a->heads / a->groups);
    const double decay = a->decay > 0 && a->decay < 1 ? a->decay : 1;

    for (uint32_t i = 0; i < d * d; i++)
        state[i] = 0;
    for (uint64_t j = 0; j < position; j++) {
        const uint64_t at = lh_reference_row(r, sequence, group, a->groups, j) * r->stride;

        for (uint32_t i = 0; i < d * d; i++)
            state[i] = decay * state[i] + r->k[at + i / d] * r->v[at + i % d];
    }
}
