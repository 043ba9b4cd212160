/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A copy reads and writes every element once; a copy into zeros also writes the zeros. Not counted:
 * statistics of rows, which are 1/d of the elements, and indices, one per token.
 */
#include "sim/cost/call_cost.h"

#include "kernels/sizes.h"
#include "program/work.h"

#include <string.h>

/* Number of tensors of the queries' size and of the keys' size that a pass of attention reads and
 * writes: q and k, v to o; q, o, do and k, v to dq and dk, dv. */
typedef struct {
    double queries_read, queries_written, keys_written;
} Tensors;

static const Tensors forward = { .queries_read = 1, .queries_written = 1, .keys_written = 0 };
static const Tensors backward = { .queries_read = 3, .queries_written = 1, .keys_written = 1 };

/* Whether the op is a call of a library's softmax attention kernel. */
static bool
is_call(const LhOp *op)
{
    return op->kind == LH_OP_COMPUTE && lh_kernels[op->compute.kernel]->cost == LH_COST_ATTENTION;
}

static double
around_call(const LhFramework *f, const LhOp *op, double element_bytes)
{
    const LhKernelArgs *a = &op->compute.args;
    const Tensors *t =
        lh_kernels[op->compute.kernel]->effect == LH_EFFECT_ATTEND_GRAD ? &backward : &forward;
    const double queries = (double)lh_q_elements(a) * element_bytes;
    const double keys = (double)lh_kv_elements(a) * element_bytes;
    const double read = t->queries_read * queries + keys;
    const double written = t->queries_written * queries + t->keys_written * keys;
    double bytes = 0;

    if (f->call_gather)
        bytes += 2 * read * f->call_slowdown;
    if (f->call_pad)
        bytes += written + 2 * written * f->call_slowdown;
    return bytes;
}

/* Whether the sum that a merge adds to has more queries than the block. */
static bool
is_slice(const LhProgram *program, const LhOp *op, const LhCallHistory *history)
{
    const LhRegion *sum = &op->compute.regions[op->compute.regions_count - 1];

    return history->shifted || sum->count < program->slots[sum->slot].parts;
}

double
lh_call_bytes(const LhFramework *f, const LhProgram *program, const LhOp *op,
              LhCallHistory *history)
{
    const LhKernelArgs *args = &op->compute.args;

    if (f == NULL || op->kind != LH_OP_COMPUTE)
        return 0;
    if (is_call(op)) {
        history->shifted = args->mask == LH_MASK_CAUSAL && args->shift != 0;
        return around_call(f, op, (double)lh_dtype_bytes(lh_op_activation(program, op)));
    }
    if (op->compute.kernel != LH_KERNEL_ID_merge_lse || args->first ||
        !is_slice(program, op, history))
        return 0;
    return f->kernels_merge_slice * (double)lh_q_elements(args);
}

LhTime
lh_call_host_ps(const LhFramework *f, const LhOp *op)
{
    return f != NULL && is_call(op) ? lh_time_from_ps(f->call_host_s * (double)LH_PS_PER_S) : 0;
}

static LhProvenance
provenance_of(const LhFramework *f, const char *group, const char *name)
{
    static const LhProvenance provenances[] = {
        [LH_ORIGIN_MEASURED] = LH_PROVENANCE_MEASURED,   [LH_ORIGIN_CODE] = LH_PROVENANCE_MEASURED,
        [LH_ORIGIN_DATASHEET] = LH_PROVENANCE_DATASHEET, [LH_ORIGIN_FITTED] = LH_PROVENANCE_FITTED,
        [LH_ORIGIN_ASSUMED] = LH_PROVENANCE_ASSUMED,
    };
    guint i = 0;

    while (strcmp(g_array_index(f->facts, LhFrameworkFact, i).group, group) != 0 ||
           strcmp(g_array_index(f->facts, LhFrameworkFact, i).name, name) != 0)
        i++;
    return provenances[g_array_index(f->facts, LhFrameworkFact, i).origin];
}

LhCallTrust
lh_call_trust(const LhFramework *f)
{
    LhCallTrust trust = { 0 };

    if (f == NULL)
        return trust;
    if (f->call_gather || f->call_pad)
        trust.copies = provenance_of(f, "attention_call", "index_slowdown");
    if (f->call_gather)
        trust.copies = MAX(trust.copies, provenance_of(f, "attention_call", "gather"));
    if (f->call_pad)
        trust.copies = MAX(trust.copies, provenance_of(f, "attention_call", "pad"));
    trust.slices = provenance_of(f, "kernels", "merge_slice");
    trust.host = provenance_of(f, "attention_call", "host_s");
    return trust;
}
