/* SPDX-License-Identifier: Apache-2.0 */
#include "proof/proof_tasks.h"

#include "base/threads.h"

#include <pthread.h>

#define PARALLEL_OPS_MIN 10000 /* below this, a thread takes longer to start than the proofs */
#define OP_BYTES 512 /* memory per op of a proof that holds the whole program, approximate */
/* The same for one that does not: cells of 20 bytes; one proof alone may have more. */
#define CELLS_AT_ONCE (UINT64_C(1) << 25)
#define CELLS_PER_OP 8                   /* as much work as an op, roughly */
#define PROOFS_BYTES (UINT64_C(8) << 30) /* memory of all proofs in progress */

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
    uint64_t cells;  /* of the running proofs */
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
    task->verdict = lh_verify(task->program);
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

/* The number of proofs that may run at once: of the largest ones, @most ops, within the memory. */
static guint
threads_for(double most, double sum)
{
    if (sum < PARALLEL_OPS_MIN)
        return 1;
    return (guint)CLAMP((double)PROOFS_BYTES / (most * OP_BYTES), 1, g_get_num_processors());
}

static void
verify_by_size(Verification *v)
{
    double most = 1, sum = 0;

    for (guint i = 0; i < v->order->len; i++) {
        const LhProofTask *task = g_ptr_array_index(v->order, i);

        most = MAX(most, task->ops);
        sum += size_of(task);
    }
    g_ptr_array_sort(v->order, compare_sizes);
    lh_on_threads_each("verify", threads_for(most, sum), v->order->len, verify_task, v);
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
