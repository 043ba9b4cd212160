/* SPDX-License-Identifier: Apache-2.0 */
/* Constants: NVIDIA/nccl, src/graph/topo.h, topo.cc and paths.cc. */
#include "import/cluster/pcie_tree.h"

#include "base/error.h"

#include <string.h>

#define GB 1e9
#define INTEL "GenuineIntel"
#define INTEL_FAMILY 6
#define INTEL_BY_MEMORY (5.0 / 6) /* these hosts forward messages between GPUs in small pieces */
#define AMD "AuthenticAMD"

/* --- sockets ------------------------------------------------------------------------------------
 */

/* The first matching row applies. */
static const struct {
    const char *arch, *vendor; /* NULL: any */
    uint64_t family;           /* 0: any */
    uint64_t model_min;
    double rate; /* nocheck:unit: GB/s */
    const char *name;
} socket_rates[] = {
    { NULL, INTEL, INTEL_FAMILY, 0xcf, 40, "Intel's since Emerald Rapids" },
    { NULL, INTEL, INTEL_FAMILY, 0x8f, 22, "Intel's Sapphire Rapids" },
    { NULL, INTEL, INTEL_FAMILY, 0x55, 10, "Intel's from Skylake to Ice Lake" },
    { NULL, INTEL, 0, 0, 6, "Intel's before Skylake" },
    { NULL, AMD, 0, 0, 16, "AMD's" },
    { NULL, "CentaurHauls", 7, 0x5b, 9, "Zhaoxin's Yongfeng" },
    { NULL, "CentaurHauls", 0, 0, 6, "Zhaoxin's" },
    { NULL, "  Shanghai  ", 7, 0x5b, 9, "Zhaoxin's Yongfeng" },
    { NULL, "  Shanghai  ", 0, 0, 6, "Zhaoxin's" },
    { "ppc64", NULL, 0, 0, 32, "POWER" },
    { "arm64", NULL, 0, 0, 6, "Arm" },
};

static bool
is_vendor(const LhToolCpu *cpu, const char *vendor)
{
    return g_strcmp0(cpu->vendor, vendor) == 0;
}

double
lh_tool_socket_rate(const LhToolCpu *cpu, const char **name, const char **missing)
{
    if (is_vendor(cpu, INTEL) && !cpu->modelled) {
        *missing = "familyid and modelid";
        return 0;
    }
    for (gsize i = 0; i < G_N_ELEMENTS(socket_rates); i++) {
        if ((socket_rates[i].arch != NULL && g_strcmp0(cpu->arch, socket_rates[i].arch) != 0) ||
            (socket_rates[i].vendor != NULL && !is_vendor(cpu, socket_rates[i].vendor)) ||
            (socket_rates[i].family != 0 && cpu->family != socket_rates[i].family) ||
            cpu->model < socket_rates[i].model_min)
            continue;
        *name = socket_rates[i].name;
        return socket_rates[i].rate * GB;
    }
    *missing = "an arch and a vendor that NCCL knows, familyid and modelid";
    return 0;
}

double
lh_tool_share_by_memory(const LhToolCpu *cpu)
{
    return is_vendor(cpu, INTEL) ? INTEL_BY_MEMORY : 1;
}

bool
lh_tool_is_direct_for_two(const LhToolCpu *cpu)
{
    return is_vendor(cpu, AMD);
}

/* --- levels -------------------------------------------------------------------------------------
 */

static void
clear_level(gpointer data)
{
    LhToolLevel *level = data;

    g_array_unref(level->of_gpu);
    g_free(level->source);
}

void
lh_tool_tree_init(LhToolTree *tree, guint gpus)
{
    *tree = (LhToolTree){ .gpus = gpus, .by_memory = 1, .complete = true };
    tree->levels = g_array_new(FALSE, FALSE, sizeof(LhToolLevel));
    g_array_set_clear_func(tree->levels, clear_level);
}

void
lh_tool_tree_clear(LhToolTree *tree)
{
    if (tree->levels != NULL)
        g_array_unref(tree->levels);
    g_free(tree->asks);
    g_free(tree->source);
    g_free(tree->place);
    *tree = (LhToolTree){ 0 };
}

GArray *
lh_tool_groups(const uint32_t *group, guint gpus)
{
    GArray *of_gpu = g_array_sized_new(FALSE, FALSE, sizeof(uint64_t), gpus);
    uint64_t next = 0;

    for (guint g = 0; g < gpus; g++) {
        uint64_t number = next;

        for (guint h = 0; h < g && number == next; h++) {
            if (group[h] == group[g])
                number = g_array_index(of_gpu, uint64_t, h);
        }
        next = MAX(next, number + 1);
        g_array_append_val(of_gpu, number);
    }
    return of_gpu;
}

guint
lh_tool_groups_count(const GArray *of_gpu)
{
    uint64_t last = 0;

    for (guint g = 0; g < of_gpu->len; g++)
        last = MAX(last, g_array_index(of_gpu, uint64_t, g));
    return (guint)last + 1;
}

static LhToolLevel *
level_of(const LhToolTree *tree, guint level)
{
    return &g_array_index(tree->levels, LhToolLevel, level);
}

static bool
is_same_groups(const GArray *a, const GArray *b)
{
    return a->len == b->len && memcmp(a->data, b->data, a->len * sizeof(uint64_t)) == 0;
}

/* Lowers the rate of a level whose link is crossed together with another one. */
static void
lower(LhToolLevel *level, double up, const char *source)
{
    if (up == 0 || (level->up > 0 && level->up <= up))
        return;
    level->up = up;
    g_free(level->source);
    level->source = g_strdup(source);
}

void
lh_tool_tree_add(LhToolTree *tree, const char *name, GArray *of_gpu, double up, const char *source)
{
    LhToolLevel level = { name, of_gpu, up, NULL };
    LhToolLevel *const last = tree->levels->len == 0 ? NULL : level_of(tree, tree->levels->len - 1);

    if (lh_tool_groups_count(of_gpu) > 1 &&
        (last == NULL || !is_same_groups(last->of_gpu, of_gpu))) {
        level.source = up > 0 ? g_strdup(source) : NULL;
        g_array_append_val(tree->levels, level);
        return;
    }
    if (last != NULL && lh_tool_groups_count(of_gpu) > 1)
        lower(last, up, source);
    g_array_unref(of_gpu);
}

/* --- several files
 * ------------------------------------------------------------------------------ */

static const LhToolLevel *
find_level(const LhToolTree *tree, const char *name)
{
    for (guint i = 0; i < tree->levels->len; i++) {
        const LhToolLevel *level = level_of(tree, i);

        if (strcmp(level->name, name) == 0)
            return level;
    }
    return NULL;
}

/* Whether both trees have the same groups at their common levels. Files may be incomplete where
 * NVLink joins GPUs. */
static bool
agree_on(const LhToolTree *a, const LhToolTree *b, const char **name)
{
    for (guint i = 0; a->complete && b->complete && i < a->levels->len; i++) {
        const LhToolLevel *level = level_of(a, i);
        const LhToolLevel *other = find_level(b, level->name);

        *name = level->name;
        if (other != NULL && !is_same_groups(level->of_gpu, other->of_gpu))
            return false;
    }
    return true;
}

bool
lh_tool_add_tree(LhToolReader *r, LhToolTree *tree, guint line)
{
    LhToolTree *const before = &r->cluster->tree;
    const char *name = NULL;

    tree->place = lh_tool_place(r, line);
    tree->source = lh_tool_source(r);
    if (before->gpus == tree->gpus && !agree_on(tree, before, &name)) {
        g_set_error(r->text.error, LH_ERROR, LH_ERROR_INPUT,
                    "%s: error: other GPUs share a %s here than in %s; give files that agree",
                    tree->place, name, before->place);
        lh_tool_tree_clear(tree);
        return false;
    }
    if (before->gpus == 0 || tree->weight > before->weight) {
        lh_tool_tree_clear(before);
        *before = *tree;
        return true;
    }
    lh_tool_tree_clear(tree);
    return true;
}

/* --- a table
 * ------------------------------------------------------------------------------------ */

typedef struct {
    guint gpus;
    const uint32_t *reach, *node; /* see pcie_tree.h */
    bool nodes_hold;              /* @node agrees with @reach */
} Reaches;

static uint32_t
reach_of(const Reaches *t, guint a, guint b)
{
    return t->reach[a * t->gpus + b];
}

static bool
is_of_node(const Reaches *t, guint a, guint b)
{
    return t->node[a] != UINT32_MAX && t->node[a] == t->node[b];
}

static bool
do_nodes_hold(const Reaches *t)
{
    for (guint a = 0; a < t->gpus; a++) {
        for (guint b = 0; b < a; b++) {
            const uint32_t reach = reach_of(t, a, b);

            if (reach != LH_TOOL_UNSAID && is_of_node(t, a, b) != (reach <= LH_TOOL_ON_SOCKET))
                return false;
        }
    }
    return true;
}

/* Whether @a and @b themselves share a switch, or a socket. */
static bool
are_joined(const Reaches *t, guint a, guint b, LhToolReach within)
{
    const uint32_t reach = reach_of(t, a, b);

    return reach == LH_TOOL_UNSAID
               ? within == LH_TOOL_ON_SOCKET && t->nodes_hold && is_of_node(t, a, b)
               : reach <= within;
}

/* Transitive closure of are_joined(). Caller frees. */
static uint32_t *
join_all(const Reaches *t, LhToolReach within)
{
    uint32_t *group = g_new(uint32_t, t->gpus);

    for (guint a = 0; a < t->gpus; a++) {
        group[a] = a;
        for (guint b = 0; b < a; b++) {
            const uint32_t from = group[a], to = group[b];

            for (guint c = 0; c <= a && are_joined(t, a, b, within); c++)
                group[c] = group[c] == from ? to : group[c];
        }
    }
    return group;
}

static bool
check_group(LhToolReader *r, const Reaches *t, const uint32_t *group, LhToolReach within,
            guint line)
{
    for (guint a = 0; a < t->gpus; a++) {
        for (guint b = 0; b < a; b++) {
            const uint32_t reach = reach_of(t, a, b);

            if (group[a] != group[b] || reach == LH_TOOL_UNSAID || reach <= within)
                continue;
            g_set_error(r->text.error, LH_ERROR, LH_ERROR_INPUT,
                        "%s:%u: error: GPU%u and GPU%u are far from each other, but near GPUs that "
                        "are near each other; no node is like that: was the matrix edited?",
                        r->text.file, line, b, a);
            return false;
        }
    }
    return true;
}

/* Adds the level of groups @within a switch or socket, if any group has two GPUs. */
static bool
add_groups(LhToolReader *r, const Reaches *t, LhToolTree *tree, LhToolReach within, guint line)
{
    static const char *const names[] = { "switch", "socket" };
    g_autofree uint32_t *group = join_all(t, within);
    GArray *of_gpu;

    if (!check_group(r, t, group, within, line))
        return false;
    of_gpu = lh_tool_groups(group, t->gpus);
    if (within == LH_TOOL_ON_SWITCH && t->gpus > 1 && lh_tool_groups_count(of_gpu) == 1)
        tree->p2p = "node";
    if (within == LH_TOOL_ON_SWITCH && lh_tool_groups_count(of_gpu) == t->gpus)
        g_array_unref(of_gpu);
    else
        lh_tool_tree_add(tree, names[within], of_gpu, 0, NULL);
    return true;
}

bool
lh_tool_add_reaches(LhToolReader *r, guint gpus, const uint32_t *reach, const uint32_t *node,
                    guint line)
{
    Reaches t = { gpus, reach, node, false };
    LhToolTree tree;

    lh_tool_tree_init(&tree, gpus);
    t.nodes_hold = do_nodes_hold(&t);
    tree.p2p = "none";
    for (gsize i = 0; i < (gsize)gpus * gpus; i++)
        tree.complete = tree.complete && reach[i] != LH_TOOL_UNSAID;
    if (!add_groups(r, &t, &tree, LH_TOOL_ON_SWITCH, line) ||
        !add_groups(r, &t, &tree, LH_TOOL_ON_SOCKET, line)) {
        lh_tool_tree_clear(&tree);
        return false;
    }
    if (tree.levels->len > 0 && strcmp(level_of(&tree, 0)->name, "switch") == 0)
        tree.p2p = "switch";
    return lh_tool_add_tree(r, &tree, line);
}
