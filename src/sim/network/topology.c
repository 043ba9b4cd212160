/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Clusters from files. A file describes one node and the fabric between nodes; the number of nodes
 * comes from the caller. Not supported: mixed nodes and GPUs with several NICs.
 */
#include "sim/network/topology.h"

#include "base/error.h"
#include "base/files/data_files.h"
#include "base/json/json_encode.h"
#include "sim/network/collectives/measured.h"
#include "sim/network/network_private.h"
#include "sim/network/topology_schema.h"

#include <string.h>

const char *const lh_tier_names[] = { "nvlink", "pcie", "nic", "fabric", NULL };

const char *
lh_topology_link_name(const LhTopology *topology, LhTier tier)
{
    static const char *const names[] = { "NVLink", "PCIe", "NIC", "fabric" };

    if (tier == LH_TIER_NVLINK && topology->scale_up == LH_SCALE_UP_MEMORY)
        return "memory";
    return names[tier];
}

/* Resolves a device path, which is relative to the file that names it. */
static void
place_device(const char *file, LhTopology *t)
{
    g_autofree char *folder = g_path_get_dirname(file);
    char *path;

    if ((strchr(t->device_name, '/') == NULL && !g_str_has_suffix(t->device_name, ".json")) ||
        g_path_is_absolute(t->device_name) || strcmp(folder, ".") == 0)
        return;
    path = g_build_filename(folder, t->device_name, NULL);
    g_free(t->device_name);
    t->device_name = path;
}

static bool
check_device(const LhJson *json, const LhTopology *t, GError **error)
{
    g_autoptr(GError) reason = NULL;
    g_autofree char *path = lh_data_find("devices", t->device_name, &reason);

    if (path == NULL)
        return lh_json_error(json, "device", error, "\"device\": %s", reason->message);
    if (!g_file_test(path, G_FILE_TEST_EXISTS))
        return lh_json_error(json, "device", error, "\"device\": no file \"%.200s\"", path);
    return true;
}

/* Values without their own provenance get that of the rates. */
static void
fill_provenances(LhLinkClass *link)
{
    if (link->latency_provenance < 0)
        link->latency_provenance = link->from.provenance;
    if (link->ctas_provenance < 0)
        link->ctas_provenance = link->from.provenance;
}

int
lh_link_provenance(const LhLinkClass *link)
{
    int weakest = link->from.provenance;

    if (link->latency_ps > 0)
        weakest = MAX(weakest, link->latency_provenance);
    if (link->ctas > 0)
        weakest = MAX(weakest, link->ctas_provenance);
    return weakest;
}

static LhTopology *
read_topology(const char *file, const LhJson *json, GError **error)
{
    g_autoptr(LhTopology) t = g_new0(LhTopology, 1);
    LhLinkClass *const links[] = { &t->nvlink, &t->pcie, &t->nic };

    t->oversubscription = 1;
    for (gsize i = 0; i < G_N_ELEMENTS(links); i++)
        links[i]->latency_provenance = links[i]->ctas_provenance = -1;
    t->host_link.latency_provenance = -1;
    if (!lh_json_decode(json, lh_topology_fields, t, false, error) ||
        !lh_topology_check(json, t, error))
        return NULL;
    place_device(file, t);
    if (!check_device(json, t, error) ||
        !lh_collective_times_check(json, "node.collective_times", t->collective_times,
                                   t->gpus_per_node, t->scale_up == LH_SCALE_UP_SWITCH, error) ||
        !lh_collective_lines_check(json, "node.collective_lines", t->collective_lines, error) ||
        !lh_topology_check_measured_on(json, t, error) || !lh_measured_read(json, t, error))
        return NULL;
    for (gsize i = 0; i < G_N_ELEMENTS(links); i++)
        fill_provenances(links[i]);
    if (t->host_link.latency_provenance < 0)
        t->host_link.latency_provenance = t->host_link.from.provenance;
    lh_measured_bind(t);
    if (!lh_measured_check(json, "node.collective_times", t, error))
        return NULL;
    t->sha256 = g_strdup(lh_json_sha256(json));
    return g_steal_pointer(&t);
}

bool
lh_topology_assumes_own_links(const LhTopology *topology)
{
    return topology->schema == 0 &&
           (topology->collective_times != NULL || topology->collective_lines != NULL);
}

/* Rejects rows copied from a shipped cluster without the links they were measured on, which files
 * of the first version cannot state. */
static bool
check_copied(const LhJson *json, const LhTopology *t, GError **error)
{
    g_auto(GStrv) names = lh_topology_assumes_own_links(t) ? lh_data_list("topologies") : NULL;

    for (char **name = names; name != NULL && *name != NULL; name++) {
        g_autoptr(LhTopology) shipped = lh_topology_load(*name, NULL);

        if (shipped != NULL && shipped->schema > 0 &&
            !lh_measured_check_copied(json, t, shipped, error))
            return false;
    }
    return true;
}

/* Reads and checks a file. */
static LhTopology *
read_file(const char *file, const LhJson *json, GError **error)
{
    g_autoptr(LhTopology) t = read_topology(file, json, error);

    return t != NULL && check_copied(json, t, error) ? g_steal_pointer(&t) : NULL;
}

LhTopology *
lh_topology_parse(const char *file, const char *text, gsize length, GError **error)
{
    g_autoptr(LhJson) json = lh_json_parse(file, text, length, error);

    return json == NULL ? NULL : read_file(file, json, error);
}

LhTopology *
lh_topology_load(const char *name, GError **error)
{
    g_autofree char *path = lh_data_find("topologies", name, error);
    g_autoptr(LhJson) json = path == NULL ? NULL : lh_json_load(path, error);

    return json == NULL ? NULL : read_file(path, json, error);
}

#define NO_LINK                                                                                    \
    {                                                                                              \
        .latency_ps = -1, .ctas = LH_FIELD_NO_UINT, .from.provenance = -1,                         \
        .latency_provenance = -1, .ctas_provenance = -1                                            \
    }

const LhTopology lh_topology_nothing = {
    .nvlink = NO_LINK,
    .pcie = NO_LINK,
    .nic = NO_LINK,
    .host_link = { .from.provenance = -1, .latency_provenance = -1 },
    .host_cpu.from.provenance = -1,
    .switch_latency_ps = -1,
};

void
lh_topology_write(const LhTopology *topology, GString *out)
{
    g_autoptr(LhJsonWriter) w = lh_jsonw_new(out, false);

    lh_json_encode(w, NULL, lh_topology_fields, topology, &lh_topology_nothing);
}

void
lh_topology_free(LhTopology *topology)
{
    if (topology == NULL)
        return;
    lh_json_clear(lh_topology_fields, topology);
    g_free(topology->sha256);
    g_free(topology);
}
