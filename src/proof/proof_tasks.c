/* SPDX-License-Identifier: Apache-2.0 */
#include "proof/proof_tasks.h"

#include "base/threads.h"

#define PARALLEL_OPS_MIN 10000 /* below this, a thread takes longer to start than a proof */
#define OP_BYTES 512           /* memory of a proof per op, approximate */
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

/* Verifies a task. The first task is verified separately: @index counts the others. */
static void
verify_task(void *data, guint index)
{
    const GPtrArray *tasks = data;
    LhProofTask *task = g_ptr_array_index(tasks, index + 1);

    task->verdict = lh_verify(task->program);
}

/* The number of proofs of about @ops ops that may run at once. */
static guint
threads_for(uint64_t ops)
{
    if (ops < PARALLEL_OPS_MIN)
        return 1;
    return (guint)CLAMP(PROOFS_BYTES / (ops * OP_BYTES), 1, g_get_num_processors());
}

void
lh_proof_tasks_verify(LhProven *proven, GPtrArray *tasks)
{
    LhProofTask *first = tasks->len > 0 ? g_ptr_array_index(tasks, 0) : NULL;

    if (first == NULL)
        return;
    first->verdict = lh_verify(first->program);
    lh_on_threads_each("verify", threads_for(first->verdict->ops), tasks->len - 1, verify_task,
                       tasks);
    for (guint i = 0; i < tasks->len; i++) {
        const LhProofTask *task = g_ptr_array_index(tasks, i);

        lh_proven_add(proven, task->program, task->verdict, task->what);
    }
    g_ptr_array_set_size(tasks, 0);
}
