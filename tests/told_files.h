/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tool output of clusters in tests/data/topology, and the topology made of it.
 */
#pragma once

#include "base/error.h"
#include "base/files/data_files.h"
#include "import/cluster/topology_from_tools.h"

#include <check.h>
#include <string.h>

/* Adds a file of tests/data/topology. */
static inline void
told_add(LhToolCluster *cluster, const char *name)
{
    g_autofree char *path =
        g_build_filename(g_getenv("LONGHAUL_DATA_DIR"), "tests", "data", "topology", name, NULL);
    g_autoptr(GError) error = NULL;

    ck_assert_msg(lh_tool_load(cluster, path, &error), "%s: %s", name,
                  error != NULL ? error->message : "");
}

/* @names ends with NULL. */
static inline LhToolCluster *
told_load(const char *const *names)
{
    LhToolCluster *cluster = lh_tool_new();

    for (; *names != NULL; names++)
        told_add(cluster, *names);
    return cluster;
}

/* Returns NULL with @error if there is none. */
static inline LhToolTopology *
told_make(const LhToolCluster *cluster, const char *base_name, const char *device, GError **error)
{
    g_autoptr(LhTopology) base = base_name == NULL ? NULL : lh_topology_load(base_name, NULL);
    const LhToolParams params = { .name = "made", .base = base, .device = device };

    ck_assert(base_name == NULL || base != NULL);
    return lh_tool_topology(cluster, &params, error);
}

/* The topology as read back from the file. */
static inline LhTopology *
told_made_of(const LhToolCluster *cluster, const char *base, const char *device)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(LhToolTopology) made = told_make(cluster, base, device, &error);
    LhTopology *topology;

    ck_assert_msg(made != NULL, "%s", error != NULL ? error->message : "");
    topology = lh_topology_parse("made.json", made->document, made->length, &error);
    ck_assert_msg(topology != NULL, "%s", error != NULL ? error->message : "");
    return topology;
}
