/* SPDX-License-Identifier: Apache-2.0 */
/*
 * PCIe of a node as a tree, of NCCL's topology XML: the PCIe functions around a GPU's own are
 * switches, NUMA nodes are sockets, as NCCL has them. Left out: which ports of a switch are slower
 * than others, since a level has one rate.
 */
#include "import/cluster/nccl_xml_private.h"

#include "base/error.h"

#define NO_SWITCH(gpu) (UINT32_MAX - (gpu)) /* numbers of elements are far below */

/* Switches above a GPU, the outermost first. */
typedef struct {
    uint32_t ids[LH_XML_DEPTH_MAX]; /* elements */
    guint count;
} Chain;

typedef struct {
    const LhXml *x;
    Chain *chains; /* of each GPU */
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

/* The last PCIe function around a GPU is its own. Parts of one switch count as it. */
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

/* A GPU's own link, and those of switches that it has for itself: the slowest of them. */
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

/* The level of the switches that have @depth others around them. */
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

/* The slowest of the links between sockets, and what is to be given where none is told. */
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
                "%s:%u: <cpu> lacks %s, by which NCCL knows what the link between sockets carries",
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

/* From the outermost level of switches inwards. */
static void
name_switches(LhToolTree *tree, guint count)
{
    static const char *const names[LH_TOOL_SWITCHES_MAX] = { "switch", "inner-switch",
                                                             "innermost-switch" };

    for (guint i = 0; i < count; i++)
        g_array_index(tree->levels, LhToolLevel, i).name = names[count - 1 - i];
}

/* What NCCL does, and hosts of some CPUs more than others. */
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
            "%s:%u: error: switches inside each other, %u levels of them; allowed: %d, as a "
            "topology file has them",
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
