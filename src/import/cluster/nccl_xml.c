/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads the topology of a node as NCCL writes it (NCCL_TOPO_DUMP_FILE), or of the hosts of one
 * NVLink domain, which NCCL writes as one: GPUs with NVLinks and PCIe links, the switches and CPUs
 * around them, and NICs with their wire rates. NICs count that are nearest to some GPU, by the
 * length of the common path from the root. Left out: C2C, NVLinks to CPUs.
 */
#include "base/error.h"
#include "import/cluster/nccl_xml_private.h"

#include <string.h>

#define ATTRIBUTES_MAX 32
#define ELEMENTS_MAX 100000
#define LANES_MAX 32
#define MBIT 1.25e5
#define MBITS_MAX 1e8
/* PCIe classes of the devices at the other end of NVLinks. */
#define GPU_CLASS "0x03" /* prefix of the class */
#define SWITCH_CLASS "0x068000"
#define CPU_CLASS "0x068001"
/* Switches whose partitions appear as nested switches without a link between. */
#define PARTED_VENDOR "0x1000"
#define PARTED_4 "0xc010"
#define PARTED_5 "0xc030"
#define CPU_NUMBER_MAX 65535 /* family, model */
/* NCCL's bandwidth of a PCIe link in bytes/s: GB x lanes x speed / 80, with the speed in tenths of
 * GT/s; 60 for the third generation. */
#define GB 1e9
#define PER_LANE 80.0

static void
clear_link(gpointer link)
{
    g_free(((LhXmlLink *)link)->target);
}

static void
clear_cpu(gpointer data)
{
    LhXmlCpu *cpu = data;

    g_free(cpu->numa);
    g_free(cpu->arch);
    g_free(cpu->vendor);
}

static void
clear_device(gpointer data)
{
    LhXmlDevice *device = data;

    g_free(device->bus);
    g_free(device->name);
    g_array_unref(device->links);
}

/* End of the element that was read. GMarkup counts a line as soon as it reaches its end, which is
 * then column 1 of the next. */
static void
find_position(const LhXml *x, int *line, int *column)
{
    g_markup_parse_context_get_position(x->context, line, column);
    if (*column == 1 && *line > 1)
        --*line;
}

static bool G_GNUC_PRINTF(3, 4) fail(const LhXml *x, GError **error, const char *format, ...)
{
    g_autofree char *message = NULL;
    va_list args;
    int line, column;

    va_start(args, format);
    message = lh_error_text(format, args);
    va_end(args);
    find_position(x, &line, &column);
    g_set_error(error, LH_ERROR, LH_ERROR_INPUT, "%s:%d:%d: error: %s", x->r->text.file, line,
                column, message);
    return false;
}

static guint
line_of(const LhXml *x)
{
    int line, column;

    find_position(x, &line, &column);
    return (guint)line;
}

/* --- attributes ---------------------------------------------------------------------------------
 */

typedef struct {
    const char *element;
    const char **names, **values;
} Attributes;

/* NULL if absent. */
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
check_attributes(const LhXml *x, const Attributes *a, GError **error)
{
    guint count = 0;

    for (; a->names[count] != NULL; count++) {
        if (count == ATTRIBUTES_MAX || strlen(a->names[count]) > LH_TOOL_NAME_BYTES_MAX ||
            strlen(a->values[count]) > LH_TOOL_NAME_BYTES_MAX)
            return fail(x, error, "more than %d attributes, or one of more than %d bytes",
                        ATTRIBUTES_MAX, LH_TOOL_NAME_BYTES_MAX);
    }
    return true;
}

typedef struct {
    double min, max; /* nocheck:unit: of an attribute */
} Range;

/* Reads a number that the element must have. */
static bool
read_number(const LhXml *x, const Attributes *a, const char *name, Range range, double *value,
            GError **error)
{
    const char *text = attribute(a, name);

    if (text == NULL)
        return fail(x, error, "<%s> without the attribute %s", a->element, name);
    if (!lh_tool_double((LhToolWord){ text, strlen(text) }, value) ||
        !(*value >= range.min && *value <= range.max))
        return fail(x, error, "%s=\"%s\" of <%s>; allowed: a number from %g to %g", name, text,
                    a->element, range.min, range.max);
    return true;
}

/* Width that Linux reports for functions without a visible link, as in virtual machines. */
static bool
is_width_unknown(const char *width)
{
    return *width == '\0' || strcmp(width, "63") == 0 || strcmp(width, "255") == 0;
}

/* Bandwidth that NCCL assumes for a PCIe link; 0 if unknown. */
static bool
read_pcie(const LhXml *x, const Attributes *a, double *rate, GError **error)
{
    static const struct {
        double transfers; /* GT/s */
        double speed;     /* nocheck:unit: in NCCL's table */
    } generations[] = { { 2.5, 15 }, { 5, 30 }, { 8, 60 }, { 16, 120 }, { 32, 240 }, { 64, 480 } };
    const char *text = attribute(a, "link_speed"), *width = attribute(a, "link_width");
    double transfers = 0, lanes = 0;
    gsize length;

    *rate = 0;
    if (text == NULL || *text == '\0' || width == NULL || is_width_unknown(width))
        return true;
    length = strcspn(text, " ");
    if (!read_number(x, a, "link_width", (Range){ 0, LANES_MAX }, &lanes, error))
        return false;
    for (guint i = 0;
         lh_tool_double((LhToolWord){ text, length }, &transfers) && i < G_N_ELEMENTS(generations);
         i++) {
        if (transfers == generations[i].transfers && g_str_has_prefix(text + length, " GT/s"))
            *rate = GB * lanes * generations[i].speed / PER_LANE;
    }
    return true;
}

/* --- elements -----------------------------------------------------------------------------------
 */

static bool
add_device(LhXml *x, const Attributes *a, GArray *devices, GError **error)
{
    LhXmlDevice device = { .depth = x->depth, .line = line_of(x) };

    if (devices->len == LH_TOOL_GPUS_MAX)
        return fail(x, error, "more than %d <%s>", LH_TOOL_GPUS_MAX, a->element);
    if (x->depth > 0)
        device.pcie = g_array_index(x->elements, LhXmlElement, x->path[x->depth - 1]).rate;
    device.host = x->host;
    device.cpu = x->cpu;
    memcpy(device.path, x->path, sizeof(device.path));
    device.bus = g_strdup(x->bus);
    device.links = g_array_new(FALSE, FALSE, sizeof(LhXmlLink));
    g_array_set_clear_func(device.links, clear_link);
    g_array_append_val(devices, device);
    return true;
}

static bool
read_gpu(LhXml *x, const Attributes *a, GError **error)
{
    double capability = 0, number = 0;
    LhXmlDevice *gpu;

    if (attribute(a, "gcn") != NULL)
        return fail(
            x, error,
            "an AMD GPU, as written by RCCL, which is not supported; allowed: NCCL's file for "
            "NVIDIA GPUs, or a topology file written by hand (docs/manual/clusters.md)");
    if ((attribute(a, "sm") != NULL &&
         !read_number(x, a, "sm", (Range){ 1, 1000 }, &capability, error)) ||
        (attribute(a, "dev") != NULL &&
         !read_number(x, a, "dev", (Range){ 0, LH_TOOL_GPUS_MAX }, &number, error)) ||
        !add_device(x, a, x->gpus, error))
        return false;
    gpu = &g_array_index(x->gpus, LhXmlDevice, x->gpus->len - 1);
    gpu->capability = (uint64_t)capability;
    gpu->number = (uint64_t)number;
    return true;
}

static bool
read_nvlink(LhXml *x, const Attributes *a, GError **error)
{
    const char *class = attribute(a, "tclass"), *target = attribute(a, "target");
    double count = 0;
    LhXmlDevice *gpu;

    if (x->gpus->len == 0 || target == NULL)
        return fail(x, error, "<nvlink> belongs in a <gpu>, and has a target");
    if (!read_number(x, a, "count", (Range){ 1, LH_XML_LINKS_MAX }, &count, error))
        return false;
    gpu = &g_array_index(x->gpus, LhXmlDevice, x->gpus->len - 1);
    if (class != NULL && strcmp(class, SWITCH_CLASS) == 0) {
        gpu->switched += (uint64_t)count;
    } else if (class == NULL || g_str_has_prefix(class, GPU_CLASS)) {
        LhXmlLink link = { .target = g_strdup(target), .count = (uint64_t)count };

        find_position(x, &link.line, &link.column);
        g_array_append_val(gpu->links, link);
        return gpu->links->len <= LH_TOOL_GPUS_MAX || fail(x, error, "too many <nvlink>");
    } else if (strcmp(class, CPU_CLASS) != 0) {
        return fail(x, error,
                    "tclass=\"%s\" of <nvlink>; allowed: " GPU_CLASS "0200, a GPU, " SWITCH_CLASS
                    ", a switch, or " CPU_CLASS ", a CPU",
                    class);
    }
    return true;
}

static bool
read_net(LhXml *x, const Attributes *a, GError **error)
{
    LhXmlDevice *nic;
    double mbits = 0;

    if (!read_number(x, a, "speed", (Range){ 1, MBITS_MAX }, &mbits, error) ||
        !add_device(x, a, x->nics, error))
        return false;
    nic = &g_array_index(x->nics, LhXmlDevice, x->nics->len - 1);
    nic->wire = mbits * MBIT;
    nic->name = g_strdup(attribute(a, "name"));
    return true;
}

static bool
read_system(LhXml *x, const Attributes *a, GError **error)
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
                "not supported, writes 2",
                version != NULL ? version : "");
}

/* Index of the host with this hash; a new hash is a new host. */
static guint
find_host(LhXml *x, const char *hash)
{
    guint host = 0;

    while (hash != NULL && host < x->hosts->len &&
           strcmp(g_ptr_array_index(x->hosts, host), hash) != 0)
        host++;
    if (hash != NULL && host == x->hosts->len)
        g_ptr_array_add(x->hosts, g_strdup(hash));
    return host;
}

/* Whether it is the same CPU: one per host and NUMA node. */
static bool
is_of_cpu(const LhXmlCpu *cpu, guint host, const char *numa)
{
    return numa != NULL && cpu->host == host && g_strcmp0(cpu->numa, numa) == 0;
}

static bool
read_cpu(LhXml *x, const Attributes *a, GError **error)
{
    const char *numa = attribute(a, "numaid");
    const bool family = attribute(a, "familyid") != NULL, model = attribute(a, "modelid") != NULL;
    const Range range = { 0, CPU_NUMBER_MAX };
    double numbers[2] = { 0, 0 };
    LhXmlCpu cpu = { .line = line_of(x) };

    if ((family && !read_number(x, a, "familyid", range, &numbers[0], error)) ||
        (model && !read_number(x, a, "modelid", range, &numbers[1], error)))
        return false;
    cpu.host = x->host = find_host(x, attribute(a, "host_hash"));
    for (x->cpu = 0; x->cpu < x->cpus->len; x->cpu++) {
        if (is_of_cpu(&g_array_index(x->cpus, LhXmlCpu, x->cpu), x->host, numa))
            return true;
    }
    cpu.numa = g_strdup(numa);
    cpu.arch = g_strdup(attribute(a, "arch"));
    cpu.vendor = g_strdup(attribute(a, "vendor"));
    cpu.said = (LhToolCpu){ cpu.arch, cpu.vendor, family && model, (uint64_t)numbers[0],
                            (uint64_t)numbers[1] };
    g_array_append_val(x->cpus, cpu);
    return true;
}

static bool
read_element(LhXml *x, const Attributes *a, GError **error)
{
    static const struct {
        const char *name;
        bool (*read)(LhXml *x, const Attributes *a, GError **error);
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

static bool
is_parted(const Attributes *a)
{
    const char *device = attribute(a, "device");

    return g_strcmp0(attribute(a, "vendor"), PARTED_VENDOR) == 0 &&
           (g_strcmp0(device, PARTED_4) == 0 || g_strcmp0(device, PARTED_5) == 0);
}

static void
start_element(GMarkupParseContext *context, const char *name, const char **names,
              const char **values, gpointer data, GError **error)
{
    LhXml *x = data;
    const Attributes a = { name, names, values };
    LhXmlElement element = { .is_pci = strcmp(name, "pci") == 0, .is_parted = is_parted(&a) };

    (void)context;
    if (x->depth == LH_XML_DEPTH_MAX || x->elements->len == ELEMENTS_MAX) {
        fail(x, error, "more than %d elements, or more than %d nested", ELEMENTS_MAX,
             LH_XML_DEPTH_MAX);
        return;
    }
    if (!check_attributes(x, &a, error) || !read_element(x, &a, error))
        return;
    if (element.is_pci) {
        if (!read_pcie(x, &a, &element.rate, error))
            return;
        g_free(x->bus);
        x->bus = g_strdup(attribute(&a, "busid"));
    }
    x->path[x->depth++] = x->elements->len;
    g_array_append_val(x->elements, element);
}

static void
end_element(GMarkupParseContext *context, const char *name, gpointer data, GError **error)
{
    LhXml *x = data;

    (void)context;
    (void)name;
    (void)error;
    x->depth--;
}

/* --- the whole ----------------------------------------------------------------------------------
 */

/* Parses all of it. GMarkup's own messages depend on the locale and are not used. */
static bool
parse(LhXml *x, const char *text, gsize length)
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
         "invalid XML: truncated here, or an element, an attribute or a quote is malformed");
    g_error_free(failure);
    return false;
}

static bool
read_xml(LhToolReader *r)
{
    static const GMarkupParser parser = { .start_element = start_element,
                                          .end_element = end_element };
    g_autoptr(GArray) gpus = g_array_new(FALSE, FALSE, sizeof(LhXmlDevice));
    g_autoptr(GArray) nics = g_array_new(FALSE, FALSE, sizeof(LhXmlDevice));
    g_autoptr(GArray) elements = g_array_new(FALSE, FALSE, sizeof(LhXmlElement));
    g_autoptr(GArray) cpus = g_array_new(FALSE, FALSE, sizeof(LhXmlCpu));
    g_autoptr(GPtrArray) hosts = g_ptr_array_new_with_free_func(g_free);
    LhXml x = { .r = r,
                .gpus = gpus,
                .nics = nics,
                .hosts = hosts,
                .elements = elements,
                .cpus = cpus,
                .cpu = G_MAXUINT };
    const char *const text = r->text.at;
    bool ok;

    g_array_set_clear_func(gpus, clear_device);
    g_array_set_clear_func(nics, clear_device);
    g_array_set_clear_func(cpus, clear_cpu);
    x.context = g_markup_parse_context_new(&parser, 0, &x, NULL);
    ok = parse(&x, text, (gsize)(r->text.end - text)) && lh_xml_conclude(&x);
    g_markup_parse_context_free(x.context);
    g_free(x.bus);
    return ok;
}

static bool
is_xml(const LhToolReader *r)
{
    const LhToolWord first = lh_tool_word(r, 0);

    return lh_tool_begins(first, "<system") || (r->text.line == 1 && lh_tool_begins(first, "<"));
}

const LhToolFormat lh_tool_nccl_xml = { "NCCL topology XML", is_xml, read_xml };
