/* SPDX-License-Identifier: Apache-2.0 */
#include "report/data/plan_json.h"

#include "compare/error_bar.h"
#include "report/data/relief_fields.h"
#include "report/data/what_if_fields.h"

#include <string.h>

#define PLAN_SCHEMA "longhaul.plan/1"

/* ---- a cluster ---- */

typedef struct {
    uint64_t of_state[LH_POINT_STATES];
} Points;

static const LhField point_fields[] = {
    LH_FIELD_ROW(UINT, Points, of_state[LH_POINT_OPEN], "open", ALWAYS,
                 .description = "Not evaluated: the plan was interrupted."),
    LH_FIELD_ROW(UINT, Points, of_state[LH_POINT_RAN], "simulated", ALWAYS,
                 .description = "Simulated completely."),
    LH_FIELD_ROW(UINT, Points, of_state[LH_POINT_CUT], "cut", ALWAYS,
                 .description = "Pruned: their lower bound exceeds the best times."),
    LH_FIELD_ROW(UINT, Points, of_state[LH_POINT_UNFIT], "unfit", ALWAYS,
                 .description = "Out of memory."),
    LH_FIELD_ROW(UINT, Points, of_state[LH_POINT_REFUSED], "refused", ALWAYS,
                 .description = "Refused: not a valid step."),
    LH_FIELD_ROW(UINT, Points, of_state[LH_POINT_FAILED], "failed", ALWAYS,
                 .description = "Failed, because of a failed link."),
    { .name = NULL },
};

typedef struct {
    uint64_t points;
    char *reason;
} Refusal;

static const LhField refusal_fields[] = {
    LH_FIELD_ROW(UINT, Refusal, points, "points", ALWAYS,
                 .description = "Number of configurations."),
    LH_FIELD_ROW(STRING, Refusal, reason, "reason", ALWAYS,
                 .description = "Reason of the first of them; the others differ in numbers."),
    { .name = NULL },
};

typedef struct {
    char *way;
    uint64_t peak_bytes;
    LhPeakBarValues bar;
    uint64_t usable_bytes;
} Miss;

static const LhField miss_fields[] = {
    LH_FIELD_ROW(STRING, Miss, way, "way", ALWAYS, .description = "The configuration."),
    LH_FIELD_ROW(UINT, Miss, peak_bytes, "peak_bytes", ALWAYS,
                 .description = "Peak memory of a rank."),
    LH_PEAK_BAR_ROWS(Miss, bar),
    LH_FIELD_ROW(UINT, Miss, usable_bytes, "usable_bytes", ALWAYS,
                 .description = "Memory available to a rank."),
    { .name = NULL },
};

static const LhField start_fields[] = {
    LH_FIELD_ROW(STRING, LhBaselineConfig, way, "way", OR_NULL,
                 .description =
                     "The configuration read from the file; null: it is for other GPUs."),
    LH_FIELD_ROW(STRING, LhBaselineConfig, refusal, "refused", OR_NULL,
                 .description = "Why it is not a valid step; null: it is."),
    LH_FIELD_ROW(BOOL, LhBaselineConfig, fits, "fits", ALWAYS,
                 .description = "Whether it fits in memory."),
    LH_FIELD_ROW(DOUBLE, LhBaselineConfig, iteration_s, "iteration_s", ALWAYS, .max = -1,
                 .description = "Time of a step; if it does not fit, with enough memory assumed."),
    LH_FIELD_ROW(UINT, LhBaselineConfig, peak_bytes, "peak_bytes", ALWAYS,
                 .description = "Peak memory of a rank."),
    { .name = NULL },
};

static const LhField word_fields[] = {
    LH_FIELD_ROW(STRING, LhConfigWord, line, "line", ALWAYS,
                 .description = "The setting as written in such a file."),
    LH_FIELD_ROW(STRING, LhConfigWord, was, "was", OR_NULL,
                 .description = "Its current line; null: the same, or none."),
    LH_FIELD_ROW(BOOL, LhConfigWord, added, "added", ALWAYS,
                 .description = "The setting is missing now."),
    LH_FIELD_ROW(BOOL, LhConfigWord, take_out, "take_out", ALWAYS,
                 .description = "The line must be removed."),
    { .name = NULL },
};

/* What has to be turned on. */
typedef struct {
    char *options, *words;
    uint64_t before_bytes, after_bytes;
    int largest;
    uint64_t largest_bytes;
    double lost_s; /* nocheck:unit: seconds */
} FitStep;

static const LhField fit_step_fields[] = {
    LH_FIELD_ROW(STRING, FitStep, options, "options", ALWAYS, .description = "As options."),
    LH_FIELD_ROW(STRING, FitStep, words, "words", ALWAYS,
                 .description = "In the framework's words."),
    LH_FIELD_ROW(UINT, FitStep, before_bytes, "peak_bytes_before", ALWAYS,
                 .description = "Peak memory of a rank before it."),
    LH_FIELD_ROW(CHOICE, FitStep, largest, "largest", ALWAYS, .choices = lh_category_names,
                 .description = "Largest category of that peak."),
    LH_FIELD_ROW(UINT, FitStep, largest_bytes, "largest_bytes", ALWAYS,
                 .description = "Bytes of that category."),
    LH_FIELD_ROW(UINT, FitStep, after_bytes, "peak_bytes_after", ALWAYS,
                 .description = "Peak memory of a rank after it."),
    LH_FIELD_ROW(DOUBLE, FitStep, lost_s, "lost_s", ALWAYS, .min = -1e18, .max = 1e18,
                 .description = "Time that a step takes longer; negative: less."),
    { .name = NULL },
};

typedef struct {
    char *way;
    bool fits;
    uint64_t peak_bytes, usable_bytes;
    double iteration_s;
    GArray *steps; /* of FitStep */
} Fit;

static const LhField fit_fields[] = {
    LH_FIELD_ROW(STRING, Fit, way, "way", ALWAYS,
                 .description = "The configuration: the fastest; if none fits, that closest to "
                                "fitting, with all that it can turn on."),
    LH_FIELD_ROW(BOOL, Fit, fits, "fits", ALWAYS, .description = "Whether it fits in the end."),
    LH_FIELD_ROW(UINT, Fit, peak_bytes, "peak_bytes", ALWAYS,
                 .description = "Peak memory of a rank as it is."),
    LH_FIELD_ROW(UINT, Fit, usable_bytes, "usable_bytes", ALWAYS,
                 .description = "Memory available to a rank."),
    LH_FIELD_ROW(DOUBLE, Fit, iteration_s, "iteration_s", ALWAYS, .max = -1,
                 .description = "Time of a step as it is, with enough memory assumed."),
    LH_FIELD_ROW(ARRAY, Fit, steps, "turn_on", ALWAYS, .fields = fit_step_fields,
                 .element_size = sizeof(FitStep),
                 .description = "What has to be turned on, in the order of bytes freed for a "
                                "second lost; empty: nothing."),
    { .name = NULL },
};

typedef struct {
    char *cluster, *device;
    LhLinkValues links;
    uint64_t gpus;
    bool interrupted;
    Points points;
    GArray *best, *front;          /* of LhPlanWayValues */
    GArray *what_ifs;              /* of LhWhatIfValues */
    GArray *refused, *misses;      /* of Refusal, of Miss */
    Fit *fit;                      /* owned; NULL: none */
    const LhReliefs *reliefs;      /* borrowed; NULL: none */
    const LhBaselineConfig *start; /* likewise */
    GPtrArray *words;              /* of LhConfigWord *; NULL: there is no configuration */
} Cluster;

static const LhField cluster_fields[] = {
    LH_FIELD_ROW(STRING, Cluster, cluster, "cluster", ALWAYS, .description = "Topology and nodes."),
    LH_FIELD_ROW(STRING, Cluster, device, "device", ALWAYS, .description = "The GPU."),
    LH_LINK_ROWS(Cluster, links),
    LH_FIELD_ROW(UINT, Cluster, gpus, "gpus", ALWAYS, .description = "GPUs of the cluster."),
    LH_FIELD_ROW(
        BOOL, Cluster, interrupted, "interrupted", ALWAYS,
        .description =
            "Interrupted before the cluster was decided: configurations that were not evaluated "
            "may be faster, or the only ones that run. Absent in plans of earlier versions."),
    LH_FIELD_ROW(OBJECT, Cluster, points, "points", ALWAYS, .fields = point_fields,
                 .description = "Numbers of configurations by outcome."),
    LH_FIELD_ROW(ARRAY, Cluster, best, "best", ALWAYS, .fields = lh_plan_way_fields,
                 .element_size = sizeof(LhPlanWayValues),
                 .description = "The fastest configurations, by time."),
    LH_FIELD_ROW(ARRAY, Cluster, front, "front", ALWAYS, .fields = lh_plan_way_fields,
                 .element_size = sizeof(LhPlanWayValues),
                 .description = "With --pareto, configurations that no other one beats in both "
                                "time and memory, by time."),
    LH_FIELD_ROW(
        ARRAY, Cluster, what_ifs, "best_with_10_percent_more", ALWAYS,
        .fields = lh_what_if_share_fields, .element_size = sizeof(LhWhatIfValues),
        .description =
            "The fastest configuration with each resource 10 % faster; the bottleneck first."),
    LH_FIELD_ROW(ARRAY, Cluster, refused, "refused", ALWAYS, .fields = refusal_fields,
                 .element_size = sizeof(Refusal),
                 .description = "Refused configurations by reason."),
    LH_FIELD_ROW(ARRAY, Cluster, misses, "nearest_misses", ALWAYS, .fields = miss_fields,
                 .element_size = sizeof(Miss),
                 .description = "Configurations closest to fitting in memory."),
    LH_RELIEF_ROW(Cluster, reliefs),
    LH_FIELD_ROW(POINTER, Cluster, fit, "fit", IF_ANY, .fields = fit_fields,
                 .description = "With --fit, or if nothing fits as it is: what has to be turned "
                                "on."),
    LH_FIELD_ROW(POINTER, Cluster, start, "as_configured", IF_ANY, .fields = start_fields,
                 .description = "The file's own configuration."),
    LH_FIELD_ROW(POINTERS, Cluster, words, "best_in_words", IF_ANY, .fields = word_fields,
                 .description = "The fastest configuration as settings of the file."),
    { .name = NULL },
};

static Points
count_points(const LhPlanSearch *search)
{
    Points points = { { 0 } };

    for (int state = 0; search != NULL && state < LH_POINT_STATES; state++)
        points.of_state[state] = search->counts[state];
    return points;
}

static GArray *
find_refusals(const LhPlanSearch *search)
{
    g_autoptr(GPtrArray) families = search != NULL ? lh_plan_refusals(search) : NULL;
    GArray *refusals = g_array_new(FALSE, FALSE, sizeof(Refusal));

    for (guint i = 0; families != NULL && i < families->len; i++) {
        const LhPlanFamily *family = g_ptr_array_index(families, i);
        const Refusal refusal = { family->points, g_strdup(family->reason) };

        g_array_append_val(refusals, refusal);
    }
    return refusals;
}

static GArray *
find_misses(const LhPlanSearch *search)
{
    GArray *misses = g_array_new(FALSE, FALSE, sizeof(Miss));

    for (guint i = 0; search != NULL && i < search->misses->len; i++) {
        const guint point = g_array_index(search->misses, guint, i);
        const uint64_t peak_bytes = search->outcomes[point].peak_bytes;
        const Miss miss = {
            .way = lh_plan_point_text(search->space, point),
            .peak_bytes = peak_bytes,
            .bar = lh_peak_bar_values(peak_bytes, lh_memory_error(search->space->setup)),
            .usable_bytes = search->limit_bytes,
        };

        g_array_append_val(misses, miss);
    }
    return misses;
}

/* Place of a point among the fastest configurations (ties included), from 1; 0: not among them. */
static guint
place_of(const LhPlanCluster *cluster, guint point)
{
    for (guint i = 0; i < cluster->ways->len; i++) {
        if (((const LhPlanWay *)g_ptr_array_index(cluster->ways, i))->point == point)
            return i + 1;
    }
    return 0;
}

/* Sources of a document. */
typedef struct {
    const LhPlanQuery *query;
    const LhPlanAnswer *answer;
    const LhPlanWeights *weights;
} Plan;

static GArray *
find_best(const Plan *plan, guint index)
{
    const LhPlanCluster *cluster = lh_plan_cluster_at(plan->answer, index);
    GArray *ways = g_array_new(FALSE, FALSE, sizeof(LhPlanWayValues));

    for (guint i = 0; i < cluster->ways->len; i++) {
        const LhPlanWayValues way = lh_plan_way_values(plan->answer, plan->weights, index,
                                                       g_ptr_array_index(cluster->ways, i), i + 1);

        g_array_append_val(ways, way);
    }
    return ways;
}

static GArray *
find_front(const Plan *plan, guint index)
{
    const LhPlanCluster *cluster = lh_plan_cluster_at(plan->answer, index);
    g_autoptr(GArray) front = lh_plan_front(cluster);
    GArray *ways = g_array_new(FALSE, FALSE, sizeof(LhPlanWayValues));

    for (guint i = 0; plan->query->front && i < front->len; i++) {
        const LhPlanWay *of = &g_array_index(front, LhPlanWay, i);
        const LhPlanWayValues way = lh_plan_way_values(plan->answer, plan->weights, index, of,
                                                       place_of(cluster, of->point));

        g_array_append_val(ways, way);
    }
    return ways;
}

/* Reads the file's own configuration and the fastest as its settings. */
static void
fill_start(Cluster *c, const Plan *plan, const LhPlanCluster *cluster)
{
    const LhPlanWay *best = lh_plan_best_way(cluster);

    if (cluster->start == NULL)
        return;
    c->start = cluster->start;
    c->words = best != NULL ? lh_plan_words(plan->query->config, cluster->space, best->point)
                            : g_ptr_array_new();
}

/* Caller frees. */
static Fit *
make_fit(const LhPlanCluster *cluster)
{
    const LhPlanFit *of = cluster->fit;
    const LhPlanPoint *point;
    Fit *fit;

    if (of == NULL)
        return NULL;
    point = lh_plan_point(cluster->space, of->point);
    fit = g_new(Fit, 1);
    *fit = (Fit){ .way = lh_plan_point_text(cluster->space, of->point),
                  .fits = of->fits,
                  .peak_bytes = of->peak.bytes,
                  .usable_bytes = of->limit_bytes,
                  .iteration_s = of->as_is_s,
                  .steps = g_array_new(FALSE, FALSE, sizeof(FitStep)) };
    for (guint i = 0; i < of->steps->len; i++) {
        const LhFitStep *step = &g_array_index(of->steps, LhFitStep, i);
        const int largest = lh_fit_largest(&step->before);
        const LhSetup *setup = lh_plan_shape(cluster->space, point)->setup;
        const FitStep said = { .options = lh_remedies_options(&step->adds),
                               .words = lh_remedies_words(&step->adds, setup->framework),
                               .before_bytes = step->before.bytes,
                               .largest = largest,
                               .largest_bytes = step->before.by_category[largest],
                               .after_bytes = step->after.bytes,
                               .lost_s = step->lost_s };

        g_array_append_val(fit->steps, said);
    }
    return fit;
}

static Cluster
make_cluster(const Plan *plan, guint index)
{
    const LhPlanCluster *cluster = lh_plan_cluster_at(plan->answer, index);
    const LhSetup *setup = cluster->space->setup;
    Cluster c = {
        .cluster = g_strdup(cluster->space->cluster),
        .device = g_strdup(setup->device->name),
        .links = lh_link_values(setup->topology),
        .gpus = cluster->space->gpus,
        .interrupted = cluster->interrupted,
        .points = count_points(cluster->search),
        .best = find_best(plan, index),
        .front = find_front(plan, index),
        .what_ifs = lh_what_if_values(setup->topology, cluster->bound),
        .refused = find_refusals(cluster->search),
        .misses = find_misses(cluster->search),
        .reliefs = cluster->reliefs,
        .fit = make_fit(cluster),
    };

    fill_start(&c, plan, cluster);
    return c;
}

/* ---- the longest sequence, and the configuration ---- */

static const LhField longest_fields[] = {
    LH_FIELD_ROW(UINT, LhPlanLongest, tokens, "seq_length", ALWAYS, .description = "Tokens."),
    LH_FIELD_ROW(UINT, LhPlanLongest, unit, "unit", ALWAYS,
                 .description = "The length is a multiple of this."),
    LH_FIELD_ROW(UINT, LhPlanLongest, fits.peak_bytes, "peak_bytes", ALWAYS,
                 .description = "Peak memory of a rank."),
    LH_FIELD_ROW(UINT, LhPlanLongest, fits.limit_bytes, "usable_bytes", ALWAYS,
                 .description = "Memory available to a rank."),
    LH_FIELD_ROW(UINT, LhPlanLongest, beyond.peak_bytes, "peak_bytes_of_unit_more", ALWAYS,
                 .description = "Peak memory with a sequence longer by the unit."),
    LH_FIELD_ROW(COUNTS, LhPlanLongest, fits.by_category, "peak_by_category", ALWAYS,
                 .choices = lh_category_names, .description = "Parts of peak_bytes by category."),
    { .name = NULL },
};

typedef struct {
    char *file, *sha256, *system;
    uint64_t read, without_effect;
    GPtrArray *as_the_framework, *not_understood, *warnings;
} Configuration;

static const LhField configuration_fields[] = {
    LH_FIELD_ROW(STRING, Configuration, file, "file", ALWAYS, .description = "The file."),
    LH_FIELD_ROW(STRING, Configuration, sha256, "sha256", ALWAYS,
                 .description = "SHA-256 of the file."),
    LH_FIELD_ROW(STRING, Configuration, system, "system", ALWAYS,
                 .description = "Training system that reads it."),
    LH_FIELD_ROW(UINT, Configuration, read, "read", ALWAYS,
                 .description = "Settings that are read."),
    LH_FIELD_ROW(UINT, Configuration, without_effect, "without_effect", ALWAYS,
                 .description = "Settings that do not affect the prediction."),
    LH_FIELD_ROW(STRINGS, Configuration, as_the_framework, "as_the_framework", ALWAYS,
                 .description =
                     "Settings that are understood, and as the framework's file has them."),
    LH_FIELD_ROW(STRINGS, Configuration, not_understood, "not_understood", ALWAYS,
                 .description = "Settings that are ignored."),
    LH_FIELD_ROW(STRINGS, Configuration, warnings, "warnings", ALWAYS,
                 .description = "Mistakes and unpredicted settings, with their places."),
    { .name = NULL },
};

/* Caller frees. */
static GPtrArray *
paths_of(const GPtrArray *entries)
{
    GPtrArray *paths = g_ptr_array_new_with_free_func(g_free);

    for (guint i = 0; i < entries->len; i++)
        g_ptr_array_add(paths,
                        g_strdup(((const LhSettingsEntry *)g_ptr_array_index(entries, i))->path));
    return paths;
}

static Configuration
make_configuration(const LhConfig *config)
{
    return (Configuration){
        .file = g_strdup(config->entries->file),
        .sha256 = g_strdup(config->entries->sha256),
        .system = g_strdup(lh_config_system_name(config)),
        .read = config->read,
        .without_effect = config->without_effect,
        .as_the_framework = paths_of(config->elsewhere),
        .not_understood = paths_of(config->unknown),
        .warnings = g_ptr_array_ref(config->notes),
    };
}

/* ---- the document ---- */

static bool
has_input(const GPtrArray *inputs, const LhInput *input)
{
    for (guint i = 0; i < inputs->len; i++) {
        const LhInput *other = g_ptr_array_index(inputs, i);

        if (strcmp(other->of, input->of) == 0 && strcmp(other->path, input->path) == 0)
            return true;
    }
    return false;
}

/* Inputs of all clusters, without duplicates: of LhInput *, borrowed. Caller unrefs. */
static GPtrArray *
inputs_of_clusters(const LhPlanAnswer *answer)
{
    GPtrArray *all = g_ptr_array_new();

    for (guint i = 0; i < answer->clusters->len; i++) {
        const LhPlanCluster *cluster = g_ptr_array_index(answer->clusters, i);
        const GPtrArray *inputs = cluster->space->setup->inputs;

        for (guint k = 0; k < inputs->len; k++) {
            LhInput *input = g_ptr_array_index(inputs, k);

            if (!has_input(all, input))
                g_ptr_array_add(all, input);
        }
    }
    return all;
}

typedef struct {
    LhDocumentHead head;
    char *query_sha256, *model, *framework;
    uint64_t seq_length, global_batch_size;
    int dtype;
    bool interrupted;
    char *best_cluster;
    const LhPlanLongest *longest;       /* borrowed */
    const Configuration *configuration; /* NULL: none; borrowed */
    GArray *clusters;                   /* of Cluster */
} PlanDocument;

static const char *const plan_schema[] = { PLAN_SCHEMA, NULL };

const LhField lh_plan_fields[] = {
    LH_DOCUMENT_HEAD_OF_SETUP(PlanDocument, head, plan_schema),
    LH_DOCUMENT_ASKED(PlanDocument, head),
    LH_FIELD_ROW(STRING, PlanDocument, query_sha256, "query_sha256", OR_NULL,
                 .description = "SHA-256 of the query and all inputs; points files begin with it. "
                                "Null if the plan was interrupted before it was known."),
    LH_FIELD_ROW(STRING, PlanDocument, model, "model", ALWAYS, .description = "Name of the model."),
    LH_FIELD_ROW(STRING, PlanDocument, framework, "framework", ALWAYS,
                 .description = "Training framework of the steps."),
    LH_FIELD_ROW(UINT, PlanDocument, seq_length, "seq_length", ALWAYS,
                 .description = "Tokens of a sequence."),
    LH_FIELD_ROW(UINT, PlanDocument, global_batch_size, "global_batch_size", ALWAYS,
                 .description = "Sequences per step."),
    LH_FIELD_ROW(CHOICE, PlanDocument, dtype, "dtype", ALWAYS, .choices = lh_activation_names,
                 .description = "Element type of activations."),
    LH_FIELD_ROW(BOOL, PlanDocument, interrupted, "interrupted", ALWAYS,
                 .description = "Whether the plan was interrupted; then a configuration that was "
                                "not evaluated may be faster."),
    LH_FIELD_ROW(STRING, PlanDocument, best_cluster, "best_cluster", OR_NULL,
                 .description = "Cluster with the most tokens per second; null: nothing fits."),
    LH_FIELD_ROW(POINTER, PlanDocument, longest, "longest", OR_NULL, .fields = longest_fields,
                 .description = "With --max-seq-length, the longest sequence; else null."),
    LH_FIELD_ROW(POINTER, PlanDocument, configuration, "configuration", IF_ANY,
                 .fields = configuration_fields,
                 .description = "The configuration given by --from-config."),
    LH_FIELD_ROW(ARRAY, PlanDocument, clusters, "clusters", ALWAYS, .fields = cluster_fields,
                 .element_size = sizeof(Cluster),
                 .description = "The clusters, in the order of the query."),
    { .name = NULL },
};

static GArray *
make_clusters(const Plan *plan)
{
    GArray *clusters = g_array_new(FALSE, FALSE, sizeof(Cluster));

    for (guint i = 0; i < plan->answer->clusters->len; i++) {
        const Cluster cluster = make_cluster(plan, i);

        g_array_append_val(clusters, cluster);
    }
    return clusters;
}

static PlanDocument
make_document(const Plan *plan, const LhStamp *stamp)
{
    const LhPlanAnswer *answer = plan->answer;
    const LhPlanSpace *space = lh_plan_cluster_at(answer, 0)->space;
    const LhAttention *a = &space->setup->params.attention;
    const LhPlanCluster *best =
        answer->best != G_MAXUINT ? lh_plan_cluster_at(answer, answer->best) : NULL;

    return (PlanDocument){
        .head = lh_document_head(plan_schema[0], stamp, space->setup),
        .query_sha256 = g_strdup(answer->query_sha256),
        .model = g_strdup(space->setup->model->name),
        .framework = g_strdup(space->frameworks),
        .seq_length = a->seq_length,
        .global_batch_size = plan->query->sequences,
        .dtype = (int)a->dtype,
        .interrupted = answer->interrupted,
        .best_cluster = best != NULL ? g_strdup(best->space->cluster) : NULL,
        .longest = answer->longest.tokens > 0 ? &answer->longest : NULL,
        .clusters = make_clusters(plan),
    };
}

static void
document_clear(PlanDocument *document)
{
    for (guint i = 0; i < document->clusters->len; i++) {
        Cluster *cluster = &g_array_index(document->clusters, Cluster, i);

        g_clear_pointer(&cluster->words, g_ptr_array_unref);
        if (cluster->fit != NULL)
            lh_json_clear(fit_fields, cluster->fit);
        g_clear_pointer(&cluster->fit, g_free);
    }
    lh_json_clear(lh_plan_fields, document);
    lh_document_head_clear(&document->head);
}

void
lh_plan_json(const LhPlanQuery *query, const LhPlanAnswer *answer, const LhPlanWeights *weights,
             const LhStamp *stamp, GString *out)
{
    const Plan plan = { query, answer, weights };
    g_autoptr(GPtrArray) inputs = inputs_of_clusters(answer);
    Configuration configuration;
    LhStamp of_all = *stamp;
    PlanDocument document;

    of_all.inputs = inputs;
    document = make_document(&plan, &of_all);
    if (query->config != NULL) {
        configuration = make_configuration(query->config);
        document.configuration = &configuration;
    }
    lh_json_encode_text(lh_plan_fields, &document, out);
    if (query->config != NULL)
        lh_json_clear(configuration_fields, &configuration);
    document_clear(&document);
}
