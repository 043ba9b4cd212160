/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/execution.h"

#include "base/error.h"
#include "base/time_units.h"
#include "program/op_names.h"
#include "runtime/process/clocks.h"

#include <string.h>

#define DONE_MIN 256

void
lh_execution_begin(LhExecution *x)
{
    x->epoch_ns = lh_clocks_now();
}

LhTime
lh_execution_now(const LhExecution *x)
{
    return (lh_clocks_now() - x->epoch_ns) * LH_PS_PER_NS;
}

bool
lh_execution_stopping(LhExecution *x)
{
    return g_atomic_int_get(&x->stopping) != 0;
}

void
lh_execution_fail(LhExecution *x, GError *error)
{
    pthread_mutex_lock(&x->lock);
    if (x->error == NULL)
        x->error = g_steal_pointer(&error);
    pthread_mutex_unlock(&x->lock);
    g_clear_error(&error);
    g_atomic_int_set(&x->stopping, 1);
    for (uint32_t r = 0; r < x->place.count; r++) {
        pthread_mutex_lock(&x->ranks[r].lock);
        pthread_cond_broadcast(&x->ranks[r].changed);
        pthread_mutex_unlock(&x->ranks[r].lock);
    }
}

bool
lh_execution_fail_op(const LhRunner *rank, const LhOp *op, int code, const char *format, ...)
{
    LhExecution *x = rank->execution;
    g_autofree char *text = lh_op_text(x->program, op);
    g_autofree char *what = NULL;
    va_list args;

    va_start(args, format);
    what = lh_error_text(format, args);
    va_end(args);
    lh_execution_fail(x, g_error_new(LH_ERROR, code, "rank %u, %s: %s", rank->index, text, what));
    return false;
}

void
lh_runner_pause_at(const LhRunner *rank, uint32_t op, uint32_t where)
{
    const LhRunHooks *hooks = rank->execution->params->hooks;

    if (hooks != NULL && hooks->pause != NULL)
        hooks->pause(hooks->data, rank->index, op, where);
}

void
lh_runner_done(LhRunner *rank, uint32_t id, LhTime end_ps)
{
    pthread_mutex_lock(&rank->lock);
    rank->done[id] = 1;
    while (rank->first_open < rank->issued && rank->done[rank->first_open])
        rank->first_open++;
    rank->counted.ops++;
    rank->counted.finish_ps = MAX(rank->counted.finish_ps, end_ps);
    g_atomic_int_inc(&rank->execution->moved);
    pthread_cond_broadcast(&rank->changed);
    pthread_mutex_unlock(&rank->lock);
}

void
lh_execution_record(LhRunner *rank, const LhItem *item)
{
    const LhOp *op = &item->op;
    LhExecution *x = rank->execution;
    LhTimelineRecord r = { .rank = rank->index,
                           .op = op->id,
                           .kind = op->kind,
                           .stream = op->stream,
                           .phase = op->phase,
                           .tier = LH_TIMELINE_NO_TIER,
                           .step = op->step,
                           .layer = op->layer,
                           .micro_batch = op->micro_batch,
                           .module = op->module,
                           .kernel = op->kind == LH_OP_COMPUTE ? op->compute.kernel : 0,
                           .issued_ps = item->issued_ps,
                           .start_ps = item->start_ps,
                           .end_ps = item->end_ps,
                           .bytes = item->bytes,
                           .flops = item->flops };
    const LhSpan kernel = { item->start_ps, item->end_ps };

    pthread_mutex_lock(&rank->lock);
    rank->counted.bytes_sent += item->bytes;
    rank->counted.flops += item->flops;
    if (op->kind == LH_OP_COMPUTE)
        g_array_append_val(rank->kernels, kernel);
    pthread_mutex_unlock(&rank->lock);
    if (x->params->timeline == NULL)
        return;
    pthread_mutex_lock(&x->lock);
    g_array_append_val(x->records, r);
    pthread_mutex_unlock(&x->lock);
}

void
lh_runner_issued(LhRunner *rank, uint32_t id)
{
    pthread_mutex_lock(&rank->lock);
    if (id >= rank->done_capacity) {
        const uint32_t before = rank->done_capacity;

        rank->done_capacity = MAX(2 * before, DONE_MIN);
        rank->done = g_realloc(rank->done, rank->done_capacity);
        memset(rank->done + before, 0, rank->done_capacity - before);
    }
    rank->issued = id + 1;
    pthread_mutex_unlock(&rank->lock);
}
