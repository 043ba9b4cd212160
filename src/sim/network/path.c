/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/network/path.h"

const char *const lh_step_kind_names[] = { "compute", "links", "latency", "host", NULL };

static int
by_time(gconstpointer a, gconstpointer b)
{
    const LhPathShare *x = a, *y = b;

    if (x->time_ps != y->time_ps)
        return x->time_ps > y->time_ps ? -1 : 1;
    if (x->kind != y->kind)
        return (int)x->kind - (int)y->kind;
    return (int)x->tiers - (int)y->tiers;
}

static void
add(GArray *shares, const LhPathStep *step)
{
    const LhPathShare first = { step->kind, step->tiers, step->to_ps - step->from_ps };

    for (guint i = 0; i < shares->len; i++) {
        LhPathShare *share = &g_array_index(shares, LhPathShare, i);

        if (share->kind != step->kind || share->tiers != step->tiers)
            continue;
        share->time_ps += first.time_ps;
        return;
    }
    g_array_append_val(shares, first);
}

GArray *
lh_path_shares(const GArray *path)
{
    GArray *shares = g_array_new(FALSE, FALSE, sizeof(LhPathShare));

    for (guint i = 0; i < path->len; i++)
        add(shares, &g_array_index(path, LhPathStep, i));
    g_array_sort(shares, by_time);
    return shares;
}
