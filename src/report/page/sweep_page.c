/* SPDX-License-Identifier: Apache-2.0 */
#include "report/page/sweep_page.h"

#include "report/draw/sweep_figure.h"
#include "report/page/page_parts.h"
#include "report/text/describe_sweep.h"

static bool
append_sweep_figure(const LhScenario *scenario, const LhSweep *sweep, GString *out, GError **error)
{
    g_autoptr(GString) svg = g_string_new(NULL);

    if (!lh_sweep_figure_check(scenario, NULL))
        return true;
    if (!lh_sweep_figure(sweep, (LhFigureTo){ .svg = svg }, error))
        return false;
    lh_page_picture(out, svg,
                    "All points in one figure: curves of time, or a map of the fastest schedules, "
                    "as in the table below.");
    return true;
}

bool
lh_sweep_page(const LhScenario *scenario, const LhSweep *sweep, const LhStamp *stamp, GString *out,
              GError **error)
{
    const LhSetup *const setup = sweep->setup;
    g_autoptr(GString) question = g_string_new(NULL);
    g_autoptr(GString) answer = g_string_new(NULL);

    lh_describe_sweep_question(sweep, question);
    lh_page_begin(out, "The fastest schedule by point", question->str);
    lh_describe_sweep_answer(sweep, answer);
    lh_describe_sweep_rest(sweep, answer);
    lh_page_words(out, answer->str);
    lh_page_section(out, "The points");
    if (!append_sweep_figure(scenario, sweep, out, error))
        return false;
    lh_page_table(out, lh_describe_points(sweep), "The fastest schedule at each point");
    lh_page_constants(out, setup, "Constants of the first point and their provenance");
    lh_page_repeat(out, stamp, &setup, 1);
    lh_page_end(out);
    return true;
}
