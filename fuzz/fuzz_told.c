/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tool output of a cluster: whatever is read is consistent, and makes a topology that can be
 * simulated, or an error with the reason.
 */
#include "fuzz.h"

#include "import/cluster/nccl_tests.h"
#include "import/cluster/topology_from_tools.h"

#include <math.h>
#include <string.h>

static void
check_cluster(const LhToolCluster *cluster)
{
    for (int kind = 0; kind < LH_TOOL_KINDS; kind++) {
        const LhToolOutput *told = &cluster->told[kind];

        g_assert(!told->known || (isfinite(told->value) && told->value >= 0));
        g_assert(!told->known || g_str_has_prefix(told->place, FUZZ_NAME ":"));
        g_assert(!told->known || g_utf8_validate(told->source, -1, NULL));
    }
    g_assert(cluster->times->len == cluster->places->len);
}

static void
check_topology(const LhToolCluster *cluster)
{
    g_autoptr(LhTopology) base = fuzz_topology();
    g_autoptr(LhDevice) device = fuzz_device();
    const LhToolParams params = { "made", base, NULL };
    g_autoptr(GError) error = NULL;
    g_autoptr(LhToolTopology) made = lh_tool_topology(cluster, &params, &error);
    g_autoptr(LhTopology) topology = NULL;

    fuzz_check(made != NULL, error, NULL);
    if (made == NULL)
        return;
    topology = lh_topology_parse(FUZZ_NAME, made->document, made->length, &error);
    fuzz_check_file(topology != NULL, error);
    g_assert(topology != NULL && made->fields->len > 0);
    fuzz_play_ring(topology, device);
}

/* Parses the same text as an NCCL log: rows increase in size without duplicates. */
static void
check_log(const char *text, size_t size)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(LhNcclLog) log = lh_nccl_log_parse(FUZZ_NAME, text, size, &error);

    fuzz_check_file(log != NULL, error);
    if (log == NULL)
        return;
    g_assert(log->rows->len > 0 && log->ranks > 1 && log->ranks % log->hosts == 0);
    for (guint i = 0; i < log->rows->len; i++) {
        const LhNcclLogRow *row = &g_array_index(log->rows, LhNcclLogRow, i);

        g_assert(row->us > 0 && row->line > log->line);
        g_assert(i == 0 || row->bytes > g_array_index(log->rows, LhNcclLogRow, i - 1).bytes);
    }
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    g_autoptr(LhToolCluster) cluster = lh_tool_new();
    g_autoptr(GError) error = NULL;
    const char *const text = (const char *)data;
    const bool ok = lh_tool_parse(cluster, FUZZ_NAME, text, size, &error);

    fuzz_check_file(ok, error);
    check_cluster(cluster);
    check_log(text, size);
    if (!ok)
        return 0;
    check_topology(cluster);
    g_assert(lh_tool_parse(cluster, FUZZ_NAME, text, size, NULL));
    return 0;
}
