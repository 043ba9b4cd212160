/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Output of other vendors' tools, which have no reader. They are recognised for a clear error,
 * since the matrix of rocm-smi looks like that of nvidia-smi.
 */
#include "import/cluster/readers_private.h"

static const struct {
    const char *line; /* in a line that only this tool prints */
    const char *tool, *maker;
} foreign_tools[] = {
    { "ROCm System Management Interface", "rocm-smi", "AMD" },
    { "Weight between two GPUs", "rocm-smi", "AMD" },
    { "Hops between two GPUs", "rocm-smi", "AMD" },
    { "Link Type between two GPUs", "rocm-smi", "AMD" },
    { "LINK TYPE TABLE", "amd-smi topology", "AMD" },
    { "ACCESS TABLE:", "amd-smi topology", "AMD" },
    { "rccl-tests", "rccl-tests", "AMD" },
    { " NPU0", "npu-smi", "Huawei" },
    { "\tNPU0", "npu-smi", "Huawei" },
    { "mx-smi", "mx-smi", "MetaX" },
    { "hy-smi", "hy-smi", "Hygon" },
    { "Xelink", "xpu-smi", "Intel" },
};

/* Index in foreign_tools; their number if none matches. */
static gsize
find_tool(const LhToolReader *r)
{
    gsize i = 0;

    while (i < G_N_ELEMENTS(foreign_tools) && !lh_tool_line_has(r, foreign_tools[i].line))
        i++;
    return i;
}

static bool
is_foreign(const LhToolReader *r)
{
    return find_tool(r) < G_N_ELEMENTS(foreign_tools);
}

static bool
refuse_foreign(LhToolReader *r)
{
    bool more;
    gsize tool = G_N_ELEMENTS(foreign_tools);

    do {
        if (!lh_tool_next(r, &more))
            return false;
        tool = find_tool(r);
    } while (more && tool == G_N_ELEMENTS(foreign_tools));
    g_assert(tool < G_N_ELEMENTS(foreign_tools));
    return lh_text_fail(
        &r->text, r->text.line_start,
        "this is output of %s for GPUs of %s, which is not supported; allowed: output of tools for "
        "NVIDIA GPUs, or a topology file written by hand (docs/manual/clusters.md)",
        foreign_tools[tool].tool, foreign_tools[tool].maker);
}

const LhToolFormat lh_tool_foreign = { "another maker's tool", is_foreign, refuse_foreign };
