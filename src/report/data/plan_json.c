/* SPDX-License-Identifier: Apache-2.0 */
/* longhaul.plan/1: schemas/plan.schema.json. */
#include "report/data/plan_json.h"

#include "compare/error_bar.h"
#include "report/data/document.h"
#include "report/data/relief_json.h"
#include "report/data/result_values.h"

#include <string.h>

#define PLAN_SCHEMA "longhaul.plan/1"

static void
write_way(LhJsonWriter *w, LhRecord *values)
{
    lh_jsonw_object_begin(w, NULL);
    lh_record_json(values, w);
    lh_jsonw_object_end(w);
    lh_record_free(values);
}

static void
write_counts(LhJsonWriter *w, const LhPlanCluster *cluster)
{
    lh_jsonw_object_begin(w, "points");
    for (int state = 0; state < LH_POINT_STATES; state++)
        lh_jsonw_uint(w, lh_point_state_names[state],
                      cluster->search != NULL ? cluster->search->counts[state] : 0);
    lh_jsonw_object_end(w);
}

static void
write_refusals(LhJsonWriter *w, const LhPlanCluster *cluster)
{
    g_autoptr(GPtrArray) families =
        cluster->search != NULL ? lh_plan_refusals(cluster->search) : NULL;

    lh_jsonw_array_begin(w, "refused");
    for (guint i = 0; families != NULL && i < families->len; i++) {
        const LhPlanFamily *family = g_ptr_array_index(families, i);

        lh_jsonw_object_begin(w, NULL);
        lh_jsonw_uint(w, "points", family->points);
        lh_jsonw_string(w, "reason", family->reason);
        lh_jsonw_object_end(w);
    }
    lh_jsonw_array_end(w);
}

static void
write_misses(LhJsonWriter *w, const LhPlanCluster *cluster)
{
    const LhPlanSearch *search = cluster->search;

    lh_jsonw_array_begin(w, "nearest_misses");
    for (guint i = 0; search != NULL && i < search->misses->len; i++) {
        const guint point = g_array_index(search->misses, guint, i);
        const uint64_t peak_bytes = search->outcomes[point].peak_bytes;
        g_autofree char *way = lh_plan_point_text(search->space, point);
        LhRecord *values = lh_record_new();

        lh_record_text(values, "way", way);
        lh_record_integer(values, "peak_bytes", peak_bytes);
        lh_add_peak_bar(values, peak_bytes, lh_memory_error(search->space->setup));
        lh_record_integer(values, "usable_bytes", search->limit_bytes);
        write_way(w, values);
    }
    lh_jsonw_array_end(w);
}

/* What binds the fastest way first. */
static void
write_bound(LhJsonWriter *w, const LhSetup *setup, const LhBottleneck *bound)
{
    lh_jsonw_array_begin(w, "best_with_10_percent_more");
    for (guint i = 0; bound != NULL && i < bound->what_ifs->len; i++) {
        const LhWhatIf *what_if = &g_array_index(bound->what_ifs, LhWhatIf, i);
        const double makespan_ps = (double)MAX(bound->makespan_ps, 1);
        g_autofree char *name = lh_resource_name(what_if->kind, what_if->tiers);

        lh_jsonw_object_begin(w, NULL);
        lh_jsonw_string(w, "of", name);
        lh_jsonw_double(w, "critical_path_fraction", (double)what_if->path_ps / makespan_ps);
        lh_jsonw_double(w, "saved_fraction",
                        (double)(bound->makespan_ps - what_if->makespan_ps) / makespan_ps);
        lh_what_if_more_json(w, setup->topology, what_if);
        lh_jsonw_object_end(w);
    }
    lh_jsonw_array_end(w);
}

/* A way is also among the wanted ones if it is as fast as they are. */
static guint
place_of(const LhPlanCluster *cluster, guint point)
{
    for (guint i = 0; i < cluster->ways->len; i++) {
        if (((const LhPlanWay *)g_ptr_array_index(cluster->ways, i))->point == point)
            return i + 1;
    }
    return 0;
}

/* How the configuration says to train, and the fastest way in its words. */
static void
write_start(LhJsonWriter *w, const LhPlanQuery *query, const LhPlanCluster *cluster)
{
    const LhBaselineConfig *start = cluster->start;
    const LhPlanWay *best = lh_plan_best_way(cluster);
    g_autoptr(GPtrArray) words =
        best != NULL ? lh_plan_words(query->config, cluster->space, best->point) : NULL;

    lh_jsonw_object_begin(w, "as_configured");
    lh_jsonw_string(w, "way", start->way);
    lh_jsonw_string(w, "refused", start->refusal);
    lh_jsonw_bool(w, "fits", start->fits);
    lh_jsonw_double(w, "iteration_s", start->iteration_s);
    lh_jsonw_uint(w, "peak_bytes", start->peak_bytes);
    lh_jsonw_object_end(w);
    lh_jsonw_array_begin(w, "best_in_words");
    for (guint i = 0; words != NULL && i < words->len; i++) {
        const LhConfigWord *word = g_ptr_array_index(words, i);

        lh_jsonw_object_begin(w, NULL);
        lh_jsonw_string(w, "line", word->line);
        lh_jsonw_string(w, "was", word->was);
        lh_jsonw_bool(w, "added", word->added);
        lh_jsonw_bool(w, "take_out", word->take_out);
        lh_jsonw_object_end(w);
    }
    lh_jsonw_array_end(w);
}

static void
write_names(LhJsonWriter *w, const char *key, const GPtrArray *entries)
{
    lh_jsonw_array_begin(w, key);
    for (guint i = 0; i < entries->len; i++)
        lh_jsonw_string(w, NULL, ((const LhSettingsEntry *)g_ptr_array_index(entries, i))->path);
    lh_jsonw_array_end(w);
}

static void
write_config(LhJsonWriter *w, const LhConfig *config)
{
    lh_jsonw_object_begin(w, "configuration");
    lh_jsonw_string(w, "file", config->entries->file);
    lh_jsonw_string(w, "sha256", config->entries->sha256);
    lh_jsonw_string(w, "system", lh_config_system_name(config));
    lh_jsonw_uint(w, "read", config->read);
    lh_jsonw_uint(w, "without_effect", config->without_effect);
    write_names(w, "as_the_framework", config->elsewhere);
    write_names(w, "not_understood", config->unknown);
    lh_jsonw_array_begin(w, "warnings");
    for (guint i = 0; i < config->notes->len; i++)
        lh_jsonw_string(w, NULL, g_ptr_array_index(config->notes, i));
    lh_jsonw_array_end(w);
    lh_jsonw_object_end(w);
}

static void
write_cluster(LhJsonWriter *w, const LhPlanQuery *query, const LhPlanAnswer *answer,
              const LhPlanWeights *weights, guint index)
{
    const LhPlanCluster *cluster = g_ptr_array_index(answer->clusters, index);
    g_autoptr(GArray) front = lh_plan_front(cluster);
    g_autoptr(LhRecord) links = lh_record_new();

    lh_jsonw_object_begin(w, NULL);
    lh_jsonw_string(w, "cluster", cluster->space->cluster);
    lh_jsonw_string(w, "device", cluster->space->setup->device->name);
    lh_add_links(links, cluster->space->setup->topology);
    lh_record_json(links, w);
    lh_jsonw_uint(w, "gpus", cluster->space->gpus);
    lh_jsonw_bool(w, "interrupted", cluster->interrupted);
    write_counts(w, cluster);
    lh_jsonw_array_begin(w, "best");
    for (guint i = 0; i < cluster->ways->len; i++)
        write_way(w, lh_plan_way_values(answer, weights, index, g_ptr_array_index(cluster->ways, i),
                                        i + 1));
    lh_jsonw_array_end(w);
    lh_jsonw_array_begin(w, "front");
    for (guint i = 0; query->front && i < front->len; i++) {
        const LhPlanWay *way = &g_array_index(front, LhPlanWay, i);

        write_way(w,
                  lh_plan_way_values(answer, weights, index, way, place_of(cluster, way->point)));
    }
    lh_jsonw_array_end(w);
    write_bound(w, cluster->space->setup, cluster->bound);
    write_refusals(w, cluster);
    write_misses(w, cluster);
    lh_reliefs_json(w, cluster->reliefs);
    if (cluster->start != NULL)
        write_start(w, query, cluster);
    lh_jsonw_object_end(w);
}

static void
write_peak_categories(LhJsonWriter *w, const LhPlanEstimate *estimate)
{
    lh_jsonw_object_begin(w, "peak_by_category");
    for (int c = 0; c < LH_CATEGORIES; c++) {
        if (estimate->by_category[c] > 0)
            lh_jsonw_uint(w, lh_category_names[c], estimate->by_category[c]);
    }
    lh_jsonw_object_end(w);
}

/* The longest sequence, and what one of a unit more needs. */
static void
write_longest(LhJsonWriter *w, const LhPlanLongest *longest)
{
    if (longest->tokens == 0) {
        lh_jsonw_string(w, "longest", NULL);
        return;
    }
    lh_jsonw_object_begin(w, "longest");
    lh_jsonw_uint(w, "seq_length", longest->tokens);
    lh_jsonw_uint(w, "unit", longest->unit);
    lh_jsonw_uint(w, "peak_bytes", longest->fits.peak_bytes);
    lh_jsonw_uint(w, "usable_bytes", longest->fits.limit_bytes);
    lh_jsonw_uint(w, "peak_bytes_of_unit_more", longest->beyond.peak_bytes);
    write_peak_categories(w, &longest->fits);
    lh_jsonw_object_end(w);
}

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

/* The files of all clusters, each once: of LhInput *, borrowed. Caller unrefs. */
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

void
lh_plan_json(const LhPlanQuery *query, const LhPlanAnswer *answer, const LhPlanWeights *weights,
             const LhStamp *stamp, GString *out)
{
    g_autoptr(LhJsonWriter) w = lh_jsonw_new(out, false);
    const LhPlanCluster *first = g_ptr_array_index(answer->clusters, 0);
    const LhPlanCluster *best =
        answer->best != G_MAXUINT ? g_ptr_array_index(answer->clusters, answer->best) : NULL;
    const LhAttention *a = &first->space->setup->params.attention;
    g_autoptr(GPtrArray) inputs = inputs_of_clusters(answer);
    LhStamp of_all = *stamp;

    of_all.inputs = inputs;
    lh_document_begin(w, PLAN_SCHEMA, &of_all, first->space->setup, true);
    lh_jsonw_string(w, "query_sha256", answer->query_sha256);
    lh_jsonw_string(w, "model", first->space->setup->model->name);
    lh_jsonw_string(w, "framework", first->space->frameworks);
    lh_jsonw_uint(w, "seq_length", a->seq_length);
    lh_jsonw_uint(w, "global_batch_size", query->sequences);
    lh_jsonw_string(w, "dtype", lh_dtype_names[a->dtype]);
    lh_jsonw_bool(w, "interrupted", answer->interrupted);
    lh_jsonw_string(w, "best_cluster", best != NULL ? best->space->cluster : NULL);
    write_longest(w, &answer->longest);
    if (query->config != NULL)
        write_config(w, query->config);
    lh_jsonw_array_begin(w, "clusters");
    for (guint i = 0; i < answer->clusters->len; i++)
        write_cluster(w, query, answer, weights, i);
    lh_jsonw_array_end(w);
    lh_jsonw_object_end(w);
}
