/* SPDX-License-Identifier: Apache-2.0 */
#include "critical_path/critical.h"

#include "critical_path/absorbed.h"
#include "critical_path/faster_runs.h"
#include "program/cursor.h"

const char *const lh_saving_names[] = { "agrees", "another path takes over", "contention", NULL };

/* An op on the critical path. */
typedef struct {
    uint32_t rank, op;
    LhTime path_ps; /* without time on the host, which faster ops do not shorten */
    LhTime host_ps;
    uint32_t group; /* set by label_all(), for ops on streams */
    uint16_t layer, micro_batch;
    uint8_t phase;
} OnPath;

typedef struct {
    LhCriticalOf of;
    const LhTask *task; /* may be NULL */
    LhCritical *answer;
    GArray *groups; /* of uint32_t: by call of the graph */
    GArray *ops;    /* of OnPath, by rank and op */
} PathSearch;

static LhCallGroup *
group_at(const LhCritical *c, uint32_t index)
{
    return &g_array_index(c->groups, LhCallGroup, index);
}

/* --- groups -------------------------------------------------------------------------------------
 */

static int
by_first(gconstpointer a, gconstpointer b, gpointer calls)
{
    const LhSlackCalls *x = &g_array_index((GArray *)calls, LhSlackCalls, *(const uint32_t *)a);
    const LhSlackCalls *y = &g_array_index((GArray *)calls, LhSlackCalls, *(const uint32_t *)b);

    if (x->rank != y->rank)
        return x->rank < y->rank ? -1 : 1;
    return x->op < y->op ? -1 : x->op > y->op;
}

/* Adds all groups, in the order of the first op of each. */
static void
add_groups(PathSearch *s)
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
tier_of(const PathSearch *s, uint32_t rank, const LhOp *op, const LhOpBuffer *buffer)
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

static bool
is_of_group(const PathSearch *s, const LhCallGroup *group, uint32_t rank, const LhOp *op,
            const LhOpBuffer *buffer)
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
label_op(const PathSearch *s, OnPath *on, const LhOp *op, const LhOpBuffer *buffer)
{
    on->layer = op->layer;
    on->micro_batch = op->micro_batch;
    on->phase = op->phase;
    if (!lh_op_on_stream(op))
        return;
    while (!is_of_group(s, group_at(s->answer, on->group), on->rank, op, buffer))
        on->group++;
}

/* Labels the ops of the path by walking the programs of their ranks. */
static void
label_all(PathSearch *s)
{
    LhOpBuffer buffer = { 0 };
    guint next = 0;

    while (next < s->ops->len) {
        OnPath *on = &g_array_index(s->ops, OnPath, next);
        const uint32_t rank = on->rank;
        LhCursor cursor;

        lh_cursor_init(&cursor, s->of.program, rank);
        while (next < s->ops->len && on->rank == rank && lh_cursor_step(&cursor, &buffer))
            for (uint32_t i = 0; i < buffer.ops_count; i++) {
                if (next == s->ops->len || on->rank != rank || buffer.ops[i].id != on->op)
                    continue;
                label_op(s, on, &buffer.ops[i], &buffer);
                on = ++next < s->ops->len ? &g_array_index(s->ops, OnPath, next) : on;
            }
        g_assert(next == s->ops->len || on->rank != rank);
    }
    lh_op_buffer_clear(&buffer);
}

/* --- sums ---------------------------------------------------------------------------------------
 */

static int
by_rank_and_op(gconstpointer a, gconstpointer b)
{
    const OnPath *x = a, *y = b;

    if (x->rank != y->rank)
        return x->rank < y->rank ? -1 : 1;
    return x->op < y->op ? -1 : x->op > y->op;
}

/* Sums the path by op. */
static GArray *
ops_on_path(const PathSearch *s)
{
    g_autoptr(GArray) parts = g_array_new(FALSE, FALSE, sizeof(OnPath));
    GArray *ops = g_array_new(FALSE, FALSE, sizeof(OnPath));

    for (guint i = 0; i < s->of.path->len; i++) {
        const LhPathStep *step = &g_array_index(s->of.path, LhPathStep, i);
        const LhTime time_ps = step->to_ps - step->from_ps;
        const bool host = step->kind == LH_STEP_HOST;
        const OnPath part = { .rank = step->rank,
                              .op = step->op,
                              .path_ps = host ? 0 : time_ps,
                              .host_ps = host ? time_ps : 0 };

        g_array_append_val(parts, part);
    }
    g_array_sort(parts, by_rank_and_op);
    for (guint i = 0; i < parts->len; i++) {
        const OnPath *part = &g_array_index(parts, OnPath, i);
        OnPath *last = ops->len > 0 ? &g_array_index(ops, OnPath, ops->len - 1) : NULL;

        if (last != NULL && by_rank_and_op(last, part) == 0) {
            last->path_ps += part->path_ps;
            last->host_ps += part->host_ps;
        } else {
            g_array_append_vals(ops, part, 1);
        }
    }
    return ops;
}

static void
sum_path(const PathSearch *s)
{
    LhCritical *c = s->answer;

    for (guint i = 0; i < s->ops->len; i++) {
        const OnPath *op = &g_array_index(s->ops, OnPath, i);
        LhCallGroup *group;

        c->phases_ps[op->phase] += op->path_ps + op->host_ps;
        g_array_index(c->ranks_ps, LhTime, op->rank) += op->path_ps + op->host_ps;
        if (op->path_ps == 0)
            continue;
        group = group_at(c, op->group);
        group->path_ps += op->path_ps;
        group->path_calls++;
    }
}

static void
add_slack(void *data, const LhEvent *event, LhTime slack_ps)
{
    const PathSearch *s = data;
    LhCallGroup *group;

    if (event->end != LH_EVENT_DONE)
        return;
    group = group_at(s->answer, g_array_index(s->groups, uint32_t, event->call));
    if (slack_ps == 0) {
        group->critical++;
        return;
    }
    group->least_ps = group->least_ps == 0 ? slack_ps : MIN(group->least_ps, slack_ps);
    group->most_ps = MAX(group->most_ps, slack_ps);
}

/* --- speed-ups ----------------------------------------------------------------------------------
 */

/* The target of a speed-up: an op, or all ops of a group. */
typedef struct {
    const PathSearch *search;
    LhSpeedUp *what;
} Faster;

static double
share_of_op(void *data, uint32_t rank, uint32_t id, const LhOp *op, const LhOpBuffer *buffer)
{
    const Faster *f = data;
    const bool is =
        f->what->op != LH_OP_NONE
            ? f->what->rank == rank && f->what->op == id
            : is_of_group(f->search, group_at(f->search->answer, f->what->group), rank, op, buffer);

    return is ? 1 / LH_WHAT_IF_FACTOR : 1;
}

static double
share_of_event(void *data, const LhEvent *event)
{
    const Faster *f = data;
    const bool is = f->what->op != LH_OP_NONE
                        ? f->what->rank == event->rank && f->what->op == event->op
                        : g_array_index(f->search->groups, uint32_t, event->call) == f->what->group;

    return is && event->kind != LH_STEP_HOST ? 1 / LH_WHAT_IF_FACTOR : 1;
}

static bool
is_near(const LhSpeedUp *what, LhTime saved_ps)
{
    return (double)ABS(what->saved_ps - saved_ps) <=
           LH_CRITICAL_AGREES * (double)what->predicted_ps;
}

/* Simulates @what_ifs, of LhSpeedUp. */
static bool
play_all(const PathSearch *s, const GPtrArray *what_ifs, GError **error)
{
    g_autofree Faster *faster = g_new(Faster, MAX(what_ifs->len, 1));
    g_autofree LhFasterRun *runs = g_new(LhFasterRun, MAX(what_ifs->len, 1));

    for (guint i = 0; i < what_ifs->len; i++) {
        LhSpeedUp *what = g_ptr_array_index(what_ifs, i);

        faster[i] = (Faster){ s, what };
        runs[i] = (LhFasterRun){ .share = share_of_op,
                                 .data = &faster[i],
                                 .alike = what->op == LH_OP_NONE };
    }
    if (!lh_faster_runs_play(s->of.setup, s->of.program, s->task, runs, what_ifs->len, error))
        return false;
    for (guint i = 0; i < what_ifs->len; i++)
        faster[i].what->saved_ps = s->answer->makespan_ps - runs[i].makespan_ps;
    return true;
}

/* Sets the reasons of savings that differ from the prediction, as long as nothing is shared. Adds
 * those for which that must be checked to @unsure. */
static void
judge(GArray *all, const GArray *absorbed, GPtrArray *unsure)
{
    for (guint i = 0; i < all->len; i++) {
        LhSpeedUp *what = &g_array_index(all, LhSpeedUp, i);

        what->state = is_near(what, what->predicted_ps) ? LH_SAVING_AGREES : LH_SAVING_OTHER_PATH;
        if (what->state != LH_SAVING_AGREES && !g_array_index(absorbed, LhAbsorbed, i).absorbed)
            g_ptr_array_add(unsure, what);
    }
}

/* Finds contention among what-ifs, of LhSpeedUp. */
static void
find_contention(const PathSearch *s, const GPtrArray *unsure)
{
    g_autofree Faster *faster = g_new(Faster, MAX(unsure->len, 1));
    g_autofree void **data = g_new(void *, MAX(unsure->len, 1));
    g_autofree LhTime *makespans_ps = g_new(LhTime, MAX(unsure->len, 1));

    for (guint i = 0; i < unsure->len; i++) {
        faster[i] = (Faster){ s, g_ptr_array_index(unsure, i) };
        data[i] = &faster[i];
    }
    lh_slack_replay(s->of.precedence, share_of_event, data, unsure->len, makespans_ps);
    for (guint i = 0; i < unsure->len; i++)
        if (!is_near(faster[i].what, s->answer->makespan_ps - makespans_ps[i]))
            faster[i].what->state = LH_SAVING_CONTENTION;
}

/* Sorts by time on the path, longest first. */
static int
by_path(gconstpointer a, gconstpointer b)
{
    const LhSpeedUp *x = a, *y = b;

    if (x->path_ps != y->path_ps)
        return x->path_ps > y->path_ps ? -1 : 1;
    if (x->group != y->group)
        return x->group < y->group ? -1 : 1;
    if (x->rank != y->rank)
        return x->rank < y->rank ? -1 : 1;
    return x->op < y->op ? -1 : x->op > y->op;
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

/* Which single ops save nothing, without a simulation: of LhAbsorbed. */
static GArray *
find_absorbed(const PathSearch *s, const GArray *all)
{
    GArray *ops = g_array_new(FALSE, TRUE, sizeof(LhAbsorbed));
    bool kernels = false;

    g_array_set_size(ops, all->len);
    for (guint i = 0; i < all->len; i++) {
        const LhSpeedUp *what = &g_array_index(all, LhSpeedUp, i);

        g_array_index(ops, LhAbsorbed, i) = (LhAbsorbed){ .rank = what->rank, .op = what->op };
        kernels |=
            what->op != LH_OP_NONE && group_at(s->answer, what->group)->kind == LH_OP_COMPUTE;
    }
    if (kernels && s->of.setup->device->machine_ranks == 0)
        lh_absorbed_find(s->of.precedence, ops);
    return ops;
}

static bool
play_speed_ups(const PathSearch *s, GError **error)
{
    GArray *const lists[] = { s->answer->by_group, s->answer->by_op };
    GArray *absorbed[G_N_ELEMENTS(lists)];
    g_autoptr(GPtrArray) what_ifs = g_ptr_array_new();
    g_autoptr(GPtrArray) unsure = g_ptr_array_new();
    bool played;

    for (guint k = 0; k < G_N_ELEMENTS(lists); k++) {
        absorbed[k] = find_absorbed(s, lists[k]);
        for (guint i = 0; i < lists[k]->len; i++)
            if (!g_array_index(absorbed[k], LhAbsorbed, i).absorbed)
                g_ptr_array_add(what_ifs, &g_array_index(lists[k], LhSpeedUp, i));
    }
    played = play_all(s, what_ifs, error);
    for (guint k = 0; k < G_N_ELEMENTS(lists); k++) {
        if (played)
            judge(lists[k], absorbed[k], unsure);
        g_array_unref(absorbed[k]);
    }
    find_contention(s, unsure);
    for (guint k = 0; k < G_N_ELEMENTS(lists); k++)
        g_array_sort(lists[k], by_saving);
    return played;
}

static void
list_speed_ups(const PathSearch *s)
{
    LhCritical *c = s->answer;

    for (uint32_t g = 0; g < c->groups->len; g++) {
        const LhSpeedUp what = {
            .group = g, .rank = LH_OP_NONE, .op = LH_OP_NONE, .path_ps = group_at(c, g)->path_ps
        };

        if (what.path_ps > 0)
            g_array_append_val(c->by_group, what);
    }
    for (guint i = 0; i < s->ops->len; i++) {
        const OnPath *op = &g_array_index(s->ops, OnPath, i);
        const LhSpeedUp what = { .group = op->group,
                                 .rank = op->rank,
                                 .op = op->op,
                                 .layer = op->layer,
                                 .micro_batch = op->micro_batch,
                                 .path_ps = op->path_ps };

        if (what.path_ps > 0)
            g_array_append_val(c->by_op, what);
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

        g_array_append_vals(ordered, group_at(c, g), 1);
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
search_begin(PathSearch *s)
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
search_end(PathSearch *s)
{
    g_array_unref(s->groups);
    g_array_unref(s->ops);
    order_groups(s->answer);
}

LhCritical *
lh_critical_find(const LhSetup *setup, const LhCompareRow *row, const LhTask *task, GError **error)
{
    PathSearch s = { .of = { .setup = setup,
                             .program = row->program,
                             .makespan_ps = row->result->makespan_ps,
                             .path = row->result->path,
                             .precedence = row->result->precedence },
                     .task = task };
    g_autoptr(LhCritical) c = NULL;
    bool found;

    search_begin(&s);
    c = s.answer;
    found = play_speed_ups(&s, error);
    c->played = found;
    search_end(&s);
    return found ? g_steal_pointer(&c) : NULL;
}

LhCritical *
lh_critical_sum(const LhCriticalOf *of)
{
    PathSearch s = { .of = *of };

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
