#include "report/data/diff.h"

#include "base/error.h"
#include "base/json/json.h"

#include <math.h>
#include <string.h>

const char *const lh_quantity_names[] = { "whole",    "part",  "traffic", "memory",
                                          "resource", "phase", "call",    NULL };

/* --- building -----------------------------------------------------------------------------------
 */

static void
quantity_clear(gpointer data)
{
    g_free(((LhQuantity *)data)->name);
}

static void
entry_free(gpointer data)
{
    LhEntry *entry = data;

    g_free(entry->name);
    g_free(entry->state);
    g_array_unref(entry->quantities);
    g_free(entry);
}

static LhEntry *
add_entry(LhOutcome *o, const char *name, const char *state)
{
    LhEntry *entry = g_new0(LhEntry, 1);

    entry->name = g_strdup(name);
    entry->state = g_strdup(state);
    entry->quantities = g_array_new(FALSE, FALSE, sizeof(LhQuantity));
    g_array_set_clear_func(entry->quantities, quantity_clear);
    g_ptr_array_add(o->entries, entry);
    return entry;
}

/* Nothing, if there is no value. */
static void
add_quantity(LhEntry *entry, LhQuantityKind kind, const char *name, bool bytes, double value)
{
    const LhQuantity q = { .name = g_strdup(name),
                           .kind = (uint8_t)kind,
                           .bytes = bytes,
                           .gate = kind == LH_QUANTITY_WHOLE,
                           .value = value };

    if (isnan(value)) {
        g_free(q.name);
        return;
    }
    g_array_append_val(entry->quantities, q);
}

/* --- what a result is ---------------------------------------------------------------------------
 */

/* What is computed with of the case; all of it is compared as query_stamp.h says. */
typedef struct {
    uint64_t ranks;
} CaseOf;

static const LhField case_fields[] = {
    { .name = "ranks",
      .type = LH_FIELD_UINT,
      .offset = offsetof(CaseOf, ranks),
      .flags = LH_FIELD_REQUIRED,
      .min = 1,
      .max = UINT32_MAX },
    { .name = NULL },
};

/* A number of a row that may be null: NAN then. */
#define NUMBER_OR_NULL(in, member, key)                                                            \
    {                                                                                              \
        .name = key, .type = LH_FIELD_DOUBLE, .offset = offsetof(in, member),                      \
        .flags = LH_FIELD_OR_NULL, .min = 0, .max = -1                                             \
    }
#define STRING(in, member, key)                                                                    \
    {                                                                                              \
        .name = key, .type = LH_FIELD_STRING, .offset = offsetof(in, member),                      \
        .flags = LH_FIELD_REQUIRED                                                                 \
    }

enum { PARTS = 7, SENT = 5 };

static const char *const part_names[PARTS] = { "compute",      "imbalance",   "exposed nvlink",
                                               "exposed pcie", "exposed nic", "exposed fabric",
                                               "host" };
static const char *const sent_names[SENT] = { "sent", "sent over nvlink", "sent over pcie",
                                              "sent over nic", "sent over fabric" };

typedef struct {
    double by_category[LH_CATEGORIES];
} Peak;

typedef struct {
    char *schedule, *state;
    double makespan_s, parts_s[PARTS], sent[SENT], peak_bytes;
    Peak peak;
    bool has_peak;
} ResultRow;

static void
row_init(void *data)
{
    ResultRow *row = data;

    *row = (ResultRow){ .makespan_s = NAN, .peak_bytes = NAN };
    for (int i = 0; i < PARTS; i++)
        row->parts_s[i] = NAN;
    for (int i = 0; i < SENT; i++)
        row->sent[i] = NAN;
}

static const LhField result_row_fields[] = {
    STRING(ResultRow, schedule, "schedule"),
    STRING(ResultRow, state, "state"),
    NUMBER_OR_NULL(ResultRow, makespan_s, "makespan_s"),
    NUMBER_OR_NULL(ResultRow, parts_s[0], "compute_sum_s"),
    NUMBER_OR_NULL(ResultRow, parts_s[1], "imbalance_sum_s"),
    NUMBER_OR_NULL(ResultRow, parts_s[2], "exposed_nvlink_sum_s"),
    NUMBER_OR_NULL(ResultRow, parts_s[3], "exposed_pcie_sum_s"),
    NUMBER_OR_NULL(ResultRow, parts_s[4], "exposed_nic_sum_s"),
    NUMBER_OR_NULL(ResultRow, parts_s[5], "exposed_fabric_sum_s"),
    NUMBER_OR_NULL(ResultRow, parts_s[6], "host_sum_s"),
    NUMBER_OR_NULL(ResultRow, sent[0], "sent_bytes_sum"),
    NUMBER_OR_NULL(ResultRow, sent[1], "sent_nvlink_bytes_sum"),
    NUMBER_OR_NULL(ResultRow, sent[2], "sent_pcie_bytes_sum"),
    NUMBER_OR_NULL(ResultRow, sent[3], "sent_nic_bytes_sum"),
    NUMBER_OR_NULL(ResultRow, sent[4], "sent_fabric_bytes_sum"),
    NUMBER_OR_NULL(ResultRow, peak_bytes, "peak_bytes_max"),
    { .name = NULL },
};

typedef struct {
    CaseOf of_case;
    char *winner;
    bool interrupted;
    GArray *rows; /* of ResultRow */
} Result;

static const LhField result_fields[] = {
    { .name = "case",
      .type = LH_FIELD_OBJECT,
      .offset = offsetof(Result, of_case),
      .flags = LH_FIELD_REQUIRED,
      .fields = case_fields },
    { .name = "winner",
      .type = LH_FIELD_STRING,
      .offset = offsetof(Result, winner),
      .flags = LH_FIELD_OR_NULL },
    { .name = "interrupted", .type = LH_FIELD_BOOL, .offset = offsetof(Result, interrupted) },
    { .name = "results",
      .type = LH_FIELD_ARRAY,
      .offset = offsetof(Result, rows),
      .flags = LH_FIELD_REQUIRED,
      .min = 1,
      .max = -1,
      .fields = result_row_fields,
      .element_size = sizeof(ResultRow),
      .element_init = row_init },
    { .name = NULL },
};

/* Documents of before "asked" show that they are of a step by what only steps have. */
static bool
read_case(LhOutcome *o, const LhJson *json, GError **error)
{
    o->question = lh_question_read(json, "case", NULL, error);
    if (o->question != NULL && !o->question->told &&
        lh_json_has(json, "case.tensor_model_parallel_size"))
        lh_question_give(o->question, "step", "true");
    return o->question != NULL;
}

/* Peak bytes of the row by category, of which a document has those that there are. */
static bool
add_categories(const LhJson *json, guint index, LhEntry *entry, GError **error)
{
    LhField fields[LH_CATEGORIES + 1] = { { .name = NULL } };
    g_autofree char *path = g_strdup_printf("results[%u].peak.by_category", index);
    GError *cause = NULL;
    Peak peak;

    for (int c = 0; c < LH_CATEGORIES; c++) {
        peak.by_category[c] = NAN;
        fields[c] = (LhField){ .name = lh_category_names[c],
                               .type = LH_FIELD_DOUBLE,
                               .offset = offsetof(Peak, by_category) + (gsize)c * sizeof(double),
                               .max = -1 };
    }
    if (!lh_json_decode_at(json, path, fields, &peak, true, &cause)) {
        if (cause == NULL)
            return true;
        g_propagate_error(error, cause);
        return false;
    }
    for (int c = 0; c < LH_CATEGORIES; c++)
        add_quantity(entry, LH_QUANTITY_MEMORY, lh_category_names[c], true, peak.by_category[c]);
    return true;
}

static bool
add_result_row(LhOutcome *o, const LhJson *json, const Result *r, guint index, GError **error)
{
    const ResultRow *row = &g_array_index(r->rows, ResultRow, index);
    const bool ran = strcmp(row->state, "ok") == 0 || strcmp(row->state, "unproven") == 0 ||
                     strcmp(row->state, "out-of-memory") == 0;
    g_autofree char *path =
        g_strdup_printf("results[%u].%s", index, ran ? "makespan_s" : "schedule");
    LhEntry *entry;

    if (lh_outcome_entry(o, row->schedule) != NULL)
        return lh_json_error(json, path, error, "schedule \"%s\" is there twice", row->schedule);
    if (ran && isnan(row->makespan_s))
        return lh_json_error(json, path, error, "\"%s\" ran, and its time is missing",
                             row->schedule);
    entry = add_entry(o, row->schedule, row->state);
    add_quantity(entry, LH_QUANTITY_WHOLE, "time", false, row->makespan_s);
    add_quantity(entry, LH_QUANTITY_WHOLE, "memory", true, row->peak_bytes);
    for (int i = 0; i < PARTS; i++)
        add_quantity(entry, LH_QUANTITY_PART, part_names[i], false,
                     row->parts_s[i] / (double)r->of_case.ranks);
    for (int i = 0; i < SENT; i++)
        add_quantity(entry, LH_QUANTITY_TRAFFIC, sent_names[i], true, row->sent[i]);
    return add_categories(json, index, entry, error);
}

static bool
read_result(LhOutcome *o, const LhJson *json, GError **error)
{
    Result r = { .rows = NULL };
    bool ok = true;

    if (!read_case(o, json, error) || !lh_json_decode(json, result_fields, &r, true, error))
        return false;
    o->winner = g_strdup(r.winner);
    o->partial = r.interrupted;
    for (guint i = 0; i < r.rows->len && ok; i++)
        ok = add_result_row(o, json, &r, i, error);
    lh_json_clear(result_fields, &r);
    return ok;
}

/* --- what a critical path is --------------------------------------------------------------------
 */

typedef struct {
    char *of, *name, *phase; /* of calls the last two, else the first */
    double path_s;
} Share;

static const LhField share_fields[] = {
    STRING(Share, of, "of"),
    NUMBER_OR_NULL(Share, path_s, "path_s"),
    { .name = NULL },
};

static const LhField call_fields[] = {
    STRING(Share, name, "name"),
    STRING(Share, phase, "phase"),
    NUMBER_OR_NULL(Share, path_s, "path_s"),
    { .name = NULL },
};

typedef struct {
    CaseOf of_case;
    char *schedule;
    double makespan_s;
    GArray *resources, *phases, *calls; /* of Share */
} Path;

#define SHARES(member, key, table)                                                                 \
    {                                                                                              \
        .name = key, .type = LH_FIELD_ARRAY, .offset = offsetof(Path, member),                     \
        .flags = LH_FIELD_REQUIRED, .fields = (table), .element_size = sizeof(Share)               \
    }

static const LhField path_fields[] = {
    { .name = "case",
      .type = LH_FIELD_OBJECT,
      .offset = offsetof(Path, of_case),
      .flags = LH_FIELD_REQUIRED,
      .fields = case_fields },
    STRING(Path, schedule, "schedule"),
    { .name = "makespan_s",
      .type = LH_FIELD_DOUBLE,
      .offset = offsetof(Path, makespan_s),
      .flags = LH_FIELD_REQUIRED,
      .max = -1 },
    SHARES(resources, "resources", share_fields),
    SHARES(phases, "phases", share_fields),
    SHARES(calls, "calls", call_fields),
    { .name = NULL },
};

static void
add_shares(LhEntry *entry, LhQuantityKind kind, const GArray *shares)
{
    for (guint i = 0; i < shares->len; i++) {
        const Share *share = &g_array_index(shares, Share, i);
        g_autofree char *name = share->of != NULL
                                    ? g_strdup(share->of)
                                    : g_strdup_printf("%s, %s", share->name, share->phase);

        add_quantity(entry, kind, name, false, share->path_s);
    }
}

static bool
read_path(LhOutcome *o, const LhJson *json, GError **error)
{
    Path p = { .schedule = NULL };
    LhEntry *entry;

    if (!read_case(o, json, error) || !lh_json_decode(json, path_fields, &p, true, error))
        return false;
    o->winner = g_strdup(p.schedule);
    entry = add_entry(o, p.schedule, "ok");
    add_quantity(entry, LH_QUANTITY_WHOLE, "time", false, p.makespan_s);
    add_shares(entry, LH_QUANTITY_RESOURCE, p.resources);
    add_shares(entry, LH_QUANTITY_PHASE, p.phases);
    add_shares(entry, LH_QUANTITY_CALL, p.calls);
    lh_json_clear(path_fields, &p);
    return true;
}

/* --- what a plan is -----------------------------------------------------------------------------
 */

typedef struct {
    char *schedule, *checkpoint, *shard, *pipeline_schedule;
    uint64_t tensor, context, data, pipeline, chunks, micro_batch, micro_batches;
    double iteration_s, peak_bytes;
} Way;

#define SIZE(member, key)                                                                          \
    {                                                                                              \
        .name = key, .type = LH_FIELD_UINT, .offset = offsetof(Way, member),                       \
        .flags = LH_FIELD_REQUIRED                                                                 \
    }

static const LhField way_fields[] = {
    STRING(Way, schedule, "schedule"),
    STRING(Way, checkpoint, "checkpoint"),
    STRING(Way, shard, "shard"),
    STRING(Way, pipeline_schedule, "pipeline_schedule"),
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
    STRING(Cluster, cluster, "cluster"),
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
    return g_strdup_printf("%s: %s, TP %" G_GUINT64_FORMAT ", CP %" G_GUINT64_FORMAT
                           ", DP %" G_GUINT64_FORMAT ", PP %" G_GUINT64_FORMAT
                           " x %" G_GUINT64_FORMAT " %s, %" G_GUINT64_FORMAT " x %" G_GUINT64_FORMAT
                           " sequences, %s, %s",
                           cluster->cluster, way->schedule, way->tensor, way->context, way->data,
                           way->pipeline, way->chunks, way->pipeline_schedule, way->micro_batches,
                           way->micro_batch, way->checkpoint, way->shard);
}

static void
add_way(LhOutcome *o, const char *name, const Way *way)
{
    LhEntry *entry;

    if (lh_outcome_entry(o, name) != NULL)
        return;
    entry = add_entry(o, name, "ok");
    add_quantity(entry, LH_QUANTITY_WHOLE, "time", false, way->iteration_s);
    add_quantity(entry, LH_QUANTITY_WHOLE, "memory", true, way->peak_bytes);
}

/* The fastest way on a cluster, whichever it is, is an entry of its own: memory is the way's. */
static void
add_cluster(LhOutcome *o, const Cluster *cluster, bool best)
{
    g_autofree char *name = g_strdup_printf("fastest on %s", cluster->cluster);
    const bool decided = !cluster->interrupted;
    LhEntry *entry = add_entry(o, name,
                               cluster->best->len > 0 ? "ok"
                               : decided              ? "nothing fits"
                                                      : "not decided");

    entry->stands_for = true;
    if (cluster->best->len > 0)
        add_quantity(entry, LH_QUANTITY_WHOLE, "time", false,
                     g_array_index(cluster->best, Way, 0).iteration_s);
    for (guint i = 0; i < cluster->best->len; i++) {
        const Way *way = &g_array_index(cluster->best, Way, i);
        g_autofree char *text = way_name(cluster, way);

        add_way(o, text, way);
        if (best && i == 0)
            o->winner = g_strdup(text);
    }
}

/* A number of every cluster, in their order: "5e+10, 2.5e+10". */
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

/* Plans of before the numbers of links were told have none. */
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

/* The length that was looked for is an answer. Plans are of steps. */
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

static bool
read_plan(LhOutcome *o, const LhJson *json, GError **error)
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
            ok =
                lh_json_error(json, path, error, "cluster \"%s\" is there twice", cluster->cluster);
        else
            add_cluster(o, cluster, g_strcmp0(cluster->cluster, p.best_cluster) == 0);
    }
    lh_json_clear(plan_fields, &p);
    return ok;
}

/* --- reading ------------------------------------------------------------------------------------
 */

typedef struct {
    const char *schema;
    const char *written_by;
    bool (*read)(LhOutcome *o, const LhJson *json, GError **error);
} DocumentKind;

static const DocumentKind document_kinds[] = {
    { LH_RESULT_SCHEMA, "sim and compare", read_result },
    { "longhaul.plan/1", "plan", read_plan },
    { "longhaul.path/1", "sim --critical-path", read_path },
};

typedef struct {
    char *version;
} Tool;

static const LhField tool_fields[] = {
    { .name = "version",
      .type = LH_FIELD_STRING,
      .offset = offsetof(Tool, version),
      .flags = LH_FIELD_REQUIRED },
    { .name = NULL },
};

typedef struct {
    char *schema;
    Tool tool;
} Head;

static const LhField head_fields[] = {
    STRING(Head, schema, "schema"),
    { .name = "tool",
      .type = LH_FIELD_OBJECT,
      .offset = offsetof(Head, tool),
      .flags = LH_FIELD_REQUIRED,
      .fields = tool_fields },
    { .name = NULL },
};

/* Up to the slash. */
static gsize
kind_length(const char *schema)
{
    return strcspn(schema, "/");
}

static const DocumentKind *
find_kind(const LhJson *json, const char *schema, GError **error)
{
    for (guint i = 0; i < G_N_ELEMENTS(document_kinds); i++)
        if (strcmp(document_kinds[i].schema, schema) == 0)
            return &document_kinds[i];
    for (guint i = 0; i < G_N_ELEMENTS(document_kinds); i++)
        if (kind_length(document_kinds[i].schema) == kind_length(schema) &&
            strncmp(document_kinds[i].schema, schema, kind_length(schema)) == 0) {
            lh_json_error(json, "schema", error,
                          "this is of another version, %s; this program reads %s", schema,
                          document_kinds[i].schema);
            return NULL;
        }
    lh_json_error(json, "schema", error,
                  "a %s cannot be compared; what sim, compare and plan write with --format json "
                  "can: " LH_RESULT_SCHEMA ", longhaul.plan/1, longhaul.path/1",
                  schema);
    return NULL;
}

double
lh_entry_time(const LhEntry *entry)
{
    const bool has = entry != NULL && entry->quantities->len > 0;

    return has ? g_array_index(entry->quantities, LhQuantity, 0).value : NAN;
}

static bool
ran(const LhEntry *entry)
{
    return (strcmp(entry->state, "ok") == 0 || strcmp(entry->state, "unproven") == 0) &&
           !isnan(lh_entry_time(entry));
}

/* Those that ran, by time; of equal ones the first. */
static void
set_places(LhOutcome *o)
{
    for (guint i = 0; i < o->entries->len; i++) {
        LhEntry *entry = g_ptr_array_index(o->entries, i);

        entry->place = ran(entry) && !entry->stands_for ? 1 : 0;
        for (guint k = 0; k < o->entries->len && entry->place > 0; k++) {
            const LhEntry *other = g_ptr_array_index(o->entries, k);

            if (ran(other) && !other->stands_for &&
                (lh_entry_time(other) < lh_entry_time(entry) ||
                 (lh_entry_time(other) <= lh_entry_time(entry) && k < i)))
                entry->place++;
        }
    }
}

static LhOutcome *
read_outcome(const char *path, const LhJson *json, GError **error)
{
    g_autoptr(LhOutcome) o = g_new0(LhOutcome, 1);
    Head head = { .schema = NULL };
    const DocumentKind *kind;
    bool ok;

    o->path = path;
    o->entries = g_ptr_array_new_with_free_func(entry_free);
    if (!lh_json_decode(json, head_fields, &head, true, error))
        return NULL;
    kind = find_kind(json, head.schema, error);
    ok = kind != NULL && kind->read(o, json, error);
    o->schema = g_strdup(head.schema);
    o->version = g_strdup(head.tool.version);
    o->sha256 = g_strdup(lh_json_sha256(json));
    lh_json_clear(head_fields, &head);
    if (!ok)
        return NULL;
    set_places(o);
    return g_steal_pointer(&o);
}

LhOutcome *
lh_outcome_load(const char *path, GError **error)
{
    g_autoptr(LhJson) json = lh_json_load(path, error);

    return json == NULL ? NULL : read_outcome(path, json, error);
}

void
lh_outcome_free(LhOutcome *o)
{
    if (o == NULL)
        return;
    g_ptr_array_unref(o->entries);
    lh_question_free(o->question);
    g_free(o->schema);
    g_free(o->version);
    g_free(o->sha256);
    g_free(o->winner);
    g_free(o);
}

const LhEntry *
lh_outcome_entry(const LhOutcome *o, const char *name)
{
    for (guint i = 0; i < o->entries->len; i++) {
        const LhEntry *entry = g_ptr_array_index(o->entries, i);

        if (strcmp(entry->name, name) == 0)
            return entry;
    }
    return NULL;
}

const LhQuantity *
lh_entry_quantity(const LhEntry *entry, const LhQuantity *like)
{
    for (guint i = 0; entry != NULL && i < entry->quantities->len; i++) {
        const LhQuantity *q = &g_array_index(entry->quantities, LhQuantity, i);

        if (q->kind == like->kind && strcmp(q->name, like->name) == 0)
            return q;
    }
    return NULL;
}

/* --- comparing ----------------------------------------------------------------------------------
 */

static void
add_regression(LhDiff *diff, const LhEntry *entry, const char *what, double a, double b)
{
    const LhRegression worse = { entry->name, what, a, b };

    g_array_append_val(diff->regressions, worse);
}

/* What ran has to run, and nothing that counts may grow by more than is tolerated. */
static void
find_regressions(LhDiff *diff, const LhEntry *a, const LhEntry *b)
{
    if (!ran(a))
        return;
    if (!ran(b)) {
        add_regression(diff, a, "time", lh_entry_time(a), NAN);
        return;
    }
    for (guint i = 0; i < a->quantities->len; i++) {
        const LhQuantity *before = &g_array_index(a->quantities, LhQuantity, i);
        const LhQuantity *after = lh_entry_quantity(b, before);

        if (before->gate && after != NULL && after->value > before->value * (1 + diff->tolerance))
            add_regression(diff, a, before->name, before->value, after->value);
    }
}

/* What an interrupted command has not looked at is no worse, and no better. */
static bool
check_partial(const LhOutcome *o, double tolerance, GError **error)
{
    if (!o->partial || tolerance < 0)
        return true;
    g_set_error(error, LH_ERROR, LH_ERROR_INPUT,
                "%s is of a command that was interrupted: whether anything is worse cannot be said "
                "of what was not looked at; leave out --tolerance, or let it end",
                o->path);
    return false;
}

LhDiff *
lh_diff_new(const LhOutcome *a, const LhOutcome *b, double tolerance, GError **error)
{
    LhDiff *diff;

    if (!check_partial(a, tolerance, error) || !check_partial(b, tolerance, error))
        return NULL;
    if (strcmp(a->schema, b->schema) != 0) {
        g_set_error(error, LH_ERROR, LH_ERROR_INPUT,
                    "%s is a %s and %s a %s; both must be of one kind", a->path, a->schema, b->path,
                    b->schema);
        return NULL;
    }
    diff = g_new0(LhDiff, 1);
    diff->a = a;
    diff->b = b;
    diff->tolerance = tolerance;
    diff->otherwise = lh_question_compare(a->question, b->question);
    diff->regressions = g_array_new(FALSE, FALSE, sizeof(LhRegression));
    for (guint i = 0; i < a->entries->len && tolerance >= 0; i++) {
        const LhEntry *before = g_ptr_array_index(a->entries, i);
        const LhEntry *after = lh_outcome_entry(b, before->name);

        if (after != NULL)
            find_regressions(diff, before, after);
    }
    return diff;
}

void
lh_diff_free(LhDiff *diff)
{
    if (diff == NULL)
        return;
    g_array_unref(diff->otherwise);
    g_array_unref(diff->regressions);
    g_free(diff);
}

GPtrArray *
lh_diff_names(const LhDiff *diff)
{
    GPtrArray *names = g_ptr_array_new();

    for (guint i = 0; i < diff->a->entries->len; i++)
        g_ptr_array_add(names, ((LhEntry *)g_ptr_array_index(diff->a->entries, i))->name);
    for (guint i = 0; i < diff->b->entries->len; i++) {
        const LhEntry *entry = g_ptr_array_index(diff->b->entries, i);

        if (lh_outcome_entry(diff->a, entry->name) == NULL)
            g_ptr_array_add(names, entry->name);
    }
    return names;
}

GPtrArray *
lh_diff_quantities(const LhEntry *a, const LhEntry *b)
{
    GPtrArray *all = g_ptr_array_new();

    for (guint i = 0; a != NULL && i < a->quantities->len; i++)
        g_ptr_array_add(all, &g_array_index(a->quantities, LhQuantity, i));
    for (guint i = 0; b != NULL && i < b->quantities->len; i++) {
        LhQuantity *q = &g_array_index(b->quantities, LhQuantity, i);

        if (lh_entry_quantity(a, q) == NULL)
            g_ptr_array_add(all, q);
    }
    return all;
}
