/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Evaluates NCCL's topology XML (nccl_xml.c): how the GPUs are joined, which NICs serve them.
 */
#include "import/cluster/nccl_xml_private.h"

#include "base/error.h"
#include "import/cluster/near_nics.h"
#include "import/cluster/node_shape.h"

#define LOST_NAMED 8 /* NVLinks listed in a message */

/* Orders by host, then by CUDA's number, then by position in the file. */
static int
by_number(gconstpointer a, gconstpointer b)
{
    const LhXmlDevice *x = a, *y = b;

    if (x->host != y->host)
        return x->host < y->host ? -1 : 1;
    if (x->number != y->number)
        return x->number < y->number ? -1 : 1;
    for (guint i = 0; i < MIN(x->depth, y->depth); i++) {
        if (x->path[i] != y->path[i])
            return x->path[i] < y->path[i] ? -1 : 1;
    }
    return 0;
}

static guint
common_depth(const LhXmlDevice *a, const LhXmlDevice *b)
{
    guint depth = 0;

    while (depth < MIN(a->depth, b->depth) && a->path[depth] == b->path[depth])
        depth++;
    return depth;
}

/* The GPU at the other end of a link of @from; NULL: none in the file. */
static const LhXmlDevice *
find_target(const LhXml *x, const LhXmlDevice *from, const LhXmlLink *link, guint *index)
{
    for (*index = 0; *index < x->gpus->len; ++*index) {
        const LhXmlDevice *gpu = &g_array_index(x->gpus, LhXmlDevice, *index);

        if (gpu != from && gpu->host == from->host && g_strcmp0(link->target, gpu->bus) == 0)
            return gpu;
    }
    return NULL;
}

static void
fill_links(const LhXml *x, guint from, uint32_t *links)
{
    const LhXmlDevice *gpu = &g_array_index(x->gpus, LhXmlDevice, from);

    for (guint i = 0; i < gpu->links->len; i++) {
        const LhXmlLink *link = &g_array_index(gpu->links, LhXmlLink, i);
        guint to;

        if (find_target(x, gpu, link, &to) != NULL)
            links[from * x->gpus->len + to] += (uint32_t)link->count;
    }
}

/* NVLinks to no GPU of the file or to their own GPU, as virtual machines show them. */
typedef struct {
    const LhXmlLink *first;
    GString *names;       /* "GPU 0001:00:00.0: 12 to itself, ..." */
    guint named;          /* number of entries in names */
    uint64_t least, most; /* per GPU */
    bool others;          /* there are links with a known end */
} Lost;

static void
name_lost(Lost *lost, const LhXmlDevice *gpu, const LhXmlLink *link)
{
    if (lost->first == NULL)
        lost->first = link;
    if (lost->named++ < LOST_NAMED)
        g_string_append_printf(lost->names, "%s%" G_GUINT64_FORMAT " of GPU %s to %s",
                               lost->named > 1 ? ", " : "", link->count,
                               gpu->bus != NULL ? gpu->bus : "?",
                               g_strcmp0(link->target, gpu->bus) == 0 ? "itself" : link->target);
}

static void
look_for_lost(const LhXml *x, Lost *lost)
{
    lost->least = UINT64_MAX;
    for (guint g = 0; g < x->gpus->len; g++) {
        const LhXmlDevice *gpu = &g_array_index(x->gpus, LhXmlDevice, g);
        uint64_t count = 0;
        guint to;

        for (guint i = 0; i < gpu->links->len; i++) {
            const LhXmlLink *link = &g_array_index(gpu->links, LhXmlLink, i);

            if (find_target(x, gpu, link, &to) != NULL) {
                lost->others = true;
                continue;
            }
            count += link->count;
            name_lost(lost, gpu, link);
        }
        lost->others = lost->others || gpu->switched > 0;
        lost->least = MIN(lost->least, count);
        lost->most = MAX(lost->most, count);
    }
    if (lost->named > LOST_NAMED)
        g_string_append_printf(lost->names, ", and %u more", lost->named - LOST_NAMED);
}

/* Finds NVLinks without a known end: *@links of each GPU. Other files or the base then tell what
 * joins the GPUs. */
static bool
find_lost(const LhXml *x, uint32_t *links)
{
    g_autoptr(GString) names = g_string_new(NULL);
    Lost lost = { .names = names };
    g_autofree char *message = NULL;

    look_for_lost(x, &lost);
    *links = (uint32_t)MIN(lost.most, LH_XML_LINKS_MAX);
    if (lost.first == NULL)
        return true;
    message = g_strdup_printf("%s:%d:%d: error: NVLinks that lead to no other GPU of the file: %s",
                              x->r->text.file, lost.first->line, lost.first->column, names->str);
    if (!lost.others && lost.least == lost.most) {
        g_free(x->r->cluster->lost_nvlinks);
        x->r->cluster->lost_nvlinks = g_steal_pointer(&message);
        return true;
    }
    g_set_error(x->r->text.error, LH_ERROR, LH_ERROR_INPUT,
                "%s; give what NCCL writes when it runs on all GPUs of a node", message);
    return false;
}

/* Adds the wire rate of NICs that serve GPUs, if they are alike. */
static bool
add_wires(const LhXml *x, const LhToolShape *shape)
{
    g_autofree bool *near = NULL;
    const LhXmlDevice *first = NULL;

    lh_tool_near(shape, &near);
    for (guint i = 0; i < x->nics->len; i++) {
        const LhXmlDevice *nic = &g_array_index(x->nics, LhXmlDevice, i);

        if (!near[i])
            continue;
        first = first == NULL ? nic : first;
        if (nic->wire == first->wire)
            continue;
        g_free(x->r->cluster->unlike_nics);
        x->r->cluster->unlike_nics = g_strdup_printf(
            "%s:%u: error: this NIC and the one of line %u serve GPUs and have different speeds",
            x->r->text.file, nic->line, first->line);
        return true;
    }
    return first == NULL ||
           lh_tool_add(x->r, LH_TOOL_NIC_WIRE, first->line,
                       (LhToolValue){ first->wire, LH_PROVENANCE_DATASHEET, 0, 0 });
}

static bool
add_rates(const LhXml *x, const LhToolShape *shape)
{
    const LhXmlDevice *gpu = &g_array_index(x->gpus, LhXmlDevice, 0);
    double pcie; /* nocheck:unit: bytes/s */

    return lh_xml_add_tree(x, &pcie) &&
           (gpu->capability == 0 ||
            lh_tool_add(x->r, LH_TOOL_CAPABILITY, gpu->line,
                        (LhToolValue){ (double)gpu->capability, LH_PROVENANCE_DATASHEET, 0, 0 })) &&
           (pcie == 0 || lh_tool_add(x->r, LH_TOOL_PCIE_RATE, gpu->line,
                                     (LhToolValue){ pcie, LH_PROVENANCE_DATASHEET, 0, 0 })) &&
           add_wires(x, shape);
}

/* Checks files of several hosts, which must be joined by an NVSwitch. */
static bool
check_hosts(const LhXml *x)
{
    g_autofree guint *gpus = g_new0(guint, x->hosts->len + 1);

    for (guint g = 0; g < x->gpus->len; g++) {
        const LhXmlDevice *gpu = &g_array_index(x->gpus, LhXmlDevice, g);

        gpus[gpu->host]++;
        if (x->hosts->len < 2 || gpu->switched > 0)
            continue;
        g_set_error(x->r->text.error, LH_ERROR, LH_ERROR_INPUT,
                    "%s:%u: error: several hosts in one file, but a GPU without NVLinks to a "
                    "switch that joins them; give NCCL's file for one node",
                    x->r->text.file, gpu->line);
        return false;
    }
    for (guint h = 1; h < x->hosts->len; h++) {
        if (gpus[h] == gpus[0])
            continue;
        g_set_error(x->r->text.error, LH_ERROR, LH_ERROR_INPUT,
                    "%s:%u: error: hosts of %u and of %u GPUs in one file; give a run on all GPUs "
                    "of all hosts of the NVLink domain",
                    x->r->text.file, MAX(x->line, 1), gpus[0], gpus[h]);
        return false;
    }
    return true;
}

static bool
add_number_of_hosts(const LhXml *x)
{
    return x->hosts->len < 2 ||
           lh_tool_add(x->r, LH_TOOL_HOSTS, MAX(x->line, 1),
                       (LhToolValue){ x->hosts->len, LH_PROVENANCE_DATASHEET, 0, 0 });
}

/* Names of the NICs, "mlx5_0", or their line. Caller frees. */
static char **
names_of_nics(const LhXml *x)
{
    char **names = g_new0(char *, x->nics->len + 1);

    for (guint n = 0; n < x->nics->len; n++) {
        const LhXmlDevice *nic = &g_array_index(x->nics, LhXmlDevice, n);

        names[n] = nic->name != NULL ? g_strdup(nic->name)
                                     : g_strdup_printf("the NIC of line %u", nic->line);
    }
    return names;
}

bool
lh_xml_conclude(const LhXml *x)
{
    const guint gpus = x->gpus->len, nics = x->nics->len;
    g_autofree uint32_t *links = g_new0(uint32_t, (gsize)gpus * gpus + 1);
    g_autofree uint32_t *distance = g_new0(uint32_t, (gsize)gpus * nics + 1);
    g_autofree uint32_t *switched = g_new0(uint32_t, gpus + 1);
    g_auto(GStrv) names = names_of_nics(x);
    LhToolShape shape = { .gpus = gpus,
                          .nics = nics,
                          .links = links,
                          .distance = distance,
                          .apart = LH_XML_DEPTH_MAX - 1,
                          .used = true,
                          .switched = switched,
                          .names = names };

    if (gpus == 0) {
        g_set_error(x->r->text.error, LH_ERROR, LH_ERROR_INPUT,
                    "%s:%u: error: no <gpu>, as in files for virtual machines; give what NCCL "
                    "writes with NCCL_TOPO_DUMP_FILE in a run on all GPUs",
                    x->r->text.file, MAX(x->line, 1));
        return false;
    }
    g_array_sort(x->gpus, by_number);
    if (!check_hosts(x) || !find_lost(x, &shape.lost))
        return false;
    for (guint g = 0; g < gpus; g++) {
        const LhXmlDevice *gpu = &g_array_index(x->gpus, LhXmlDevice, g);

        fill_links(x, g, links);
        switched[g] = (uint32_t)MIN(gpu->switched, LH_XML_LINKS_MAX);
        for (guint n = 0; n < nics; n++)
            distance[g * nics + n] =
                LH_XML_DEPTH_MAX - common_depth(gpu, &g_array_index(x->nics, LhXmlDevice, n));
    }
    return lh_tool_add_shape(x->r, &shape, MAX(x->line, 1)) && add_number_of_hosts(x) &&
           add_rates(x, &shape);
}
