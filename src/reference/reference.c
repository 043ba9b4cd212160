/* SPDX-License-Identifier: Apache-2.0 */
/* Attention in fp64, tile by tile, on several threads. */
#include "reference/reference_tiles.h"

#include "base/saturate.h"
#include "base/threads.h"
#include "kernels/cpu/cpu.h"
#include "runtime/thread_affinity.h"

#include <glib.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define ROW_ALIGNMENT 64

/* ---- memory ---- */

#define TENSORS 4                 /* of the shape of q, and as many of that of k */
#define ROW_NUMBERS 7             /* per row of these, at most */
#define OTHERS_BYTES 64           /* per row: norms, masks, tasks; at most */
#define ROOM (UINT64_C(64) << 20) /* for pairs; more if the tensors are large */
#define ROOM_OF_TENSORS 4         /* a quarter of the tensors */

static uint32_t
stride_of(const LhAttention *a)
{
    return (a->head_dim + LH_REFERENCE_PAD - 1) / LH_REFERENCE_PAD * LH_REFERENCE_PAD;
}

/* Rows of a tensor with @heads heads. */
static uint64_t
rows_of(const LhAttention *a, uint64_t heads)
{
    return lh_times(lh_times(a->batch, a->seq_length), heads);
}

uint64_t
lh_reference_bytes(const LhAttention *a)
{
    const uint64_t row = (TENSORS * (uint64_t)stride_of(a) + ROW_NUMBERS) * sizeof(double);

    return lh_times(rows_of(a, (uint64_t)a->heads + a->groups), row);
}

/* Bytes for pairs. @asked_bytes: LhReferenceWork.room_bytes. */
static uint64_t
room_of(const LhAttention *a, uint64_t asked_bytes)
{
    return asked_bytes > 0 ? asked_bytes : MAX(ROOM, lh_reference_bytes(a) / ROOM_OF_TENSORS);
}

/* Bytes of one number for each pair of a task's queries and @keys, which are whole tiles. */
static uint64_t
row_bytes(uint64_t keys)
{
    return lh_times(keys, LH_REFERENCE_TILE * sizeof(double));
}

uint64_t
lh_reference_work_bytes(const LhAttention *a, unsigned threads)
{
    const uint64_t tiles = lh_reference_tiles(a);
    const uint64_t pairs = lh_times(lh_times(lh_times(a->batch, a->heads), tiles),
                                    lh_times(2, row_bytes(tiles * LH_REFERENCE_TILE)));
    const uint64_t scratch = lh_reference_scratch(stride_of(a)) * sizeof(double);
    const uint64_t rows = rows_of(a, (uint64_t)a->heads + a->groups);

    return lh_plus(MIN(room_of(a, 0), pairs),
                   lh_plus(lh_times(MAX(threads, 1), scratch), lh_times(rows, OTHERS_BYTES)));
}

/* Allocates rows, with padding for a block of rows that begins at the last one. */
static double *
new_padded_rows(const LhReference *r, uint64_t rows)
{
    return g_aligned_alloc0((rows + LH_REFERENCE_TILE) * r->stride, sizeof(double), ROW_ALIGNMENT);
}

void
lh_reference_init(LhReference *r, const LhAttention *a, const LhMaskRule *mask)
{
    const uint64_t q = lh_reference_q_rows(a), k = lh_reference_k_rows(a);
    double **const of_q[] = { &r->q, &r->dout, &r->o, &r->dq };
    double **const of_k[] = { &r->k, &r->v, &r->dk, &r->dv };
    double **const q_numbers[] = { &r->lse,      &r->peak,        &r->delta,    &r->o_size2,
                                   &r->dq_size2, &r->delta_size2, &r->dq_delta2 };
    double **const k_numbers[] = { &r->dk_size2, &r->dv_size2, &r->dk_delta2 };

    *r = (LhReference){ .attention = *a, .mask = *mask };
    r->stride = stride_of(a);
    for (unsigned i = 0; i < G_N_ELEMENTS(of_q); i++)
        *of_q[i] = new_padded_rows(r, q);
    for (unsigned i = 0; i < G_N_ELEMENTS(of_k); i++)
        *of_k[i] = new_padded_rows(r, k);
    for (unsigned i = 0; i < G_N_ELEMENTS(q_numbers); i++)
        *q_numbers[i] = g_new0(double, q);
    for (unsigned i = 0; i < G_N_ELEMENTS(k_numbers); i++)
        *k_numbers[i] = g_new0(double, k);
}

void
lh_reference_clear(LhReference *r)
{
    double *const rows[] = { r->q, r->k, r->v, r->dout, r->o, r->dq, r->dk, r->dv };
    double *const numbers[] = {
        r->lse,      r->peak,     r->delta,     r->o_size2,   r->dq_size2,
        r->dk_size2, r->dv_size2, r->dk_delta2, r->dq_delta2, r->delta_size2
    };

    for (unsigned i = 0; i < G_N_ELEMENTS(rows); i++)
        g_aligned_free(rows[i]);
    for (unsigned i = 0; i < G_N_ELEMENTS(numbers); i++)
        g_free(numbers[i]);
    *r = (LhReference){ 0 };
}

/* ---- common data of all tiles ---- */

#define LH_LEVEL_(level) extern const LhReferenceLevel lh_reference_level_##level;
LH_CPU_LEVELS(LH_LEVEL_)
#undef LH_LEVEL_

static const LhReferenceLevel *const levels[] = {
#define LH_LEVEL_(level) &lh_reference_level_##level,
    LH_CPU_LEVELS(LH_LEVEL_)
#undef LH_LEVEL_
};

/* Returns the level that the kernels use. */
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

    for (uint64_t row = 0; row < rows; row++)
        norms[row] = lh_reference_norm2(tensor + row * r->stride, r->stride);
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

/* Sets the keys that each query of a sequence sees. */
static void
set_sees(const LhReference *r, uint64_t sequence, LhInterval *sees)
{
    const uint64_t n = r->attention.seq_length;
    LhMaskRule mask = r->mask;

    if (r->packs != NULL) {
        mask.document_ends = r->packs[sequence].ends;
        mask.documents_count = r->packs[sequence].count;
    }
    for (uint64_t i = 0; i < n; i++)
        sees[i] = r->attention.linear ? (LhInterval){ 0, i + 1 } : lh_mask_keys(&mask, i, n);
}

static void
common_init(Common *c, LhReference *r)
{
    const LhAttention *a = &r->attention;
    const uint64_t n = a->seq_length;

    *c = (Common){ .sees = g_new(LhInterval, a->batch * n),
                   .q2 = norms_of(r, r->q, lh_reference_q_rows(a)),
                   .dout2 = norms_of(r, r->dout, lh_reference_q_rows(a)),
                   .k2 = norms_of(r, r->k, lh_reference_k_rows(a)),
                   .v2 = norms_of(r, r->v, lh_reference_k_rows(a)) };
    for (uint64_t sequence = 0; sequence < a->batch; sequence++)
        set_sees(r, sequence, &c->sees[sequence * n]);
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

/* Appends the wanted rows of a sequence and head, in tiles. */
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

/* Returns the tasks, without scratch, of all sequences and @heads heads, in this order. */
static GArray *
tasks_of(const LhReferenceInputs *in, uint32_t heads, const uint8_t *wanted)
{
    GArray *tasks = g_array_new(FALSE, FALSE, sizeof(LhReferenceTask));

    for (uint64_t sequence = 0; sequence < in->r->attention.batch; sequence++) {
        for (uint32_t head = 0; head < heads; head++) {
            const uint64_t first = lh_reference_row(in->r, sequence, head, heads, 0);

            add_tasks(tasks, in, sequence, head, wanted == NULL ? NULL : wanted + first);
        }
    }
    return tasks;
}

static LhReferenceTask *
task_at(const GArray *tasks, uint64_t index)
{
    return &g_array_index(tasks, LhReferenceTask, index);
}

/* Returns the number of threads that work on @tasks concurrently. */
static unsigned
working(const LhReferenceWork *work, const GArray *tasks)
{
    const unsigned threads = MIN(MAX(work->threads, 1), lh_cores_count());

    return MIN(threads, MAX(tasks->len, 1));
}

/* Returns an upper bound of the keys that the queries of a task see, in whole tiles. */
static uint64_t
widest_of(const GArray *tasks)
{
    uint64_t widest = 0;

    for (guint i = 0; i < tasks->len; i++) {
        const LhInterval seen = lh_reference_seen_by(task_at(tasks, i));

        widest = MAX(widest, seen.end - seen.first);
    }
    return (widest + LH_REFERENCE_TILE - 1) / LH_REFERENCE_TILE * LH_REFERENCE_TILE;
}

typedef struct {
    const LhReferenceTask *tasks;
    uint32_t count;
    bool backwards;
    void (*run)(const LhReferenceTask *task);
    double *scratch;          /* of all threads */
    uint64_t scratch_numbers; /* of one */
} Tasks;

static void
run_task(void *data, guint thread, guint index)
{
    const Tasks *work = data;
    LhReferenceTask task = work->tasks[work->backwards ? work->count - 1 - index : index];

    task.scratch = work->scratch + thread * work->scratch_numbers;
    work->run(&task);
}

static void
run_tasks(Tasks work, unsigned threads)
{
    threads = MIN(MAX(threads, 1), MAX(work.count, 1));
    work.scratch = g_aligned_alloc(threads * work.scratch_numbers, sizeof(double), ROW_ALIGNMENT);
    lh_on_numbered_threads_each("reference", threads, work.count, run_task, &work);
    g_aligned_free(work.scratch);
}

/* Under a causal mask the last queries have most work, so they run first. */
static void
run_queries(const Common *c, const LhReferenceTask *tasks, uint64_t count, unsigned threads)
{
    const bool row = c->in.row && tasks->pairs == NULL;

    run_tasks((Tasks){ .tasks = tasks,
                       .count = (uint32_t)count,
                       .backwards = true,
                       .run = level_in_use()->queries,
                       .scratch_numbers = lh_reference_scratch(c->in.r->stride) +
                                          (row ? row_bytes(c->in.widest) / sizeof(double) : 0) },
              threads);
}

static void
run_keys(const Common *c, const LhReferenceTask *tasks, uint64_t count, unsigned threads)
{
    run_tasks((Tasks){ .tasks = tasks,
                       .count = (uint32_t)count,
                       .run = level_in_use()->keys,
                       .scratch_numbers = lh_reference_scratch(c->in.r->stride) },
              threads);
}

/* Returns the number of query tasks per key-value head, when all rows are wanted. */
static uint64_t
tasks_of_group(const LhAttention *a)
{
    return a->heads / a->groups * lh_reference_tiles(a);
}

/* ---- sums of keys ---- */

static void
begin_key(LhReference *r, uint64_t row)
{
    memset(r->dk + row * r->stride, 0, r->stride * sizeof(double));
    memset(r->dv + row * r->stride, 0, r->stride * sizeof(double));
    r->dk_size2[row] = r->dv_size2[row] = r->dk_delta2[row] = 0;
}

static void
finish_key(LhReference *r, uint64_t row, double scale)
{
    double *dk = r->dk + row * r->stride;

    for (uint32_t c = 0; c < r->stride; c++)
        dk[c] *= scale;
    r->dk_size2[row] = fmax(lh_reference_norm2(dk, r->stride), scale * scale * r->dk_size2[row]);
    r->dv_size2[row] =
        fmax(lh_reference_norm2(r->dv + row * r->stride, r->stride), r->dv_size2[row]);
    r->dk_delta2[row] *= scale * scale;
}

static void
begin_keys(LhReference *r, const uint8_t *wanted)
{
    for (uint64_t row = 0; row < lh_reference_k_rows(&r->attention); row++) {
        if (wanted == NULL || wanted[row])
            begin_key(r, row);
    }
}

static void
finish_keys(const Common *c, const uint8_t *wanted)
{
    const double scale = c->decay != NULL ? 1 : c->in.scale;

    for (uint64_t row = 0; row < lh_reference_k_rows(&c->in.r->attention); row++) {
        if (wanted == NULL || wanted[row])
            finish_key(c->in.r, row, scale);
    }
}

/* ---- some rows ---- */

void
lh_reference_queries(LhReference *r, const LhReferenceWork *work)
{
    g_autoptr(GArray) tasks = NULL;
    uint64_t rows_bytes;
    Common common;

    common_init(&common, r);
    common.in.forward = work->forward;
    tasks = tasks_of(&common.in, r->attention.heads, work->queries);
    common.in.widest = widest_of(tasks);
    rows_bytes = lh_times(working(work, tasks), row_bytes(common.in.widest));
    common.in.row = rows_bytes <= room_of(&r->attention, work->room_bytes);
    if (tasks->len > 0)
        run_queries(&common, task_at(tasks, 0), tasks->len,
                    common.in.row ? working(work, tasks) : work->threads);
    common_clear(&common);
}

void
lh_reference_keys(LhReference *r, const LhReferenceWork *work)
{
    const uint64_t in_group = tasks_of_group(&r->attention);
    g_autoptr(GArray) queries = NULL;
    g_autoptr(GArray) keys = NULL;
    Common common;

    if (work->forward)
        return;
    common_init(&common, r);
    queries = tasks_of(&common.in, r->attention.heads, NULL);
    keys = tasks_of(&common.in, r->attention.groups, work->keys);
    for (guint i = 0; i < keys->len; i++) {
        LhReferenceTask *task = task_at(keys, i);
        const uint64_t group = task->sequence * r->attention.groups + task->head;

        task->queries = task_at(queries, group * in_group);
        task->queries_count = (uint32_t)in_group;
    }
    begin_keys(r, work->keys);
    if (keys->len > 0)
        run_keys(&common, task_at(keys, 0), keys->len, work->threads);
    finish_keys(&common, work->keys);
    common_clear(&common);
}

/* ---- all rows ---- */

/*
 * Query tasks whose pairs are kept at once. Fewer access the sums of keys too often; more do not
 * fit in the cache (bench_check).
 */
#define WAVE 4

/* Returns a multiple of the concurrent threads, or 0 if there is too little room for the pairs. */
static uint64_t
wave_of(uint64_t widest, uint64_t room_bytes, unsigned threads)
{
    const uint64_t fit = room_bytes / lh_times(2, row_bytes(widest));

    return MIN(fit / threads * threads, MAX(WAVE / threads, 2) * threads);
}

/* Appends the tasks of keys that queries [from, to), all of one group, see, with these queries. */
static void
add_seen(GArray *seen, const GArray *keys, const GArray *queries, uint64_t from, uint64_t to)
{
    const LhAttention *a = &task_at(queries, from)->in->r->attention;
    const uint64_t tiles = lh_reference_tiles(a), group = from / tasks_of_group(a);
    uint64_t first = UINT64_MAX, end = 0;

    for (uint64_t i = from; i < to; i++) {
        const LhInterval interval = lh_reference_seen_by(task_at(queries, i));

        first = MIN(first, interval.first);
        end = MAX(end, interval.end);
    }
    for (uint64_t at = first; at < end; at += LH_REFERENCE_TILE) {
        LhReferenceTask task = *task_at(keys, group * tiles + at / LH_REFERENCE_TILE);

        task.queries = task_at(queries, from);
        task.queries_count = (uint32_t)(to - from);
        g_array_append_val(seen, task);
    }
}

/* Computes wave by wave: queries, then their contributions to the sums of keys. */
static void
run_waves(const Common *c, GArray *queries, const GArray *keys, uint64_t wave, unsigned threads)
{
    const uint64_t in_group = tasks_of_group(&c->in.r->attention);
    const uint64_t pairs = 2 * row_bytes(c->in.widest) / sizeof(double);
    g_autoptr(GArray) seen = g_array_new(FALSE, FALSE, sizeof(LhReferenceTask));
    double *kept = g_aligned_alloc(MIN(wave, queries->len) * pairs, sizeof(double), ROW_ALIGNMENT);

    for (uint64_t from = 0, to; from < queries->len; from = to) {
        to = MIN(from + wave, queries->len);
        for (uint64_t i = from; i < to; i++)
            task_at(queries, i)->pairs = kept + (i - from) * pairs;
        run_queries(c, task_at(queries, from), to - from, threads);
        g_array_set_size(seen, 0);
        for (uint64_t at = from, next; at < to; at = next) {
            next = MIN(to, (at / in_group + 1) * in_group);
            add_seen(seen, keys, queries, at, next);
        }
        run_keys(c, task_at(seen, 0), seen->len, threads);
    }
    g_aligned_free(kept);
}

/* Returns false if there is too little room. */
static bool
run_all(LhReference *r, const LhReferenceWork *work)
{
    g_autoptr(GArray) queries = NULL;
    g_autoptr(GArray) keys = NULL;
    Common common;
    uint64_t wave;

    common_init(&common, r);
    queries = tasks_of(&common.in, r->attention.heads, NULL);
    keys = tasks_of(&common.in, r->attention.groups, NULL);
    common.in.widest = widest_of(queries);
    wave =
        wave_of(common.in.widest, room_of(&r->attention, work->room_bytes), working(work, queries));
    if (wave > 0) {
        begin_keys(r, NULL);
        run_waves(&common, queries, keys, wave, work->threads);
        finish_keys(&common, NULL);
    }
    common_clear(&common);
    return wave > 0;
}

void
lh_reference_run(LhReference *r, const LhReferenceWork *work)
{
    const bool all = work->queries == NULL && work->keys == NULL && !work->forward;

    if (all && run_all(r, work))
        return;
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
