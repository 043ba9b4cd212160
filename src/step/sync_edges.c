/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Waits of calls. Calls on one stream run in order. Between streams, a call waits for the last
 * calls that wrote what it touches or read what it writes, unless it comes after them anyway. A
 * cursor remembers only the last few ops of each stream; for an older op it waits for a later one
 * instead.
 */
#include "step/step_private.h"

#define CHUNK_CALLS 48

/* Number of completed calls of each stream. */
typedef struct {
    uint32_t calls[LH_STEP_STREAMS];
} Clock;

/* Last accesses to a part, as numbers of calls on their streams, from 1. */
typedef struct {
    uint8_t writer_stream;
    uint32_t writer; /* 0: none */
    uint32_t readers[LH_STEP_STREAMS];
} Part;

/* A tensor. As long as all its parts had the same accesses, the first part represents all. That is
 * so for nearly all tensors, and for all that have a part for each of many ranks. */
typedef struct {
    uint32_t first, count; /* its parts in Tracker.parts */
    bool apart;            /* parts differ */
} Whole;

typedef struct {
    const LhStepPlan *plan;
    Part *parts;
    Whole *wholes;
    uint32_t *first_whole;           /* [classes]: index of the first instance */
    uint32_t count[LH_STEP_STREAMS]; /* calls so far */
    Clock now[LH_STEP_STREAMS];      /* calls that the next call of a stream comes after */
    /* The last copy to the host whose tensors have been released since: the next call of the
     * compute stream waits for it, since kernels from then on may use their memory. 0: none. */
    uint32_t released;
    GArray *clocks[LH_STEP_STREAMS]; /* of Clock, one for each call of a stream, including itself */
} Tracker;

static void
require(uint32_t needed[LH_STEP_STREAMS], const LhStepCall *call, uint32_t stream, uint32_t number)
{
    if (stream != call->stream)
        needed[stream] = MAX(needed[stream], number);
}

static Whole *
whole_of(const Tracker *t, const LhStepList *list, const LhStepUse *use)
{
    const LhStepTensor *tensor = &g_array_index(list->tensors, LhStepTensor, use->tensor);

    return &t->wholes[t->first_whole[tensor->class_index] + tensor->instance];
}

/* Whether the use is of all parts, or of one that depends on the rank or micro-batch. */
static bool
is_of_all(const Whole *whole, const LhStepUse *use)
{
    return use->own_piece || use->of_micro_batch || (use->part == 0 && use->count == whole->count);
}

/* The parts that represent those of a use. */
static Part *
first_of(const Tracker *t, const LhStepList *list, const LhStepUse *use, uint32_t *count)
{
    const Whole *whole = whole_of(t, list, use);
    Part *parts = &t->parts[whole->first];

    if (!whole->apart) {
        *count = 1;
        return parts;
    }
    *count = is_of_all(whole, use) ? whole->count : use->count;
    return parts + (is_of_all(whole, use) ? 0 : use->part);
}

static LhStepUse
parts_of_call(const LhStepList *list, const LhStepCall *call, uint32_t i)
{
    LhStepUse use = lh_step_uses(list, call)[i];

    if (call->does == LH_STEP_CALL_MODULE) /* `part` is the module's slot */
        use.part = 0;
    return use;
}

static void
find_needed(const Tracker *t, const LhStepList *list, const LhStepCall *call,
            uint32_t needed[LH_STEP_STREAMS])
{
    for (uint32_t s = 0; s < LH_STEP_STREAMS; s++) {
        if ((call->behind >> s & 1) != 0)
            require(needed, call, s, t->count[s]);
    }
    if (call->stream == LH_STEP_STREAM_COMPUTE)
        require(needed, call, LH_STEP_STREAM_TO_HOST, t->released);
    for (uint32_t i = 0; i < call->uses_count; i++) {
        const LhStepUse use = parts_of_call(list, call, i);
        uint32_t count;
        const Part *parts = first_of(t, list, &use, &count);

        for (uint32_t k = 0; k < count; k++) {
            require(needed, call, parts[k].writer_stream, parts[k].writer);
            for (uint32_t s = 0; s < LH_STEP_STREAMS && use.writes; s++)
                require(needed, call, s, parts[k].readers[s]);
        }
    }
}

static void
join(Clock *clock, const Clock *other)
{
    for (uint32_t s = 0; s < LH_STEP_STREAMS; s++)
        clock->calls[s] = MAX(clock->calls[s], other->calls[s]);
}

/* Whether some ranks omit the call, so that later calls cannot rely on its waits. */
static bool
may_be_absent(const LhStepCall *call)
{
    if (call->owners > 0 || call->of_shard)
        return true;
    return call->does == LH_STEP_CALL_COMPUTE &&
           (call->replicas > 1 || lh_kernels[call->kernel]->args == LH_ARGS_OPTIMIZER);
}

static void
set_waits(Tracker *t, LhStepCall *call, const uint32_t needed[LH_STEP_STREAMS])
{
    Clock alone = t->now[call->stream];
    Clock *now = may_be_absent(call) ? &alone : &t->now[call->stream];

    call->waits = (LhStepWaits){ 0 };
    for (uint32_t s = 0; s < LH_STEP_STREAMS; s++) {
        uint32_t back;

        if (needed[s] <= now->calls[s])
            continue;
        g_assert(call->does != LH_STEP_CALL_MODULE || lh_step_is_of_host(s));
        back = MIN(t->count[s] - needed[s] + 1, LH_STEP_HISTORY);
        call->waits.back[s] = (uint8_t)back;
        join(now, &g_array_index(t->clocks[s], Clock, t->count[s] - back));
    }
}

/* Gives each part its own accesses if the use touches only some of them. */
static void
tell_apart(const Tracker *t, Whole *whole, const LhStepUse *use)
{
    Part *parts = &t->parts[whole->first];

    if (whole->apart || is_of_all(whole, use))
        return;
    for (uint32_t k = 1; k < whole->count; k++)
        parts[k] = parts[0];
    whole->apart = true;
}

static void
note_uses(const Tracker *t, const LhStepList *list, const LhStepCall *call)
{
    for (uint32_t i = 0; i < call->uses_count; i++) {
        const LhStepUse use = parts_of_call(list, call, i);
        uint32_t count;
        Part *parts;

        tell_apart(t, whole_of(t, list, &use), &use);
        parts = first_of(t, list, &use, &count);
        for (uint32_t k = 0; k < count; k++) {
            if (use.writes && !use.own_piece)
                parts[k] =
                    (Part){ .writer_stream = call->stream, .writer = t->count[call->stream] };
            else if (use.writes)
                parts[k].writer_stream = call->stream, parts[k].writer = t->count[call->stream];
            else
                parts[k].readers[call->stream] = t->count[call->stream];
        }
    }
}

/* Notes the copy that reads the tensors of a release. */
static void
note_release(Tracker *t, const LhStepList *list, const LhStepCall *call)
{
    for (uint32_t i = 0; i < call->uses_count; i++) {
        uint32_t count;
        const Part *parts = first_of(t, list, &lh_step_uses(list, call)[i], &count);

        for (uint32_t k = 0; k < count; k++)
            t->released = MAX(t->released, parts[k].readers[LH_STEP_STREAM_TO_HOST]);
    }
}

static void
order_call(Tracker *t, const LhStepList *list, LhStepCall *call)
{
    const bool counts = call->does == LH_STEP_CALL_COMPUTE ||
                        call->does == LH_STEP_CALL_COLLECTIVE ||
                        call->does == LH_STEP_CALL_EXCHANGE || call->does == LH_STEP_CALL_COPY;
    uint32_t needed[LH_STEP_STREAMS] = { 0 };

    if (call->does == LH_STEP_CALL_SYNC) {
        for (uint32_t s = 0; s < LH_STEP_STREAMS; s++) {
            for (uint32_t k = 0; k < LH_STEP_STREAMS; k++)
                t->now[s].calls[k] = t->count[k];
        }
        return;
    }
    if (call->does == LH_STEP_CALL_RELEASE)
        note_release(t, list, call);
    if (!counts && call->does != LH_STEP_CALL_MODULE)
        return;
    find_needed(t, list, call, needed);
    set_waits(t, call, needed);
    if (counts) {
        t->count[call->stream]++;
        t->now[call->stream].calls[call->stream] = t->count[call->stream];
        g_array_append_val(t->clocks[call->stream], t->now[call->stream]);
    }
    note_uses(t, list, call);
}

/* Sets waits around modules. The call before a module waits for everything that earlier modules
 * left running; the call after it waits for its accesses to the step's tensors. */
static void
mark_modules(LhStepList *list)
{
    LhStepCall *before = NULL;
    bool behind = false;

    for (guint i = 0; i < list->calls->len; i++) {
        LhStepCall *call = &g_array_index(list->calls, LhStepCall, i);

        if (call->does == LH_STEP_CALL_MODULE && before != NULL) { /* at least a norm precedes it */
            before->after_all = true;
            behind = true;
        } else if (call->does == LH_STEP_CALL_COMPUTE) {
            call->after_module = behind;
            behind = false;
            before = call;
        }
    }
}

static void
cut_into_chunks(LhStepList *list)
{
    LhStepChunk chunk = { 0 };

    list->chunks = g_array_new(FALSE, FALSE, sizeof(LhStepChunk));
    for (guint i = 0; i < list->calls->len; i++) {
        const bool module = g_array_index(list->calls, LhStepCall, i).does == LH_STEP_CALL_MODULE;

        if ((module || chunk.count == CHUNK_CALLS) && chunk.count > 0) {
            g_array_append_val(list->chunks, chunk);
            list->plain_chunks++;
            chunk = (LhStepChunk){ .first = i };
        }
        chunk.count++;
        if (module) {
            g_array_append_val(list->chunks, chunk);
            chunk = (LhStepChunk){ .first = i + 1 };
        }
    }
    if (chunk.count > 0) {
        g_array_append_val(list->chunks, chunk);
        list->plain_chunks++;
    }
}

static void
order_list(Tracker *t, LhStepList *list)
{
    for (guint i = 0; i < list->calls->len; i++)
        order_call(t, list, &g_array_index(list->calls, LhStepCall, i));
}

/* A micro-batch waits at its start for calls of the previous one, so the second pass over the list
 * counts. In the first micro-batch those calls do not exist. */
static void
order_stage(Tracker *t, LhStepStage *stage)
{
    for (uint32_t s = 0; s < LH_STEP_STREAMS; s++)
        t->clocks[s] = g_array_new(FALSE, FALSE, sizeof(Clock));
    for (uint32_t i = 0; i < 2 && stage->inner.calls != NULL; i++)
        order_list(t, &stage->inner);
    order_list(t, &stage->last);
    for (uint32_t s = 0; s < LH_STEP_STREAMS; s++)
        g_array_unref(t->clocks[s]);
    if (stage->inner.calls != NULL) {
        mark_modules(&stage->inner);
        cut_into_chunks(&stage->inner);
    }
    mark_modules(&stage->last);
    cut_into_chunks(&stage->last);
}

void
lh_step_order(LhStepPlan *plan)
{
    g_autofree uint32_t *first_whole = g_new(uint32_t, plan->classes->len);
    g_autoptr(GArray) wholes = g_array_new(FALSE, FALSE, sizeof(Whole));
    uint32_t parts = 0;

    for (guint i = 0; i < plan->classes->len; i++) {
        const LhStepClass *c = &g_array_index(plan->classes, LhStepClass, i);

        first_whole[i] = wholes->len;
        for (uint32_t k = 0; k < c->instances; k++) {
            const Whole whole = { .first = parts, .count = c->shape.parts };

            g_array_append_val(wholes, whole);
            parts += c->shape.parts;
        }
    }
    for (uint32_t stage = 0; stage < lh_step_stages(&plan->params); stage++) {
        g_autofree Whole *own = g_memdup2(wholes->data, wholes->len * sizeof(Whole));
        Tracker t = { .plan = plan, .wholes = own, .first_whole = first_whole };

        t.parts = g_new0(Part, parts);
        order_stage(&t, &plan->stages[stage]);
        g_free(t.parts);
    }
}
