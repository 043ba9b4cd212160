/* SPDX-License-Identifier: Apache-2.0 */
#include "critical_path/critical.h"

#include "critical_path/critical_private.h"
#include "program/cursor.h"

const char *const lh_saving_names[] = { "agrees", "another path takes over", "contention", NULL };

/* --- groups -------------------------------------------------------------------------------------
 */

static int
by_first(gconstpointer a, gconstpointer b, gpointer calls)
{
    const LhSlackCalls *x = &g_array_index((GArray *)calls, LhSlackCalls, *(const uint32_t *)a);
    const LhSlackCalls *y = &g_array_index((GArray *)calls, LhSlackCalls, *(const uint32_t *)b);

    return lh_compare_ops(x->rank, x->op, y->rank, y->op);
}

/* Adds all groups, in the order of the first op of each. */
static void
add_groups(LhPathSearch *s)
{
    GArray *all = s->of.precedence->calls;
    g_autoptr(GArray) order = g_array_new(FALSE, FALSE, sizeof(uint32_t));

    for (uint32_t i = 0; i < all->len; i++)
        g_array_append_val(order, i);
    g_array_sort_with_data(order, by_first, all);
    s->groups = g_array_new(FALSE, TRUE, sizeof(uint32_t));
    g_array_set_size(s->groups, all->len);
    for (uint32_t g = 0; g < order->len; g++) {
        const uint32_t i = g_array_index(order, uint32_t, g);
        const LhSlackCalls *calls = &g_array_index(all, LhSlackCalls, i);
        const LhCallGroup group = { .kind = calls->kind,
                                    .phase = calls->phase,
                                    .kernel = calls->kernel,
                                    .tier = calls->tier,
                                    .calls = calls->calls,
                                    .time_ps = calls->time_ps };

        g_array_append_val(s->answer->groups, group);
        g_array_index(s->groups, uint32_t, i) = g;
    }
}

static uint8_t
tier_of(const LhPathSearch *s, uint32_t rank, const LhOp *op, const LhOpBuffer *buffer)
{
    uint8_t tier = LH_TIERS;

    for (uint32_t i = 0; i < op->exchange.parts_count; i++) {
        const LhPart *part = &buffer->parts[op->exchange.parts_first + i];
        LhRoute route;

        lh_network_route(&s->of.setup->network, rank, part->peer, &route);
        tier = tier == LH_TIERS ? route.tier : MAX(tier, route.tier);
    }
    return tier;
}

bool
lh_path_search_is_of_group(const LhPathSearch *s, const LhCallGroup *group, uint32_t rank,
                           const LhOp *op, const LhOpBuffer *buffer)
{
    if (op->kind != group->kind || op->phase != group->phase)
        return false;
    if (op->kind == LH_OP_COMPUTE)
        return (uint8_t)op->compute.kernel == group->kernel;
    if (op->kind == LH_OP_COLLECTIVE)
        return (uint8_t)op->collective.kind == group->kernel;
    return tier_of(s, rank, op, buffer) == group->tier;
}

/* Labels an op of the path. */
static void
label_op(const LhPathSearch *s, LhOnPath *on, const LhOp *op, const LhOpBuffer *buffer,
         LhCallId call)
{
    on->layer = op->layer;
    on->micro_batch = op->micro_batch;
    on->phase = op->phase;
    on->collective = op->kind == LH_OP_COLLECTIVE;
    on->call = call;
    if (!lh_op_on_stream(op))
        return;
    while (!lh_path_search_is_of_group(s, lh_critical_group(s->answer, on->group), on->rank, op,
                                       buffer))
        on->group++;
}

/* Labels the ops of the path from the @next on that are of the same rank; returns the next one. */
static guint
label_rank(LhPathSearch *s, guint next, LhOpBuffer *buffer)
{
    LhOnPath *on = &g_array_index(s->ops, LhOnPath, next);
    const uint32_t rank = on->rank;
    LhCallCounter calls;
    LhCursor cursor;

    lh_cursor_init(&cursor, s->of.program, rank);
    lh_call_counter_init(&calls);
    while (next < s->ops->len && on->rank == rank && lh_cursor_step(&cursor, buffer))
        for (uint32_t i = 0; i < buffer->ops_count; i++) {
            const LhOp *op = &buffer->ops[i];
            LhCallId call = { .nth = 0 };

            if (op->kind == LH_OP_COLLECTIVE)
                call = lh_call_counter_next(&calls, op);
            if (next == s->ops->len || on->rank != rank || op->id != on->op)
                continue;
            label_op(s, on, op, buffer, call);
            on = ++next < s->ops->len ? &g_array_index(s->ops, LhOnPath, next) : on;
        }
    lh_call_counter_clear(&calls);
    g_assert(next == s->ops->len || on->rank != rank);
    return next;
}

/* Labels the ops of the path by walking the programs of their ranks. */
static void
label_all(LhPathSearch *s)
{
    LhOpBuffer buffer = { 0 };
    guint next = 0;

    while (next < s->ops->len)
        next = label_rank(s, next, &buffer);
    lh_op_buffer_clear(&buffer);
}

/* --- sums ---------------------------------------------------------------------------------------
 */

/* Sums the path by op. */
static GArray *
ops_on_path(const LhPathSearch *s)
{
    g_autoptr(GArray) parts = g_array_new(FALSE, FALSE, sizeof(LhOnPath));
    GArray *ops = g_array_new(FALSE, FALSE, sizeof(LhOnPath));

    for (guint i = 0; i < s->of.path->len; i++) {
        const LhPathStep *step = &g_array_index(s->of.path, LhPathStep, i);
        const LhTime time_ps = step->to_ps - step->from_ps;
        const bool host = step->kind == LH_STEP_HOST;
        const LhOnPath part = { .rank = step->rank,
                                .op = step->op,
                                .path_ps = host ? 0 : time_ps,
                                .host_ps = host ? time_ps : 0 };

        g_array_append_val(parts, part);
    }
    g_array_sort(parts, lh_on_path_compare);
    for (guint i = 0; i < parts->len; i++) {
        const LhOnPath *part = &g_array_index(parts, LhOnPath, i);
        LhOnPath *last = ops->len > 0 ? &g_array_index(ops, LhOnPath, ops->len - 1) : NULL;

        if (last != NULL && lh_on_path_compare(last, part) == 0) {
            last->path_ps += part->path_ps;
            last->host_ps += part->host_ps;
        } else {
            g_array_append_vals(ops, part, 1);
        }
    }
    return ops;
}

static void
sum_path(const LhPathSearch *s)
{
    LhCritical *c = s->answer;

    for (guint i = 0; i < s->ops->len; i++) {
        const LhOnPath *op = &g_array_index(s->ops, LhOnPath, i);
        LhCallGroup *group;

        c->phases_ps[op->phase] += op->path_ps + op->host_ps;
        g_array_index(c->ranks_ps, LhTime, op->rank) += op->path_ps + op->host_ps;
        if (op->path_ps == 0)
            continue;
        group = lh_critical_group(c, op->group);
        group->path_ps += op->path_ps;
        group->path_calls++;
    }
}

static void
add_slack(void *data, const LhEvent *event, LhTime slack_ps)
{
    const LhPathSearch *s = data;
    LhCallGroup *group;

    if (event->end != LH_EVENT_DONE)
        return;
    group = lh_critical_group(s->answer, g_array_index(s->groups, uint32_t, event->call));
    if (slack_ps == 0) {
        group->critical += lh_slack_weight(s->of.precedence, event->rank);
        return;
    }
    group->least_ps = group->least_ps == 0 ? slack_ps : MIN(group->least_ps, slack_ps);
    group->most_ps = MAX(group->most_ps, slack_ps);
}

/* --- speed-ups ----------------------------------------------------------------------------------
 */

/* Sorts by time on the path, longest first. */
static int
by_path(gconstpointer a, gconstpointer b)
{
    const LhSpeedUp *x = a, *y = b;

    if (x->path_ps != y->path_ps)
        return x->path_ps > y->path_ps ? -1 : 1;
    if (x->group != y->group)
        return x->group < y->group ? -1 : 1;
    return lh_compare_ops(x->rank, x->op, y->rank, y->op);
}

static int
by_saving(gconstpointer a, gconstpointer b)
{
    const LhSpeedUp *x = a, *y = b;

    if (x->saved_ps != y->saved_ps)
        return x->saved_ps > y->saved_ps ? -1 : 1;
    return by_path(a, b);
}

/* Keeps the longest ones. */
static void
keep_longest(GArray *all)
{
    g_array_sort(all, by_path);
    g_array_set_size(all, MIN(all->len, LH_CRITICAL_TOP));
    for (guint i = 0; i < all->len; i++) {
        LhSpeedUp *what = &g_array_index(all, LhSpeedUp, i);

        what->predicted_ps = lh_time_from_ps((double)what->path_ps * (1 - 1 / LH_WHAT_IF_FACTOR));
    }
}

/* Adds an op of the path; of a collective, all of its members that are on the path as one. */
static void
list_op(LhCritical *c, GHashTable *calls, const LhOnPath *op)
{
    const LhSpeedUp what = { .group = op->group,
                             .rank = op->rank,
                             .op = op->op,
                             .layer = op->layer,
                             .micro_batch = op->micro_batch,
                             .path_ps = op->path_ps };
    gpointer place = op->collective ? g_hash_table_lookup(calls, &op->call) : NULL;

    if (place != NULL) {
        g_array_index(c->by_op, LhSpeedUp, GPOINTER_TO_UINT(place) - 1).path_ps += op->path_ps;
        return;
    }
    g_array_append_val(c->by_op, what);
    if (op->collective)
        g_hash_table_insert(calls, (gpointer)&op->call, GUINT_TO_POINTER(c->by_op->len));
}

static void
list_speed_ups(const LhPathSearch *s)
{
    LhCritical *c = s->answer;
    g_autoptr(GHashTable) calls = g_hash_table_new(lh_call_id_hash, lh_call_id_equal);

    for (uint32_t g = 0; g < c->groups->len; g++) {
        const LhSpeedUp what = { .group = g,
                                 .rank = LH_OP_NONE,
                                 .op = LH_OP_NONE,
                                 .path_ps = lh_critical_group(c, g)->path_ps };

        if (what.path_ps > 0)
            g_array_append_val(c->by_group, what);
    }
    for (guint i = 0; i < s->ops->len; i++) {
        const LhOnPath *op = &g_array_index(s->ops, LhOnPath, i);

        if (op->path_ps > 0)
            list_op(c, calls, op);
    }
    keep_longest(c->by_group);
    keep_longest(c->by_op);
}

/* --- result -------------------------------------------------------------------------------------
 */

static int
by_part(gconstpointer a, gconstpointer b, gpointer groups)
{
    const uint32_t i = *(const uint32_t *)a, k = *(const uint32_t *)b;
    const LhCallGroup *x = &g_array_index((GArray *)groups, LhCallGroup, i);
    const LhCallGroup *y = &g_array_index((GArray *)groups, LhCallGroup, k);

    if (x->path_ps != y->path_ps)
        return x->path_ps > y->path_ps ? -1 : 1;
    if (x->time_ps != y->time_ps)
        return x->time_ps > y->time_ps ? -1 : 1;
    return i < k ? -1 : i > k;
}

static void
rename_groups(GArray *all, const uint32_t *place)
{
    for (guint i = 0; i < all->len; i++)
        g_array_index(all, LhSpeedUp, i).group = place[g_array_index(all, LhSpeedUp, i).group];
}

/* Orders the groups: those with most time on the path first. */
static void
order_groups(LhCritical *c)
{
    GArray *ordered = g_array_new(FALSE, FALSE, sizeof(LhCallGroup));
    g_autoptr(GArray) order = g_array_new(FALSE, FALSE, sizeof(uint32_t));
    g_autofree uint32_t *place = g_new0(uint32_t, MAX(c->groups->len, 1));

    for (uint32_t g = 0; g < c->groups->len; g++)
        g_array_append_val(order, g);
    g_array_sort_with_data(order, by_part, c->groups);
    for (uint32_t i = 0; i < order->len; i++) {
        const uint32_t g = g_array_index(order, uint32_t, i);

        g_array_append_vals(ordered, lh_critical_group(c, g), 1);
        place[g] = i;
    }
    g_array_unref(c->groups);
    c->groups = ordered;
    rename_groups(c->by_group, place);
    rename_groups(c->by_op, place);
}

static LhCritical *
new_answer(const LhCriticalOf *of)
{
    LhCritical *c = g_new0(LhCritical, 1);

    c->makespan_ps = of->makespan_ps;
    c->resources = lh_path_shares(of->path);
    c->ranks_ps = g_array_new(FALSE, TRUE, sizeof(LhTime));
    g_array_set_size(c->ranks_ps, of->precedence->ranks_count);
    c->groups = g_array_new(FALSE, FALSE, sizeof(LhCallGroup));
    c->by_group = g_array_new(FALSE, FALSE, sizeof(LhSpeedUp));
    c->by_op = g_array_new(FALSE, FALSE, sizeof(LhSpeedUp));
    return c;
}

/* Computes everything that needs no simulation. */
static void
search_begin(LhPathSearch *s)
{
    s->answer = new_answer(&s->of);
    add_groups(s);
    s->ops = ops_on_path(s);
    label_all(s);
    sum_path(s);
    lh_slack_of(s->of.precedence, add_slack, s);
    list_speed_ups(s);
}

/* Frees everything but the result. */
static void
search_end(LhPathSearch *s)
{
    g_array_unref(s->groups);
    g_array_unref(s->ops);
    order_groups(s->answer);
}

LhCritical *
lh_critical_find(const LhSetup *setup, const LhCompareRow *row, const LhTask *task, GError **error)
{
    LhPathSearch s = { .of = { .setup = setup,
                               .program = row->program,
                               .makespan_ps = row->result->makespan_ps,
                               .path = row->result->path,
                               .precedence = row->result->precedence },
                       .task = task };
    g_autoptr(LhCritical) c = NULL;
    bool found;

    search_begin(&s);
    c = s.answer;
    found = lh_speed_ups_play(&s, error);
    c->played = found;
    g_array_sort(c->by_group, by_saving);
    g_array_sort(c->by_op, by_saving);
    search_end(&s);
    return found ? g_steal_pointer(&c) : NULL;
}

LhCritical *
lh_critical_sum(const LhCriticalOf *of)
{
    LhPathSearch s = { .of = *of };

    search_begin(&s);
    search_end(&s);
    return s.answer;
}

void
lh_critical_free(LhCritical *c)
{
    if (c == NULL)
        return;
    g_array_unref(c->resources);
    g_array_unref(c->ranks_ps);
    g_array_unref(c->groups);
    g_array_unref(c->by_group);
    g_array_unref(c->by_op);
    g_free(c);
}

char *
lh_call_group_name(const LhCallGroup *group)
{
    if (group->kind == LH_OP_COMPUTE)
        return g_strdup(lh_kernels[group->kernel]->name);
    if (group->kind == LH_OP_COLLECTIVE)
        return g_strdup(lh_collective_names[group->kernel]);
    if (group->tier >= LH_TIERS)
        return g_strdup("empty exchange");
    return g_strdup_printf("messages over %s", lh_tier_names[group->tier]);
}
