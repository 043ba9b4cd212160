/* SPDX-License-Identifier: Apache-2.0 */
/* Values of files, and checks that files agree. */
#include "import/cluster/readers_private.h"

#include "base/error.h"

#include <math.h>

#define SOURCE_NAME_BYTES_MAX 100 /* of a file's name in a source */
/* Measurements that differ by less do not contradict each other. */
#define ALIKE 0.1

/* Name and form of a kind of values. */
typedef struct {
    const char *name;
    enum { PLAIN, RATE, TIME, SHAPE } form;
} Kind;

static const Kind told_kinds[LH_TOOL_KINDS] = {
    [LH_TOOL_GPUS] = { "the number of GPUs of a node", PLAIN },
    [LH_TOOL_HOSTS] = { "the number of hosts of a node", PLAIN },
    [LH_TOOL_SCALE_UP] = { "what joins the GPUs of a node", SHAPE },
    [LH_TOOL_NVLINKS] = { "the number of NVLinks of a GPU", PLAIN },
    [LH_TOOL_CAPABILITY] = { "the compute capability of the GPUs", PLAIN },
    [LH_TOOL_PEER_RATE] = { "the bandwidth between GPUs of a node", RATE },
    [LH_TOOL_PEER_LATENCY] = { "the latency between GPUs of a node", TIME },
    [LH_TOOL_PCIE_RATE] = { "the bandwidth of a GPU's PCIe link", RATE },
    [LH_TOOL_NICS] = { "the number of NICs next to the GPUs of a node", PLAIN },
    [LH_TOOL_NICS_JOINED] = { "the number of NICs of each GPU", PLAIN },
    [LH_TOOL_NIC_WIRE] = { "the wire's rate of a NIC", RATE },
    [LH_TOOL_NIC_RATE] = { "the bandwidth of a NIC", RATE },
    [LH_TOOL_NIC_LATENCY] = { "the latency of a NIC", TIME },
    [LH_TOOL_ROUTE_RATE] = { "the bandwidth between GPUs of two nodes", RATE },
    [LH_TOOL_ROUTE_LATENCY] = { "the latency between GPUs of two nodes", TIME },
    [LH_TOOL_RINGS_RATE] = { "the bandwidth of collectives at a node", RATE },
    [LH_TOOL_NODES] = { "the number of nodes", PLAIN },
    [LH_TOOL_NODES_PER_LEAF] = { "the number of nodes of a leaf switch", PLAIN },
};

char *
lh_tool_source(const LhToolReader *r)
{
    g_autofree char *base = g_path_get_basename(r->text.file);
    g_autofree char *valid = g_utf8_make_valid(base, -1);
    g_autofree char *name =
        g_utf8_substring(valid, 0, MIN(g_utf8_strlen(valid, -1), (glong)SOURCE_NAME_BYTES_MAX));

    return g_strdup_printf("%s (%s)", r->tool, name);
}

char *
lh_tool_place(const LhToolReader *r, guint line)
{
    return g_strdup_printf("%s:%u", r->text.file, line);
}

/* "24.5 GB/s"; caller frees. */
static char *
write_value(LhToolKind kind, double value)
{
    static const char *const shapes[] = { "no NVLink", "NVSwitch", "NVLink in pairs", "memory" };

    if (told_kinds[kind].form == RATE)
        return lh_format_bandwidth(value);
    if (told_kinds[kind].form == TIME)
        return lh_format_time(lh_time_from_ps(value * (double)LH_PS_PER_S));
    if (told_kinds[kind].form == SHAPE)
        return g_strdup(shapes[(int)value]);
    return g_strdup_printf("%.0f", value);
}

static bool
agree(LhToolKind kind, double a, double b)
{
    const bool measured = told_kinds[kind].form == RATE || told_kinds[kind].form == TIME;

    return measured ? fabs(a - b) <= ALIKE * MAX(a, b) : a == b;
}

const char *
lh_tool_kind_name(LhToolKind kind)
{
    return told_kinds[kind].name;
}

bool
lh_tool_add(LhToolReader *r, LhToolKind kind, guint line, LhToolValue value)
{
    LhToolOutput *told = &r->cluster->told[kind];
    const LhToolSaid said = { kind, lh_tool_source(r) };

    g_array_append_val(r->cluster->said, said);
    if (told->known && told->weight == value.weight && told->ranks == value.ranks &&
        !agree(kind, told->value, value.value)) {
        g_autofree char *here = write_value(kind, value.value);
        g_autofree char *there = write_value(kind, told->value);

        g_set_error(r->text.error, LH_ERROR, LH_ERROR_INPUT,
                    "%s:%u: error: %s is %s here, and %s in %s; give files that agree",
                    r->text.file, line, told_kinds[kind].name, here, there, told->place);
        return false;
    }
    if (told->known && told->weight >= value.weight)
        return true;
    g_free(told->source);
    g_free(told->place);
    *told = (LhToolOutput){ true,
                            value.value,
                            value.weight,
                            value.ranks,
                            value.provenance,
                            lh_tool_source(r),
                            lh_tool_place(r, line) };
    return true;
}
