/* SPDX-License-Identifier: Apache-2.0 */
#include "report/draw/plan_figure.h"

#include "report/base/text.h"

#define CLUSTER_LETTERS 40

/* By LhCheckpoint. */
static const unsigned checkpoint_markers[] = { 7, 9, 5, 13 };

/* Appends the cluster's Pareto front: time, memory, marker. False if it is empty. Sets the bits of
 * its recomputation policies. */
static bool
append_front(GString *data, const LhPlanCluster *cluster, unsigned *policies)
{
    g_autoptr(GArray) front = lh_plan_front(cluster);

    for (guint i = 0; i < front->len; i++) {
        const LhPlanWay *way = &g_array_index(front, LhPlanWay, i);
        const int policy = (int)lh_plan_point_checkpoint(lh_plan_point(cluster->space, way->point));

        lh_text_append(data, way->iteration_s);
        lh_text_append(data, (double)way->peak_bytes / LH_GIB);
        g_string_append_printf(data, "%u\n", checkpoint_markers[policy]);
        *policies |= 1U << policy;
    }
    if (front->len > 0)
        g_string_append(data, "\n\n");
    return front->len > 0;
}

/* Plots steps: between two configurations, the faster one's memory applies. */
static void
append_cluster_steps(GString *script, const LhPlanCluster *cluster, guint set, const char *colour)
{
    g_autofree char *name =
        g_strdup_printf("%s, %u GPUs", cluster->space->cluster, cluster->space->gpus);

    g_string_append_printf(script, "%s index %u using 1:2 with steps lw 1.6 lc rgb '%s' title ",
                           set == 0 ? "plot $data" : ", \\\n    $data", set, colour);
    lh_figure_append_text(script, name, CLUSTER_LETTERS);
    g_string_append_printf(script,
                           ", \\\n    $data index %u using 1:2:3 with points pt variable ps 1.3 lc "
                           "rgb '%s' notitle",
                           set, colour);
}

static void
append_policies(GString *script, unsigned policies)
{
    for (guint i = 0; i < G_N_ELEMENTS(checkpoint_markers); i++) {
        if ((policies & (1U << i)) != 0)
            g_string_append_printf(
                script,
                ", \\\n"
                "    NaN with points pt %u ps 1.3 lc rgb '#444444' title 'recomputed: %s'",
                checkpoint_markers[i], lh_checkpoint_names[i]);
    }
}

static void
append_ways_title(GString *script, const LhPlanSpace *space)
{
    const LhSetup *setup = space->setup;
    g_autofree char *tokens = lh_format_count(setup->params.attention.seq_length);
    g_autofree char *line = g_strdup_printf(
        "Training %s: configurations not beaten in both time and memory", setup->model->name);
    g_autofree char *below =
        g_strdup_printf("sequences of %s tokens, framework %s", tokens, space->frameworks);

    lh_figure_append_title(script, LH_FIGURE_WIDTH, line, below);
}

bool
lh_plan_figure(const LhPlanAnswer *answer, LhFigureTo to, GError **error)
{
    g_autoptr(GString) data = g_string_new(NULL);
    g_autoptr(GString) script = g_string_new(NULL);
    LhFigure figure = { .to = to, .width = LH_FIGURE_WIDTH, .height = LH_FIGURE_HEIGHT };
    unsigned policies = 0;
    guint sets = 0;

    append_ways_title(script, lh_plan_cluster_at(answer, 0)->space);
    g_string_append(script,
                    "set xlabel 'time of a step (s)'\nset ylabel 'peak memory of a GPU (GiB)'\n"
                    "set border 3\nset ytics nomirror out\nset grid ytics lc rgb '#DDDDDD' lw "
                    "0.5\nset xrange [0:*]\nset yrange [0:*]\n"
                    "set offsets 0, graph 0.04, graph 0.08, 0\n"
                    "set key outside right center vertical Left reverse samplen 2 width 1\n");
    for (guint i = 0; i < answer->clusters->len; i++) {
        const LhPlanCluster *cluster = lh_plan_cluster_at(answer, i);

        if (append_front(data, cluster, &policies))
            append_cluster_steps(script, cluster, sets++, lh_figure_colours[i % LH_FIGURE_COLOURS]);
    }
    g_string_append(script, sets == 0 ? "plot NaN notitle" : "");
    append_policies(script, policies);
    g_string_append_c(script, '\n');
    figure.data = data->str;
    figure.script = script->str;
    return lh_figure_draw(&figure, error);
}
