/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Live ranges of tensors, and their places in slots. A tensor is live from the first call that
 * touches it to the last. Tensors of one shape whose live ranges do not overlap share a place.
 * Gathers of weights are moved ahead first, so that prefetched weights are live from then on.
 */
#include "step/memory/liveness.h"

#include "step/memory/host_states.h"
#include "step/step_private.h"

/* ---- gathers ---- */

/* The calls of each gather, as linked lists: heads by number, and the next call. */
typedef struct {
    uint32_t *first, *next; /* [gathers + 1], [calls]; LH_STEP_NONE: none */
    uint32_t gathers;       /* the highest number */
} Gathers;

static Gathers
find_gathers(const GArray *calls)
{
    Gathers g = { .next = g_new(uint32_t, MAX(calls->len, 1)) };

    for (guint i = 0; i < calls->len; i++)
        g.gathers = MAX(g.gathers, g_array_index(calls, LhStepCall, i).gather);
    g.first = g_new(uint32_t, g.gathers + 1);
    for (uint32_t k = 0; k <= g.gathers; k++)
        g.first[k] = LH_STEP_NONE;
    for (guint i = calls->len; i-- > 0;) {
        const uint32_t number = g_array_index(calls, LhStepCall, i).gather;

        g.next[i] = g.first[number];
        g.first[number] = i;
    }
    return g;
}

static void
clear_gathers(Gathers *g)
{
    g_free(g->first);
    g_free(g->next);
}

/* ---- prefetching ---- */

/* Appends the calls of gather @number. */
static void
append_gather(GArray *to, const GArray *from, const Gathers *g, uint32_t number)
{
    for (uint32_t i = g->first[number]; i != LH_STEP_NONE; i = g->next[i])
        g_array_append_vals(to, &g_array_index(from, LhStepCall, i), 1);
}

/* Issues gather i where gather i - prefetch was needed; the first ones at the start. */
static void
prefetch(const LhStepPlan *plan, LhStepList *list)
{
    const uint32_t ahead = plan->params.behaviour.prefetch;
    GArray *calls = list->calls, *to;
    Gathers gathers = find_gathers(calls);
    uint32_t issued = 0, seen = 0;

    if (ahead == 0 || gathers.gathers == 0) {
        clear_gathers(&gathers);
        return;
    }
    to = g_array_sized_new(FALSE, FALSE, sizeof(LhStepCall), calls->len);
    for (guint i = 0; i < calls->len; i++) {
        const LhStepCall *call = &g_array_index(calls, LhStepCall, i);

        if (call->gather == 0) {
            g_array_append_vals(to, call, 1);
            continue;
        }
        if (call->gather == seen)
            continue;
        seen = call->gather;
        while (issued < MIN(seen + ahead, gathers.gathers))
            append_gather(to, calls, &gathers, ++issued);
    }
    clear_gathers(&gathers);
    g_array_unref(calls);
    list->calls = to;
}

/* ---- live ranges ---- */

static LhStepTensor *
tensor_at(const LhStepList *list, uint32_t index)
{
    return &g_array_index(list->tensors, LhStepTensor, index);
}

/* Last use of the results of the gather, from its call @first on. */
static uint32_t
last_of_gather(const LhStepList *list, const Gathers *g, uint32_t first)
{
    uint32_t last = 0;

    for (uint32_t i = first; i != LH_STEP_NONE; i = g->next[i]) {
        const LhStepCall *call = &g_array_index(list->calls, LhStepCall, i);

        for (uint32_t k = 1; k < call->uses_count; k += 2) {
            const LhStepTensor *tensor = tensor_at(list, lh_step_uses(list, call)[k].tensor);

            last = MAX(last, tensor->family == LH_STEP_OF_WEIGHT ? tensor->last : 0);
        }
    }
    return last;
}

/* First call of the flat gradient, until which the weights are live too; 0: there is none. */
static uint32_t
flat_gradient_made(const LhStepList *list)
{
    for (guint i = 0; i < list->tensors->len; i++) {
        if (tensor_at(list, i)->family == LH_STEP_OF_FLAT_GRADIENT)
            return tensor_at(list, i)->first;
    }
    return 0;
}

/* Frees weights that were gathered together at the same time. */
static void
end_together(LhStepList *list)
{
    const uint32_t flat = flat_gradient_made(list);
    Gathers gathers = find_gathers(list->calls);
    uint32_t number = 0, last = 0;

    for (guint i = 0; i < list->calls->len; i++) {
        const LhStepCall *call = &g_array_index(list->calls, LhStepCall, i);

        if (call->gather != 0 && call->gather != number) {
            number = call->gather;
            last = MAX(last_of_gather(list, &gathers, i), flat);
        }
        for (uint32_t k = 1; call->gather != 0 && k < call->uses_count; k += 2) {
            LhStepTensor *tensor = tensor_at(list, lh_step_uses(list, call)[k].tensor);

            if (tensor->family == LH_STEP_OF_WEIGHT) /* else a shard on its way to the gather */
                tensor->last = last;
        }
    }
    clear_gathers(&gathers);
}

/* First call of the next tensor of a role from index @from on, which is of the same micro-batch. */
static uint32_t
next_of_role(const LhStepList *list, guint from, LhStepRole role)
{
    for (guint i = from; i < list->tensors->len; i++) {
        const LhStepTensor *tensor = tensor_at(list, i);

        if (tensor->family == LH_STEP_OF_ROLE && tensor->what == role)
            return tensor->first;
    }
    return 0;
}

/* Extends the live range of logits. The caller of the model holds them until the loss is computed,
 * whichever copy the loss reads; some losses hold both copies until their gradient is cast. */
static void
hold_logits(const LhStepPlan *plan, LhStepList *list)
{
    const bool stay = plan->params.behaviour.logits_stay;
    for (guint i = 0; i < list->tensors->len; i++) {
        LhStepTensor *tensor = tensor_at(list, i);

        if (tensor->family == LH_STEP_OF_ROLE &&
            (tensor->what == LH_STEP_LOGITS || (stay && tensor->what == LH_STEP_LOGITS_FP32)))
            tensor->last = MAX(
                tensor->last, next_of_role(list, i, stay ? LH_STEP_DLOGITS : LH_STEP_DLOGITS_FP32));
    }
}

/* Whether the tensor is made in the forward pass and used in another phase, or is its buffer of a
 * copy to or from the host. Exchanges belong to no phase: received rows count as made in the
 * forward pass, and rows last used by an exchange are not kept. */
static bool
is_kept(const LhStepList *list, const LhStepTensor *tensor)
{
    const LhStepCall *first = &g_array_index(list->calls, LhStepCall, tensor->first);
    const LhStepCall *last = &g_array_index(list->calls, LhStepCall, tensor->last);
    const bool forward = first->does == LH_STEP_CALL_EXCHANGE ? tensor->what == LH_STEP_X
                                                              : first->phase == LH_PHASE_FORWARD;

    if (first->does == LH_STEP_CALL_COPY || last->does == LH_STEP_CALL_RELEASE)
        return true;
    return forward && last->does != LH_STEP_CALL_EXCHANGE && last->phase != LH_PHASE_FORWARD;
}

static bool
is_family_beside(uint32_t family)
{
    return family == LH_STEP_OF_UNFUSED || family == LH_STEP_OF_HOST_UNFUSED;
}

/* Whether the tensor belongs to an unfused kernel: it has the live range of the tensor before it in
 * the list. */
static bool
is_beside(const LhStepTensor *tensor)
{
    return is_family_beside(tensor->family);
}

static void
find_lives(const LhStepPlan *plan, LhStepList *list)
{
    for (guint i = 0; i < list->tensors->len; i++) {
        const uint8_t family = tensor_at(list, i)->family;

        if (family != LH_STEP_OF_STEP_COPY && family != LH_STEP_OF_FLAT_GRADIENT)
            tensor_at(list, i)->first = LH_STEP_NONE;
    }
    for (guint i = 0; i < list->calls->len; i++) {
        const LhStepCall *call = &g_array_index(list->calls, LhStepCall, i);

        for (uint32_t k = 0; k < call->uses_count; k++) {
            LhStepTensor *tensor = tensor_at(list, lh_step_uses(list, call)[k].tensor);

            if (tensor->first == LH_STEP_NONE)
                tensor->first = i;
            tensor->last = i;
        }
    }
    end_together(list);
    hold_logits(plan, list);
    for (guint i = 0; i < list->tensors->len; i++) {
        LhStepTensor *tensor = tensor_at(list, i);

        if (is_beside(tensor)) {
            tensor->first = tensor[-1].first;
            tensor->last = tensor[-1].last;
        }
        if (tensor->family == LH_STEP_OF_ROLE || is_beside(tensor))
            tensor->kept = is_kept(list, tensor);
    }
}

/* ---- places ---- */

/* What a tensor's shape, or its presence in a layer, depends on. */
typedef enum { ON_NOTHING, ON_ATTENTION, ON_MLP, ON_EXPERTS } Depends;

static Depends
role_depends(LhStepRole role)
{
    switch (role) {
    case LH_STEP_KV_ROWS:
    case LH_STEP_DKV_ROWS:
    case LH_STEP_KV_DELTA:
        return ON_ATTENTION;
    case LH_STEP_UP:
    case LH_STEP_P:
    case LH_STEP_DUP:
    case LH_STEP_DP:
        return ON_MLP;
    default:
        return lh_step_rows(role).of_attention ? ON_ATTENTION : ON_NOTHING;
    }
}

static Depends
weight_depends(LhStepWeight weight)
{
    switch (weight) {
    case LH_STEP_W_KV:
    case LH_STEP_W_KV_B:
    case LH_STEP_W_GATE:
    case LH_STEP_W_O_NORM:
        return ON_ATTENTION;
    case LH_STEP_W_UP:
    case LH_STEP_W_DOWN:
        return ON_MLP;
    case LH_STEP_W_ROUTER:
    case LH_STEP_W_EXPERT_UP:
    case LH_STEP_W_EXPERT_DOWN:
        return ON_EXPERTS;
    default:
        return ON_NOTHING;
    }
}

LhStepVariant
lh_step_variant(const LhStepPlan *plan, LhStepFamily family, uint8_t what, uint32_t layer)
{
    static const char *const of_kind[LH_STEP_KINDS] = { "", "_win", "_lin" };
    const uint32_t at = MIN(layer, plan->layers - 1);
    const bool dense = lh_step_is_dense(plan, at);

    if (is_family_beside(family) && what == LH_STEP_W_NORM2)
        return (LhStepVariant){ dense ? 0 : 1, dense ? "" : "_experts" };
    switch (family == LH_STEP_OF_ROLE || family == LH_STEP_OF_HOST || family == LH_STEP_OF_RESULT
                ? role_depends((LhStepRole)what)
                : weight_depends((LhStepWeight)what)) {
    case ON_ATTENTION:
        return (LhStepVariant){ plan->kinds[at], of_kind[plan->kinds[at]] };
    case ON_MLP:
        return (LhStepVariant){ dense ? 0 : 1, dense ? "" : "_shared" };
    case ON_EXPERTS:
        return (LhStepVariant){ dense ? 0 : 1, "" };
    default:
        return (LhStepVariant){ 0, "" };
    }
}

bool
lh_step_has_on_host(const LhStepPlan *plan, LhStepFamily family, uint32_t stage, uint8_t what,
                    uint32_t layer)
{
    switch (family) {
    case LH_STEP_OF_MASTER:
    case LH_STEP_OF_MOMENTS:
    case LH_STEP_OF_SCALES:
    case LH_STEP_OF_CLOCK:
    case LH_STEP_OF_HOST_GRADIENT:
    case LH_STEP_OF_HOST_GRADIENT_SUM:
        return lh_step_is_host_state(plan, stage, (LhStepWeight)what, layer);
    case LH_STEP_OF_HOST_WEIGHT:
        return lh_step_fetches(plan) ||
               lh_step_is_host_state(plan, stage, (LhStepWeight)what, layer);
    default:
        return lh_step_is_on_host((uint8_t)family);
    }
}

/* Number of layers of a stage before @end that have the tensor in this variant, in the same memory.
 */
static uint32_t
count_before(const LhStepPlan *plan, const LhStepTensor *tensor, uint32_t stage, uint32_t end)
{
    const LhStepFamily family = (LhStepFamily)tensor->family;
    const uint8_t number = lh_step_variant(plan, family, tensor->what, tensor->layer).number;
    const bool on_host =
        lh_step_has_on_host(plan, family, tensor->stage, tensor->what, tensor->layer);
    uint32_t count = 0;

    for (uint32_t layer = 0; layer < end; layer++)
        count += lh_step_stage_of(plan, layer) == stage &&
                 lh_step_variant(plan, family, tensor->what, layer).number == number &&
                 lh_step_has_on_host(plan, family, stage, tensor->what, layer) == on_host;
    return count;
}

static bool
is_of_layer(const LhStepTensor *tensor)
{
    const bool of_weight =
        tensor->family < LH_STEP_OF_STEP_COPY || tensor->family == LH_STEP_OF_CLOCK;

    if (tensor->family == LH_STEP_OF_RESULT)
        return tensor->what == LH_STEP_KV;
    return of_weight && tensor->what < LH_STEP_W_LAYER;
}

/* Whether one slot serves all stages: they have equally many of a permanent tensor. Temporary
 * tensors take places as needed. Tensors made for all weights of a stage differ between stages. */
static bool
is_everywhere(const LhStepPlan *plan, const LhStepTensor *tensor)
{
    const uint32_t stages = lh_step_stages(&plan->params);

    if (tensor->family == LH_STEP_OF_STEP_COPY || tensor->family == LH_STEP_OF_FLAT_GRADIENT)
        return stages == 1;
    if (stages == 1 || !tensor->stays || tensor->family == LH_STEP_OF_NORM ||
        tensor->family == LH_STEP_OF_HOST_NORM)
        return true;
    for (uint32_t stage = 1; is_of_layer(tensor) && stage < stages; stage++) {
        if (count_before(plan, tensor, stage, plan->layers) !=
            count_before(plan, tensor, 0, plan->layers))
            return false;
    }
    return is_of_layer(tensor);
}

static bool
is_class(const LhStepClass *c, const LhStepClass *other)
{
    return c->family == other->family && c->what == other->what && c->variant == other->variant &&
           c->kept == other->kept && c->stays == other->stays && c->on_host == other->on_host &&
           c->stage == other->stage;
}

static uint32_t
class_of(LhStepPlan *plan, const LhStepTensor *tensor)
{
    const LhStepVariant variant =
        lh_step_variant(plan, (LhStepFamily)tensor->family, tensor->what, tensor->layer);
    LhStepClass new_class = {
        .family = tensor->family,
        .what = tensor->what,
        .variant = variant.number,
        .name = variant.name,
        .kept = tensor->kept,
        .stays = tensor->stays,
        .on_host = lh_step_has_on_host(plan, (LhStepFamily)tensor->family, tensor->stage,
                                       tensor->what, tensor->layer),
        .stage = is_everywhere(plan, tensor) ? LH_STEP_NONE : tensor->stage,
    };

    for (guint i = 0; i < plan->classes->len; i++) {
        if (is_class(&g_array_index(plan->classes, LhStepClass, i), &new_class))
            return i;
    }
    new_class.shape = lh_step_tensor_shape(plan, tensor);
    if ((tensor->kept || tensor->family == LH_STEP_OF_HOST ||
         tensor->family == LH_STEP_OF_HOST_UNFUSED) &&
        new_class.shape.category != LH_CATEGORY_LOGITS)
        new_class.shape.category = LH_CATEGORY_SAVED;
    g_array_append_val(plan->classes, new_class);
    return plan->classes->len - 1;
}

/* Place of a permanent tensor: that of its layer among the stage's layers that have it. */
static uint32_t
own_place(const LhStepPlan *plan, const LhStepTensor *tensor)
{
    return is_of_layer(tensor) ? count_before(plan, tensor, tensor->stage, tensor->layer) : 0;
}

/* Times when the places of each class become free. */
typedef struct {
    GArray **free_after; /* [classes] of uint32_t: last call of the current tensor */
} Places;

static uint32_t
take_place(Places *places, const LhStepTensor *tensor)
{
    GArray *used = places->free_after[tensor->class_index];

    for (guint i = 0; i < used->len; i++) {
        if (g_array_index(used, uint32_t, i) < tensor->first) {
            g_array_index(used, uint32_t, i) = tensor->last;
            return i;
        }
    }
    g_array_append_val(used, tensor->last);
    return used->len - 1;
}

/* Tensors whose live range begins at, and ends at, each call, as linked lists. */
typedef struct {
    uint32_t *first, *next_first; /* heads [calls] and links [tensors]; LH_STEP_NONE ends a list */
    uint32_t *last, *next_last;
} Moments;

static uint32_t *
empty_lists(guint count)
{
    uint32_t *lists = g_new(uint32_t, MAX(count, 1));

    for (guint i = 0; i < count; i++)
        lists[i] = LH_STEP_NONE;
    return lists;
}

static Moments
find_moments(const LhStepList *list)
{
    Moments m = {
        .first = empty_lists(list->calls->len),
        .next_first = empty_lists(list->tensors->len),
        .last = empty_lists(list->calls->len),
        .next_last = empty_lists(list->tensors->len),
    };

    for (guint i = list->tensors->len; i-- > 0;) {
        const LhStepTensor *tensor = tensor_at(list, i);

        if (tensor->stays)
            continue;
        m.next_first[i] = m.first[tensor->first];
        m.first[tensor->first] = i;
        m.next_last[i] = m.last[tensor->last];
        m.last[tensor->last] = i;
    }
    return m;
}

static void
clear_moments(Moments *m)
{
    g_free(m->first);
    g_free(m->next_first);
    g_free(m->last);
    g_free(m->next_last);
}

static void
give_places(LhStepPlan *plan, LhStepList *list, const Moments *m)
{
    Places places;

    for (guint i = 0; i < list->tensors->len; i++) {
        LhStepTensor *tensor = tensor_at(list, i);

        tensor->class_index = class_of(plan, tensor);
        if (tensor->stays)
            tensor->instance = own_place(plan, tensor);
    }
    places.free_after = g_new(GArray *, plan->classes->len);
    for (guint i = 0; i < plan->classes->len; i++)
        places.free_after[i] = g_array_new(FALSE, FALSE, sizeof(uint32_t));
    for (guint i = 0; i < list->calls->len; i++) {
        for (uint32_t k = m->first[i]; k != LH_STEP_NONE; k = m->next_first[k])
            tensor_at(list, k)->instance = take_place(&places, tensor_at(list, k));
    }
    for (guint i = 0; i < list->tensors->len; i++) {
        const LhStepTensor *tensor = tensor_at(list, i);
        LhStepClass *c = &g_array_index(plan->classes, LhStepClass, tensor->class_index);

        c->instances = MAX(c->instances, tensor->instance + 1);
    }
    for (guint i = 0; i < plan->classes->len; i++)
        g_array_unref(places.free_after[i]);
    g_free(places.free_after);
}

/* ---- calls ---- */

static void
append_memory_call(const LhStepPlan *plan, GArray *calls, const LhStepList *list, uint32_t tensor,
                   const LhStepCall *beside, bool alloc)
{
    const LhStepTensor *t = tensor_at(list, tensor);
    const LhStepClass *c = &g_array_index(plan->classes, LhStepClass, t->class_index);
    const LhStepCall call = {
        .does = alloc ? LH_STEP_CALL_ALLOC : LH_STEP_CALL_FREE,
        .phase = beside->phase,
        .layer = beside->layer,
        .micro_batch = beside->micro_batch,
        .replicas = 1,
        .uses_count = 1,
        .uses = list->uses->len,
    };
    const LhStepUse use = { .tensor = tensor, .count = c->shape.parts };

    g_array_append_val(list->uses, use);
    g_array_append_val(calls, call);
}

static void
add_memory_calls(const LhStepPlan *plan, LhStepList *list, const Moments *m)
{
    GArray *calls = g_array_new(FALSE, FALSE, sizeof(LhStepCall));

    for (guint i = 0; i < list->calls->len; i++) {
        const LhStepCall *call = &g_array_index(list->calls, LhStepCall, i);

        for (uint32_t k = m->first[i]; k != LH_STEP_NONE; k = m->next_first[k])
            append_memory_call(plan, calls, list, k, call, true);
        g_array_append_vals(calls, call, 1);
        for (uint32_t k = m->last[i]; k != LH_STEP_NONE; k = m->next_last[k])
            append_memory_call(plan, calls, list, k, call, false);
    }
    g_array_unref(list->calls);
    list->calls = calls;
}

static void
place(LhStepPlan *plan, LhStepList *list)
{
    Moments moments;

    if (list->calls == NULL)
        return;
    prefetch(plan, list);
    find_lives(plan, list);
    moments = find_moments(list);
    give_places(plan, list, &moments);
    add_memory_calls(plan, list, &moments);
    clear_moments(&moments);
}

void
lh_step_place(LhStepPlan *plan)
{
    for (uint32_t stage = 0; stage < lh_step_stages(&plan->params); stage++) {
        place(plan, &plan->stages[stage].inner);
        place(plan, &plan->stages[stage].last);
    }
}
