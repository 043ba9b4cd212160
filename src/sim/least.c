/*
 * The walk: each op of the rank starts when its stream, the ops it comes after and its host let it,
 * and takes the least time that it can. What the engine adds to that are delays.
 */
#include "sim/least.h"

#include "program/cursor.h"
#include "sim/call_cost.h"
#include "sim/cost.h"
#include "sim/network/collective_least.h"

struct _LhLeast {
    const LhSimParams *params;
    LhCost cost;
    LhCollectives *collectives;
    LhLinkLoads *loads;
    bool free_network;
    LhOpBuffer buffer;
};

LhLeast *
lh_least_new(const LhSimParams *params)
{
    LhLeast *least = g_new0(LhLeast, 1);

    least->params = params;
    least->free_network = params->cost != LH_COST_DEVICE;
    lh_cost_init(&least->cost, params->cost, params->device);
    least->cost.framework = params->framework;
    least->cost.trust = lh_call_trust(params->framework);
    least->cost.serving = params->serving;
    return least;
}

void
lh_least_free(LhLeast *least)
{
    if (least == NULL)
        return;
    lh_cost_clear(&least->cost);
    lh_collectives_free(least->collectives);
    lh_link_loads_free(least->loads);
    lh_op_buffer_clear(&least->buffer);
    g_free(least);
}

/* One rank on its way. */
typedef struct {
    LhLeast *least;
    uint32_t rank;
    bool communication;
    GArray *ends;                                  /* of LhTime, by op */
    LhTime host_ps, launch_ps, sync_ps, latest_ps; /* of all streams */
    LhTime stream_ps[LH_STREAMS_MAX];              /* when the last op of each ends */
    LhLeastTimes times;
} Walk;

/* Where jitter takes most off it. */
static LhTime
compute_ps(const Walk *walk, const LhOp *op, double *occupancy)
{
    const LhSimParams *p = walk->least->params;
    const LhTime time_ps = p->compute_time != NULL
                               ? p->compute_time(p->compute_time_data, walk->rank, op)
                               : lh_cost_compute(&walk->least->cost, p->program, op, occupancy);

    return p->jitter > 0 ? (LhTime)((double)time_ps * (1 - p->jitter)) : time_ps;
}

static LhTime
communication_ps(const Walk *walk, const LhOp *op)
{
    LhLeast *least = walk->least;
    const LhSimParams *p = least->params;

    if (!walk->communication || least->free_network)
        return 0;
    if (least->collectives == NULL) {
        least->collectives = lh_collectives_new(p->network, p->device, p->collectives);
        least->loads = lh_link_loads_new(p->network, p->network_model);
    }
    if (op->kind == LH_OP_EXCHANGE)
        return lh_exchange_least(least->loads, walk->rank,
                                 &least->buffer.parts[op->exchange.parts_first],
                                 op->exchange.parts_count);
    return lh_collective_least(least->collectives, least->loads, p->program, walk->rank, op,
                               least->buffer.counts);
}

static LhTime
end_of(const Walk *walk, uint32_t op)
{
    return op < walk->ends->len ? g_array_index(walk->ends, LhTime, op) : 0;
}

static void
add_busy(Walk *walk, const LhOp *op, uint32_t of, LhTime time_ps)
{
    walk->times.sums_ps[of] += time_ps;
    if (op->micro_batch == 0)
        walk->times.first_ps[of] += time_ps;
}

/* Whether an op only stands for what somebody else issues. */
static bool
is_outside(const LhOp *op)
{
    return op->kind == LH_OP_COMPUTE && lh_kernels[op->compute.kernel]->cost == LH_COST_OUTSIDE;
}

/* Returns when the op was issued. */
static LhTime
issue(Walk *walk, const LhOp *op)
{
    const LhLeast *least = walk->least;
    const LhTime issued_ps = walk->host_ps;
    LhTime takes_ps = walk->launch_ps;

    if (!lh_op_on_stream(op) || is_outside(op))
        return issued_ps;
    if (!least->free_network)
        takes_ps += lh_call_host_ps(least->cost.framework, op);
    walk->host_ps += takes_ps;
    add_busy(walk, op, LH_LEAST_HOST, takes_ps);
    return issued_ps;
}

static LhTime
run_on_stream(Walk *walk, const LhOp *op, LhTime issued_ps)
{
    LhTime start_ps = MAX(issued_ps, walk->stream_ps[op->stream]), takes_ps;
    double occupancy = 1;

    for (uint32_t i = 0; i < op->after_count; i++)
        start_ps = MAX(start_ps, end_of(walk, op->after[i]));
    if (op->kind == LH_OP_COMPUTE) {
        takes_ps = compute_ps(walk, op, &occupancy);
        add_busy(walk, op, op->stream, takes_ps);
        add_busy(walk, op, LH_LEAST_SMS, (LhTime)((double)takes_ps * occupancy));
    } else {
        takes_ps = communication_ps(walk, op);
    }
    return walk->stream_ps[op->stream] = start_ps + takes_ps;
}

static void
run(Walk *walk, const LhOp *op)
{
    const LhTime issued_ps = issue(walk, op);
    LhTime end_ps = 0;

    if (op->kind == LH_OP_SYNC)
        end_ps = walk->host_ps = MAX(walk->latest_ps, issued_ps) + walk->sync_ps;
    else if (lh_op_on_stream(op))
        end_ps = run_on_stream(walk, op, issued_ps);
    if (lh_op_on_stream(op))
        walk->latest_ps = MAX(walk->latest_ps, end_ps);
    g_array_append_val(walk->ends, end_ps);
}

LhLeastTimes
lh_least_of(LhLeast *least, uint32_t rank, bool communication)
{
    const LhSimParams *p = least->params;
    g_autoptr(GArray) ends = g_array_new(FALSE, FALSE, sizeof(LhTime));
    Walk walk = { .least = least,
                  .rank = rank,
                  .communication = communication,
                  .ends = ends,
                  .launch_ps = least->free_network ? 0 : p->device->kernel_launch_ps,
                  .sync_ps = least->free_network ? 0 : p->device->stream_sync_ps };
    LhCursor cursor;

    lh_cursor_init(&cursor, p->program, rank);
    while (lh_cursor_step(&cursor, &least->buffer)) {
        for (uint32_t i = 0; i < least->buffer.ops_count; i++)
            run(&walk, &least->buffer.ops[i]);
    }
    walk.times.path_ps = walk.latest_ps;
    return walk.times;
}
