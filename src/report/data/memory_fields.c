/* SPDX-License-Identifier: Apache-2.0 */
#include "report/data/memory_fields.h"

#include "compare/totals.h"

#include <string.h>

/* ---- an op ---- */

static uint64_t
uint_of(const LhMemoryOp *op, uint64_t value)
{
    return op->op == LH_OP_NONE ? LH_FIELD_NO_UINT : value;
}

static void
derive_op(const void *of, void *value)
{
    *(uint64_t *)value = uint_of(of, ((const LhMemoryOp *)of)->op);
}

static void
derive_layer(const void *of, void *value)
{
    *(uint64_t *)value = uint_of(of, ((const LhMemoryOp *)of)->layer);
}

static void
derive_micro_batch(const void *of, void *value)
{
    *(uint64_t *)value = uint_of(of, ((const LhMemoryOp *)of)->micro_batch);
}

static void
derive_phase(const void *of, void *value)
{
    const LhMemoryOp *op = of;

    *(int *)value = op->op == LH_OP_NONE ? -1 : op->phase;
}

#define OP_ROW(kind, member, ...)                                                                  \
    LH_FIELD_ROW(kind, LhMemoryOp, member, #member, OR_NULL, .derive = derive_##member, __VA_ARGS__)

const LhField lh_memory_op_fields[] = {
    OP_ROW(UINT, op, .description = "Id of the op; null: before the first op."),
    OP_ROW(UINT, layer, .description = "Layer, from 0."),
    OP_ROW(UINT, micro_batch, .description = "Micro-batch, from 0."),
    OP_ROW(CHOICE, phase, .choices = lh_phase_names, .description = "Phase of the step."),
    { .name = NULL },
};

/* ---- the peak ---- */

const LhField lh_peak_fields[] = {
    LH_FIELD_ROW(INLINE, LhPeakValues, op, "op", ALWAYS, .fields = lh_memory_op_fields),
    LH_FIELD_ROW(COUNTS, LhPeakValues, by_category, "by_category", ALWAYS,
                 .choices = lh_category_names,
                 .description = "Bytes at the peak by category; only categories that occur."),
    { .name = NULL },
};

LhPeakValues
lh_peak_values(const LhSimResult *r)
{
    const LhRankResult *rank;
    LhPeakValues v;
    LhTotals totals;

    lh_totals(r, &totals);
    rank = &r->ranks[totals.peak_rank];
    v.op = rank->peak_op;
    memcpy(v.by_category, rank->peak->by_category, sizeof(v.by_category));
    return v;
}

/* ---- what does not fit ---- */

static void
derive_category(const void *of, void *value)
{
    const LhMemoryOp *op = &((const LhFirstBeyond *)of)->op;

    *(int *)value = op->op == LH_OP_NONE ? -1 : op->category;
}

static const LhField first_fields[] = {
    LH_FIELD_ROW(UINT, LhFirstBeyond, rank, "rank", ALWAYS, .description = "The rank."),
    LH_FIELD_SECONDS_ROW(INT, LhFirstBeyond, time_ps, "time_s", ALWAYS, .max = -1,
                         .description = "Time at which its host reaches the op."),
    LH_FIELD_ROW(INLINE, LhFirstBeyond, op, "op", ALWAYS, .fields = lh_memory_op_fields),
    LH_FIELD_ROW(CHOICE, LhFirstBeyond, op, "category", OR_NULL, .choices = lh_category_names,
                 .derive = derive_category,
                 .description =
                     "Category of the memory that the op allocates; null before the first op."),
    LH_FIELD_ROW(UINT, LhFirstBeyond, held_bytes, "held_bytes", ALWAYS, .min = 1, .max = -1,
                 .description = "Memory of the rank including the allocation."),
    { .name = NULL },
};

const LhField lh_out_of_memory_fields[] = {
    LH_FIELD_ROW(UINT, LhOutOfMemoryValues, rank, "rank", ALWAYS,
                 .description = "Rank with the highest peak."),
    LH_FIELD_ROW(UINT, LhOutOfMemoryValues, needed_bytes, "needed_bytes", ALWAYS, .min = 1,
                 .max = -1, .description = "Its peak in the run: peak_bytes_max."),
    LH_FIELD_ROW(UINT, LhOutOfMemoryValues, limit_bytes, "limit_bytes", ALWAYS, .min = 1, .max = -1,
                 .description = "Memory available."),
    LH_FIELD_ROW(COUNTS, LhOutOfMemoryValues, by_category, "by_category", ALWAYS,
                 .choices = lh_category_names, .description = "needed_bytes by category."),
    LH_FIELD_ROW(OBJECT, LhOutOfMemoryValues, first, "first", ALWAYS, .fields = first_fields,
                 .description = "First op, over all ranks, that exceeds the available memory."),
    { .name = NULL },
};

LhOutOfMemoryValues
lh_out_of_memory_values(const LhSimResult *r)
{
    const LhOutOfMemory *oom = r->out_of_memory;
    LhOutOfMemoryValues v = { .limit_bytes = oom->limit_bytes,
                              .first = { .rank = oom->rank,
                                         .time_ps = oom->time_ps,
                                         .op = oom->op,
                                         .held_bytes = oom->needed_bytes } };
    LhTotals totals;

    lh_totals(r, &totals);
    v.rank = totals.peak_rank;
    v.needed_bytes = totals.peak_bytes;
    memcpy(v.by_category, r->ranks[totals.peak_rank].peak->by_category, sizeof(v.by_category));
    return v;
}

/* ---- offload ---- */

const LhField lh_offload_fields[] = {
    LH_FIELD_ROW(UINT, LhOffloadValues, rank_bytes, "host_peak_bytes_max", ALWAYS,
                 .description = "Highest peak of host memory of a rank."),
    LH_FIELD_ROW(UINT, LhOffloadValues, node.needed_bytes, "node_host_bytes_max", ALWAYS,
                 .description = "Host memory of the node that needs most: the sum of its ranks' "
                                "peaks."),
    LH_FIELD_ROW(UINT, LhOffloadValues, node.limit_bytes, "node_host_limit_bytes", ALWAYS,
                 .description = "Host memory of a node; 0: not known."),
    LH_FIELD_ROW(DOUBLE, LhOffloadValues, exposed_s, "exposed_offload_s", ALWAYS, .max = -1,
                 .description =
                     "Exposed copies between device and host and updates on the CPU, seconds; mean "
                     "over ranks."),
    { .name = NULL },
};
