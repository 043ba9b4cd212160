/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Offload of activations. What an offloaded layer keeps for its backward pass is copied to host
 * memory at the end of its forward pass and back before it is read, as Transformer Engine does for
 * Megatron-LM: on streams of their own, a layer at a time. The device's copy is released at the end
 * of the next layer's forward pass, where kernels wait for the copy; it comes back while the
 * backward pass of the next layer runs. So at most two layers' tensors are on the device. The last
 * layer of a chunk has no next layer: kernels wait for its copies at once. Layers that are
 * recomputed together keep the input of the first of them alone; it comes back while the backward
 * pass of the layers behind them runs.
 *
 * A pass over a recorded list: which tensors are kept follows from where they are used, whatever
 * the policy of recomputation.
 */
#include "step/memory/offload.h"

#include "step/memory/recomputation.h"

/* Calls and tensors of a list; groups are layers of micro-batches. */
typedef struct {
    const LhStepPlan *plan;
    LhStepList *list;
    uint32_t micro_batches;
    uint32_t *last_forward, *first_backward; /* [groups] calls; LH_STEP_NONE: none */
    uint32_t *first, *last;                  /* [tensors] calls; likewise */
    uint32_t *batch_of;                      /* [tensors] micro-batch that uses it */
    uint32_t *host, *back; /* [tensors] its copy on the host, and what that becomes; likewise */
    uint32_t *group_first, *group_next; /* [groups], [tensors]: offloaded tensors of each group */
    GArray *calls;                      /* the new calls */
} Offload;

static LhStepCall *
call_at(const LhStepList *list, uint32_t i)
{
    return &g_array_index(list->calls, LhStepCall, i);
}

static LhStepTensor *
tensor_of(const LhStepList *list, uint32_t i)
{
    return &g_array_index(list->tensors, LhStepTensor, i);
}

static uint32_t
layer_group(const Offload *o, uint32_t micro_batch, uint32_t layer)
{
    return micro_batch * o->plan->layers + layer;
}

static uint32_t *
new_numbers(guint count)
{
    uint32_t *numbers = g_new(uint32_t, MAX(count, 1));

    for (guint i = 0; i < count; i++)
        numbers[i] = LH_STEP_NONE;
    return numbers;
}

/* ---- moments ---- */

static void
find_group_moments(Offload *o, uint32_t i)
{
    const LhStepCall *call = call_at(o->list, i);
    const uint32_t group = layer_group(o, call->micro_batch, call->layer);

    if (call->does == LH_STEP_CALL_EXCHANGE || call->layer >= o->plan->layers)
        return;
    if (call->phase == LH_PHASE_FORWARD)
        o->last_forward[group] = i;
    else if (call->phase != LH_PHASE_OPTIMIZER && o->first_backward[group] == LH_STEP_NONE)
        o->first_backward[group] = i;
}

/* Exchanges may move tensors of several micro-batches. */
static void
find_tensor_moments(Offload *o, uint32_t i)
{
    const LhStepCall *call = call_at(o->list, i);

    for (uint32_t k = 0; k < call->uses_count; k++) {
        const uint32_t tensor = lh_step_uses(o->list, call)[k].tensor;

        if (o->first[tensor] == LH_STEP_NONE)
            o->first[tensor] = i;
        o->last[tensor] = i;
        if (call->does != LH_STEP_CALL_EXCHANGE && o->batch_of[tensor] == LH_STEP_NONE)
            o->batch_of[tensor] = call->micro_batch;
    }
}

static void
begin_offload(Offload *o)
{
    const guint calls = o->list->calls->len, tensors = o->list->tensors->len;
    guint groups;

    for (guint i = 0; i < calls; i++)
        o->micro_batches = MAX(o->micro_batches, call_at(o->list, i)->micro_batch + 1u);
    groups = o->micro_batches * o->plan->layers;
    o->last_forward = new_numbers(groups);
    o->first_backward = new_numbers(groups);
    o->group_first = new_numbers(groups);
    o->group_next = new_numbers(tensors);
    o->first = new_numbers(tensors);
    o->last = new_numbers(tensors);
    o->batch_of = new_numbers(tensors);
    o->host = new_numbers(tensors);
    o->back = new_numbers(tensors);
    for (guint i = 0; i < calls; i++) {
        find_group_moments(o, i);
        find_tensor_moments(o, i);
    }
}

static void
end_offload(Offload *o)
{
    g_free(o->last_forward);
    g_free(o->first_backward);
    g_free(o->group_first);
    g_free(o->group_next);
    g_free(o->first);
    g_free(o->last);
    g_free(o->batch_of);
    g_free(o->host);
    g_free(o->back);
}

/* ---- tensors ---- */

/* Whether the tensor, of a list without offload, waits for its layer's backward pass: it is made in
 * the forward pass, or received for it. */
static bool
waits_for_backward(const Offload *o, uint32_t i)
{
    const LhStepTensor *tensor = tensor_of(o->list, i);
    const LhStepCall *first, *last;

    if (tensor->family != LH_STEP_OF_ROLE || tensor->what >= LH_STEP_E_SUM ||
        tensor->layer >= o->plan->layers || o->first[i] == LH_STEP_NONE)
        return false;
    first = call_at(o->list, o->first[i]);
    last = call_at(o->list, o->last[i]);
    return (first->does == LH_STEP_CALL_EXCHANGE || first->phase == LH_PHASE_FORWARD) &&
           last->does != LH_STEP_CALL_EXCHANGE && last->phase != LH_PHASE_FORWARD;
}

/* Adds a tensor of @family beside tensor @i, and what moves with it. */
static uint32_t
add_like(const Offload *o, uint32_t i, LhStepFamily family)
{
    GArray *tensors = o->list->tensors;
    const uint32_t added = tensors->len;
    const LhStepTensor like = *tensor_of(o->list, i);
    LhStepTensor tensor = {
        .family = (uint8_t)family, .what = like.what, .layer = like.layer, .stage = like.stage
    };

    g_array_append_val(tensors, tensor);
    if (i + 1 < o->list->tensors->len && tensor_of(o->list, i + 1)->family == LH_STEP_OF_UNFUSED) {
        tensor.family =
            (uint8_t)(family == LH_STEP_OF_HOST ? LH_STEP_OF_HOST_UNFUSED : LH_STEP_OF_UNFUSED);
        tensor.what = tensor_of(o->list, i + 1)->what;
        g_array_append_val(tensors, tensor);
    }
    return added;
}

static void
split_tensors(Offload *o)
{
    const guint tensors = o->list->tensors->len;

    for (guint i = tensors; i-- > 0;) {
        const uint32_t layer = tensor_of(o->list, i)->layer;
        uint32_t group;

        if (!waits_for_backward(o, i) || !lh_step_offloads(o->plan, layer))
            continue;
        group = layer_group(o, o->batch_of[i], layer);
        o->group_next[i] = o->group_first[group];
        o->group_first[group] = i;
        o->host[i] = add_like(o, i, LH_STEP_OF_HOST);
        o->back[i] = add_like(o, i, LH_STEP_OF_ROLE);
    }
}

/* Lets the calls after the forward pass use what has come back. */
static void
use_what_came_back(const Offload *o)
{
    for (guint i = 0; i < o->list->calls->len; i++) {
        const LhStepCall *call = call_at(o->list, i);

        for (uint32_t k = 0; k < call->uses_count && call->phase != LH_PHASE_FORWARD; k++) {
            LhStepUse *use = &lh_step_uses(o->list, call)[k];

            if (call->does != LH_STEP_CALL_EXCHANGE && o->back[use->tensor] != LH_STEP_NONE)
                use->tensor = o->back[use->tensor];
        }
    }
}

/* ---- calls ---- */

/* Appends uses of tensor @i by what is copied from, and to. */
static void
add_uses(const Offload *o, LhStepCall *call, uint32_t from, uint32_t to)
{
    const LhStepTensor *tensor = tensor_of(o->list, from);
    const LhStepShape shape = lh_step_role_shape(o->plan, (LhStepRole)tensor->what, tensor->layer);
    LhStepUse use = { .tensor = from, .count = shape.parts, .reads = true };

    g_array_append_val(o->list->uses, use);
    call->uses_count++;
    if (to == LH_STEP_NONE)
        return;
    use = (LhStepUse){ .tensor = to, .count = shape.parts, .writes = true };
    g_array_append_val(o->list->uses, use);
    call->uses_count++;
}

/* Appends a call for the group's tensors; none if it has none. */
static void
add_call(const Offload *o, uint32_t group, LhStepCallKind does, LhStepStream stream)
{
    const bool returns = stream == LH_STEP_STREAM_FROM_HOST;
    LhStepCall call = {
        .does = (uint8_t)does,
        .stream = (uint8_t)stream,
        .phase = returns ? LH_PHASE_BACKWARD : LH_PHASE_FORWARD,
        .layer = (uint16_t)(group % o->plan->layers),
        .micro_batch = (uint16_t)(group / o->plan->layers),
        .replicas = 1,
        .behind =
            LH_STEP_BEHIND(LH_STEP_STREAM_COMPUTE), /* of the layer before it in the program */
        .uses = o->list->uses->len,
    };

    for (uint32_t i = o->group_first[group]; i != LH_STEP_NONE; i = o->group_next[i]) {
        if (returns)
            add_uses(o, &call, o->host[i], o->back[i]);
        else
            add_uses(o, &call, i, does == LH_STEP_CALL_COPY ? o->host[i] : LH_STEP_NONE);
    }
    if (call.uses_count > 0)
        g_array_append_val(o->calls, call);
}

/* Whether a layer is the last of its chunk; the first one. */
static bool
ends_chunk(const LhStepPlan *plan, uint32_t layer)
{
    return layer + 1 == plan->layers ||
           lh_step_chunk_of(plan, layer + 1) != lh_step_chunk_of(plan, layer);
}

static bool
begins_chunk(const LhStepPlan *plan, uint32_t layer)
{
    return layer == 0 || ends_chunk(plan, layer - 1);
}

/* Whether a chunk ends with the layers that are recomputed together from @first on. */
static bool
ends_chunk_from(const LhStepPlan *plan, uint32_t first)
{
    uint32_t last = first;

    while (!ends_chunk(plan, last) && lh_step_recomputed_from(plan, last + 1) == first)
        last++;
    return ends_chunk(plan, last);
}

/* Appends what comes before the backward pass of a group: the return of what the layers below need,
 * which the backward pass covers, after that of a chunk's last layers. Layers that are recomputed
 * together begin with the first of them. */
static void
add_returns(const Offload *o, uint32_t group)
{
    const uint32_t layer = group % o->plan->layers;

    if (lh_step_recomputed_from(o->plan, layer) != layer)
        return;
    if (ends_chunk_from(o->plan, layer))
        add_call(o, group, LH_STEP_CALL_COPY, LH_STEP_STREAM_FROM_HOST);
    if (!begins_chunk(o->plan, layer))
        add_call(o, group - layer + lh_step_recomputed_from(o->plan, layer - 1), LH_STEP_CALL_COPY,
                 LH_STEP_STREAM_FROM_HOST);
}

/* Appends what comes after the forward pass of a group. */
static void
add_departures(const Offload *o, uint32_t group)
{
    const uint32_t layer = group % o->plan->layers;

    if (!begins_chunk(o->plan, layer))
        add_call(o, group - 1, LH_STEP_CALL_RELEASE, LH_STEP_STREAM_COMPUTE);
    add_call(o, group, LH_STEP_CALL_COPY, LH_STEP_STREAM_TO_HOST);
    if (ends_chunk(o->plan, layer))
        add_call(o, group, LH_STEP_CALL_RELEASE, LH_STEP_STREAM_COMPUTE);
}

/* Corrects live ranges that were recorded as numbers of calls: @now of each old one. */
static void
renumber(const Offload *o, const uint32_t *now)
{
    for (guint i = 0; i < o->list->tensors->len; i++) {
        LhStepTensor *tensor = tensor_of(o->list, i);

        if (tensor->family != LH_STEP_OF_STEP_COPY && tensor->family != LH_STEP_OF_FLAT_GRADIENT)
            continue;
        tensor->first = now[tensor->first];
        tensor->last = now[tensor->last];
    }
}

static void
add_calls(Offload *o)
{
    GArray *calls = o->list->calls;
    g_autofree uint32_t *now = g_new(uint32_t, MAX(calls->len, 1));

    o->calls = g_array_sized_new(FALSE, FALSE, sizeof(LhStepCall), calls->len);
    for (guint i = 0; i < calls->len; i++) {
        const LhStepCall call = *call_at(o->list, i);
        const bool of_layer = call.layer < o->plan->layers;
        const uint32_t group = of_layer ? layer_group(o, call.micro_batch, call.layer) : 0;

        if (of_layer && o->first_backward[group] == i)
            add_returns(o, group);
        now[i] = o->calls->len;
        g_array_append_val(o->calls, call);
        if (of_layer && o->last_forward[group] == i)
            add_departures(o, group);
    }
    renumber(o, now);
    g_array_unref(calls);
    o->list->calls = o->calls;
}

static void
offload_list(const LhStepPlan *plan, LhStepList *list)
{
    Offload o = { .plan = plan, .list = list };

    if (list->calls == NULL)
        return;
    begin_offload(&o);
    split_tensors(&o);
    use_what_came_back(&o);
    add_calls(&o);
    end_offload(&o);
}

void
lh_step_offload(LhStepPlan *plan)
{
    for (uint32_t i = 0; plan->params.offload_layers > 0 && i < lh_step_stages(&plan->params);
         i++) {
        offload_list(plan, &plan->stages[i].inner);
        offload_list(plan, &plan->stages[i].last);
    }
}

uint64_t
lh_step_beside_bytes(const LhStepPlan *plan, const LhStepList *list, uint32_t tensor)
{
    const LhStepClass *c;

    if (tensor + 1 == list->tensors->len ||
        tensor_of(list, tensor + 1)->family != LH_STEP_OF_HOST_UNFUSED)
        return 0;
    c = &g_array_index(plan->classes, LhStepClass, tensor_of(list, tensor + 1)->class_index);
    return c->shape.parts * c->shape.part_bytes;
}
