/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/synth_live.h"

#include "base/units.h"
#include "cli/interrupt.h"
#include "cli/progress.h"

#include <inttypes.h>

static bool
draw_synth(void *data, const LhProgress *at)
{
    LhProgressLine *line = data;
    g_autofree char *best = NULL;
    g_autofree char *text = NULL;

    if (lh_progress_is_due(line)) {
        best = at->best_ps == LH_TIME_NEVER ? g_strdup("none") : lh_format_time(at->best_ps);
        text = g_strdup_printf("synth: %" PRIu64 " of %" PRIu64 " candidates, best so far: %s",
                               at->done, at->total, best);
        lh_progress_draw_text(line, text);
    }
    return !lh_interrupted();
}

LhSynthesis *
lh_synth_live(const LhSetup *setup, LhSynthOptions options, GError **error)
{
    LhProgressLine line;
    LhSynthesis *synthesis;

    options.task.progress = draw_synth;
    options.task.data = &line;
    lh_progress_start(&line, 0);
    lh_interrupt_listen();
    synthesis = lh_synth(setup, &options, error);
    lh_progress_end(&line);
    return synthesis;
}
