/* SPDX-License-Identifier: Apache-2.0 */
#include "report/page/plan_page.h"

#include "report/base/text.h"
#include "report/draw/plan_figure.h"
#include "report/page/page_parts.h"
#include "report/text/describe_plan.h"
#include "report/text/plan_tables.h"

static const LhPlanCluster *
cluster_at(const LhPlanPage *p, guint index)
{
    return g_ptr_array_index(p->answer->clusters, index);
}

/* Index of the cluster shown first: the best one, or the first if nothing runs. */
static guint
answered(const LhPlanPage *p)
{
    return p->answer->best != G_MAXUINT ? p->answer->best : 0;
}

static void
append_answer(const LhPlanPage *p, GString *out)
{
    const guint index = answered(p);
    const LhPlanSpace *space = cluster_at(p, index)->space;
    g_autoptr(GString) words = g_string_new(NULL);

    if (p->answer->clusters->len > 1 && p->answer->best != G_MAXUINT)
        g_string_append_printf(words, "Among %u clusters, %s with %u GPUs trains fastest.\n",
                               p->answer->clusters->len, space->cluster, space->gpus);
    lh_describe_plan_answer(p->query, p->answer, p->weights, index, words);
    lh_page_words(out, words->str);
}

static bool
append_front_figure(const LhPlanPage *p, GString *out, GError **error)
{
    g_autoptr(GString) svg = g_string_new(NULL);

    if (!p->query->front || p->answer->best == G_MAXUINT)
        return true;
    lh_page_section(out, "Time and memory");
    if (!lh_plan_figure(p->answer, (LhFigureTo){ .svg = svg }, error))
        return false;
    lh_page_picture(out, svg,
                    "Time and memory of the configurations that no other one beats in both: a line "
                    "for each cluster.");
    return true;
}

static void
append_cluster(const LhPlanPage *p, guint index, GString *out)
{
    const LhPlanCluster *cluster = cluster_at(p, index);
    g_autofree char *title = g_strdup_printf("Configurations on %s", cluster->space->cluster);
    g_autoptr(GString) words = g_string_new(NULL);

    lh_page_section(out, title);
    lh_describe_plan_cluster(cluster, words);
    if (index != answered(p))
        lh_describe_plan_answer(p->query, p->answer, p->weights, index, words);
    lh_page_words(out, words->str);
    if (cluster->ways->len > 0) {
        lh_page_table(out, lh_describe_ways(p->query, p->answer, p->weights, index),
                      "The fastest configurations");
        if (p->query->front)
            lh_page_table(out, lh_describe_front(p->query, p->answer, p->weights, index),
                          "Configurations not beaten in both time and memory");
    }
    g_string_truncate(words, 0);
    lh_describe_plan_rest(cluster, words);
    lh_page_words(out, words->str);
}

/* What the clusters have to turn on. */
static void
append_fits(const LhPlanPage *p, GString *out)
{
    LhTable *fits = lh_describe_fits(p->answer);

    if (fits == NULL)
        return;
    lh_page_section(out, "What has to be turned on to fit in memory");
    lh_page_table(out, fits, "In the order of bytes freed for a second lost");
}

static void
append_constants(const LhPlanPage *p, GString *out)
{
    for (guint i = 0; i < p->answer->clusters->len; i++) {
        const LhPlanSpace *space = cluster_at(p, i)->space;
        g_autofree char *title =
            g_strdup_printf("Constants of %s and their provenance", space->cluster);

        lh_page_constants(out, space->setup, title);
    }
}

static void
append_repeat(const LhPlanPage *p, GString *out)
{
    const guint count = p->answer->clusters->len;
    g_autofree const LhSetup **setups = g_new0(const LhSetup *, count);

    for (guint i = 0; i < count; i++)
        setups[i] = cluster_at(p, i)->space->setup;
    lh_page_repeat(out, p->stamp, setups, count);
}

/* Appends the timeline of the fastest configuration, and the critical paths of it and the
 * runner-up. */
static bool
append_looks(const LhPlanPage *p, GString *out, GError **error)
{
    static const char *const titles[] = { "Critical path of the fastest configuration",
                                          "Critical path of the runner-up" };

    if (p->looks_count > 0 && !lh_report_run(p->looks[0].setup, p->looks[0].run, "first",
                                             "Timeline of the fastest configuration", out, error))
        return false;
    for (guint i = 0; i < MIN(p->looks_count, G_N_ELEMENTS(titles)); i++) {
        const LhPlanLook *look = &p->looks[i];
        g_autofree char *way = lh_describe_way(cluster_at(p, answered(p))->space, look->point);
        g_autofree char *time = lh_format_time(look->run->row->result->makespan_ps);
        g_autofree char *words = g_strdup_printf("%s: %s.", way, time);

        lh_page_section(out, titles[i]);
        lh_page_words(out, words);
        lh_report_critical(look->critical, out);
    }
    return true;
}

bool
lh_plan_page(const LhPlanPage *p, GString *out, GError **error)
{
    const LhPlanSpace *space = cluster_at(p, answered(p))->space;
    g_autofree char *title = g_strdup_printf("How to train %s", space->setup->model->name);
    g_autoptr(GString) question = g_string_new(NULL);

    lh_describe_plan_question(p->query, space, question);
    lh_page_begin(out, title, question->str);
    append_answer(p, out);
    if (p->answer->clusters->len > 1) {
        lh_page_section(out, "Comparison of clusters");
        lh_page_table(out, lh_describe_clusters(p->answer, p->weights),
                      "The fastest configuration on each cluster");
    }
    if (!append_front_figure(p, out, error))
        return false;
    for (guint i = 0; i < p->answer->clusters->len; i++)
        append_cluster(p, i, out);
    append_fits(p, out);
    if (!append_looks(p, out, error))
        return false;
    append_constants(p, out);
    append_repeat(p, out);
    lh_page_end(out);
    return true;
}
