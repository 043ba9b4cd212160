/* SPDX-License-Identifier: Apache-2.0 */
#include "report/page/validate_page.h"

#include "report/draw/validate_figure.h"
#include "report/page/page_parts.h"
#include "report/text/cluster/describe_machine.h"

static bool
append_validate_figure(const LhValidatePage *p, GString *out, GError **error)
{
    g_autoptr(GString) svg = g_string_new(NULL);

    if (!lh_validate_figure_has(p->validated->rows))
        return true;
    if (!lh_validate_figure(p->validated->rows, p->tolerance, (LhFigureTo){ .svg = svg }, error))
        return false;
    lh_page_picture(
        out, svg,
        "Predicted against measured times: makespans of schedules, and all calls of each kernel. "
        "Exact predictions are on the line; the dashed lines are the tolerance.");
    return true;
}

static void
append_hosts(const LhValidatePage *p, GString *out)
{
    g_autoptr(GString) words = g_string_new(NULL);

    if (!p->tiers)
        return;
    lh_page_section(out, "Messages and hosts");
    lh_page_table(out, lh_describe_tier_errors(p->validated->rows),
                  "Messages, by the highest kind of link on their route");
    if (p->validated->hosts == NULL)
        return;
    lh_page_table(out, lh_describe_hosts(p->validated->hosts), "Hosts and the links between them");
    lh_describe_slow(p->validated->hosts, words);
    lh_page_words(out, words->str);
}

bool
lh_validate_page(const LhValidatePage *p, GString *out, GError **error)
{
    lh_page_begin(out, "Accuracy of predictions", p->of);
    lh_page_words(out, p->summary);
    lh_page_section(out, "Predicted and measured");
    if (!append_validate_figure(p, out, error))
        return false;
    lh_page_table(out, lh_describe_makespans(p->validated->rows, p->tolerance),
                  "Makespans of schedules");
    lh_page_words(out, "Error is predicted / measured - 1. Start is the time until the last rank "
                       "to finish has issued its first op.");
    lh_page_section(out, "Kernels");
    lh_page_table(out, lh_describe_kernel_errors(p->validated->rows, p->tolerance),
                  "Calls of each kernel, by total time");
    append_hosts(p, out);
    lh_page_constants(out, p->setup, "Constants and their provenance");
    lh_page_repeat(out, p->stamp, &p->setup, 1);
    lh_page_end(out);
    return true;
}
