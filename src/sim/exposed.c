/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/exposed.h"

#include "base/mix.h"

#define OPS_LEAST 64

void
lh_exposed_clear(LhExposed *x)
{
    g_clear_pointer(&x->ops, g_free);
    g_clear_pointer(&x->late, g_array_unref);
}

static LhExposedOp *
op_at(const LhExposed *x, uint32_t id)
{
    return &x->ops[id & x->mask];
}

/* Makes room for one more op. */
static void
grow(LhExposed *x)
{
    const uint32_t length = x->ops == NULL ? OPS_LEAST : 2 * (x->mask + 1);
    LhExposedOp *ops = g_new(LhExposedOp, length);

    for (uint32_t id = x->first; id < x->next; id++)
        ops[id & (length - 1)] = *op_at(x, id);
    g_free(x->ops);
    x->ops = ops;
    x->mask = length - 1;
    if (x->late == NULL)
        x->late = g_array_new(FALSE, FALSE, sizeof(LhLateOp));
}

static const LhLateOp *
late_op(const LhExposed *x, uint32_t id)
{
    for (guint i = 0; i < x->late->len; i++) {
        const LhLateOp *late = &g_array_index(x->late, LhLateOp, i);

        if (late->id == id)
            return late;
    }
    return NULL;
}

/* Charges idle time before a kernel to the op that it waited for last. */
static void
add_wait(LhExposed *x, const LhExposedOp *op)
{
    uint8_t dimension = LH_EXPOSED_DIMENSIONS;
    LhTime latest_ps = x->busy_until_ps;

    for (uint32_t i = 0; i < op->after_count; i++) {
        const LhLateOp *late = late_op(x, op->after[i]);

        if (late != NULL && late->end_ps > latest_ps) {
            latest_ps = late->end_ps;
            dimension = late->dimension;
        }
    }
    if (dimension < LH_EXPOSED_DIMENSIONS)
        x->exposed_ps[dimension] += latest_ps - x->busy_until_ps;
}

/* Kernels have run until @end_ps. */
static void
compute_until(LhExposed *x, LhTime end_ps)
{
    guint kept = 0;

    if (end_ps <= x->busy_until_ps)
        return;
    x->busy_until_ps = end_ps;
    for (guint i = 0; i < x->late->len; i++) {
        const LhLateOp late = g_array_index(x->late, LhLateOp, i);

        if (late.end_ps > end_ps)
            g_array_index(x->late, LhLateOp, kept++) = late;
    }
    g_array_set_size(x->late, kept);
}

/* Judges the first op, which is complete. */
static void
judge(LhExposed *x)
{
    const uint32_t id = x->first++;
    const LhExposedOp *op = op_at(x, id);

    if (!op->computes) {
        const LhLateOp late = {
            .end_ps = op->end_ps, .id = id, .dimension = op->dimension, .of_host = op->of_host
        };

        if (op->dimension < LH_EXPOSED_DIMENSIONS && op->end_ps > x->busy_until_ps)
            g_array_append_val(x->late, late);
        return;
    }
    /* Communication on a compute stream is always exposed. */
    if (op->dimension < LH_EXPOSED_DIMENSIONS)
        x->exposed_ps[op->dimension] += MAX(op->end_ps - MAX(x->busy_until_ps, op->start_ps), 0);
    else
        add_wait(x, op);
    compute_until(x, op->end_ps);
}

static void
judge_complete(LhExposed *x)
{
    while (x->first < x->next && op_at(x, x->first)->done)
        judge(x);
}

void
lh_exposed_close(LhExposed *x)
{
    LhTime end_ps = x->busy_until_ps;
    uint8_t dimension = 0;

    for (guint i = 0; x->late != NULL && i < x->late->len; i++) {
        const LhLateOp *late = &g_array_index(x->late, LhLateOp, i);

        if (!late->of_host || late->end_ps <= end_ps)
            continue;
        end_ps = late->end_ps;
        dimension = late->dimension;
    }
    if (end_ps > x->busy_until_ps)
        x->exposed_ps[dimension] += end_ps - x->busy_until_ps;
}

void
lh_exposed_issue(LhExposed *x, const LhProgram *program, const LhOp *op, uint8_t dimension)
{
    const bool on_stream = lh_op_on_stream(op);
    LhExposedOp *next;

    if (x->ops == NULL || x->next - x->first > x->mask)
        grow(x);
    g_assert(op->id == x->next);
    next = op_at(x, x->next++);
    next->start_ps = next->end_ps = 0;
    next->computes = on_stream && program->streams[op->stream].kind == LH_STREAM_COMPUTE;
    next->of_host = op->kind == LH_OP_COMPUTE && !next->computes;
    next->done = !on_stream;
    next->dimension = dimension;
    next->after_count = next->computes ? op->after_count : 0;
    for (uint32_t i = 0; i < next->after_count; i++)
        next->after[i] = op->after[i];
    judge_complete(x);
}

void
lh_exposed_end(LhExposed *x, uint32_t id, LhTime now)
{
    LhExposedOp *op = op_at(x, id);

    op->end_ps = now;
    op->done = true;
    if (id == x->first)
        judge_complete(x);
}

uint64_t
lh_exposed_mix(uint64_t hash, const LhExposed *x, uint32_t issued, LhTime now)
{
    hash = lh_mix(hash, (uint64_t)(now - x->busy_until_ps));
    hash = lh_mix(hash, issued - x->first);
    for (guint i = 0; x->late != NULL && i < x->late->len; i++) {
        const LhLateOp *late = &g_array_index(x->late, LhLateOp, i);

        hash = lh_mix(hash, (uint64_t)(now - late->end_ps));
        hash = lh_mix(hash, (uint64_t)(issued - late->id) << 8 | late->dimension);
    }
    for (uint32_t id = x->first; id < x->next; id++) {
        const LhExposedOp *op = op_at(x, id);

        hash = lh_mix(hash, (uint64_t)op->done << 1 | op->computes);
        hash = lh_mix(hash, op->start_ps == 0 ? UINT64_MAX : (uint64_t)(now - op->start_ps));
        hash = lh_mix(hash, op->end_ps == 0 ? UINT64_MAX : (uint64_t)(now - op->end_ps));
        hash = lh_mix(hash, (uint64_t)op->dimension << 8 | op->after_count);
        for (uint32_t i = 0; i < op->after_count; i++)
            hash = lh_mix(hash, id - op->after[i]);
    }
    return hash;
}
