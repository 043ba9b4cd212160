#include "cli/synth_live.h"

#include "base/units.h"
#include "cli/interrupt.h"
#include "cli/progress.h"

static bool
draw_synth(void *data, const LhSynthProgress *progress)
{
    LhProgressLine *line = data;
    g_autofree char *best = NULL;
    g_autofree char *text = NULL;

    if (lh_progress_is_due(line)) {
        best = progress->best_ps == LH_TIME_NEVER ? g_strdup("none")
                                                  : lh_format_time(progress->best_ps);
        text = g_strdup_printf("synth: %u of %u candidates, the best so far: %s",
                               progress->candidates, progress->budget, best);
        lh_progress_draw_text(line, text);
    }
    return !lh_interrupted();
}

LhSynthesis *
lh_synth_live(const LhSetup *setup, LhSynthOptions options, GError **error)
{
    LhProgressLine line;
    LhSynthesis *synthesis;

    options.progress = draw_synth;
    options.progress_data = &line;
    lh_progress_start(&line, 0);
    lh_interrupt_listen();
    synthesis = lh_synth(setup, &options, error);
    lh_progress_end(&line);
    return synthesis;
}
