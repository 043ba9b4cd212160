/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/plan_live.h"

#include "base/files/output.h"
#include "cli/interrupt.h"

#include <inttypes.h>

void
lh_plan_live_start(LhPlanLive *live, const LhPlanQuery *query, const LhPlanWeights *weights,
                   const LhOutputOptions *to)
{
    const bool for_people = to->format == LH_FORMAT_TABLE || to->format == LH_FORMAT_MD;

    *live = (LhPlanLive){ .query = query,
                          .weights = weights,
                          .prints = for_people && !lh_command_is_file(to->file),
                          .format = (LhFormat)to->format };
    lh_progress_start(&live->line, 0);
    lh_interrupt_listen();
}

/* ---- progress ---- */

static void
draw_plan(LhPlanLive *live, const LhProgress *at)
{
    const LhPlanProgress *p = at->more;
    g_autoptr(GString) text = g_string_new(at->what);

    g_string_append_printf(text,
                           ": %" PRIu64 " of %" PRIu64 " configurations estimated, %u simulated",
                           at->done, at->total, p->counts[LH_POINT_RAN]);
    if (p->best != G_MAXUINT) {
        g_autofree char *way = lh_describe_way(p->space, p->best);
        g_autofree char *time = lh_format_time(at->best_ps);

        g_string_append_printf(text, "; best so far %s per step: %s", time, way);
    }
    lh_progress_draw_text(&live->line, text->str);
}

bool
lh_plan_live_progress(void *data, const LhProgress *at)
{
    LhPlanLive *live = data;

    if (at->more != NULL && lh_progress_is_due(&live->line))
        draw_plan(live, at);
    return !lh_interrupted();
}

/* ---- finished clusters ---- */

/* Prints a cluster to standard output; lh_plan_live_end() reports errors. */
static void
print_part(LhPlanLive *live, const LhPlanAnswer *answer, guint index)
{
    g_autoptr(GString) text = g_string_new(NULL);

    if (index == 0)
        lh_describe_plan_head(live->query, answer, live->format, text);
    lh_describe_plan_part(live->query, answer, live->weights, index, live->format, text);
    lh_progress_wipe(&live->line);
    if (live->failure == NULL)
        lh_output_stdout(text->str, text->len, &live->failure);
}

/* Prints one line for a cluster, if the answer itself is printed only at the end. */
static void
say_part(LhPlanLive *live, const LhPlanCluster *cluster)
{
    const LhPlanWay *best = lh_plan_best_way(cluster);
    g_autofree char *way = best != NULL ? lh_describe_way(cluster->space, best->point) : NULL;
    g_autofree char *text = NULL;

    if (best != NULL)
        text = g_strdup_printf("%s: %.4g s per step%s: %s", cluster->space->cluster,
                               best->iteration_s, cluster->interrupted ? " so far" : "", way);
    else
        text = g_strdup_printf("%s: %s", cluster->space->cluster,
                               cluster->interrupted ? "not decided" : "nothing fits or runs");
    lh_progress_say(&live->line, text);
}

void
lh_plan_live_finished(void *data, const LhPlanAnswer *answer, guint index)
{
    LhPlanLive *live = data;

    if (live->prints)
        print_part(live, answer, index);
    else if (answer->clusters->len > 1 && lh_progress_is_long(&live->line))
        say_part(live, g_ptr_array_index(answer->clusters, index));
}

bool
lh_plan_live_end(LhPlanLive *live, GError **error)
{
    lh_progress_end(&live->line);
    if (live->failure == NULL)
        return true;
    g_propagate_error(error, g_steal_pointer(&live->failure));
    return false;
}
