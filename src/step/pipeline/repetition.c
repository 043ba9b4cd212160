/* SPDX-License-Identifier: Apache-2.0 */
#include "step/pipeline/repetition.h"

#include <string.h>

#define UNITS_KEPT 2     /* units recorded, to be compared */
#define PERIODS_BEFORE 4 /* turns repeat earlier than the places of their tensors */
/* Rows of one micro-batch arrive while those of another are worked on. */
#define UNIT_FORWARD_ONLY 2

/* ---- turns ---- */

static const LhStepTurn *
turn_at(const GArray *turns, guint i)
{
    return &g_array_index(turns, LhStepTurn, i);
}

static LhStepTurn
moved(const LhStepTurn *turn, int64_t micro_batches)
{
    LhStepTurn later = *turn;

    if (later.messages_count == 0)
        later.micro_batch = (uint16_t)(later.micro_batch + micro_batches);
    for (uint32_t i = 0; i < later.messages_count; i++)
        later.messages[i].micro_batch = (uint16_t)(later.messages[i].micro_batch + micro_batches);
    return later;
}

static bool
same_message(const LhStepMessage *a, const LhStepMessage *b)
{
    return a->send == b->send && a->backward == b->backward && a->chunk == b->chunk &&
           a->micro_batch == b->micro_batch;
}

/* Whether turn @later is turn @i, @micro_batches later. */
static bool
is_moved(const GArray *turns, guint i, guint later, uint32_t micro_batches)
{
    const LhStepTurn a = moved(turn_at(turns, i), micro_batches), *b = turn_at(turns, later);

    if (a.messages_count != b->messages_count)
        return false;
    for (uint32_t k = 0; k < a.messages_count; k++)
        if (!same_message(&a.messages[k], &b->messages[k]))
            return false;
    return a.messages_count > 0 ||
           (a.backward == b->backward && a.chunk == b->chunk && a.micro_batch == b->micro_batch);
}

/* Turns from @first on are each repeated @length turns and @micro_batches micro-batches later;
 * there are @periods such runs. */
typedef struct {
    guint first, length, periods;
    uint32_t micro_batches;
} Periodic;

/* Finds the run around the middle; no periods: there is none. */
static Periodic
find_periodic(const GArray *turns, uint32_t micro_batches)
{
    const guint middle = turns->len / 2;
    Periodic found = { .first = middle, .micro_batches = micro_batches };
    guint same = 0, end;

    for (guint length = 1; middle + 2 * length <= turns->len && found.length == 0; length++) {
        for (same = 0; same < length; same++)
            if (!is_moved(turns, middle + same, middle + same + length, micro_batches))
                break;
        if (same == length)
            found.length = length;
    }
    if (found.length == 0)
        return found;
    while (found.first > 0 &&
           is_moved(turns, found.first - 1, found.first - 1 + found.length, micro_batches))
        found.first--;
    end = middle + found.length;
    while (end < turns->len && is_moved(turns, end - found.length, end, micro_batches))
        end++;
    found.periods = (end - found.first) / found.length;
    return found;
}

LhStepShort
lh_step_shorten(const LhStepParams *params, uint32_t stage, const GArray *turns)
{
    const bool rounds = lh_step_chunks(params) > 1;
    /* Works in flight when the first backward work begins. */
    const uint32_t unit =
        params->forward_only ? UNIT_FORWARD_ONLY : lh_step_warmup(params, stage) + 1;
    const Periodic p = find_periodic(turns, rounds ? lh_step_stages(params) : 1);
    const uint32_t kept = UNITS_KEPT * unit + PERIODS_BEFORE;
    LhStepShort s = { .micro_batches = params->micro_batches };
    guint from, to;

    s.turns = g_array_sized_new(FALSE, FALSE, sizeof(LhStepTurn), turns->len);
    if (p.periods > kept)
        s.left_out = (p.periods - kept) / unit;
    if (s.left_out > 0)
        s.unit = unit * p.micro_batches;
    s.micro_batches -= s.left_out * s.unit;
    from = p.first + kept * p.length;
    to = from + s.left_out * unit * p.length;
    for (guint i = 0; i < turns->len; i++) {
        const bool behind = s.left_out > 0 && i >= to;
        const LhStepTurn turn =
            moved(turn_at(turns, i), behind ? -(int64_t)s.left_out * s.unit : 0);

        if (s.left_out == 0 || i < from || behind)
            g_array_append_val(s.turns, turn);
    }
    return s;
}

/* ---- calls ---- */

static const LhStepCall *
call_at(const LhStepList *list, guint i)
{
    return &g_array_index(list->calls, LhStepCall, i);
}

static const LhStepChunk *
chunk_at(const LhStepList *list, guint i)
{
    return &g_array_index(list->chunks, LhStepChunk, i);
}

static bool
same_use(const LhStepList *list, const LhStepUse *a, const LhStepUse *b)
{
    const LhStepTensor *x = &g_array_index(list->tensors, LhStepTensor, a->tensor);
    const LhStepTensor *y = &g_array_index(list->tensors, LhStepTensor, b->tensor);

    return x->class_index == y->class_index && x->instance == y->instance && a->part == b->part &&
           a->count == b->count && a->reads == b->reads && a->writes == b->writes &&
           a->own_piece == b->own_piece && a->of_micro_batch == b->of_micro_batch &&
           a->gradient == b->gradient;
}

static bool
same_args(const LhStepPlan *plan, const LhStepCall *a, const LhStepCall *b)
{
    const LhArgsKind kind = lh_kernels[a->kernel]->args;

    return a->does != LH_STEP_CALL_COMPUTE || a->args == b->args ||
           lh_kernel_args_equal(kind, &g_array_index(plan->args, LhKernelArgs, a->args),
                                &g_array_index(plan->args, LhKernelArgs, b->args));
}

/* Whether @b is @a, @unit micro-batches later. */
static bool
same_call(const LhStepPlan *plan, const LhStepList *list, const LhStepCall *a, const LhStepCall *b,
          uint32_t unit)
{
    /* Micro-batch and layer come first: most calls differ in them. */
    const bool same = a->micro_batch + unit == b->micro_batch && a->layer == b->layer &&
                      a->does == b->does && a->stream == b->stream && a->phase == b->phase &&
                      a->kind == b->kind && a->backward == b->backward && a->starts == b->starts &&
                      a->fresh == b->fresh && a->segment == b->segment &&
                      a->replicas == b->replicas && a->group == b->group &&
                      a->collective == b->collective && a->communicator == b->communicator &&
                      a->uses_count == b->uses_count && a->kernel == b->kernel &&
                      memcmp(&a->waits, &b->waits, sizeof(a->waits)) == 0 &&
                      a->after_module == b->after_module && a->after_all == b->after_all;

    for (uint32_t i = 0; same && i < a->uses_count; i++)
        if (!same_use(list, &lh_step_uses(list, a)[i], &lh_step_uses(list, b)[i]))
            return false;
    return same && same_args(plan, a, b);
}

static bool
same_chunk(const LhStepPlan *plan, const LhStepList *list, guint a, guint b, uint32_t unit)
{
    const LhStepChunk *x = chunk_at(list, a), *y = chunk_at(list, b);

    if (x->count != y->count)
        return false;
    for (uint32_t i = 0; i < x->count; i++)
        if (!same_call(plan, list, call_at(list, x->first + i), call_at(list, y->first + i), unit))
            return false;
    return true;
}

/* The module that a chunk begins with; NULL: none. */
static const LhStepCall *
module_of(const LhStepList *list, guint chunk)
{
    const LhStepCall *call = call_at(list, chunk_at(list, chunk)->first);

    return call->does == LH_STEP_CALL_MODULE ? call : NULL;
}

static gpointer
module_key(const LhStepPlan *plan, const LhStepCall *module, uint32_t micro_batches_later)
{
    const size_t micro_batch = module->micro_batch + micro_batches_later;

    return GSIZE_TO_POINTER((micro_batch * plan->layers + module->layer) * LH_PHASES +
                            module->phase);
}

/* For each chunk, the next one that begins with the same module, @unit micro-batches later; 0:
 * none. Caller frees. */
static guint *
find_later(const LhStepPlan *plan, const LhStepList *list, uint32_t unit)
{
    g_autoptr(GHashTable) next = g_hash_table_new(NULL, NULL); /* module -> chunk */
    guint *later = g_new0(guint, list->chunks->len);

    for (guint i = list->chunks->len; i-- > 0;) {
        const LhStepCall *module = module_of(list, i);

        if (module == NULL)
            continue;
        later[i] = GPOINTER_TO_UINT(g_hash_table_lookup(next, module_key(plan, module, unit)));
        g_hash_table_insert(next, module_key(plan, module, 0), GUINT_TO_POINTER(i));
    }
    return later;
}

/* What is known of chunks at one distance: those in [from, to) are the same as the ones @distance
 * behind them, and the one before `from` is not, unless nothing before it has been compared. */
typedef struct {
    guint distance, from, to;
} Compared;

/* Whether the @count chunks from @first on are repeated behind them. @first grows from call to
 * call; chunks are compared once for each distance. */
static bool
repeats(const LhStepPlan *plan, const LhStepList *list, guint first, guint count, uint32_t unit,
        Compared *known)
{
    if (first + 2 * count > list->chunks->len)
        return false;
    if (known->distance != count || known->to < first)
        *known = (Compared){ .distance = count, .from = first, .to = first };
    for (guint i = first + count; i-- > known->to;) {
        if (!same_chunk(plan, list, i, i + count, unit)) {
            known->from = i + 1;
            break;
        }
    }
    known->to = first + count;
    return known->from <= first;
}

/* Adds the steps of the repeated chunks to those of the list. */
static void
count_steps(LhStepList *list)
{
    const LhStepRepeat *r = &list->repeat;

    for (guint i = r->first; i < r->first + r->count; i++) {
        const LhStepCall *call = call_at(list, chunk_at(list, i)->first);

        if (call->does == LH_STEP_CALL_MODULE)
            list->modules[call->kind][call->backward] += r->times;
        else
            list->plain_chunks += r->times;
    }
}

bool
lh_step_repeat(const LhStepPlan *plan, LhStepList *list, uint32_t unit, uint32_t left_out)
{
    g_autofree guint *later = find_later(plan, list, unit);
    Compared known = { 0 };

    /* A chunk begins behind a module in any case. */
    for (guint i = 0; i < list->chunks->len; i++) {
        if (later[i] == 0 || !same_chunk(plan, list, i, later[i], unit) ||
            !repeats(plan, list, i + 1, later[i] - i, unit, &known))
            continue;
        list->repeat = (LhStepRepeat){
            .first = i + 1, .count = later[i] - i, .times = left_out, .micro_batches = unit
        };
        count_steps(list);
        return true;
    }
    return false;
}
