/*
 * The topology of one node as NCCL writes it (NCCL_TOPO_DUMP_FILE), or of the hosts of one NVLink
 * domain, which NCCL writes as one: GPUs with their NVLinks and PCIe links, and NICs with the rates
 * of their wires. NICs count that are as near to some GPU as any, by what they have in common on
 * the way to the root. Left out: links between CPUs, C2C, NVLinks to CPUs.
 */
#include "base/error.h"
#include "import/told_shape.h"

#include <string.h>

#define XML_DEPTH_MAX 32
#define ATTRIBUTES_MAX 32
#define ELEMENTS_MAX 100000
#define LANES_MAX 32
#define LINKS_MAX 64 /* of a GPU, to one target */
#define LOST_NAMED 8 /* NVLinks that lead nowhere, in a message */
#define MBIT 1.25e5
#define MBITS_MAX 1e8
/* Classes of PCIe devices at the other end of NVLinks. */
#define GPU_CLASS "0x03" /* and more digits */
#define SWITCH_CLASS "0x068000"
#define CPU_CLASS "0x068001"
/* Bytes/s of a PCIe link that NCCL counts with: GB x lanes x a speed in tenths of GT/s / 80, where
 * the third generation's is 60. */
#define GB 1e9
#define PER_LANE 80.0

typedef struct {
    char *bus;                    /* of its PCIe function */
    guint host;                   /* by number */
    uint32_t path[XML_DEPTH_MAX]; /* elements around it, by number, the outermost first */
    guint depth;
    guint line;
    uint64_t switched;           /* NVLinks to a switch */
    GArray *links;               /* of Link, to other GPUs */
    uint64_t capability, number; /* as CUDA counts GPUs */
    double pcie;                 /* nocheck:unit: bytes/s; 0: not said */
    double wire;                 /* nocheck:unit: of a NIC, bytes/s */
} Device;

typedef struct {
    char *target; /* bus of a GPU */
    uint64_t count;
    int line, column; /* where it is read to its end */
} Link;

typedef struct {
    LhToldReader *r;
    GMarkupParseContext *context;
    uint32_t path[XML_DEPTH_MAX];
    double speeds[XML_DEPTH_MAX]; /* nocheck:unit: of the PCIe links around, bytes/s */
    char *bus;                    /* of the PCIe function that is being read */
    guint depth;
    uint32_t elements;
    GArray *gpus, *nics; /* of Device */
    GPtrArray *hosts;    /* of char *: host_hash, each once */
    guint host;          /* of the CPU that is being read */
    guint line;          /* of the system */
} Xml;

static void
clear_link(gpointer link)
{
    g_free(((Link *)link)->target);
}

static void
clear_device(gpointer data)
{
    Device *device = data;

    g_free(device->bus);
    g_array_unref(device->links);
}

static bool G_GNUC_PRINTF(3, 4) fail(const Xml *x, GError **error, const char *format, ...)
{
    g_autofree char *message = NULL;
    va_list args;
    int line, column;

    va_start(args, format);
    message = g_strdup_vprintf(format, args);
    va_end(args);
    g_markup_parse_context_get_position(x->context, &line, &column);
    g_set_error(error, LH_ERROR, LH_ERROR_INPUT, "%s:%d:%d: error: %s", x->r->text.file, line,
                column, message);
    return false;
}

static guint
line_of(const Xml *x)
{
    int line, column;

    g_markup_parse_context_get_position(x->context, &line, &column);
    return (guint)line;
}

/* --- attributes ---------------------------------------------------------------------------------
 */

typedef struct {
    const char *element;
    const char **names, **values;
} Attributes;

/* NULL if there is none. */
static const char *
attribute(const Attributes *a, const char *name)
{
    for (guint i = 0; a->names[i] != NULL; i++) {
        if (strcmp(a->names[i], name) == 0)
            return a->values[i];
    }
    return NULL;
}

static bool
check_attributes(const Xml *x, const Attributes *a, GError **error)
{
    guint count = 0;

    for (; a->names[count] != NULL; count++) {
        if (count == ATTRIBUTES_MAX || strlen(a->names[count]) > LH_TOLD_NAME_BYTES_MAX ||
            strlen(a->values[count]) > LH_TOLD_NAME_BYTES_MAX)
            return fail(x, error, "more than %d attributes, or one of more than %d bytes",
                        ATTRIBUTES_MAX, LH_TOLD_NAME_BYTES_MAX);
    }
    return true;
}

typedef struct {
    double min, max; /* nocheck:unit: of an attribute */
} Range;

/* A number that the element must have. */
static bool
read_number(const Xml *x, const Attributes *a, const char *name, Range range, double *value,
            GError **error)
{
    const char *text = attribute(a, name);

    if (text == NULL)
        return fail(x, error, "<%s> without the attribute %s", a->element, name);
    if (!lh_told_double((LhToldWord){ text, strlen(text) }, value) ||
        !(*value >= range.min && *value <= range.max))
        return fail(x, error, "%s=\"%s\" of <%s>; allowed: a number from %g to %g", name, text,
                    a->element, range.min, range.max);
    return true;
}

/* What NCCL takes a PCIe link for; 0 if nothing is said of it. */
static bool
read_pcie(const Xml *x, const Attributes *a, double *rate, GError **error)
{
    static const struct {
        double transfers; /* GT/s */
        double speed;     /* nocheck:unit: as NCCL counts */
    } generations[] = { { 2.5, 15 }, { 5, 30 }, { 8, 60 }, { 16, 120 }, { 32, 240 }, { 64, 480 } };
    const char *text = attribute(a, "link_speed");
    double transfers = 0, lanes = 0;
    gsize length;

    *rate = 0;
    if (text == NULL || *text == '\0' || attribute(a, "link_width") == NULL)
        return true;
    length = strcspn(text, " ");
    if (!read_number(x, a, "link_width", (Range){ 0, LANES_MAX }, &lanes, error))
        return false;
    for (guint i = 0;
         lh_told_double((LhToldWord){ text, length }, &transfers) && i < G_N_ELEMENTS(generations);
         i++) {
        if (transfers == generations[i].transfers && g_str_has_prefix(text + length, " GT/s"))
            *rate = GB * lanes * generations[i].speed / PER_LANE;
    }
    return true;
}

/* --- elements -----------------------------------------------------------------------------------
 */

static bool
add_device(Xml *x, const Attributes *a, GArray *devices, GError **error)
{
    Device device = { .depth = x->depth, .line = line_of(x) };

    if (devices->len == LH_TOLD_GPUS_MAX)
        return fail(x, error, "more than %d <%s>", LH_TOLD_GPUS_MAX, a->element);
    if (x->depth > 0)
        device.pcie = x->speeds[x->depth - 1];
    device.host = x->host;
    memcpy(device.path, x->path, sizeof(device.path));
    device.bus = g_strdup(x->bus);
    device.links = g_array_new(FALSE, FALSE, sizeof(Link));
    g_array_set_clear_func(device.links, clear_link);
    g_array_append_val(devices, device);
    return true;
}

static bool
read_gpu(Xml *x, const Attributes *a, GError **error)
{
    double capability = 0, number = 0;
    Device *gpu;

    if (attribute(a, "gcn") != NULL)
        return fail(x, error,
                    "a GPU of AMD, as RCCL writes it, which is not read; allowed: what NCCL writes "
                    "of NVIDIA's GPUs, or a topology file by hand (docs/clusters.md)");
    if ((attribute(a, "sm") != NULL &&
         !read_number(x, a, "sm", (Range){ 1, 1000 }, &capability, error)) ||
        (attribute(a, "dev") != NULL &&
         !read_number(x, a, "dev", (Range){ 0, LH_TOLD_GPUS_MAX }, &number, error)) ||
        !add_device(x, a, x->gpus, error))
        return false;
    gpu = &g_array_index(x->gpus, Device, x->gpus->len - 1);
    gpu->capability = (uint64_t)capability;
    gpu->number = (uint64_t)number;
    return true;
}

static bool
read_nvlink(Xml *x, const Attributes *a, GError **error)
{
    const char *class = attribute(a, "tclass"), *target = attribute(a, "target");
    double count = 0;
    Device *gpu;

    if (x->gpus->len == 0 || target == NULL)
        return fail(x, error, "<nvlink> belongs in a <gpu>, and has a target");
    if (!read_number(x, a, "count", (Range){ 1, LINKS_MAX }, &count, error))
        return false;
    gpu = &g_array_index(x->gpus, Device, x->gpus->len - 1);
    if (class != NULL && strcmp(class, SWITCH_CLASS) == 0) {
        gpu->switched += (uint64_t)count;
    } else if (class == NULL || g_str_has_prefix(class, GPU_CLASS)) {
        Link link = { .target = g_strdup(target), .count = (uint64_t)count };

        g_markup_parse_context_get_position(x->context, &link.line, &link.column);
        g_array_append_val(gpu->links, link);
        return gpu->links->len <= LH_TOLD_GPUS_MAX || fail(x, error, "too many <nvlink>");
    } else if (strcmp(class, CPU_CLASS) != 0) {
        return fail(x, error,
                    "tclass=\"%s\" of <nvlink>; allowed: " GPU_CLASS "0200, a GPU, " SWITCH_CLASS
                    ", a switch, or " CPU_CLASS ", a CPU",
                    class);
    }
    return true;
}

static bool
read_net(Xml *x, const Attributes *a, GError **error)
{
    double mbits = 0;

    if (!read_number(x, a, "speed", (Range){ 1, MBITS_MAX }, &mbits, error) ||
        !add_device(x, a, x->nics, error))
        return false;
    g_array_index(x->nics, Device, x->nics->len - 1).wire = mbits * MBIT;
    return true;
}

static bool
read_system(Xml *x, const Attributes *a, GError **error)
{
    const char *version = attribute(a, "version");

    if (x->depth != 0 || strcmp(a->element, "system") != 0)
        return fail(x, error,
                    "the outermost element is <%s>; allowed: <system>, of NCCL's topology "
                    "(NCCL_TOPO_DUMP_FILE)",
                    a->element);
    x->line = line_of(x);
    return g_strcmp0(version, "1") == 0 ||
           fail(x, error,
                "version=\"%s\" of <system>; allowed: 1, as NCCL writes it; AMD's RCCL, which is "
                "not read, writes 2",
                version != NULL ? version : "");
}

/* Another hash is another host. */
static bool
read_cpu(Xml *x, const Attributes *a, GError **error)
{
    const char *host = attribute(a, "host_hash");

    (void)error;
    x->host = 0;
    if (host == NULL)
        return true;
    while (x->host < x->hosts->len && strcmp(g_ptr_array_index(x->hosts, x->host), host) != 0)
        x->host++;
    if (x->host == x->hosts->len)
        g_ptr_array_add(x->hosts, g_strdup(host));
    return true;
}

static bool
read_element(Xml *x, const Attributes *a, GError **error)
{
    static const struct {
        const char *name;
        bool (*read)(Xml *x, const Attributes *a, GError **error);
    } elements[] = {
        { "cpu", read_cpu },
        { "gpu", read_gpu },
        { "net", read_net },
        { "nvlink", read_nvlink },
    };

    if (x->depth == 0)
        return read_system(x, a, error);
    for (guint i = 0; i < G_N_ELEMENTS(elements); i++) {
        if (strcmp(a->element, elements[i].name) == 0)
            return elements[i].read(x, a, error);
    }
    return true;
}

static void
start_element(GMarkupParseContext *context, const char *name, const char **names,
              const char **values, gpointer data, GError **error)
{
    Xml *x = data;
    const Attributes a = { name, names, values };
    double speed = 0; /* nocheck:unit: bytes/s */

    (void)context;
    if (x->depth == XML_DEPTH_MAX || x->elements == ELEMENTS_MAX) {
        fail(x, error, "more than %d elements, or %d inside each other", ELEMENTS_MAX,
             XML_DEPTH_MAX);
        return;
    }
    if (!check_attributes(x, &a, error) || !read_element(x, &a, error))
        return;
    if (strcmp(name, "pci") == 0) {
        if (!read_pcie(x, &a, &speed, error))
            return;
        g_free(x->bus);
        x->bus = g_strdup(attribute(&a, "busid"));
    }
    x->speeds[x->depth] = speed;
    x->path[x->depth++] = x->elements++;
}

static void
end_element(GMarkupParseContext *context, const char *name, gpointer data, GError **error)
{
    Xml *x = data;

    (void)context;
    (void)name;
    (void)error;
    x->depth--;
}

/* --- what it says -------------------------------------------------------------------------------
 */

/* By host, and there as CUDA counts them; else as they stand in the file. */
static int
by_number(gconstpointer a, gconstpointer b)
{
    const Device *x = a, *y = b;

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
common_depth(const Device *a, const Device *b)
{
    guint depth = 0;

    while (depth < MIN(a->depth, b->depth) && a->path[depth] == b->path[depth])
        depth++;
    return depth;
}

/* The GPU that a link of @from leads to; NULL: none that is in the file. */
static const Device *
find_target(const Xml *x, const Device *from, const Link *link, guint *index)
{
    for (*index = 0; *index < x->gpus->len; ++*index) {
        const Device *gpu = &g_array_index(x->gpus, Device, *index);

        if (gpu != from && gpu->host == from->host && g_strcmp0(link->target, gpu->bus) == 0)
            return gpu;
    }
    return NULL;
}

static void
fill_links(const Xml *x, guint from, uint32_t *links)
{
    const Device *gpu = &g_array_index(x->gpus, Device, from);

    for (guint i = 0; i < gpu->links->len; i++) {
        const Link *link = &g_array_index(gpu->links, Link, i);
        guint to;

        if (find_target(x, gpu, link, &to) != NULL)
            links[from * x->gpus->len + to] += (uint32_t)link->count;
    }
}

/* Links that lead to no GPU of the file, or to their own: a virtual machine hides where. */
typedef struct {
    const Link *first;
    GString *names;       /* "GPU 0001:00:00.0: 12 to itself, ..." */
    guint named;          /* in these */
    uint64_t least, most; /* of a GPU */
    bool others;          /* whether there are links that lead somewhere */
} Lost;

static void
name_lost(Lost *lost, const Device *gpu, const Link *link)
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
look_for_lost(const Xml *x, Lost *lost)
{
    lost->least = UINT64_MAX;
    for (guint g = 0; g < x->gpus->len; g++) {
        const Device *gpu = &g_array_index(x->gpus, Device, g);
        uint64_t count = 0;
        guint to;

        for (guint i = 0; i < gpu->links->len; i++) {
            const Link *link = &g_array_index(gpu->links, Link, i);

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

/* *@links of each GPU that lead nowhere: what joins them is left to other files and the base. */
static bool
find_lost(const Xml *x, uint32_t *links)
{
    g_autoptr(GString) names = g_string_new(NULL);
    Lost lost = { .names = names };
    g_autofree char *message = NULL;

    look_for_lost(x, &lost);
    *links = (uint32_t)MIN(lost.most, LINKS_MAX);
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

/* The slowest PCIe link of a GPU, if all of them are known. */
static double
slowest_pcie(const Xml *x)
{
    double slowest = g_array_index(x->gpus, Device, 0).pcie; /* nocheck:unit: bytes/s */

    for (guint i = 1; i < x->gpus->len; i++)
        slowest = MIN(slowest, g_array_index(x->gpus, Device, i).pcie);
    return slowest;
}

/* Adds the rate of the wires of NICs that count, if they are alike. */
static bool
add_wires(const Xml *x, const LhToldShape *shape)
{
    g_autofree bool *near = NULL;
    const Device *first = NULL;

    lh_told_near(shape, &near);
    for (guint i = 0; i < x->nics->len; i++) {
        const Device *nic = &g_array_index(x->nics, Device, i);

        if (!near[i])
            continue;
        first = first == NULL ? nic : first;
        if (nic->wire == first->wire)
            continue;
        g_free(x->r->cluster->unlike_nics);
        x->r->cluster->unlike_nics = g_strdup_printf("%s:%u: error: this NIC and the one of line "
                                                     "%u are next to GPUs and of different speeds",
                                                     x->r->text.file, nic->line, first->line);
        return true;
    }
    return first == NULL ||
           lh_told_add(x->r, LH_TOLD_NIC_WIRE, first->line,
                       (LhToldValue){ first->wire, LH_PROVENANCE_DATASHEET, 0, 0 });
}

static bool
add_rates(const Xml *x, const LhToldShape *shape)
{
    const Device *gpu = &g_array_index(x->gpus, Device, 0);
    const double pcie = slowest_pcie(x); /* nocheck:unit: bytes/s */

    return (gpu->capability == 0 ||
            lh_told_add(x->r, LH_TOLD_CAPABILITY, gpu->line,
                        (LhToldValue){ (double)gpu->capability, LH_PROVENANCE_DATASHEET, 0, 0 })) &&
           (pcie == 0 || lh_told_add(x->r, LH_TOLD_PCIE_RATE, gpu->line,
                                     (LhToldValue){ pcie, LH_PROVENANCE_DATASHEET, 0, 0 })) &&
           add_wires(x, shape);
}

/* Several hosts are one node only where a switch joins their GPUs. */
static bool
check_hosts(const Xml *x)
{
    g_autofree guint *gpus = g_new0(guint, x->hosts->len + 1);

    for (guint g = 0; g < x->gpus->len; g++) {
        const Device *gpu = &g_array_index(x->gpus, Device, g);

        gpus[gpu->host]++;
        if (x->hosts->len < 2 || gpu->switched > 0)
            continue;
        g_set_error(x->r->text.error, LH_ERROR, LH_ERROR_INPUT,
                    "%s:%u: error: several hosts in one file, and a GPU without NVLinks to a "
                    "switch that would join them; give what NCCL writes for one node",
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
conclude_graph(const Xml *x)
{
    const guint gpus = x->gpus->len, nics = x->nics->len;
    g_autofree uint32_t *links = g_new0(uint32_t, (gsize)gpus * gpus + 1);
    g_autofree uint32_t *distance = g_new0(uint32_t, (gsize)gpus * nics + 1);
    g_autofree uint32_t *switched = g_new0(uint32_t, gpus + 1);
    LhToldShape shape = { gpus, nics, links, distance, XML_DEPTH_MAX - 1, true, switched, 0 };

    if (gpus == 0) {
        g_set_error(x->r->text.error, LH_ERROR, LH_ERROR_INPUT,
                    "%s:%u: error: no <gpu> in it, as in files for virtual machines; give what "
                    "NCCL writes when NCCL_TOPO_DUMP_FILE is set and it runs on all GPUs",
                    x->r->text.file, MAX(x->line, 1));
        return false;
    }
    g_array_sort(x->gpus, by_number);
    if (!check_hosts(x) || !find_lost(x, &shape.lost))
        return false;
    for (guint g = 0; g < gpus; g++) {
        const Device *gpu = &g_array_index(x->gpus, Device, g);

        fill_links(x, g, links);
        switched[g] = (uint32_t)MIN(gpu->switched, LINKS_MAX);
        for (guint n = 0; n < nics; n++)
            distance[g * nics + n] =
                XML_DEPTH_MAX - common_depth(gpu, &g_array_index(x->nics, Device, n));
    }
    return lh_told_add_shape(x->r, &shape, MAX(x->line, 1)) && add_rates(x, &shape);
}

/* Whether GMarkup reads all of it. What it says itself depends on the language of the user. */
static bool
parse(Xml *x, const char *text, gsize length)
{
    GError *failure = NULL;

    if (g_markup_parse_context_parse(x->context, text, (gssize)length, &failure) &&
        g_markup_parse_context_end_parse(x->context, &failure))
        return true;
    if (failure->domain == LH_ERROR) {
        g_propagate_error(x->r->text.error, failure);
        return false;
    }
    fail(x, x->r->text.error,
         "no XML: it was cut here, or an element, an attribute or a quote is not as XML has them");
    g_error_free(failure);
    return false;
}

static bool
read_xml(LhToldReader *r)
{
    static const GMarkupParser parser = { .start_element = start_element,
                                          .end_element = end_element };
    g_autoptr(GArray) gpus = g_array_new(FALSE, FALSE, sizeof(Device));
    g_autoptr(GArray) nics = g_array_new(FALSE, FALSE, sizeof(Device));
    g_autoptr(GPtrArray) hosts = g_ptr_array_new_with_free_func(g_free);
    Xml x = { .r = r, .gpus = gpus, .nics = nics, .hosts = hosts };
    const char *const text = r->text.at;
    bool ok;

    g_array_set_clear_func(gpus, clear_device);
    g_array_set_clear_func(nics, clear_device);
    x.context = g_markup_parse_context_new(&parser, 0, &x, NULL);
    ok = parse(&x, text, (gsize)(r->text.end - text)) && conclude_graph(&x);
    g_markup_parse_context_free(x.context);
    g_free(x.bus);
    return ok;
}

static bool
is_xml(const LhToldReader *r)
{
    const LhToldWord first = lh_told_word(r, 0);

    return lh_told_begins(first, "<system") || (r->text.line == 1 && lh_told_begins(first, "<"));
}

const LhToldFormat lh_told_nccl_xml = { "NCCL topology XML", is_xml, read_xml };
