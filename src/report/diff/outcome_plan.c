/* SPDX-License-Identifier: Apache-2.0 */
#include "report/diff/outcome_plan.h"

#include "report/diff/outcome_fields.h"

typedef struct {
    char *schedule, *checkpoint, *shard, *pipeline_schedule;
    char *remedies; /* NULL: none */
    uint64_t tensor, context, data, pipeline, chunks, micro_batch, micro_batches;
    double iteration_s, peak_bytes;
} Way;

#define SIZE(member, key)                                                                          \
    {                                                                                              \
        .name = key, .type = LH_FIELD_UINT, .offset = offsetof(Way, member),                       \
        .flags = LH_FIELD_REQUIRED                                                                 \
    }

static const LhField way_fields[] = {
    LH_OUTCOME_STRING(Way, schedule, "schedule"),
    LH_OUTCOME_STRING(Way, checkpoint, "checkpoint"),
    LH_OUTCOME_STRING(Way, shard, "shard"),
    LH_OUTCOME_STRING(Way, pipeline_schedule, "pipeline_schedule"),
    { .name = "remedies",
      .type = LH_FIELD_STRING,
      .offset = offsetof(Way, remedies),
      .flags = LH_FIELD_OR_NULL },
    SIZE(tensor, "tensor_model_parallel_size"),
    SIZE(context, "context_parallel_size"),
    SIZE(data, "data_parallel_size"),
    SIZE(pipeline, "pipeline_model_parallel_size"),
    SIZE(chunks, "virtual_pipeline_model_parallel_size"),
    SIZE(micro_batch, "micro_batch_size"),
    SIZE(micro_batches, "num_micro_batches"),
    { .name = "iteration_s",
      .type = LH_FIELD_DOUBLE,
      .offset = offsetof(Way, iteration_s),
      .flags = LH_FIELD_REQUIRED,
      .max = -1 },
    { .name = "peak_bytes",
      .type = LH_FIELD_DOUBLE,
      .offset = offsetof(Way, peak_bytes),
      .flags = LH_FIELD_REQUIRED,
      .max = -1 },
    { .name = NULL },
};

typedef struct {
    char *cluster;
    bool interrupted;
    uint64_t nics;
    double nic_rate, nvlink_rate, oversubscription; /* nocheck:unit: bytes/s */
    GArray *best;                                   /* of Way */
} Cluster;

#define CLUSTER_NUMBER(member, key)                                                                \
    {                                                                                              \
        .name = key, .type = LH_FIELD_DOUBLE, .offset = offsetof(Cluster, member),                 \
        .flags = LH_FIELD_OR_NULL                                                                  \
    }

static const LhField cluster_fields[] = {
    LH_OUTCOME_STRING(Cluster, cluster, "cluster"),
    { .name = "interrupted", .type = LH_FIELD_BOOL, .offset = offsetof(Cluster, interrupted) },
    { .name = "nics", .type = LH_FIELD_UINT, .offset = offsetof(Cluster, nics) },
    CLUSTER_NUMBER(nic_rate, "nic_bytes_per_s"),
    CLUSTER_NUMBER(nvlink_rate, "nvlink_bytes_per_s"),
    CLUSTER_NUMBER(oversubscription, "oversubscription"),
    { .name = "best",
      .type = LH_FIELD_ARRAY,
      .offset = offsetof(Cluster, best),
      .flags = LH_FIELD_REQUIRED,
      .fields = way_fields,
      .element_size = sizeof(Way) },
    { .name = NULL },
};

typedef struct {
    char *best_cluster;
    bool interrupted;
    GArray *clusters; /* of Cluster */
} Plan;

static const LhField plan_fields[] = {
    { .name = "interrupted", .type = LH_FIELD_BOOL, .offset = offsetof(Plan, interrupted) },
    { .name = "best_cluster",
      .type = LH_FIELD_STRING,
      .offset = offsetof(Plan, best_cluster),
      .flags = LH_FIELD_OR_NULL },
    { .name = "clusters",
      .type = LH_FIELD_ARRAY,
      .offset = offsetof(Plan, clusters),
      .flags = LH_FIELD_REQUIRED,
      .min = 1,
      .max = -1,
      .fields = cluster_fields,
      .element_size = sizeof(Cluster) },
    { .name = NULL },
};

/* "dgx-a100-80g:2: zigzag, TP 2, CP 8, DP 1, PP 2 x 1 1f1b, 4 x 1 sequences, layer, fsdp". */
static char *
way_name(const Cluster *cluster, const Way *way)
{
    return g_strdup_printf(
        "%s: %s, TP %" G_GUINT64_FORMAT ", CP %" G_GUINT64_FORMAT ", DP %" G_GUINT64_FORMAT
        ", PP %" G_GUINT64_FORMAT " x %" G_GUINT64_FORMAT " %s, %" G_GUINT64_FORMAT
        " x %" G_GUINT64_FORMAT " sequences, %s, %s%s%s",
        cluster->cluster, way->schedule, way->tensor, way->context, way->data, way->pipeline,
        way->chunks, way->pipeline_schedule, way->micro_batches, way->micro_batch, way->checkpoint,
        way->shard, way->remedies != NULL ? ", " : "", way->remedies != NULL ? way->remedies : "");
}

static void
add_way(LhOutcome *o, const char *name, const Way *way)
{
    LhEntry *entry;

    if (lh_outcome_entry(o, name) != NULL)
        return;
    entry = lh_outcome_add_entry(o, name, "ok");
    lh_entry_add_quantity(entry, LH_QUANTITY_WHOLE, "time", false, way->iteration_s);
    lh_entry_add_quantity(entry, LH_QUANTITY_WHOLE, "memory", true, way->peak_bytes);
}

/* Adds a configuration, or the fastest of a cluster, whichever it is. The latter is an entry of its
 * own, without memory, which depends on the configuration. */
static void
add_cluster(LhOutcome *o, const Cluster *cluster, bool best)
{
    g_autofree char *name = g_strdup_printf("fastest on %s", cluster->cluster);
    const bool decided = !cluster->interrupted;
    LhEntry *entry = lh_outcome_add_entry(o, name,
                                          cluster->best->len > 0 ? "ok"
                                          : decided              ? "nothing fits"
                                                                 : "not decided");

    entry->stands_for = true;
    if (cluster->best->len > 0)
        lh_entry_add_quantity(entry, LH_QUANTITY_WHOLE, "time", false,
                              g_array_index(cluster->best, Way, 0).iteration_s);
    for (guint i = 0; i < cluster->best->len; i++) {
        const Way *way = &g_array_index(cluster->best, Way, i);
        g_autofree char *text = way_name(cluster, way);

        add_way(o, text, way);
        if (best && i == 0)
            o->winner = g_strdup(text);
    }
}

/* Adds a number of every cluster, in order: "5e+10, 2.5e+10". */
static void
add_plan_numbers(LhOutcome *o, const char *field, const GArray *clusters, gsize offset)
{
    GString *text = g_string_new(NULL);
    char number[G_ASCII_DTOSTR_BUF_SIZE];

    for (guint i = 0; i < clusters->len; i++) {
        const char *at = (const char *)&g_array_index(clusters, Cluster, i) + offset;

        g_string_append_printf(text, "%s%s", i == 0 ? "" : ", ",
                               lh_double_to_text(*(const double *)(const void *)at, number));
    }
    lh_question_add(o->question, g_strdup(field), g_string_free(text, FALSE));
}

/* Plans written before link properties were recorded have none. */
static void
add_plan_links(LhOutcome *o, const LhJson *json, const GArray *clusters)
{
    GString *nics;

    if (!lh_json_has(json, "clusters[0].nics"))
        return;
    nics = g_string_new(NULL);
    for (guint i = 0; i < clusters->len; i++)
        g_string_append_printf(nics, "%s%" G_GUINT64_FORMAT, i == 0 ? "" : ", ",
                               g_array_index(clusters, Cluster, i).nics);
    lh_question_add(o->question, g_strdup("nics"), g_string_free(nics, FALSE));
    add_plan_numbers(o, "nic_bytes_per_s", clusters, offsetof(Cluster, nic_rate));
    add_plan_numbers(o, "nvlink_bytes_per_s", clusters, offsetof(Cluster, nvlink_rate));
    add_plan_numbers(o, "oversubscription", clusters, offsetof(Cluster, oversubscription));
}

/* Reads the case; the longest sequence length found is a result, not part of it. Plans are of
 * training steps. */
static bool
read_plan_case(LhOutcome *o, const LhJson *json, GError **error)
{
    static const char *const members[] = { "model",      "framework", "dtype", "global_batch_size",
                                           "seq_length", NULL };
    static const char *const of_longest[] = { "model", "framework", "dtype", "global_batch_size",
                                              NULL };

    o->question =
        lh_question_read(json, "", lh_json_has(json, "longest") ? of_longest : members, error);
    if (o->question != NULL)
        lh_question_add(o->question, g_strdup("step"), g_strdup("true"));
    return o->question != NULL;
}

bool
lh_outcome_read_plan(LhOutcome *o, const LhJson *json, GError **error)
{
    Plan p = { .best_cluster = NULL };
    bool ok = true;

    if (!read_plan_case(o, json, error) || !lh_json_decode(json, plan_fields, &p, true, error))
        return false;
    o->partial = p.interrupted;
    add_plan_links(o, json, p.clusters);
    for (guint i = 0; i < p.clusters->len && ok; i++) {
        const Cluster *cluster = &g_array_index(p.clusters, Cluster, i);
        g_autofree char *name = g_strdup_printf("fastest on %s", cluster->cluster);
        g_autofree char *path = g_strdup_printf("clusters[%u].cluster", i);

        if (lh_outcome_entry(o, name) != NULL)
            ok = lh_json_error(json, path, error, "duplicate cluster \"%s\"", cluster->cluster);
        else
            add_cluster(o, cluster, g_strcmp0(cluster->cluster, p.best_cluster) == 0);
    }
    lh_json_clear(plan_fields, &p);
    return ok;
}
