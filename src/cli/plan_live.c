/* See the header. */
#include "cli/plan_live.h"

#include "cli/interrupt.h"
#include "report/describe_plan.h"

void
lh_plan_live_start(LhPlanLive *live)
{
    *live = (LhPlanLive){ 0 };
    lh_progress_start(&live->line, 0);
    live->listens = lh_interrupt_listen();
}

static void
draw_plan(LhPlanLive *live, const LhPlanProgress *p)
{
    g_autoptr(GString) text = g_string_new(p->space->cluster);
    g_autofree char *time = lh_format_time(p->best_ps);

    g_string_append_printf(text, ": %u of %u ways estimated, %u simulated", p->estimated,
                           p->space->points->len, p->counts[LH_POINT_RAN]);
    if (p->best != G_MAXUINT) {
        g_autofree char *way = lh_describe_way(p->space, p->best);

        g_string_append_printf(text, "; %s a step so far: %s", time, way);
    }
    lh_progress_draw_text(&live->line, text->str);
}

bool
lh_plan_live_progress(void *data, const LhPlanProgress *progress)
{
    LhPlanLive *live = data;

    if (progress->space != NULL && lh_progress_is_due(&live->line))
        draw_plan(live, progress);
    return !lh_interrupted();
}

void
lh_plan_live_end(LhPlanLive *live)
{
    lh_interrupt_end(live->listens);
    lh_progress_end(&live->line);
}
