/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which NICs of a node carry GPU traffic, and which GPUs use each. Left out: two ports of one NIC
 * count as two NICs.
 */
#include "import/cluster/near_nics.h"

#include <string.h>

/* Smallest of @count distances, @step elements apart. */
static uint32_t
least_of(const uint32_t *distance, guint count, guint step)
{
    uint32_t least = LH_TOOL_FAR;

    for (guint i = 0; i < count; i++)
        least = MIN(least, distance[i * step]);
    return least;
}

static void
mark_nearest(const LhToolShape *s, guint gpu, bool *near)
{
    const uint32_t *const row = s->distance + (gsize)gpu * s->nics;
    const uint32_t least = least_of(row, s->nics, 1);

    if (least >= s->apart)
        return;
    for (guint n = 0; n < s->nics; n++) {
        if (row[n] == least && least_of(s->distance + n, s->gpus, s->nics) < least)
            return; /* nearest to another GPU, which this one shares it with */
    }
    for (guint n = 0; n < s->nics; n++)
        near[n] = near[n] || row[n] == least;
}

static guint
count_marked(const bool *near, guint count)
{
    guint marked = 0;

    for (guint i = 0; i < count; i++)
        marked += near[i];
    return marked;
}

static bool
is_tie(const LhToolShape *s)
{
    for (gsize i = 1; i < (gsize)s->gpus * s->nics; i++) {
        if (s->distance[i] != s->distance[0])
            return false;
    }
    return true;
}

guint
lh_tool_near(const LhToolShape *s, bool **near)
{
    bool *const marks = g_new0(bool, s->nics + 1);

    *near = marks;
    for (guint g = 0; g < s->gpus; g++)
        mark_nearest(s, g, marks);
    if (count_marked(marks, s->nics) == 0 && (s->used || s->nics == 1)) {
        for (guint n = 0; n < s->nics; n++)
            marks[n] = least_of(s->distance + n, s->gpus, s->nics) < LH_TOOL_FAR;
    }
    if (!s->used && s->nics > 1 && is_tie(s) && s->gpus % s->nics != 0)
        memset(marks, 0, s->nics * sizeof(bool));
    return count_marked(marks, s->nics);
}

/* --- sharing
 * ------------------------------------------------------------------------------------ */

#define NO_NIC UINT32_MAX

typedef struct {
    const LhToolShape *shape;
    const bool *near;
    uint32_t *of_gpu; /* NIC of each GPU; NO_NIC: undecided */
    guint *used;      /* number of GPUs of each NIC */
    guint fair;       /* GPUs per NIC if shared evenly */
} Sharing;

static uint32_t
distance_of(const LhToolShape *s, guint gpu, guint nic)
{
    return s->distance[(gsize)gpu * s->nics + nic];
}

/* Number of GPUs between @gpu and the closest one, by number, among those nearest to the NIC. */
static guint
steps_to_home(const LhToolShape *s, guint gpu, guint nic)
{
    const uint32_t least = least_of(s->distance + nic, s->gpus, s->nics);
    guint steps = s->gpus;

    for (guint g = 0; g < s->gpus; g++) {
        if (distance_of(s, g, nic) == least)
            steps = MIN(steps, g > gpu ? g - gpu : gpu - g);
    }
    return steps;
}

/* Compares NICs for a GPU: the nearer one is better, then the one nearer to its neighbours. */
static int
compare_nics(const LhToolShape *s, guint gpu, guint a, guint b)
{
    const uint32_t x = distance_of(s, gpu, a), y = distance_of(s, gpu, b);
    const guint p = steps_to_home(s, gpu, a), q = steps_to_home(s, gpu, b);

    return x != y ? (x < y ? -1 : 1) : (p > q) - (p < q);
}

/* Finds the best NICs of a GPU; returns their number. */
static guint
find_best(const Sharing *h, guint gpu, bool *best)
{
    const LhToolShape *s = h->shape;
    guint first = s->nics;

    memset(best, 0, s->nics * sizeof(*best));
    for (guint n = 0; n < s->nics; n++) {
        const int order = first == s->nics ? -1 : compare_nics(s, gpu, n, first);

        if (!h->near[n] || order > 0)
            continue;
        if (order < 0) {
            memset(best, 0, s->nics * sizeof(*best));
            first = n;
        }
        best[n] = true;
    }
    return count_marked(best, s->nics);
}

/* Among equally good NICs, chooses the first with fewer GPUs than its even share, else the one with
 * the fewest. */
static guint
choose(const Sharing *h, const bool *best)
{
    guint chosen = h->shape->nics;

    for (guint n = 0; n < h->shape->nics; n++) {
        if (!best[n])
            continue;
        if (h->used[n] < h->fair)
            return n;
        if (chosen == h->shape->nics || h->used[n] < h->used[chosen])
            chosen = n;
    }
    return chosen;
}

/* Assigns NICs: first to GPUs with one best NIC, then (@choosing) to those with a choice. */
static void
share(Sharing *h, bool choosing)
{
    g_autofree bool *best = g_new0(bool, h->shape->nics);

    for (guint g = 0; g < h->shape->gpus; g++) {
        const guint count = h->of_gpu[g] != NO_NIC ? 0 : find_best(h, g, best);

        if (count == 0 || (count > 1) != choosing)
            continue;
        h->of_gpu[g] = choose(h, best);
        h->used[h->of_gpu[g]]++;
    }
}

/* Numbers the NICs in order of the GPUs that use them; returns how many. */
static guint
number(Sharing *h, GArray *numbers)
{
    guint count = 0;

    for (guint g = 0; g < h->shape->gpus; g++) {
        uint64_t found = count;

        for (guint i = 0; i < g && found == count; i++) {
            if (h->of_gpu[i] == h->of_gpu[g])
                found = g_array_index(numbers, uint64_t, i);
        }
        count += found == count;
        g_array_append_val(numbers, found);
    }
    return count;
}

/* Notes the names of NICs that carry no GPU traffic, since users may expect them. */
static void
note_left_out(LhToolReader *r, const LhToolShape *s, const guint *used)
{
    g_autoptr(GString) names = g_string_new(NULL);
    g_autofree char *source = lh_tool_source(r);

    for (guint n = 0; n < s->nics; n++) {
        if (used[n] == 0)
            g_string_append_printf(names, "%s%s", names->len > 0 ? ", " : "", s->names[n]);
    }
    if (names->len > 0)
        g_ptr_array_add(
            r->cluster->notes,
            g_strdup_printf("%s: left out, since other NICs are at least as near to GPUs: %s",
                            source, names->str));
}

/* Finds the NIC of each GPU; returns the number of NICs in use. */
static guint
find_nics_of_gpus(LhToolReader *r, const LhToolShape *s, const bool *near, guint nics,
                  GArray *numbers)
{
    g_autofree uint32_t *of_gpu = g_new(uint32_t, s->gpus);
    g_autofree guint *used = g_new0(guint, s->nics);
    Sharing h = { s, near, of_gpu, used, (s->gpus + nics - 1) / nics };

    memset(of_gpu, 0xff, s->gpus * sizeof(*of_gpu));
    share(&h, false);
    share(&h, true);
    note_left_out(r, s, used);
    return number(&h, numbers);
}

/* Adds the NICs. Several NICs of each GPU count as one, since a topology file has at most one per
 * GPU. Distances of a file whose NICs are all in use are finer and win over another's. */
bool
lh_tool_add_nics(LhToolReader *r, const LhToolShape *s, guint line)
{
    g_autofree bool *near = NULL;
    const guint nics = lh_tool_near(s, &near);
    const bool several = nics > s->gpus && nics % s->gpus == 0;
    const guint each = several ? nics / s->gpus : 1;
    g_autoptr(GArray) numbers = g_array_new(FALSE, FALSE, sizeof(uint64_t));
    guint count = nics / each;

    if (nics == 0)
        return true;
    if (nics <= s->gpus)
        count = find_nics_of_gpus(r, s, near, nics, numbers);
    if (nics <= s->gpus && (r->cluster->nic_of_gpu == NULL || s->used)) {
        g_clear_pointer(&r->cluster->nic_of_gpu, g_array_unref);
        r->cluster->nic_of_gpu = g_array_ref(numbers);
    }
    return lh_tool_add(r, LH_TOOL_NICS, line,
                       (LhToolValue){ count, LH_PROVENANCE_DATASHEET, 0, 0 }) &&
           lh_tool_add(r, LH_TOOL_NICS_JOINED, line,
                       (LhToolValue){ each, LH_PROVENANCE_DATASHEET, 0, 0 });
}
