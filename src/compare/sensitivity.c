/* SPDX-License-Identifier: Apache-2.0 */
#include "compare/sensitivity.h"

#include "program/cursor.h"
#include "scenario/setup_simulate.h"
#include "sim/cost/cost.h"
#include "sim/cost/provenance.h"
#include "sim/network/collectives/nccl_model.h"
#include "sim/network/sends.h"

#include <math.h>

/* ---- kernels ---- */

/* Kernels of one kind: their time on a rank, and that time x relative error. */
typedef struct {
    double spent_s, uncertain_s;
    LhProvenance provenance;
} KindTime;

static LhConstantKind
kind_of(const LhKernel *kernel, bool on_cpu)
{
    if (on_cpu)
        return LH_CONSTANT_OF_CPU;
    switch (kernel->cost) {
    case LH_COST_ATTENTION:
        return kernel->effect == LH_EFFECT_ATTEND_GRAD ? LH_CONSTANT_OF_BACKWARD
                                                       : LH_CONSTANT_OF_FORWARD;
    case LH_COST_GEMM:
        return LH_CONSTANT_OF_GEMM;
    case LH_COST_PRODUCT:
        return LH_CONSTANT_OF_PRODUCTS;
    default:
        return LH_CONSTANT_OF_MEMORY;
    }
}

static void
time_op(LhCost *cost, const LhProgram *program, const LhOp *op, KindTime *times)
{
    KindTime *time = &times[kind_of(lh_kernels[op->compute.kernel], lh_op_on_cpu(program, op))];
    const double spent_s = cost->spent_s, uncertain_s = cost->uncertain_s;

    cost->provenance = LH_PROVENANCE_MEASURED;
    lh_cost_compute(cost, program, op, NULL);
    time->spent_s += cost->spent_s - spent_s;
    time->uncertain_s += cost->uncertain_s - uncertain_s;
    time->provenance = MAX(time->provenance, cost->provenance);
}

/* Sums the times on the middle rank, which represents all. */
static void
time_kinds(const LhSetup *setup, const LhProgram *program, KindTime times[LH_CONSTANT_KINDS])
{
    const LhSimParams params = lh_setup_sim_params(setup, program);
    LhOpBuffer buffer = { 0 };
    LhCursor cursor;
    LhCost cost;

    lh_sim_begin_cost(&cost, &params);
    lh_cursor_init(&cursor, program, lh_program_ranks(program) / 2);
    while (lh_cursor_step(&cursor, &buffer)) {
        for (uint32_t i = 0; i < buffer.ops_count; i++) {
            const LhOp *op = &buffer.ops[i];

            if (op->kind == LH_OP_COMPUTE && !lh_op_is_outside(op))
                time_op(&cost, program, op, times);
        }
    }
    lh_op_buffer_clear(&buffer);
    lh_cost_clear(&cost);
}

/* ---- all constants ---- */

/* Adds a constant that moves the time by @moves. A rate shared by two tiers moves it by both
 * separately (@also). */
static void
add_constant(LhSensitivities *s, LhSensitivity constant, double moves, double also)
{
    constant.moves = sqrt(moves * moves + also * also);
    constant.share = constant.error > 0 ? (moves + also) / constant.error : 0;
    if (constant.moves > 0)
        g_array_append_val(s->constants, constant);
}

static void
add_kernels(LhSensitivities *s, const LhSetup *setup, const LhProgram *program, double moves)
{
    KindTime times[LH_CONSTANT_KINDS] = { 0 };
    double uncertain_s = 0;

    time_kinds(setup, program, times);
    for (int kind = 0; kind < LH_CONSTANT_KINDS; kind++)
        uncertain_s += times[kind].uncertain_s;
    for (int kind = 0; kind < LH_CONSTANT_KINDS && uncertain_s > 0; kind++) {
        const KindTime *time = &times[kind];

        if (time->spent_s > 0)
            add_constant(s,
                         (LhSensitivity){ .kind = (LhConstantKind)kind,
                                          .provenance = time->provenance,
                                          .error = time->uncertain_s / time->spent_s },
                         moves * time->uncertain_s / uncertain_s, 0);
    }
}

static void
add_links(LhSensitivities *s, const LhSetup *setup, const LhErrorParts *parts)
{
    const LhTopology *t = setup->topology;
    const LhLinkClass *const classes[] = { &t->nvlink, &t->pcie, &t->nic };
    const int nccl = setup->collectives == LH_COLLECTIVES_NCCL
                         ? (int)lh_nccl_provenance(setup->device)
                         : LH_PROVENANCE_MEASURED;

    /* Tiers above the NICs have their rate. */
    for (int tier = 0; tier < LH_TIER_FABRIC; tier++) {
        const int own = classes[tier]->from.provenance;
        const int rate = tier == LH_TIER_PCIE ? MAX(own, lh_pcie_provenance(&t->tree)) : own;
        const int provenance = MAX(rate, nccl);

        add_constant(
            s,
            (LhSensitivity){ .kind = nccl > rate ? LH_CONSTANT_OF_COLLECTIVES : LH_CONSTANT_OF_LINK,
                             .tier = tier,
                             .provenance = (LhProvenance)provenance,
                             .error = lh_provenance_error(provenance) },
            parts->part[tier], tier == LH_TIER_NIC ? parts->part[LH_TIER_FABRIC] : 0);
    }
}

/* Adds how much slower than assumed messages may be, on the tier with the largest effect. */
static void
add_sends(LhSensitivities *s, const LhSetup *setup, double moves)
{
    const LhNetwork *n = &setup->network;
    double error = 0;

    for (int tier = 0; tier <= LH_TIER_PCIE; tier++) {
        const LhSends sends =
            lh_sends_of(setup->topology, (LhTier)tier, MIN(n->ranks, n->gpus_per_node));

        error = MAX(error, sends.share / sends.least - 1);
    }
    add_constant(s,
                 (LhSensitivity){ .kind = LH_CONSTANT_OF_SENDS,
                                  .provenance = LH_PROVENANCE_ASSUMED,
                                  .error = MAX(error, moves) },
                 moves, 0);
}

/* Sorts by effect, largest first; ties by kind and tier. */
static int
by_moves(gconstpointer a, gconstpointer b)
{
    const LhSensitivity *x = a, *y = b;

    if (x->moves == y->moves)
        return x->kind != y->kind ? (int)x->kind - (int)y->kind : x->tier - y->tier;
    return x->moves > y->moves ? -1 : 1;
}

static bool
is_kernel(LhConstantKind kind)
{
    return kind >= LH_CONSTANT_OF_FORWARD && kind <= LH_CONSTANT_OF_MEMORY;
}

/* The error bar if the first @measured constants were measured. Errors of kernels add up, since
 * they belong to one GPU; the others add as squares. */
static double
bar_of(const LhSensitivities *s, guint measured)
{
    const double good = lh_provenance_error(LH_PROVENANCE_MEASURED);
    double kernels = 0, squares = s->model * s->model;

    for (guint i = 0; i < s->constants->len; i++) {
        const LhSensitivity *c = &g_array_index(s->constants, LhSensitivity, i);
        const double moves = i < measured ? c->moves * MIN(1, good / c->error) : c->moves;

        if (is_kernel(c->kind))
            kernels += moves;
        else
            squares += moves * moves;
    }
    return sqrt(squares + kernels * kernels);
}

LhSensitivities *
lh_sensitivities(const LhSetup *setup, const LhProgram *program, const LhErrorParts *parts,
                 double time_error)
{
    LhSensitivities *s;
    double squares = 0;

    if (setup->cost != LH_COST_DEVICE || time_error <= 0)
        return NULL;
    s = g_new0(LhSensitivities, 1);
    s->constants = g_array_new(FALSE, FALSE, sizeof(LhSensitivity));
    s->bar = time_error;
    for (int part = 0; part <= LH_ERROR_SLOWER; part++)
        squares += parts->part[part] * parts->part[part];
    s->model = sqrt(fmax(time_error * time_error - squares, 0));
    add_links(s, setup, parts);
    add_kernels(s, setup, program, parts->part[LH_ERROR_KERNELS]);
    add_constant(s,
                 (LhSensitivity){ .kind = LH_CONSTANT_OF_HOST,
                                  .provenance = (LhProvenance)setup->device->host_provenance,
                                  .error = lh_provenance_error(setup->device->host_provenance) },
                 parts->part[LH_ERROR_HOST], 0);
    add_sends(s, setup, parts->part[LH_ERROR_SLOWER]);
    g_array_sort(s->constants, by_moves);
    return s;
}

void
lh_sensitivities_free(LhSensitivities *s)
{
    if (s == NULL)
        return;
    g_array_unref(s->constants);
    g_free(s);
}

double
lh_sensitivities_measured(const LhSensitivities *s, guint count)
{
    return bar_of(s, count);
}

guint
lh_sensitivities_to_halve(const LhSensitivities *s)
{
    for (guint count = 1; count <= s->constants->len; count++) {
        if (bar_of(s, count) <= s->bar / 2)
            return count;
    }
    return 0;
}
