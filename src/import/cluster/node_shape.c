/* SPDX-License-Identifier: Apache-2.0 */
#include "import/cluster/node_shape.h"

#include "base/error.h"
#include "import/cluster/near_nics.h"

#define DIRECT_NVLINKS_MAX 18 /* per GPU without a switch */

static uint32_t
links_of(const LhToolShape *s, guint a, guint b)
{
    return s->links[a * s->gpus + b];
}

/* Finds pairs that are not in a topology file's order. Returns the order that makes them so,
 * "0,2,1,3"; NULL if NVLink does not join pairs or the order is right. Caller frees. */
static char *
order_of_pairs(const LhToolShape *s)
{
    g_autoptr(GString) order = g_string_new(NULL);
    bool moved = false;

    for (guint a = 0; a < s->gpus; a++) {
        guint mates = 0, mate = 0;

        for (guint b = 0; b < s->gpus; b++) {
            if (a == b || links_of(s, a, b) == 0)
                continue;
            mates++;
            mate = b;
        }
        if (mates != 1)
            return NULL;
        moved = moved || mate != (a ^ 1U);
        if (a < mate)
            g_string_append_printf(order, "%s%u,%u", order->len > 0 ? "," : "", a, mate);
    }
    return moved ? g_string_free(g_steal_pointer(&order), FALSE) : NULL;
}

static bool
fail_shape(const LhToolReader *r, guint line, const char *what)
{
    g_set_error(r->text.error, LH_ERROR, LH_ERROR_INPUT,
                "%s:%u: error: %s; a topology file supports only NVSwitch between all GPUs, NVLink "
                "between GPUs 0-1, 2-3 and so on, or no NVLink",
                r->text.file, line, what);
    return false;
}

/* Number of NVLinks (or of NVLinks to a switch) of GPU 0; false if other GPUs have another
 * number. */
static bool
count_links(const LhToolShape *s, const uint32_t *of, uint32_t *count)
{
    *count = of[0];
    for (guint g = 1; g < s->gpus; g++) {
        if (of[g] != *count)
            return false;
    }
    return true;
}

/* Classifies the links between GPUs. *@every: all pairs have equally many; *@pairs: only 0-1, 2-3,
 * ... */
static void
look_at_pairs(const LhToolShape *s, bool *none, bool *every, bool *pairs)
{
    const uint32_t first = s->gpus > 1 ? links_of(s, 0, 1) : 0;

    *none = *every = *pairs = true;
    for (guint a = 0; a < s->gpus; a++) {
        for (guint b = 0; b < s->gpus; b++) {
            const uint32_t links = links_of(s, a, b);

            if (a == b)
                continue;
            *none = *none && links == 0;
            *every = *every && links == first;
            *pairs = *pairs && links == (a / 2 == b / 2 ? first : 0);
        }
    }
    *every = *every && !*none;
    *pairs = *pairs && !*none && s->gpus % 2 == 0;
}

/* Finds what joins the GPUs, and the number of NVLinks of each. */
static bool
find_scale_up(const LhToolReader *r, const LhToolShape *s, guint line, LhScaleUp *kind,
              uint32_t *count)
{
    bool none, every, pairs;
    g_autofree char *order = order_of_pairs(s);
    g_autofree char *renumber = NULL;

    look_at_pairs(s, &none, &every, &pairs);
    if (s->switched != NULL && !count_links(s, s->switched, count))
        return fail_shape(r, line, "GPUs have different numbers of NVLinks to the switch");
    if (s->switched != NULL && *count > 0) {
        *kind = LH_SCALE_UP_SWITCH;
        return true;
    }
    *count = s->gpus > 1 ? links_of(s, 0, 1) : 0;
    if (none || pairs) {
        *kind = none ? LH_SCALE_UP_NONE : LH_SCALE_UP_PAIRS;
        return true;
    }
    if (!every && order != NULL) {
        renumber = g_strdup_printf("NVLink joins pairs of GPUs that are not neighbours; with "
                                   "CUDA_VISIBLE_DEVICES=%s they are",
                                   order);
        return fail_shape(r, line, renumber);
    }
    if (!every)
        return fail_shape(
            r, line, "NVLink joins only some pairs of GPUs, or some with more links than others");
    /* If each GPU has the same number of links to every other as it has in total, they lead to a
     * switch. */
    *kind = LH_SCALE_UP_SWITCH;
    return s->switched == NULL && *count * (s->gpus - 1) > DIRECT_NVLINKS_MAX
               ? true
               : fail_shape(r, line, "NVLink joins every two GPUs directly, without a switch");
}

bool
lh_tool_add_shape(LhToolReader *r, const LhToolShape *s, guint line)
{
    LhScaleUp kind = LH_SCALE_UP_NONE;
    uint32_t links = s->lost;

    if (s->lost == 0 && !find_scale_up(r, s, line, &kind, &links))
        return false;
    return lh_tool_add(r, LH_TOOL_GPUS, line,
                       (LhToolValue){ s->gpus, LH_PROVENANCE_DATASHEET, 0, 0 }) &&
           (s->lost > 0 || lh_tool_add(r, LH_TOOL_SCALE_UP, line,
                                       (LhToolValue){ kind, LH_PROVENANCE_DATASHEET, 0, 0 })) &&
           (links == 0 || lh_tool_add(r, LH_TOOL_NVLINKS, line,
                                      (LhToolValue){ links, LH_PROVENANCE_DATASHEET, 0, 0 })) &&
           lh_tool_add_nics(r, s, line);
}
