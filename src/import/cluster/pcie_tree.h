/* SPDX-License-Identifier: Apache-2.0 */
/*
 * PCIe of a node, as two readers conclude it: which GPUs share a switch or a socket, and the
 * bandwidth of their links by the constants in NCCL's public source.
 */
#pragma once

#include "import/cluster/readers_private.h"

#define LH_TOOL_SWITCHES_MAX (LH_PCIE_LEVELS_MAX - 1) /* nesting depth above a GPU */

/* A host's CPUs, as an XML element describes them. */
typedef struct {
    const char *arch, *vendor; /* NULL: unknown */
    bool modelled;             /* @family and @model are known */
    uint64_t family, model;
} LhToolCpu;

/* Bandwidth of a link between sockets, bytes/s. 0 if unknown; *@missing then names what would tell
 * it. *@name: name of the CPUs, static. */
double lh_tool_socket_rate(const LhToolCpu *cpu, const char **name, const char **missing);

/* Part of a PCIe link that NCCL assumes for messages between GPUs that leave their switch. */
double lh_tool_share_by_memory(const LhToolCpu *cpu);

/* Whether NCCL lets two GPUs that are alone communicate directly at any distance. */
bool lh_tool_is_direct_for_two(const LhToolCpu *cpu);

/* Initialise and clear a tree. */
void lh_tool_tree_init(LhToolTree *tree, guint gpus);
void lh_tool_tree_clear(LhToolTree *tree);

/* Makes groups of the GPUs with equal @group, numbered in order of GPUs. Caller unrefs. */
GArray *lh_tool_groups(const uint32_t *group, guint gpus);
guint lh_tool_groups_count(const GArray *of_gpu);

/*
 * Adds a level outside the existing ones. If its groups are those of the last level, it is merged
 * with that: a message crosses both links, so the slower one counts. Takes ownership of @of_gpu;
 * drops a level of only one group.
 */
void lh_tool_tree_add(LhToolTree *tree, const char *name, GArray *of_gpu, double up,
                      const char *source);

/* Adds the tree of the current file, as found in line @line; takes ownership of its contents.
 * The file with the higher weight wins. False with the error set if an earlier file has other
 * groups. */
bool lh_tool_add_tree(LhToolReader *r, LhToolTree *tree, guint line);

/* Distance of two GPUs in a table. */
typedef enum {
    LH_TOOL_ON_SWITCH, /* same PCIe switch or nested switches */
    LH_TOOL_ON_SOCKET,
    LH_TOOL_BEYOND, /* different sockets */
    LH_TOOL_UNSAID, /* joined by NVLink, so that the table does not give the PCIe path */
} LhToolReach;

/* Adds the tree of a table in line @line: @reach[a * gpus + b] is an LhToolReach. @node: a number
 * for each GPU, equal for GPUs at the same CPUs, UINT32_MAX if unknown. False with the error set if
 * the table does not describe a tree. */
bool lh_tool_add_reaches(LhToolReader *r, guint gpus, const uint32_t *reach, const uint32_t *node,
                         guint line);
