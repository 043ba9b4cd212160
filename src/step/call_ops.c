/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Turns calls into ops of a rank. Everything that differs between ranks is added here: members of
 * groups, the rank's piece of a tensor, token positions, columns of the vocabulary.
 */
#include "step/call_ops.h"

#include "base/mix.h"
#include "step/memory/offload.h"
#include "step/muon/muon_calls.h"
#include "step/packs.h"
#include "step/step_private.h"

#include <string.h>

/* Marks of the cursor. History: the last LH_STEP_HISTORY ops of each stream, latest first. */
enum {
    MARK_HISTORY,
    MARK_CHUNK = MARK_HISTORY + LH_STEP_STREAMS * LH_STEP_HISTORY,
    MARK_MICRO_BATCH,
    MARK_STEP, /* of the module being emitted */
    MARKS
};
G_STATIC_ASSERT((int)MARKS <= LH_CURSOR_MARKS);

#define COMMUNICATORS 32 /* first communicator of the step; modules use lower ones */

/* Number of the module of a kind of attention in a micro-batch of a rank. */
static uint32_t
module_number(const LhStepPlan *plan, LhStepPlace place, uint32_t kind, uint32_t micro_batch)
{
    const uint32_t data = place.data / plan->params.module.ranks;

    return lh_step_pack_number(plan, data, micro_batch) * LH_STEP_KINDS + kind;
}

static uint32_t
module_steps(const LhStepPlan *plan, uint32_t number, bool backward, uint32_t context)
{
    const LhStepModule *module = &plan->modules[number];

    if ((backward ? module->backward : module->forward) == NULL)
        return 0;
    return backward ? module->backward_steps[context] : module->forward_steps[context];
}

/* Steps of a list's modules in @count micro-batches from @first, which all call attention alike. */
static uint32_t
all_module_steps(const LhStepPlan *plan, const LhStepList *list, LhStepPlace place, uint32_t first,
                 uint32_t count)
{
    uint32_t steps = 0;

    for (uint32_t i = first; i < first + count; i++) {
        for (uint32_t kind = 0; kind < LH_STEP_KINDS; kind++) {
            const uint32_t number = module_number(plan, place, kind, i);

            for (unsigned pass = 0; pass < 2; pass++)
                steps += list->modules[kind][pass] / count *
                         module_steps(plan, number, pass > 0, place.context);
        }
    }
    return steps;
}

static uint32_t
steps(const LhProgram *program, uint32_t rank)
{
    const LhStepPlan *plan = program->plan;
    const LhStepPlace place = lh_step_place_of(plan, rank);
    const LhStepStage *stage = &plan->stages[place.stage];
    const uint32_t all = plan->params.micro_batches;
    const uint32_t before = stage->inner.calls != NULL ? all - 1 : 0;
    uint32_t steps = stage->last.plain_chunks;

    for (uint32_t i = 0; i < before; i++)
        steps += stage->inner.plain_chunks + all_module_steps(plan, &stage->inner, place, i, 1);
    return steps + all_module_steps(plan, &stage->last, place, before,
                                    lh_step_stages(&plan->params) > 1 ? all : 1);
}

/* ---- one call ---- */

static const LhStepTensor *
used_tensor(const LhStepList *list, const LhStepUse *use)
{
    return &g_array_index(list->tensors, LhStepTensor, use->tensor);
}

static LhRegion
region_of(const LhEmitter *e, const LhStepList *list, const LhStepUse *use)
{
    const LhStepPlan *plan = e->program->plan;
    const LhStepTensor *tensor = used_tensor(list, use);
    const LhStepClass *c = &g_array_index(plan->classes, LhStepClass, tensor->class_index);
    uint32_t part = tensor->instance * c->shape.parts + use->part;

    if (use->own_piece)
        part += lh_step_place_of(plan, e->rank).data;
    if (use->of_micro_batch)
        part += e->micro_batch * (c->shape.parts / plan->params.micro_batches);
    return (LhRegion){ .slot = c->slot, .part = part, .count = use->count };
}

/* Adds the call's waits to the latest op. */
static void
wait(LhEmitter *e, const LhStepCall *call)
{
    for (uint32_t s = 0; s < LH_STEP_STREAMS; s++) {
        const uint32_t back = call->waits.back[s];

        if (back > 0)
            lh_emit_after(e, e->marks[MARK_HISTORY + s * LH_STEP_HISTORY + back - 1]);
    }
    if (call->after_module)
        lh_subprogram_after(e, false);
    if (call->after_all)
        lh_subprogram_after(e, true);
}

static void
remember(LhEmitter *e, const LhStepCall *call, uint32_t id)
{
    uint32_t *history = &e->marks[MARK_HISTORY + call->stream * LH_STEP_HISTORY];

    for (uint32_t i = LH_STEP_HISTORY - 1; i > 0; i--)
        history[i] = history[i - 1];
    history[0] = id;
}

/* Arguments of the kernel, with those that depend on the rank or the micro-batch. */
static LhKernelArgs
own_args(const LhEmitter *e, const LhStepCall *call)
{
    const LhStepPlan *plan = e->program->plan;
    const LhStepPlace place = lh_step_place_of(plan, e->rank);
    LhKernelArgs args = g_array_index(plan->args, LhKernelArgs, call->args);

    if (call->starts)
        args.first = e->micro_batch == 0 || call->fresh;
    if (lh_kernels[call->kernel]->args == LH_ARGS_MUON && args.muon.slices > 1)
        args.muon.slice = place.tensor / args.muon.replicas;
    if (lh_kernels[call->kernel]->args == LH_ARGS_ROWS) {
        args.rows.first = place.tensor * lh_step_vocabulary(plan);
    } else if (lh_kernels[call->kernel]->args == LH_ARGS_HEADS) {
        const LhPlacement *placement = &plan->modules[plan->kinds[call->layer]].forward->placement;
        const LhSegment segment = lh_placement_segment(
            placement, lh_placement_segment_id(placement, place.context, call->segment));

        args.to_heads.start = segment.start;
        args.to_heads.stride = segment.stride;
    }
    return args;
}

/* Elements of the rank's piece of a weight of @elements. */
static uint64_t
own_elements(const LhStepPlan *plan, uint64_t elements, uint32_t data)
{
    const uint64_t pieces = lh_step_pieces(plan);
    const uint64_t piece = (elements + pieces - 1) / pieces;
    const uint64_t before = pieces == 1 ? 0 : MIN(data * piece, elements);

    return MIN(piece, elements - before);
}

/* For a call that the rank omits, repeats the previous op in the history, so that later calls find
 * what they wait for. */
static void
remember_absent(LhEmitter *e, const LhStepCall *call)
{
    remember(e, call, e->marks[MARK_HISTORY + call->stream * LH_STEP_HISTORY]);
}

static void
emit_compute(LhEmitter *e, const LhStepList *list, const LhStepCall *call)
{
    const bool of_shard = lh_kernels[call->kernel]->args == LH_ARGS_OPTIMIZER;
    LhKernelArgs args = own_args(e, call);
    uint32_t id;

    if (of_shard) {
        args.optimizer.count = own_elements(e->program->plan, args.optimizer.count,
                                            lh_step_place_of(e->program->plan, e->rank).data);
        if (args.optimizer.count == 0) {
            remember_absent(e, call);
            return;
        }
    }
    id = lh_emit_compute(e, lh_step_stream_index(e->program->plan, call->stream), call->kernel,
                         &args);

    for (uint32_t i = 0; i < call->uses_count; i++) {
        const LhRegion region = region_of(e, list, &lh_step_uses(list, call)[i]);

        lh_emit_operand(e, region.slot, region.part, region.count);
    }
    wait(e, call);
    remember(e, call, id);
}

static void
emit_collective(LhEmitter *e, const LhStepList *list, const LhStepCall *call)
{
    const LhStepPlan *plan = e->program->plan;
    uint32_t id;

    e->communicator = (uint8_t)(COMMUNICATORS + call->stream * LH_STEP_GROUPS + call->group);
    id = lh_emit_collective(e, call->stream, (LhCollectiveKind)call->collective,
                            lh_step_group(plan, (LhStepGroup)call->group, e->rank));
    for (uint32_t i = 0; i < call->uses_count; i += 2)
        lh_emit_tensor(e, region_of(e, list, &lh_step_uses(list, call)[i]),
                       region_of(e, list, &lh_step_uses(list, call)[i + 1]));
    e->communicator = 0;
    wait(e, call);
    remember(e, call, id);
}

static void
emit_exchange(LhEmitter *e, const LhStepList *list, const LhStepCall *call)
{
    const LhStepPlan *plan = e->program->plan;
    const uint32_t of_stage = (uint32_t)lh_step_stage_ranks(&plan->params);
    const uint32_t stages = lh_step_stages(&plan->params);
    const LhStepPlace place = lh_step_place_of(plan, e->rank);
    uint32_t id;

    e->communicator = (uint8_t)(COMMUNICATORS + call->stream * LH_STEP_GROUPS);
    id = lh_emit_exchange(e, call->stream);
    for (uint32_t i = 0; i < call->uses_count; i++) {
        const LhStepUse *use = &lh_step_uses(list, call)[i];
        const LhRegion region = region_of(e, list, use);
        /* Rows go to the next stage, gradients to the previous one. */
        const uint32_t by = use->reads == use->gradient ? stages - 1 : 1;
        const uint32_t peer = e->rank % of_stage + (place.stage + by) % stages * of_stage;

        lh_emit_part(e, use->reads, peer, use->gradient ? 1 : 0,
                     lh_region_bytes(e->program, region));
        lh_emit_part_region(e, region);
    }
    e->communicator = 0;
    wait(e, call);
    remember(e, call, id);
}

/* Whether a copy is of a piece of a weight that has no elements on the rank. */
static bool
is_of_no_elements(const LhEmitter *e, const LhStepList *list, const LhStepCall *call)
{
    const LhStepPlan *plan = e->program->plan;
    const LhStepTensor *tensor = used_tensor(list, lh_step_uses(list, call));
    LhStepMatrix matrix;

    if (!call->of_shard)
        return false;
    matrix = lh_step_matrix(plan, (LhStepWeight)tensor->what, tensor->layer);
    return own_elements(plan, matrix.rows * matrix.columns, lh_step_place_of(plan, e->rank).data) ==
           0;
}

/* Emits a copy for each tensor. Later calls wait for the last one, the first one for others. */
static void
emit_copies(LhEmitter *e, const LhStepList *list, const LhStepCall *call)
{
    const LhStepPlan *plan = e->program->plan;
    const LhStepUse *uses = lh_step_uses(list, call);
    const bool to_host = call->stream == LH_STEP_STREAM_TO_HOST;
    uint32_t id = LH_OP_NONE;

    for (uint32_t i = 0; i < call->uses_count; i += 2) {
        const LhRegion from = region_of(e, list, &uses[i]), to = region_of(e, list, &uses[i + 1]);
        LhKernelArgs args = { 0 };

        args.copy.bytes = lh_region_bytes(e->program, from);
        args.copy.beside = lh_step_beside_bytes(plan, list, uses[to_host ? i + 1 : i].tensor);
        id = lh_emit_compute(e, lh_step_stream_index(plan, call->stream),
                             to_host ? LH_KERNEL_ID_to_host : LH_KERNEL_ID_from_host, &args);
        lh_emit_operand(e, from.slot, from.part, from.count);
        lh_emit_operand(e, to.slot, to.part, to.count);
        if (i == 0)
            wait(e, call);
    }
    remember(e, call, id);
}

static void
emit_call(LhEmitter *e, const LhStepList *list, const LhStepCall *call)
{
    e->phase = call->phase;
    e->layer = call->layer;
    e->micro_batch = (uint16_t)(e->marks[MARK_MICRO_BATCH] + call->micro_batch);
    if (!lh_step_makes(e->program->plan, call, e->rank)) {
        remember_absent(e, call);
        return;
    }
    if (call->matrix != 0)
        e->layer = (uint16_t)lh_muon_layer(e->program->plan, call, e->rank);
    switch (call->does) {
    case LH_STEP_CALL_COMPUTE:
        emit_compute(e, list, call);
        break;
    case LH_STEP_CALL_COLLECTIVE:
        emit_collective(e, list, call);
        break;
    case LH_STEP_CALL_EXCHANGE:
        emit_exchange(e, list, call);
        break;
    case LH_STEP_CALL_COPY:
        if (is_of_no_elements(e, list, call))
            remember_absent(e, call);
        else
            emit_copies(e, list, call);
        break;
    case LH_STEP_CALL_RELEASE:
        break;
    case LH_STEP_CALL_SYNC:
        lh_emit_sync(e);
        break;
    case LH_STEP_CALL_ALLOC:
        lh_emit_alloc_region(e, region_of(e, list, lh_step_uses(list, call)));
        break;
    default:
        lh_emit_free_region(e, region_of(e, list, lh_step_uses(list, call)));
    }
}

/* ---- attention ---- */

/* Latest op of the compute stream, the step's or an earlier module's. */
static uint32_t
last_computed(const LhEmitter *e)
{
    const uint32_t own = e->marks[MARK_HISTORY + LH_STEP_STREAM_COMPUTE * LH_STEP_HISTORY];
    const uint32_t embedded = e->embedded->last[0];

    return own == LH_OP_NONE || (embedded != LH_OP_NONE && embedded > own) ? embedded : own;
}

static void
begin_module(LhEmitter *e, const LhStepCall *call, const LhSubprogram *embedding, uint32_t context)
{
    lh_subprogram_begin(e, embedding, context, last_computed(e));
    for (uint32_t s = 0; s < LH_STEP_STREAMS; s++) {
        const uint32_t back = call->waits.back[s];

        if (back > 0)
            lh_subprogram_wait(e, e->marks[MARK_HISTORY + s * LH_STEP_HISTORY + back - 1]);
    }
}

/* Emits the next step of a module; true if it was the last one. */
static bool
emit_module(LhEmitter *e, const LhStepList *list, const LhStepCall *call)
{
    const LhStepPlan *plan = e->program->plan;
    const LhStepModule *module = &plan->modules[call->kind];
    const LhStepPlace place = lh_step_place_of(plan, e->rank);
    const uint16_t micro_batch = (uint16_t)(e->marks[MARK_MICRO_BATCH] + call->micro_batch);
    const uint32_t number = module_number(plan, place, call->kind, micro_batch);
    const LhProgram *program = plan->programs[2 * number + call->backward];
    const uint32_t t = plan->params.tensor_parallel;
    /* A schedule declares about ten slots. */
    /* cppcheck-suppress allocaCalled */
    uint16_t *slots = g_newa(uint16_t, program->slots_count);
    uint32_t *parts = g_newa0(uint32_t, program->slots_count);
    LhSubprogram embedding = {
        .program = program,
        .slots = slots,
        .parts = parts,
        .map = { .base = e->rank - t * place.context, .stride = t },
        .module = (uint16_t)(1 + 2 * number + call->backward),
    };

    memcpy(slots, call->backward ? module->backward_slots : module->forward_slots,
           program->slots_count * sizeof(*slots));
    memcpy(embedding.streams, call->backward ? module->backward_streams : module->forward_streams,
           sizeof(embedding.streams));
    e->phase = call->phase;
    e->layer = call->layer;
    e->micro_batch = micro_batch;
    for (uint32_t i = 0; i < call->uses_count; i++) {
        const LhStepUse *of = &lh_step_uses(list, call)[i];
        const LhStepUse use = { .tensor = of->tensor, .of_micro_batch = of->of_micro_batch };
        const LhRegion region = region_of(e, list, &use);

        slots[of->part] = region.slot;
        parts[of->part] = region.part;
    }
    if (e->marks[MARK_STEP] == 0)
        begin_module(e, call, &embedding, place.context);
    lh_subprogram_step(e, &embedding);
    return ++e->marks[MARK_STEP] == module_steps(plan, number, call->backward, place.context);
}

/* ---- steps ---- */

static const LhStepList *
list_of(const LhStepPlan *plan, uint32_t rank, uint32_t micro_batch)
{
    const LhStepStage *stage = &plan->stages[lh_step_place_of(plan, rank).stage];

    return stage->inner.calls != NULL && micro_batch + 1 < plan->params.micro_batches
               ? &stage->inner
               : &stage->last;
}

static void
next_chunk(LhEmitter *e, const LhStepList *list)
{
    const LhStepRepeat *repeat = &list->repeat;

    e->marks[MARK_STEP] = 0;
    e->marks[MARK_CHUNK]++;
    if (e->marks[MARK_CHUNK] == repeat->first + repeat->count &&
        e->marks[MARK_MICRO_BATCH] < repeat->times * repeat->micro_batches) {
        e->marks[MARK_CHUNK] = repeat->first;
        e->marks[MARK_MICRO_BATCH] += repeat->micro_batches;
    }
    if (e->marks[MARK_CHUNK] < list->chunks->len)
        return;
    e->marks[MARK_CHUNK] = 0;
    e->marks[MARK_MICRO_BATCH]++;
}

static void
emit(LhEmitter *e, uint32_t step)
{
    const LhStepPlan *plan = e->program->plan;
    const LhStepList *list;
    const LhStepChunk *chunk;
    const LhStepCall *call;

    if (step == 0)
        e->marks[MARK_CHUNK] = e->marks[MARK_MICRO_BATCH] = e->marks[MARK_STEP] = 0;
    list = list_of(plan, e->rank, e->marks[MARK_MICRO_BATCH]);
    chunk = &g_array_index(list->chunks, LhStepChunk, e->marks[MARK_CHUNK]);
    call = &g_array_index(list->calls, LhStepCall, chunk->first);
    if (call->does == LH_STEP_CALL_MODULE) {
        if (emit_module(e, list, call))
            next_chunk(e, list);
        return;
    }
    for (uint32_t i = 0; i < chunk->count; i++)
        emit_call(e, list, call + i);
    next_chunk(e, list);
}

const LhGenerator lh_step_generator = {
    .steps = steps, .emit = emit, .of_all_groups = true, .embeds = true
};

/* ---- forms ---- */

typedef struct {
    const LhProgram *program;
    GHashTable *seen; /* forms */
    LhOpBuffer buffer;
    uint32_t first, last; /* ranks of the stage */
    uint32_t micro_batch; /* first micro-batch of the list */
    LhStepVisit *visit;
    void *data;
} Forms;

static void
visit_on(Forms *f, uint32_t rank, const LhStepList *list, const LhStepCall *call,
         uint32_t micro_batch)
{
    LhCursor cursor;
    LhEmitter e = { .program = f->program, .buffer = &f->buffer, .rank = rank };

    lh_cursor_init(&cursor, f->program, rank);
    e.state = &cursor.own;
    e.embedded = &cursor.embedded;
    e.marks = cursor.own.marks;
    e.marks[MARK_MICRO_BATCH] = micro_batch;
    e.marks[MARK_STEP] = 0;
    f->buffer.ops_count = f->buffer.parts_count = f->buffer.counts_count = 0;
    if (call->does != LH_STEP_CALL_MODULE)
        emit_call(&e, list, call);
    while (call->does == LH_STEP_CALL_MODULE && !emit_module(&e, list, call))
        continue;
    f->visit(f->data, rank, &f->buffer);
}

/* Visits a call of attention under every pack, on a rank that has it. */
static void
visit_packs(Forms *f, const LhStepList *list, const LhStepCall *call)
{
    const LhStepPlan *plan = f->program->plan;
    const uint32_t of_data = plan->params.tensor_parallel * plan->params.module.ranks;
    uint32_t next = 0; /* packs are numbered as they first occur */

    for (uint32_t data = 0; data < plan->params.data_parallel; data++) {
        for (uint32_t i = 0; i < plan->params.micro_batches; i++) {
            if (lh_step_pack_number(plan, data, i) != next)
                continue;
            visit_on(f, f->first + (data + 1) * of_data - 1, list, call, i - call->micro_batch);
            next++;
        }
    }
}

/* Visits the call on the stage's first and last rank; @later: so many micro-batches later. */
static void
visit_call(Forms *f, const LhStepList *list, guint i, uint32_t later)
{
    const LhStepCall *call = &g_array_index(list->calls, LhStepCall, i);
    const uint32_t micro_batch = f->micro_batch + later;
    const uint64_t form = lh_step_call_form(f->program->plan, list, call, micro_batch);

    if (!g_hash_table_add(f->seen, (gpointer)(guintptr)form))
        return;
    visit_on(f, f->first, list, call, micro_batch);
    if (f->last != f->first)
        visit_on(f, f->last, list, call, micro_batch);
    if (call->owners > 0)
        visit_on(f, f->first + call->owners_first * f->program->step->params.tensor_parallel, list,
                 call, micro_batch);
    if (call->does == LH_STEP_CALL_MODULE && f->program->step->packs_count > 1)
        visit_packs(f, list, call);
}

static bool
is_of_micro_batch(const LhStepList *list, guint i)
{
    const LhStepCall *call = &g_array_index(list->calls, LhStepCall, i);

    for (uint32_t k = 0; k < call->uses_count; k++)
        if (lh_step_uses(list, call)[k].of_micro_batch)
            return true;
    return false;
}

/* Visits repetitions of calls [from, to): of those whose form depends on the micro-batch. */
static void
visit_repeated(Forms *f, const LhStepList *list, guint from, guint to)
{
    const LhStepRepeat *repeat = &list->repeat;

    for (guint i = from; i < to; i++)
        for (uint32_t k = 1; k <= repeat->times && is_of_micro_batch(list, i); k++)
            visit_call(f, list, i, k * repeat->micro_batches);
}

static guint
first_call(const LhStepList *list, uint32_t chunk)
{
    return chunk < list->chunks->len ? g_array_index(list->chunks, LhStepChunk, chunk).first
                                     : list->calls->len;
}

static void
visit_list(Forms *f, const LhStepList *list)
{
    const LhStepRepeat *repeat = &list->repeat;
    guint behind;

    if (list->calls == NULL)
        return;
    behind = first_call(list, repeat->first + repeat->count);
    for (guint i = 0; i < list->calls->len; i++)
        visit_call(f, list, i, i < behind ? 0 : repeat->times * repeat->micro_batches);
    visit_repeated(f, list, first_call(list, repeat->first), behind);
}

void
lh_step_visit_forms(const LhProgram *program, LhStepVisit *visit, void *data)
{
    const LhStepPlan *plan = program->plan;
    const uint32_t of_stage = (uint32_t)lh_step_stage_ranks(&plan->params);
    g_autoptr(GHashTable) seen = g_hash_table_new(NULL, NULL);
    Forms f = { .program = program, .seen = seen, .visit = visit, .data = data };

    for (uint32_t i = 0; i < lh_step_stages(&plan->params); i++) {
        const LhStepStage *stage = &plan->stages[i];

        f.first = i * of_stage;
        f.last = f.first + of_stage - 1;
        f.micro_batch = 0;
        visit_list(&f, &stage->inner);
        f.micro_batch = stage->inner.calls != NULL ? plan->params.micro_batches - 1 : 0;
        visit_list(&f, &stage->last);
    }
    lh_op_buffer_clear(&f.buffer);
}
