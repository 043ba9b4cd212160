/* SPDX-License-Identifier: Apache-2.0 */
#include "proof/proof_tasks.h"

#include "base/threads.h"

#include <pthread.h>

#define PARALLEL_OPS_MIN 10000 /* below this, a thread takes longer to start than the proofs */
/* Cells, of 20 bytes, of all proofs in progress; one proof alone may have more. */
#define CELLS_AT_ONCE (UINT64_C(1) << 25)
#define CELLS_PER_OP 8 /* as much work as an op, roughly */
/* Memory per op of a proof that holds the whole program, approximate; of all such proofs. */
#define OP_BYTES 512
#define WHOLE_BYTES (UINT64_C(8) << 30)

void
lh_proof_task_free(gpointer data)
{
    LhProofTask *task = data;

    lh_program_free(task->program);
    lh_verdict_free(task->verdict);
    g_free(task->what);
    g_free(task);
}

typedef struct {
    GPtrArray *order; /* of LhProofTask *, borrowed; NULL: taken */
    const LhTask *task;
    pthread_mutex_t lock; /* of all but @order->len */
    pthread_cond_t room;  /* a proof has ended */
    guint running;
    uint64_t cells; /* of the running proofs */
    guint whole;    /* running proofs that hold whole programs, and their memory */
    double whole_bytes;
    uint64_t *ended; /* borrowed */
} Verification;

static bool
has_room(const Verification *v, const LhProofTask *task)
{
    return v->running == 0 || v->cells + task->cells <= CELLS_AT_ONCE;
}

/* The first task that there is room for; waits for proofs to end if there is none. */
static LhProofTask *
take_task(Verification *v)
{
    for (;;) {
        for (guint i = 0; i < v->order->len; i++) {
            LhProofTask *task = g_ptr_array_index(v->order, i);

            if (task == NULL || !has_room(v, task))
                continue;
            v->order->pdata[i] = NULL;
            v->running++;
            v->cells += task->cells;
            return task;
        }
        pthread_cond_wait(&v->room, &v->lock);
    }
}

/* Proves a program with all of its ops in memory, once there is room. */
static LhVerdict *
verify_whole(Verification *v, const LhProofTask *task)
{
    const double bytes = task->ops * OP_BYTES;
    LhVerdict *verdict;

    pthread_mutex_lock(&v->lock);
    while (v->whole > 0 && v->whole_bytes + bytes > (double)WHOLE_BYTES)
        pthread_cond_wait(&v->room, &v->lock);
    v->whole++;
    v->whole_bytes += bytes;
    pthread_mutex_unlock(&v->lock);
    verdict = lh_verify_whole(task->program);
    pthread_mutex_lock(&v->lock);
    v->whole--;
    v->whole_bytes -= bytes;
    pthread_cond_broadcast(&v->room);
    pthread_mutex_unlock(&v->lock);
    return verdict;
}

/* Proves one task, whichever. */
static void
verify_task(void *data, guint index)
{
    Verification *v = data;
    LhProofTask *task;

    (void)index;
    pthread_mutex_lock(&v->lock);
    task = take_task(v);
    pthread_mutex_unlock(&v->lock);
    task->verdict = lh_verify_in_order(task->program);
    if (task->verdict == NULL)
        task->verdict = verify_whole(v, task);
    pthread_mutex_lock(&v->lock);
    v->running--;
    v->cells -= task->cells;
    pthread_cond_broadcast(&v->room);
    lh_task_tell(v->task, &(LhProgress){ .what = task->proven->name, .done = ++*v->ended });
    pthread_mutex_unlock(&v->lock);
}

static double
size_of(const LhProofTask *task)
{
    return task->ops + (double)task->cells / CELLS_PER_OP;
}

/* Largest first, so that threads end together; equal ones in the order of the tasks. */
static gint
compare_sizes(gconstpointer a, gconstpointer b)
{
    const double x = size_of(*(const LhProofTask *const *)a);
    const double y = size_of(*(const LhProofTask *const *)b);

    return x > y ? -1 : x < y;
}

static void
verify_by_size(Verification *v)
{
    double sum = 0;

    for (guint i = 0; i < v->order->len; i++)
        sum += size_of(g_ptr_array_index(v->order, i));
    g_ptr_array_sort(v->order, compare_sizes);
    lh_on_threads_each("verify", sum < PARALLEL_OPS_MIN ? 1 : g_get_num_processors(), v->order->len,
                       verify_task, v);
}

void
lh_proof_tasks_verify(GPtrArray *tasks, const LhTask *task, uint64_t *ended)
{
    g_autoptr(GPtrArray) order = g_ptr_array_sized_new(tasks->len);
    Verification v = { .order = order, .task = task, .ended = ended };

    for (guint i = 0; i < tasks->len; i++)
        g_ptr_array_add(order, g_ptr_array_index(tasks, i));
    pthread_mutex_init(&v.lock, NULL);
    pthread_cond_init(&v.room, NULL);
    verify_by_size(&v);
    pthread_mutex_destroy(&v.lock);
    pthread_cond_destroy(&v.room);
    for (guint i = 0; i < tasks->len; i++) {
        const LhProofTask *done = g_ptr_array_index(tasks, i);

        lh_proven_add(done->proven, done->program, done->verdict, done->what);
    }
    g_ptr_array_set_size(tasks, 0);
}
