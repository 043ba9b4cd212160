/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The PCIe tree of a node, from NCCL's topology XML: the PCIe functions around a GPU's own are
 * switches, and NUMA nodes are sockets, as in NCCL. Left out: switches with ports of different
 * speed, since a level has one rate.
 */
#include "import/cluster/nccl_xml_private.h"

#include "base/error.h"

#define NO_SWITCH(gpu) (UINT32_MAX - (gpu)) /* not an element's index, which is much smaller */

/* Switches above a GPU, outermost first. */
typedef struct {
    uint32_t ids[LH_XML_DEPTH_MAX]; /* element indices */
    guint count;
} Chain;

typedef struct {
    const LhXml *x;
    Chain *chains; /* for each GPU */
    LhToolTree tree;
    char *source;
} TreeOfXml;

static const LhXmlElement *
element_at(const LhXml *x, uint32_t id)
{
    return &g_array_index(x->elements, LhXmlElement, id);
}

static const LhXmlDevice *
gpu_at(const LhXml *x, guint gpu)
{
    return &g_array_index(x->gpus, LhXmlDevice, gpu);
}

/* Finds the switches. The innermost PCIe function around a GPU is its own. Partitions of one switch
 * count as one. */
static Chain
find_chain(const LhXml *x, const LhXmlDevice *gpu)
{
    Chain chain = { .count = 0 };
    uint32_t own = UINT32_MAX;

    for (guint i = 0; i < gpu->depth; i++) {
        const bool part = chain.count > 0 && own != UINT32_MAX && element_at(x, own)->is_parted &&
                          element_at(x, chain.ids[chain.count - 1])->is_parted;

        if (!element_at(x, gpu->path[i])->is_pci)
            continue;
        if (own != UINT32_MAX && !part)
            chain.ids[chain.count++] = own;
        own = gpu->path[i];
    }
    return chain;
}

static bool
is_shared(const TreeOfXml *t, guint gpu, uint32_t id)
{
    for (guint g = 0; g < t->x->gpus->len; g++) {
        for (guint i = 0; g != gpu && i < t->chains[g].count; i++) {
            if (t->chains[g].ids[i] == id)
                return true;
        }
    }
    return false;
}

/* Bandwidth of a GPU's own path: the slowest of its link and the switches that it does not
 * share. */
static double
own_rate(const TreeOfXml *t, guint gpu)
{
    const Chain *chain = &t->chains[gpu];
    double rate = gpu_at(t->x, gpu)->pcie; /* nocheck:unit: bytes/s */

    for (guint i = chain->count; i-- > 0 && !is_shared(t, gpu, chain->ids[i]);) {
        const double up = element_at(t->x, chain->ids[i])->rate; /* nocheck:unit: bytes/s */

        rate = up > 0 ? MIN(rate, up) : rate;
    }
    return rate;
}

/* Adds the level of switches at nesting depth @depth. */
static void
add_switches(TreeOfXml *t, guint depth)
{
    const guint gpus = t->x->gpus->len;
    g_autofree uint32_t *group = g_new(uint32_t, gpus);
    bool any = false;
    double up = 0; /* nocheck:unit: bytes/s */

    for (guint g = 0; g < gpus; g++) {
        const Chain *chain = &t->chains[g];

        group[g] = depth < chain->count ? chain->ids[depth] : NO_SWITCH(g);
        if (depth < chain->count && is_shared(t, g, group[g])) {
            const double rate = element_at(t->x, group[g])->rate; /* nocheck:unit: bytes/s */

            any = true;
            up = up == 0 ? rate : rate == 0 ? up : MIN(up, rate);
        }
    }
    if (any)
        lh_tool_tree_add(&t->tree, NULL, lh_tool_groups(group, gpus), up, t->source);
}

/* Slowest link between sockets; sets what to give if it is unknown. */
static double
slowest_socket(TreeOfXml *t, GString *source)
{
    const LhXml *x = t->x;
    double slowest = 0; /* nocheck:unit: bytes/s */

    for (guint g = 0; g < x->gpus->len; g++) {
        const LhXmlCpu *cpu = &g_array_index(x->cpus, LhXmlCpu, gpu_at(x, g)->cpu);
        const char *name = NULL, *missing = NULL;
        const double rate = lh_tool_socket_rate(&cpu->said, &name, &missing); /* nocheck:unit */

        if (rate == 0) {
            g_free(t->tree.asks);
            t->tree.asks = g_strdup_printf(
                "%s:%u: <cpu> lacks %s, from which NCCL derives the bandwidth between sockets",
                x->r->text.file, cpu->line, missing);
            return 0;
        }
        if (slowest > 0 && slowest <= rate)
            continue;
        slowest = rate;
        g_string_printf(source,
                        "NCCL's src/graph/topo.h for links between sockets with CPUs of this kind: "
                        "%s, %s",
                        name, t->source);
    }
    return slowest;
}

static void
add_sockets(TreeOfXml *t)
{
    const guint gpus = t->x->gpus->len;
    g_autofree uint32_t *group = g_new(uint32_t, gpus);
    g_autoptr(GString) source = g_string_new(NULL);
    bool several = false;

    for (guint g = 0; g < gpus; g++) {
        group[g] = gpu_at(t->x, g)->cpu;
        if (group[g] >= t->x->cpus->len)
            return;
        several = several || group[g] != group[0];
    }
    if (several) {
        const double up = slowest_socket(t, source); /* nocheck:unit: bytes/s */

        lh_tool_tree_add(&t->tree, "socket", lh_tool_groups(group, gpus), up, source->str);
    }
}

/* Whether one switch is above all GPUs. */
static bool
is_one_switch(const TreeOfXml *t)
{
    bool one = t->chains[0].count > 0;

    for (guint g = 1; one && g < t->x->gpus->len; g++)
        one = t->chains[g].count > 0 && t->chains[g].ids[0] == t->chains[0].ids[0];
    return one;
}

/* Names the levels of switches, from the outermost inwards. */
static void
name_switches(LhToolTree *tree, guint count)
{
    static const char *const names[LH_TOOL_SWITCHES_MAX] = { "switch", "inner-switch",
                                                             "innermost-switch" };

    for (guint i = 0; i < count; i++)
        g_array_index(tree->levels, LhToolLevel, i).name = names[count - 1 - i];
}

/* Sets p2p by NCCL's rules, which depend on the CPUs. */
static void
find_ways(TreeOfXml *t, bool is_switched)
{
    const guint cpu = gpu_at(t->x, 0)->cpu;
    const bool known = cpu < t->x->cpus->len;
    const LhToolCpu *said = known ? &g_array_index(t->x->cpus, LhXmlCpu, cpu).said : NULL;

    t->tree.weight = 1;
    t->tree.p2p = is_one_switch(t) ? "node" : is_switched ? "switch" : "none";
    if (!known || is_one_switch(t))
        return;
    t->tree.p2p_two = lh_tool_is_direct_for_two(said);
    t->tree.by_memory = lh_tool_share_by_memory(said);
}

static bool
fill_tree(TreeOfXml *t, double *slowest)
{
    guint depth = 0, switches;

    for (guint g = 0; g < t->x->gpus->len; g++) {
        const double rate = own_rate(t, g); /* nocheck:unit: bytes/s */

        *slowest = g == 0 ? rate : MIN(*slowest, rate);
        depth = MAX(depth, t->chains[g].count);
    }
    while (depth-- > 0)
        add_switches(t, depth);
    switches = t->tree.levels->len;
    if (switches > LH_TOOL_SWITCHES_MAX) {
        g_set_error(
            t->x->r->text.error, LH_ERROR, LH_ERROR_INPUT,
            "%s:%u: error: %u levels of nested switches; allowed: %d, as in a topology file",
            t->x->r->text.file, MAX(t->x->line, 1), switches, LH_TOOL_SWITCHES_MAX);
        return false;
    }
    name_switches(&t->tree, switches);
    find_ways(t, switches > 0);
    add_sockets(t);
    return true;
}

bool
lh_xml_add_tree(const LhXml *x, double *slowest)
{
    TreeOfXml t = { .x = x };
    bool ok;

    t.chains = g_new(Chain, x->gpus->len);
    for (guint g = 0; g < x->gpus->len; g++)
        t.chains[g] = find_chain(x, gpu_at(x, g));
    lh_tool_tree_init(&t.tree, x->gpus->len);
    t.source = lh_tool_source(x->r);
    ok = fill_tree(&t, slowest);
    if (ok && x->hosts->len < 2)
        ok = lh_tool_add_tree(x->r, &t.tree, MAX(x->line, 1));
    else
        lh_tool_tree_clear(&t.tree);
    g_free(t.source);
    g_free(t.chains);
    return ok;
}
