/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Records Muon's updates batch by batch: momenta of the rank's own pieces, an all-to-all that
 * brings each rank one whole matrix, Newton-Schulz steps, the all-to-all back, and the updates of
 * the pieces. While a batch is orthogonalised, the next one travels.
 */
#include "step/muon/muon_calls.h"

#include "step/memory/liveness.h"
#include "step/muon/muon.h"

/* Tensors of a batch. */
typedef struct {
    LhMuonBatch batch;
    uint32_t own; /* all pieces of the rank's slice */
} Flight;

typedef struct {
    LhStepRecorder *r;
    LhStepUse (*gradient)(LhStepRecorder *r, LhStepHeld w);
} Muon;

static LhStepHeld
held(const LhMuonBatch *batch, uint32_t layer)
{
    return (LhStepHeld){ batch->weight, layer };
}

static uint32_t
pieces(const Muon *m)
{
    return lh_step_pieces(m->r->plan);
}

/* A tensor of the batch, for these calls alone. */
static uint32_t
add_tensor(const Muon *m, LhStepFamily family, const LhMuonBatch *batch)
{
    return lh_step_add_tensor(m->r, (LhStepTensor){ .family = (uint8_t)family,
                                                    .what = (uint8_t)batch->weight,
                                                    .layer = (uint16_t)batch->layer });
}

static LhStepUse
reading(uint32_t tensor, uint32_t part, uint32_t count)
{
    return (LhStepUse){ .tensor = tensor, .part = part, .count = count, .reads = true };
}

static LhStepUse
writing(uint32_t tensor, uint32_t part, uint32_t count)
{
    return (LhStepUse){ .tensor = tensor, .part = part, .count = count, .writes = true };
}

/* A state of the rank's piece of a weight. */
static LhStepUse
state(const Muon *m, LhStepFamily family, LhStepHeld w, bool reads)
{
    return (LhStepUse){ .tensor = lh_step_weight_tensor(m->r, family, w, true),
                        .count = 1,
                        .reads = reads,
                        .writes = true };
}

/* A call that only the ranks make that have a matrix of the batch. */
static LhStepCall *
add_owners_call(const Muon *m, LhStepCallKind does, LhStepStream stream, const LhMuonBatch *batch)
{
    LhStepCall *call = lh_step_add_call(m->r, does, stream, batch->layer);

    call->matrix = (uint8_t)batch->weight;
    call->owners_first = batch->first;
    if (batch->count < pieces(m))
        call->owners = batch->count;
    return call;
}

/* Part of the matrix of a batch's @index-th layer among those of all ranks. */
static uint32_t
part_of(const Muon *m, const LhMuonBatch *batch, uint32_t index)
{
    return (batch->first + index) % pieces(m);
}

/* ---- shapes ---- */

static LhStepShape
shape_of(const LhStepPlan *plan, LhCategory category, uint32_t parts, uint64_t elements)
{
    const LhDtype dtype = plan->params.module.attention.dtype;

    return (LhStepShape){ .kind = LH_TENSOR_GRADIENT,
                          .dtype = dtype,
                          .category = category,
                          .parts = parts,
                          .part_bytes = elements * lh_dtype_bytes(dtype) };
}

LhStepShape
lh_muon_shape(const LhStepPlan *plan, const LhStepTensor *tensor)
{
    const LhStepWeight weight = (LhStepWeight)tensor->what;
    const LhKernelArgs args = lh_muon_args(plan, weight, tensor->layer);
    const LhProductShape matrix = lh_muon_matrices(&args);
    const uint32_t count = lh_step_pieces(plan);
    const uint64_t piece = lh_step_piece_elements(plan, weight, tensor->layer);

    switch (tensor->family) {
    case LH_STEP_OF_MUON_PIECES:
    case LH_STEP_OF_MUON_SLICE:
        return shape_of(plan, LH_CATEGORY_COMMUNICATION, count, piece);
    case LH_STEP_OF_MUON_SLICES:
        return shape_of(plan, LH_CATEGORY_COMMUNICATION, args.muon.slices * count, piece);
    case LH_STEP_OF_MUON_WHOLE:
        return shape_of(plan, LH_CATEGORY_WORKING, 1, args.muon.rows * args.muon.width);
    default:
        return shape_of(plan, LH_CATEGORY_WORKING, 1, matrix.matrices * matrix.rows * matrix.rows);
    }
}

uint32_t
lh_muon_layer(const LhStepPlan *plan, const LhStepCall *call, uint32_t rank)
{
    const LhStepPlace place = lh_step_place_of(plan, rank);
    const LhStepVariant variant =
        lh_step_variant(plan, LH_STEP_OF_WEIGHT, call->matrix, call->layer);
    const LhMuonBatch batch = { .weight = (LhStepWeight)call->matrix, .variant = variant.number };
    const uint32_t ranks = lh_step_pieces(plan);
    uint32_t before = ranks == 1 ? 0 : (place.data + ranks - call->owners_first) % ranks;
    uint32_t layer = call->layer;

    for (; before > 0; before--)
        layer = lh_muon_next(plan, &batch, place.stage, layer + 1);
    return layer;
}

/* ---- pieces ---- */

static LhKernelArgs
optimizer_args(const Muon *m, LhStepHeld w)
{
    const LhStepMatrix matrix = lh_step_matrix(m->r->plan, w.weight, w.layer);

    return (LhKernelArgs){ .optimizer.count = matrix.rows * matrix.columns };
}

static void
add_momentum(const Muon *m, LhStepHeld w, LhStepUse update)
{
    const LhStepPlan *plan = m->r->plan;
    LhKernelArgs args = optimizer_args(m, w);
    LhStepCall *call =
        lh_step_add_call(m->r, LH_STEP_CALL_COMPUTE, LH_STEP_STREAM_COMPUTE, w.layer);

    args.optimizer.beta1 = plan->params.muon.momentum;
    args.optimizer.beta2 = lh_muon_mixture(&plan->params.muon);
    args.optimizer.clip = plan->params.behaviour.clip;
    call->kernel = plan->params.behaviour.moments == LH_MOMENTS_16BIT ? LH_KERNEL_ID_muon_momentum16
                                                                      : LH_KERNEL_ID_muon_momentum;
    lh_step_set_args(m->r, call, &args);
    lh_step_add_use(m->r, call, m->gradient(m->r, w));
    lh_step_add_use(m->r, call, reading(lh_step_staying(m->r, LH_STEP_OF_NORM), 0, 1));
    lh_step_add_use(m->r, call, state(m, LH_STEP_OF_MOMENTUM, w, true));
    lh_step_add_use(m->r, call, update);
}

static void
add_update(const Muon *m, LhStepHeld w, LhStepUse update)
{
    const LhStepPlan *plan = m->r->plan;
    const bool master = lh_step_has_master(plan), sharded = lh_step_is_sharded(plan);
    LhKernelArgs args = optimizer_args(m, w);
    LhStepUse weight = state(m, sharded ? LH_STEP_OF_WEIGHT_SHARD : LH_STEP_OF_WEIGHT, w, !master);
    LhStepCall *call =
        lh_step_add_call(m->r, LH_STEP_CALL_COMPUTE, LH_STEP_STREAM_COMPUTE, w.layer);

    weight.own_piece = !sharded && plan->params.shard != LH_SHARD_DDP;
    args.optimizer.learning_rate = plan->params.learning_rate;
    call->kernel = master ? LH_KERNEL_ID_muon_update : LH_KERNEL_ID_muon_update_direct;
    lh_step_set_args(m->r, call, &args);
    lh_step_add_use(m->r, call, update);
    if (master)
        lh_step_add_use(m->r, call, state(m, LH_STEP_OF_MASTER, w, true));
    lh_step_add_use(m->r, call, weight);
}

/* ---- whole matrices ---- */

/* Moves every rank's piece of every matrix to the rank that the matrix belongs to, or back. */
static void
exchange_pieces(const Muon *m, LhStepStream stream, uint32_t from, uint32_t to, uint32_t layer)
{
    const LhStepCollective c = { stream, layer, LH_COLL_ALL_TO_ALL, LH_STEP_GROUP_DATA, 0 };
    const LhStepUse send = reading(from, 0, pieces(m)), receive = writing(to, 0, pieces(m));

    lh_step_close_collective(m->r);
    lh_step_add_collective(m->r, &c, &send, &receive);
    lh_step_close_collective(m->r);
}

/* Momenta of a batch, on the way to the ranks that orthogonalise them. */
static Flight
begin(const Muon *m, LhMuonBatch batch)
{
    const bool alone = pieces(m) == 1;
    const uint32_t own = alone ? LH_STEP_NONE : add_tensor(m, LH_STEP_OF_MUON_PIECES, &batch);
    const Flight flight = { batch, add_tensor(m, LH_STEP_OF_MUON_SLICE, &batch) };
    uint32_t layer = batch.layer;

    for (uint32_t i = 0; i < batch.count; i++) {
        add_momentum(m, held(&batch, layer),
                     writing(alone ? flight.own : own, part_of(m, &batch, i), 1));
        layer = lh_muon_next(m->r->plan, &batch, m->r->stage, layer + 1);
    }
    if (!alone)
        exchange_pieces(m, LH_STEP_STREAM_SCATTER, own, flight.own, batch.layer);
    return flight;
}

/* The slices of all tensor-parallel ranks, or the rank's own. */
static LhStepUse
gather_slices(const Muon *m, const Flight *flight)
{
    const LhMuonBatch *batch = &flight->batch;
    const uint32_t t = m->r->plan->params.tensor_parallel;
    LhStepCall *call;
    uint32_t all;

    if (!lh_muon_gathers(m->r->plan, batch->weight, batch->layer))
        return reading(flight->own, 0, pieces(m));
    all = add_tensor(m, LH_STEP_OF_MUON_SLICES, batch);
    call = add_owners_call(m, LH_STEP_CALL_COLLECTIVE, LH_STEP_STREAM_TENSOR, batch);
    call->collective = LH_COLL_ALL_GATHER;
    call->group = LH_STEP_GROUP_TENSOR;
    lh_step_add_use(m->r, call, reading(flight->own, 0, pieces(m)));
    lh_step_add_use(m->r, call, writing(all, 0, t * pieces(m)));
    return reading(all, 0, t * pieces(m));
}

/* Adds a kernel on matrices, with two operands or three. */
static void
add_kernel(const Muon *m, const LhMuonBatch *batch, LhKernelId kernel, const LhKernelArgs *args,
           const LhStepUse uses[3])
{
    LhStepCall *call = add_owners_call(m, LH_STEP_CALL_COMPUTE, LH_STEP_STREAM_COMPUTE, batch);

    call->kernel = kernel;
    lh_step_set_args(m->r, call, args);
    for (unsigned i = 0; i < 3 && uses[i].count > 0; i++)
        lh_step_add_use(m->r, call, uses[i]);
}

/* One Newton-Schulz step; returns the tensor of the result. */
static uint32_t
add_step(const Muon *m, const LhMuonBatch *batch, uint32_t step, uint32_t x)
{
    const LhKernelArgs args = lh_muon_step_args(m->r->plan, batch->weight, batch->layer, step);
    const uint32_t a = add_tensor(m, LH_STEP_OF_MUON_GRAM, batch);
    const uint32_t p = add_tensor(m, LH_STEP_OF_MUON_POLYNOMIAL, batch);
    const uint32_t y = add_tensor(m, LH_STEP_OF_MUON_WHOLE, batch);

    add_kernel(m, batch, LH_KERNEL_ID_muon_gram, &args,
               (LhStepUse[3]){ reading(x, 0, 1), writing(a, 0, 1) });
    add_kernel(m, batch, LH_KERNEL_ID_muon_square, &args,
               (LhStepUse[3]){ reading(a, 0, 1), writing(p, 0, 1) });
    add_kernel(m, batch, LH_KERNEL_ID_muon_step, &args,
               (LhStepUse[3]){ reading(p, 0, 1), reading(x, 0, 1), writing(y, 0, 1) });
    return y;
}

/* Orthogonalises the rank's matrix of a batch; returns the tensor with its slice of the result, or,
 * on the way, with its pieces of all results. */
static uint32_t
orthogonalise(const Muon *m, const Flight *flight)
{
    const LhMuonBatch *batch = &flight->batch;
    const LhKernelArgs args = lh_muon_args(m->r->plan, batch->weight, batch->layer);
    const LhStepUse slices = gather_slices(m, flight);
    uint32_t x = add_tensor(m, LH_STEP_OF_MUON_WHOLE, batch), slice, back;

    add_kernel(m, batch, LH_KERNEL_ID_muon_join, &args, (LhStepUse[3]){ slices, writing(x, 0, 1) });
    for (uint32_t i = 0; i < m->r->plan->params.muon.steps; i++)
        x = add_step(m, batch, i, x);
    slice = add_tensor(m, LH_STEP_OF_MUON_SLICE, batch);
    add_kernel(m, batch, LH_KERNEL_ID_muon_split, &args,
               (LhStepUse[3]){ reading(x, 0, 1), writing(slice, 0, pieces(m)) });
    if (pieces(m) == 1)
        return slice;
    back = add_tensor(m, LH_STEP_OF_MUON_PIECES, batch);
    exchange_pieces(m, LH_STEP_STREAM_GATHER, slice, back, batch->layer);
    return back;
}

static void
finish(const Muon *m, const LhMuonBatch *batch, uint32_t updates)
{
    uint32_t layer = batch->layer;

    for (uint32_t i = 0; i < batch->count; i++) {
        add_update(m, held(batch, layer), reading(updates, part_of(m, batch, i), 1));
        layer = lh_muon_next(m->r->plan, batch, m->r->stage, layer + 1);
    }
}

void
lh_muon_record(LhStepRecorder *r, LhStepUse (*gradient)(LhStepRecorder *r, LhStepHeld w))
{
    g_autoptr(GArray) batches = lh_muon_batches(r->plan, r->stage);
    const Muon m = { r, gradient };
    const LhMuonBatch *all = (const LhMuonBatch *)(const void *)batches->data;
    Flight now, next = { 0 };
    uint32_t before = LH_STEP_NONE;

    if (batches->len > 0)
        next = begin(&m, all[0]);
    for (guint i = 0; i < batches->len; i++) {
        uint32_t updates;

        now = next;
        if (i + 1 < batches->len)
            next = begin(&m, all[i + 1]);
        updates = orthogonalise(&m, &now);
        if (i > 0)
            finish(&m, &all[i - 1], before);
        before = updates;
    }
    if (batches->len > 0)
        finish(&m, &all[batches->len - 1], before);
}
