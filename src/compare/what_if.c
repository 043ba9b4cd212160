/* SPDX-License-Identifier: Apache-2.0 */
#include "compare/what_if.h"

#include "sim/network/levers.h"

#include <float.h>
#include <math.h>
#include <string.h>

/* --- simulating again ---------------------------------------------------------------------------
 */

/* Speeds up the links of @tiers. A trunk's rate is given as a share of its NICs' rate, through the
 * leaves: it is corrected to stay unchanged when the NICs change. */
static void
raise_links(LhTopology *t, uint8_t tiers)
{
    lh_levers_scale(t, LH_LEVER_RATE, tiers, LH_WHAT_IF_FACTOR);
    if (tiers & 1u << LH_TIER_NIC)
        t->oversubscription *= LH_WHAT_IF_FACTOR;
    lh_levers_scale(t, LH_LEVER_SHARE, tiers, LH_WHAT_IF_FACTOR);
}

static void
shorten(LhTime *time_ps)
{
    *time_ps = lh_time_from_ps((double)*time_ps / LH_WHAT_IF_FACTOR);
}

static void
turn_levers(LhTopology *t, uint8_t kind, uint8_t tiers)
{
    if (kind == LH_STEP_LATENCY || tiers & LH_WITH_LATENCY)
        lh_levers_scale(t, LH_LEVER_LATENCY, LH_LEVERS_ALL, LH_WHAT_IF_FACTOR);
    raise_links(t, tiers);
}

/* Copies @rows, with elements of @size bytes, and speeds up the double at @offset of each. */
static GArray *
raise_rows(GArray *rows, guint size, size_t offset)
{
    GArray *raised = rows == NULL ? NULL : g_array_new(FALSE, FALSE, size);

    if (rows == NULL)
        return NULL;
    g_array_append_vals(raised, rows->data, rows->len);
    for (guint i = 0; i < raised->len; i++)
        *(double *)(void *)(raised->data + (size_t)i * size + offset) *= LH_WHAT_IF_FACTOR;
    return raised;
}

static LhTime
makespan_of(const LhSetup *setup, const LhProgram *program, const LhNetwork *network,
            const LhDevice *device, const LhHooks *hooks)
{
    g_autoptr(LhSimResult) result = lh_setup_simulate(setup, program, network, device, hooks, NULL);

    return result == NULL ? LH_TIME_NEVER : result->makespan_ps;
}

LhTime
lh_what_if_play_on_topology(const LhSetup *setup, const LhProgram *program,
                            const LhTopology *topology, double protocols, const LhHooks *hooks)
{
    LhNetwork network;

    if (!lh_network_init(&network, topology, setup->network.nodes, setup->network.ranks,
                         setup->network.faults, NULL))
        return LH_TIME_NEVER;
    network.protocols_on_links = protocols;
    return makespan_of(setup, program, &network, NULL, hooks);
}

static LhTime
play_with_faster_compute(const LhSetup *setup, const LhProgram *program, const LhHooks *hooks)
{
    LhDevice device = *setup->device; /* strings are the setup's */
    g_autoptr(GArray) kernels =
        raise_rows(device.kernels, sizeof(LhKernelRate), offsetof(LhKernelRate, rate));
    g_autoptr(GArray) elementwise = raise_rows(device.elementwise, sizeof(LhKernelTraffic),
                                               offsetof(LhKernelTraffic, bandwidth));

    g_autoptr(GArray) attention =
        raise_rows(device.attention, sizeof(LhAttentionRow), offsetof(LhAttentionRow, rate));

    for (guint i = 0; attention != NULL && i < attention->len; i++)
        g_array_index(attention, LhAttentionRow, i).sustained_rate *= LH_WHAT_IF_FACTOR;
    device.matrix_rate *= LH_WHAT_IF_FACTOR;
    device.memory_bandwidth *= LH_WHAT_IF_FACTOR;
    device.kernels = kernels;
    device.attention = attention;
    device.elementwise = elementwise;
    return makespan_of(setup, program, NULL, &device, hooks);
}

static LhTime
play_with_faster_host(const LhSetup *setup, const LhProgram *program, const LhHooks *hooks)
{
    LhDevice device = *setup->device;

    shorten(&device.kernel_launch_ps);
    shorten(&device.stream_sync_ps);
    return makespan_of(setup, program, NULL, &device, hooks);
}

LhTime
lh_what_if_play_raised(const LhSetup *setup, const LhProgram *program, const LhPathShare *resource,
                       double protocols, const LhHooks *hooks)
{
    LhTopology topology = *setup->topology; /* strings are the setup's */

    if (resource->kind == LH_STEP_COMPUTE)
        return play_with_faster_compute(setup, program, hooks);
    if (resource->kind == LH_STEP_HOST)
        return play_with_faster_host(setup, program, hooks);
    turn_levers(&topology, resource->kind, resource->tiers);
    return lh_what_if_play_on_topology(setup, program, &topology, protocols, hooks);
}

LhTime
lh_bottleneck_play_faster(const LhSetup *setup, const LhProgram *program,
                          const LhPathShare *resource, const LhHooks *hooks)
{
    return lh_what_if_play_raised(setup, program, resource, LH_PROTOCOLS_ON_LINKS, hooks);
}

/* --- edits of the topology file -----------------------------------------------------------------
 */

/* The shortest text that a file reads as this value, to the byte per second or the picosecond. */
static char *
lever_text(const LhTopology *t, const LhLever *lever)
{
    static const struct {
        const char *unit;
        double is, whole; /* and the resolution it is read with */
    } units[] = { [LH_LEVER_RATE] = { "GB/s", 1e9, 1 },
                  [LH_LEVER_LATENCY] = { "us", 1e-6, 1e-12 },
                  [LH_LEVER_SHARE] = { "", 1, 1e-12 } };
    const double unit = units[lever->kind].is, whole = units[lever->kind].whole;
    const double value = lh_lever_value(t, lever);
    char text[G_ASCII_DTOSTR_BUF_SIZE], format[sizeof("%.15g")];

    for (int digits = 3; digits <= DBL_DIG; digits++) {
        g_snprintf(format, sizeof(format), "%%.%dg", digits);
        g_ascii_formatd(text, sizeof(text), format, value / unit);
        if (round(g_ascii_strtod(text, NULL) * unit / whole) == round(value / whole))
            break;
    }
    return g_strconcat(text, units[lever->kind].unit, NULL);
}

/* "A to X, B and C to Y": paths with the same value grouped, in the order of the file. */
static char *
join_edits(const GPtrArray *paths, const GPtrArray *values)
{
    GString *out = g_string_new(NULL);

    for (guint i = 0; i < paths->len; i++) {
        const char *value = g_ptr_array_index(values, i);
        guint from = 0, last = i;

        while (strcmp(g_ptr_array_index(values, from), value) != 0)
            from++;
        if (from < i)
            continue; /* already listed */
        for (guint k = i; k < paths->len; k++)
            last = strcmp(g_ptr_array_index(values, k), value) == 0 ? k : last;
        for (guint k = i; k <= last; k++) {
            if (strcmp(g_ptr_array_index(values, k), value) == 0)
                g_string_append_printf(out, "%s`%s`",
                                       k == i      ? (out->len > 0 ? ", " : "")
                                       : k == last ? " and "
                                                   : ", ",
                                       (const char *)g_ptr_array_index(paths, k));
        }
        g_string_append_printf(out, " to %s", value);
    }
    return g_string_free(out, FALSE);
}

char *
lh_what_if_edit(const LhTopology *topology, const LhWhatIf *what_if)
{
    g_autoptr(GPtrArray) paths = g_ptr_array_new();
    g_autoptr(GPtrArray) values = g_ptr_array_new_with_free_func(g_free);
    LhTopology raised = *topology;
    g_autoptr(GPtrArray) levers = lh_topology_levers(topology);

    if (what_if->kind != LH_STEP_LINKS && what_if->kind != LH_STEP_LATENCY)
        return NULL;
    turn_levers(&raised, what_if->kind, what_if->tiers);
    for (guint i = 0; i < levers->len; i++) {
        const LhLever *lever = g_ptr_array_index(levers, i);

        if (lh_lever_value(&raised, lever) == lh_lever_value(topology, lever))
            continue;
        g_ptr_array_add(paths, (gpointer)lever->path);
        g_ptr_array_add(values, lever_text(&raised, lever));
    }
    return join_edits(paths, values);
}

/* --- resources ----------------------------------------------------------------------------------
 */

char *
lh_resource_name(uint8_t kind, uint8_t tiers)
{
    g_autoptr(GString) name = g_string_new(NULL);

    if (kind != LH_STEP_LINKS)
        return g_strdup(lh_step_kind_names[kind]);
    for (unsigned tier = 0; tier < LH_TIERS; tier++)
        if (tiers & 1u << tier)
            g_string_append_printf(name, "%s%s", name->len > 0 ? "+" : "", lh_tier_names[tier]);
    if (tiers & LH_WITH_LATENCY)
        g_string_append_printf(name, "+%s", lh_step_kind_names[LH_STEP_LATENCY]);
    return g_string_free(g_steal_pointer(&name), FALSE);
}
