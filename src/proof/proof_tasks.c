/* SPDX-License-Identifier: Apache-2.0 */
#include "proof/proof_tasks.h"

#include "base/threads.h"
#include "proof/run_time_estimate.h"

#define PARALLEL_OPS_MIN 10000 /* below this, a thread takes longer to start than a proof */
#define OP_BYTES 512 /* memory per op of a proof that holds the whole program, approximate */
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

/* Verifies a task, the last ones first: programs of both passes come after those of one, and
 * threads end together if the small ones are left. */
static void
verify_task(void *data, guint index)
{
    const GPtrArray *tasks = data;
    LhProofTask *task = g_ptr_array_index(tasks, tasks->len - 1 - index);

    task->verdict = lh_verify(task->program);
}

/* The number of proofs of about @ops ops that may run at once. */
static guint
threads_for(double ops)
{
    if (ops < PARALLEL_OPS_MIN)
        return 1;
    return (guint)CLAMP((double)PROOFS_BYTES / (ops * OP_BYTES), 1, g_get_num_processors());
}

void
lh_proof_tasks_verify(LhProven *proven, GPtrArray *tasks)
{
    guint threads = 1;

    if (tasks->len > 1) {
        const LhProofTask *first = g_ptr_array_index(tasks, 0);

        threads = threads_for(lh_run_time_ops(first->program));
    }
    lh_on_threads_each("verify", threads, tasks->len, verify_task, tasks);
    for (guint i = 0; i < tasks->len; i++) {
        const LhProofTask *task = g_ptr_array_index(tasks, i);

        lh_proven_add(proven, task->program, task->verdict, task->what);
    }
    g_ptr_array_set_size(tasks, 0);
}
