/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A collective that starts on all ranks at once, with nothing else running, takes the time of the
 * closed form in a simulation; so none is simulated.
 */
#include "papers/paper_collective.h"

#include "base/error.h"
#include "sim/network/collectives/collective_table.h"
#include "sim/network/collectives/collective_times.h"
#include "sim/network/collectives/nccl_measured.h"

#include <string.h>

static bool fail(GError **error, int code, const char *format, ...) G_GNUC_PRINTF(3, 4);

static bool
fail(GError **error, int code, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    if (error != NULL)
        *error = g_error_new_valist(LH_ERROR, code, format, args);
    va_end(args);
    return false;
}

static const char *const option_names[] = { "cluster", "ranks", "collective", "bytes", NULL };
static const char *const more_options[] = { "nccl", "edited_from", NULL }; /* may be absent */

static bool
read_option_count(const LhPaperOptions *options, const char *name, uint64_t least, uint64_t most,
                  uint64_t *value, GError **error)
{
    const char *text = lh_paper_option(options, name);

    return g_ascii_string_to_unsigned(text, 10, least, most, value, NULL) ||
           fail(error, LH_ERROR_USAGE,
                "\"%s\" is \"%s\"; allowed: %" G_GUINT64_FORMAT " to %" G_GUINT64_FORMAT, name,
                text, least, most);
}

static bool
read_kind(const LhPaperOptions *options, LhCollectiveKind *kind, GError **error)
{
    const char *text = lh_paper_option(options, "collective");
    g_autofree char *all = g_strjoinv(", ", (char **)lh_collective_names);

    for (int i = 0; i < LH_COLL_KINDS; i++) {
        if (strcmp(lh_collective_names[i], text) != 0)
            continue;
        *kind = (LhCollectiveKind)i;
        return true;
    }
    return fail(error, LH_ERROR_USAGE, "\"collective\" is \"%s\"; allowed: %s", text, all);
}

bool
lh_paper_collective_read(const LhPaperOptions *options, LhPaperCollective *collective,
                         GError **error)
{
    for (guint i = 0; i < options->names->len; i++) {
        const char *name = g_ptr_array_index(options->names, i);

        if (!g_strv_contains(option_names, name) && !g_strv_contains(more_options, name))
            return fail(error, LH_ERROR_USAGE,
                        "a collective has no option \"%s\"; allowed: cluster, ranks, collective, "
                        "bytes, nccl, edited_from",
                        name);
    }
    for (const char *const *name = option_names; *name != NULL; name++) {
        if (lh_paper_option(options, *name) == NULL)
            return fail(error, LH_ERROR_USAGE, "a collective needs the option \"%s\"", *name);
    }
    collective->cluster = lh_paper_option(options, "cluster");
    collective->nccl = lh_paper_option(options, "nccl");
    collective->edited_from = lh_paper_option(options, "edited_from");
    return read_option_count(options, "ranks", 2, G_MAXINT32, &collective->ranks, error) &&
           read_option_count(options, "bytes", 1, UINT64_C(1) << 50, &collective->bytes, error) &&
           read_kind(options, &collective->kind, error);
}

/* Loads "NAME" or "NAME:NODES"; the default is as many nodes as the ranks need. */
static LhTopology *
load_topology(const LhPaperCollective *c, uint64_t *nodes, GError **error)
{
    const char *colon = strrchr(c->cluster, ':');
    g_autofree char *name =
        colon == NULL ? g_strdup(c->cluster) : g_strndup(c->cluster, (gsize)(colon - c->cluster));
    LhTopology *topology;

    if (colon != NULL && !g_ascii_string_to_unsigned(colon + 1, 10, 1, G_MAXINT32, nodes, NULL)) {
        fail(error, LH_ERROR_USAGE, "\"cluster\" is \"%s\"; allowed: NAME or NAME:NODES",
             c->cluster);
        return NULL;
    }
    topology = lh_topology_load(name, error);
    if (topology != NULL && colon == NULL)
        *nodes = (c->ranks + topology->gpus_per_node - 1) / topology->gpus_per_node;
    return topology;
}

static bool
native_seconds(const LhPaperCollective *c, const LhNetwork *network, const LhDevice *device,
               double *seconds, double *bar, GError **error)
{
    const LhGroup group = { .stride = 1, .count = (uint32_t)c->ranks, .outer_count = 1 };
    const double ranks = lh_collective_printed_bytes(c->kind, c->ranks, 1);
    LhNcclMeasured *native = lh_nccl_measured_new(network, device, &group);
    const bool known = lh_nccl_measured_is_known(native, c->kind);
    int provenance;

    if (known) {
        *seconds = lh_nccl_measured_seconds(native, c->kind, (double)c->bytes / ranks, &provenance);
        *bar = lh_nccl_measured_error(native, c->kind, (double)c->bytes / ranks);
    }
    lh_nccl_measured_free(native);
    return known ||
           fail(error, LH_ERROR_NO,
                "%s has neither measured times nor fitted lines for %s on %" G_GUINT64_FORMAT
                " ranks",
                network->topology->name, lh_collective_names[c->kind], c->ranks);
}

/* The other cluster's topology with the link rates of @topology's nodes. */
static LhTopology *
edit_links(const LhPaperCollective *c, const LhTopology *topology, GError **error)
{
    LhTopology *edited;

    if (c->edited_from == NULL) {
        fail(error, LH_ERROR_NO,
             "the option edited_from is missing: a cluster like %s with other links",
             topology->name);
        return NULL;
    }
    edited = lh_topology_load(c->edited_from, error);
    if (edited == NULL)
        return NULL;
    edited->nvlink.bandwidth = topology->nvlink.bandwidth;
    edited->pcie.bandwidth = topology->pcie.bandwidth;
    return edited;
}

bool
lh_paper_collective_seconds(const LhPaperCollective *c, LhJudged judged, double *seconds,
                            double *bar, GError **error)
{
    uint64_t nodes = 1;
    g_autoptr(LhTopology) topology = load_topology(c, &nodes, error);
    g_autoptr(LhDevice) device =
        topology == NULL ? NULL : lh_device_load(topology->device_name, error);
    g_autoptr(LhTopology) edited = NULL;
    LhNetwork network;

    if (device == NULL)
        return false;
    if (judged == LH_JUDGE_LINKS_EDITED) {
        edited = edit_links(c, topology, error);
        if (edited == NULL)
            return false;
    }
    if (!lh_network_init(&network, edited != NULL ? edited : topology, (uint32_t)nodes,
                         (uint32_t)c->ranks, NULL, error))
        return false;
    if (c->nccl != NULL)
        lh_collective_times_choose(network.topology->collective_times, c->nccl);
    if (judged == LH_JUDGE_LEFT_OUT &&
        !lh_collective_times_leave_out(topology->collective_times, c->kind, c->ranks, c->bytes))
        return fail(error, LH_ERROR_NO, "%s has no measured time of this size to leave out",
                    topology->name);
    return native_seconds(c, &network, device, seconds, bar, error);
}
