/* SPDX-License-Identifier: Apache-2.0 */
#include "planner/estimate_all.h"

#include "base/threads.h"
#include "planner/plan_point.h"
#include "step/modules.h"

#define POLICIES (LH_CHECKPOINTS * LH_SHARDS)

/* Consecutive points with the same shape and arrangement of a schedule. */
typedef struct {
    guint first, count;
    guint attention; /* index in LhPlanEstimateTable.attentions */
    guint arounds;   /* index in LhPlanEstimateTable.arounds of the first of POLICIES */
} PointRun;

/* What the attention part depends on. */
typedef struct {
    const LhSchedule *schedule;
    uint32_t variant, tensor, context, micro_batch_size;
} AttentionKey;

typedef struct {
    guint point; /* a point that has it */
    LhAttentionPart part;
    char *refusal;   /* owned; NULL: none */
    char *signature; /* owned: the interface of the part to the rest of the step */
} Attention;

typedef struct {
    bool wanted, scout, known; /* a point has it; a scout; it is estimated */
    guint point;               /* a point that has it: a scout, if there is one */
    guint attention;
    LhPlanAround around;
    char *refusal; /* owned; NULL: none */
} Around;

struct _LhPlanEstimateTable {
    LhPlanEstimates query;
    GArray *runs, *attentions, *arounds;
    bool scouts; /* points to estimate now: all with this lh_plan_is_scout() */
};

static const LhPlanPoint *
point_of(const LhPlanEstimateTable *table, guint point)
{
    return lh_plan_point(table->query.space, point);
}

static const LhSetup *
setup_of(const LhPlanEstimateTable *table, guint point)
{
    const uint32_t shape = point_of(table, point)->shape;

    if (table->query.setups != NULL)
        return table->query.setups[shape];
    return lh_plan_shape(table->query.space, point_of(table, point))->setup;
}

static bool
estimate_goes_on(const LhPlanEstimateTable *table)
{
    return lh_task_tell(&table->query.task, &(LhProgress){ 0 });
}

bool
lh_plan_is_scout(const LhPlanSpace *space, guint index)
{
    const LhPlanPoint *point = lh_plan_point(space, index);
    const LhPlanShape *shape = lh_plan_shape(space, point);
    const LhStepSizes *sizes = &shape->sizes, *before;

    if (point->chunks > 1) /* their bounds are loosest */
        return false;
    if (point->shard == LH_SHARD_DDP ||
        (point->shard == LH_SHARD_FSDP ? point->checkpoint != LH_CHECKPOINT_REMAT
                                       : point->checkpoint > LH_CHECKPOINT_SELECTIVE))
        return false;
    if (point->shape ==
        0) /* shapes of the same sizes follow each other, small micro-batches first */
        return true;
    before = &((const LhPlanShape *)g_ptr_array_index(space->shapes, point->shape - 1))->sizes;
    return before->tensor != sizes->tensor || before->context != sizes->context ||
           before->data != sizes->data || before->pipeline != sizes->pipeline;
}

/* ---- find the distinct parts ---- */

static guint
key_hash(gconstpointer key)
{
    const AttentionKey *k = key;

    return g_direct_hash(k->schedule) ^ (k->variant * UINT32_C(0x9E3779B1)) ^
           (k->tensor * UINT32_C(0x85EBCA6B)) ^ (k->context * UINT32_C(0xC2B2AE35)) ^
           (k->micro_batch_size * UINT32_C(0x27D4EB2F));
}

static gboolean
key_equal(gconstpointer a, gconstpointer b)
{
    const AttentionKey *x = a, *y = b;

    return x->schedule == y->schedule && x->variant == y->variant && x->tensor == y->tensor &&
           x->context == y->context && x->micro_batch_size == y->micro_batch_size;
}

static guint
attention_of(LhPlanEstimateTable *table, GHashTable *known, guint point)
{
    const LhPlanPoint *p = point_of(table, point);
    const LhPlanShape *shape = lh_plan_shape(table->query.space, p);
    const AttentionKey key = { .schedule = p->schedule,
                               .variant = p->variant,
                               .tensor = shape->sizes.tensor,
                               .context = shape->sizes.context,
                               .micro_batch_size = shape->micro_batch_size };
    const Attention new_one = { .point = point };
    gpointer number;

    if (g_hash_table_lookup_extended(known, &key, NULL, &number))
        return GPOINTER_TO_UINT(number);
    g_hash_table_insert(known, g_memdup2(&key, sizeof(key)),
                        GUINT_TO_POINTER(table->attentions->len));
    g_array_append_val(table->attentions, new_one);
    return table->attentions->len - 1;
}

static void
find_runs(LhPlanEstimateTable *table)
{
    g_autoptr(GHashTable) known = g_hash_table_new_full(key_hash, key_equal, g_free, NULL);
    const guint points = table->query.space->points->len;

    for (guint i = 0; i < points;) {
        const LhPlanPoint *first = point_of(table, i);
        PointRun run = { .first = i };

        while (i < points && point_of(table, i)->shape == first->shape &&
               point_of(table, i)->schedule == first->schedule &&
               point_of(table, i)->variant == first->variant)
            i++;
        run.count = i - run.first;
        if (setup_of(table, run.first) != NULL)
            run.attention = attention_of(table, known, run.first);
        g_array_append_val(table->runs, run);
    }
}

/* Finds the parts around attention: distinct by shape and signature. */
static void
find_arounds(LhPlanEstimateTable *table)
{
    g_autoptr(GHashTable) known = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);

    for (guint i = 0; i < table->runs->len; i++) {
        PointRun *run = &g_array_index(table->runs, PointRun, i);
        const Attention *attention;
        g_autofree char *key = NULL;
        gpointer first;

        if (setup_of(table, run->first) == NULL)
            continue;
        attention = &g_array_index(table->attentions, Attention, run->attention);
        if (attention->signature == NULL)
            continue;
        key = g_strdup_printf("%u %s", point_of(table, run->first)->shape, attention->signature);
        if (!g_hash_table_lookup_extended(known, key, NULL, &first)) {
            first = GUINT_TO_POINTER(table->arounds->len);
            g_hash_table_insert(known, g_steal_pointer(&key), first);
            g_array_set_size(table->arounds, table->arounds->len + POLICIES);
        }
        run->arounds = GPOINTER_TO_UINT(first);
        for (guint k = run->first; k < run->first + run->count; k++) {
            const LhPlanPoint *p = point_of(table, k);
            const bool scout = lh_plan_is_scout(table->query.space, k);
            Around *around = &g_array_index(table->arounds, Around,
                                            run->arounds + p->checkpoint * LH_SHARDS + p->shard);

            if (!around->wanted || scout)
                *around = (Around){
                    .wanted = true, .scout = scout, .point = k, .attention = run->attention
                };
        }
    }
}

/* ---- estimate the parts ---- */

/* Adds what the rest of a step sees of a pass: the parts of a rank's tokens, and the bytes of its
 * inputs and outputs by role; neither their order nor the parts they consist of. */
static void
add_slots(GString *text, const LhProgram *hollow)
{
    g_string_append_printf(text, "%u:", lh_placement_parts(&hollow->placement));
    for (int role = 0; role < LH_STEP_ROLES; role++) {
        for (uint32_t i = 0; i < hollow->slots_count; i++) {
            const LhSlot *slot = &hollow->slots[i];

            if (lh_step_slot_role(slot) == (LhStepRole)role)
                g_string_append_printf(text, "%d,%d,%d,%" G_GUINT64_FORMAT ";", role,
                                       (int)slot->role, (int)slot->dtype,
                                       slot->parts * slot->part_bytes);
        }
    }
}

/* The placements of several kinds of layers must agree. */
static void
add_placement(GString *text, const LhPlacement *placement)
{
    g_string_append_printf(text, "%d/%u;", (int)placement->kind, placement->split);
}

static char *
signature_of(const LhStepAttention *hollow)
{
    GString *text = g_string_new(NULL);
    unsigned kinds = 0;

    for (unsigned kind = 0; kind < LH_STEP_KINDS; kind++)
        kinds += hollow->pass[kind][0] != NULL;
    for (unsigned kind = 0; kind < LH_STEP_KINDS; kind++) {
        for (unsigned pass = 0; pass < 2 && hollow->pass[kind][0] != NULL; pass++)
            add_slots(text, hollow->pass[kind][pass]);
        if (kinds > 1 && hollow->pass[kind][0] != NULL)
            add_placement(text, &hollow->pass[kind][0]->placement);
        g_string_append_c(text, '|');
    }
    return g_string_free(text, FALSE);
}

static void
look_at_attention(void *data, guint index)
{
    const LhPlanEstimateTable *table = data;
    Attention *attention = &g_array_index(table->attentions, Attention, index);
    g_autoptr(GError) error = NULL;
    LhPlanCase c;

    if (!estimate_goes_on(table))
        return;
    lh_plan_case_of(&c, table->query.space, attention->point, setup_of(table, attention->point));
    if (lh_plan_attention(&c, table->query.messages, &attention->part, &error))
        attention->signature = signature_of(&attention->part.hollow);
    else
        attention->refusal = g_strdup(error->message);
}

static void
look_around(void *data, guint index)
{
    const LhPlanEstimateTable *table = data;
    Around *around = &g_array_index(table->arounds, Around, index);
    g_autoptr(GError) error = NULL;
    LhPlanCase c;

    if (!around->wanted || around->known || (table->scouts && !around->scout) ||
        !estimate_goes_on(table))
        return;
    around->known = true;
    lh_plan_case_of(&c, table->query.space, around->point, setup_of(table, around->point));
    if (table->query.least && !lh_plan_case_least(&c, table->query.types, table->query.loss))
        around->refusal = g_strdup("no such loss");
    else if (table->query.space->remedies && !table->query.least)
        lh_plan_case_floor(&c);
    if (around->refusal == NULL &&
        !lh_plan_around(&c,
                        &g_array_index(table->attentions, Attention, around->attention).part.hollow,
                        table->query.messages, &around->around, &error))
        around->refusal = g_strdup(error->message);
}

/* ---- combine them ---- */

static const Around *
around_of(const LhPlanEstimateTable *table, const PointRun *run, guint point)
{
    const LhPlanPoint *p = point_of(table, point);

    return &g_array_index(table->arounds, Around,
                          run->arounds + p->checkpoint * LH_SHARDS + p->shard);
}

static void
put_together(const LhPlanEstimateTable *table, const PointRun *run, const LhPlanCase *c,
             guint point)
{
    const LhPlanEstimates *query = &table->query;
    const Attention *attention = &g_array_index(table->attentions, Attention, run->attention);
    const Around *around = NULL;
    const char *refusal = attention->refusal;
    g_autoptr(GError) error = NULL;
    LhPlanEstimate estimate;

    if (!lh_plan_case_check(c, &error)) {
        refusal = error->message;
    } else if (refusal == NULL) {
        around = around_of(table, run, point);
        refusal = around->refusal;
    }
    if (refusal == NULL)
        estimate = lh_plan_estimate_parts(c, &attention->part, &around->around);
    query->found(query->data, point, refusal == NULL ? &estimate : NULL, refusal);
}

static void
find_run(void *data, guint index)
{
    const LhPlanEstimateTable *table = data;
    const LhPlanEstimates *query = &table->query;
    const PointRun *run = &g_array_index(table->runs, PointRun, index);
    const LhSetup *setup = setup_of(table, run->first);
    LhPlanCase c;

    if (!estimate_goes_on(table))
        return;
    if (setup != NULL)
        lh_plan_case_of(&c, query->space, run->first, setup);
    for (guint i = run->first; i < run->first + run->count; i++) {
        if (lh_plan_is_scout(query->space, i) != table->scouts)
            continue;
        if (setup == NULL) {
            query->found(query->data, i, NULL,
                         lh_plan_shape(query->space, point_of(table, i))->refusal);
            continue;
        }
        lh_plan_case_policies(&c, point_of(table, i));
        put_together(table, run, &c, i);
    }
}

void
lh_plan_estimate_table_free(LhPlanEstimateTable *table)
{
    if (table == NULL)
        return;
    for (guint i = 0; i < table->attentions->len; i++) {
        Attention *attention = &g_array_index(table->attentions, Attention, i);

        lh_attention_part_clear(&attention->part);
        g_free(attention->refusal);
        g_free(attention->signature);
    }
    for (guint i = 0; i < table->arounds->len; i++)
        g_free(g_array_index(table->arounds, Around, i).refusal);
    g_array_unref(table->runs);
    g_array_unref(table->attentions);
    g_array_unref(table->arounds);
    g_free(table);
}

LhPlanEstimateTable *
lh_plan_estimate_table_new(const LhPlanEstimates *query)
{
    LhPlanEstimateTable *table = g_new0(LhPlanEstimateTable, 1);

    *table = (LhPlanEstimateTable){ .query = *query,
                                    .runs = g_array_new(FALSE, FALSE, sizeof(PointRun)),
                                    .attentions = g_array_new(FALSE, TRUE, sizeof(Attention)),
                                    .arounds = g_array_new(FALSE, TRUE, sizeof(Around)) };
    find_runs(table);
    lh_on_threads_each("attention", query->task.jobs, table->attentions->len, look_at_attention,
                       table);
    if (estimate_goes_on(table))
        find_arounds(table);
    return table;
}

void
lh_plan_estimate_table_add(LhPlanEstimateTable *table, bool scouts)
{
    const guint jobs = table->query.task.jobs;

    table->scouts = scouts;
    if (estimate_goes_on(table))
        lh_on_threads_each("around", jobs, table->arounds->len, look_around, table);
    if (estimate_goes_on(table))
        lh_on_threads_each("estimate", jobs, table->runs->len, find_run, table);
}

void
lh_plan_estimate_all(const LhPlanEstimates *query)
{
    LhPlanEstimateTable *table = lh_plan_estimate_table_new(query);

    lh_plan_estimate_table_add(table, true);
    lh_plan_estimate_table_add(table, false);
    lh_plan_estimate_table_free(table);
}

/* The run of a point. */
static const PointRun *
run_of(const LhPlanEstimateTable *table, guint point)
{
    guint low = 0, high = table->runs->len;

    while (high - low > 1) {
        const guint middle = low + (high - low) / 2;

        if (g_array_index(table->runs, PointRun, middle).first <= point)
            low = middle;
        else
            high = middle;
    }
    return &g_array_index(table->runs, PointRun, low);
}

LhTime
lh_plan_estimate_table_refine(const LhPlanEstimateTable *table, guint point)
{
    const PointRun *run = run_of(table, point);
    LhPlanCase c;

    lh_plan_case_of(&c, table->query.space, point, setup_of(table, point));
    return lh_plan_estimate_exchanges(
        &c, &g_array_index(table->attentions, Attention, run->attention).part,
        &around_of(table, run, point)->around);
}
